/* indices.c - Sobol's indices and margins, by draws from a model. */
#include "sweeps/surrogate/indices.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/try.h"
#include "sweeps/spaces/sobol.h"
#include "sweeps/surrogate/draws.h"
#include "sweeps/surrogate/surrogate_parts.h"

enum { DRAWS = 48, POINTS = 1024, PARTS = 8, MARGIN_POINTS = 256 };

static const double normal_95 = 1.959963984540054;

/* Points of two independent samples, a and b, and the draws' values there. */
struct samples {
    const struct tune_surrogate *s;
    struct tune_draws *draws;
    int dimensions;
    double *a, *b, *mixed;        /* [POINTS][dimensions] */
    double *at_a, *at_b, *at_mixed; /* [POINTS][DRAWS] */
};

static int no_memory(void)
{
    return tune_error_no_memory("the shares of the dimensions");
}

/* Write points spread as the axes are. offset: the first axis of the sequence. */
static void make_points(const struct tune_spread_of_axes *spread, int dimensions, int offset, uint64_t seed, int count, double *x)
{
    struct tune_sobol sobol;
    bool even = offset + dimensions <= TUNE_SOBOL_AXES;
    tune_sobol_start(&sobol, seed);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < dimensions; k++) {
            double u = even ? tune_sobol_at(&sobol, (uint64_t)i, offset + k)
                            : tune_random_uniform(seed, (uint64_t)(offset + k), (uint64_t)i);
            x[(long)i * dimensions + k] = spread->place(spread->context, k, u);
        }
}

/* ---- indices ---- */

static int make_samples(struct samples *m, const struct tune_surrogate *s, const struct tune_spread_of_axes *spread, uint64_t seed)
{
    size_t d = (size_t)s->o.dimensions;
    *m = (struct samples){.s = s, .dimensions = s->o.dimensions};
    m->a = malloc(3 * POINTS * d * sizeof *m->a);
    m->at_a = malloc(3 * (size_t)POINTS * DRAWS * sizeof *m->at_a);
    if (!m->a || !m->at_a)
        return no_memory();
    m->b = m->a + POINTS * d;
    m->mixed = m->b + POINTS * d;
    m->at_b = m->at_a + POINTS * DRAWS;
    m->at_mixed = m->at_b + POINTS * DRAWS;
    if (!(m->draws = tune_draws_new(s, DRAWS, seed)))
        return -1;
    make_points(spread, m->dimensions, 0, seed, POINTS, m->a);
    make_points(spread, m->dimensions, m->dimensions, seed, POINTS, m->b);
    TRY(tune_draws_at(m->draws, m->a, POINTS, m->at_a));
    return tune_draws_at(m->draws, m->b, POINTS, m->at_b);
}

static void free_samples(struct samples *m)
{
    tune_draws_free(m->draws);
    free(m->a);
    free(m->at_a);
}

/* Center the values of each draw, and write their means and variances. */
static void center(struct samples *m, double means[DRAWS], double variances[DRAWS])
{
    for (int j = 0; j < DRAWS; j++) {
        double mean = 0, squares = 0;
        for (int i = 0; i < POINTS; i++)
            mean += (m->at_a[i * DRAWS + j] + m->at_b[i * DRAWS + j]) / (2 * POINTS);
        for (int i = 0; i < POINTS; i++) {
            double a = m->at_a[i * DRAWS + j] -= mean, b = m->at_b[i * DRAWS + j] -= mean;
            squares += (a * a + b * b) / (2 * POINTS);
        }
        means[j] = mean;
        variances[j] = squares;
    }
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A quantile of sorted values, by linear interpolation. */
static double quantile(const double *sorted, int count, double share)
{
    double at = share * (count - 1);
    int i = (int)at < count - 1 ? (int)at : count - 2;
    return sorted[i] + (at - i) * (sorted[i + 1] - sorted[i]);
}

/* The share of values[DRAWS], which are sorted here. error: standard error of the sums. */
static struct tune_index_share share_of(double *values, double error)
{
    qsort(values, DRAWS, sizeof *values, ascending);
    double middle = quantile(values, DRAWS, 0.5), wide = normal_95 * error;
    double low = middle - hypot(middle - quantile(values, DRAWS, 0.025), wide);
    double high = middle + hypot(quantile(values, DRAWS, 0.975) - middle, wide);
    return (struct tune_index_share){fmin(fmax(middle, 0), 1), fmin(fmax(low, 0), 1), fmin(fmax(high, 0), 1)};
}

/* Find the indices of a dimension: mixed is a with b's values of it. The parts of the sum tell its
 * error. */
static int find_indices(struct samples *m, int dimension, const double *variances, const double *means, struct tune_indices *to)
{
    double first[DRAWS], total[DRAWS], errors[2] = {0};
    memcpy(m->mixed, m->a, POINTS * (size_t)m->dimensions * sizeof *m->a);
    for (int i = 0; i < POINTS; i++)
        m->mixed[(long)i * m->dimensions + dimension] = m->b[(long)i * m->dimensions + dimension];
    TRY(tune_draws_at(m->draws, m->mixed, POINTS, m->at_mixed));
    for (int j = 0; j < DRAWS; j++) {
        double sums[2][PARTS] = {{0}}, squares[2] = {0};
        for (int i = 0; i < POINTS; i++) {
            double a = m->at_a[i * DRAWS + j], b = m->at_b[i * DRAWS + j], mixed = m->at_mixed[i * DRAWS + j] - means[j];
            sums[0][i * PARTS / POINTS] += b * (mixed - a) / variances[j] * PARTS / POINTS;
            sums[1][i * PARTS / POINTS] += (a - mixed) * (a - mixed) / (2 * variances[j]) * PARTS / POINTS;
        }
        first[j] = total[j] = 0;
        for (int k = 0; k < PARTS; k++) {
            first[j] += sums[0][k] / PARTS;
            total[j] += sums[1][k] / PARTS;
        }
        for (int k = 0; k < PARTS; k++) {
            squares[0] += pow(sums[0][k] - first[j], 2);
            squares[1] += pow(sums[1][k] - total[j], 2);
        }
        for (int w = 0; w < 2; w++)
            errors[w] += squares[w] / (PARTS - 1) / PARTS / DRAWS;
    }
    to->first = share_of(first, sqrt(errors[0]));
    to->total = share_of(total, sqrt(errors[1]));
    return 0;
}

static int find_all(struct samples *m, struct tune_indices *indices)
{
    double variances[DRAWS], means[DRAWS];
    center(m, means, variances);
    for (int j = 0; j < DRAWS; j++)
        if (!isfinite(variances[j]))
            return tune_error_set("the shares of the dimensions are unknown: the variance of the target is too large for a number");
        else if (!(variances[j] > 0))
            return tune_error_set("the shares of the dimensions are unknown: nothing changes the target");
    for (int d = 0; d < m->dimensions; d++)
        TRY(find_indices(m, d, variances, means, &indices[d]));
    return 0;
}

int tune_indices_find(const struct tune_surrogate *s, const struct tune_spread_of_axes *spread, uint64_t seed,
                      struct tune_indices *indices)
{
    struct samples m;
    int code = make_samples(&m, s, spread, seed);
    if (code == 0)
        code = find_all(&m, indices);
    free_samples(&m);
    return code;
}

/* ---- margins ---- */

/* Make the points that the mean is over. Equal ones become one with their number as its weight, for
 * the other dimensions often have few values. Returns their number. */
static int make_margin_points(const struct tune_spread_of_axes *spread, int dimensions, uint64_t seed, int axis, double *x, double *weights)
{
    size_t size = (size_t)dimensions * sizeof *x;
    int count = 0;
    make_points(spread, dimensions, 0, seed, MARGIN_POINTS, x);
    for (int i = 0; i < MARGIN_POINTS; i++) {
        double *at = x + (long)i * dimensions;
        int k = 0;
        at[axis] = 0;
        while (k < count && memcmp(x + (long)k * dimensions, at, size) != 0)
            k++;
        if (k == count) {
            memmove(x + (long)count++ * dimensions, at, size);
            weights[k] = 0;
        }
        weights[k] += 1.0 / MARGIN_POINTS;
    }
    return count;
}

static int find_margin(const struct tune_draws *draws, int dimensions, int axis, double *x, const double *weights, int count, double *values,
                       struct tune_margin *to)
{
    double means[DRAWS] = {0};
    for (int i = 0; i < count; i++)
        x[(long)i * dimensions + axis] = to->place;
    TRY(tune_draws_at(draws, x, count, values));
    for (int i = 0; i < count; i++)
        for (int j = 0; j < DRAWS; j++)
            means[j] += values[(long)i * DRAWS + j] * weights[i];
    qsort(means, DRAWS, sizeof *means, ascending);
    to->mean = quantile(means, DRAWS, 0.5);
    to->low = quantile(means, DRAWS, 0.025);
    to->high = quantile(means, DRAWS, 0.975);
    return 0;
}

int tune_margins_find(const struct tune_surrogate *s, const struct tune_spread_of_axes *spread, uint64_t seed, int axis,
                      struct tune_margin *margins, int count)
{
    int dimensions = s->o.dimensions, points = 0;
    double weights[MARGIN_POINTS];
    struct tune_draws *draws = tune_draws_new(s, DRAWS, seed);
    double *x = malloc(MARGIN_POINTS * (size_t)dimensions * sizeof *x), *values = malloc(MARGIN_POINTS * (size_t)DRAWS * sizeof *values);
    int code = !draws ? -1 : x && values ? 0 : no_memory();
    if (code == 0)
        points = make_margin_points(spread, dimensions, seed, axis, x, weights);
    for (int i = 0; i < count && code == 0; i++)
        code = find_margin(draws, dimensions, axis, x, weights, points, values, &margins[i]);
    tune_draws_free(draws);
    free(x);
    free(values);
    return code;
}
