/* batch.h - one micro-batch of token ids, as a loader hands it to a model and a loss. */
#ifndef TUNE_CORE_BATCH_H
#define TUNE_CORE_BATCH_H

#include <stdint.h>

/* The label of a position that is not trained (PyTorch's ignore_index). */
#define TUNE_NO_LABEL (-100)

/* B rows of T positions, padded on the right to the longest row. Labels are shifted already: labels[b,t] is the token
 * that position t shall predict, that is ids[b,t+1], or TUNE_NO_LABEL where it is masked, padding, or the row's last.
 *
 * Packed, each of the B is a pack: several rows of the data set one behind the other, none of which sees another.
 *
 *     ids        a b c | d e | f g h i | 0 0          labels      b c - | e - | g h i - | - -
 *     positions  0 1 2 | 0 1 | 0 1 2 3 | 0 0          starts      0 0 0 | 3 3 | 5 5 5 5 | 9 10     padding sees itself alone */
struct tune_batch {
    int B, T;
    const int32_t *ids;      /* [B,T]; padding holds the id 0 */
    const int32_t *labels;   /* [B,T] */
    const int32_t *lengths;  /* [B]; tokens of the row or pack, at most T */
    const int64_t *rows;     /* [B]; index of the row in its dataset; NULL where packed */
    int64_t tokens;          /* sum of lengths */
    int64_t label_count;     /* labels that are not TUNE_NO_LABEL */
    double epoch;            /* with this batch; 0: unknown */
    const int32_t *positions; /* [B,T]; of a token in its text. NULL: 0..T-1 in each row */
    const int32_t *starts;   /* [B,T]; the first t of its row that a token sees: not behind it, never lower than that of
                                the token before. NULL: 0 */
    int64_t row_count;       /* rows of the data set in it; 0: B */
};

#ifdef __cplusplus
extern "C" {
#endif

/* tune_batch_new - B rows of ids as a batch, padded and with labels as a loader makes it. lengths [B]: ids of each row; ids: the
 * rows, one behind the other; prompts [B]: how many ids at the begin of each row are not trained; NULL: all are. Everything is
 * copied. NULL with an error: no rows, one of no ids, no memory. tune_batch_free - NULL is fine. */
struct tune_batch *tune_batch_new(int B, const int32_t *lengths, const int32_t *ids, const int32_t *prompts);
void tune_batch_free(struct tune_batch *batch);

#ifdef __cplusplus
}
#endif

#endif
