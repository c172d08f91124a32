/* schedule.h - the learning rate as a function of progress. There is no state to save.
 *
 * Of S planned steps, the first W warm up: the rate is lr (s+1)/W at step s = 0, 1, ... So the
 * first step is not spent at rate 0. After that the rate is lr (m + (1 - m) f), where m is
 * min_lr_ratio. With q = (s - W) / (S - W), f is 1 - q for linear and (1 + cos(pi q)) / 2 for
 * cosine. A constant rate is lr.
 *
 * WSD (warm up, stable, decay) stays at f = 1, and decays in the last D steps as cosine does, with
 * q = (s - S + D) / D. D is decay_ratio S rounded up, at most S - W. Source: transformers'
 * get_wsd_schedule with its decay_type "cosine", but for its warm-up. It has no default for D; a
 * tenth is that of MiniCPM (arXiv 2404.06395, section 4).
 *
 * With packing the number of steps is an estimate (progress.h: planned_rows), and the schedule goes
 * by rows. r is the share of rows consumed before the step, r' the share after it, w the share that
 * warms up. While r < w the rate is lr r'/w, at most lr; then q = (r - w) / (1 - w). A warm-up
 * given in steps still has W steps, and w is W over the estimated steps. WSD decays in the last
 * share d of the rows, which is decay_ratio, at most 1 - w; then q = (r - 1 + d) / d. */
#ifndef TUNE_SCHEDULE_H
#define TUNE_SCHEDULE_H

#include "core/progress.h"
#include "optimizers/options.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_flags;

/* tune_schedule_lr - the learning rate of the step that follows at->step finished ones. */
double tune_schedule_lr(const struct tune_schedule *s, const struct tune_progress *at);

/* tune_get_schedule - the schedule that the options describe, by value; nothing to free. */
struct tune_schedule tune_get_schedule(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
