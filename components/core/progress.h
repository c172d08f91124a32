/* progress.h - where a run stands: the one struct the loop hands around.
 *
 * fraction is steps done over the steps planned, known before the first step from
 * the row count, or, where a step takes as many rows as fit (packing, by epochs), rows
 * consumed over the rows planned; planned_steps is then an estimate that ends exact. So
 * schedules and the ETA are functions of it and nothing needs a pass over the data. */
#ifndef TUNE_CORE_PROGRESS_H
#define TUNE_CORE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct tune_progress {
    int64_t step;          /* optimizer steps finished */
    int64_t planned_steps; /* by --epochs or --max-steps; set by tune_loader_more */
    int64_t planned_rows;  /* where planned_steps is an estimate; else 0: the rows over all epochs, set by tune_loader_more */
    int64_t step_rows;     /* then: the rows of the step that tune_loader_more began */
    int64_t rows;          /* rows consumed, over all epochs */
    uint64_t rows_hash;    /* of the bytes of these rows as the data file has them; 0: not known, or no file */
    int64_t tokens;        /* tokens that went through the model: real ones, no padding */
    int64_t labels;        /* trained tokens among them */
    int64_t padded_tokens; /* B*T summed: what was computed */
    double epoch;          /* rows consumed / rows of the set */
    double fraction;       /* step / planned_steps, or rows / planned_rows, 0..1 */
    bool evaluated;        /* there was an evaluation; the next seven are of it */
    int64_t eval_step;     /* step of the last evaluation */
    double eval_loss;      /* its loss, nats per token */
    double best_loss;      /* lowest eval_loss so far */
    int64_t best_step;     /* the step that had it */
    bool best;             /* the last evaluation, at this very step, is the best so far */
    int stale;             /* evaluations since one was lower than patience_loss by the evaluator's min_delta */
    double patience_loss;  /* the loss of that one */
    bool early_stop;       /* the evaluator's patience is at its end, and so is the run */
    bool finished;         /* the loop came to its planned end */
    bool diverged;         /* and the loss had risen far by then: set by tune_logger_report */
    const char *stopped;   /* why it was left before that ("`stop_at_step`", "SIGTERM"); NULL: it was not. A text constant */
    int signal;            /* the signal that did it, or 0 */
};

/* tune_every - true when n is positive and divides step (and step > 0): "once in a while". */
static inline bool tune_every(int64_t step, int64_t n)
{
    return n > 0 && step > 0 && step % n == 0;
}

#endif
