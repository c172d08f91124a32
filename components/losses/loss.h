/* loss.h - the output projection and the loss, a chunk of labelled positions at a time: [N,V] logits never exist.
 *
 * Labelled positions are gathered and projected on the vocabulary. The loss turns a chunk's logits into their gradient, and
 * the chunk goes back through the projection. Masked positions cost nothing. A loss is a sum over labels; nobody divides
 * before the optimizer, so micro-batches and accumulation cannot change the result.
 *
 *     tune_loss_forward_backward(loss, hidden, &batch, record, &dhidden);     training by cross entropy
 *     tune_loss_forward(loss, hidden, &batch, &sum);                          evaluation
 *
 * A loss of your own is the loop that the first one is (docs/your-own-loss.md):
 *
 *     while ((more = tune_loss_chunk(loss, hidden, &batch, record, &chunk)) > 0) {
 *         tune_cross_entropy(&chunk, NULL);           logits -> d loss / d logits; or tune_chunk_each: your own arithmetic
 *         tune_chunk_done(&chunk);                    back through the projection
 *     }
 *     tune_model_backward(model, &batch, tune_loss_dhidden(loss));
 *
 * Source of the chunking: no full logits, as in torchtune's LinearCrossEntropyLoss; the gradient of -log softmax(z)[y] is
 * softmax(z) - onehot(y). N positions of the batch, V vocabulary, C width. */
#ifndef TUNE_LOSS_H
#define TUNE_LOSS_H

#include "losses/row.h"
#include "models/model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_loss;

/* tune_loss_new - for batches of up to the B and T the model was reserved for; all memory is taken here.
 * training: with the gradient's buffers. m is borrowed until free. */
struct tune_loss *tune_loss_new(struct tune_model *m, bool training);
void tune_loss_free(struct tune_loss *l);

/* tune_loss_bytes - what tune_loss_new takes of the device for a model of this shape and up to N = B T positions. */
int64_t tune_loss_bytes(const struct tune_model_config *config, enum tune_dtype activations, int64_t N, bool training);

/* Some labelled positions of a batch. What it views is the loss's until the next chunk, or the model's until its next forward. */
struct tune_chunk {
    struct tune_tensor logits;       /* [n,V] F32, scaled as the model's config says; must end as d loss / d logits */
    struct tune_tensor rows, labels; /* [n] I32: positions in the batch, 0..N-1, in order; their labels */
    const int32_t *host_rows, *host_labels; /* the same on the host */
    tune_address step;               /* the scalars of the record's step (devices/record.h) */
    struct tune_loss *loss;
    float *host;                     /* of tune_chunk_host; NULL: not asked for */
};

/* tune_loss_chunk - the next chunk of the batch last put through the model: 1, or 0 behind the last one, or -1 with an error. The
 * first one counts the batch in record's step (NULL: none is kept) and sets the gradient of hidden to 0.
 * tune_cross_entropy - -log p of each label, times weights ([N] F32 on the device, one factor for each position; NULL: 1), is
 * added to the step's loss_sum; logits become the gradient.
 * tune_cross_entropy_gradient - the same gradient, and nothing is added. For a loss that is another function of the labels'
 * log-probabilities: weights are minus its derivatives, its value goes to tune_record_loss.
 * tune_chunk_done - adds to the gradient of the output projection and of hidden. Not wanted where nothing is trained.
 * tune_loss_dhidden - the gradient of hidden [N,C], 0 where there is no label; the loss's until the next batch. The model's
 * backward writes over it. */
int tune_loss_chunk(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch, struct tune_record *record,
                    struct tune_chunk *chunk);
int tune_cross_entropy(struct tune_chunk *chunk, const struct tune_tensor *weights);
int tune_cross_entropy_gradient(struct tune_chunk *chunk, const struct tune_tensor *weights);
int tune_chunk_done(struct tune_chunk *chunk);
struct tune_tensor *tune_loss_dhidden(struct tune_loss *l);

/* For arithmetic in a recipe, in host memory. tune_chunk_each - loss (row.h) of each label; what it returns is added to the
 * step's loss_sum, in the labels' order. The device's threads share the labels. other: the second model's chunk, of
 * tune_loss_project, or NULL. -1: it has another vocabulary.
 * tune_chunk_host - the chunk's logits [n,V] as host memory, in place on the CPU, else a copy that tune_chunk_done brings back;
 * waits. NULL with an error.
 * tune_chunk_add_loss - loss is added to the step's loss_sum. */
int tune_chunk_each(struct tune_chunk *chunk, struct tune_chunk *other, tune_row_loss *loss, void *context);
float *tune_chunk_host(struct tune_chunk *chunk);
int tune_chunk_add_loss(struct tune_chunk *chunk, double loss);

/* tune_loss_project - the same positions by another model: *chunk2 has the logits of hidden2, which that model made of the same
 * batch. other is that model's; it may be made without training. */
int tune_loss_project(struct tune_loss *other, const struct tune_tensor *hidden2, const struct tune_chunk *chunk,
                      struct tune_chunk *chunk2);

/* tune_loss_forward_backward - that loop with plain cross entropy; *dhidden is tune_loss_dhidden's. */
int tune_loss_forward_backward(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                               struct tune_record *record, struct tune_tensor **dhidden);

/* tune_loss_forward - *loss_sum += sum of -log p over the batch's labels, nats; waits for the device. */
int tune_loss_forward(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                      double *loss_sum);

/* tune_loss_log_probs - *log_probs [N] F32 on the device: log p of the label at each position, 0 where there is none. The
 * loss's until the next call. */
int tune_loss_log_probs(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                        struct tune_tensor *log_probs);

/* For losses of whole rows, preferences for one. tune_loss_row_log_probs - sums [B], host: the sum of log p over the labels of
 * each row; waits. tune_loss_row_weights - *weights [N] on the device: factors[b] at each position of row b. The loss's until
 * the next call of it or of tune_loss_log_probs. -1: the batch is packed, so that its rows are several texts each. */
int tune_loss_row_log_probs(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                            double *sums);
int tune_loss_row_weights(struct tune_loss *l, const struct tune_batch *batch, const double *factors,
                          struct tune_tensor *weights);

struct tune_flags;
struct tune_loss *tune_get_loss(const struct tune_flags *flags, struct tune_model *m);

#ifdef __cplusplus
}
#endif
#endif
