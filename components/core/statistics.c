/* statistics.c - means, spreads, Welch's test, and Student's posterior of a mean. */
#include "core/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Neumaier summation: a million values of one size lose no digits. */
static double mean_of(const double *values, int count)
{
    double sum = 0, rest = 0;
    for (int i = 0; i < count; i++) {
        double next = sum + values[i];
        rest += fabs(sum) >= fabs(values[i]) ? sum - next + values[i] : values[i] - next + sum;
        sum = next;
    }
    return (isfinite(rest) ? sum + rest : sum) / count;
}

static double variance_of(const double *values, int count, double mean)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return count > 1 ? sum / (count - 1) : NAN;
}

static double median_of(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, ascending);
    return count % 2 ? values[count / 2] : values[count / 2 - 1] / 2 + values[count / 2] / 2;
}

double tune_statistic(double *values, int count, const char *name)
{
    double mean = mean_of(values, count);
    if (!strcmp(name, "mean"))
        return mean;
    if (!strcmp(name, "variance") || !strcmp(name, "std")) {
        double variance = variance_of(values, count, mean);
        return *name == 'v' ? variance : sqrt(variance);
    }
    double median = median_of(values, count);
    return !strcmp(name, "median") ? median : !strcmp(name, "min") ? values[0] : !strcmp(name, "max") ? values[count - 1] : NAN;
}

struct tune_spread tune_spread_of(double *values, int count)
{
    struct tune_spread s = {count, NAN, NAN, NAN, NAN, NAN};
    if (count == 0)
        return s;
    s.mean = mean_of(values, count);
    s.median = median_of(values, count);
    s.low = values[0];
    s.high = values[count - 1];
    s.deviation = sqrt(variance_of(values, count, s.mean));
    return s;
}

/* The continued fraction of the incomplete beta function I_x(a,b), for x below (a+1)/(a+b+2). */
static double beta_fraction(double x, double a, double b)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1), value;
    d = 1 / (fabs(d) < tiny ? tiny : d);
    value = d;
    for (int m = 1; m <= 500; m++) {
        double terms[2] = {m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
                           -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))};
        double before = value;
        for (int i = 0; i < 2; i++) {
            d = 1 + terms[i] * d;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = 1 + terms[i] / c;
            c = fabs(c) < tiny ? tiny : c;
            value *= c * d;
        }
        if (fabs(value - before) <= 1e-15 * fabs(value))
            break;
    }
    return value;
}

static double incomplete_beta(double x, double a, double b)
{
    if (x <= 0 || x >= 1)
        return x <= 0 ? 0 : 1;
    int sign; /* lgamma_r, because lgamma stores the sign in a global; all signs are positive */
    double lead = exp(lgamma_r(a + b, &sign) - lgamma_r(a, &sign) - lgamma_r(b, &sign) + a * log(x) + b * log1p(-x));
    return x < (a + 1) / (a + b + 2) ? lead * beta_fraction(x, a, b) / a : 1 - lead * beta_fraction(1 - x, b, a) / b;
}

double tune_student_tail(double t, double freedom)
{
    return isnan(t) || !(freedom > 0) ? NAN : isinf(t) ? 0 : incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5);
}

double tune_student_t(double tail, double freedom)
{
    double low = 0, high = 1;
    while (tune_student_tail(high, freedom) > tail && high < 1e300)
        high *= 2;
    for (int i = 0; i < 200 && high - low > 1e-15 * high; i++) {
        double middle = low + (high - low) / 2;
        if (tune_student_tail(middle, freedom) > tail)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double tune_welch(const struct tune_spread *a, const struct tune_spread *b)
{
    if (a->count < 2 || b->count < 2)
        return NAN;
    double x = a->deviation * a->deviation / a->count, y = b->deviation * b->deviation / b->count;
    if (x + y == 0)
        return a->mean == b->mean ? 1 : 0;
    double freedom = (x + y) * (x + y) / (x * x / (a->count - 1) + y * y / (b->count - 1));
    return tune_student_tail((a->mean - b->mean) / sqrt(x + y), freedom);
}

/* ---- the posterior of a mean ---- */

enum { MOST_PAIRS = 1000000 };

double tune_gain(double a, double b, bool highest)
{
    return a > 0 && b > 0 ? log(highest ? b / a : a / b) : NAN;
}

double tune_gain_limit(double share, bool highest)
{
    return highest ? log1p(-share) : -log1p(share);
}

/* The probability that the mean is below limit, of so many values with that mean and deviation. */
static double below(const struct tune_spread *gains, int count, double limit)
{
    double gap = limit - gains->mean;
    if (gains->deviation == 0)
        return gap > 0;
    double tail = tune_student_tail(gap / (gains->deviation / sqrt(count)), count - 1) / 2;
    return gap > 0 ? 1 - tail : tail;
}

/* Whoever looks after each pair may be misled by any of the looks. So each look may err in 0.4 % of
 * cases, and one after 50 pairs in 0.2 / pairs. All together then err in at most 5 %: simulated in
 * tests/core/test_statistics.c, where the mean is at the limit, which is the worst case. */
static int told(double probability, int pairs)
{
    double error = pairs <= 50 ? 0.004 : 0.2 / pairs;
    return probability >= 1 - error ? 1 : probability <= error ? 0 : -1;
}

double tune_below(const struct tune_spread *gains, double limit)
{
    return gains->count < 2 ? NAN : below(gains, gains->count, limit);
}

int tune_told(const struct tune_spread *gains, double limit)
{
    return gains->count < TUNE_PAIRS ? -1 : told(below(gains, gains->count, limit), gains->count);
}

int tune_pairs_needed(const struct tune_spread *gains, double limit)
{
    int low = gains->count < TUNE_PAIRS ? TUNE_PAIRS : gains->count, high = MOST_PAIRS;
    if (gains->count < 2)
        return TUNE_PAIRS;
    if (told(below(gains, high, limit), high) < 0)
        return 0;
    while (low < high) { /* more values never tell less */
        int middle = low + (high - low) / 2;
        if (told(below(gains, middle, limit), middle) >= 0)
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}
