/* test_surrogate.c - the Gaussian process: against plain loops in float64, its gradient, identities, and bad input. */
#include "test.h"

#include "core/random.h"
#include "core/statistics.h"
#include "sweeps/surrogate/likelihood.h"
#include "sweeps/surrogate/minimize.h"
#include "sweeps/surrogate/surrogate.h"

enum { D = 3, N = 12 };
static const int kinds[D] = {0, 3, 0}; /* a number, a category of three, a number */
static const double known[2 + D] = {1.7, 0.01, 0.4, 1.3, 0.9};

static double draw(int stream, int i)
{
    return tune_random_uniform(5, (uint64_t)stream, (uint64_t)i);
}

static double truth(const double *x)
{
    return 5 + 2 * sin(4 * x[0]) + (x[1] == 1) - x[2] * x[2];
}

static void make_rows(double *x, double *y, int n, int from, double noise)
{
    for (int i = 0; i < n; i++) {
        double *at = x + i * D;
        at[0] = draw(0, from + i);
        at[1] = floor(3 * draw(1, from + i));
        at[2] = draw(2, from + i);
        y[i] = truth(at) + noise * tune_random_normal(5, 3, (uint64_t)(from + i));
    }
}

/* ---- plain loops ---- */

static double covariance(const double *p, const double *a, const double *b)
{
    double r2 = 0, factor = p[0];
    for (int d = 0; d < D; d++)
        if (kinds[d] && a[d] != b[d])
            factor *= exp(-1 / p[2 + d]);
        else if (!kinds[d])
            r2 += pow((a[d] - b[d]) / p[2 + d], 2);
    return factor * (1 + sqrt(5 * r2) + 5 * r2 / 3) * exp(-sqrt(5 * r2));
}

/* Solve a x = b by Gaussian elimination; b becomes x. Returns log |a|. */
static double eliminate(double *a, double *b, int n)
{
    double determinant = 0;
    for (int k = 0; k < n; k++) {
        determinant += log(a[k * n + k]);
        for (int i = k + 1; i < n; i++) {
            double f = a[i * n + k] / a[k * n + k];
            for (int j = k; j < n; j++)
                a[i * n + j] -= f * a[k * n + j];
            b[i] -= f * b[k];
        }
    }
    for (int i = n - 1; i >= 0; i--) {
        for (int j = i + 1; j < n; j++)
            b[i] -= a[i * n + j] * b[j];
        b[i] /= a[i * n + i];
    }
    return determinant;
}

static void fill(double *a, const double *x, int n, const double *p)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            a[i * n + j] = covariance(p, x + i * D, x + j * D) + (i == j ? p[1] : 0);
}

static void standardised(const double *y, int n, double *to, double *mean, double *deviation)
{
    *mean = *deviation = 0;
    for (int i = 0; i < n; i++)
        *mean += y[i] / n;
    for (int i = 0; i < n; i++)
        *deviation += pow(y[i] - *mean, 2) / n;
    *deviation = sqrt(*deviation);
    for (int i = 0; i < n; i++)
        to[i] = (y[i] - *mean) / *deviation;
}

static void plain_loops(void **state)
{
    double x[N * D], y[N], z[N], a[N * N], weights[N], mean, deviation, at[D] = {0.3, 2, 0.6};
    struct tune_surrogate_options o = {.dimensions = D, .categories = kinds, .parameters = known};
    struct tune_prediction p;
    (void)state;
    make_rows(x, y, N, 0, .1);
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, N);
    assert_got(s);
    standardised(y, N, z, &mean, &deviation);
    fill(a, x, N, known);
    memcpy(weights, z, sizeof z);
    double likelihood = -eliminate(a, weights, N) / 2 - N / 2.0 * log(2 * acos(-1)), expected = 0;
    for (int i = 0; i < N; i++) {
        likelihood -= z[i] * weights[i] / 2;
        expected += covariance(known, at, x + i * D) * weights[i];
    }
    assert_true(fabs(tune_surrogate_likelihood(s) - likelihood) < 1e-9);
    double column[N], variance = known[0];
    for (int i = 0; i < N; i++)
        column[i] = covariance(known, at, x + i * D);
    fill(a, x, N, known);
    eliminate(a, column, N);
    for (int i = 0; i < N; i++)
        variance -= column[i] * covariance(known, at, x + i * D);
    assert_ok(tune_surrogate_predict(s, at, 1, &p));
    assert_true(fabs(p.mean - (mean + deviation * expected)) < 1e-9);
    assert_true(fabs(p.deviation - deviation * sqrt(variance)) < 1e-9);
    double half = 1.959963984540054 * tune_surrogate_scale(s) * deviation * sqrt(variance + known[1]);
    assert_true(fabs(p.low - (p.mean - half)) < 1e-9 && fabs(p.high - (p.mean + half)) < 1e-9);
    assert_true(fabs(tune_surrogate_noise(s) - deviation * .1) < 1e-12);
    tune_surrogate_free(s);
}

/* The scale, from models that really lack a row. */
static void leaving_one_out(void **state)
{
    double x[N * D], y[N], z[N], mean, deviation, sum = 0;
    struct tune_surrogate_options o = {.dimensions = D, .categories = kinds, .parameters = known};
    (void)state;
    make_rows(x, y, N, 0, .1);
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, N);
    assert_got(s);
    standardised(y, N, z, &mean, &deviation);
    for (int out = 0; out < N; out++) {
        double few[N * D], a[N * N], weights[N], column[N], m = 0, v = known[0] + known[1];
        int n = 0;
        for (int i = 0; i < N; i++)
            if (i != out) {
                memcpy(few + n * D, x + i * D, D * sizeof *x);
                weights[n] = z[i];
                column[n++] = covariance(known, x + i * D, x + out * D);
            }
        fill(a, few, n, known);
        eliminate(a, weights, n);
        for (int i = 0; i < n; i++)
            m += covariance(known, few + i * D, x + out * D) * weights[i];
        fill(a, few, n, known);
        eliminate(a, column, n);
        for (int i = 0; i < n; i++)
            v -= column[i] * covariance(known, few + i * D, x + out * D);
        sum += (z[out] - m) * (z[out] - m) / v;
    }
    assert_true(fabs(tune_surrogate_scale(s) - sqrt(sum / N) * tune_student_t(.05, N) / 1.959963984540054) < 1e-9);
    tune_surrogate_free(s);
}

/* ---- the gradient and the minimum ---- */

static void gradient(void **state)
{
    double x[N * D], y[N], matrix[N * N], weights[N], inverse[D], g[2 + D], at[2 + D];
    (void)state;
    make_rows(x, y, N, 0, .1);
    for (int i = 0; i < N; i++)
        y[i] -= 5;
    for (int priors = 0; priors < 2; priors++) {
        struct tune_likelihood l = {.dimensions = D, .rows = N, .categories = kinds, .x = x, .y = y, .matrix = matrix,
                                    .weights = weights, .inverse = inverse, .priors = priors};
        for (int p = 0; p < 2 + D; p++)
            at[p] = log(known[p]);
        double value = tune_likelihood_gradient(&l, at, g);
        assert_true(fabs(value - tune_likelihood_factor(&l, at)) < 1e-12 * fabs(value));
        for (int p = 0; p < 2 + D; p++) {
            const double h = 1e-5, was = at[p];
            at[p] = was + h;
            double up = tune_likelihood_factor(&l, at);
            at[p] = was - h;
            double down = tune_likelihood_factor(&l, at);
            at[p] = was;
            assert_true(fabs((up - down) / (2 * h) - g[p]) < 1e-6 * (1 + fabs(g[p])));
        }
    }
}

static double valley(void *context, const double *x, double *g) /* Rosenbrock's */
{
    ++*(int *)context;
    g[0] = -400 * x[0] * (x[1] - x[0] * x[0]) - 2 * (1 - x[0]);
    g[1] = 200 * (x[1] - x[0] * x[0]);
    return 100 * pow(x[1] - x[0] * x[0], 2) + pow(1 - x[0], 2);
}

static void minimum(void **state)
{
    double x[2] = {-1.2, 1}, at_bound[2] = {-1.2, 1};
    int calls = 0;
    (void)state;
    assert_true(tune_minimize(valley, &calls, x, (double[]){-5, -5}, (double[]){5, 5}, 2, 200) < 1e-8);
    assert_true(fabs(x[0] - 1) < 1e-3 && fabs(x[1] - 1) < 1e-3 && calls < 200);
    /* with x <= 0.5 the least is at 0.5, 0.25 */
    assert_true(fabs(tune_minimize(valley, &calls, at_bound, (double[]){-5, -5}, (double[]){.5, 5}, 2, 200) - .25) < 1e-6);
    assert_true(at_bound[0] == .5 && fabs(at_bound[1] - .25) < 1e-3);
}

/* ---- identities ---- */

static struct tune_prediction at_point(const struct tune_surrogate *s, double a, double b, double c)
{
    struct tune_prediction p;
    assert_ok(tune_surrogate_predict(s, (double[]){a, b, c}, 1, &p));
    return p;
}

static void identities(void **state)
{
    double x[60 * D], y[60], scaled[60], fresh[200 * D], expected[200], error = 0;
    struct tune_prediction p[200];
    struct tune_surrogate_options o = {.dimensions = D, .categories = kinds, .priors = true};
    int inside = 0;
    (void)state;
    make_rows(x, y, 60, 0, .05);
    make_rows(fresh, expected, 200, 1000, .05);
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, 60);
    assert_got(s);
    assert_ok(tune_surrogate_predict(s, fresh, 200, p));
    for (int i = 0; i < 200; i++) {
        error += fabs(p[i].mean - truth(fresh + i * D)) / 200;
        inside += p[i].low <= expected[i] && expected[i] <= p[i].high;
    }
    assert_true(error < .1);
    assert_in_range(inside, 170, 200);
    /* a change of the unit changes the answers alike */
    for (int i = 0; i < 60; i++)
        scaled[i] = 7 * y[i] - 3;
    struct tune_surrogate *t = tune_surrogate_fit(&o, x, scaled, 60);
    assert_got(t);
    struct tune_prediction a = at_point(s, .4, 1, .5), b = at_point(t, .4, 1, .5);
    assert_true(fabs(7 * a.mean - 3 - b.mean) < 1e-5 && fabs(7 * a.low - 3 - b.low) < 1e-5);
    tune_surrogate_free(t);
    /* logarithms: the interval is of the target, and the mean of its logarithm */
    o.logarithm = true;
    for (int i = 0; i < 60; i++)
        scaled[i] = exp(y[i]);
    assert_got(t = tune_surrogate_fit(&o, x, scaled, 60));
    b = at_point(t, .4, 1, .5);
    assert_true(fabs(a.mean - b.mean) < 1e-9 && fabs(log(b.high) - a.high) < 1e-9 && fabs(log(b.low) - a.low) < 1e-9);
    tune_surrogate_free(t);
    /* far from all rows: the mean of the rows, and the whole deviation */
    struct tune_prediction far = at_point(s, 1e6, 0, 0);
    const double *parameters = tune_surrogate_parameters(s);
    double mean, deviation, z[60];
    standardised(y, 60, z, &mean, &deviation);
    assert_true(fabs(far.mean - mean) < 1e-9 && fabs(far.deviation - deviation * sqrt(parameters[0])) < 1e-9);
    tune_surrogate_free(s);
}

/* The noise that repeats show. */
static void noise_of_repeats(void **state)
{
    double x[60 * D], y[60];
    struct tune_surrogate_options o = {.dimensions = D, .categories = kinds};
    (void)state;
    make_rows(x, y, 20, 0, 0);
    for (int i = 59; i >= 0; i--) {
        memcpy(x + i * D, x + i / 3 * D, D * sizeof *x);
        y[i] = truth(x + i * D) + .3 * tune_random_normal(8, 0, (uint64_t)i);
    }
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, 60);
    assert_got(s);
    assert_true(tune_surrogate_noise(s) > .2 && tune_surrogate_noise(s) < .4);
    tune_surrogate_free(s);
}

/* More rows than are used. */
static void many_rows(void **state)
{
    enum { MANY = 700 };
    static double x[MANY * D], y[MANY];
    struct tune_surrogate_options o = {.dimensions = D, .categories = kinds, .starts = 1, .fit_rows = 60, .most_rows = 300};
    (void)state;
    make_rows(x, y, MANY, 0, .05);
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, MANY);
    assert_got(s);
    assert_int_equal(tune_surrogate_rows(s), 300);
    assert_true(fabs(at_point(s, .4, 1, .5).mean - truth((double[]){.4, 1, .5})) < .1);
    struct tune_surrogate *t = tune_surrogate_fit(&o, x, y, MANY); /* the same rows again */
    assert_got(t);
    assert_true(at_point(s, .4, 1, .5).mean == at_point(t, .4, 1, .5).mean);
    tune_surrogate_free(t);
    o.seed = 1; /* others */
    assert_got(t = tune_surrogate_fit(&o, x, y, MANY));
    assert_true(at_point(s, .4, 1, .5).mean != at_point(t, .4, 1, .5).mean);
    tune_surrogate_free(t);
    tune_surrogate_free(s);
}

/* ---- bad input ---- */

/* Draws have the means and deviations of the predictions, and the correlations of a plain loop: near points go together. */
static void joint_draws(void **state)
{
    enum { POINTS = 5, DRAWS = 20000 };
    static double values[DRAWS * POINTS], again[2 * POINTS];
    double x[N * D], y[N], at[POINTS * D], mean = 0, deviation = 0, k[N * N], c[N];
    struct tune_prediction p[POINTS];
    (void)state;
    make_rows(x, y, N, 0, 0.1);
    make_rows(at, c, POINTS, 50, 0);
    memcpy(at + D, at, D * sizeof *at); /* 1 is near 0, 2 is equal to 0 */
    at[D] += 1e-3;
    memcpy(at + 2 * D, at, D * sizeof *at);
    struct tune_surrogate_options o = {.dimensions = D, .categories = kinds, .parameters = known};
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, N);
    assert_got(s);
    assert_ok(tune_surrogate_predict(s, at, POINTS, p));
    assert_ok(tune_surrogate_draw(s, at, POINTS, 3, 1, DRAWS, values));
    assert_ok(tune_surrogate_draw(s, at, POINTS, 3, 1, 2, again));
    assert_memory_equal(values, again, sizeof again);
    standardised(y, N, c, &mean, &deviation);
    for (int i = 0; i < POINTS; i++)
        for (int j = 0; j <= i; j++) {
            double sum = 0, expected, own[N];
            for (int d = 0; d < DRAWS; d++)
                sum += (values[d * POINTS + i] - p[i].mean) * (values[d * POINTS + j] - p[j].mean) / DRAWS;
            fill(k, x, N, known);
            for (int r = 0; r < N; r++)
                own[r] = covariance(known, at + j * D, x + r * D);
            eliminate(k, own, N);
            expected = covariance(known, at + i * D, at + j * D);
            for (int r = 0; r < N; r++)
                expected -= covariance(known, at + i * D, x + r * D) * own[r];
            expected *= pow(deviation * tune_surrogate_scale(s), 2);
            double size = p[i].deviation * p[j].deviation * pow(tune_surrogate_scale(s), 2);
            assert_float_equal(sum / size, expected / size, 0.03);
        }
    for (int d = 0; d < DRAWS; d++)
        assert_float_equal(values[d * POINTS], values[d * POINTS + 2], 1e-3 * deviation);
    at[0] = NAN;
    assert_int_equal(tune_surrogate_draw(s, at, POINTS, 3, 1, 1, values), -1);
    assert_error_has("dimension 0 of row 0 is not a finite number");
    tune_surrogate_free(s);
}

static void refuses(const struct tune_surrogate_options *o, const double *x, const double *y, int n, const char *message)
{
    assert_null(tune_surrogate_fit(o, x, y, n));
    assert_error_has(message);
}

static void bad_input(void **state)
{
    double x[4 * D] = {.1, 0, .2, .5, 1, .5, .9, 0, .1, .3, 1, .3}, y[4] = {1, 2, 3, 4};
    struct tune_surrogate_options o = {.dimensions = D, .categories = kinds};
    struct tune_prediction p;
    (void)state;
    refuses(&o, x, y, 0, "there are no rows");
    y[2] = NAN;
    refuses(&o, x, y, 4, "the target of row 2 is not a finite number");
    y[2] = 0;
    o.logarithm = true;
    refuses(&o, x, y, 4, "the target of row 2 is 0, which has no logarithm");
    o.logarithm = false;
    x[1] = 3;
    refuses(&o, x, y, 4, "dimension 1 of row 0 is 3, but a category of 3 values");
    x[1] = .5;
    refuses(&o, x, y, 4, "dimension 1 of row 0 is 0.5");
    x[1] = 0;
    x[5] = INFINITY;
    refuses(&o, x, y, 4, "dimension 2 of row 1 is not a finite number");
    x[5] = .5;
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, 4);
    assert_got(s);
    assert_int_equal(tune_surrogate_predict(s, (double[]){0, -1, 0}, 1, &p), -1);
    assert_error_has("dimension 1 of row 0 is -1");
    /* a category that no row has is known less well */
    assert_true(at_point(s, .1, 2, .2).deviation > at_point(s, .1, 0, .2).deviation);
    tune_surrogate_free(s);
    o.dimensions = 0;
    refuses(&o, x, y, 4, "1 to 256 dimensions, not 0");
    tune_surrogate_free(NULL);
}

static void little_to_learn(void **state)
{
    double x[4 * D] = {.1, 0, .2, .5, 1, .5, .9, 0, .1, .3, 1, .3}, constant[4] = {7, 7, 7, 7}, zero[4] = {0}, other[4] = {1, 2, 3, 4};
    struct tune_surrogate_options o = {.dimensions = D, .categories = kinds};
    (void)state;
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, constant, 4);
    assert_got(s);
    assert_true(fabs(at_point(s, .7, 2, .7).mean - 7) < 1e-9 && at_point(s, .7, 2, .7).deviation < 1e-3);
    tune_surrogate_free(s);
    assert_got(s = tune_surrogate_fit(&o, x, zero, 4));
    assert_true(at_point(s, .7, 2, .7).mean == 0);
    tune_surrogate_free(s);
    assert_got(s = tune_surrogate_fit(&o, x, constant, 1));
    assert_true(at_point(s, .7, 2, .7).mean == 7 && tune_surrogate_scale(s) == 1);
    tune_surrogate_free(s);
    for (int i = 1; i < 4; i++) /* one point, measured four times */
        memcpy(x + i * D, x, D * sizeof *x);
    assert_got(s = tune_surrogate_fit(&o, x, other, 4));
    assert_true(fabs(at_point(s, x[0], x[1], x[2]).mean - 2.5) < 1e-6);
    tune_surrogate_free(s);
    const double huge[4] = {1e308, -1e308, 1.7e308, -3}; /* their squares are infinite, and so are differences */
    const double tiny[4] = {1e-308, 3e-308, 2e-308, -1e-308};
    double y[4], places[4 * D] = {.1, 0, .2, .5, 1, .5, .9, 0, .1, .3, 1, .3};
    for (int k = 0; k < 2; k++) {
        memcpy(y, k ? tiny : huge, sizeof y);
        assert_got(s = tune_surrogate_fit(&o, places, y, 4));
        for (int i = 0; i < 4; i++)
            assert_true(fabs(at_point(s, places[i * D], places[i * D + 1], places[i * D + 2]).mean - y[i]) < 0.9 * fabs(y[0] / 2 - y[1] / 2));
        assert_true(isfinite(at_point(s, .7, 2, .7).mean) && at_point(s, .7, 2, .7).deviation > 0);
        tune_surrogate_free(s);
    }
    const double no_noise[2 + D] = {1, 1e-30, 1, 1, 1}; /* the covariance is singular then */
    o.parameters = no_noise;
    assert_got(s = tune_surrogate_fit(&o, x, other, 4));
    assert_true(tune_surrogate_parameters(s)[1] > 1e-20);
    tune_surrogate_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_loops),
        cmocka_unit_test(leaving_one_out),
        cmocka_unit_test(gradient),
        cmocka_unit_test(minimum),
        cmocka_unit_test(identities),
        cmocka_unit_test(noise_of_repeats),
        cmocka_unit_test(many_rows),
        cmocka_unit_test(joint_draws),
        cmocka_unit_test(bad_input),
        cmocka_unit_test(little_to_learn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
