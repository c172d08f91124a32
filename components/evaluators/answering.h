/* answering.h - rows that the model answers at each evaluation while it trains, and what metrics
 * say of its answers. Private to this folder. */
#ifndef TUNE_ANSWERING_H
#define TUNE_ANSWERING_H

#include <stdbool.h>
#include <stdint.h>

#include "evaluators/greedy.h"
#include "metrics/scores.h"

enum { TUNE_EVAL_ANSWERS = 2 }; /* kinds of rows: the run's own, and general ones */
enum { TUNE_ANSWERING_METRICS = 24, TUNE_ANSWERING_NAME = 25 };

struct tune_evaluation;
struct tune_evaluator;

/* A file's rows, or those of all. */
struct tune_answered {
    char name[TUNE_ANSWERING_NAME]; /* numbers are logged as eval_<name>_<metric>; "": as
                                       eval_<metric> */
    int64_t rows;        /* that are answered */
    int64_t evaluated;   /* that the loss is of */
    int64_t unanswered;  /* without an answer to compare with; with `rows`, all those looked at */
    double *sums;        /* [metrics,TUNE_SCORE_SUMS] */
};

struct tune_answering {
    struct tune_greedy greedy;
    const struct tune_score *metric[TUNE_ANSWERING_METRICS];
    int metrics;
    bool without_bytes;          /* bits_per_byte was asked for, and is left out */
    struct tune_answered *sets;  /* [set_count]; with several files, the first is of all */
    int set_count;
    struct tune_dataset *data;   /* of the prompts; borrowed from them */
    struct tune_score_labels *labels; /* NULL: no metric needs them */
};

/* tune_answering_free - free it; NULL is fine.
 * tune_evaluator_answer - at each evaluation, the model also answers these rows. The evaluator
 * frees a, also on an error: it has rows of both kinds already.
 * tune_evaluator_answers - those of an evaluator: 0, of the run's own rows; 1, of general ones.
 * NULL: none.
 * tune_answering_note - log how many rows are answered, and what is left out.
 * tune_answering_add - answer all rows, and add each metric to the numbers of an evaluation. log
 * NULL: no lines. 1: a signal left out the rest, and nothing was added. -1 with an error. */
void tune_answering_free(struct tune_answering *a);
int tune_answering_note(const struct tune_answering *a, struct tune_logger *log);
int tune_answering_add(struct tune_answering *a, struct tune_logger *log, int64_t step,
                       struct tune_evaluation *sums);
int tune_evaluator_answer(struct tune_evaluator *e, struct tune_answering *a);
const struct tune_answering *tune_evaluator_answers(const struct tune_evaluator *e, int i);

#endif
