/* test_halving.c - successive halving by itself: rungs, who goes on, and how often it finds the best of 80 points. */
#include "test.h"

#include "core/random.h"
#include "sweeps/discovery/halving.h"

static void budgets_are(double least, double most, const char *expected)
{
    struct tune_halving h = {.input = "steps", .least = least, .most = most};
    double budgets[TUNE_HALVING_RUNGS];
    char text[512] = "";
    int count = tune_halving_rungs(&h, budgets);
    assert_ok(count);
    for (int i = 0; i < count; i++)
        sprintf(text + strlen(text), "%s%.12g", i ? " " : "", budgets[i]);
    assert_string_equal(text, expected);
}

static void rungs(void **state)
{
    (void)state;
    budgets_are(1, 16, "1 2 4 8 16");
    budgets_are(1, 10, "1 2 4 10"); /* not 8: each rung has at least twice as much */
    budgets_are(5, 9, "9");
    budgets_are(.1, .4, "0.1 0.2 0.4");
    budgets_are(.5, 3, "0.5 1 3");
    budgets_are(7, 7, "7");
    struct tune_halving h = {.input = "steps", .least = 1e-9, .most = 1e12};
    double budgets[TUNE_HALVING_RUNGS];
    assert_int_equal(tune_halving_rungs(&h, budgets), -1);
    assert_error_has("more than 64 rungs");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
}

static void read_budget(void **state)
{
    static const char *const bad[] = {"steps", "steps=", "steps=4", "steps=1..", "steps=..4", "=1..4", "steps=4..1", "steps=0..4",
                                      "steps=-1..4", "steps=1..4x", "steps=1..inf", "steps=nan..4", "steps= 1..4", "steps=1.4", ""};
    struct tune_halving h;
    (void)state;
    assert_ok(tune_halving_read(&h, "max_steps=1..16"));
    assert_string_equal(h.input, "max_steps");
    assert_true(h.least == 1 && h.most == 16);
    assert_ok(tune_halving_read(&h, "s=0.25..1e2"));
    assert_true(h.least == .25 && h.most == 100);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tune_halving_read(&h, bad[i]), -1);
        assert_error_has("`budget`");
    }
}

/* The indexes that continue, as text. */
static void selects(bool maximize, const double *values, int count, const char *expected)
{
    struct tune_halving h = {.maximize = maximize};
    int selected[16];
    char text[64] = "";
    int n = tune_halving_select(&h, values, count, selected);
    assert_ok(n);
    for (int i = 0; i < n; i++)
        sprintf(text + strlen(text), "%s%d", i ? " " : "", selected[i]);
    assert_string_equal(text, expected);
}

static void selection(void **state)
{
    const double five[] = {5, 1, 4, 2, 3}, ties[] = {2, 1, 1, 1, 1, 2}, some[] = {NAN, 7, NAN, 5, 6, 8, NAN}, none[] = {NAN, NAN};
    (void)state;
    selects(false, five, 5, "1 3 4"); /* half of 5 is 3; in their order */
    selects(true, five, 5, "0 2 4");
    selects(false, five, 1, "0");     /* one at least */
    selects(false, ties, 6, "1 2 3"); /* the first among equal ones */
    selects(true, ties, 6, "0 1 5");
    selects(false, some, 7, "3 4");   /* half of those with a value */
    selects(true, none, 2, "");
    selects(false, none, 0, "");
}

static void next_rung(void **state)
{
    (void)state;
    assert_int_equal(tune_halving_next(0, 5, 40), 1);
    assert_int_equal(tune_halving_next(1, 5, 1), 4); /* nothing to compare: to the end */
    assert_int_equal(tune_halving_next(1, 5, 0), 5);
    assert_int_equal(tune_halving_next(4, 5, 3), 5);
    const double budgets[] = {1, 2, 4, 8, 16};
    int64_t counts[5];
    assert_true(tune_halving_plan(budgets, 5, 0, 80, counts) == 400);
    assert_int_equal(counts[4], 5);
    assert_true(tune_halving_plan(budgets, 5, 1, 3, counts) == 3 * 2 + 2 * 4 + 16);
    assert_true(counts[0] == 0 && counts[1] == 3 && counts[2] == 2 && counts[3] == 0 && counts[4] == 1);
}

/* ---- a space of 80 points ---- */

enum { POINTS = 80 };

/* What a step costs: three dimensions, the best point 6 % better than the next one. */
static double cost_of(int point)
{
    static const double batch[] = {1.30, 1.12, 1, 1.07, 1.25}, length[] = {1, 1.08, 1.2, 1.4}, threads[] = {1.5, 1.15, 1, 1.06};
    return batch[point / 16] * length[point / 4 % 4] * threads[point % 4];
}

/* A measurement: noise of 8 % for a budget of 1, that shrinks as the mean of so many steps does. */
static double measure(uint64_t seed, int point, double budget)
{
    double noise = tune_random_normal(seed, (uint64_t)budget, (uint64_t)point);
    return cost_of(point) * (1 + .08 / sqrt(budget) * noise);
}

/* The point that halving finds; *cost grows by the budgets of all measurements. */
static int found(uint64_t seed, bool maximize, double *cost)
{
    struct tune_halving h = {.input = "steps", .least = 1, .most = 16, .maximize = maximize};
    double budgets[TUNE_HALVING_RUNGS], values[POINTS];
    int points[POINTS], selected[POINTS], count = POINTS, best = 0, rungs = tune_halving_rungs(&h, budgets);
    for (int i = 0; i < POINTS; i++)
        points[i] = i;
    for (int rung = 0; rung < rungs; rung = tune_halving_next(rung, rungs, count)) {
        best = 0;
        for (int i = 0; i < count; i++) {
            values[i] = measure(seed, points[i], budgets[rung]) * (maximize ? -1 : 1);
            *cost += budgets[rung];
            best = maximize ? (values[i] > values[best] ? i : best) : (values[i] < values[best] ? i : best);
        }
        best = points[best];
        count = tune_halving_select(&h, values, count, selected);
        for (int i = 0; i < count; i++)
            points[i] = points[selected[i]];
    }
    return best;
}

/* The best point is found for at least 95 of 100 seeds, at no more than a third of the full cost. */
static void finds_the_best(void **state)
{
    int best = 0, hits[2] = {0, 0}, once = 0;
    (void)state;
    for (int i = 1; i < POINTS; i++)
        best = cost_of(i) < cost_of(best) ? i : best;
    for (int maximize = 0; maximize < 2; maximize++) {
        double cost = 0;
        for (uint64_t seed = 1; seed <= 100; seed++)
            hits[maximize] += found(seed, maximize, &cost) == best;
        assert_true(cost <= 100 * POINTS * 16 / 3.);
    }
    for (uint64_t seed = 1; seed <= 100; seed++) { /* all points with the least budget are not enough */
        int first = 0;
        for (int i = 1; i < POINTS; i++)
            first = measure(seed, i, 1) < measure(seed, first, 1) ? i : first;
        once += first == best;
    }
    print_message("found for %d of 100 seeds; by one round with the least budget for %d\n", hits[0], once);
    assert_int_equal(hits[0], hits[1]);
    assert_true(hits[0] >= 95);
    assert_true(once < 80);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rungs),     cmocka_unit_test(read_budget),   cmocka_unit_test(selection),
                                       cmocka_unit_test(next_rung), cmocka_unit_test(finds_the_best)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
