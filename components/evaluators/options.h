/* options.h - when to evaluate, when an evaluation ends the run, and what the model says meanwhile.
 * */
#ifndef TUNE_EVALUATORS_OPTIONS_H
#define TUNE_EVALUATORS_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

struct tune_comm;
struct tune_dataset;

enum { TUNE_EVAL_AT_ONCE = 8 }; /* rows that are answered at a time */

/* With zeroed options, evaluations never end a run, and the model answers no row. */
struct tune_evaluator_options {
    struct tune_comm *comm;    /* the ranks that share an evaluation, as their loaders do; rank 0
                                  alone answers rows. NULL: one */
    int patience;              /* evaluations without improvement that end the run; 0: never */
    double min_delta;          /* a loss must fall by more than this to improve, in nats per label;
                                  with best_by, in the unit of that number */
    const char *best_by;       /* for tune_get_eval: the number by which an evaluation is the best;
                                  NULL: loss */
    const char *metrics;       /* for tune_get_eval: what answers are judged by, names of
                                  metrics/scores.h with commas between; NULL: no row is answered */
    int64_t answers;           /* the most rows of a file that the model answers; 0: all */
    int answer_tokens;         /* most tokens of an answer */
    const char *general;       /* for tune_get_eval: files of general rows to evaluate on; NULL:
                                  none */
    bool first;                /* evaluate before the first step, too */
    double every;              /* steps between evaluations, as tune_due takes it, for
                                  tune_evaluator_step and _resume; 0: none of them */
    struct tune_dataset *data; /* dataset to free with the evaluator, or NULL */
    const char *path;          /* of data, for the log; borrowed */
    struct tune_dataset *general_data; /* the general rows, to free with the evaluator, or NULL */
};

/* Answers of the model to some prompts while it trains. */
struct tune_preview_options {
    int every;           /* steps between answers; 0: none */
    int tokens;          /* most tokens of an answer */
    int64_t rows;        /* most prompts: the first ones of the file; 0: all */
    const char *prompts; /* file of rows with prompts, as generators/prompts.h reads them */
};

/* How a model's answers are judged. */
struct tune_scorecard_options {
    const char *metrics; /* names of metrics/scores.h, with commas between */
    const char *tasks;      /* task files, with commas between; NULL: none */
    const char *tasks_data; /* folder of their data sets */
    int64_t shots;          /* examples in a prompt; -1: as each file says */
    bool chat;              /* prompts are written by the model's chat template */
    const char *labels;  /* the labels of a closed set, with commas between; NULL: the references */
    const char *program; /* command that makes metrics of answers; NULL: none */
    double program_s;    /* seconds that it may take for the answers of a model */
    bool keep_trained;   /* judge rows, too, that the model was trained on */
};

#endif
