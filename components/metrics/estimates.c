/* estimates.c - intervals of metrics, by formula or by drawing rows again; differences of models. */
#include "metrics/estimates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/hash.h"
#include "core/random.h"
#include "core/statistics.h"
#include "core/try.h"

static const double normal_quantile = 1.959963984540054; /* of 0.975 */

/* Add up the sums of rows: all of them, or as many that a draw takes, with repetition. */
static void add_up(const double *sums, int64_t rows, int width, uint64_t seed, int64_t draw, double *total)
{
    memset(total, 0, (size_t)width * sizeof *total);
    for (int64_t i = 0; i < rows; i++) {
        uint64_t row = (uint64_t)i;
        if (draw >= 0)
            tune_multiply(tune_random_u64(seed, (uint64_t)draw, (uint64_t)i), (uint64_t)rows, &row);
        const double *s = sums + (int64_t)row * width;
        for (int k = 0; k < width; k++)
            total[k] += s[k];
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The value below which that share of the sorted draws lies, between two of them if need be. */
static double percentile(const double *draws, int count, double share)
{
    double at = share * (count - 1);
    int below = (int)at;
    return below + 1 < count ? draws[below] + (at - below) * (draws[below + 1] - draws[below]) : draws[below];
}

/* Set the spread of drawn values, which it sorts. A draw without a value is left out. Returns how
 * many have one. */
static int spread_of_draws(double *draws, int count, struct tune_estimate *e)
{
    int kept = 0;
    double sum = 0, squares = 0;
    for (int i = 0; i < count; i++)
        if (!isnan(draws[i]))
            draws[kept++] = draws[i];
    for (int i = 0; i < kept; i++)
        sum += draws[i];
    for (int i = 0; i < kept; i++)
        squares += (draws[i] - sum / kept) * (draws[i] - sum / kept);
    qsort(draws, (size_t)kept, sizeof *draws, by_size);
    e->error = kept > 1 ? sqrt(squares / (kept - 1)) : NAN;
    e->low = kept > 1 ? percentile(draws, kept, 0.025) : NAN;
    e->high = kept > 1 ? percentile(draws, kept, 0.975) : NAN;
    e->bootstrapped = true;
    return kept;
}

/* The interval of a mean of rows' values, sums [rows][2]. */
static void interval_of_mean(const struct tune_score *m, const double *sums, int64_t rows, struct tune_estimate *e)
{
    double squares = 0, n = (double)rows, z = normal_quantile;
    for (int64_t i = 0; i < rows; i++)
        squares += (sums[2 * i] - e->value) * (sums[2 * i] - e->value);
    e->error = sqrt(squares / (n - 1) / n);
    if (m->right_or_wrong) {
        double p = e->value, middle = (p + z * z / (2 * n)) / (1 + z * z / n);
        double half = z / (1 + z * z / n) * sqrt(p * (1 - p) / n + z * z / (4 * n * n));
        e->low = p == 0 ? 0 : middle - half; /* rounding would make it 1e-17 */
        e->high = p == 1 ? 1 : middle + half;
    } else {
        double t = tune_student_t(0.05, n - 1);
        e->low = fmax(e->value - t * e->error, *m->unit ? 0 : -INFINITY);
        e->high = fmin(e->value + t * e->error, strcmp(m->unit, "0-1") ? INFINITY : 1);
    }
}

int tune_score_estimate(const struct tune_score *m, const double *sums, int64_t rows, int labels, uint64_t seed,
                         struct tune_estimate *e)
{
    int width = tune_score_width(m, labels);
    double total[TUNE_SCORE_SUMS], draws[TUNE_DRAWS];
    if (rows < 1)
        return tune_error_set("%s of no rows: nothing was measured", m->name);
    add_up(sums, rows, width, seed, -1, total);
    *e = (struct tune_estimate){.value = m->value(total, labels), .error = NAN, .low = NAN, .high = NAN};
    if (rows < 2)
        return 0;
    if (m->kind != TUNE_SCORE_CORPUS) {
        interval_of_mean(m, sums, rows, e);
        return 0;
    }
    for (int d = 0; d < TUNE_DRAWS; d++) {
        add_up(sums, rows, width, seed, d, total);
        draws[d] = m->value(total, labels);
    }
    spread_of_draws(draws, TUNE_DRAWS, e);
    return 0;
}

double tune_mcnemar(int64_t only_a, int64_t only_b)
{
    int64_t n = only_a + only_b, fewer = only_a < only_b ? only_a : only_b;
    if (n == 0)
        return 1;
    if (n >= TUNE_MCNEMAR_EXACT) {
        double off = fabs((double)(only_a - only_b)) - 1;
        return off <= 0 ? 1 : erfc(off / sqrt((double)n) / sqrt(2)); /* chi-square with one degree of freedom */
    }
    double tail = 0, term = pow(0.5, (double)n); /* of k = 0 */
    for (int64_t k = 0; k <= fewer; k++) {
        tail += term;
        term *= (double)(n - k) / (double)(k + 1);
    }
    return fmin(1, 2 * tail);
}

/* Count the rows on which B is better and worse. */
static void count_wins(const struct tune_score *m, const double *a, const double *b, int64_t rows, int labels,
                       struct tune_comparison *c)
{
    int width = tune_score_width(m, labels);
    for (int64_t i = 0; i < rows && m->better; i++) {
        double x = m->better * tune_score_row_value(m, a + i * width, labels);
        double y = m->better * tune_score_row_value(m, b + i * width, labels);
        c->wins += y > x;
        c->losses += y < x;
        c->ties += !(y > x) && !(y < x);
    }
}

int tune_score_compare(const struct tune_score *m, const double *a, const double *b, int64_t rows, int labels, uint64_t seed,
                        struct tune_comparison *c)
{
    int width = tune_score_width(m, labels), below = 0, above = 0;
    double total[TUNE_SCORE_SUMS], other[TUNE_SCORE_SUMS], draws[TUNE_DRAWS];
    *c = (struct tune_comparison){.difference = {.error = NAN, .low = NAN, .high = NAN}, .p = NAN};
    if (rows < 1)
        return tune_error_set("%s of no rows: nothing was measured", m->name);
    for (int d = -1; d < TUNE_DRAWS && (d < 0 || rows > 1); d++) {
        add_up(a, rows, width, seed, d, total);
        add_up(b, rows, width, seed, d, other);
        double difference = m->value(other, labels) - m->value(total, labels);
        if (d < 0) {
            c->difference.value = difference;
            continue;
        }
        draws[d] = difference;
        below += difference <= 0;
        above += difference >= 0;
    }
    count_wins(m, a, b, rows, labels, c);
    if (rows > 1) {
        int drawn = spread_of_draws(draws, TUNE_DRAWS, &c->difference);
        c->p = drawn > 0 ? fmin(1, 2. * ((below < above ? below : above) + 1) / (drawn + 1)) : NAN;
    }
    c->mcnemar = m->right_or_wrong;
    if (c->mcnemar)
        c->p = tune_mcnemar(c->losses, c->wins);
    return 0;
}

void tune_score_confusion(const int *truths, const int *answers, int64_t rows, int labels, int64_t *counts)
{
    for (int64_t i = 0; i < rows; i++)
        counts[truths[i] * (labels + 1) + (answers[i] < 0 ? labels : answers[i])]++;
}
