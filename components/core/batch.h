/* batch.h - one micro-batch of token ids: a loader makes it, a model and a loss read it. */
#ifndef TUNE_CORE_BATCH_H
#define TUNE_CORE_BATCH_H

#include <stdbool.h>
#include <stdint.h>

/* Label of a position that is not trained (PyTorch's ignore_index). */
#define TUNE_NO_LABEL (-100)

/* A batch has B rows of T positions, padded on the right to the longest row. Labels are already
 * shifted: labels[b,t] is ids[b,t+1], the token that position t shall predict. It is TUNE_NO_LABEL
 * for masked tokens, for padding and for a row's last position.
 *
 * With packing, each of the B rows is a pack: several rows of the data set, one after the other.
 * None of them sees another.
 *
 *     ids        a b c | d e | f g h i | 0 0          labels      b c - | e - | g h i - | - -
 *     positions  0 1 2 | 0 1 | 0 1 2 3 | 0 0          starts      0 0 0 | 3 3 | 5 5 5 5 | 9 10
 *
 * Here each position of the padding sees only itself. */
struct tune_batch {
    int B, T;
    const int32_t *ids;      /* [B,T]; padding has id 0 */
    const int32_t *labels;   /* [B,T] */
    const int32_t *lengths;  /* [B]; tokens of the row or pack, at most T */
    /* rows of the data set: see tune_batch_row */
    const int64_t *row_of;   /* [B]; NULL with packing */
    const int64_t *row_at;   /* [B,T] with packing, -1 for padding; else NULL */
    int64_t tokens;          /* sum of lengths */
    int64_t label_count;     /* labels other than TUNE_NO_LABEL */
    double epoch;            /* epochs done, this batch included; 0: unknown */
    const int32_t *positions; /* [B,T]; position of each token in its own text; NULL: 0..T-1; see
                                 tune_batch_position */
    /* [B,T]; first position that this one sees; never decreases along a row; NULL: 0; see
     * tune_batch_start */
    const int32_t *starts;
    int64_t row_count;       /* rows of the data set in the batch; 0: B */
    bool last;               /* the step's last micro-batch of this rank: its gradients may go to
                                the other ranks as they are made. A loader says it */
    bool empty;              /* it keeps several ranks in step (datasets/loader.h): one row of the
                                data set that does not count, and no label */
    /* A row of the data set may have labelled sequences, such as two answers to a prompt. Those of
     * one row follow each other in the batch. */
    int sequences;          /* of each row of the data set; 0: one, without a label */
    const double *label_of; /* [B]; NULL: no labels. 1: an answer that people want; 0: one that they
                               reject. A data set of your own may have others, such as scores */
    /* [B]; ids before the answer; NULL: those before the first label. A row whose first id is of
     * the answer has 0. Labels do not tell it: nothing predicts a first id. */
    const int32_t *prompts;
};

#ifdef __cplusplus
extern "C" {
#endif

/* tune_batch_new - make a batch from B rows of ids, padded and labelled as a loader would do it.
 * lengths [B]: number of ids of each row. ids: all rows, one after the other. prompts [B]: number
 * of ids at each row's start that are not trained; NULL: all are trained. Everything is copied.
 * NULL with an error: no rows, an empty row, or no memory.
 * tune_batch_mismatched - make a batch of another one's prompts with wrong answers. Row b gets the
 * answer of row b - 1, and row 0 that of the last row. An answer is what is trained, up to the
 * row's end. Rows are cut to `most` ids, and T is rounded up to a multiple of `multiple` (0: not),
 * at most to `most`. The other batch is not packed.
 * tune_batch_free - free it; NULL is fine. */
struct tune_batch *tune_batch_new(int B, const int32_t *lengths, const int32_t *ids,
                                  const int32_t *prompts);
struct tune_batch *tune_batch_mismatched(const struct tune_batch *batch, int most, int multiple);
void tune_batch_free(struct tune_batch *batch);

/* These are about position t of row b, packed or not.
 * tune_batch_row - the row's number in its data set, for tune_dataset_number and _text. -1:
 * padding, or a batch that the program made of its own ids.
 * tune_batch_position - the position in its own text.
 * tune_batch_start - the first position that this one sees. */
static inline int64_t tune_batch_row(const struct tune_batch *batch, int b, int t)
{
    if (batch->row_at)
        return batch->row_at[(int64_t)b * batch->T + t];
    return batch->row_of && t < batch->lengths[b] ? batch->row_of[b] : -1;
}
static inline int32_t tune_batch_position(const struct tune_batch *batch, int b, int t)
{
    return batch->positions ? batch->positions[(int64_t)b * batch->T + t] : t;
}
static inline int32_t tune_batch_start(const struct tune_batch *batch, int b, int t)
{
    return batch->starts ? batch->starts[(int64_t)b * batch->T + t] : 0;
}

#ifdef __cplusplus
}
#endif

#endif
