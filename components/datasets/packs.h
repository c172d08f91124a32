/* packs.h - the rows of one step, several to a pack. Inside this folder only.
 *
 * The rule is best fit, as rows come: a row goes into the fullest of the youngest open packs that has room for it, else into
 * a new one; a step is full when a row fits nowhere, and that row begins the next step. Whole rows only. So a step's rows are
 * a run of the epoch's order (where one stands is a count of rows, nothing else need be stored), one row is looked at beyond
 * the step, and what is left empty is what the last row did not fit into, mostly of one pack: the more packs a step has, the
 * smaller its share. All packs of a step are filled together, so --accumulate helps as much as --batch-size.
 *
 *     pack 0   aaaaaabbbbbbbbbbbbcccc      flags: 1 trained, 2 first of its row
 *     pack 1   ddddddddddeeeeeeeeefff
 *     pack 2   gggggggggggggg------        computed as far as the longest of its micro-batch */
#ifndef TUNE_DATASETS_PACKS_H
#define TUNE_DATASETS_PACKS_H

#include "datasets/dataset.h"

enum { TUNE_PACKS_NAMED = 4 };

struct tune_pack {
    int64_t rows;
    int32_t used; /* tokens */
};

struct tune_packs {
    int64_t count;    /* packs there is room for */
    int capacity;     /* tokens of one */
    int64_t open;     /* with a token in them, the first ones */
    int64_t rows;     /* taken in */
    int64_t empty;    /* of them without a token: in no pack */
    bool readable;    /* one at least was not bad */
    struct tune_pack *pack; /* [count] */
    int32_t *ids;     /* [count,capacity] */
    uint8_t *flags;   /* [count,capacity] */
    struct {
        int64_t count, full_count;
        bool bad;
    } met[TUNE_PACKS_NAMED]; /* the first rows, for messages */
};

/* tune_packs_new - 0, or -1: no memory.  tune_packs_bytes - what it takes. */
int tune_packs_new(struct tune_packs *p, int64_t count, int capacity);
void tune_packs_free(struct tune_packs *p);
int64_t tune_packs_bytes(int64_t count, int capacity);

/* tune_packs_clear - a new step.  tune_packs_take - a row of at most capacity tokens in; false: it fits nowhere. */
void tune_packs_clear(struct tune_packs *p);
bool tune_packs_take(struct tune_packs *p, const struct tune_example *x);

/* tune_packs_put - pack i as a row of a batch, T positions at each place (core/batch.h); returns its labels. Past the last
 * pack: a row of padding. */
int64_t tune_packs_put(const struct tune_packs *p, int64_t i, int T, int32_t *ids, int32_t *labels, int32_t *positions,
                       int32_t *starts);

#endif
