/* schedule.c - warm-up, then one of four curves. */
#include "optimizers/schedule.h"

#include <math.h>

/* The rate after the warm-up. Of `left` steps or of a share of rows, `done` are over, and WSD decays
 * in the last `decay`. */
static double curve(const struct tune_schedule *s, double done, double left, double decay)
{
    double f = 1, m = s->min_lr_ratio, q;
    if (s->kind == TUNE_WSD) {
        decay = fmin(decay, left);
        done -= left - decay;
        left = decay;
    }
    q = left > 0 && done > 0 ? fmin(done / left, 1) : 0;
    if (s->kind == TUNE_LINEAR)
        f = 1 - q;
    else if (s->kind != TUNE_CONSTANT)
        f = 0.5 * (1 + cos(3.14159265358979323846 * q));
    return s->lr * (m + (1 - m) * f);
}

/* The schedule by rows, for steps whose number of rows varies. */
static double by_rows(const struct tune_schedule *s, const struct tune_progress *at)
{
    double all = (double)at->planned_rows, begin = (double)at->rows / all, end = (double)(at->rows + at->step_rows) / all;
    bool counted = s->warmup_steps >= 0;
    if (counted && at->step < s->warmup_steps)
        return s->lr * (double)(at->step + 1) / (double)s->warmup_steps;
    if (!counted && begin < s->warmup_ratio)
        return end < s->warmup_ratio ? s->lr * end / s->warmup_ratio : s->lr;
    double warmup = counted ? (double)s->warmup_steps / (double)at->planned_steps : s->warmup_ratio;
    return curve(s, begin - warmup, 1 - warmup, s->decay_ratio);
}

double tune_schedule_lr(const struct tune_schedule *s, const struct tune_progress *at)
{
    if (at->planned_rows > 0)
        return by_rows(s, at);
    double planned = (double)at->planned_steps, step = (double)at->step;
    double warmup = s->warmup_steps >= 0 ? (double)s->warmup_steps : ceil(s->warmup_ratio * planned);
    if (step < warmup)
        return s->lr * (step + 1) / warmup;
    return curve(s, step - warmup, planned - warmup, ceil(s->decay_ratio * planned));
}
