/* generation.h - the parts of generation that need a model, by the options of a program. */
#ifndef TUNE_GENERATION_H
#define TUNE_GENERATION_H

#include "generators/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_cache;
struct tune_device;
struct tune_flags;
struct tune_model;
struct tune_prompts;
struct tune_token_sampler;
struct tune_tokenizer;

/* tune_get_generation_model - the model that the options name, frozen, with its adapter, and room
 * for the prompts.
 * tune_get_compared_model - the other model that answers, too.
 * tune_get_compared_flags - *other: flags that name it. It is checked first: it must read the same
 * tokens, and have room for so many. -1 with an error. *other borrows from flags.
 * tune_get_cache - a cache for the largest batch of prompts and their answers.
 * tune_get_token_sampler - a sampler for it. Sampling and rules that are not given are those of the
 * folder's generation_config.json; without one it is greedy. All: NULL with an error. */
struct tune_model *tune_get_generation_model(const struct tune_flags *flags,
                                             struct tune_device *dev,
                                             const struct tune_prompts *prompts);
struct tune_model *tune_get_compared_model(const struct tune_flags *flags, struct tune_device *dev,
                                           const struct tune_tokenizer *tok,
                                           const struct tune_prompts *prompts);
int tune_get_compared_flags(const struct tune_flags *flags, const struct tune_tokenizer *tok,
                            int capacity, struct tune_flags *other);
struct tune_cache *tune_get_cache(const struct tune_flags *flags, struct tune_model *m,
                                  const struct tune_prompts *prompts);
struct tune_token_sampler *tune_get_token_sampler(const struct tune_flags *flags,
                                                  struct tune_tokenizer *tok,
                                                  const struct tune_model *m,
                                                  const struct tune_prompts *prompts);

#ifdef __cplusplus
}
#endif
#endif
