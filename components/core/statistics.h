/* statistics.h - what is said of repeated measurements: where they lie, how far they spread,
 * whether two sets differ. */
#ifndef TUNE_CORE_STATISTICS_H
#define TUNE_CORE_STATISTICS_H

#ifdef __cplusplus
extern "C" {
#endif

/* tune_statistic - of count > 0 numbers, which it may sort: "mean", "median", "variance", "std" (of
 * the population, divided by count, as NumPy has them), "min", "max"; any other: NaN. A mean and a
 * variance of numbers that are not finite are not, either. */
double tune_statistic(double *values, int count, const char *name);

/* A set of measurements in short. deviation: of a sample, divided by count - 1; NaN of fewer than
 * two. */
struct tune_spread {
    int count;
    double mean, median, deviation, low, high;
};
struct tune_spread tune_spread_of(double *values, int count); /* sorts them; count 0: all NaN */

/* tune_student_tail - the probability that Student's t with that many degrees of freedom (above 0)
 * is at least |t| away from 0 on either side. Source: Abramowitz & Stegun 26.5.8, 26.7.1; the
 * incomplete beta function's continued fraction by Lentz's method.
 * tune_welch - that for the means of two sets that may spread differently: Welch's t, degrees of
 * freedom by Satterthwaite. 1: as good as equal, near 0: they differ. NaN: one has fewer than two;
 * 0 where neither spreads and the means differ. */
double tune_student_tail(double t, double freedom);
double tune_welch(const struct tune_spread *a, const struct tune_spread *b);

#ifdef __cplusplus
}
#endif
#endif
