/* trend.c - the means of the first and the last losses. */
#include "loggers/trend.h"

static const double most_times = 3, most_nats = 2;

void tune_trend_add(struct tune_trend *t, double loss)
{
    if (t->count < TUNE_TREND_STEPS)
        t->first += loss;
    t->last[t->count++ % TUNE_TREND_STEPS] = loss;
}

bool tune_trend_rose(const struct tune_trend *t, double *first, double *last)
{
    double sum = 0;
    for (int i = 0; i < TUNE_TREND_STEPS; i++)
        sum += t->last[i];
    *first = t->first / TUNE_TREND_STEPS;
    *last = sum / TUNE_TREND_STEPS;
    return t->count >= 2 * TUNE_TREND_STEPS && *last > most_times * *first && *last > *first + most_nats;
}
