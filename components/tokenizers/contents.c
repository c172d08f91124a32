/* contents.c - what a tokenizer holds, for programs that write it in another format. */
#include <stdlib.h>

#include "core/array.h"
#include "tokenizers/parts.h"

bool tune_tokenizer_is_special(const struct tune_tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->size && t->added_of[id] >= 0 && t->added[t->added_of[id]].special;
}

int32_t tune_tokenizer_template(const struct tune_tokenizer *t, bool after, int i)
{
    return i < (after ? t->afters : t->befores) ? (after ? t->after : t->before)[i] : -1;
}

int32_t tune_tokenizer_unknown(const struct tune_tokenizer *t)
{
    return t->unk;
}

enum tune_spaces tune_tokenizer_spaces(const struct tune_tokenizer *t)
{
    if (t->pre != TUNE_PRE_NONE)
        return TUNE_SPACES_BYTES;
    if (!t->metaspace.mark[0])
        return t->prepend ? TUNE_SPACES_MARKS_EACH : TUNE_SPACES_MARKS;
    return t->metaspace.prepend == TUNE_PREPEND_NEVER   ? TUNE_SPACES_MARKS
           : t->metaspace.prepend == TUNE_PREPEND_FIRST ? TUNE_SPACES_MARKS_FIRST
                                                        : TUNE_SPACES_MARKS_EACH;
}

static int by_rank(const void *a, const void *b)
{
    uint32_t x = ((const struct tune_merge_pair *)a)->rank,
             y = ((const struct tune_merge_pair *)b)->rank;
    return (x > y) - (x < y);
}

struct tune_token_merge *tune_tokenizer_merges(const struct tune_tokenizer *t, int64_t *count)
{
    struct tune_merge_pair *pairs =
        tune_zeroed((size_t)t->pair_count + 1, sizeof *pairs, "the merges");
    struct tune_token_merge *merges =
        tune_zeroed((size_t)t->pair_count + 1, sizeof *merges, "the merges");
    *count = 0;
    for (uint64_t i = 0; pairs && merges && t->pairs && i <= t->pair_mask; i++)
        if (t->pairs[i].key != UINT64_MAX)
            pairs[(*count)++] = t->pairs[i];
    if (pairs && merges) {
        qsort(pairs, (size_t)*count, sizeof *pairs, by_rank);
        for (int64_t i = 0; i < *count; i++)
            merges[i] = (struct tune_token_merge){(int32_t)(pairs[i].key >> 32),
                                                  (int32_t)(uint32_t)pairs[i].key, pairs[i].id};
        free(pairs);
        return merges;
    }
    free(pairs);
    free(merges);
    return NULL;
}
