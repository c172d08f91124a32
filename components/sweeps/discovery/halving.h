/* halving.h - successive halving: measure all points with a small budget, and the better ones with
 * more.
 *
 * The budget is an input of the experiment, such as max_steps. In the first rung every point has
 * the smallest budget. The better half of the points continue in the next rung, with twice the
 * budget, and so on up to the largest. Source: Jamieson and Talwalkar, "Non-stochastic best arm
 * identification and hyperparameter optimization", 2016. Example:
 *
 *     int rungs = tune_halving_rungs(&h, budgets);
 *     for (int rung = 0; rung < rungs; rung = tune_halving_next(rung, rungs, count)) {
 *         ... measure points[count] with budgets[rung] into values[count]
 *         count = tune_halving_select(&h, values, count, selected);
 *         for (int i = 0; i < count; i++)
 *             points[i] = points[selected[i]];
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
    char input[64];     /* name of the input that is the budget */
    double least, most;
    bool maximize;      /* high values are better */
};

/* tune_halving_read - read "max_steps=1..16" into input, least and most. -1 with kind USAGE. */
int tune_halving_read(struct tune_halving *h, const char *text);

/* tune_halving_rungs - compute the budgets of the rungs. They start with least, are doubled, and
 * end with most. Returns their number. -1 with kind USAGE: more than TUNE_HALVING_RUNGS. */
int tune_halving_rungs(const struct tune_halving *h, double budgets[TUNE_HALVING_RUNGS]);

/* tune_halving_select - choose the points that continue, by values[count]. selected[] receives
 * their indexes, in order. Points with the value NAN are left out. The better half of the others
 * continue, rounded up. Ties are decided by the order. Returns their number, or -1 with an error:
 * no memory. */
int tune_halving_select(const struct tune_halving *h, const double *values, int count,
                        int *selected);

/* tune_halving_next - the index of the next rung. left: number of points in it. A single point goes
 * directly to the last rung. Returns rungs if there is nothing more to measure. */
int tune_halving_next(int rung, int rungs, int64_t left);

/* tune_halving_plan - compute the numbers of points in the rungs, if `rung` has count points and
 * none is dropped. counts[rungs] is 0 for earlier and skipped rungs. Returns the cost: the sum of
 * the points' budgets. */
double tune_halving_plan(const double *budgets, int rungs, int rung, int64_t count,
                         int64_t *counts);

#ifdef __cplusplus
}
#endif
#endif
