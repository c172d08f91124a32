/* roofline.c - an estimate of tokens/s from FLOPs, bytes and a data sheet. */
#include "profilers/roofline.h"

#include <string.h>

static double part_of(const struct tune_memory_plan *plan, const char *name)
{
    for (int i = 0; i < plan->count; i++)
        if (!strcmp(plan->parts[i].name, name))
            return (double)plan->parts[i].bytes;
    return 0;
}

static double matrix_weights(const struct tune_roofline_run *run)
{
    return tune_model_config_flops(run->config, 0) / 6;
}

double tune_roofline_flops(const struct tune_roofline_run *run, double *model)
{
    double weights = matrix_weights(run), tokens = (double)run->batch * run->length;
    double attention = tune_model_config_flops(run->config, run->length) - 6 * weights;
    double trained = part_of(run->plan, "gradients") / 4; /* gradients are float32 */
    double each = run->adapted ? 4 * weights + 6 * trained : 6 * weights;
    double again = run->checkpointing ? 2 * (weights + (run->adapted ? trained : 0)) + attention / 3 : 0;
    *model = (each + attention) * tokens;
    return *model + again * tokens;
}

double tune_roofline_bytes(const struct tune_roofline_run *run)
{
    const struct tune_memory_plan *plan = run->plan;
    double passes = run->checkpointing ? 3 : 2, decoded = run->nf4 ? 4 * matrix_weights(run) : 0;
    return passes * (part_of(plan, "weights") + decoded) + 6 * part_of(plan, "gradients") +
           2 * (part_of(plan, "moments") + part_of(plan, "averages") + part_of(plan, "activations"));
}

double tune_roofline_speed(const struct tune_roofline_run *run, const struct tune_known_gpu *gpu)
{
    double model, flops = tune_roofline_flops(run, &model);
    if (gpu->tensor_flops <= 0)
        return 0;
    return (double)run->batch * run->length /
           (flops / (TUNE_ROOFLINE_PRODUCTS * gpu->tensor_flops) +
            tune_roofline_bytes(run) / (TUNE_ROOFLINE_TRAFFIC * gpu->bandwidth));
}
