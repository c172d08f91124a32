/* lora.h - low-rank adapters on a frozen model: LoRA (Hu et al. 2021), rsLoRA (Kalajdzievski 2023), DoRA (Liu et al. 2024).
 *
 *     LoRA:  y = W x + bias + s B A d                       d = dropout(x), s = alpha/r, rsLoRA: alpha/sqrt(r)
 *     DoRA:  y = W x + bias + (g - 1) W d + g s B A d       g = magnitude / |W + s B A| by rows, the norm a constant in backward
 *
 *     struct tune_model *m = tune_model_load_frozen("models/SmolLM2-135M", dev, TUNE_F32, TUNE_BF16);
 *     struct tune_lora_options o = {.r = 16, .alpha = 32, .targets = "all-linear"};
 *     tune_lora_add(m, &o, 42);
 *     tune_model_reserve(m, 1, 512, TUNE_FOR_TRAINING);      from here on as any model
 *
 * A [r,in], B [out,r] and DoRA's magnitude [out] are rows of the model's table of parameters (adapter is true):
 * "model.layers.0.self_attn.q_proj.lora_A.weight", ".lora_B.weight", ".lora_magnitude_vector". What a product reads
 * is dropped once for all its adapters: q, k and v share a mask as they share their input. */
#ifndef TUNE_LORA_H
#define TUNE_LORA_H

#include "models/model.h"
#include "models/options.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_LORA_MAX_RANK = 1 << 14 };
#define TUNE_LORA_MAX_ALPHA 1e9 /* what adapter_config.json may say, too: what is trained can be saved */

/* Positions of the row that a saved adapter is proved on, at most. */
enum { TUNE_LORA_PROOF = 64 };

/* tune_lora_add - freeze the model's rows and append those of its adapters: A uniform in +-1/sqrt(in), a function of (seed, name),
 * B 0, magnitude |W|; the model computes what it did. Once, before tune_model_reserve. options are copied, their strings too.
 * -1, kind USAGE: r or a pattern's out of range, targets, a pattern or layers that match nothing (the names there are). */
int tune_lora_add(struct tune_model *m, const struct tune_lora_options *options, uint64_t seed);

/* tune_model_lora - the options of the model's adapters; NULL: it has none. */
const struct tune_lora_options *tune_model_lora(const struct tune_model *m);

/* tune_lora_module - the module whose matrix a row of the base is, into module (as long as a row's name); false: a row that
 * takes no adapter. */
bool tune_lora_module(const struct tune_parameter *p, char *module);

/* What options say of one module ("model.layers.0.self_attn.q_proj"). tune_lora_rank: 0: no adapter there.
 * tune_lora_scale - s, of a module with an adapter. */
int tune_lora_rank(const struct tune_lora_options *o, const char *module);
double tune_lora_alpha(const struct tune_lora_options *o, const char *module);
double tune_lora_scale(const struct tune_lora_options *o, const char *module);

/* tune_lora_check - options by themselves: numbers in range, patterns and layers well formed. -1, kind USAGE. */
int tune_lora_check(const struct tune_lora_options *o);

#ifdef __cplusplus
}
#endif
#endif
