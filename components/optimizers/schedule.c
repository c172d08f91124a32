/* schedule.c - three curves after a warm-up. */
#include "optimizers/schedule.h"

#include <math.h>

double tune_schedule_lr(const struct tune_schedule *s, const struct tune_progress *at)
{
    double planned = (double)at->planned_steps, step = (double)at->step;
    double warmup = s->warmup_steps >= 0 ? (double)s->warmup_steps : ceil(s->warmup_ratio * planned);
    if (step < warmup)
        return s->lr * (step + 1) / warmup;
    double q = planned > warmup ? (step - warmup) / (planned - warmup) : 0;
    q = q > 1 ? 1 : q;
    switch (s->kind) {
    case TUNE_LINEAR: return s->lr * (1 - q);
    case TUNE_COSINE: return s->lr * 0.5 * (1 + cos(3.14159265358979323846 * q));
    default: return s->lr;
    }
}
