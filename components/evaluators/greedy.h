/* greedy.h - what a model answers to prompts while it trains, greedily. Private to this folder.
 *
 * Answers are greedy, so they change only with the weights. The rules and stop texts of the model's
 * generation_config.json hold, and its repetition penalty. No random draws of the run are used. */
#ifndef TUNE_GREEDY_H
#define TUNE_GREEDY_H

#include <stdint.h>

struct tune_dataset;
struct tune_flags;
struct tune_generator;
struct tune_logger;
struct tune_model;
struct tune_prompt_batch;
struct tune_prompts;
struct tune_tokenizer;

/* Prompts, and what answers them. */
struct tune_greedy {
    struct tune_prompts *prompts;
    struct tune_generator *generator;
    const char *what;    /* for lines that say how far it is: "preview" */
    int tokens;          /* most tokens of an answer */
    char left_out[512];  /* keys of generation_config.json that are not obeyed */
    struct tune_logger *log; /* of the answers at hand; NULL: no lines */
    int64_t step, answered;  /* of them: the run's step; prompts that are answered */
    double said_s;           /* when its last line was printed */
};

/* tune_greedy_row - called for each row that was answered: row b of the batch, whose answer is in
 * g->generator->answers. 0, or -1 with an error. */
typedef int tune_greedy_row(void *context, struct tune_greedy *g,
                            const struct tune_prompt_batch *batch, int b);

/* tune_get_greedy - m answers prompts. data: the rows that are trained on; their answers may end
 * with a token of their own. g owns prompts, also after an error. what is borrowed. -1 with an
 * error: generation_config.json cannot be read, or no memory.
 * tune_greedy_free - free its parts; a zeroed one is fine.
 * tune_greedy_answer - answer all prompts. A line says how far it is where ten seconds pass without
 * one. 1: a signal left out the rest. -1 with an error. */
int tune_get_greedy(struct tune_greedy *g, const struct tune_flags *flags, struct tune_model *m,
                    struct tune_dataset *data, struct tune_tokenizer *tok,
                    struct tune_prompts *prompts, int tokens, const char *what);
void tune_greedy_free(struct tune_greedy *g);
int tune_greedy_answer(struct tune_greedy *g, struct tune_logger *log, int64_t step,
                       tune_greedy_row *each, void *context);

#endif
