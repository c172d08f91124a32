/* test_predictor.c - models of measured entities: their intervals, where they say nothing, the expected gain, the measured range. */
#include "test.h"

#include "core/random.h"
#include "sweeps/surrogate/predictor.h"

enum { SIZE, RATE, KIND, N = 3 };

static struct tune_space *make_space(void)
{
    static const char text[] = "entitySpace:\n"
                               "  - {identifier: size, propertyDomain: {values: [1, 2, 4, 8, 16, 32]}}\n"
                               "  - {identifier: rate, propertyDomain: {domainRange: [-1, 1], variableType: CONTINUOUS_VARIABLE_TYPE}}\n"
                               "  - {identifier: kind, propertyDomain: {values: [a, b, c]}}\n";
    struct tune_document *d = tune_document_parse("space.yaml", text, strlen(text), false);
    struct tune_space *s = d ? tune_space_parse(d) : NULL;
    assert_got(s);
    return s;
}

static void make_entity(struct tune_value *v, double size, double rate, const char *kind)
{
    v[SIZE] = tune_value_float(size);
    v[RATE] = tune_value_float(rate);
    v[KIND] = tune_value_text(kind);
}

/* Entity i: of sizes 1 to 16, kinds a and b. */
static void draw_entity(struct tune_value *v, int i)
{
    make_entity(v, exp2(floor(5 * tune_random_uniform(3, 0, (uint64_t)i))), 2 * tune_random_uniform(3, 1, (uint64_t)i) - 1,
                tune_random_uniform(3, 2, (uint64_t)i) < 0.5 ? "a" : "b");
}

static double truth(const struct tune_value *v)
{
    double size, rate;
    tune_value_number(&v[SIZE], &size);
    tune_value_number(&v[RATE], &rate);
    return 3 + log2(size) * (1 - rate * rate) + (*v[KIND].text == 'b');
}

/* A model of 40 entities with values from truth, or their exponentials. Some are invalid if asked: of rate
 * above 0.6, and of size 16 and kind a. */
static struct tune_predictor *make_model(const struct tune_space *s, bool exponential, bool invalid)
{
    struct tune_predictor *p = tune_predictor_new(s);
    assert_got(p);
    for (int i = 0; i < 40; i++) {
        struct tune_value v[N];
        draw_entity(v, i);
        double value = (exponential ? exp(truth(v)) : truth(v) - 5) * (1 + 0.001 * tune_random_normal(3, 3, (uint64_t)i));
        assert_int_equal(tune_predictor_add(p, v, &value, invalid && (v[RATE].number > 0.6 || (v[SIZE].number == 16 && *v[KIND].text == 'a')) ? 0 : 1), 1);
    }
    assert_ok(tune_predictor_fit(p, "y"));
    return p;
}

static void test_intervals(void **state)
{
    struct tune_space *s = make_space();
    (void)state;
    for (int exponential = 0; exponential < 2; exponential++) {
        struct tune_predictor *p = make_model(s, exponential, false);
        int within = 0;
        double error = 0;
        assert_true(tune_predictor_logarithm(p) == exponential);
        for (int i = 100; i < 200; i++) {
            struct tune_value v[N];
            const struct tune_value *at = v;
            struct tune_predicted is;
            draw_entity(v, i);
            if (fabs(v[RATE].number) > 0.9)
                v[RATE].number = 0; /* inside the measured range */
            assert_ok(tune_predictor_at(p, &at, 1, &is));
            assert_string_equal(is.why, "");
            double is_true = exponential ? exp(truth(v)) : truth(v) - 5;
            within += is.low < is_true && is_true < is.high;
            error += exponential ? fabs(log(is.mean / is_true)) : fabs(is.mean - is_true);
            assert_true(is.low < is.mean && is.mean < is.high && is.unsure >= 0 && is.unsure <= 1 && is.valid == 1);
        }
        assert_true(within >= 85);
        assert_true(error / 100 < 0.1);
        tune_predictor_free(p);
    }
    tune_space_free(s);
}

static void expect_why(const struct tune_predictor *p, double size, double rate, const char *kind, const char *why)
{
    struct tune_value v[N];
    const struct tune_value *at = v;
    struct tune_predicted is;
    make_entity(v, size, rate, kind);
    assert_ok(tune_predictor_at(p, &at, 1, &is));
    if (!*why ? *is.why : !strstr(is.why, why))
        fail_msg("\"%s\" lacks \"%s\"", is.why, why);
}

static void test_unknown(void **state)
{
    struct tune_space *s = make_space();
    struct tune_predictor *p = make_model(s, true, false);
    struct tune_value v[N];
    const struct tune_value *at = v;
    struct tune_predicted is;
    (void)state;
    expect_why(p, 3, 0.1, "a", "");
    expect_why(p, 32, 0.1, "a", "size 32.0 is outside the measured 1 to 16");
    expect_why(p, 0.5, 0.1, "a", "size 0.5 is outside the measured 1 to 16");
    expect_why(p, 0, 0.1, "a", "size 0.0 is not a number above 0");
    expect_why(p, NAN, 0.1, "a", "size nan is not a number");
    expect_why(p, 4, 0.1, "c", "kind c was never measured");
    expect_why(p, 4, 0.1, "d", "kind d is not a value of the space");
    expect_why(p, 4, 1.5, "a", "rate 1.5 is outside the measured -");
    v[SIZE] = tune_value_text("many");
    v[RATE] = tune_value_float(0);
    v[KIND] = tune_value_text("a");
    assert_ok(tune_predictor_at(p, &at, 1, &is));
    assert_non_null(strstr(is.why, "size many is not a number"));
    for (int i = 0; i < 40; i++) { /* a measured entity is its own nearest */
        draw_entity(v, i);
        assert_ok(tune_predictor_at(p, &at, 1, &is));
        assert_true(is.measured && is.nearest == i && is.unsure < 0.2);
    }
    make_entity(v, 4, 0.123456, "a");
    assert_ok(tune_predictor_at(p, &at, 1, &is));
    assert_false(is.measured);
    tune_predictor_free(p);
    tune_space_free(s);
}

static void test_validity(void **state)
{
    struct tune_space *s = make_space();
    struct tune_predictor *p = make_model(s, true, true);
    struct tune_value v[2][N];
    const struct tune_value *at[] = {v[0], v[1]};
    struct tune_predicted is[2];
    (void)state;
    assert_true(tune_predictor_count(p) + tune_predictor_invalid(p) == 40 && tune_predictor_invalid(p) > 2);
    make_entity(v[0], 4, -0.5, "b");
    make_entity(v[1], 16, 0.2, "a");
    assert_ok(tune_predictor_at(p, at, 2, is));
    if (*is[0].why || *is[1].why || is[0].valid < 0.8 || is[1].valid > 0.5)
        fail_msg("%s%s %g %g", is[0].why, is[1].why, is[0].valid, is[1].valid);
    tune_predictor_free(p);
    tune_space_free(s);
}

/* The expected gain is the mean of the gains of draws, over the best measured entity as the model sees it. */
static void test_gain(void **state)
{
    struct tune_space *s = make_space();
    (void)state;
    for (int k = 0; k < 4; k++) {
        bool exponential = k & 1, maximize = k & 2;
        struct tune_predictor *p = make_model(s, exponential, false);
        struct tune_predicted is = {.deviation = 0.7, .valid = 1};
        double best = maximize ? -INFINITY : INFINITY, sum = 0;
        for (int i = 0; i < 40; i++) {
            struct tune_predicted one;
            const struct tune_value *at = tune_predictor_entity(p, i);
            assert_ok(tune_predictor_at(p, &at, 1, &one));
            best = maximize ? fmax(best, one.middle) : fmin(best, one.middle);
        }
        is.middle = best + 0.1;
        for (int i = 0; i < 100000; i++) {
            double x = is.middle + is.deviation * tune_random_normal(9, 0, (uint64_t)i);
            double gain = exponential ? exp(x) - exp(best) : x - best;
            sum += fmax(maximize ? gain : -gain, 0) / 100000;
        }
        assert_float_equal(tune_predictor_gain(p, &is, maximize) / sum, 1, 0.03);
        is.valid = 0.5;
        assert_float_equal(tune_predictor_gain(p, &is, maximize) / sum, 0.5, 0.015);
        tune_predictor_free(p);
    }
    tune_space_free(s);
}

static void test_places(void **state)
{
    struct tune_space *s = make_space();
    struct tune_predictor *p = make_model(s, true, false);
    int count;
    (void)state;
    const double *sizes = tune_predictor_places(p, SIZE, &count);
    assert_int_equal(count, 5);
    for (int i = 0; i < 5; i++)
        assert_float_equal(sizes[i], i / 5.0, 1e-12);
    const double *kinds = tune_predictor_places(p, KIND, &count);
    assert_true(count == 2 && kinds[0] == 0 && kinds[1] == 1);
    tune_predictor_places(p, RATE, &count);
    assert_int_equal(count, 0);
    assert_float_equal(tune_predictor_place(p, SIZE, 0.99), 0.8, 1e-12);
    assert_float_equal(tune_predictor_place(p, SIZE, 1), 0.8, 1e-12);
    assert_float_equal(tune_predictor_place(p, KIND, 0.6), 1, 0);
    assert_true(tune_predictor_place(p, RATE, 0) >= 0 && tune_predictor_place(p, RATE, 1) <= 1);
    tune_predictor_free(p);
    tune_space_free(s);
}

static void test_refused(void **state)
{
    struct tune_space *s = make_space();
    struct tune_predictor *p = tune_predictor_new(s);
    struct tune_value v[N];
    double values[] = {2, 2};
    (void)state;
    assert_got(p);
    assert_int_equal(tune_predictor_fit(p, "y"), -1);
    assert_error_has("nothing is known of y");
    make_entity(v, 3, 0, "a");
    assert_int_equal(tune_predictor_add(p, v, values, 1), 0); /* 3 is not in the space */
    make_entity(v, 4, 0, "a");
    assert_int_equal(tune_predictor_add(p, v, values, 2), 1);
    assert_int_equal(tune_predictor_fit(p, "y"), -1);
    assert_error_has("only one entity has a value of y");
    make_entity(v, 8, 0, "a");
    assert_int_equal(tune_predictor_add(p, v, values, 1), 1);
    assert_int_equal(tune_predictor_fit(p, "y"), -1);
    assert_error_has("all 3 values of y are 2");
    tune_predictor_free(p);
    assert_got(p = tune_predictor_new(s));
    for (int i = 0; i < 2; i++) {
        values[0] = 1e15 + i;
        make_entity(v, i ? 8 : 4, 0, "a");
        assert_int_equal(tune_predictor_add(p, v, values, 1), 1);
    }
    assert_int_equal(tune_predictor_fit(p, "y"), -1);
    assert_error_has("all 2 values of y are 1e+15 to ten digits");
    tune_predictor_free(p);
    assert_got(p = tune_predictor_new(s));
    make_entity(v, 4, 0, "a");
    assert_int_equal(tune_predictor_add(p, v, values + 1, 1), 1);
    make_entity(v, 8, 0, "a");
    assert_int_equal(tune_predictor_add(p, v, values + 1, 1), 1);
    make_entity(v, 16, 0, "a");
    values[0] = 5;
    assert_int_equal(tune_predictor_add(p, v, values, 1), 1);
    assert_ok(tune_predictor_fit(p, "y"));
    expect_why(p, 8, 0.1, "a", "rate was only measured at 0");
    expect_why(p, 8, 0, "b", "kind b was never measured");
    expect_why(p, 10, 0, "a", "");
    tune_predictor_free(p);
    tune_space_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals), cmocka_unit_test(test_unknown), cmocka_unit_test(test_validity),
        cmocka_unit_test(test_gain),      cmocka_unit_test(test_places),  cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
