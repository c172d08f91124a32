/* divergence.c - what is said and done when the loss of a run rises. */
#include <inttypes.h>
#include <stdio.h>

#include "core/try.h"
#include "loggers/state.h"

bool tune_logger_diverged(const struct tune_logger *log)
{
    return log->trend.rose && (!log->options.unsaved || log->options.stop_on_divergence);
}

void tune_logger_why_diverged(const struct tune_logger *log, char *text, size_t size)
{
    const struct tune_trend *t = &log->trend;
    char where[64] = "at step 1";
    if (!t->by_one)
        snprintf(where, sizeof where, "at its lowest, up to step %" PRId64, t->was_at);
    snprintf(text, size, "the loss rose: its mean was %.4f %s, and is %.4f in the last %d steps; lower `lr`", t->was, where,
             t->now.mean, t->now.count);
}

int tune_logger_rose(struct tune_logger *log, int change)
{
    char why[256], text[400];
    if (change == 0 || (log->options.unsaved && !log->options.stop_on_divergence))
        return 0;
    if (change < 0) {
        snprintf(text, sizeof text, "at step %" PRId64 " the loss is back: its mean is %.4f in the last %d steps", log->last_step,
                 log->trend.now.mean, log->trend.now.count);
        return tune_logger_note(log, "no longer diverged", text);
    }
    tune_logger_why_diverged(log, why, sizeof why);
    bool stop = log->options.stop_on_divergence && log->options.diverged;
    if (stop)
        *log->options.diverged = true;
    snprintf(text, sizeof text, "at step %" PRId64 " %s (it is %g)%s", log->last_step, why, log->lr_last,
             stop ? "" : ". The run goes on; `stop_on_divergence` would end it");
    return tune_logger_note(log, "warning: diverged", text);
}

int64_t tune_logger_good_step(const struct tune_logger *log)
{
    int64_t losses = tune_trend_good(&log->trend);
    return losses > 0 ? losses - 1 : 0; /* a step's loss is that of the weights before its update */
}
