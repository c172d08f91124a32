/* grams.c - n-grams of words and characters, as sorted lists. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/try.h"
#include "metrics/texts.h"

static int by_key(const void *a, const void *b)
{
    const struct tune_gram *x = a, *y = b;
    int high = (x->key[0] > y->key[0]) - (x->key[0] < y->key[0]);
    return high ? high : (x->key[1] > y->key[1]) - (x->key[1] < y->key[1]);
}

int tune_grams_of(const struct tune_symbols *s, int n, int bits, struct tune_grams *g)
{
    size_t count = s->count < (size_t)n ? 0 : s->count - (size_t)n + 1, kept = 0;
    *g = (struct tune_grams){.at = tune_zeroed(count + 1, sizeof *g->at, "n-grams of a text"), .total = (int64_t)count};
    if (!g->at)
        return -1;
    for (size_t i = 0; i < count; i++) {
        __extension__ unsigned __int128 key = 0;
        for (int k = 0; k < n; k++)
            key = key << bits | s->at[i + (size_t)k];
        g->at[i] = (struct tune_gram){{(uint64_t)(key >> 64), (uint64_t)key}, 1};
    }
    qsort(g->at, count, sizeof *g->at, by_key);
    for (size_t i = 0; i < count; i++)
        if (kept > 0 && by_key(&g->at[kept - 1], &g->at[i]) == 0)
            g->at[kept - 1].count++;
        else
            g->at[kept++] = g->at[i];
    g->count = kept;
    return 0;
}

int64_t tune_grams_common(const struct tune_grams *a, const struct tune_grams *b)
{
    int64_t common = 0;
    for (size_t i = 0, k = 0; i < a->count && k < b->count;) {
        int order = by_key(&a->at[i], &b->at[k]);
        if (order == 0)
            common += a->at[i].count < b->at[k].count ? a->at[i].count : b->at[k].count;
        i += order <= 0;
        k += order >= 0;
    }
    return common;
}

int tune_grams_widen(struct tune_grams *a, const struct tune_grams *b)
{
    struct tune_grams both = {.at = tune_zeroed(a->count + b->count + 1, sizeof *both.at, "n-grams of a text")};
    if (!both.at)
        return -1;
    for (size_t i = 0, k = 0; i < a->count || k < b->count;) {
        int order = i == a->count ? 1 : k == b->count ? -1 : by_key(&a->at[i], &b->at[k]);
        struct tune_gram *g = &both.at[both.count++];
        *g = order <= 0 ? a->at[i] : b->at[k];
        if (order == 0 && b->at[k].count > g->count)
            g->count = b->at[k].count;
        both.total += g->count;
        i += order <= 0;
        k += order >= 0;
    }
    free(a->at);
    *a = both;
    return 0;
}

void tune_grams_free(struct tune_grams *g)
{
    free(g->at);
    *g = (struct tune_grams){0};
}
