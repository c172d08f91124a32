/* loss.h - cross entropy fused with the output projection: [N,V] logits never exist.
 *
 * Labelled positions are gathered, projected, and turned into gradients a chunk at a time;
 * masked positions cost nothing here. What is summed is -log p over the labels; nobody
 * divides before the optimizer, so micro-batches and accumulation cannot change the result.
 *
 *     tune_loss_forward_backward(loss, hidden, &batch, record, &dhidden);     training
 *     tune_loss_forward(loss, hidden, &batch, &sum);                        evaluation
 *
 * Source of the chunking: no full logits, as in torchtune's LinearCrossEntropyLoss; the
 * gradient of -log softmax(z)[y] is softmax(z) - onehot(y). */
#ifndef TUNE_LOSS_H
#define TUNE_LOSS_H

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

/* tune_loss_forward_backward - add the batch's loss and labels to the record's step and the output projection's gradient
 * to the model's; *dhidden [N,C] is set to the gradient of the loss sum (0 where there is no label), the loss's until the next
 * call; the model's backward writes over it. record NULL: none is kept. -1: the batch is not the one last
 * put through the model, hidden is not of it, record has no step that began. */
int tune_loss_forward_backward(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                               struct tune_record *record, struct tune_tensor **dhidden);

/* tune_loss_forward - *loss_sum += sum of -log p over the batch's labels, nats; waits for the device. */
int tune_loss_forward(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                      double *loss_sum);

/* tune_loss_log_probs - log p of each label, in the order of positions, to host memory [batch->label_count]. */
int tune_loss_log_probs(struct tune_loss *l, const struct tune_tensor *hidden, const struct tune_batch *batch,
                        float *log_probs);

struct tune_flags;
struct tune_loss *tune_get_loss(const struct tune_flags *flags, struct tune_model *m);

#ifdef __cplusplus
}
#endif
#endif
