/* roofline.h - how fast a GPU that is not here would train: an estimate from its data sheet.
 *
 * A step of one micro-batch takes the time of its products and the time of its traffic, one after
 * the other:
 *
 *     seconds = FLOPs / (0.5 x tensor FLOP/s) + bytes / (0.8 x bandwidth)
 *
 * Both shares are assumptions. No GPU has been measured. docs/memory.md says where they come from.
 *
 * FLOPs: 6 for each trained weight of a matrix and token, 4 for a frozen one, and the attention's
 * products. That is model_flops_per_second of a report. Activation checkpointing adds another
 * forward: 2 for each weight, and a third of the attention's.
 *
 * bytes: the weights once in each pass: forward, backward, and forward again with checkpointing. A
 * weight of 4 bits is written and read as bfloat16 besides. Gradients count six times: they are
 * zeroed, added to and read, and the optimizer reads and writes as many weights. Moments, averages
 * and activations count twice. Sizes are those of the memory plan. Muon's own products do not
 * count. */
#ifndef TUNE_PROFILERS_ROOFLINE_H
#define TUNE_PROFILERS_ROOFLINE_H

#include "devices/known_gpus.h"
#include "models/config.h"
#include "profilers/memory_plan.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_ROOFLINE_PRODUCTS 0.5 /* assumed share of the tensor cores' FLOP/s */
#define TUNE_ROOFLINE_TRAFFIC 0.8  /* assumed share of the bandwidth */

/* The run whose speed is estimated. */
struct tune_roofline_run {
    const struct tune_model_config *config;
    const struct tune_memory_plan *plan; /* of the same run */
    int batch, length;                   /* of a micro-batch, which is a step */
    bool adapted, nf4, checkpointing;
};

/* tune_roofline_flops - FLOPs of the step; *model: those without what is computed again.
 * tune_roofline_bytes - bytes that the step moves.
 * tune_roofline_speed - tokens/s, all positions of the batch. 0: the GPU has no such products. */
double tune_roofline_flops(const struct tune_roofline_run *run, double *model);
double tune_roofline_bytes(const struct tune_roofline_run *run);
double tune_roofline_speed(const struct tune_roofline_run *run, const struct tune_known_gpu *gpu);

#ifdef __cplusplus
}
#endif
#endif
