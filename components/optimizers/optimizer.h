/* optimizer.h - AdamW, SGD and Muon on the model's flat gradient buffer, with clipping by the
 * global norm.
 *
 * Gradients are those of the loss sum. The update reads 1/labels and the clip factor as one number
 * on the device, so nothing waits for them. Weight decay applies to matrices only (no norm, no
 * bias), or to all. A parameter's row may set its own decay, and a factor on the learning rate.
 * Each step reads the rows anew, so a recipe may change them in its loop:
 *
 *     struct tune_parameters *table = tune_model_parameters(m);
 *     tune_parameters_find(table, "model.embed_tokens.weight")->lr_scale = 0.1;
 *     struct tune_optimizer *opt = tune_optimizer_new(m, &options);
 *
 *     tune_optimizer_scale(opt, 1.0, record);
 *     tune_optimizer_step(opt, lr, record); */
#ifndef TUNE_OPTIMIZER_H
#define TUNE_OPTIMIZER_H

#include "models/model.h"
#include "optimizers/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_optimizer;
struct tune_flags;

/* tune_optimizer_new - an optimizer with zeroed moments for everything trainable. Allocates the
 * model's gradients if there are none. m must outlive it, and can have only one.
 * tune_optimizer_free - free it and the moments; NULL is fine. */
struct tune_optimizer *tune_optimizer_new(struct tune_model *m,
                                          const struct tune_optimizer_options *options);
void tune_optimizer_free(struct tune_optimizer *opt);

/* tune_optimizer_bytes - bytes that such an optimizer takes on the device, for gradients of that
 * many bytes. AdamW and Muon keep two moments, SGD with momentum one. muon: bytes of Muon's work
 * (struct tune_model_bytes). Averages take as much as the gradients, beside that. */
int64_t tune_optimizer_bytes(const struct tune_optimizer_options *options, int64_t gradients,
                             int64_t muon);

/* tune_optimizer_scale - compute the gradient norm of the mean loss, and the factor that brings it
 * down to clip_norm (0: no clipping). Call it before every step, also without clipping.
 * tune_optimizer_step - update the weights at learning rate lr, then their averages (options.ema),
 * and end the step's record. A step whose loss or gradient is not finite changes nothing.
 * Both read the table of parameters: lr_scale, weight_decay and trainable hold for this step. Rows
 * that are not trainable now keep weight and moments, and do not count for the norm; so set
 * trainable before tune_optimizer_scale. AdamW's t counts all steps, also those. -1 with an error:
 * record has no step that tune_model_zero_grad began, or tune_optimizer_scale was not called. Or a
 * row was frozen when the optimizer was made, so it has no gradient, and is trainable now. Or lr,
 * lr_scale or weight_decay is no such number. */
int tune_optimizer_scale(struct tune_optimizer *opt, double clip_norm, struct tune_record *record);
int tune_optimizer_step(struct tune_optimizer *opt, double lr, struct tune_record *record);

/* tune_optimizer_steps - updates so far: the t of AdamW's bias correction. Waits for the device. -1
 * with an error.
 * tune_optimizer_set_steps - set that number, in a resumed run. The moments themselves are the
 * model's TUNE_MOMENT_1 (SGD's momentum too) and TUNE_MOMENT_2: see tune_model_read and
 * tune_model_write. */
int64_t tune_optimizer_steps(const struct tune_optimizer *opt);
int tune_optimizer_set_steps(struct tune_optimizer *opt, int64_t steps);

/* tune_get_optimizer - the optimizer that the options describe.
 * tune_get_optimizer_options - the options that it passes to tune_optimizer_new. */
struct tune_optimizer_options tune_get_optimizer_options(const struct tune_flags *flags);
struct tune_optimizer *tune_get_optimizer(const struct tune_flags *flags, struct tune_model *m);

#ifdef __cplusplus
}
#endif
#endif
