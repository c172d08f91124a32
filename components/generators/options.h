/* options.h - which prompts are answered, and how the next token is chosen. */
#ifndef TUNE_GENERATORS_OPTIONS_H
#define TUNE_GENERATORS_OPTIONS_H

#include <stdbool.h>

/* The neutral values are 1, 0, 1, 0 and 1, in this order. token_sampler.h has the formulas. */
struct tune_sampling_options {
    double temperature;        /* logits are divided by it; 0: greedy, without the three filters */
    int top_k;                 /* keep that many of the most likely tokens; 0: all */
    double top_p;              /* (0,1]: keep the most likely tokens that have this mass */
    double min_p;              /* [0,1): drop tokens below this share of the largest probability */
    double repetition_penalty; /* above 0; 1: none; above 1: tokens seen become less likely */
};

struct tune_generation_options {
    struct tune_sampling_options sampling;
    const char *prompt;        /* one prompt; "-": the standard input as a whole; NULL: none */
    const char *input;         /* file of rows with prompts; NULL: none */
    const char *output;        /* file for the answers to the rows; NULL: none */
    const char *system;        /* system message of prompts and chats; NULL: none */
    const char *stop;          /* texts that end an answer, with commas between; NULL: none */
    bool chat, compare_base, overwrite;
    const char *compare_model; /* another model that answers, too; NULL: none */
    int max_new_tokens;        /* most tokens of an answer */
    int max_length;            /* most tokens of prompt and answer; 0: max_new_tokens holds */
    int min_new_tokens, min_length;  /* the same for the fewest */
    int no_repeat_ngram_size;  /* this many tokens come together only once; 0: any number */
    const char *suppress_tokens, *begin_suppress_tokens, *forced_bos_token_id, *forced_eos_token_id;
                               /* ids with commas between, or "none"; NULL: what the model says */
    const char *bad_words_ids; /* the same; spaces part the ids of a word */
    int context;               /* most tokens of prompt and answer; 0: the model's context, in a
                                  chat at most 4096 */
    int batch_size;            /* answers at a time */
    int answers;               /* to each prompt; 0 is 1 */
    bool greedy;               /* greedy, whatever generation_config.json says */
    const char *folder;        /* folder for rows.jsonl, in place of output; NULL: none */
};

#endif
