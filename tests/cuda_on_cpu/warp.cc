/* warp.cc - what lanes of a warp do together: shuffles, votes, matches, sums. */
#include "warp.h"
#include "parts.h"

#include <cstring>

namespace emu
{

struct shuffle_in {
    unsigned char value[16];
    int kind, by, width;
};

/* The lane whose value this lane gets. PTX, shfl.sync: a lane outside its own part of `width` lanes
 * is not reached, and the lane keeps its value. xor may reach earlier parts. */
static int source(int lane, const shuffle_in &s)
{
    int begin = lane & ~(s.width - 1), end = begin + s.width, from = lane;
    switch (s.kind) {
    case SHUFFLE: return begin + (s.by & (s.width - 1));
    case SHUFFLE_UP: from = lane - s.by; return s.by < 0 || from < begin ? lane : from;
    case SHUFFLE_DOWN: from = lane + s.by; return s.by < 0 || from >= end ? lane : from;
    default: from = lane ^ s.by; return from >= end || from < 0 ? lane : from;
    }
}

static void finish_shuffle(unsigned mask, slot *const *slots)
{
    for (int lane = 0; lane < WARP; lane++) {
        if (!slots[lane])
            continue;
        shuffle_in mine, theirs;
        memcpy(&mine, slots[lane]->in, sizeof mine);
        int from = source(lane, mine);
        if (!slots[from])
            fail("a shuffle reads lane %d of the warp, which its mask %#x lacks", from, mask);
        memcpy(&theirs, slots[from]->in, sizeof theirs);
        memcpy(slots[lane]->out, theirs.value, sizeof theirs.value);
    }
}

void shuffle(int kind, unsigned mask, const void *value, void *result, size_t bytes, int by,
             int width, const char *file, int line)
{
    static const char *const names[] = {"__shfl_sync", "__shfl_up_sync", "__shfl_down_sync",
                                        "__shfl_xor_sync"};
    shuffle_in in = {};
    if (width < 1 || width > WARP || width & (width - 1))
        fail("%s at %s:%d: width %d is no power of 2 up to 32", names[kind], file, line, width);
    memcpy(in.value, value, bytes);
    in.kind = kind;
    in.by = by;
    in.width = width;
    meet(names[kind], mask, finish_shuffle, &in, sizeof in, result, bytes, file, line);
}

static void finish_ballot(unsigned, slot *const *slots)
{
    unsigned votes = 0;
    for (int i = 0; i < WARP; i++)
        if (slots[i] && slots[i]->in[0])
            votes |= 1u << i;
    for (int i = 0; i < WARP; i++)
        if (slots[i])
            memcpy(slots[i]->out, &votes, sizeof votes);
}

unsigned ballot(const char *what, unsigned mask, bool vote, const char *file, int line)
{
    unsigned votes;
    meet(what, mask, finish_ballot, &vote, sizeof vote, &votes, sizeof votes, file, line);
    return votes;
}

static void finish_match(unsigned, slot *const *slots)
{
    for (int i = 0; i < WARP; i++) {
        unsigned same = 0;
        for (int j = 0; slots[i] && j < WARP; j++)
            if (slots[j] && memcmp(slots[i]->in, slots[j]->in, 8) == 0)
                same |= 1u << j;
        if (slots[i])
            memcpy(slots[i]->out, &same, sizeof same);
    }
}

unsigned match(const char *what, unsigned mask, uint64_t value, const char *file, int line)
{
    unsigned same;
    meet(what, mask, finish_match, &value, sizeof value, &same, sizeof same, file, line);
    return same;
}

struct reduce_in {
    uint32_t value;
    int kind;
};

static uint32_t reduced(int kind, uint32_t a, uint32_t b)
{
    switch (kind) {
    case REDUCE_ADD: return a + b;
    case REDUCE_MIN: return a < b ? a : b;
    case REDUCE_MAX: return a > b ? a : b;
    case REDUCE_MIN_SIGNED: return (int32_t)a < (int32_t)b ? a : b;
    case REDUCE_MAX_SIGNED: return (int32_t)a > (int32_t)b ? a : b;
    case REDUCE_AND: return a & b;
    case REDUCE_OR: return a | b;
    default: return a ^ b;
    }
}

static void finish_reduce(unsigned, slot *const *slots)
{
    uint32_t sum = 0;
    bool any = false;
    reduce_in in;
    for (int i = 0; i < WARP; i++)
        if (slots[i]) {
            memcpy(&in, slots[i]->in, sizeof in);
            sum = any ? reduced(in.kind, sum, in.value) : in.value;
            any = true;
        }
    for (int i = 0; i < WARP; i++)
        if (slots[i])
            memcpy(slots[i]->out, &sum, sizeof sum);
}

uint32_t reduce(int kind, const char *what, unsigned mask, uint32_t value, const char *file,
                int line)
{
    reduce_in in = {value, kind};
    uint32_t sum;
    meet(what, mask, finish_reduce, &in, sizeof in, &sum, sizeof sum, file, line);
    return sum;
}

static void finish_nothing(unsigned, slot *const *) {}

void sync_warp(unsigned mask, const char *file, int line)
{
    char nothing = 0;
    meet("__syncwarp", mask, finish_nothing, &nothing, 1, &nothing, 1, file, line);
}

} // namespace emu
