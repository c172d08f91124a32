/* statistics.h - statistics of repeated measurements: center, spread, tests for a difference.
 *
 * There is one deviation here, the sample standard deviation: the squares' sum is divided by
 * count - 1. It says how far another measurement would lie from the mean. */
#ifndef TUNE_CORE_STATISTICS_H
#define TUNE_CORE_STATISTICS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_statistic - a statistic of count > 0 values: "mean", "median", "variance", "std", "min" or
 * "max". It may sort values. Variance and std are NaN for one value. Another name gives NaN. If a
 * value is not finite, mean and variance are not finite either. */
double tune_statistic(double *values, int count, const char *name);

/* A summary of measurements. deviation is NaN for fewer than two. */
struct tune_spread {
    int count;
    double mean, median, deviation, low, high;
};
struct tune_spread tune_spread_of(double *values, int count); /* sorts values; count 0: all NaN */

/* tune_student_tail - the two-sided probability that Student's t is at least |t| away from 0.
 * freedom: degrees of freedom, above 0. Source: Abramowitz & Stegun 26.5.8, 26.7.1; continued
 * fraction of the incomplete beta function by Lentz.
 *
 * tune_student_t - the t >= 0 with that two-sided probability, above 0 and at most 1.
 *
 * tune_welch - that probability for the means of two sets that may have different variances:
 * Welch's t with Satterthwaite's degrees of freedom. Near 0: the means differ. NaN: a set has fewer
 * than two values. 0 if neither set varies and the means differ. */
double tune_student_tail(double t, double freedom);
double tune_student_t(double tail, double freedom);
double tune_welch(const struct tune_spread *a, const struct tune_spread *b);

/* Is B worse than A by more than a share? The values are gains, one for each pair of repeats.
 *
 * tune_gain - the gain of a pair: log(b / a) if the highest is best, else log(a / b). NaN: one is
 * not above 0.
 *
 * tune_gain_limit - the gain of a B that is worse by exactly that share, 0 to below 1. 0.05 is
 * log(0.95) if the highest is best, else -log(1.05).
 *
 * tune_below - the probability that the mean of all such values is below limit. It is Student's t
 * posterior with count - 1 degrees of freedom (normal values, Jeffreys' prior). NaN: fewer than two
 * values. 0 or 1 if the values do not vary; 0 if all are at the limit.
 *
 * tune_told - what that probability says: 1: the mean is below; 0: it is not; -1: it cannot be told
 * yet. With fewer than TUNE_PAIRS values it never can. You may ask again after each value. A wrong
 * 1 comes in at most 5 % of such series, and so does a wrong 0.
 *
 * tune_pairs_needed - how many values tell, if later ones have the same mean and deviation; at
 * least count. TUNE_PAIRS: there are fewer than two. 0: more than a million.
 *
 * Source of the posterior: Gelman et al., Bayesian Data Analysis, 3rd edition, section 3.2. */
enum { TUNE_PAIRS = 3 };
double tune_gain(double a, double b, bool highest);
double tune_gain_limit(double share, bool highest);
double tune_below(const struct tune_spread *gains, double limit);
int tune_told(const struct tune_spread *gains, double limit);
int tune_pairs_needed(const struct tune_spread *gains, double limit);

#ifdef __cplusplus
}
#endif
#endif
