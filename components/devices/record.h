/* record.h - the scalars of a training step, on the device: a loop that does not wait for them does not stop the device.
 *
 * A training loop owns one record. Kernels read and write it at one fixed address. When a step ends, the device copies the
 * record into a ring, and tune_record_read brings the finished steps to the host. A foreign loop makes a record of room 1
 * and reads it after each step.
 *
 *     struct tune_record *record = tune_record_new(dev, 10);      at most 10 steps between two reads
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

/* On the device. begin_step sets all to 0 but those marked "kept". */
struct tune_scalars {
    double loss_sum;       /* the step's loss before its division: -log p summed over the labels, nats, or a recipe's own */
    double labels;         /* trained tokens */
    double divisor;        /* what the gradient of loss_sum is divided by, where a recipe sets it; 0: labels */
    double square_sum;     /* of the gradient of loss_sum */
    double grad_norm;      /* of the divided gradient, before clipping */
    double gradient_scale; /* 1/divisor and the clip factor; 0: the step was not finite and changes nothing */
    double not_finite;     /* 1: loss or gradient was NaN or infinite */
    double chunks;         /* of logits that the loss made */
    double updates;        /* of the weights up to this step; a step that is not finite is none */
    double lr;             /* the update's learning rate */
    double step, pass;     /* steps begun, kept; forward passes of this one: what dropout counts by */
    double begin_s, end_s; /* when the device came to the step's first and last operation; seconds of tune_clock_s */
};

/* One of a record's numbers, as an operation's tensor: TUNE_SCALAR(step, loss_sum). */
#define TUNE_SCALAR(step, name) \
    tune_tensor_1d(tune_address_plus(step, (int64_t)offsetof(struct tune_scalars, name)), TUNE_F64, 1)

/* A finished step as the host sees it. */
struct tune_done_step {
    struct tune_scalars scalars;
    int64_t rows, tokens, padded_tokens, labels; /* handed to the model: rows, real tokens, positions, trained tokens */
    double epoch;                                /* of its last batch */
    double loss;                                 /* loss_sum over the divisor, or over the labels where that is 0 */
    struct tune_moment begin, end;               /* wall_s: the device's; cpu_s: when the host queued the work */
};

struct tune_record;

/* tune_record_new - for up to room steps between two reads. */
struct tune_record *tune_record_new(struct tune_device *dev, int room);
void tune_record_free(struct tune_record *r);

/* tune_record_bytes - what tune_record_new takes of the device. */
int64_t tune_record_bytes(int room);

/* tune_record_begin - a step begins (tune_model_zero_grad calls it). -1: room steps were not read.
 * tune_record_count - the batch's rows and tokens belong to the step (the loss calls it).
 * tune_record_scaled - the step's gradient_scale is computed (tune_optimizer_scale calls it).
 * tune_record_end - the step's update was handed to the device (the optimizer calls it).
 * tune_record_step - the address of the step's struct tune_scalars; 0 with an error: no step has begun.
 * tune_record_update - the same, for an update; 0 with an error also where its gradient_scale is not computed. */
int tune_record_begin(struct tune_record *r);
int tune_record_count(struct tune_record *r, const struct tune_batch *batch);
void tune_record_scaled(struct tune_record *r);
int tune_record_end(struct tune_record *r);
tune_address tune_record_step(struct tune_record *r);
tune_address tune_record_update(struct tune_record *r);

/* tune_record_divisor - the gradients of this step are divided by the sum of what is given here, not by the labels. Once for
 * each micro-batch, after tune_model_zero_grad. */
int tune_record_divisor(struct tune_record *r, double more);

/* tune_record_loss - more is added to the step's loss_sum: the value of a loss that no chunk adds (losses/loss.h). */
int tune_record_loss(struct tune_record *r, double more);

/* tune_record_read - wait for the device; the number of finished steps since the last read, *steps [that many] borrowed
 * until the next begin. -1 with an error. */
int tune_record_read(struct tune_record *r, const struct tune_done_step **steps);

/* tune_record_last - wait for the device; the last step that was finished, whether it was read or not. Those that were not
 * are still to be read. -1 with an error: there is none yet. */
int tune_record_last(struct tune_record *r, struct tune_done_step *step);

#ifdef __cplusplus
}
#endif
#endif
