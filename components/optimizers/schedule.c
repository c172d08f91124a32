/* schedule.c - warm-up, then one of three curves. */
#include "optimizers/schedule.h"

#include <math.h>

/* The rate at q, the share of the time after the warm-up. */
static double curve(const struct tune_schedule *s, double q)
{
    q = q > 1 ? 1 : q < 0 ? 0 : q;
    switch (s->kind) {
    case TUNE_LINEAR: return s->lr * (1 - q);
    case TUNE_COSINE: return s->lr * 0.5 * (1 + cos(3.14159265358979323846 * q));
    default: return s->lr;
    }
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
    return curve(s, warmup < 1 ? (begin - warmup) / (1 - warmup) : 0);
}

double tune_schedule_lr(const struct tune_schedule *s, const struct tune_progress *at)
{
    if (at->planned_rows > 0)
        return by_rows(s, at);
    double planned = (double)at->planned_steps, step = (double)at->step;
    double warmup = s->warmup_steps >= 0 ? (double)s->warmup_steps : ceil(s->warmup_ratio * planned);
    if (step < warmup)
        return s->lr * (step + 1) / warmup;
    return curve(s, planned > warmup ? (step - warmup) / (planned - warmup) : 0);
}
