/* block.cc - the grid, the block and its barriers: who runs, who waits for whom. */
#include "fibers.h"
#include "parts.h"

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace emu
{

enum state { FRESH, READY, AT_BARRIER, AT_MEETING, DONE };

struct lane {
    state is;
    fiber *runs_on;
    uint3 index;
    const char *file; /* where it waits */
    int line;
    int barrier, result; /* AT_BARRIER: which; then how many brought a value */
    const char *what;    /* AT_MEETING: the operation */
    unsigned mask;
    slot brings;
};

struct barrier_state {
    int arrived, expected, values;
    const char *file;
    int line;
};

enum { BARRIERS = 16 };
static lane lanes[MOST_LANES];
static barrier_state barriers[BARRIERS];
static int count, live, me = -1;
static const grid *running;
static order how;
static uint64_t drawn;

void set_order(const order &o)
{
    how = o;
    drawn = o.seed;
}

bool in_kernel() { return me >= 0; }

int lane_number() { return me; }

std::string where()
{
    char text[400];
    if (!running)
        return "";
    int n = snprintf(text, sizeof text, "kernel %s, block (%u,%u,%u)", running->kernel.c_str(),
                     blockIdx.x, blockIdx.y, blockIdx.z);
    if (me >= 0 && n > 0 && (size_t)n < sizeof text)
        snprintf(text + n, sizeof text - (size_t)n, ", thread (%u,%u,%u)", lanes[me].index.x,
                 lanes[me].index.y, lanes[me].index.z);
    return text;
}

void fail(const char *format, ...)
{
    va_list list;
    fprintf(stderr, "cuda_on_cpu: ");
    va_start(list, format);
    vfprintf(stderr, format, list);
    va_end(list);
    std::string place = where();
    fprintf(stderr, "%s%s\n", place.empty() ? "" : "\n    in ", place.c_str());
    abort();
}

/* ---- waiting ---- */

/* Until the scheduler enters this lane again. */
static void leave()
{
    me = -1;
    fiber_leave();
}

/* The lanes of this one's warp, as numbers [first, end). */
static int warp_first() { return me / WARP * WARP; }

static int warp_end()
{
    int end = warp_first() + WARP;
    return end < count ? end : count;
}

/* A lane that waits for this one in its warp will wait in vain: this one does something else. */
static void check_awaited(const char *does, const char *file, int line)
{
    for (int i = warp_first(); i < warp_end(); i++)
        if (lanes[i].is == AT_MEETING && lanes[i].mask >> (me % WARP) & 1)
            fail("lane %d %s at %s:%d, while lane %d waits for it in %s at %s:%d", me, does, file,
                 line, i, lanes[i].what, lanes[i].file, lanes[i].line);
}

static bool complete(const barrier_state &b)
{
    return b.arrived > 0 && b.arrived == (b.expected ? b.expected : live);
}

static void release(int id)
{
    for (int i = 0; i < count; i++)
        if (lanes[i].is == AT_BARRIER && lanes[i].barrier == id) {
            lanes[i].is = READY;
            lanes[i].result = barriers[id].values;
        }
    barriers[id] = barrier_state();
}

int barrier(int id, int expected, int value, const char *file, int line)
{
    if (id < 0 || id >= BARRIERS || expected % WARP || expected > (count + WARP - 1) / WARP * WARP)
        fail("barrier %d for %d lanes at %s:%d: there are barriers 0 to 15, for whole warps of the "
             "block",
             id, expected, file, line);
    check_awaited("waits at a barrier", file, line);
    barrier_state &b = barriers[id];
    if (b.arrived && (b.line != line || strcmp(b.file, file) || b.expected != expected))
        fail("lanes wait at barrier %d in different places: %s:%d for %d lanes, %s:%d for %d (0: "
             "all)",
             id, b.file, b.line, b.expected, file, line, expected);
    b.file = file;
    b.line = line;
    b.expected = expected;
    b.arrived++;
    b.values += value != 0;
    lane &l = lanes[me];
    l.is = AT_BARRIER;
    l.barrier = id;
    l.file = file;
    l.line = line;
    if (complete(b))
        release(id);
    else
        leave();
    return l.result;
}

void meet(const char *what, unsigned mask, finish_meeting *finish, const void *in, size_t in_bytes,
          void *out, size_t out_bytes, const char *file, int line)
{
    lane &l = lanes[me];
    int first = warp_first(), missing = 0;
    if (!(mask >> (me % WARP) & 1))
        fail("lane %d calls %s at %s:%d with a mask that lacks it, %#x", me, what, file, line,
             mask);
    slot *slots[WARP] = {};
    memcpy(l.brings.in, in, in_bytes);
    for (int i = 0; i < WARP; i++) {
        if (!(mask >> i & 1))
            continue;
        lane &other = lanes[first + i];
        if (first + i >= count)
            fail("%s at %s:%d: mask %#x names lane %d, and the block has %d", what, file, line,
                 mask, first + i, count);
        if (other.is == DONE)
            fail("%s at %s:%d: mask %#x names lane %d, which has returned", what, file, line, mask,
                 first + i);
        if (other.is == AT_BARRIER)
            fail("%s at %s:%d: mask %#x names lane %d, which waits at a barrier at %s:%d", what,
                 file, line, mask, first + i, other.file, other.line);
        bool here = other.is == AT_MEETING && other.mask == mask && other.line == line &&
                    !strcmp(other.what, what) && !strcmp(other.file, file);
        if (other.is == AT_MEETING && !here && other.mask >> (me - first) & 1)
            fail("%s at %s:%d: mask %#x names lane %d, which waits in %s at %s:%d with mask %#x",
                 what, file, line, mask, first + i, other.what, other.file, other.line, other.mask);
        missing += first + i != me && !here; /* one that waits for others may come later */
        slots[i] = &other.brings;
    }
    l.what = what;
    l.mask = mask;
    l.file = file;
    l.line = line;
    l.is = AT_MEETING;
    if (missing) {
        leave();
    } else {
        finish(mask, slots);
        for (int i = 0; i < WARP; i++)
            if (mask >> i & 1)
                lanes[first + i].is = READY;
    }
    memcpy(out, l.brings.out, out_bytes);
}

/* ---- running ---- */

static void lane_body()
{
    running->body();
    check_awaited("returns", "its end", 0);
    lanes[me].is = DONE;
    live--;
    me = -1;
    for (int id = 0; id < BARRIERS; id++)
        if (!barriers[id].expected && complete(barriers[id]))
            release(id);
}

static void enter(int i)
{
    lane &l = lanes[i];
    if (l.is == FRESH)
        l.runs_on = fiber_take(lane_body);
    l.is = READY;
    me = i;
    threadIdx = l.index;
    fiber_enter(l.runs_on);
    if (l.is == DONE)
        fiber_give(l.runs_on);
}

static uint64_t draw(uint64_t below)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (drawn >> 33) % below;
}

static void arrange(int *turns)
{
    for (int i = 0; i < count; i++)
        turns[i] = how.lanes == order::REVERSED ? count - 1 - i : i;
    for (int i = count - 1; i > 0 && how.lanes == order::RANDOM; i--) {
        int j = (int)draw((uint64_t)i + 1), was = turns[i];
        turns[i] = turns[j];
        turns[j] = was;
    }
}

static bool go_on(int i)
{
    state is = lanes[i].is;
    if (is == FRESH || is == READY)
        enter(i);
    return is == FRESH || is == READY;
}

/* A warp, drawn at random, goes on alone as far as it can. What it writes too early shows. Whether
 * any of its lanes moved. */
static bool run_ahead()
{
    int first = (int)draw(((uint64_t)count + WARP - 1) / WARP) * WARP;
    int end = first + WARP < count ? first + WARP : count;
    bool any = false;
    for (bool moved = true; moved; any = any || moved) {
        moved = false;
        for (int i = first; i < end; i++)
            moved = go_on(i) || moved;
    }
    return any;
}

/* Print which lanes wait where, neighbours together, and abort. */
[[noreturn]] static void deadlock()
{
    fprintf(stderr, "cuda_on_cpu: deadlock: no lane can go on\n");
    for (int i = 0, next; i < count; i = next) {
        const lane &l = lanes[i];
        for (next = i + 1; next < count && lanes[next].is == l.is && lanes[next].line == l.line;
             next++)
            ;
        if (l.is == AT_BARRIER)
            fprintf(stderr, "    lanes %d to %d wait at barrier %d at %s:%d\n", i, next - 1,
                    l.barrier, l.file, l.line);
        else if (l.is == AT_MEETING)
            fprintf(stderr, "    lanes %d to %d wait in %s at %s:%d\n", i, next - 1, l.what, l.file,
                    l.line);
        else
            fprintf(stderr, "    lanes %d to %d are done\n", i, next - 1);
    }
    fail("deadlock");
}

static void run_block(const grid &g, unsigned x, unsigned y, unsigned z)
{
    static int turns[MOST_LANES];
    blockIdx = {x, y, z};
    count = live = (int)(g.threads.x * g.threads.y * g.threads.z);
    for (int i = 0; i < count; i++) {
        unsigned n = (unsigned)i, row = n / g.threads.x;
        lanes[i].is = FRESH;
        lanes[i].line = 0;
        lanes[i].index = {n % g.threads.x, row % g.threads.y, row / g.threads.y};
    }
    memset(barriers, 0, sizeof barriers);
    shared_begin(g.shared, g.shared_allowed);
    copies_begin();
    while (live > 0) {
        bool moved = how.lanes == order::RANDOM && run_ahead();
        arrange(turns);
        for (int i = 0; i < count; i++)
            moved = go_on(turns[i]) || moved;
        if (!moved)
            deadlock();
    }
    shared_end();
}

void run_grid(const grid &g)
{
    open_memory open;
    running = &g;
    gridDim = g.blocks;
    blockDim = g.threads;
    uint64_t blocks = (uint64_t)g.blocks.x * g.blocks.y * g.blocks.z;
    uint64_t skipped = how.last_blocks && how.last_blocks < blocks ? blocks - how.last_blocks : 0;
    for (uint64_t i = skipped; i < blocks; i++) {
        uint64_t n = how.grid_reversed ? blocks - 1 - i : i, row = n / g.blocks.x;
        run_block(g, (unsigned)(n % g.blocks.x), (unsigned)(row % g.blocks.y),
                  (unsigned)(row / g.blocks.y));
    }
    running = nullptr;
}

} // namespace emu
