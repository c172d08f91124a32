/* draws.c - draws from a model: waves for the prior, corrected by the rows. */
#include "sweeps/surrogate/draws.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/random.h"
#include "sweeps/surrogate/blas.h"
#include "sweeps/surrogate/surrogate_parts.h"

enum { WAVES = 96, FREEDOM = 5 }; /* Matern's function with smoothness 5/2 has Student's spectrum with 5 degrees */

static const double tau = 6.28318530717958647693;

struct tune_draws {
    const struct tune_surrogate *s;
    int count, signs_wide;
    double *waves;    /* [count][WAVES][dimensions] */
    double *phases;   /* [count][WAVES] */
    double *heights;  /* [count][WAVES] */
    double *signs;    /* [count][WAVES][signs_wide] of each value of each category, 1 or -1 */
    int *signs_at;    /* [dimensions] where a category's signs begin */
    double *weights;  /* [rows][count] what corrects each draw, by row */
};

static double normal(uint64_t seed, int stream, long counter)
{
    return tune_random_normal(seed, (uint64_t)stream, (uint64_t)counter);
}

/* Make waves whose mean product is the covariance. Those of numbers come from Student's distribution.
 * A category has a sign, which two values share with probability (1 + exp(-1 / length)) / 2. */
static void make_waves(struct tune_draws *d, uint64_t seed)
{
    const struct tune_likelihood *l = &d->s->model;
    for (long m = 0; m < (long)d->count * WAVES; m++) {
        double squares = 0;
        for (int k = 0; k < FREEDOM; k++)
            squares += pow(normal(seed, 1, m * FREEDOM + k), 2);
        d->phases[m] = tau * tune_random_uniform(seed, 2, (uint64_t)m);
        for (int k = 0; k < l->dimensions; k++) {
            long at = m * l->dimensions + k;
            d->waves[at] = l->categories[k] ? 0 : normal(seed, 3, at) * l->inverse[k] / sqrt(squares / FREEDOM);
            bool same = tune_random_uniform(seed, 4, (uint64_t)at) < exp(-l->inverse[k]);
            double *signs = d->signs + m * d->signs_wide + d->signs_at[k];
            for (int c = 0; c < l->categories[k]; c++)
                signs[c] = same || tune_random_u64(seed, 5, (uint64_t)(signs + c - d->signs)) & 1 ? 1 : -1;
        }
    }
}

/* Write the prior's values of all draws at a point. */
static void add_waves(const struct tune_draws *d, const double *x, double *values)
{
    const struct tune_likelihood *l = &d->s->model;
    for (int j = 0; j < d->count; j++) {
        values[j] = 0;
        for (long m = (long)j * WAVES; m < (long)(j + 1) * WAVES; m++) {
            double angle = d->phases[m], height = d->heights[m];
            for (int k = 0; k < l->dimensions; k++)
                if (l->categories[k])
                    height *= d->signs[m * d->signs_wide + d->signs_at[k] + (int)x[k]];
                else
                    angle += d->waves[m * l->dimensions + k] * x[k];
            values[j] += height * cos(angle);
        }
    }
}

/* Find what each draw misses the rows by, and the weights that predict it elsewhere. */
static int make_weights(struct tune_draws *d, uint64_t seed)
{
    const struct tune_likelihood *l = &d->s->model;
    int n = d->s->rows;
    double *columns = malloc((size_t)n * (size_t)d->count * sizeof *columns), *values = malloc((size_t)d->count * sizeof *values);
    for (int i = 0; columns && values && i < n; i++) {
        add_waves(d, d->s->x + (long)i * l->dimensions, values);
        for (int j = 0; j < d->count; j++)
            columns[(long)j * n + i] = values[j] + sqrt(l->noise) * normal(seed, 6, (long)j * n + i);
    }
    if (columns && values) {
        tune_factor_forward(l->matrix, n, columns, d->count);
        tune_factor_backward(l->matrix, n, columns, d->count);
        for (int i = 0; i < n; i++)
            for (int j = 0; j < d->count; j++)
                d->weights[(long)i * d->count + j] = columns[(long)j * n + i];
    }
    bool made = columns && values;
    free(columns);
    free(values);
    return made ? 0 : -1;
}

static int make(struct tune_draws *d, uint64_t seed)
{
    const struct tune_likelihood *l = &d->s->model;
    size_t dimensions = (size_t)l->dimensions, count = (size_t)d->count, waves = WAVES * count;
    if (!(d->signs_at = calloc(dimensions, sizeof *d->signs_at)))
        return -1;
    for (int k = 0; k < l->dimensions; k++) {
        d->signs_at[k] = d->signs_wide;
        d->signs_wide += l->categories[k];
    }
    d->waves = malloc(waves * dimensions * sizeof *d->waves);
    d->phases = malloc(waves * sizeof *d->phases);
    d->signs = malloc((waves * (size_t)d->signs_wide + 1) * sizeof *d->signs);
    d->heights = malloc(waves * sizeof *d->heights);
    d->weights = malloc((size_t)d->s->rows * count * sizeof *d->weights);
    if (!d->waves || !d->phases || !d->signs || !d->heights || !d->weights)
        return -1;
    make_waves(d, seed);
    for (long i = 0; i < (long)waves; i++)
        d->heights[i] = sqrt(2 * l->variance / WAVES) * normal(seed, 7, i);
    return make_weights(d, seed);
}

struct tune_draws *tune_draws_new(const struct tune_surrogate *s, int count, uint64_t seed)
{
    struct tune_draws *d = calloc(1, sizeof *d);
    if (d) {
        *d = (struct tune_draws){.s = s, .count = count};
        if (make(d, seed) == 0)
            return d;
    }
    tune_draws_free(d);
    tune_error_no_memory("draws from a model of the measurements");
    return NULL;
}

void tune_draws_free(struct tune_draws *d)
{
    if (!d)
        return;
    free(d->waves);
    free(d->phases);
    free(d->signs);
    free(d->signs_at);
    free(d->heights);
    free(d->weights);
    free(d);
}

int tune_draws_count(const struct tune_draws *d)
{
    return d->count;
}

int tune_draws_at(const struct tune_draws *d, const double *x, int n, double *values)
{
    const struct tune_surrogate *s = d->s;
    const struct tune_likelihood *l = &s->model;
    for (int i = 0; i < n; i++) {
        const double *at = x + (long)i * l->dimensions;
        double *to = values + (long)i * d->count, mean = 0;
        add_waves(d, at, to);
        for (int k = 0; k < s->rows; k++) {
            const double *weights = d->weights + (long)k * d->count;
            double c = tune_covariance(l, at, s->x + (long)k * l->dimensions);
            mean += c * l->weights[k];
            for (int j = 0; j < d->count; j++)
                to[j] -= c * weights[j];
        }
        for (int j = 0; j < d->count; j++)
            to[j] = s->mean + s->deviation * (mean + s->scale * to[j]);
    }
    return 0;
}
