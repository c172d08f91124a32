/* loss.h - the output projection and the loss, for some labelled positions at a time. All logits
 * [N,V] never exist.
 *
 * The labelled positions of a batch are gathered and projected on the vocabulary, a chunk at a
 * time. The loss turns the chunk's logits into their gradient, which goes back through the
 * projection. Masked positions cost nothing. A loss is a sum over labels. Only the optimizer
 * divides, so accumulation cannot change the result.
 *
 *     tune_loss_forward_backward(loss, hidden, &batch, record, &dhidden);   training
 *     tune_loss_forward(loss, hidden, &batch, &sum);                        evaluation
 *
 * A loss of your own is this loop (docs/your-own-loss.md):
 *
 *     while ((more = tune_loss_chunk(loss, hidden, &batch, record, &chunk)) > 0) {
 *         tune_cross_entropy(&chunk, NULL);      logits -> d loss / d logits; or tune_chunk_each
 *         tune_chunk_done(&chunk);               back through the projection
 *     }
 *     tune_model_backward(model, &batch, tune_loss_dhidden(loss));
 *
 * Source: chunks without full logits, as in torchtune's LinearCrossEntropyLoss. The gradient of
 * -log softmax(z)[y] is softmax(z) - onehot(y). Below: N positions of the batch, V vocabulary, C
 * width. */
#ifndef TUNE_LOSS_H
#define TUNE_LOSS_H

#include "losses/row.h"
#include "models/model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_loss;

/* tune_loss_new - a loss for batches of up to the size that m was reserved for. It takes all its
 * memory here. training: with buffers for gradients. m must outlive it.
 * tune_loss_smooth - label smoothing of tune_cross_entropy, in [0,1); 0 at first. The target of a
 * position is 1 - s for its label, and s spread over the vocabulary. Evaluations are not smoothed.
 * Source: Szegedy et al. 2016; as in PyTorch's cross_entropy.
 * tune_loss_free - free it; NULL is fine. */
struct tune_loss *tune_loss_new(struct tune_model *m, bool training);
void tune_loss_smooth(struct tune_loss *l, double smoothing);
void tune_loss_free(struct tune_loss *l);

/* tune_loss_bytes - bytes that tune_loss_new would take on the device for a model of this shape and
 * N positions. */
int64_t tune_loss_bytes(const struct tune_model_config *config, const struct tune_device *dev,
                        enum tune_dtype activations, int64_t N, bool training);

/* Some labelled positions of a batch. Its views belong to the loss until the next chunk, or to the
 * model until its next forward. */
struct tune_chunk {
    /* [n,V] F32, scaled by the config; must end as d loss / d logits */
    struct tune_tensor logits;
    struct tune_tensor rows, labels; /* [n] I32; positions 0..N-1, ascending; their labels */
    const int32_t *host_rows, *host_labels; /* the same on the host */
    tune_address step;               /* scalars of the record's step (devices/record.h) */
    struct tune_loss *loss;
    float *host;                     /* see tune_chunk_host; NULL: not used */
};

/* tune_loss_chunk - make the next chunk of the last batch. 1; 0 after the last chunk; -1 with an
 * error. The first chunk adds the batch to record's step (NULL: none) and sets the gradient of
 * hidden to 0.
 * tune_cross_entropy - add -log p of each label to the step's loss_sum and turn logits into the
 * gradient. weights: [N] F32 on the device, a factor for each position; NULL: 1.
 * tune_cross_entropy_gradient - the same gradient without adding to loss_sum. It serves a loss that
 * is any function of the labels' log-probabilities: weights are minus its derivatives, and its
 * value goes to tune_record_loss.
 * tune_chunk_done - send the gradient back: add to the gradients of the output projection and of
 * hidden.
 * tune_loss_dhidden - the gradient of hidden [N,C], 0 at positions without a label. It belongs to
 * the loss until the next batch; the model's backward overwrites it. */
int tune_loss_chunk(struct tune_loss *l, const struct tune_tensor *hidden,
                    const struct tune_batch *batch, struct tune_record *record,
                    struct tune_chunk *chunk);
int tune_cross_entropy(struct tune_chunk *chunk, const struct tune_tensor *weights);
int tune_cross_entropy_gradient(struct tune_chunk *chunk, const struct tune_tensor *weights);
int tune_chunk_done(struct tune_chunk *chunk);
struct tune_tensor *tune_loss_dhidden(struct tune_loss *l);

/* Arithmetic on the host:
 * tune_chunk_each - call loss (row.h) for each label, in several threads. What it returns is added
 * to loss_sum, in the order of labels. other: the second model's chunk (tune_loss_project), or
 * NULL. -1 with an error: the vocabularies differ.
 * tune_chunk_host - the chunk's logits [n,V] in host memory: in place on the CPU, else a copy that
 * tune_chunk_done brings back. Waits for the device. NULL with an error.
 * tune_chunk_add_loss - add a number to the step's loss_sum. */
int tune_chunk_each(struct tune_chunk *chunk, struct tune_chunk *other, tune_row_loss *loss,
                    void *context);
float *tune_chunk_host(struct tune_chunk *chunk);
int tune_chunk_add_loss(struct tune_chunk *chunk, double loss);

/* tune_loss_project - the logits of the same positions by another model, into *chunk2. hidden2 is
 * that model's output for the same batch. other is that model's loss; it may be made without
 * training. */
int tune_loss_project(struct tune_loss *other, const struct tune_tensor *hidden2,
                      const struct tune_chunk *chunk,
                      struct tune_chunk *chunk2);

/* tune_loss_forward_backward - the loop above with cross entropy. *dhidden is that of
 * tune_loss_dhidden. */
int tune_loss_forward_backward(struct tune_loss *l, const struct tune_tensor *hidden,
                               const struct tune_batch *batch,
                               struct tune_record *record, struct tune_tensor **dhidden);

/* tune_loss_forward - add the sum of -log p over the batch's labels to *loss_sum, nats. Waits for
 * the device. */
int tune_loss_forward(struct tune_loss *l, const struct tune_tensor *hidden,
                      const struct tune_batch *batch,
                      double *loss_sum);

/* tune_loss_log_probs - *log_probs [N] F32 on the device: log p of the label at each position, 0
 * where there is none. It belongs to the loss until the next call. */
int tune_loss_log_probs(struct tune_loss *l, const struct tune_tensor *hidden,
                        const struct tune_batch *batch,
                        struct tune_tensor *log_probs);

/* tune_loss_log_probs_host - the same on the host: [N], valid until the next call of any function
 * of this loss. Waits for the device. NULL with an error. */
const float *tune_loss_log_probs_host(struct tune_loss *l, const struct tune_tensor *hidden,
                                      const struct tune_batch *batch);

/* tune_loss_weights - *weights [N] on the device for tune_cross_entropy: factors [B,T], a number
 * for each position. Packed batches go, too. Valid until the next call of this, of
 * tune_loss_row_weights or of tune_loss_log_probs. */
int tune_loss_weights(struct tune_loss *l, const struct tune_batch *batch, const float *factors,
                      struct tune_tensor *weights);

/* Losses of whole rows, such as preferences, need these. -1 with an error if the batch is packed.
 * tune_loss_row_log_probs - sums [B] on the host: the sum of log p over each row's labels. Waits
 * for the device.
 * tune_loss_row_weights - *weights [N] on the device: factors[b] at each position of row b. Valid
 * until the next call of this or of tune_loss_log_probs.
 * tune_get_loss - the loss of a training run. */
int tune_loss_row_log_probs(struct tune_loss *l, const struct tune_tensor *hidden,
                            const struct tune_batch *batch,
                            double *sums);
int tune_loss_row_weights(struct tune_loss *l, const struct tune_batch *batch,
                          const double *factors,
                          struct tune_tensor *weights);

struct tune_flags;
struct tune_loss *tune_get_loss(const struct tune_flags *flags, struct tune_model *m);

#ifdef __cplusplus
}
#endif
#endif
