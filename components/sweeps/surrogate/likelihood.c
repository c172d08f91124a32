/* likelihood.c - the covariance, and the likelihood with its gradient. */
#include "sweeps/surrogate/likelihood.h"

#include <math.h>
#include <string.h>

#include "sweeps/surrogate/blas.h"

static const double root5 = 2.23606797749978969641, tau = 6.28318530717958647693;

/* The parts of a covariance. */
struct link {
    double r;     /* distance over the numbers, in lengths */
    double decay; /* exp(-root5 r) times the factors of the categories */
};

static struct link link_points(const struct tune_likelihood *l, const double *a, const double *b)
{
    double sum = 0, apart = 0;
    for (int d = 0; d < l->dimensions; d++)
        if (l->categories[d] == 0) {
            double u = (a[d] - b[d]) * l->inverse[d];
            sum += u * u;
        } else if (a[d] != b[d]) {
            apart += l->inverse[d];
        }
    double r = sqrt(sum);
    return (struct link){r, exp(-root5 * r - apart)};
}

void tune_likelihood_set(struct tune_likelihood *l, const double *parameters)
{
    l->variance = exp(parameters[0]);
    l->noise = exp(parameters[1]);
    for (int d = 0; d < l->dimensions; d++)
        l->inverse[d] = exp(-parameters[2 + d]);
}

double tune_covariance(const struct tune_likelihood *l, const double *a, const double *b)
{
    struct link k = link_points(l, a, b);
    return l->variance * (1 + root5 * k.r + 5.0 / 3 * k.r * k.r) * k.decay;
}

/* ---- priors ---- */

/* Normal distributions of the logarithms, for points in a unit cube and standardised targets. With
 * a dozen rows the likelihood alone often prefers lengths near 0 or endless ones. */
static const struct prior {
    double mean, deviation;
} of_variance = {0, 1.5}, of_noise = {-7, 2.5}, of_number = {-0.3, 1}, of_category = {0.3, 1};

static const struct prior *prior_of(const struct tune_likelihood *l, int p)
{
    return p == 0 ? &of_variance : p == 1 ? &of_noise : l->categories[p - 2] ? &of_category : &of_number;
}

static double add_priors(const struct tune_likelihood *l, const double *parameters, double *gradient)
{
    double sum = 0;
    for (int p = 0; l->priors && p < 2 + l->dimensions; p++) {
        const struct prior *of = prior_of(l, p);
        double z = (parameters[p] - of->mean) / of->deviation;
        sum -= z * z / 2;
        if (gradient)
            gradient[p] -= z / of->deviation;
    }
    return sum;
}

/* ---- the likelihood ---- */

double tune_likelihood_factor(struct tune_likelihood *l, const double *parameters)
{
    int n = l->rows;
    double sum = 0;
    tune_likelihood_set(l, parameters);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++)
            l->matrix[i * (long)n + j] = tune_covariance(l, l->x + i * l->dimensions, l->x + j * l->dimensions);
        l->matrix[i * (long)n + i] = l->variance + l->noise;
    }
    if (!tune_factor(l->matrix, n))
        return -INFINITY;
    for (int i = 0; i < n; i++)
        sum -= log(l->matrix[i * (long)n + i]) + log(tau) / 2;
    memcpy(l->weights, l->y, (size_t)n * sizeof *l->y);
    tune_factor_forward(l->matrix, n, l->weights, 1);
    tune_factor_backward(l->matrix, n, l->weights, 1);
    for (int i = 0; i < n; i++)
        sum -= l->y[i] * l->weights[i] / 2;
    return sum + add_priors(l, parameters, NULL);
}

/* Add the derivatives of one pair of rows, times its factor. */
static void add_pair(const struct tune_likelihood *l, const double *a, const double *b,
                     double factor, double *gradient)
{
    struct link k = link_points(l, a, b);
    double slope = factor * l->variance * 5.0 / 3 * (1 + root5 * k.r) * k.decay;
    double whole = factor * l->variance * (1 + root5 * k.r + 5.0 / 3 * k.r * k.r) * k.decay;
    gradient[0] += whole;
    for (int d = 0; d < l->dimensions; d++)
        if (l->categories[d] == 0) {
            double u = (a[d] - b[d]) * l->inverse[d];
            gradient[2 + d] += slope * u * u;
        } else if (a[d] != b[d]) {
            gradient[2 + d] += whole * l->inverse[d];
        }
}

double tune_likelihood_gradient(struct tune_likelihood *l, const double *parameters,
                                double *gradient)
{
    double likelihood = tune_likelihood_factor(l, parameters);
    int n = l->rows;
    memset(gradient, 0, (size_t)(2 + l->dimensions) * sizeof *gradient);
    if (!isfinite(likelihood))
        return likelihood;
    tune_factor_invert(l->matrix, n);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < i; j++) /* the pair (j,i) is the same */
            add_pair(l, l->x + i * l->dimensions, l->x + j * l->dimensions,
                     l->weights[i] * l->weights[j] - l->matrix[i * (long)n + j], gradient);
        double own = l->weights[i] * l->weights[i] - l->matrix[i * (long)n + i];
        gradient[0] += own * l->variance / 2;
        gradient[1] += own * l->noise / 2;
    }
    add_priors(l, parameters, gradient);
    return likelihood;
}
