/* trend.h - whether the loss of a run has risen, by the losses of its steps; for this folder.
 *
 * The smoothed loss is the mean of the last 20 steps, or of all while there are fewer. It has risen
 * if one of these holds. The first step counts by itself, because its weights are untrained.
 *
 *     above    by at least              and
 *     lowest   1.5 times                it is above the mean of the first 5 steps, and apart
 *     step 1   1.5 times, 9 steps       apart
 *     start    4 times, 10 steps        2.5 standard errors; 1.5 if it is above 12 nats
 *     step 1   4 times, 5 steps         every step since is so, and above 12 nats
 *     exact    1.5 times, 9 steps       4 standard errors
 *     exact    3 times, 9 steps         1.5 standard errors
 *
 * lowest: the lowest smoothed loss of 10 steps or more, or the mean of the first 5. start: the
 * larger of step 1 and the mean of the first 5. exact: step 1, where its loss does not depend on
 * its rows. That is so for preferences, where model and reference begin alike. apart: at least 6
 * standard errors of the difference (Welch), so the noise of small batches is no rise. In a long
 * run more of them are asked, because it has more chances. 12 nats are worse than a guess among all
 * tokens of any vocabulary.
 *
 * A loss below 0 is a measure of the recipe's own, of which ratios say nothing: then nothing is
 * called a rise. */
#ifndef TUNE_LOGGERS_TREND_H
#define TUNE_LOGGERS_TREND_H

#include <stdbool.h>
#include <stdint.h>

enum { TUNE_TREND_STEPS = 20, TUNE_TREND_FIRST = 5 };

/* Mean and variance of some losses. */
struct tune_trend_mean {
    double mean, variance;
    int count;
};

/* The losses so far; start with a zeroed one, and set exact. */
struct tune_trend {
    bool exact;                             /* the loss of step 1 is the same for all rows */
    int64_t count;
    double one;                             /* loss of step 1 */
    double last[TUNE_TREND_STEPS];          /* loss i at i % TUNE_TREND_STEPS */
    struct tune_trend_mean first, lowest, now;
    int64_t lowest_at;                      /* losses up to the lowest smoothed one */
    int64_t calm, calm_one;                 /* the last with less than 1.5 times lowest; step 1 */
    bool own;                               /* a loss was below 0 */
    bool rose;                              /* it has risen, and did not come back yet */
    bool by_one;                            /* compared with step 1 */
    double was, back;                       /* what it rose from; at or below this it is back */
    int64_t was_at;                         /* losses up to that */
};

/* tune_trend_add - add the loss of a step. 1: it has risen by now. -1: it has come back: it is
 * below the mean of the first 5, or 1.5 times step 1 if it rose above that. 0: no change.
 * tune_trend_good - the number of losses before the rise began. The last of them is that of good
 * weights: those before its step's update. 0: none. */
int tune_trend_add(struct tune_trend *t, double loss);
int64_t tune_trend_good(const struct tune_trend *t);

#endif
