/* progress.h - where a run stands: the one struct that the loop hands around.
 *
 * fraction is steps done / steps planned. The planned steps follow from the row count, so no pass
 * over the data is needed. With packing, a step takes as many rows as fit. Then fraction is rows
 * consumed / rows planned, and planned_steps is an estimate until the end. Schedules and the
 * estimated time use fraction. */
#ifndef TUNE_CORE_PROGRESS_H
#define TUNE_CORE_PROGRESS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

struct tune_progress {
    int64_t step;          /* optimizer steps finished */
    int64_t planned_steps; /* from epochs or max_steps; tune_loader_more sets it */
    int64_t planned_rows;  /* rows of all epochs where planned_steps is an estimate; else 0 */
    int64_t step_rows;     /* with packing: rows of the step that tune_loader_more began */
    int64_t rows;          /* rows consumed, over all epochs */
    uint64_t rows_hash;    /* hash of these rows' content and numbers; 0: unknown */
    int64_t tokens;        /* real tokens that went through the model, no padding */
    int64_t labels;        /* trained tokens among them */
    int64_t padded_tokens; /* positions computed: the sum of B*T */
    double epoch;          /* rows consumed / rows of the set */
    double fraction;       /* 0..1: step / planned_steps, or rows / planned_rows */
    double epoch_before;   /* epoch and fraction at the end of the step before; tune_loader_more
                              sets both */
    double fraction_before;
    bool evaluated;        /* an evaluation has run; the next nine fields describe it */
    int64_t eval_step;     /* step of the last evaluation */
    double eval_loss;      /* its loss, nats per label */
    double best_loss;      /* lowest eval_loss so far */
    char best_by[48];      /* the number that the best goes by: "loss", "exact_match_raw", ... */
    double best_value;     /* the best one so far: of a loss the lowest */
    int64_t best_step;     /* its step */
    bool best;             /* the last evaluation is the best so far, and was at this step */
    int stale;             /* evaluations since that number last became better by min_delta */
    double patience_loss;  /* what it was at that evaluation */
    bool early_stop;       /* patience is exhausted: the run ends */
    bool finished;         /* the loop reached its planned end */
    bool diverged;         /* the loss rose, to the end or where that ended the run;
                              tune_logger_report sets it */
    const char *stopped;   /* what ended it early, such as "SIGTERM"; NULL: nothing. A constant */
    int signal;            /* the signal that ended it, or 0 */
};

/* tune_every - true every n steps: n > 0, step > 0 and n divides step. */
static inline bool tune_every(int64_t step, int64_t n)
{
    return n > 0 && step > 0 && step % n == 0;
}

/* tune_due - whether something is due behind step at->step. From 1 on, every is a number of steps.
 * Below 1 it is a share of the run. TUNE_EACH_EPOCH is the end of each epoch, and 0 is never. Where
 * the last rows of an epoch are left out, the next step ends it. */
#define TUNE_EACH_EPOCH (-1.0)
static inline bool tune_due(const struct tune_progress *at, double every)
{
    const double slack = 1e-9; /* 0.3 / 0.1 is below 3 */
    if (every == TUNE_EACH_EPOCH)
        return at->step > 0 && floor(at->epoch) > floor(at->epoch_before);
    if (every > 0 && every < 1)
        return at->step > 0 &&
               floor(at->fraction / every + slack) > floor(at->fraction_before / every + slack);
    return tune_every(at->step, (int64_t)every);
}

#endif
