/* surrogate.c - fit a Gaussian process, and predict with it. */
#include "sweeps/surrogate/surrogate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "core/statistics.h"
#include "core/try.h"
#include "sweeps/surrogate/blas.h"
#include "sweeps/surrogate/minimize.h"
#include "sweeps/surrogate/surrogate_parts.h"

enum { STARTS = 16, STEPS = 100, FIT_ROWS = 300, MOST_ROWS = 2000, BLOCK = 256 };

static const double normal_95 = 1.959963984540054; /* half of the 95 % interval, in deviations */

static int no_memory(void)
{
    return tune_error_no_memory("a model of the measurements");
}

/* ---- rows ---- */

static int check_point(const struct tune_surrogate_options *o, const double *x, int row)
{
    for (int d = 0; d < o->dimensions; d++) {
        int n = o->categories[d];
        if (!isfinite(x[d]))
            return tune_error_set("model of the measurements: dimension %d of row %d is not a finite number", d, row);
        if (n > 0 && !(x[d] >= 0 && x[d] < n && x[d] == floor(x[d])))
            return tune_error_set("model of the measurements: dimension %d of row %d is %g, but a category of %d values has "
                                  "the indexes 0 to %d", d, row, x[d], n, n - 1);
    }
    return 0;
}

static int check_rows(const struct tune_surrogate_options *o, const double *x, const double *y, int rows)
{
    if (o->dimensions < 1 || o->dimensions > TUNE_SURROGATE_DIMENSIONS)
        return tune_error_set("model of the measurements: a point has 1 to %d dimensions, not %d", TUNE_SURROGATE_DIMENSIONS,
                              o->dimensions);
    if (rows < 1)
        return tune_error_set("model of the measurements: there are no rows; at least one is needed");
    for (int i = 0; i < rows; i++) {
        TRY(check_point(o, x + (long)i * o->dimensions, i));
        if (!isfinite(y[i]))
            return tune_error_set("model of the measurements: the target of row %d is not a finite number", i);
        if (o->logarithm && y[i] <= 0)
            return tune_error_set("model of the measurements: the target of row %d is %g, which has no logarithm", i, y[i]);
    }
    return 0;
}

/* Copy rows in the order of a permutation by the seed, so that the first ones are a fair sample. With
 * few rows the order stays. */
static void copy_rows(struct tune_surrogate *s, const double *x, const double *y, int all)
{
    int d = s->o.dimensions;
    bool drawn = all > s->o.fit_rows;
    for (int i = 0; i < s->rows; i++) {
        long from = drawn ? (long)tune_random_permute(s->o.seed, 0, (uint64_t)all, (uint64_t)i) : i;
        memcpy(s->x + (long)i * d, x + from * d, (size_t)d * sizeof *x);
        s->y[i] = s->o.logarithm ? log(y[from]) : y[from];
    }
}

static void standardise(struct tune_surrogate *s)
{
    double sum = 0, squares = 0, most = 0;
    int exponent;
    for (int i = 0; i < s->rows; i++)
        most = fmax(most, fabs(s->y[i]));
    frexp(most, &exponent);
    double unit = most > 0 ? ldexp(1, exponent - 1) : 1; /* in this unit no square overflows; a power of 2 rounds nothing */
    for (int i = 0; i < s->rows; i++)
        sum += s->y[i] / unit / s->rows;
    for (int i = 0; i < s->rows; i++)
        squares += (s->y[i] / unit - sum) * (s->y[i] / unit - sum) / s->rows;
    double deviation = sqrt(squares);
    if (!(deviation > 1e-12 * fabs(sum))) /* a constant target */
        deviation = sum != 0 ? fabs(sum) * 1e-6 : 1;
    for (int i = 0; i < s->rows; i++)
        s->y[i] = (s->y[i] / unit - sum) / deviation;
    s->mean = sum * unit;
    s->deviation = deviation * unit;
}

/* ---- the fit ---- */

static double loss(void *likelihood, const double *parameters, double *gradient)
{
    struct tune_likelihood *l = likelihood;
    double value = tune_likelihood_gradient(l, parameters, gradient);
    for (int p = 0; p < 2 + l->dimensions; p++)
        gradient[p] = -gradient[p];
    return -value;
}

/* Bounds of the logarithms of the parameters. */
static void set_bounds(int dimensions, double *low, double *high)
{
    low[0] = log(1e-3), high[0] = log(1e3);
    low[1] = log(1e-8), high[1] = log(10);
    for (int d = 0; d < dimensions; d++)
        low[2 + d] = log(1e-2), high[2 + d] = log(1e2);
}

/* Start number k of the fit. The first two have one length for all dimensions. The others draw the
 * lengths between 0.1 and 10. */
static void set_start(int k, int dimensions, double *parameters)
{
    static const double noises[] = {1e-3, 1e-2, 1e-4, 1e-1};
    const double middle = log(k == 0 ? 0.5 : k == 1 ? 2 : 1), spread = k < 2 ? 0 : log(100);
    parameters[0] = 0;
    parameters[1] = log(noises[k % 4]);
    for (int d = 0; d < dimensions; d++)
        parameters[2 + d] = middle + spread * (tune_random_uniform(7, (uint64_t)k, (uint64_t)d) - 0.5);
}

static void fit(struct tune_surrogate *s)
{
    int count = 2 + s->o.dimensions;
    double low[TUNE_SURROGATE_DIMENSIONS + 2], high[TUNE_SURROGATE_DIMENSIONS + 2], at[TUNE_SURROGATE_DIMENSIONS + 2];
    double best = INFINITY;
    struct tune_likelihood l = s->model;
    if (l.rows > s->o.fit_rows)
        l.rows = s->o.fit_rows;
    set_bounds(s->o.dimensions, low, high);
    set_start(0, s->o.dimensions, s->parameters);
    for (int k = 0; k < s->o.starts; k++) {
        set_start(k, s->o.dimensions, at);
        double found = tune_minimize(loss, &l, at, low, high, count, s->o.steps);
        if (found < best) {
            best = found;
            memcpy(s->parameters, at, (size_t)count * sizeof *at);
        }
    }
    s->likelihood = -best;
}

/* ---- predictions ---- */

/* Scale: the root of the mean square of the errors in units of their deviations, each row predicted
 * from all others. Fitted parameters make these errors smaller than those at new points, so each
 * counts as one row less. A scale of few rows is itself unsure: Student's t for the normal
 * distribution's. */
static int measure_scale(struct tune_surrogate *s)
{
    int n = s->rows;
    struct tune_likelihood *l = &s->model;
    double *inverse = malloc((size_t)n * (size_t)n * sizeof *inverse), sum = 0;
    double count = s->o.parameters ? n : fmax(n - (s->o.dimensions + 2), n / 2.0);
    if (!inverse)
        return no_memory();
    memcpy(inverse, l->matrix, (size_t)n * (size_t)n * sizeof *inverse);
    tune_factor_invert(inverse, n);
    for (int i = 0; i < n; i++)
        sum += l->weights[i] * l->weights[i] / inverse[(long)i * n + i];
    s->scale = n > 1 ? sqrt(sum / count) * tune_student_t(0.05, count) / normal_95 : 1;
    free(inverse);
    return 0;
}

/* Make the factor of all rows. If rounding makes that impossible, with a little more noise. */
static int make_factor(struct tune_surrogate *s)
{
    for (int tries = 0; tries < 20; tries++, s->parameters[1] += log(10))
        if (isfinite(tune_likelihood_factor(&s->model, s->parameters)))
            return measure_scale(s);
    return tune_error_set("model of the measurements: the covariance of the rows has no factor with these parameters");
}

static int make(struct tune_surrogate *s, const double *x, const double *y, int all)
{
    size_t n = (size_t)s->rows, d = (size_t)s->o.dimensions;
    struct tune_likelihood *l = &s->model;
    s->categories = malloc(d * sizeof *s->categories);
    s->x = malloc(n * d * sizeof *s->x);
    s->y = malloc(n * sizeof *s->y);
    s->parameters = malloc((d + 2) * sizeof *s->parameters);
    *l = (struct tune_likelihood){.dimensions = s->o.dimensions, .rows = s->rows, .categories = s->categories,
        .x = s->x, .y = s->y, .priors = s->o.priors, .inverse = malloc(d * sizeof *l->inverse),
        .matrix = malloc(n * n * sizeof *l->matrix), .weights = malloc(n * sizeof *l->weights)};
    if (!s->categories || !s->x || !s->y || !s->parameters || !l->inverse || !l->matrix || !l->weights)
        return no_memory();
    memcpy(s->categories, s->o.categories, d * sizeof *s->categories);
    s->o.categories = s->categories;
    copy_rows(s, x, y, all);
    standardise(s);
    if (s->o.parameters) {
        for (size_t p = 0; p < d + 2; p++)
            s->parameters[p] = log(s->o.parameters[p]);
        s->likelihood = tune_likelihood_factor(l, s->parameters);
    } else {
        fit(s);
    }
    if (make_factor(s) < 0)
        return -1;
    for (size_t p = 0; p < d + 2; p++)
        s->parameters[p] = exp(s->parameters[p]);
    return 0;
}

struct tune_surrogate *tune_surrogate_fit(const struct tune_surrogate_options *options, const double *x, const double *y,
                                          int rows)
{
    if (check_rows(options, x, y, rows) < 0)
        return NULL;
    struct tune_surrogate *s = calloc(1, sizeof *s);
    if (!s) {
        no_memory();
        return NULL;
    }
    s->o = *options;
    s->o.starts = options->starts ? options->starts : STARTS;
    s->o.steps = options->steps ? options->steps : STEPS;
    s->o.fit_rows = options->fit_rows ? options->fit_rows : FIT_ROWS;
    s->o.most_rows = options->most_rows ? options->most_rows : MOST_ROWS;
    s->rows = rows < s->o.most_rows ? rows : s->o.most_rows;
    if (make(s, x, y, rows) == 0)
        return s;
    tune_surrogate_free(s);
    return NULL;
}

void tune_surrogate_free(struct tune_surrogate *s)
{
    if (!s)
        return;
    free(s->categories);
    free(s->x);
    free(s->y);
    free(s->parameters);
    free(s->model.inverse);
    free(s->model.matrix);
    free(s->model.weights);
    free(s);
}

/* Predict at count points. columns[count][rows]: their covariances with the rows. */
static void predict_block(const struct tune_surrogate *s, const double *x, int count, double *columns,
                          struct tune_prediction *predictions)
{
    const struct tune_likelihood *l = &s->model;
    int n = s->rows;
    for (int i = 0; i < count; i++) {
        double mean = 0, *column = columns + (long)i * n;
        for (int k = 0; k < n; k++) {
            column[k] = tune_covariance(l, x + (long)i * l->dimensions, s->x + (long)k * l->dimensions);
            mean += column[k] * l->weights[k];
        }
        predictions[i].mean = s->mean + s->deviation * mean;
    }
    tune_factor_forward(l->matrix, n, columns, count);
    for (int i = 0; i < count; i++) {
        double variance = l->variance;
        for (int k = 0; k < n; k++)
            variance -= columns[(long)i * n + k] * columns[(long)i * n + k];
        variance = fmax(variance, 0);
        struct tune_prediction *p = &predictions[i];
        double half = normal_95 * s->scale * s->deviation * sqrt(variance + l->noise);
        p->deviation = s->deviation * sqrt(variance);
        p->low = s->o.logarithm ? exp(p->mean - half) : p->mean - half;
        p->high = s->o.logarithm ? exp(p->mean + half) : p->mean + half;
    }
}

int tune_surrogate_predict(const struct tune_surrogate *s, const double *x, int count,
                           struct tune_prediction *predictions)
{
    for (int i = 0; i < count; i++)
        TRY(check_point(&s->o, x + (long)i * s->o.dimensions, i));
    double *columns = malloc((size_t)s->rows * BLOCK * sizeof *columns);
    if (!columns)
        return no_memory();
    for (int i = 0; i < count; i += BLOCK)
        predict_block(s, x + (long)i * s->o.dimensions, count - i < BLOCK ? count - i : BLOCK, columns, predictions + i);
    free(columns);
    return 0;
}

/* ---- draws ---- */

/* Factor the covariance of points after the rows are known. columns: their covariances with the rows,
 * solved forward. Points that are equal, or nearly, need a little noise. */
static bool factor_points(const struct tune_surrogate *s, const double *x, int count, const double *columns, double *covariance)
{
    const struct tune_likelihood *l = &s->model;
    int n = s->rows;
    for (double noise = 1e-9; noise < 1; noise *= 10) {
        for (int i = 0; i < count; i++)
            for (int j = 0; j <= i; j++) {
                double sum = tune_covariance(l, x + (long)i * l->dimensions, x + (long)j * l->dimensions);
                for (int k = 0; k < n; k++)
                    sum -= columns[(long)i * n + k] * columns[(long)j * n + k];
                covariance[(long)i * count + j] = sum + (i == j ? noise * l->variance : 0);
            }
        if (tune_factor(covariance, count))
            return true;
    }
    return false;
}

int tune_surrogate_draw(const struct tune_surrogate *s, const double *x, int count, uint64_t seed, uint64_t stream, int draws,
                        double *values)
{
    for (int i = 0; i < count; i++)
        TRY(check_point(&s->o, x + (long)i * s->o.dimensions, i));
    size_t n = (size_t)count;
    struct tune_prediction *means = malloc((n + 1) * sizeof *means);
    double *columns = malloc((n * (size_t)s->rows + 1) * sizeof *columns), *covariance = malloc((n * n + 1) * sizeof *covariance);
    double *normal = malloc((n + 1) * sizeof *normal);
    int code = means && columns && covariance && normal ? 0 : no_memory();
    if (code == 0) {
        predict_block(s, x, count, columns, means);
        if (!factor_points(s, x, count, columns, covariance))
            code = tune_error_set("model of the measurements: the covariance of the points has no factor");
    }
    for (int d = 0; d < draws && code == 0; d++) {
        for (int i = 0; i < count; i++)
            normal[i] = tune_random_normal(seed, stream, (uint64_t)d * n + (uint64_t)i);
        for (int i = 0; i < count; i++) {
            double sum = 0;
            for (int j = 0; j <= i; j++)
                sum += covariance[(long)i * count + j] * normal[j];
            values[(long)d * count + i] = means[i].mean + s->deviation * s->scale * sum;
        }
    }
    free(means);
    free(columns);
    free(covariance);
    free(normal);
    return code;
}

/* ---- what was fitted ---- */

const double *tune_surrogate_parameters(const struct tune_surrogate *s)
{
    return s->parameters;
}

double tune_surrogate_likelihood(const struct tune_surrogate *s)
{
    return s->likelihood;
}

double tune_surrogate_noise(const struct tune_surrogate *s)
{
    return s->deviation * sqrt(s->model.noise);
}

double tune_surrogate_prior(const struct tune_surrogate *s)
{
    return s->deviation * sqrt(s->model.variance);
}

double tune_surrogate_scale(const struct tune_surrogate *s)
{
    return s->scale;
}

int tune_surrogate_rows(const struct tune_surrogate *s)
{
    return s->rows;
}
