/* generation_config.h - what a model's folder says of generation: sampling, and the tokens that end
 * an answer. For getters. */
#ifndef TUNE_GENERATION_CONFIG_H
#define TUNE_GENERATION_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "generators/options.h"

struct tune_tokenizer;

enum { TUNE_CONFIG_ENDS = 16 };

struct tune_generation_config {
    struct tune_sampling_options sampling; /* greedy unless generation_config.json samples */
    bool said;                             /* the file has sampling values that are not neutral */
    int32_t ends[TUNE_CONFIG_ENDS];        /* [end_count] */
    int end_count;
};

/* tune_generation_config_read - read a folder. Tokens that end an answer are all of: eos_token_id
 * in generation_config.json and in config.json, eos_token in tokenizer_config.json. Files may be
 * absent. Sampling is that of generation_config.json, with transformers' defaults, if it has
 * do_sample. Without it answers are greedy, and the file's filters wait for a temperature. -1 with
 * an error: a file that is no JSON, or a value of another type or out of range.
 * tune_generation_config_end - add a token, unless it is there. */
int tune_generation_config_read(struct tune_generation_config *c, const char *folder,
                                const struct tune_tokenizer *tok);
int tune_generation_config_end(struct tune_generation_config *c, int32_t id);

#endif
