/* packs.c - best fit. */
#include "datasets/packs.h"

#include <stdlib.h>
#include <string.h>

#include "core/batch.h"

enum { TRAINED = 1, FIRST = 2 };
enum { YOUNGEST = 64 }; /* packs looked through for each row */

int64_t tune_packs_bytes(int64_t count, int capacity)
{
    struct tune_packs *p = NULL;
    return count * ((int64_t)(sizeof *p->ids + sizeof *p->flags) * capacity + (int64_t)sizeof *p->pack);
}

int tune_packs_new(struct tune_packs *p, int64_t count, int capacity)
{
    *p = (struct tune_packs){.count = count, .capacity = capacity};
    size_t tokens = (size_t)count * (size_t)capacity;
    p->pack = calloc((size_t)count, sizeof *p->pack);
    p->ids = calloc(tokens, sizeof *p->ids);
    p->flags = calloc(tokens, sizeof *p->flags);
    return p->pack && p->ids && p->flags ? 0 : -1;
}

void tune_packs_free(struct tune_packs *p)
{
    free(p->pack);
    free(p->ids);
    free(p->flags);
}

void tune_packs_clear(struct tune_packs *p)
{
    p->open = p->rows = p->empty = 0;
    p->readable = false;
}

/* The pack for n tokens; -1: none. Of packs equally full the oldest. */
static int64_t choose(struct tune_packs *p, int64_t n)
{
    int64_t best = -1;
    for (int64_t i = p->open > YOUNGEST ? p->open - YOUNGEST : 0; i < p->open; i++)
        if (p->pack[i].used + n <= p->capacity && (best < 0 || p->pack[i].used > p->pack[best].used))
            best = i;
    if (best >= 0 || p->open == p->count)
        return best;
    p->pack[p->open] = (struct tune_pack){0};
    return p->open++;
}

bool tune_packs_take(struct tune_packs *p, const struct tune_example *x)
{
    if (x->count > 0) {
        int64_t i = choose(p, x->count);
        if (i < 0)
            return false;
        int64_t at = i * p->capacity + p->pack[i].used;
        memcpy(p->ids + at, x->ids, (size_t)x->count * sizeof *p->ids);
        for (int64_t t = 0; t < x->count; t++)
            p->flags[at + t] = t == 0 ? FIRST : x->trained[t] ? TRAINED : 0;
        p->pack[i].used += (int32_t)x->count;
        p->pack[i].rows++;
    } else {
        p->empty++;
    }
    if (p->rows < TUNE_PACKS_NAMED) {
        p->met[p->rows].count = x->count;
        p->met[p->rows].full_count = x->full_count;
        p->met[p->rows].bad = x->bad;
    }
    p->rows++;
    p->readable |= !x->bad;
    return true;
}

int64_t tune_packs_put(const struct tune_packs *p, int64_t i, int T, int32_t *ids, int32_t *labels, int32_t *positions,
                       int32_t *starts)
{
    int32_t used = i < p->open ? p->pack[i].used : 0, start = 0;
    const uint8_t *flags = p->flags + i * p->capacity;
    int64_t count = 0;
    if (used > 0)
        memcpy(ids, p->ids + i * p->capacity, (size_t)used * sizeof *ids);
    memset(ids + used, 0, (size_t)(T - used) * sizeof *ids);
    for (int32_t t = 0; t < T; t++) {
        start = t >= used || flags[t] == FIRST ? t : start; /* padding: each position by itself, so it costs no attention */
        positions[t] = t - start;
        starts[t] = start;
        bool trained = t + 1 < used && flags[t + 1] == TRAINED;
        labels[t] = trained ? ids[t + 1] : TUNE_NO_LABEL;
        count += trained;
    }
    return count;
}
