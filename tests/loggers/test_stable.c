/* test_stable.c - the speed of steps: which are warm-up, how surely the others are known. */
#include "test.h"

#include "core/random.h"
#include "core/statistics.h"
#include "loggers/stable.h"

/* The same by the definitions, one for each number of steps left out. */
static struct tune_stable_speed plainly(const double *tokens, const double *seconds, int n)
{
    struct tune_stable_speed v = {0, 0, 0, 0};
    double least = INFINITY;
    int from = -1, most = n / 2 < n - 10 ? n / 2 : n - 10;
    for (int d = 0; d <= most; d++) {
        double mean = 0, z = 0, m = n - d;
        for (int i = d; i < n; i++)
            mean += tokens[i] / seconds[i] / m;
        for (int i = d; i < n; i++)
            z += pow(tokens[i] / seconds[i] - mean, 2);
        z /= m * m;
        if (z < least)
            least = z, from = d;
    }
    if (n < 10 || (from == most && most > 0))
        return v;
    double all = 0, time = 0, squares = 0, products = 0;
    for (int i = from; i < n; i++)
        all += tokens[i], time += seconds[i];
    for (int i = from; i < n; i++)
        squares += pow(tokens[i] - all / time * seconds[i], 2);
    for (int i = from + 1; i < n; i++)
        products += (tokens[i] - all / time * seconds[i]) * (tokens[i - 1] - all / time * seconds[i - 1]);
    double m = n - from, alike = products > 0 ? products / squares : 0, effective = m * (1 - alike) / (1 + alike);
    effective = effective < 2 ? 2 : effective;
    v.mean = all / time;
    v.half_width = tune_student_t(.05, (int)effective - 1) * sqrt(squares / (m - 1)) / sqrt(effective) / (time / m);
    v.warm_up = from;
    v.steps = n - from;
    return v;
}

static void speed(void **state)
{
    (void)state;
    enum { MOST = 120 };
    double tokens[MOST], seconds[MOST];
    int answers = 0;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct tune_stable *s = calloc(1, sizeof *s);
        int n = 1 + (int)(tune_random_u64(seed, 0, 0) % MOST), slow = (int)(tune_random_u64(seed, 0, 1) % 12);
        double noise = .1 * tune_random_uniform(seed, 0, 2), memory = tune_random_uniform(seed, 0, 3), last = 0;
        for (int i = 0; i < n; i++) {
            last = memory * last + tune_random_normal(seed, 1, (uint64_t)i);
            tokens[i] = 100 + (double)(tune_random_u64(seed, 2, (uint64_t)i) % 50);
            seconds[i] = tokens[i] * .01 * exp(noise * last) * (i < slow ? 3 - 2. * i / slow : 1);
            tune_stable_add(s, tokens[i], seconds[i]);
        }
        struct tune_stable_speed got = tune_stable_speed(s), expected = plainly(tokens, seconds, n);
        assert_int_equal(got.steps, expected.steps);
        assert_int_equal(got.warm_up, expected.warm_up);
        assert_true(fabs(got.mean - expected.mean) <= 1e-9 * expected.mean);
        assert_true(fabs(got.half_width - expected.half_width) <= 1e-6 * expected.half_width + 1e-9);
        answers += got.steps > 0;
        free(s);
    }
    assert_true(answers > 150);
}

/* Of a thousand runs whose true speed is 100, about 950 say so; and the warm-up is left out. */
static void confidence(void **state)
{
    (void)state;
    static const struct { double memory; int least; } kinds[] = {{0, 925}, {.5, 890}};
    for (int k = 0; k < 2; k++) {
        int right = 0, answers = 0;
        for (uint64_t seed = 0; seed < 1000; seed++) {
            struct tune_stable *s = calloc(1, sizeof *s);
            double last = 0;
            for (int i = 0; i < 80; i++) {
                last = kinds[k].memory * last + tune_random_normal(seed, 7, (uint64_t)i);
                tune_stable_add(s, 1000, 10 * (1 + .02 * last) * (i < 6 ? 4 : 1));
            }
            struct tune_stable_speed v = tune_stable_speed(s);
            answers += v.steps > 0;
            right += v.steps > 0 && fabs(v.mean - 100) <= v.half_width;
            assert_true(v.steps == 0 || v.warm_up >= 6);
            free(s);
        }
        if (answers < 900 || right < answers * kinds[k].least / 1000 || right > answers * 985 / 1000)
            fail_msg("%d of %d", right, answers);
    }
}

static void speed_of_many(void **state)
{
    (void)state;
    struct tune_stable *s = calloc(1, sizeof *s);
    tune_stable_add(s, 0, 1);
    tune_stable_add(s, 1, 0);
    for (int i = 1; i <= 20000; i++) {
        tune_stable_add(s, 10, i % 2 ? 1 : 3);
        struct tune_stable_speed v = tune_stable_speed(s);
        assert_true((v.steps > 0) == (i >= 10) || i < 100); /* the first hundred may be warm-up for all one knows */
        if (i == 1000)
            assert_true(v.half_width > 0 && fabs(v.mean - 5) < .1);
    }
    struct tune_stable_speed v = tune_stable_speed(s); /* pairs by now: each is as fast as the next */
    assert_true(v.warm_up + v.steps > 19900 && v.warm_up + v.steps <= 20000 && fabs(v.mean - 5) < 1e-9 && v.half_width < 1e-9);
    memset(s, 0, sizeof *s);
    for (int i = 0; i < 200; i++) { /* faster and faster: no end of the warm-up in sight */
        tune_stable_add(s, 100, 100 / (10 + .2 * i));
        assert_true(i < 30 || tune_stable_speed(s).steps == 0);
    }
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speed),
        cmocka_unit_test(confidence),
        cmocka_unit_test(speed_of_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
