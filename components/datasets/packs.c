/* packs.c - best fit in order of arrival, then best fit decreasing. */
#include "datasets/packs.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/batch.h"
#include "core/error.h"
#include "core/try.h"

static size_t words(int capacity)
{
    return (size_t)capacity / 64 + 1;
}

int64_t tune_packs_bytes(int64_t count, int capacity)
{
    struct tune_packs *p = NULL;
    int64_t tokens = count * capacity;
    return tokens * (int64_t)(sizeof *p->ids + sizeof *p->trained) + count * (int64_t)sizeof *p->pack +
           (tokens / 16 + 1) * (int64_t)sizeof *p->row +
           (capacity + 1) * (int64_t)(sizeof *p->by_room + sizeof *p->by_length) + (int64_t)(words(capacity) * sizeof *p->rooms);
}

int tune_packs_new(struct tune_packs *p, int64_t count, int capacity)
{
    *p = (struct tune_packs){.count = count, .capacity = capacity};
    size_t tokens = (size_t)count * (size_t)capacity, lengths = (size_t)capacity + 1;
    p->pack = calloc((size_t)count, sizeof *p->pack);
    p->ids = calloc(tokens, sizeof *p->ids);
    p->trained = calloc(tokens, sizeof *p->trained);
    p->by_room = calloc(lengths, sizeof *p->by_room);
    p->by_length = calloc(lengths, sizeof *p->by_length);
    p->rooms = calloc(words(capacity), sizeof *p->rooms);
    return p->pack && p->ids && p->trained && p->by_room && p->by_length && p->rooms ? 0 : -1;
}

void tune_packs_free(struct tune_packs *p)
{
    free(p->pack);
    free(p->ids);
    free(p->trained);
    free(p->row);
    free(p->by_room);
    free(p->by_length);
    free(p->rooms);
    *p = (struct tune_packs){0};
}

/* Remove all rows from the packs. */
static void empty_packs(struct tune_packs *p)
{
    p->open = 0;
    for (int room = 0; room <= p->capacity; room++)
        p->by_room[room] = -1;
    memset(p->rooms, 0, words(p->capacity) * sizeof *p->rooms);
}

void tune_packs_clear(struct tune_packs *p)
{
    empty_packs(p);
    p->kept = p->tokens = 0;
    p->full = false;
}

/* The smallest room of any pack that is at least n; -1: none. */
static int64_t least_room(const struct tune_packs *p, int32_t n)
{
    uint64_t mask = ~(uint64_t)0 << n % 64;
    for (size_t w = (size_t)n / 64; w < words(p->capacity); w++, mask = ~(uint64_t)0)
        if (p->rooms[w] & mask)
            return (int64_t)(64 * w) + __builtin_ctzll(p->rooms[w] & mask);
    return -1;
}

/* Put n tokens into the fullest pack with room for them, else into a new one. Returns it; -1:
 * none. */
static int64_t choose(struct tune_packs *p, int32_t n)
{
    int64_t room = least_room(p, n), i;
    if (room >= 0) {
        i = p->by_room[room];
        p->by_room[room] = p->pack[i].next;
        if (p->by_room[room] < 0)
            p->rooms[room / 64] &= ~((uint64_t)1 << room % 64);
    } else if (p->open < p->count) {
        i = p->open++;
        room = p->capacity;
    } else {
        return -1;
    }
    room -= n;
    p->pack[i].next = p->by_room[room];
    p->by_room[room] = i;
    p->rooms[room / 64] |= (uint64_t)1 << room % 64;
    return i;
}

/* Pack all rows again, longest first; rows of equal length stay in order. false: they do not fit,
 * and nothing changed. */
static bool repack(struct tune_packs *p)
{
    int64_t open = p->open;
    for (int length = 0; length <= p->capacity; length++)
        p->by_length[length] = -1;
    for (int64_t r = p->kept - 1; r >= 0; r--) {
        p->row[r].next = p->by_length[p->row[r].count];
        p->by_length[p->row[r].count] = r;
    }
    empty_packs(p);
    for (int length = p->capacity; length > 0; length--)
        for (int64_t r = p->by_length[length]; r >= 0; r = p->row[r].next)
            if ((p->row[r].tried = choose(p, length)) < 0) {
                p->open = open;
                return false;
            }
    for (int64_t r = 0; r < p->kept; r++)
        p->row[r].pack = p->row[r].tried;
    return true;
}

/* Add a row: 1, or 0 if the step is full. */
static int put_in(struct tune_packs *p, int64_t number, const struct tune_example *x)
{
    if (p->tokens + x->count > p->count * p->capacity)
        return 0;
    if (!tune_array_fit(&p->row, (size_t)p->kept, sizeof *p->row))
        return tune_error_no_memory("packing %lld rows into a step", (long long)p->kept);
    struct tune_packed *row = &p->row[p->kept++];
    *row = (struct tune_packed){.at = p->tokens, .row = number, .count = (int32_t)x->count};
    row->pack = choose(p, row->count);
    if (row->pack < 0 && !repack(p)) {
        p->kept--;
        return 0;
    }
    memcpy(p->ids + p->tokens, x->ids, (size_t)x->count * sizeof *p->ids);
    for (int64_t t = 0; t < x->count; t++)
        p->trained[p->tokens + t] = x->trained[t] != 0;
    p->tokens += x->count;
    return 1;
}

int tune_packs_take(struct tune_packs *p, int64_t row, const struct tune_example *x)
{
    int in = p->full ? 0 : put_in(p, row, x);
    TRY(in);
    p->full = in == 0;
    return in;
}

void tune_packs_close(struct tune_packs *p)
{
    p->full = true;
    for (int64_t i = 0; i < p->open; i++)
        p->pack[i] = (struct tune_pack){.first = -1, .next = -1};
    for (int64_t r = p->kept - 1; r >= 0; r--) {
        struct tune_pack *pack = &p->pack[p->row[r].pack];
        p->row[r].next = pack->first;
        pack->first = r;
        pack->rows++;
        pack->used += p->row[r].count;
    }
}

int64_t tune_packs_put(const struct tune_packs *p, int64_t i, int T, int32_t *ids, int32_t *labels, int32_t *positions,
                       int32_t *starts, int64_t *rows)
{
    int32_t at = 0;
    int64_t count = 0;
    for (int64_t r = i < p->open ? p->pack[i].first : -1; r >= 0; r = p->row[r].next) {
        const int32_t n = p->row[r].count, *from = p->ids + p->row[r].at;
        const bool *trained = p->trained + p->row[r].at;
        memcpy(ids + at, from, (size_t)n * sizeof *ids);
        for (int32_t t = 0; t < n; t++) {
            bool label = t + 1 < n && trained[t + 1];
            positions[at + t] = t;
            starts[at + t] = at;
            rows[at + t] = p->row[r].row;
            labels[at + t] = label ? from[t + 1] : TUNE_NO_LABEL;
            count += label;
        }
        at += n;
    }
    for (; at < T; at++) { /* padding: each position is its own text, so it costs no attention */
        ids[at] = positions[at] = 0;
        starts[at] = at;
        rows[at] = -1;
        labels[at] = TUNE_NO_LABEL;
    }
    return count;
}
