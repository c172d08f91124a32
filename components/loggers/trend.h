/* trend.h - whether the loss of a run rose from its start to its end; for this folder. */
#ifndef TUNE_LOGGERS_TREND_H
#define TUNE_LOGGERS_TREND_H

#include <stdbool.h>
#include <stdint.h>

enum { TUNE_TREND_STEPS = 20 }; /* steps at each end of the run */

/* The losses so far; start with a zeroed one. */
struct tune_trend {
    int64_t count;
    double first;                   /* sum of the first ones */
    double last[TUNE_TREND_STEPS];  /* loss i at i % TUNE_TREND_STEPS */
};

void tune_trend_add(struct tune_trend *t, double loss);

/* tune_trend_rose - whether the mean of the last 20 losses is above 3 times that of the first 20,
 * and more than 2 nats above it. *first and *last are the means. False for fewer than 40 steps. */
bool tune_trend_rose(const struct tune_trend *t, double *first, double *last);

#endif
