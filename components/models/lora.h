/* lora.h - low-rank adapters on a frozen model: LoRA (Hu et al. 2021), rsLoRA (Kalajdzievski 2023),
 * DoRA (Liu et al. 2024).
 *
 *     LoRA:  y = W x + bias + s B A d      d = dropout(x), s = alpha/r; rsLoRA: s = alpha/sqrt(r)
 *     DoRA:  y = W x + bias + (g - 1) W d + g s B A d
 *            g = magnitude / |W + s B A|, per row; backward takes the norm as a constant
 *
 *     struct tune_model *m = tune_model_load_frozen("models/SmolLM2-135M", dev, TUNE_F32,
 *                                                   TUNE_BF16);
 *     struct tune_lora_options o = {.r = 16, .alpha = 32, .targets = "all-linear"};
 *     tune_lora_add(m, &o, 42);
 *     tune_model_reserve(m, 1, 512, TUNE_FOR_TRAINING);      from here on like any model
 *
 * A [r,in], B [out,r] and DoRA's magnitude [out] are rows of the model's parameter table, with
 * adapter true: "model.layers.0.self_attn.q_proj.lora_A.weight", ".lora_B.weight",
 * ".lora_magnitude_vector". Adapters with the same input share its dropout mask: q, k and v do, and
 * gate and up.
 *
 * modules_to_save trains the embedding or the output projection whole, as in PEFT. Each has a copy
 * in F32 among the adapters' rows, with the name that it has in the base. The base keeps its own.
 * In a model with tied weights the two are then no longer tied. */
#ifndef TUNE_LORA_H
#define TUNE_LORA_H

#include "models/model.h"
#include "models/options.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_LORA_MAX_RANK = 1 << 14 };
#define TUNE_LORA_MAX_ALPHA 1e9 /* the limit of adapter_config.json */

/* tune_lora_add - freeze the model and append its adapters' rows. A is uniform in +-1/sqrt(in), a
 * function of (seed, name). B is 0 and the magnitude |W|, so the model computes what it did. Call
 * it once, before tune_model_reserve. Options and their strings are copied. -1 with kind USAGE: a
 * rank out of range, or targets, a pattern or layers that match nothing. The error lists the names
 * there are. */
int tune_lora_add(struct tune_model *m, const struct tune_lora_options *options, uint64_t seed);

/* tune_model_lora - options of the model's adapters, owned by the model; NULL: no adapters. */
const struct tune_lora_options *tune_model_lora(const struct tune_model *m);

/* tune_lora_module - the name of the module that a row of the base belongs to, into module (as long
 * as a row's name). false: the row takes no adapter. */
bool tune_lora_module(const struct tune_parameter *p, char *module);

/* tune_lora_saved - the name of the i-th module that is trained whole: "model.embed_tokens",
 * "lm_head". NULL: there are no more. */
const char *tune_lora_saved(const struct tune_lora_options *o, int i);

/* tune_lora_low_rank - the name of the i-th of the same modules that has a low-rank adapter. Such
 * adapters are read and merged (adapters/), and not trained. tune_lora_add refuses them. */
const char *tune_lora_low_rank(const struct tune_lora_options *o, int i);

/* tune_lora_is_expression - whether targets are a regular expression: it has signs that no name
 * has. It fits whole names, as re.fullmatch in PEFT (core/regular.h).
 * tune_lora_expression_check - 0, or -1 with an error: it cannot be read, or takes too long.
 * tune_lora_piece - bytes of a list's first entry: up to a comma that is not within brackets. */
bool tune_lora_is_expression(const char *targets);
int tune_lora_expression_check(const char *expression);
size_t tune_lora_piece(const char *list);

/* tune_lora_rank - the rank of a module such as "model.layers.0.self_attn.q_proj" or "lm_head"; 0:
 * no adapter. A module that is trained whole has none.
 * tune_lora_alpha - its alpha.
 * tune_lora_scale - its s. */
int tune_lora_rank(const struct tune_lora_options *o, const char *module);
double tune_lora_alpha(const struct tune_lora_options *o, const char *module);
double tune_lora_scale(const struct tune_lora_options *o, const char *module);

/* tune_lora_check - check options without a model: numbers in range, patterns and layers well
 * formed. -1 with kind USAGE. */
int tune_lora_check(const struct tune_lora_options *o);

#ifdef __cplusplus
}
#endif
#endif
