/* estimates.h - how sure a metric's value is, and whether two models differ on the same rows.
 *
 * sums [rows][width] are what tune_score_of made of each row. Example:
 *
 *     struct tune_estimate e;
 *     tune_score_estimate(m, sums, rows, labels, seed, &e);
 *     printf("%s %.3f [%.3f, %.3f]\n", m->name, e.value, e.low, e.high);
 *
 * Intervals are of 95 %:
 *
 *     right or wrong      Wilson's score interval. It has a width where all rows are right, too
 *     other means         value +- t s / sqrt(n), s the sample deviation (n - 1), t Student's. Cut
 *                         at 0, but for metrics of one's own, and at 1 for metrics from 0 to 1
 *     others, differences   percentiles of TUNE_DRAWS bootstrap draws of rows. The same seed draws
 *                         the same rows for every metric and both models
 *
 * Sources: Wilson 1927 (equation 5 in Brown, Cai, DasGupta 2001, "Interval estimation for a
 * binomial proportion"). Efron, Tibshirani 1993, section 13.3 (percentiles). McNemar 1947; Edwards
 * 1948 (correction). */
#ifndef TUNE_ESTIMATES_H
#define TUNE_ESTIMATES_H

#include <stdbool.h>
#include <stdint.h>

#include "metrics/scores.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_DRAWS = 1000, TUNE_MCNEMAR_EXACT = 25 };

struct tune_estimate {
    double value;
    double error;      /* standard error; of others than means the deviation of the draws */
    double low, high;  /* interval of 95 %; NaN: fewer than two rows */
    bool bootstrapped; /* error, low and high are from draws */
};

/* tune_score_estimate - the value over all rows, with its interval. labels: of the metric; 0:
 * none. -1 with an error: no rows, or no memory. */
int tune_score_estimate(const struct tune_score *m, const double *sums, int64_t rows, int labels,
                         uint64_t seed, struct tune_estimate *e);

/* B compared with A on the same rows. */
struct tune_comparison {
    struct tune_estimate difference; /* value of B - value of A, bootstrapped in pairs */
    int64_t wins, losses, ties;      /* rows on which B is better, worse, equal; all 0 for a metric
                                        of which neither is better */
    double p;    /* two-sided probability of such a difference between equal models; see below */
    bool mcnemar;                    /* p is McNemar's */
};

/* tune_score_compare - compare on rows whose sums are a and b. p of metrics that are right or
 * wrong is McNemar's. Others: twice the smaller share of draws whose difference is at most, or at
 * least, 0. It is at least 2 / (TUNE_DRAWS + 1), at most 1. Draws without a value do not count; if
 * none has one, p is NaN. -1 with an error: no rows, no memory.
 * tune_mcnemar - p of so many rows on which only one model is right. Below TUNE_MCNEMAR_EXACT of
 * them together it is the exact binomial's, else chi-square's with Edwards' correction. */
int tune_score_compare(const struct tune_score *m, const double *a, const double *b,
                        int64_t rows, int labels, uint64_t seed, struct tune_comparison *c);
double tune_mcnemar(int64_t only_a, int64_t only_b);

/* tune_score_confusion - of labels: counts [labels][labels + 1], the row is the true label, the
 * column the answer, the last one "none of them". answers, truths [rows]: places of labels, -1 for
 * none. Adds to counts. */
void tune_score_confusion(const int *truths, const int *answers, int64_t rows, int labels,
                           int64_t *counts);

#ifdef __cplusplus
}
#endif
#endif
