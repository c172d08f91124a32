/* generator.h - the decoding loop: batches of prompts go through the model, then a token at a time.
 *
 *     struct tune_generator *g = tune_get_generator(flags, dev, tok, prompts, m, stdout, stderr);
 *     while (tune_prompts_next(prompts, &batch) > 0)
 *         tune_generate(g, &batch, tune_choose_token, NULL);
 *     tune_answers_finish(g->answers);
 *     tune_generator_free(g);
 *
 * Rows of a batch that have ended drop out, so the others need less time. Texts, ends and lines of
 * answers are those of answers.h. */
#ifndef TUNE_GENERATOR_H
#define TUNE_GENERATOR_H

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_answers;
struct tune_cache;
struct tune_device;
struct tune_flags;
struct tune_model;
struct tune_prompt_batch;
struct tune_prompts;
struct tune_token_sampler;
struct tune_tokenizer;

/* The parts of the loop. It owns all but the model and the signal. */
struct tune_generator {
    struct tune_model *model;
    struct tune_cache *cache;        /* on that model */
    struct tune_token_sampler *sampler;
    struct tune_answers *answers;
    int sides;                       /* 2: each prompt is answered twice, to compare */
    struct tune_model *compared;     /* answers then; NULL: the first one without its adapter */
    struct tune_cache *other;        /* on that model */
    const volatile int *stop_signal; /* where the program's handler stores a signal; NULL */
};

/* A token that is to be chosen. */
struct tune_choice {
    struct tune_token_sampler *sampler;
    int slot;          /* of the row in the batch and the sampler */
    int position;      /* of the token in the answer, from 0 */
    int side;          /* 1: the answer to compare with */
    float *logits;     /* [V] of the next token, on the host: change them as you like */
    int64_t V;
    int32_t id;        /* set it to the token */
};

/* tune_choose - called for each token of each row: sets id. 0, or -1 with an error.
 * tune_choose_token - lets the sampler choose. */
typedef int tune_choose(void *context, struct tune_choice *choice);
int tune_choose_token(void *context, struct tune_choice *choice);

/* tune_generate - answer a batch, on every side. A signal ends it. context is passed to choose. -1
 * with an error. */
int tune_generate(struct tune_generator *g, const struct tune_prompt_batch *batch,
                  tune_choose *choose, void *context);

/* tune_get_generator - what the options say: sampling, stops, the model to compare with, where
 * answers go. text: answers; notes: all else. NULL with an error.
 * tune_generator_free - free it and all its parts; NULL is fine. */
struct tune_generator *tune_get_generator(const struct tune_flags *flags, struct tune_device *dev,
                                          struct tune_tokenizer *tok, struct tune_prompts *prompts,
                                          struct tune_model *m, FILE *text, FILE *notes);
void tune_generator_free(struct tune_generator *g);

#ifdef __cplusplus
}
#endif
#endif
