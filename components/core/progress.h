/* progress.h - the progress of a run, in one struct that the training loop passes around.
 *
 * fraction is finished steps / planned steps, which the number of rows determines before the first
 * step. With packing limited by epochs, the number of rows in a step varies. fraction is then
 * consumed rows / planned rows, and planned_steps is an estimate that becomes exact at the end.
 * Schedules and the ETA depend only on this struct. */
#ifndef TUNE_CORE_PROGRESS_H
#define TUNE_CORE_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct tune_progress {
    int64_t step;          /* optimizer steps finished */
    int64_t planned_steps; /* from --epochs or --max-steps; set by tune_loader_more */
    /* rows over all epochs if planned_steps is an estimate, else 0; set by tune_loader_more */
    int64_t planned_rows;
    int64_t step_rows;     /* with planned_rows: rows of the step that tune_loader_more began */
    int64_t rows;          /* consumed rows, over all epochs */
    uint64_t rows_hash;    /* hash of these rows' bytes in the data file; 0: unknown, or no file */
    int64_t tokens;        /* tokens given to the model, without padding */
    int64_t labels;        /* trained tokens among them */
    int64_t padded_tokens; /* positions given to the model: sum of B*T */
    double epoch;          /* consumed rows / rows of the set */
    double fraction;       /* step / planned_steps, or rows / planned_rows; 0..1 */
    bool evaluated;        /* there was an evaluation; the next seven describe it */
    int64_t eval_step;     /* step of the last evaluation */
    double eval_loss;      /* its loss, nats per label */
    double best_loss;      /* lowest eval_loss so far */
    int64_t best_step;     /* its step */
    bool best;             /* the last evaluation was at this step and is the best so far */
    int stale;             /* evaluations since the last improvement of at least min_delta */
    double patience_loss;  /* the loss of that improvement */
    bool early_stop;       /* the evaluator's patience is used up; the run ends */
    bool finished;         /* the loop reached its planned end */
    bool diverged;         /* the loss had risen far by the end; set by tune_logger_report */
    /* reason of an earlier stop ("--stop-at-step", "SIGTERM"), a string literal; NULL: none */
    const char *stopped;
    int signal;            /* the signal that stopped it, or 0 */
};

/* tune_every - true if step > 0, n > 0 and n divides step. */
static inline bool tune_every(int64_t step, int64_t n)
{
    return n > 0 && step > 0 && step % n == 0;
}

#endif
