/* packs.h - the rows of one step, several to a pack. Inside this folder only.
 *
 * The rule is best fit: as rows come, a row goes into the fullest pack that has room for it, else
 * into a new one. When a row fits nowhere, the step's rows and this one are packed once more, the
 * longest first, which leaves less empty (best fit decreasing); the step is full when they do not
 * fit so either, and that row begins the next step. Whole rows only. So a step's rows are a run of
 * the epoch's order (where one stands is a count of rows, nothing else need be stored), one row is
 * looked at beyond the step, and it takes about as few packs as if all rows of the set were sorted
 * first. All packs of a step are filled together, so --accumulate helps as much as --batch-size.
 *
 *     pack 0   aaaaaabbbbbbbbbbbbcccc      rows are kept as they came; which pack each is in is settled
 *     pack 1   ddddddddddeeeeeeeeefff      when the step is full
 *     pack 2   gggggggggggggg------        computed as far as the longest of its micro-batch */
#ifndef TUNE_DATASETS_PACKS_H
#define TUNE_DATASETS_PACKS_H

#include "datasets/dataset.h"

struct tune_pack {
    int64_t rows, first; /* how many, and the first of them, when closed */
    int64_t next;        /* while rows are taken in: another pack with as much room; -1: none */
    int32_t used;        /* tokens, when closed */
};

struct tune_packs {
    int64_t count;       /* packs there is room for */
    int capacity;        /* tokens of one */
    int64_t open;        /* with a token in them, the first ones */
    bool full;
    struct tune_pack *pack; /* [count] */
    int64_t tokens;      /* of all rows */
    int32_t *ids;        /* [count*capacity]; rows as they came */
    bool *trained;       /* [count*capacity] */
    int64_t kept, most;  /* rows taken in; room for so many */
    struct tune_packed {
        /* where its tokens begin; its pack, and that in the packing that is tried */
        int64_t at, pack, tried;
        /* of the same length, or when closed in the same pack; -1: the last */
        int64_t next;
        int32_t count;
    } *row;              /* [most] */
    int64_t *by_room;    /* [capacity+1] a pack with so many tokens left; -1: none */
    int64_t *by_length;  /* [capacity+1] a row of so many tokens; -1: none */
    uint64_t *rooms;     /* [capacity/64+1] bit r: by_room[r] is not -1 */
};

/* tune_packs_new - 0, or -1: no memory.  tune_packs_bytes - what it takes, of rows of 16 tokens and
 * more. */
int tune_packs_new(struct tune_packs *p, int64_t count, int capacity);
void tune_packs_free(struct tune_packs *p);
int64_t tune_packs_bytes(int64_t count, int capacity);

/* tune_packs_clear - a new step.  tune_packs_take - a row of 1 to capacity tokens in: 1; 0: it fits
 * nowhere; -1: no memory.
 * tune_packs_close - no more rows: which are in which pack. */
void tune_packs_clear(struct tune_packs *p);
int tune_packs_take(struct tune_packs *p, const struct tune_example *x);
void tune_packs_close(struct tune_packs *p);

/* tune_packs_put - pack i as a row of a batch, T positions at each place (core/batch.h); returns
 * its labels. Past the last pack: a row of padding. */
int64_t tune_packs_put(const struct tune_packs *p, int64_t i, int T, int32_t *ids, int32_t *labels,
                       int32_t *positions,
                       int32_t *starts);

#endif
