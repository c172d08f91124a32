/* answers.h - answers as they grow: which rows go on, where their text goes, how fast it came.
 *
 *     struct tune_active_rows active;
 *     tune_answers_begin(answers, &batch, 0, &active);
 *     while (active.count > 0) {
 *         ... next[i] = a token for row active.row[i] of the batch ...
 *         tune_answers_add(answers, next, &active);      rows that have ended drop out
 *         ... tune_cache_keep(cache, active.previous, active.count), and on with next ...
 *     }
 *     tune_answers_end(answers);
 *
 * generator.h has that loop. A row ends with a token of the model, a stop text, the number of
 * tokens, a full context or a signal. The text of one row is shown as it comes. Several rows become
 * lines of JSON, in the order of the rows:
 *
 *     {"row": 0, "prompt": "Name a colour.\n", "answer": "Red.", "expected": "Red.",
 *      "exact_match": true, "end": "token", "prompt_tokens": 9, "tokens": 3, "of": "5c..."}
 *
 * row counts from 0. With several answers to a row, answer_index does, too. prompt is the text that
 * the model read. A row without an answer of its own has no expected and no exact_match.
 * exact_match: both answers are the same bytes, without the white space at their ends. end is
 * token, stop, length or context. of is a hash of the prompt, the weights and the options. A file
 * of answers is continued only by a run with the same ones. */
#ifndef TUNE_ANSWERS_H
#define TUNE_ANSWERS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "generators/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_answers;
struct tune_flags;
struct tune_prompt_batch;
struct tune_prompts;
struct tune_tokenizer;

struct tune_answers_options {
    const char *const *stops;    /* [stop_count] texts that end an answer */
    int stop_count;
    const int32_t *ends;         /* [end_count] tokens that end an answer */
    int end_count;
    int max_new_tokens;          /* most tokens of an answer; 0: max_length holds */
    int max_length;              /* most tokens of prompt and answer; 0: max_new_tokens holds */
    int context;                 /* the same, of a batch with its padding */
    const char *file;            /* file of lines of JSON; NULL: none */
    bool lines;                  /* without a file: lines of JSON to text; else the text itself */
    bool overwrite;              /* begin the file anew */
    uint64_t settings;           /* hash of weights and options, for `of` */
    int sides;                   /* 2: prompts are answered twice, the second time by the base */
    const char *names[2];        /* headings of base and tuned answers; borrowed */
    FILE *text, *notes;          /* answers go to text; NULL: nowhere. Speed goes to notes; NULL */
    int width;                   /* columns of the terminal that text is; 0: it is none */
    const volatile int *stop_signal; /* NULL, or where the program's handler stores a signal */
};

/* The rows of the batch whose answers are not finished. */
struct tune_active_rows {
    int count;
    int tokens;            /* tokens that each answer has so far */
    const int *row;        /* [count] their numbers in the batch */
    const int *previous;   /* [count] their indices among the active rows of the step before */
};

/* tune_answers_new - answers to prompts, which must outlive them. A file that is there is
 * continued: the prompts that it answers are skipped (tune_prompts_skip). Options and strings are
 * copied. NULL with an error: a file of another run, or one that another process writes.
 * tune_answers_free - free them; NULL is fine. */
struct tune_answers *tune_answers_new(struct tune_tokenizer *tok, struct tune_prompts *prompts,
                                      const struct tune_answers_options *options);
void tune_answers_free(struct tune_answers *a);

/* tune_answers_begin - begin to answer a batch. side: 0; 1: once more, by the base.
 * tune_answers_add - a token for each active row. It shows text, and moves the tokens of rows
 * that go on to the front of next.
 * tune_answers_end - the batch is done: lines are written, a chat learns its answer. All three: -1
 * with an error, also if text cannot be written. */
int tune_answers_begin(struct tune_answers *a, const struct tune_prompt_batch *batch, int side,
                       struct tune_active_rows *active);
int tune_answers_add(struct tune_answers *a, int32_t *next, struct tune_active_rows *active);
int tune_answers_end(struct tune_answers *a);

/* tune_answers_text - the answer to that row of the batch, *size bytes, on that side; valid until
 * the next batch. Not NUL-terminated.
 * tune_answers_end_of - why it ended: token, stop, length, context or signal.
 * tune_answers_tokens - its tokens, with one that ended it. */
const char *tune_answers_text(const struct tune_answers *a, int row, int side, size_t *size);
const char *tune_answers_end_of(const struct tune_answers *a, int row, int side);
int tune_answers_tokens(const struct tune_answers *a, int row, int side);

/* tune_answers_finish - after the last batch: tell how many rows were answered, how fast, and how
 * many answers are the expected ones. The latter counts lines that were in the file, too.
 * tune_answers_speed - tokens of answers per second so far, over all rows at a time. NaN: none. */
int tune_answers_finish(struct tune_answers *a);
double tune_answers_speed(const struct tune_answers *a);

/* tune_get_answers - answers to prompts as the options say. text: for answers; notes: for all else.
 * It also tells the options that are not the program's own. */
struct tune_answers *tune_get_answers(const struct tune_flags *flags, struct tune_tokenizer *tok,
                                      struct tune_prompts *prompts, FILE *text, FILE *notes);

#ifdef __cplusplus
}
#endif
#endif
