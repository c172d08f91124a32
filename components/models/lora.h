/* lora.h - low-rank adapters on a frozen model: LoRA (Hu et al. 2021), rsLoRA (Kalajdzievski 2023),
 * DoRA (Liu et al. 2024).
 *
 *     LoRA:  y = W x + bias + s B A d
 *     DoRA:  y = W x + bias + (g - 1) W d + g s B A d
 *
 * d = dropout(x). s = alpha/r; with rsLoRA s = alpha/sqrt(r). g = magnitude / |W + s B A|, with one
 * norm for each row of the matrix. Backward treats that norm as a constant.
 *
 *     struct tune_model *m = tune_model_load_frozen(folder, dev, TUNE_F32, TUNE_BF16);
 *     struct tune_lora_options o = {.r = 16, .alpha = 32, .targets = "all-linear"};
 *     tune_lora_add(m, &o, 42);
 *     tune_model_reserve(m, 1, 512, TUNE_FOR_TRAINING);      from here on like any model
 *
 * A [r,in], B [out,r] and DoRA's magnitude [out] are rows of the model's parameter table, with
 * `adapter` set. Their names end in "q_proj.lora_A.weight", ".lora_B.weight" or
 * ".lora_magnitude_vector".
 *
 * Adapters that share an input share its dropout mask: q, k and v use the same mask. */
#ifndef TUNE_LORA_H
#define TUNE_LORA_H

#include "models/model.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_lora_options {
    int r;
    double alpha, dropout;
    bool rslora, dora;
    /* "all-linear", or ends of module names: "q_proj,layers.3.mlp.down_proj" */
    const char *targets;
    /* "k_proj=4,layers.0.self_attn.q_proj=32": the first match applies; NULL: none */
    const char *rank_pattern, *alpha_pattern;
    const char *layers;                       /* "0,1,8-15"; NULL: all */
    bool loose; /* ignore names and layers that the model lacks, like PEFT */
};

enum { TUNE_LORA_MAX_RANK = 1 << 14 };
#define TUNE_LORA_MAX_ALPHA 1e9 /* limit of adapter_config.json too */

/* Most positions in the row of tokens that verifies a saved adapter. */
enum { TUNE_LORA_PROOF = 64 };

/* tune_lora_add - freeze the model and add adapters to its table. Call it once, before
 * tune_model_reserve. Options and their strings are copied.
 *
 * A starts uniform in +-1/sqrt(in), as a function of (seed, name). B starts at 0 and the magnitude
 * at |W|, so the model's output does not change.
 *
 * -1 with kind USAGE: a rank out of range, or targets, a pattern or layers that match nothing. The
 * message lists the names that exist. */
int tune_lora_add(struct tune_model *m, const struct tune_lora_options *options, uint64_t seed);

/* tune_model_lora - options of the model's adapters, owned by the model; NULL: no adapters. */
const struct tune_lora_options *tune_model_lora(const struct tune_model *m);

/* tune_lora_module - copy the name of the module that p is the weight matrix of. module has room
 * for a parameter name (96 bytes). false: p takes no adapter. */
bool tune_lora_module(const struct tune_parameter *p, char *module);

/* The settings that options give a module, such as "model.layers.0.self_attn.q_proj".
 *
 * tune_lora_rank - its rank; 0: no adapter.
 * tune_lora_alpha - its alpha.
 * tune_lora_scale - s of a module that has an adapter. */
int tune_lora_rank(const struct tune_lora_options *o, const char *module);
double tune_lora_alpha(const struct tune_lora_options *o, const char *module);
double tune_lora_scale(const struct tune_lora_options *o, const char *module);

/* tune_lora_check - check options without a model: numbers in range, patterns and layers well
 * formed. 0, or -1 with an error of kind USAGE. */
int tune_lora_check(const struct tune_lora_options *o);

#ifdef __cplusplus
}
#endif
#endif
