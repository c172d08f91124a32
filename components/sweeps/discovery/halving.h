/* halving.h - successive halving: measure all points with little, and the better ones with more.
 *
 * The budget is an input of the experiment, such as max_steps. In the first rung every point has
 * the least of it. The better points, 1/factor of them, go on to the next rung, with factor times
 * as much, and so on up to the most. Source: Jamieson and Talwalkar, "Non-stochastic best arm
 * identification and hyperparameter optimization", 2016. Example:
 *
 *     int rungs = tune_halving_rungs(&h, budgets);
 *     for (int rung = 0; rung < rungs; rung = tune_halving_next(rung, rungs, count)) {
 *         ... measure points[count] with budgets[rung] into values[count]
 *         count = tune_halving_keep(&h, values, count, kept);
 *         for (int i = 0; i < count; i++)
 *             points[i] = points[kept[i]];
 *     } */
#ifndef TUNE_DISCOVERY_HALVING_H
#define TUNE_DISCOVERY_HALVING_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_HALVING_RUNGS = 64 };

struct tune_halving {
    char input[64];     /* the input that is the budget */
    double least, most;
    double factor;      /* above 1 */
    bool maximize;      /* high values are better */
};

/* tune_halving_read - read "max_steps=1..16" into input, least and most. -1 with kind USAGE. */
int tune_halving_read(struct tune_halving *h, const char *text);

/* tune_halving_rungs - the budgets of the rungs: least, factor times as much while that is at most
 * most / factor, and most. They are whole numbers if least and most are, and no two are equal.
 * Returns their number. -1 with kind USAGE: more than TUNE_HALVING_RUNGS. */
int tune_halving_rungs(const struct tune_halving *h, double budgets[TUNE_HALVING_RUNGS]);

/* tune_halving_keep - which of the points with values[count] go on: kept[] gets their places, in
 * order. A point with the value NAN drops out. Of the others 1/factor go on, rounded up. Among
 * equal ones the first goes on. Returns the number that go on, or -1 with an error: no memory. */
int tune_halving_keep(const struct tune_halving *h, const double *values, int count, int *kept);

/* tune_halving_next - the rung after this one, with as many points left. A single point goes to the
 * last rung at once. rungs: there is nothing more to measure. */
int tune_halving_next(int rung, int rungs, int64_t left);

/* tune_halving_plan - the numbers of points in the rungs, if `rung` has count points and none drops
 * out. They go to counts[rungs], 0 for earlier rungs and those left out. Returns the cost: the sum
 * of the points' budgets. */
double tune_halving_plan(const struct tune_halving *h, const double *budgets, int rungs, int rung,
                         int64_t count, int64_t *counts);

#ifdef __cplusplus
}
#endif
#endif
