/* record.h - the scalars of a training step, kept on the device, so that the loop need not wait for
 * them.
 *
 * A training loop owns one record. Kernels read and write it at one fixed address. When a step
 * ends, the device copies the record into a ring. tune_record_read brings the finished steps to the
 * host. A program of your own makes a record with capacity 1 and reads it after each step.
 *
 *     struct tune_record *record = tune_record_new(dev, 10);   at most 10 steps between two reads
 *     tune_model_zero_grad(m, record); ... tune_optimizer_step(opt, lr, record);
 *     int n = tune_record_read(record, &steps);                   waits for the device */
#ifndef TUNE_RECORD_H
#define TUNE_RECORD_H

#include <stddef.h>

#include "core/batch.h"
#include "core/clock.h"
#include "devices/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The scalars on the device. begin_step sets all but `step` to 0. */
struct tune_scalars {
    /* loss of the step before division: sum of -log p over the labels, nats, or a recipe's own */
    double loss_sum;
    double labels;         /* number of trained tokens */
    double divisor;        /* divisor of the gradients where a recipe sets it; 0: labels */
    double square_sum;     /* sum of squares of the undivided gradient */
    double grad_norm;      /* norm of the divided gradient, before clipping */
    double gradient_scale; /* clip factor / divisor; 0: the step was not finite, nothing changes */
    double not_finite;     /* 1: loss or gradient was NaN or infinite */
    double chunks;         /* chunks of logits that the loss made */
    double updates;        /* weight updates so far; a step that is not finite does not count */
    double lr;             /* learning rate of the update */
    double step, pass;     /* steps begun; forward passes of this step. Dropout counts by both */
    double begin_s, end_s; /* device time of the step's first and last operation, as tune_clock_s */
};

/* One scalar of the record as a tensor for an operation: TUNE_SCALAR(step, loss_sum). */
#define TUNE_SCALAR(step, name) \
    tune_tensor_1d(tune_address_plus(step, (int64_t)offsetof(struct tune_scalars, name)), \
                   TUNE_F64, 1)

/* A finished step, on the host. */
struct tune_done_step {
    struct tune_scalars scalars;
    /* data-set rows; real tokens; positions; trained tokens */
    int64_t rows, tokens, padded_tokens, labels;
    double epoch;                                /* at its last batch */
    /* loss_sum / divisor, or / labels where divisor is 0 */
    double loss;
    /* wall_s: device time; cpu_s: when the host queued the work */
    struct tune_moment begin, end;
};

struct tune_record;

/* tune_record_new - a record that holds up to `capacity` steps between two reads.
 * tune_record_free - free it; NULL is fine. */
struct tune_record *tune_record_new(struct tune_device *dev, int capacity);
void tune_record_free(struct tune_record *r);

/* tune_record_bytes - bytes that tune_record_new takes on the device. */
int64_t tune_record_bytes(int capacity);

/* The model, the loss and the optimizer call these.
 * tune_record_begin - begin a step. -1: that many steps have not been read.
 * tune_record_count - add the batch's rows and tokens to the step.
 * tune_record_counts - the counts of the step at hand; NULL with an error: no step has begun.
 * tune_record_scaled - note that the step's gradient_scale is computed.
 * tune_record_end - end the step; its update is queued.
 * tune_record_step - address of the step's struct tune_scalars; 0 with an error: no step has begun.
 * tune_record_update - the same address for an update; 0 with an error also if gradient_scale is
 * not computed. */
int tune_record_begin(struct tune_record *r);
int tune_record_count(struct tune_record *r, const struct tune_batch *batch);
struct tune_done_step *tune_record_counts(struct tune_record *r);
void tune_record_scaled(struct tune_record *r);
int tune_record_end(struct tune_record *r);
tune_address tune_record_step(struct tune_record *r);
tune_address tune_record_update(struct tune_record *r);

/* tune_record_divisor - divide this step's gradients by the sum of the numbers given here, not by
 * its labels. Call it for each micro-batch, after tune_model_zero_grad. */
int tune_record_divisor(struct tune_record *r, double more);

/* tune_record_loss - add a number to the step's loss_sum, for a loss that no chunk adds
 * (losses/loss.h). */
int tune_record_loss(struct tune_record *r, double more);

/* tune_record_read - wait for the device. Returns the number of steps finished since the last read.
 * *steps points to them until the next begin. -1 with an error. */
int tune_record_read(struct tune_record *r, const struct tune_done_step **steps);

/* tune_record_last - wait for the device and copy the last finished step, whether it was read or
 * not. It does not count as read. -1 with an error: there is none yet. */
int tune_record_last(struct tune_record *r, struct tune_done_step *step);

#ifdef __cplusplus
}
#endif
#endif
