/* schedule.h - the learning rate as a function of progress: nothing to save, nothing to step.
 *
 * Of S planned steps the first W warm up: lr (s+1)/W at step s = 0, 1, ... (the first step is
 * not wasted on 0). After that, with q = (s - W) / (S - W): constant lr; linear lr (1 - q);
 * cosine lr (1 + cos(pi q)) / 2.
 *
 * Where the number of steps is an estimate (progress.h: planned_rows), the same by rows: with r the share of the rows that was
 * consumed before the step, r' with it, w the share that warms up: lr r'/w while r < w, at most lr; then q = (r - w) / (1 - w).
 * A warm-up given in steps is W steps long then too, and w is W over the steps estimated. */
#ifndef TUNE_SCHEDULE_H
#define TUNE_SCHEDULE_H

#include "core/progress.h"
#include "optimizers/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_flags;

/* tune_schedule_lr - the rate of the step that follows at->step finished ones of at->planned_steps (or by rows). */
double tune_schedule_lr(const struct tune_schedule *s, const struct tune_progress *at);

/* tune_get_schedule - by --schedule, --lr, --warmup-ratio, --warmup-steps; by value, there is nothing to free. */
struct tune_schedule tune_get_schedule(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
