/* statistics.h - statistics of repeated measurements: center, spread, and a test for a
 * difference. */
#ifndef TUNE_CORE_STATISTICS_H
#define TUNE_CORE_STATISTICS_H

/* tune_statistic - a statistic of count > 0 values: "mean", "median", "variance", "std", "min" or
 * "max". It may sort values. Variance and std divide by count, like NumPy. Another name gives NaN.
 * If a value is not finite, mean and variance are not finite either. */
double tune_statistic(double *values, int count, const char *name);

/* A summary of measurements. deviation divides by count - 1; it is NaN for fewer than two. */
struct tune_spread {
    int count;
    double mean, median, deviation, low, high;
};
struct tune_spread tune_spread_of(double *values, int count); /* sorts values; count 0: all NaN */

/* tune_student_tail - the two-sided probability that Student's t is at least |t| away from 0.
 * freedom: degrees of freedom, above 0. Source: Abramowitz & Stegun 26.5.8, 26.7.1; continued
 * fraction of the incomplete beta function by Lentz.
 *
 * tune_welch - that probability for the means of two sets that may have different variances:
 * Welch's t with Satterthwaite's degrees of freedom. Near 0: the means differ. NaN: a set has fewer
 * than two values. 0 if neither set varies and the means differ. */
double tune_student_tail(double t, double freedom);
double tune_welch(const struct tune_spread *a, const struct tune_spread *b);

#endif
