/* trend.h - whether the loss of a run rose from its begin to its end; for this folder only. */
#ifndef TUNE_LOGGERS_TREND_H
#define TUNE_LOGGERS_TREND_H

#include <stdbool.h>
#include <stdint.h>

enum { TUNE_TREND_STEPS = 20 }; /* at each end of the run */

/* The losses of the steps so far; start with a zeroed one. */
struct tune_trend {
    int64_t count;
    double first;                   /* sum of the first ones */
    double last[TUNE_TREND_STEPS];  /* loss i at i % TUNE_TREND_STEPS */
};

void tune_trend_add(struct tune_trend *t, double loss);

/* tune_trend_rose - the mean of the last 20 losses is above 3 times that of the first 20, and more
 * than 2 nats above it. Both means into *first and *last. Of fewer than 40 steps it is not said. */
bool tune_trend_rose(const struct tune_trend *t, double *first, double *last);

#endif
