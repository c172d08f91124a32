/* prompt_layout.h - how a prompt is written. For getters. */
#ifndef TUNE_PROMPT_LAYOUT_H
#define TUNE_PROMPT_LAYOUT_H

#include <stdbool.h>

#include "datasets/dataset.h"

struct tune_flags;
struct tune_tokenizer;

/* The layout of prompts. */
struct tune_prompt_layout {
    struct tune_dataset_options options;
    char folder[TUNE_PATH_MAX];        /* of the chat template */
    char *end_token;                   /* the model's own; NULL: none */
    char prompt[TUNE_PATH_MAX], chat[TUNE_PATH_MAX]; /* files of the run's templates */
    char format[32];                   /* of the run's rows; "": there is no run */
    bool conversations;                /* the run's rows were written by a chat template */
};

/* tune_prompt_layout_settle - settle everything but the format of a single prompt. context: most
 * tokens of a prompt. l is zeroed first; free it after an error, too.
 * tune_prompt_layout_free - free l, which came from malloc; NULL is fine.
 * tune_prompt_layout_has_chat - whether its folder has a chat template of its own.
 * tune_prompt_layout_format - the format of a single prompt: "text", "messages", "alpaca",
 * "prompt-template", ... */
int tune_prompt_layout_settle(const struct tune_flags *flags, const struct tune_tokenizer *tok,
                              struct tune_prompt_layout *l, int context);
void tune_prompt_layout_free(struct tune_prompt_layout *l);
bool tune_prompt_layout_has_chat(const struct tune_prompt_layout *l);
const char *tune_prompt_layout_format(const struct tune_prompt_layout *l);

/* tune_prompt_layout_open - the prompt of the options, as a data set of one row.
 * tune_prompt_layout_rows - the rows of the options' input. Both: NULL with an error. */
struct tune_dataset *tune_prompt_layout_open(const struct tune_flags *flags,
                                             struct tune_prompt_layout *l,
                                             struct tune_tokenizer *tok);
struct tune_dataset *tune_prompt_layout_rows(const struct tune_flags *flags,
                                             struct tune_prompt_layout *l,
                                             struct tune_tokenizer *tok);

#endif
