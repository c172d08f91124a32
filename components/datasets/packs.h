/* packs.h - the rows of one step in packs. Private to this folder.
 *
 * Packing uses best fit: a row goes into the fullest pack with room for it, else into a new pack.
 * If a row fits nowhere, all rows of the step and this one are packed again, longest first (best
 * fit decreasing), which wastes less. If they still do not fit, the step is full and that row
 * begins the next step.
 *
 * Rows are never split. A step's rows are consecutive in the epoch's order, so a count of rows is
 * the only state to save. Only one row is read ahead of the step. The number of packs is close to
 * that of sorting all rows first. All packs of a step are filled together, so --accumulate helps as
 * much as --batch-size.
 *
 *     pack 0   aaaaaabbbbbbbbbbbbcccc      rows are stored in order of arrival; each row's pack
 *     pack 1   ddddddddddeeeeeeeeefff      is final when the step is full
 *     pack 2   gggggggggggggg------        computed to the longest pack of its micro-batch */
#ifndef TUNE_DATASETS_PACKS_H
#define TUNE_DATASETS_PACKS_H

#include "datasets/dataset.h"

struct tune_pack {
    int64_t rows, first; /* when closed: number of rows, and the first one */
    int64_t next;        /* while filling: another pack with the same room; -1: none */
    int32_t used;        /* tokens, when closed */
};

struct tune_packs {
    int64_t count;       /* number of packs */
    int capacity;        /* tokens of a pack */
    int64_t open;        /* packs that are not empty; they come first */
    bool full;
    struct tune_pack *pack; /* [count] */
    int64_t tokens;      /* tokens of all rows */
    int32_t *ids;        /* [count*capacity]; rows in order of arrival */
    bool *trained;       /* [count*capacity] */
    int64_t kept;        /* number of rows */
    struct tune_packed {
        /* start of its tokens; its pack; its pack in the packing being tried */
        int64_t at, pack, tried;
        int64_t row;  /* its number in the data set */
        int64_t next; /* next row of the same length, or when closed of the same pack; -1: none */
        int32_t count;
    } *row;              /* [kept] */
    int64_t *by_room;    /* [capacity+1] a pack with this many free tokens; -1: none */
    int64_t *by_length;  /* [capacity+1] a row with this many tokens; -1: none */
    uint64_t *rooms;     /* [capacity/64+1] bit r: by_room[r] is not -1 */
};

/* tune_packs_new - allocate. 0, or -1 with an error: no memory.
 *
 * tune_packs_bytes - memory in bytes, for rows of at least 16 tokens. */
int tune_packs_new(struct tune_packs *p, int64_t count, int capacity);
void tune_packs_free(struct tune_packs *p);
int64_t tune_packs_bytes(int64_t count, int capacity);

/* tune_packs_clear - begin a new step.
 * tune_packs_take - add the data set's row, of 1 to capacity tokens. 1: added; 0: it fits nowhere;
 * -1: no memory.
 * tune_packs_close - end the step and assign its rows to packs. */
void tune_packs_clear(struct tune_packs *p);
int tune_packs_take(struct tune_packs *p, int64_t row, const struct tune_example *x);
void tune_packs_close(struct tune_packs *p);

/* tune_packs_put - write pack i as a row of a batch: T elements in each array (core/batch.h). rows:
 * those of row_at.
 * Returns its number of labels. An i past the last pack gives a row of padding. */
int64_t tune_packs_put(const struct tune_packs *p, int64_t i, int T, int32_t *ids, int32_t *labels,
                       int32_t *positions, int32_t *starts, int64_t *rows);

#endif
