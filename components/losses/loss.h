/* loss.h - the output projection and the loss, computed in chunks of labelled positions. The full
 * [N,V] logits never exist.
 *
 * Labelled positions are gathered and projected on the vocabulary. The loss replaces a chunk's
 * logits by their gradient, which then goes back through the projection. Unlabelled positions cost
 * nothing.
 *
 * A loss is a sum over labels. Only the optimizer divides it, so the result does not depend on the
 * split into micro-batches.
 *
 *     tune_loss_forward_backward(loss, hidden, &batch, record, &dhidden);     train, cross entropy
 *     tune_loss_forward(loss, hidden, &batch, &sum);                          evaluate
 *
 * A loss of your own is a loop over chunks (docs/your-own-loss.md):
 *
 *     while ((more = tune_loss_chunk(loss, hidden, &batch, record, &chunk)) > 0) {
 *         tune_cross_entropy(&chunk, NULL);    logits -> gradient; or your own: tune_chunk_each
 *         tune_chunk_done(&chunk);             back through the projection
 *     }
 *     tune_model_backward(model, &batch, tune_loss_dhidden(loss));
 *
 * Source of the chunking: torchtune's LinearCrossEntropyLoss. The gradient of -log softmax(z)[y] is
 * softmax(z) - onehot(y).
 *
 * Sizes: N positions of the batch, V vocabulary, C width. Functions that return int give 0, or -1
 * with an error, unless they say otherwise. */
#ifndef TUNE_LOSS_H
#define TUNE_LOSS_H

#include "losses/row.h"
#include "models/model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_loss;

/* tune_loss_new - make a loss for batches of up to the reserved B and T of the model. It allocates
 * all its memory. training: with buffers for gradients. m must outlive the loss. NULL with an
 * error. */
struct tune_loss *tune_loss_new(struct tune_model *m, bool training);
void tune_loss_free(struct tune_loss *l);

/* tune_loss_bytes - device memory that tune_loss_new allocates for a model of this shape and N = B
 * T positions, in bytes. */
int64_t tune_loss_bytes(const struct tune_model_config *config, enum tune_dtype activations,
                        int64_t N, bool training);

/* Some labelled positions of a batch. Its tensors belong to the loss (until the next chunk) or to
 * the model (until its next forward). */
struct tune_chunk {
    /* [n,V] F32, scaled as config says; the caller replaces them by d loss / d logits */
    struct tune_tensor logits;
    /* [n] I32: positions in the batch, 0..N-1, ascending; their labels */
    struct tune_tensor rows, labels;
    const int32_t *host_rows, *host_labels; /* the same on the host */
    tune_address step;               /* scalars of the record's step (devices/record.h) */
    struct tune_loss *loss;
    float *host;                     /* see tune_chunk_host; NULL: not used */
};

/* tune_loss_chunk - make the next chunk of the last batch given to the model: 1, or 0 after the
 * last, or -1 with an error. The first chunk counts the batch in record's step and sets the
 * gradient of hidden to 0. record may be NULL.
 *
 * tune_cross_entropy - add -log p of each label to the step's loss_sum and replace the logits by
 * their gradient. weights: [N] F32 on the device, a factor for each position; NULL: all 1.
 *
 * tune_cross_entropy_gradient - compute the gradient only. Use it for a loss that is another
 * function of the log-probabilities. weights are then minus its derivatives, and tune_record_loss
 * takes its value.
 *
 * tune_chunk_done - add to the gradients of the output projection and of hidden. Not needed if
 * nothing is trained.
 *
 * tune_loss_dhidden - gradient of hidden [N,C], 0 at positions without label. The loss owns it; it
 * is valid until the next batch. tune_model_backward overwrites it. */
int tune_loss_chunk(struct tune_loss *l, const struct tune_tensor *hidden,
                    const struct tune_batch *batch, struct tune_record *record,
                    struct tune_chunk *chunk);
int tune_cross_entropy(struct tune_chunk *chunk, const struct tune_tensor *weights);
int tune_cross_entropy_gradient(struct tune_chunk *chunk, const struct tune_tensor *weights);
int tune_chunk_done(struct tune_chunk *chunk);
struct tune_tensor *tune_loss_dhidden(struct tune_loss *l);

/* Host access, for arithmetic written in a recipe.
 *
 * tune_chunk_each - call loss (row.h) for each label and add the results to the step's loss_sum, in
 * the order of labels. The device's threads share the labels. other: the chunk of a second model
 * (see tune_loss_project), or NULL. -1: the vocabularies differ.
 *
 * tune_chunk_host - the chunk's logits [n,V] in host memory: in place on the CPU, otherwise a copy
 * that tune_chunk_done writes back. Waits for the device. NULL with an error.
 *
 * tune_chunk_add_loss - add loss to the step's loss_sum. */
int tune_chunk_each(struct tune_chunk *chunk, struct tune_chunk *other, tune_row_loss *loss,
                    void *context);
float *tune_chunk_host(struct tune_chunk *chunk);
int tune_chunk_add_loss(struct tune_chunk *chunk, double loss);

/* tune_loss_project - make *chunk2, the same positions with the logits of another model. hidden2 is
 * that model's output for the same batch. other is that model's loss; it needs no training
 * buffers. */
int tune_loss_project(struct tune_loss *other, const struct tune_tensor *hidden2,
                      const struct tune_chunk *chunk, struct tune_chunk *chunk2);

/* tune_loss_forward_backward - the loop over chunks with plain cross entropy. *dhidden is the
 * result of tune_loss_dhidden. */
int tune_loss_forward_backward(struct tune_loss *l, const struct tune_tensor *hidden,
                               const struct tune_batch *batch, struct tune_record *record,
                               struct tune_tensor **dhidden);

/* tune_loss_forward - *loss_sum += sum of -log p over the batch's labels, in nats. Waits for the
 * device. */
int tune_loss_forward(struct tune_loss *l, const struct tune_tensor *hidden,
                      const struct tune_batch *batch, double *loss_sum);

/* tune_loss_log_probs - compute *log_probs [N] F32 on the device: log p of each position's label, 0
 * where there is none. The loss owns it; it is valid until the next call. */
int tune_loss_log_probs(struct tune_loss *l, const struct tune_tensor *hidden,
                        const struct tune_batch *batch, struct tune_tensor *log_probs);

/* For losses of whole rows, such as preference losses.
 *
 * tune_loss_row_log_probs - sums [B] on the host: the sum of log p over each row's labels. Waits
 * for the device.
 *
 * tune_loss_row_weights - *weights [N] F32 on the device: factors[b] at each position of row b. The
 * loss owns it, until the next call of this function or of tune_loss_log_probs.
 *
 * Both: -1 if the batch is packed, since its rows then hold several texts. */
int tune_loss_row_log_probs(struct tune_loss *l, const struct tune_tensor *hidden,
                            const struct tune_batch *batch, double *sums);
int tune_loss_row_weights(struct tune_loss *l, const struct tune_batch *batch,
                          const double *factors, struct tune_tensor *weights);

struct tune_flags;
struct tune_loss *tune_get_loss(const struct tune_flags *flags, struct tune_model *m);

#ifdef __cplusplus
}
#endif
#endif
