/* generation_config.h - what a model's folder says of generation: sampling, tokens that are ruled
 * out or forced, limits of length, and what ends an answer. For getters. */
#ifndef TUNE_GENERATION_CONFIG_H
#define TUNE_GENERATION_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "generators/options.h"
#include "generators/token_rules.h"

struct tune_flags;
struct tune_tokenizer;

enum { TUNE_CONFIG_ENDS = 16, TUNE_CONFIG_STOPS = 8 };

struct tune_generation_config {
    struct tune_sampling_options sampling; /* greedy unless generation_config.json samples */
    bool said;                             /* the file has sampling values that are not neutral */
    int32_t ends[TUNE_CONFIG_ENDS];        /* [end_count] */
    int end_count;
    struct tune_token_rules rules;         /* with the limits of length; without ends */
    char *stops[TUNE_CONFIG_STOPS];        /* [stop_count] texts that end an answer */
    int stop_count;
    char left_out[512];                    /* keys that are not obeyed, with values; "": none */
};

/* tune_generation_config_read - read a folder. Tokens that end an answer are all of: eos_token_id
 * in generation_config.json and in config.json, eos_token in tokenizer_config.json. Files may be
 * absent. Sampling is that of generation_config.json, with transformers' defaults, if it has
 * do_sample. Without it answers are greedy, and the file's filters wait for a temperature. Keys
 * that change no answer are passed over; all others that are not obeyed are in left_out. Values of
 * max_new_tokens, min_length and the like are those of transformers. -1 with an error: a file that
 * is no JSON, or a value of another type or out of range.
 * tune_generation_config_free - free what reading allocated; the config is then empty.
 * tune_generation_config_end - add a token, unless it is there.
 * tune_generation_config_told - the rules and limits in the file's words, "no_repeat_ngram_size 2,
 * suppress_tokens (8 ids)"; "": none. */
int tune_generation_config_read(struct tune_generation_config *c, const char *folder,
                                const struct tune_tokenizer *tok);
void tune_generation_config_free(struct tune_generation_config *c);
void tune_generation_config_told(const struct tune_generation_config *c, char *text, size_t size);
int tune_generation_config_end(struct tune_generation_config *c, int32_t id);

/* tune_get_generation_config - what the folders of model and adapter say, and the options over it.
 * The rules then have a limit of length, and ends. told [TUNE_CONFIG_TOLD]: what holds of the file;
 * NULL: not wanted. Free c, also after an error. */
enum { TUNE_CONFIG_TOLD = 512 };
int tune_get_generation_config(const struct tune_flags *flags, struct tune_tokenizer *tok,
                               struct tune_generation_config *c, char *told);

/* tune_get_answer_settings - *hash: of all that answers depend on but the prompts: weights,
 * options, and what c says.
 * tune_get_answer_limits - of the same: the most tokens of an answer, and the most of prompt and
 * answer; 0: there is no such limit. */
int tune_get_answer_settings(const struct tune_flags *flags,
                             const struct tune_generation_config *c, uint64_t *hash);
int tune_get_answer_limits(const struct tune_flags *flags, struct tune_tokenizer *tok, int *answer,
                           int *most);

#endif
