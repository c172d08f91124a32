/* test_estimates.c - errors, intervals and comparisons against closed forms and published values. */
#include "test.h"

#include "metrics/estimates.h"

enum { ROWS = 400 };

static void means(void **state)
{
    (void)state;
    struct tune_estimate e;
    const double lengths[] = {4, 1, 1, 1, 3, 1, 2, 1, 10, 1}; /* 5 rows: value, 1 */
    assert_ok(tune_score_estimate(tune_score_find("answer_tokens"), lengths, 5, 0, 1, &e));
    assert_float_equal(e.value, 4, 1e-12);
    assert_float_equal(e.error, sqrt(12.5 / 5), 1e-12); /* 50 / 4, over 5 */
    assert_float_equal(e.high - e.value, 2.776445 * sqrt(2.5), 1e-5); /* t of 4 degrees */
    assert_true(e.low == 0); /* and not 4 - 4.39 */
    assert_false(e.bootstrapped);
    const double shares[] = {0.9, 1, 1, 1, 0.8, 1};
    assert_ok(tune_score_estimate(tune_score_find("token_f1"), shares, 3, 0, 1, &e));
    assert_true(e.high == 1);
    assert_float_equal(e.value - e.low, 4.302653 * 0.1 / sqrt(3), 1e-6);
    assert_ok(tune_score_estimate(tune_score_find("answer_tokens"), lengths, 1, 0, 1, &e));
    assert_true(e.value == 4 && isnan(e.low) && isnan(e.high) && isnan(e.error));
    assert_int_equal(tune_score_estimate(tune_score_find("answer_tokens"), lengths, 0, 0, 1, &e), -1);
    assert_error_has("no rows");
    /* Wilson: 81 of 263 is [0.2553, 0.3662] (Newcombe 1998, table I, method 3); 0 of 20 is [0, 0.1611] */
    double right[2 * 263];
    for (int i = 0; i < 263; i++) {
        right[2 * i] = i < 81;
        right[2 * i + 1] = 1;
    }
    assert_ok(tune_score_estimate(tune_score_find("exact_match_raw"), right, 263, 0, 1, &e));
    assert_float_equal(e.low, 0.2553, 5e-5);
    assert_float_equal(e.high, 0.3662, 5e-5);
    assert_float_equal(e.error, sqrt(81. / 263 * (182. / 263) / 262), 1e-12);
    assert_ok(tune_score_estimate(tune_score_find("exact_match_raw"), right + 2 * 100, 20, 0, 1, &e));
    assert_true(e.value == 0 && e.low == 0 && e.error == 0);
    assert_float_equal(e.high, 0.1611, 5e-5);
    for (int n = 2; n < 100; n++) { /* the ends are exact, whatever rounding would make of them */
        assert_ok(tune_score_estimate(tune_score_find("exact_match_raw"), right + 2 * 100, n, 0, 1, &e));
        assert_true(e.low == 0 && e.high > 0 && e.high < 1);
        if (n <= 81)
            assert_ok(tune_score_estimate(tune_score_find("exact_match_raw"), right, n, 0, 1, &e));
        assert_true(n > 81 || (e.high == 1 && e.low > 0 && e.low < 1));
    }
}

/* Uniform in [0,1), the same at each run. */
static double draw(uint32_t *seed)
{
    return ((*seed = *seed * 1664525 + 1013904223) >> 8) / 16777216.0;
}

/* Rows of one token each: the loss is then a mean, whose error has a formula. */
static void draws(void **state)
{
    (void)state;
    double sums[2 * ROWS], squares = 0, mean = 0;
    uint32_t seed = 3;
    for (int i = 0; i < ROWS; i++) {
        sums[2 * i] = 1 + draw(&seed);
        sums[2 * i + 1] = 1;
        mean += sums[2 * i] / ROWS;
    }
    for (int i = 0; i < ROWS; i++)
        squares += (sums[2 * i] - mean) * (sums[2 * i] - mean);
    double error = sqrt(squares / (ROWS - 1) / ROWS);
    struct tune_estimate e, again, other;
    assert_ok(tune_score_estimate(tune_score_find("loss"), sums, ROWS, 0, 5, &e));
    assert_true(e.bootstrapped);
    assert_float_equal(e.value, mean, 1e-12);
    assert_float_equal(e.error, error, 0.1 * error);
    assert_float_equal(e.low, mean - 1.96 * error, 0.2 * error);
    assert_float_equal(e.high, mean + 1.96 * error, 0.2 * error);
    assert_ok(tune_score_estimate(tune_score_find("loss"), sums, ROWS, 0, 5, &again));
    assert_memory_equal(&e, &again, sizeof e);
    assert_ok(tune_score_estimate(tune_score_find("loss"), sums, ROWS, 0, 6, &other));
    assert_true(other.low != e.low && other.value == e.value);
    /* perplexity's draws are exp of those: percentiles are, too (but for the interpolation) */
    assert_ok(tune_score_estimate(tune_score_find("perplexity"), sums, ROWS, 0, 5, &other));
    assert_float_equal(other.low, exp(e.low), 1e-4);
    assert_float_equal(other.high, exp(e.high), 1e-4);
}

static void mcnemar(void **state)
{
    (void)state;
    assert_float_equal(tune_mcnemar(0, 0), 1, 0);
    assert_float_equal(tune_mcnemar(5, 5), 1, 1e-12);
    assert_float_equal(tune_mcnemar(0, 5), 2. / 32, 1e-12);
    assert_float_equal(tune_mcnemar(1, 9), 2 * 11. / 1024, 1e-12);
    assert_float_equal(tune_mcnemar(9, 1), tune_mcnemar(1, 9), 0);
    assert_float_equal(tune_mcnemar(121, 59), 5.45e-6, 1e-8); /* chi-square 61^2 / 180 = 20.67 */
    assert_float_equal(tune_mcnemar(20, 20), 1, 1e-12);
}

/* B is right where A is, and on some rows more. */
static void compare(void **state)
{
    (void)state;
    double a[2 * 100], b[2 * 100];
    struct tune_comparison c;
    const struct tune_score *m = tune_score_find("exact_match_raw");
    for (int i = 0; i < 100; i++) {
        a[2 * i] = i < 40 || i == 99;
        b[2 * i] = i < 50;
        a[2 * i + 1] = b[2 * i + 1] = 1;
    }
    assert_ok(tune_score_compare(m, a, b, 100, 0, 1, &c));
    assert_true(c.wins == 10 && c.losses == 1 && c.ties == 89);
    assert_float_equal(c.difference.value, 0.09, 1e-12);
    assert_true(c.mcnemar && c.p == tune_mcnemar(1, 10));
    /* the error of a mean of 10 ones, 1 minus one and 89 zeros */
    double error = sqrt((11 - 100 * 0.0081) / 99 / 100);
    assert_float_equal(c.difference.error, error, 0.1 * error);
    assert_true(c.difference.low > 0.01 && c.difference.low < 0.05 && c.difference.high > 0.13 && c.difference.high < 0.17);
    /* In pairs: the same rows on both sides have no difference at all, however much they vary. */
    assert_ok(tune_score_compare(m, a, a, 100, 0, 1, &c));
    assert_true(c.difference.low == 0 && c.difference.high == 0 && c.ties == 100 && c.p == 1);
    /* Of a loss the lower one wins. */
    double high[] = {2, 1, 2, 1, 2, 1}, low[] = {1, 1, 2, 1, 3, 1};
    assert_ok(tune_score_compare(tune_score_find("loss"), high, low, 3, 0, 1, &c));
    assert_true(c.wins == 1 && c.losses == 1 && c.ties == 1 && c.difference.value == 0 && !c.mcnemar);
    for (int i = 0; i < 3; i++)
        low[2 * i] = high[2 * i] - 1;
    assert_ok(tune_score_compare(tune_score_find("loss"), high, low, 3, 0, 1, &c));
    assert_float_equal(c.p, 2. / (TUNE_DRAWS + 1), 1e-12); /* no draw has a difference of 0 */
    assert_int_equal(tune_score_compare(m, a, b, 0, 0, 1, &c), -1);
    /* An answer of one word, right and wrong: the row's bleu differs. */
    double yes[11] = {1, 1, 1, 0, 0, 0, 1, 0, 0, 0, 1}, no[11] = {1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 1};
    assert_ok(tune_score_compare(tune_score_find("bleu"), no, yes, 1, 0, 1, &c));
    assert_true(c.wins == 1 && c.ties == 0);
    /* Rows without a token have no loss, and no difference of it. */
    assert_ok(tune_score_compare(tune_score_find("loss"), (double[9]){0}, (double[9]){0}, 3, 0, 1, &c));
    assert_true(isnan(c.difference.value) && isnan(c.p));
}

static void confusion(void **state)
{
    (void)state;
    int64_t counts[2 * 3] = {0};
    tune_score_confusion((const int[]){0, 0, 1, 1, 1}, (const int[]){0, 1, 1, -1, 1}, 5, 2, counts);
    assert_memory_equal(counts, ((const int64_t[]){1, 1, 0, 0, 2, 1}), sizeof counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(means), cmocka_unit_test(draws), cmocka_unit_test(mcnemar), cmocka_unit_test(compare), cmocka_unit_test(confusion),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
