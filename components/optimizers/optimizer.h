/* optimizer.h - AdamW and SGD over the model's flat gradient buffer, with clipping by global norm.
 *
 * The gradients are those of the summed loss. The device computes 1/labels times the clip factor,
 * and the update reads it there, so the host does not wait. Moments have the same offsets as
 * gradients. Weight decay applies to matrices only (no norms, no biases) or to all parameters. A
 * parameter's row may set its own weight decay and a factor on the learning rate:
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

#ifdef __cplusplus
extern "C" {
#endif

struct tune_optimizer;
struct tune_flags;

enum tune_optimizer_kind { TUNE_ADAMW, TUNE_SGD };

struct tune_optimizer_options {
    enum tune_optimizer_kind kind;
    double beta1, beta2, eps, weight_decay; /* AdamW; SGD uses weight_decay only */
    double momentum;                        /* SGD */
    bool decay_all;                         /* false: matrices only */
};

/* tune_optimizer_new - allocate zeroed moments for all trainable parameters, and the model's
 * gradients if there are none. m must outlive it. A model takes one optimizer at a time. NULL with
 * an error. */
struct tune_optimizer *tune_optimizer_new(struct tune_model *m,
                                          const struct tune_optimizer_options *options);
void tune_optimizer_free(struct tune_optimizer *opt);

/* tune_optimizer_bytes - device memory of the moments, in bytes, for gradients of the given bytes.
 * AdamW keeps two moments of that size; SGD with momentum keeps one. */
int64_t tune_optimizer_bytes(const struct tune_optimizer_options *options, int64_t gradients);

/* tune_optimizer_scale - compute the norm of the mean loss's gradient over all parameters, and the
 * factor that clips it to clip_norm. clip_norm 0: no clipping. Call it before every
 * tune_optimizer_step.
 *
 * tune_optimizer_step - update the weights at learning rate lr, and end the record's step. A step
 * with a non-finite loss or gradient changes nothing.
 *
 * Both: -1 if tune_model_zero_grad began no step in record. The second also if tune_optimizer_scale
 * was not called. */
int tune_optimizer_scale(struct tune_optimizer *opt, double clip_norm, struct tune_record *record);
int tune_optimizer_step(struct tune_optimizer *opt, double lr, struct tune_record *record);

/* tune_optimizer_steps - updates so far: the t of AdamW's bias correction. Steps that were not
 * finite do not count. Waits for the device. -1 with an error.
 *
 * tune_optimizer_set_steps - set that count, to resume. To restore the moments, use
 * tune_model_write with TUNE_MOMENT_1 (AdamW's first moment, SGD's momentum) and TUNE_MOMENT_2. */
int64_t tune_optimizer_steps(const struct tune_optimizer *opt);
int tune_optimizer_set_steps(struct tune_optimizer *opt, int64_t steps);

/* tune_get_optimizer - the optimizer of --optimizer, --beta1, --beta2, --eps, --weight-decay,
 * --momentum and --decay.
 *
 * tune_get_optimizer_options - the options it passes to tune_optimizer_new. */
struct tune_optimizer_options tune_get_optimizer_options(const struct tune_flags *flags);
struct tune_optimizer *tune_get_optimizer(const struct tune_flags *flags, struct tune_model *m);

#ifdef __cplusplus
}
#endif
#endif
