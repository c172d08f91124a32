/* sums.h - the scalars of a step, on the device: a loop that does not wait for them does not stop the device.
 *
 * One record per step since the last time somebody looked. Kernels add to it and read from it
 * by its address; tune_sums_read brings the finished ones to the host. A foreign loop makes one of
 * room 1 and reads it after each step. */
#ifndef TUNE_SUMS_H
#define TUNE_SUMS_H

#include "core/batch.h"
#include "core/clock.h"
#include "devices/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* On the device. */
struct tune_scalars {
    double loss_sum;       /* -log p summed over the labels, nats */
    double labels;         /* trained tokens */
    double square_sum;     /* of the gradient of loss_sum */
    double grad_norm;      /* of the gradient of the mean loss, before clipping */
    double gradient_scale; /* 1/labels and the clip factor; 0: the step was not finite and changes nothing */
    double not_finite;     /* 1: loss or gradient was NaN or infinite */
    double updates;        /* of the weights up to this step; a step that is not finite is none */
};

/* One of a record's numbers, as an operation's tensor: TUNE_SCALAR(step, loss_sum). */
#define TUNE_SCALAR(step, name) \
    tune_tensor_1d(tune_address_plus(step, (int64_t)offsetof(struct tune_scalars, name)), TUNE_F64, 1)

/* One step as the host sees it. */
struct tune_step_sums {
    struct tune_scalars scalars;
    int64_t rows, tokens, padded_tokens, labels; /* handed to the model: rows, real tokens, positions, trained tokens */
    double lr, epoch; /* epoch: of its last batch */
    struct tune_moment begin, end;
};

struct tune_sums;

/* tune_sums_new - for up to room steps between two reads. */
struct tune_sums *tune_sums_new(struct tune_device *dev, int room);
void tune_sums_free(struct tune_sums *s);

/* tune_sums_bytes - what tune_sums_new takes of the device. */
int64_t tune_sums_bytes(int room);

/* tune_sums_begin - a step begins (tune_model_zero_grad calls it). -1: room steps were not read.
 * tune_sums_count - the batch's rows and tokens belong to the step (the loss calls it).
 * tune_sums_scale - the step's gradient_scale is computed (tune_optimizer_clip calls it).
 * tune_sums_end - the step's update was handed to the device (the optimizer calls it).
 * tune_sums_device - the present step's record, address 0 with an error: no step has begun.
 * tune_sums_scaled - the same, with its gradient_scale; address 0 with an error: nobody has computed it. */
int tune_sums_begin(struct tune_sums *s);
int tune_sums_count(struct tune_sums *s, const struct tune_batch *batch);
void tune_sums_end(struct tune_sums *s, double lr);
void tune_sums_scale(struct tune_sums *s);
tune_address tune_sums_device(struct tune_sums *s);
tune_address tune_sums_scaled(struct tune_sums *s);

/* tune_sums_read - wait for the device; the number of finished steps since the last read, *steps [that many] borrowed
 * until the next begin. -1 with an error. */
int tune_sums_read(struct tune_sums *s, const struct tune_step_sums **steps);

#ifdef __cplusplus
}
#endif
#endif
