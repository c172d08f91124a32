/* batch.h - one micro-batch of token ids, as a loader hands it to a model and a loss. */
#ifndef TUNE_CORE_BATCH_H
#define TUNE_CORE_BATCH_H

#include <stdint.h>

/* The label of a position that is not trained (PyTorch's ignore_index). */
#define TUNE_NO_LABEL (-100)

/* B rows of T positions, padded on the right to the longest row. Labels are shifted already: labels[b,t] is the token
 * that position t shall predict, that is ids[b,t+1], or TUNE_NO_LABEL where it is masked, padding, or the row's last. */
struct tune_batch {
    int B, T;
    const int32_t *ids;      /* [B,T]; padding holds the id 0 */
    const int32_t *labels;   /* [B,T] */
    const int32_t *lengths;  /* [B]; tokens of the row, at most T */
    const int64_t *rows;     /* [B]; index of the row in its dataset */
    int64_t tokens;          /* sum of lengths */
    int64_t label_count;     /* labels that are not TUNE_NO_LABEL */
    double epoch;            /* with this batch; 0: unknown */
};

#endif
