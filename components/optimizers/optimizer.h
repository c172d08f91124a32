/* optimizer.h - AdamW and SGD over the model's flat gradient buffer; clipping by one global norm.
 *
 * Gradients arrive as those of the loss sum; 1/labels and the clip factor are one number on
 * the device that the update reads, so nothing waits for them. Moments lie at the gradients'
 * offsets. What decays is part of the result: matrices only (no norm, no bias), or all. A parameter's row may say its own decay
 * and a factor on the learning rate:
 *
 *     tune_parameters_find(tune_model_parameters(m), "model.embed_tokens.weight")->lr_scale = 0.1;
 *     struct tune_optimizer *opt = tune_optimizer_new(m, &options);
 *
 *     tune_optimizer_scale(opt, 1.0, record);
 *     tune_optimizer_step(opt, lr, record);
 */
#ifndef TUNE_OPTIMIZER_H
#define TUNE_OPTIMIZER_H

#include "models/model.h"
#include "optimizers/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_optimizer;
struct tune_flags;

/* tune_optimizer_new - moments, zero, for what is trainable now; makes the model's gradients if there are none yet.
 * m is borrowed until free, and takes no second optimizer. */
struct tune_optimizer *tune_optimizer_new(struct tune_model *m, const struct tune_optimizer_options *options);
void tune_optimizer_free(struct tune_optimizer *opt);

/* tune_optimizer_bytes - device memory such an optimizer takes for gradients of so many bytes: AdamW keeps two moments of that
 * size, SGD one with momentum. */
int64_t tune_optimizer_bytes(const struct tune_optimizer_options *options, int64_t gradients);

/* tune_optimizer_scale - the norm of the mean loss's gradient over all parameters into the record's step, and the factor that
 * brings it down to clip_norm (0: measured, not clipped). Before every step, also without clipping.
 * tune_optimizer_step - one update at learning rate lr; a step whose loss or gradient is not finite changes nothing. Ends the
 * step's record. Both -1: record has no step that tune_model_zero_grad began; the second also
 * where the first was not called. */
int tune_optimizer_scale(struct tune_optimizer *opt, double clip_norm, struct tune_record *record);
int tune_optimizer_step(struct tune_optimizer *opt, double lr, struct tune_record *record);

/* tune_optimizer_steps - updates so far (the t of AdamW's bias correction; a step that was not finite is none); waits for the
 * device. -1 with an error. tune_optimizer_set_steps - go on from there. The moments are the model's TUNE_MOMENT_1 (SGD's
 * momentum, too) and TUNE_MOMENT_2: tune_model_read and tune_model_write. */
int64_t tune_optimizer_steps(const struct tune_optimizer *opt);
int tune_optimizer_set_steps(struct tune_optimizer *opt, int64_t steps);

/* tune_get_optimizer - by --optimizer, --beta1, --beta2, --eps, --weight-decay, --momentum, --decay. */
struct tune_optimizer *tune_get_optimizer(const struct tune_flags *flags, struct tune_model *m);

#ifdef __cplusplus
}
#endif
#endif
