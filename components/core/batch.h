/* batch.h - a micro-batch of token ids, which a loader gives to a model and a loss. */
#ifndef TUNE_CORE_BATCH_H
#define TUNE_CORE_BATCH_H

#include <stdint.h>

/* Label of a position that is not trained (PyTorch's ignore_index). */
#define TUNE_NO_LABEL (-100)

/* B rows of T positions, padded on the right to the longest row. Labels are already shifted:
 * labels[b,t] is ids[b,t+1]. It is TUNE_NO_LABEL where the next token is masked, or there is none.
 *
 * In a packed batch, each of the B rows is a pack: several rows of the dataset, one after another.
 * They do not attend to each other.
 *
 *     ids        a b c | d e | f g h i | 0 0          labels      b c - | e - | g h i - | - -
 *     positions  0 1 2 | 0 1 | 0 1 2 3 | 0 0          starts      0 0 0 | 3 3 | 5 5 5 5 | 9 10
 *
 * Each position of padding attends to itself only. */
struct tune_batch {
    int B, T;
    const int32_t *ids;      /* [B,T]; padding has id 0 */
    const int32_t *labels;   /* [B,T] */
    const int32_t *lengths;  /* [B] tokens of the row or pack, at most T */
    const int64_t *rows;     /* [B] index of the row in its dataset; NULL if packed */
    int64_t tokens;          /* sum of lengths */
    int64_t label_count;     /* number of labels that are not TUNE_NO_LABEL */
    double epoch;            /* epochs up to and with this batch; 0: unknown */
    const int32_t *positions; /* [B,T] position of a token in its text; NULL: 0..T-1 in each row */
    /* [B,T] first t a token attends to: at most its own, never decreasing in a row; NULL: 0 */
    const int32_t *starts;
    int64_t row_count;       /* rows of the dataset in the batch; 0: B */
};

#ifdef __cplusplus
extern "C" {
#endif

/* tune_batch_new - make a padded batch with labels, as a loader does. lengths [B]: ids of each row.
 * ids: all rows, one after another. prompts [B]: number of ids at the start of each row that are
 * not trained; NULL: none. Everything is copied. NULL with an error: no rows, an empty row, no
 * memory.
 *
 * tune_batch_free - free it. NULL is allowed. */
struct tune_batch *tune_batch_new(int B, const int32_t *lengths, const int32_t *ids,
                                  const int32_t *prompts);
void tune_batch_free(struct tune_batch *batch);

#ifdef __cplusplus
}
#endif

#endif
