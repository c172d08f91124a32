/* test_indices.c - draws from a model against its own predictions; Sobol's indices and margins of functions that have known ones. */
#include "test.h"

#include "core/random.h"
#include "sweeps/spaces/sobol.h"
#include "sweeps/surrogate/draws.h"
#include "sweeps/surrogate/indices.h"

enum { D = 3, ROWS = 200 };

struct known {
    double (*value)(const double *x);
    int categories[D];
    double first[D], total[D];
    double error; /* what the estimates may differ by, beside their intervals */
};

/* Ishigami and Homma 1990 with a 7 and b 0.1, over -pi to pi. */
static double ishigami(const double *x)
{
    double a = M_PI * (2 * x[0] - 1), b = M_PI * (2 * x[1] - 1), c = M_PI * (2 * x[2] - 1);
    return sin(a) + 7 * sin(b) * sin(b) + 0.1 * pow(c, 4) * sin(a);
}

/* Variances: 1 / 12, 4 / 12, and of the values 0, 1, 2 of a category 2 / 3. */
static double additive(const double *x)
{
    return x[0] + 2 * x[1] + x[2];
}

/* Factors with mean 1 and variances 3 / 12, 12 / 12, and of a category -1, 1 with weight 0.5: 0.25. */
static double product(const double *x)
{
    return (1 + sqrt(3) * (x[0] - 0.5)) * (1 + sqrt(12) * (x[1] - 0.5)) * (0.5 + x[2]);
}

#define SUM (13.0 / 12)
#define VARIANCE (1.25 * 2 * 1.25 - 1)
static const struct known known[] = {
    {ishigami, {0, 0, 0}, {0.31391, 0.44241, 0}, {0.55759, 0.44241, 0.24368}, 0.02},
    {additive, {0, 0, 3}, {1 / 12.0 / SUM, 4 / 12.0 / SUM, 2 / 3.0 / SUM}, {1 / 12.0 / SUM, 4 / 12.0 / SUM, 2 / 3.0 / SUM}, 0.01},
    {product, {0, 0, 2}, {0.25 / VARIANCE, 1 / VARIANCE, 0.25 / VARIANCE},
     {0.25 * 2 * 1.25 / VARIANCE, 1.25 * 1.25 / VARIANCE, 0.25 * 2 * 1.25 / VARIANCE}, 0.01},
};

static double place(const void *categories, int axis, double u)
{
    int n = ((const int *)categories)[axis];
    return n ? floor(u * n) : u;
}

static struct tune_surrogate *fit(const struct known *k, int rows, double noise)
{
    double x[ROWS * D], y[ROWS];
    struct tune_sobol sobol;
    tune_sobol_start(&sobol, 4);
    for (int i = 0; i < rows; i++) {
        for (int d = 0; d < D; d++)
            x[i * D + d] = place(k->categories, d, tune_sobol_at(&sobol, (uint64_t)i, d));
        y[i] = k->value(x + i * D) + noise * tune_random_normal(8, 0, (uint64_t)i);
    }
    const struct tune_surrogate_options o = {.dimensions = D, .categories = k->categories, .priors = true, .starts = 2, .steps = 40};
    struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, rows);
    assert_got(s);
    return s;
}

static void check_share(int which, int d, const char *name, const struct tune_index_share *s, double wanted, double error)
{
    if (s->low > s->value || s->value > s->high || wanted < s->low - error || wanted > s->high + error)
        fail_msg("function %d, %s of dimension %d: %g in %g to %g, known %g", which, name, d, s->value, s->low, s->high, wanted);
    if (s->high - s->low > 0.25)
        fail_msg("function %d, %s of dimension %d: %g to %g is wide", which, name, d, s->low, s->high);
}

static void test_known(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof known / sizeof *known); i++) {
        const struct tune_spread_of_axes spread = {place, known[i].categories};
        struct tune_surrogate *s = fit(&known[i], ROWS, 0);
        struct tune_indices indices[D], again[D];
        assert_ok(tune_indices_find(s, &spread, 1, indices));
        for (int d = 0; d < D; d++) {
            check_share(i, d, "first", &indices[d].first, known[i].first[d], known[i].error);
            check_share(i, d, "total", &indices[d].total, known[i].total[d], known[i].error);
            assert_float_equal(indices[d].first.value, known[i].first[d], 0.06);
            assert_float_equal(indices[d].total.value, known[i].total[d], 0.06);
        }
        assert_ok(tune_indices_find(s, &spread, 1, again));
        assert_memory_equal(indices, again, sizeof again);
        tune_surrogate_free(s);
    }
}

/* With few noisy rows the intervals are wider than with many exact ones. */
static void test_doubt(void **state)
{
    const struct tune_spread_of_axes spread = {place, known[2].categories};
    double wide[2] = {0};
    (void)state;
    for (int k = 0; k < 2; k++) {
        struct tune_surrogate *s = fit(&known[2], k ? ROWS : 14, k ? 0 : 0.5);
        struct tune_indices indices[D];
        assert_ok(tune_indices_find(s, &spread, 1, indices));
        for (int d = 0; d < D; d++)
            wide[k] += indices[d].total.high - indices[d].total.low;
        tune_surrogate_free(s);
    }
    if (!(wide[0] > 2 * wide[1]))
        fail_msg("%g and %g", wide[0], wide[1]);
}

/* The mean and the deviation of many draws are those of the predictions. */
static void test_draws(void **state)
{
    enum { DRAWS = 2000, POINTS = 20 };
    struct tune_surrogate *s = fit(&known[2], 20, 0.05);
    struct tune_draws *d = tune_draws_new(s, DRAWS, 3);
    double x[POINTS * D], *values = malloc(POINTS * DRAWS * sizeof *values);
    struct tune_prediction predictions[POINTS];
    (void)state;
    assert_got(d);
    assert_non_null(values);
    assert_int_equal(tune_draws_count(d), DRAWS);
    for (int i = 0; i < POINTS * D; i++)
        x[i] = place(known[2].categories, i % D, tune_random_uniform(6, 0, (uint64_t)i));
    assert_ok(tune_surrogate_predict(s, x, POINTS, predictions));
    assert_ok(tune_draws_at(d, x, POINTS, values));
    for (int i = 0; i < POINTS; i++) {
        double mean = 0, squares = 0, deviation = tune_surrogate_scale(s) * predictions[i].deviation;
        for (int j = 0; j < DRAWS; j++)
            mean += values[i * DRAWS + j] / DRAWS;
        for (int j = 0; j < DRAWS; j++)
            squares += pow(values[i * DRAWS + j] - mean, 2) / DRAWS;
        if (fabs(mean - predictions[i].mean) > 0.12 * deviation || fabs(sqrt(squares) / deviation - 1) > 0.35)
            fail_msg("%g and %g, %g and %g", mean, predictions[i].mean, sqrt(squares), deviation);
    }
    free(values);
    tune_draws_free(d);
    tune_surrogate_free(s);
}

static void test_margins(void **state)
{
    const struct tune_spread_of_axes spread = {place, known[1].categories};
    struct tune_surrogate *s = fit(&known[1], ROWS, 0);
    struct tune_margin margins[] = {{.place = 0.1}, {.place = 0.9}}, kinds[] = {{.place = 0}, {.place = 2}};
    (void)state;
    assert_ok(tune_margins_find(s, &spread, 1, 1, margins, 2));
    assert_float_equal(margins[0].mean, 0.5 + 0.2 + 1, 0.02); /* the other dimensions at their means */
    assert_float_equal(margins[1].mean, 0.5 + 1.8 + 1, 0.02);
    assert_ok(tune_margins_find(s, &spread, 1, 2, kinds, 2));
    assert_float_equal(kinds[1].mean - kinds[0].mean, 2, 0.02);
    for (int i = 0; i < 2; i++)
        assert_true(margins[i].low <= margins[i].mean && margins[i].mean <= margins[i].high && margins[i].high - margins[i].low < 0.1);
    tune_surrogate_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_doubt),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_margins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
