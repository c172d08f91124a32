/* schedule.h - the learning rate as a function of progress. It has no state to save.
 *
 * Of S planned steps, the first W warm up: step s = 0, 1, ... has lr (s+1)/W, so that step 0 also
 * trains. After the warm-up, let q = (s - W) / (S - W). The rate is lr (constant), lr (1 - q)
 * (linear) or lr (1 + cos(pi q)) / 2 (cosine).
 *
 * If the number of steps is an estimate (progress.h: planned_rows), the schedule counts rows
 * instead. Let r be the share of rows used before the step, r' the share with it, and w the share
 * that warms up. While r < w, the rate is lr r'/w, at most lr. Then q = (r - w) / (1 - w). A
 * warm-up given in steps lasts W steps, and w is W divided by the estimated steps. */
#ifndef TUNE_SCHEDULE_H
#define TUNE_SCHEDULE_H

#include "core/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_flags;

enum tune_schedule_kind { TUNE_CONSTANT, TUNE_LINEAR, TUNE_COSINE };

struct tune_schedule {
    enum tune_schedule_kind kind;
    double lr;            /* the peak learning rate */
    double warmup_ratio;  /* share of planned steps, rounded up; used if warmup_steps is -1 */
    int64_t warmup_steps;
};

/* tune_schedule_lr - learning rate of the next step, after at->step finished steps of
 * at->planned_steps (or by rows). */
double tune_schedule_lr(const struct tune_schedule *s, const struct tune_progress *at);

/* tune_get_schedule - the schedule of --schedule, --lr, --warmup-ratio and --warmup-steps. */
struct tune_schedule tune_get_schedule(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
