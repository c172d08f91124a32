/* test_token_sampler.c - the next token: filters against sorting in float64, draws against their distribution, errors. */
#include "test.h"

#include <float.h>

#include "core/random.h"
#include "generators/token_sampler.h"

enum { MOST = 5000 };

/* With sanitizers and under an emulator a draw takes ten times as long. */
static bool slow(void)
{
#ifdef __SANITIZE_ADDRESS__
    return true;
#else
    return emulated();
#endif
}

static struct tune_token_sampler *new_sampler(struct tune_sampling_options o, int64_t seed, int V, int slots)
{
    struct tune_token_sampler *s = tune_token_sampler_new(&o, seed, V, slots);
    assert_got(s);
    return s;
}

/* ---- the reference: everything in float64, by a full sort ---- */

static const double *sort_by;

static int more_likely(const void *a, const void *b)
{
    int i = *(const int *)a, j = *(const int *)b;
    double x = sort_by[i], y = sort_by[j];
    return x != y ? (x < y) - (x > y) : (i > j) - (i < j);
}

/* p: the probabilities [V]; 0: dropped. margin: how far, in mass, top_p's border is from its neighbours. */
static void reference(const struct tune_sampling_options *o, int V, const float *logits, const bool *seen, double *p,
                      double *margin)
{
    static double x[MOST];
    static int order[MOST];
    double total = 0, sum = 0, kept = 0;
    for (int i = 0; i < V; i++) {
        x[i] = logits[i];
        if (seen && seen[i])
            x[i] = logits[i] < 0 ? logits[i] * (float)o->repetition_penalty : logits[i] / (float)o->repetition_penalty;
        order[i] = i;
        p[i] = 0;
    }
    sort_by = x;
    qsort(order, (size_t)V, sizeof *order, more_likely);
    *margin = 1;
    if (o->temperature == 0) {
        p[order[0]] = 1;
        return;
    }
    int n = V;
    if (o->top_k > 0 && o->top_k < V)
        for (n = o->top_k; n < V && x[order[n]] == x[order[o->top_k - 1]]; n++)
            ;
    for (int k = 0; k < n; k++)
        total += exp((x[order[k]] - x[order[0]]) / o->temperature);
    for (int k = 0; k < n && (o->top_p == 1 || sum < o->top_p); k++) {
        double weight = exp((x[order[k]] - x[order[0]]) / o->temperature);
        sum += weight / total;
        if (o->top_p < 1)
            *margin = fmin(*margin, fabs(sum - o->top_p));
        *margin = fmin(*margin, o->min_p > 0 ? fabs(weight - o->min_p) : 1);
        p[order[k]] = weight >= o->min_p ? weight : 0;
        kept += p[order[k]];
    }
    for (int i = 0; i < V; i++)
        p[i] /= kept;
}

static double draw(uint64_t stream, uint64_t i)
{
    return tune_random_uniform(11, stream, i);
}

static double pick(uint64_t stream, uint64_t i, const double *from, int count)
{
    return from[(int)(draw(stream, i) * count)];
}

/* Logits of several shapes: continuous, on a coarse grid with many ties, wide, nearly all alike. */
static void random_logits(uint64_t turn, int V, float *logits)
{
    double scale = pick(turn, 1u << 20, (double[]){0.3, 1, 3, 10}, 4);
    int grid = (int)pick(turn, (1u << 20) + 1, (double[]){0, 0, 1, 4}, 4);
    for (int i = 0; i < V; i++) {
        double x = scale * tune_random_normal(12, turn, (uint64_t)i);
        logits[i] = (float)(grid > 0 ? round(x * grid) / grid : x);
    }
}

static void filters(void **state)
{
    (void)state;
    static float logits[MOST], ours[MOST];
    static double p[MOST];
    static bool seen[MOST];
    int compared = 0, near = 0, tied = 0;
    for (uint64_t turn = 0; turn < 6000; turn++) {
        int V = (int)pick(turn, 1u << 21, (double[]){1, 2, 7, 63, 64, 65, 200, 1000, 3000, MOST}, 10);
        struct tune_sampling_options o = {.repetition_penalty = 1, .top_p = 1, .temperature = 1};
        uint64_t c = 1u << 22;
        o.temperature = pick(turn, c++, (double[]){1, 1, 0.7, 0.1, 2, 100}, 6);
        o.top_k = (int)pick(turn, c++, (double[]){0, 0, 1, 2, 10, 50, 64, 4999, 100000}, 9);
        o.top_p = pick(turn, c++, (double[]){1, 1, 0.9, 0.5, 0.95, 0.1, 1e-6, 0.9999}, 8);
        o.min_p = pick(turn, c++, (double[]){0, 0, 0.05, 0.3, 0.99}, 5);
        o.repetition_penalty = pick(turn, c++, (double[]){1, 1.2, 2, 0.5}, 4);
        random_logits(turn, V, logits);
        struct tune_token_sampler *s = new_sampler(o, 1, V, 2);
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < V / 3; i++) {
            int32_t id = (int32_t)(draw(turn, c++) * V);
            seen[id] = true;
            assert_ok(tune_token_sampler_accept(s, 1, &id, 1));
        }
        double margin;
        reference(&o, V, logits, seen, p, &margin);
        assert_ok(tune_token_sampler_distribution(s, 1, logits, ours));
        tune_token_sampler_free(s);
        if (margin < 2e-6) { /* float32 may see the border on the other side */
            near++;
            continue;
        }
        compared++;
        for (int i = 0; i < V; i++) {
            /* float32 has no weights below exp(-87) */
            if ((ours[i] > 0) != (p[i] > 0) ? fmax(ours[i], p[i]) > 1e-35 : fabs(ours[i] - p[i]) > 2e-5 * p[i] + 1e-35)
                fail_msg("turn %d, V %d, T %g, k %d, p %g, min_p %g, penalty %g: id %d has %.9g, expected %.9g", (int)turn, V,
                         o.temperature, o.top_k, o.top_p, o.min_p, o.repetition_penalty, i, ours[i], p[i]);
            tied += i > 0 && p[i] > 0 && p[i] == p[i - 1];
        }
    }
    print_message("%d distributions compared, %d too near a border; %d ties of neighbours kept\n", compared, near, tied);
    assert_true(compared > 5000 && tied > 1000);
}

/* Borders by hand. */
static void borders(void **state)
{
    (void)state;
    float p[10], even[10] = {0}, steps[6] = {1, 3, 2, 3, 2, 0};
    struct tune_token_sampler *s = new_sampler((struct tune_sampling_options){1, 0, 0.9, 0, 1}, 1, 10, 1);
    assert_ok(tune_token_sampler_distribution(s, 0, even, p)); /* ten alike: the first nine have the mass */
    for (int i = 0; i < 10; i++)
        assert_true(fabs(p[i] - (i < 9 ? 1 / 9.0 : 0)) < 1e-7);
    tune_token_sampler_free(s);
    s = new_sampler((struct tune_sampling_options){1, 0, 0.05, 0, 1}, 1, 10, 1); /* at least one stays */
    assert_ok(tune_token_sampler_distribution(s, 0, even, p));
    assert_true(p[0] == 1 && p[1] == 0);
    tune_token_sampler_free(s);
    s = new_sampler((struct tune_sampling_options){1, 3, 1, 0, 1}, 1, 6, 1); /* the third is a tie: both stay */
    assert_ok(tune_token_sampler_distribution(s, 0, steps, p));
    assert_true(p[0] == 0 && p[1] > 0 && p[2] > 0 && p[2] == p[4] && p[5] == 0);
    tune_token_sampler_free(s);
    s = new_sampler((struct tune_sampling_options){1, 0, 1, 0.5, 1}, 1, 6, 1); /* exp(-1) is below half */
    assert_ok(tune_token_sampler_distribution(s, 0, steps, p));
    assert_true(p[1] == 0.5f && p[3] == 0.5f && p[2] == 0);
    tune_token_sampler_free(s);
    /* extreme temperatures and logits */
    float far[4] = {-FLT_MAX, 5, FLT_MAX, -3};
    s = new_sampler((struct tune_sampling_options){1e-300, 0, 1, 0, 2}, 1, 4, 1);
    assert_ok(tune_token_sampler_accept(s, 0, (int32_t[]){0}, 1));
    assert_ok(tune_token_sampler_distribution(s, 0, far, p));
    assert_true(p[0] == 0 && p[1] == 0 && p[2] == 1 && p[3] == 0);
    tune_token_sampler_free(s);
    s = new_sampler((struct tune_sampling_options){1, 0, 1, 0, 0.5}, 1, 4, 1); /* no infinity from the penalty */
    assert_ok(tune_token_sampler_accept(s, 0, (int32_t[]){2}, 1));
    assert_ok(tune_token_sampler_distribution(s, 0, far, p));
    assert_true(p[0] == 0 && p[1] == 0 && p[2] == 1 && p[3] == 0);
    tune_token_sampler_free(s);
    s = new_sampler((struct tune_sampling_options){1e300, 3, 1, 0, 1}, 1, 6, 1);
    assert_ok(tune_token_sampler_distribution(s, 0, steps, p));
    assert_true(p[0] == 0 && p[1] == 0.25f && p[4] == 0.25f);
    tune_token_sampler_free(s);
}

/* Weights near 1 have few digits less than float32. */
static void weights(void **state)
{
    (void)state;
    enum { V = 512 };
    static float logits[V], p[V];
    double total = 0;
    struct tune_token_sampler *s = new_sampler((struct tune_sampling_options){1, 0, 1, 0, 1}, 1, V, 1);
    for (int i = 0; i < V; i++) {
        logits[i] = (float)i / 128;
        total += exp(logits[i]);
    }
    assert_ok(tune_token_sampler_distribution(s, 0, logits, p));
    for (int i = 0; i < V; i++)
        assert_true(fabs(p[i] / (exp(logits[i]) / total) - 1) < 1e-6);
    tune_token_sampler_free(s);
}

/* ---- greedy and the penalty ---- */

static void greedy(void **state)
{
    (void)state;
    static float logits[1000];
    struct tune_token_sampler *s = new_sampler((struct tune_sampling_options){0, 5, 0.5, 0.1, 1}, 1, 1000, 1);
    int32_t id;
    for (uint64_t turn = 0; turn < 500; turn++) {
        int best = 0;
        random_logits(turn, 1000, logits);
        for (int i = 1; i < 1000; i++)
            best = logits[i] > logits[best] ? i : best;
        assert_ok(tune_token_sampler_next(s, 0, 0, logits, &id, NULL));
        assert_int_equal(id, best);
    }
    memset(logits, 0, sizeof logits);
    logits[0] = -0.0f; /* equal to 0 */
    assert_ok(tune_token_sampler_next(s, 0, 0, logits, &id, NULL));
    assert_int_equal(id, 0);
    float p[1000];
    logits[77] = 1;
    assert_ok(tune_token_sampler_distribution(s, 0, logits, p));
    assert_true(p[77] == 1 && p[0] == 0);
    tune_token_sampler_free(s);
}

static void penalty(void **state)
{
    (void)state;
    const float logits[4] = {2, 1.5f, -1, -1.2f}, low[4] = {-1, -1.5f, -4, -1.8f};
    struct tune_token_sampler *s = new_sampler((struct tune_sampling_options){0, 0, 1, 0, 2}, 1, 4, 2);
    int32_t id;
    double log_prob, sum = exp(2) + exp(1.5) + exp(-1) + exp(-1.2);
    assert_ok(tune_token_sampler_next(s, 0, 0, logits, &id, &log_prob));
    assert_int_equal(id, 0);
    assert_true(fabs(log_prob - (2 - log(sum))) < 1e-6);
    /* chosen, so seen: 2 / 2 is below 1.5. The probability stays the model's own. */
    assert_ok(tune_token_sampler_next(s, 0, 1, logits, &id, &log_prob));
    assert_int_equal(id, 1);
    assert_true(fabs(log_prob - (1.5 - log(sum))) < 1e-6);
    assert_ok(tune_token_sampler_next(s, 0, 2, logits, &id, NULL));
    assert_int_equal(id, 0); /* 1 against 0.75 */
    assert_ok(tune_token_sampler_next(s, 0, 3, low, &id, NULL));
    assert_int_equal(id, 3); /* -2 and -3 against -1.8 */
    assert_ok(tune_token_sampler_next(s, 1, 0, logits, &id, NULL));
    assert_int_equal(id, 0); /* the other slot has seen nothing */
    assert_ok(tune_token_sampler_start(s, 0, 9));
    assert_ok(tune_token_sampler_next(s, 0, 0, (float[]){-1, -1.5f, -1.9f, -9}, &id, NULL));
    assert_int_equal(id, 0); /* forgotten; if seen, it had -2 */
    assert_ok(tune_token_sampler_accept(s, 0, (int32_t[]){0, 0, 1, 0}, 4));
    assert_ok(tune_token_sampler_next(s, 0, 0, low, &id, NULL));
    assert_int_equal(id, 3); /* seen twice counts once */
    tune_token_sampler_free(s);
}

/* ---- draws ---- */

/* Chi-square of draws against the probabilities that `expected` asks for; cells below 20 draws are one. */
static double chi_square(struct tune_sampling_options drawn, struct tune_sampling_options expected, int *cells)
{
    enum { V = 120 };
    const int draws = slow() ? 60000 : 300000;
    static float logits[V];
    static double p[V];
    static int count[V];
    double margin, statistic = 0, rest = 0, rest_count = 0;
    for (int i = 0; i < V; i++)
        logits[i] = (float)(2.5 * tune_random_normal(3, 0, (uint64_t)i));
    reference(&expected, V, logits, NULL, p, &margin);
    memset(count, 0, sizeof count);
    struct tune_token_sampler *s = new_sampler(drawn, 42, V, 4);
    for (int i = 0; i < draws; i++) {
        int32_t id;
        assert_ok(tune_token_sampler_next(s, i % 4, i / 4, logits, &id, NULL));
        count[id]++;
    }
    tune_token_sampler_free(s);
    *cells = 0;
    for (int i = 0; i < V; i++)
        if (p[i] * draws >= 20) {
            statistic += pow(count[i] - p[i] * draws, 2) / (p[i] * draws);
            ++*cells;
        } else {
            rest += p[i] * draws;
            rest_count += count[i];
        }
    if (rest > 0) {
        statistic += pow(rest_count - rest, 2) / rest;
        ++*cells;
    } else if (rest_count > 0) {
        statistic = INFINITY; /* what must never be drawn was */
    }
    return statistic;
}

/* The bound of chi-square with df degrees that a right sampler exceeds about once in a million (Wilson & Hilferty). */
static double bound(int df)
{
    double a = 2.0 / (9.0 * df);
    return df * pow(1 - a + 4.75 * sqrt(a), 3);
}

static void distribution(void **state)
{
    (void)state;
    static const struct tune_sampling_options all[] = {
        {1, 0, 1, 0, 1}, {0.7, 0, 1, 0, 1}, {1, 50, 1, 0, 1}, {1.3, 0, 0.9, 0, 1}, {1, 0, 1, 0.05, 1}, {0.9, 40, 0.8, 0.1, 1},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        int cells;
        struct tune_sampling_options wrong = all[i];
        double right = chi_square(all[i], all[i], &cells);
        print_message("T %g, k %d, p %g, min_p %g: chi-square %.1f with %d cells, bound %.1f\n", all[i].temperature, all[i].top_k,
                      all[i].top_p, all[i].min_p, right, cells, bound(cells - 1));
        assert_true(cells >= 5 && right < bound(cells - 1));
        wrong.temperature *= 1.03; /* the test can tell */
        double beyond = chi_square(wrong, all[i], &cells);
        print_message("    drawn at temperature %g: %.1f\n", wrong.temperature, beyond);
        assert_true(slow() || beyond > bound(cells - 1)); /* it needs all the draws */
    }
}

static void probabilities(void **state)
{
    (void)state;
    enum { V = 777 };
    static float logits[V];
    struct tune_token_sampler *s = new_sampler((struct tune_sampling_options){0.5, 20, 0.9, 0.01, 1.3}, 1, V, 1);
    for (uint64_t turn = 0; turn < 2000; turn++) {
        double sum = 0, log_prob;
        int32_t id;
        random_logits(turn, V, logits);
        for (int i = 0; i < V; i++)
            sum += exp((double)logits[i]);
        assert_ok(tune_token_sampler_next(s, 0, (int64_t)turn, logits, &id, &log_prob));
        assert_true(fabs(log_prob - (logits[id] - log(sum))) < 1e-5 * (1 + fabs(log_prob))); /* float32 exponentials */
    }
    tune_token_sampler_free(s);
}

/* The same row draws the same in any slot, batch and order of calls; other rows and seeds draw otherwise. */
static void rows(void **state)
{
    (void)state;
    enum { V = 500, T = 60, B = 3 };
    static float logits[T][V];
    static int32_t alone[B][T];
    struct tune_sampling_options o = {1.5, 0, 0.95, 0, 1.2};
    for (int t = 0; t < T; t++)
        random_logits((uint64_t)(4 * t), V, logits[t]);
    for (int b = 0; b < B; b++) {
        struct tune_token_sampler *s = new_sampler(o, 5, V, 1);
        assert_ok(tune_token_sampler_start(s, 0, 100 + b));
        for (int t = 0; t < T; t++)
            assert_ok(tune_token_sampler_next(s, 0, t, logits[t], &alone[b][t], NULL));
        tune_token_sampler_free(s);
    }
    struct tune_token_sampler *s = new_sampler(o, 5, V, B), *other = new_sampler(o, 6, V, 1);
    int32_t id;
    int same_row = 0, same_seed = 0;
    double log_prob;
    assert_ok(tune_token_sampler_start(other, 0, 100));
    for (int b = 0; b < B; b++)
        assert_ok(tune_token_sampler_start(s, b, 102 - b));
    for (int t = 0; t < T; t++) {
        for (int b = 0; b < B; b++) {
            assert_ok(tune_token_sampler_next(s, b, t, logits[t], &id, b == 1 ? &log_prob : NULL));
            assert_int_equal(id, alone[2 - b][t]);
        }
        assert_ok(tune_token_sampler_next(other, 0, t, logits[t], &id, NULL));
        same_row += alone[0][t] == alone[1][t];
        same_seed += alone[0][t] == id;
    }
    assert_true(same_row < T / 2 && same_seed < T / 2);
    tune_token_sampler_free(s);
    tune_token_sampler_free(other);
    /* at first slot i holds row i */
    s = new_sampler(o, 5, V, B);
    other = new_sampler(o, 5, V, B);
    assert_ok(tune_token_sampler_start(other, 0, 2));
    for (int t = 0; t < T; t++) {
        assert_ok(tune_token_sampler_next(s, 2, t, logits[t], &id, NULL));
        assert_ok(tune_token_sampler_next(other, 0, t, logits[t], &alone[0][t], NULL));
        assert_int_equal(id, alone[0][t]);
    }
    tune_token_sampler_free(s);
    tune_token_sampler_free(other);
}

/* ---- errors ---- */

static void options(void **state)
{
    (void)state;
    static const struct {
        struct tune_sampling_options o;
        const char *name;
    } wrong[] = {
        {{-0.1, 0, 1, 0, 1}, "`temperature`"}, {{NAN, 0, 1, 0, 1}, "`temperature`"}, {{INFINITY, 0, 1, 0, 1}, "`temperature`"},
        {{1, -1, 1, 0, 1}, "`top_k`"},         {{1, 0, 0, 0, 1}, "`top_p`"},         {{1, 0, 1.01, 0, 1}, "`top_p`"},
        {{1, 0, NAN, 0, 1}, "`top_p`"},        {{1, 0, 1, -0.1, 1}, "`min_p`"},      {{1, 0, 1, 1, 1}, "`min_p`"},
        {{1, 0, 1, NAN, 1}, "`min_p`"},        {{1, 0, 1, 0, 0}, "`repetition_penalty`"},
        {{1, 0, 1, 0, INFINITY}, "`repetition_penalty`"}, {{1, 0, 1, 0, NAN}, "`repetition_penalty`"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(tune_sampling_check(&wrong[i].o), -1);
        assert_error_has(wrong[i].name);
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
        assert_null(tune_token_sampler_new(&wrong[i].o, 1, 10, 1));
    }
    struct tune_sampling_options right = {0, 0, 1, 0, 1};
    assert_ok(tune_sampling_check(&right));
    assert_null(tune_token_sampler_new(&right, 1, 0, 1));
    assert_null(tune_token_sampler_new(&right, 1, 1, 0));
    tune_token_sampler_free(NULL);
}

static void bad_logits(void **state)
{
    (void)state;
    float logits[130] = {0}, p[130];
    const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (int T = 0; T < 2; T++) {
        int32_t id = -5;
        struct tune_token_sampler *s = new_sampler((struct tune_sampling_options){T, 0, 1, 0, 1.1}, 1, 130, 2);
        assert_ok(tune_token_sampler_start(s, 1, 31));
        for (int i = 0; i < 4; i++)
            for (int at = 0; at < 130; at += 43) {
                char name[64];
                logits[at] = bad[i];
                snprintf(name, sizeof name, "row 31: the logit of id %d is", at);
                assert_int_equal(tune_token_sampler_next(s, 1, 0, logits, &id, NULL), -1);
                assert_error_has(name);
                assert_int_equal(tune_token_sampler_distribution(s, 1, logits, p), -1);
                assert_error_has(name);
                logits[at] = 0;
            }
        assert_int_equal(id, -5);
        assert_int_equal(tune_token_sampler_next(s, 2, 0, logits, &id, NULL), -1);
        assert_error_has("no slot 2");
        assert_int_equal(tune_token_sampler_next(s, -1, 0, logits, &id, NULL), -1);
        assert_int_equal(tune_token_sampler_distribution(s, 2, logits, p), -1);
        assert_int_equal(tune_token_sampler_start(s, 2, 0), -1);
        assert_int_equal(tune_token_sampler_accept(s, 2, &id, 1), -1);
        assert_int_equal(tune_token_sampler_accept(s, 1, (int32_t[]){3, 130}, 2), -1);
        assert_error_has("row 31: id 130 is not below 130");
        assert_int_equal(tune_token_sampler_accept(s, 1, (int32_t[]){-1}, 1), -1);
        assert_ok(tune_token_sampler_next(s, 1, 0, logits, &id, NULL));
        tune_token_sampler_free(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(filters),       cmocka_unit_test(borders), cmocka_unit_test(greedy),  cmocka_unit_test(penalty),
        cmocka_unit_test(distribution),  cmocka_unit_test(rows),    cmocka_unit_test(options), cmocka_unit_test(bad_logits),
        cmocka_unit_test(probabilities), cmocka_unit_test(weights),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
