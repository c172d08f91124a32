/* answers_parts.h - struct tune_answers, shared by answers.c and answers_file.c. Private to this
 * folder. */
#ifndef TUNE_ANSWERS_PARTS_H
#define TUNE_ANSWERS_PARTS_H

#include "generators/answers.h"
#include "generators/prompts.h"
#include "generators/detokenizer.h"

enum { TUNE_SIDES = 2, TUNE_ENDS = 16 };

/* The answer to one prompt. */
struct tune_answer {
    struct tune_detokenizer *stream;
    int prompt_tokens, tokens;
    const char *end; /* "token", "stop", "length", "context", "signal"; NULL: it goes on */
};

struct tune_answers {
    struct tune_answers_options o;
    char *words;                 /* storage of o's strings */
    const char *stops[TUNE_STOPS];
    int32_t ends[TUNE_ENDS];
    struct tune_prompts *prompts;
    struct tune_prompt_batch batch;
    struct tune_answer *row[TUNE_SIDES]; /* [rows of the largest batch] */
    int most, side;
    int *active_row, *previous;  /* [most] of struct tune_active_rows */
    int active, tokens;
    FILE *file;                  /* of o.file; NULL: none */
    double began_s, first_s, told_s; /* of this batch; last line of progress */
    double opened_s;             /* when the first batch could begin */
    int64_t prompt_tokens;       /* of this batch */
    /* of all batches */
    int64_t rows, all_prompt_tokens, all_tokens;
    double prompt_s, answer_s;
    bool interrupted;
    int64_t expected, matches[TUNE_SIDES]; /* rows with an expected answer; those that gave it */
};

/* tune_answers_open_file - open o.file, and skip the prompts that it answers.
 * tune_answers_write - write the lines of the batch. */
int tune_answers_open_file(struct tune_answers *a);
int tune_answers_write(struct tune_answers *a);

#endif
