/* test_statistics.c - statistics of repeats: one deviation, Student's t against closed forms and tables, and when a difference
 * can be told. */
#include "test.h"

#include "core/statistics.h"

static void one_deviation(void **state)
{
    (void)state;
    double values[] = {4, 1, 3, 2, 10}, one[] = {7};
    assert_float_equal(tune_statistic(values, 5, "variance"), 12.5, 1e-12); /* 50 / 4 */
    assert_float_equal(tune_statistic(values, 5, "std"), sqrt(12.5), 1e-12);
    struct tune_spread s = tune_spread_of(values, 5);
    assert_true(s.deviation == tune_statistic(values, 5, "std"));
    assert_true(s.mean == 4 && s.median == 3 && s.low == 1 && s.high == 10 && s.count == 5);
    assert_true(isnan(tune_statistic(one, 1, "std")) && isnan(tune_statistic(one, 1, "variance")));
    assert_true(isnan(tune_spread_of(one, 1).deviation) && tune_statistic(one, 1, "mean") == 7);
    assert_true(isnan(tune_statistic(one, 1, "mode")));
}

/* Two-sided tails for 1 to 4 degrees of freedom (Abramowitz & Stegun 26.7.3, 26.7.4). */
static double closed(double t, int freedom)
{
    double a = atan(t / sqrt(freedom)), c = cos(a), s = sin(a);
    switch (freedom) {
    case 1: return 1 - 2 / M_PI * a;
    case 2: return 1 - s;
    case 3: return 1 - 2 / M_PI * (a + s * c);
    default: return 1 - s * (1 + c * c / 2);
    }
}

static void student(void **state)
{
    (void)state;
    for (int freedom = 1; freedom <= 4; freedom++)
        for (double t = 0; t < 40; t += .37) {
            double tail = closed(t, freedom);
            assert_float_equal(tune_student_tail(t, freedom), tail, 1e-13);
            assert_float_equal(tune_student_tail(-t, freedom), tail, 1e-13);
            assert_float_equal(tune_student_t(tail, freedom), t, 1e-7 * (1 + t * t));
        }
    static const struct { int freedom; double tail, t; } known[] = {
        {1, .05, 12.706205}, {2, .05, 4.302653}, {9, .05, 2.262157}, {20, .05, 2.085963}, {30, .05, 2.042272},
        {60, .05, 2.000298}, {120, .05, 1.979930}, {1000, .05, 1.962339}, {1, .1, 6.313752}, {2, .1, 2.919986},
        {5, .1, 2.015048}, {10, .1, 1.812461}, {120, .1, 1.657651}, {5, .01, 4.032143}, {10, .001, 4.586894},
        {7, .02, 2.997952}, {40, .001, 3.550966},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_float_equal(tune_student_t(known[i].tail, known[i].freedom), known[i].t, 2e-6);
        assert_float_equal(tune_student_tail(known[i].t, known[i].freedom), known[i].tail, 1e-6);
    }
    assert_true(isnan(tune_student_tail(1, 0)) && isnan(tune_student_tail(NAN, 3)) && tune_student_tail(INFINITY, 3) == 0);
    assert_true(tune_student_t(1, 3) < 1e-9);
}

static struct tune_spread spread(double mean, double deviation, int count)
{
    return (struct tune_spread){.count = count, .mean = mean, .deviation = deviation};
}

static void posterior(void **state)
{
    (void)state;
    /* 4 values, mean -2, deviation 2: t of the limit -1 is (-1 + 2) / (2 / 2) = 1 with 3 degrees of freedom */
    struct tune_spread s = spread(-2, 2, 4);
    assert_float_equal(tune_below(&s, -1), 1 - closed(1, 3) / 2, 1e-13);
    assert_float_equal(tune_below(&s, -3), closed(1, 3) / 2, 1e-13);
    assert_float_equal(tune_below(&s, -2), .5, 1e-13);
    double values[] = {.01, -.02, .03}; /* mean 1/150, deviation sqrt(19/30000) */
    s = tune_spread_of(values, 3);
    assert_float_equal(tune_below(&s, -.05), closed((1. / 150 + .05) / sqrt(19. / 30000 / 3), 2) / 2, 1e-12);
    struct tune_spread one = spread(1, NAN, 1), same = spread(1, 0, 5);
    assert_true(isnan(tune_below(&one, 2)));
    assert_true(tune_below(&same, 2) == 1 && tune_below(&same, 1) == 0 && tune_below(&same, .5) == 0);
}

static void what_is_told(void **state)
{
    (void)state;
    double at = tune_student_t(.008, 3); /* of 4 values, for 0.4 % on one side */
    assert_float_equal(closed(at, 3), .008, 1e-12);
    struct tune_spread s = spread(0, 2, 4), two = spread(0, 1e-9, 2), three = spread(0, 1e-9, 3);
    assert_true(tune_told(&s, at * 1.0001) == 1 && tune_told(&s, at * .9999) == -1 && tune_told(&s, 0) == -1);
    assert_true(tune_told(&s, -at * .9999) == -1 && tune_told(&s, -at * 1.0001) == 0);
    assert_true(tune_told(&two, 1) == -1 && tune_told(&two, -1) == -1); /* two may be alike by chance */
    assert_true(tune_told(&three, 1) == 1 && tune_told(&three, -1) == 0);
}

static double normal(uint64_t *random)
{
    double u[2];
    for (int i = 0; i < 2; i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        u[i] = ((double)(*random >> 11) + .5) / 9007199254740992.;
    }
    return sqrt(-2 * log(u[0])) * cos(2 * M_PI * u[1]);
}

/* The first thing that is told of values with this mean, asked after each of up to 300; -1: nothing. */
static int told_in_time(uint64_t *random, double mean, double limit)
{
    double sum = 0, squares = 0;
    int told = -1;
    for (int n = 1; n <= 300 && told < 0; n++) {
        double x = mean + normal(random);
        sum += x;
        squares += x * x;
        struct tune_spread s = spread(sum / n, sqrt(fmax(0, (squares - sum * sum / n) / (n - 1))), n);
        told = tune_told(&s, limit);
    }
    return told;
}

/* Whoever asks after each value errs in at most 5 % of series on each side, where the mean is at the limit. */
static void many_looks(void **state)
{
    (void)state;
    uint64_t random = 20261126;
    enum { SERIES = 3000 };
    int below = 0, above = 0, right = 0;
    for (int i = 0; i < SERIES; i++) {
        int told = told_in_time(&random, 0, 0);
        below += told == 1;
        above += told == 0;
        right += told_in_time(&random, -1, 0) == 1;
    }
    assert_true(below <= .055 * SERIES && above <= .055 * SERIES); /* 5 % and more than its chance error */
    assert_true(right >= .995 * SERIES);
    printf("# told below in %.3f, above in %.3f of series at the limit\n", (double)below / SERIES, (double)above / SERIES);
}

static void gains(void **state)
{
    (void)state;
    assert_float_equal(tune_gain(100, 95, true), log(.95), 1e-15);
    assert_float_equal(tune_gain(100, 105, false), -log(1.05), 1e-15);
    assert_true(isnan(tune_gain(0, 1, true)) && isnan(tune_gain(1, -1, false)) && isnan(tune_gain(NAN, 1, true)));
    for (int highest = 0; highest < 2; highest++)
        assert_float_equal(tune_gain(1, highest ? .93 : 1.07, highest), tune_gain_limit(.07, highest), 1e-15);
}

static void needed(void **state)
{
    (void)state;
    struct tune_spread one = spread(0, NAN, 1), none = spread(0, 1, 4), far = spread(0, 1, 4), told = spread(0, .01, 7),
                       two = spread(0, .01, 2);
    assert_int_equal(tune_pairs_needed(&one, 1), TUNE_PAIRS);
    assert_int_equal(tune_pairs_needed(&two, 1), TUNE_PAIRS);
    assert_int_equal(tune_pairs_needed(&told, 1), 7);
    assert_int_equal(tune_pairs_needed(&none, 0), 0);
    for (double limit = -3; limit < 3; limit += .11) {
        int n = tune_pairs_needed(&far, limit);
        struct tune_spread at = spread(0, 1, n), before = spread(0, 1, n - 1);
        assert_true(n >= 4 && tune_told(&at, limit) == (limit > 0));
        assert_true(n == 4 || tune_told(&before, limit) == -1);
    }
}

static void welch(void **state)
{
    (void)state;
    struct tune_spread a = spread(0, 1, 2), b = spread(3, 1, 2), c = spread(0, 0, 2), one = spread(0, NAN, 1);
    assert_float_equal(tune_welch(&a, &b), closed(3, 2), 1e-13); /* t is 3 / sqrt(1/2 + 1/2), 2 degrees of freedom */
    assert_true(tune_welch(&c, &c) == 1 && isnan(tune_welch(&a, &one)));
    b.deviation = 0;
    assert_true(tune_welch(&b, &c) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_deviation), cmocka_unit_test(student), cmocka_unit_test(posterior),
        cmocka_unit_test(what_is_told), cmocka_unit_test(many_looks),   cmocka_unit_test(needed),  cmocka_unit_test(gains),  cmocka_unit_test(welch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
