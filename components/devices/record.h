/* record.h - the scalars of a training step (loss, gradient norm, ...), kept on the device. The
 * host does not wait for them, so the device never stops.
 *
 * A training loop owns one record. Kernels read and write it at one fixed address. When a step
 * ends, the device copies the scalars into a ring buffer. tune_record_read copies finished steps to
 * the host. A training loop written by others makes a record of room 1 and reads it after each
 * step.
 *
 *     struct tune_record *record = tune_record_new(dev, 10);      at most 10 steps between reads
 *     tune_model_zero_grad(m, record); ... tune_optimizer_step(opt, lr, record);
 *     int n = tune_record_read(record, &steps);                   waits */
#ifndef TUNE_RECORD_H
#define TUNE_RECORD_H

#include <stddef.h>

#include "core/batch.h"
#include "core/clock.h"
#include "devices/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The scalars on the device. begin_step sets all to 0 except those marked "kept". */
struct tune_scalars {
    /* loss before division: -log p summed over labels, nats, or the recipe's own */
    double loss_sum;
    double labels;         /* trained tokens */
    double divisor;        /* divides the gradient of loss_sum, if a recipe sets it; 0: labels */
    double square_sum;     /* sum of squares of the gradient of loss_sum */
    double grad_norm;      /* norm of the divided gradient, before clipping */
    double gradient_scale; /* 1/divisor times the clip factor; 0: step not finite, no update */
    double not_finite;     /* 1: the loss or the gradient was NaN or infinite */
    double chunks;         /* chunks of logits that the loss computed */
    double updates;        /* weight updates so far (AdamW's t); the optimizer keeps the count */
    double lr;             /* learning rate of the update */
    double step, pass;     /* steps begun (kept); forward passes of this step. Dropout uses both. */
    /* time of the step's first and last operation, seconds of tune_clock_s */
    double begin_s, end_s;
};

/* One scalar of a record as an operation's tensor, for example TUNE_SCALAR(step, loss_sum). */
#define TUNE_SCALAR(step, name) \
    tune_tensor_1d(tune_address_plus(step, (int64_t)offsetof(struct tune_scalars, name)), \
                   TUNE_F64, 1)

/* A finished step on the host. */
struct tune_done_step {
    struct tune_scalars scalars;
    /* sums over the step's batches: rows, real tokens, positions with padding, trained tokens */
    int64_t rows, tokens, padded_tokens, labels;
    double epoch;                                /* epoch of the last batch */
    double loss; /* loss_sum / divisor, or / labels if divisor is 0 */
    struct tune_moment begin, end; /* wall_s: device time; cpu_s: when the host queued the work */
};

struct tune_record;

/* tune_record_new - make a record with room for `room` steps between two reads. NULL with an error:
 * no memory. The caller frees it. */
struct tune_record *tune_record_new(struct tune_device *dev, int room);
void tune_record_free(struct tune_record *r);

/* tune_record_bytes - device memory that tune_record_new allocates, in bytes. */
int64_t tune_record_bytes(int room);

/* tune_record_begin - begin a step; tune_model_zero_grad calls it. -1: `room` steps are unread.
 * tune_record_count - add the batch's rows and tokens to the step; the loss calls it.
 * tune_record_scaled - note that gradient_scale is computed; tune_optimizer_scale calls it.
 * tune_record_end - end the step after its update was queued; the optimizer calls it.
 * tune_record_step - the address of the step's struct tune_scalars. 0 with an error: no step has
 * begun.
 * tune_record_update - the same, for an update. 0 with an error also if gradient_scale is not
 * computed. */
int tune_record_begin(struct tune_record *r);
int tune_record_count(struct tune_record *r, const struct tune_batch *batch);
void tune_record_scaled(struct tune_record *r);
int tune_record_end(struct tune_record *r);
tune_address tune_record_step(struct tune_record *r);
tune_address tune_record_update(struct tune_record *r);

/* tune_record_divisor - add `more` to the step's divisor. The step's gradients are then divided by
 * that sum, not by the labels. Call it once for each micro-batch, after tune_model_zero_grad. */
int tune_record_divisor(struct tune_record *r, double more);

/* tune_record_loss - add `more` to the step's loss_sum, for a loss that is not computed in chunks
 * (losses/loss.h). */
int tune_record_loss(struct tune_record *r, double more);

/* tune_record_read - wait for the device and return the number of steps finished since the last
 * read. *steps [that many] belongs to the record and is valid until the next tune_record_begin. -1
 * with an error. */
int tune_record_read(struct tune_record *r, const struct tune_done_step **steps);

/* tune_record_last - wait for the device and copy the last finished step, read or unread. It does
 * not count as a read. -1 with an error: no step has finished. */
int tune_record_last(struct tune_record *r, struct tune_done_step *step);

#ifdef __cplusplus
}
#endif
#endif
