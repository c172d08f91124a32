/* test_losses.c - arithmetic on one row of logits (losses/row.h) against float64 loops. */
#include "test.h"

#include "core/random.h"
#include "losses/row.h"

enum { V = 700 };

static void fill(float *x, double size, uint64_t seed)
{
    for (int v = 0; v < V; v++)
        x[v] = (float)(size * tune_random_normal(seed, 1, (uint64_t)v));
}

/* log softmax(x / T) in float64; returns the log of the sum. */
static double naive_log_softmax(double *p, const double *x, double T)
{
    double max = -INFINITY, sum = 0;
    for (int v = 0; v < V; v++)
        max = x[v] / T > max ? x[v] / T : max;
    for (int v = 0; v < V; v++)
        sum += exp(x[v] / T - max);
    for (int v = 0; v < V; v++)
        p[v] = x[v] / T - max - log(sum);
    return max + log(sum);
}

static void widen(double *to, const float *from)
{
    for (int v = 0; v < V; v++)
        to[v] = from[v];
}

static void log_softmax(void **state)
{
    (void)state;
    static const double temperatures[] = {1, 0.5, 3}, shifts[] = {0, 500, -500};
    float x[V];
    double wide[V], want[V], worst = 0;
    for (int i = 0; i < 9; i++) {
        fill(x, 6, 3);
        for (int v = 0; v < V; v++)
            x[v] += (float)shifts[i / 3];
        widen(wide, x);
        double T = temperatures[i % 3], sum = naive_log_softmax(want, wide, T);
        assert_true(fabs(tune_row_log_softmax(x, V, T) - sum) <= 1e-6 * (1 + fabs(sum)));
        for (int v = 0; v < V; v++) { /* no fmax: gcc 12 for aarch64 breaks down over it */
            double off = fabs(x[v] - want[v]) / (1 + fabs(want[v]));
            worst = off <= worst ? worst : off;
        }
    }
    print_message("# log softmax: %.1e\n", worst);
    assert_true(worst <= 5e-7); /* observed 1.1e-7 */
}

/* T^2 KL(p || q) by its definition: in[v] marks tokens that count by themselves, the rest is one token. */
static double naive_kl(const double *x, const double *other, double T, const bool *in)
{
    double q[V], p[V], kl = 0, rest_p = 0, rest_q = 0;
    naive_log_softmax(q, x, T);
    naive_log_softmax(p, other, T);
    for (int v = 0; v < V; v++) {
        if (in[v])
            kl += exp(p[v]) * (p[v] - q[v]);
        rest_p += in[v] ? 0 : exp(p[v]);
        rest_q += in[v] ? 0 : exp(q[v]);
    }
    return T * T * (kl + (rest_p > 0 ? rest_p * log(rest_p / rest_q) : 0));
}

/* The k largest, the first ones of equal numbers. */
static void largest(const float *x, int64_t k, bool *in)
{
    memset(in, k == 0, V * sizeof *in);
    for (int64_t i = 0; i < k; i++) {
        int best = -1;
        for (int v = 0; v < V; v++)
            if (!in[v] && (best < 0 || x[v] > x[best]))
                best = v;
        in[best] = true;
    }
}

/* Loss and gradient of one pair of rows, the gradient against differences of the definition. */
static void one_kl(const float *x, const float *other, double T, int64_t k)
{
    float got[V], lost[V];
    double wide[V], theirs[V], d = 0, s = 0;
    bool in[V];
    largest(other, k > V ? V : k, in);
    widen(wide, x);
    widen(theirs, other);
    memcpy(got, x, sizeof got);
    memcpy(lost, other, sizeof lost);
    double want = naive_kl(wide, theirs, T, in), loss = tune_row_kl(got, lost, V, T, k);
    assert_true(fabs(loss - want) <= 2e-6 * (fabs(want) + T * T));
    for (int v = 0; v < V; v++) {
        const double h = 1e-4, before = wide[v];
        wide[v] = before + h;
        double slope = naive_kl(wide, theirs, T, in);
        wide[v] = before - h;
        slope = (slope - naive_kl(wide, theirs, T, in)) / (2 * h);
        wide[v] = before;
        d += (got[v] - slope) * (got[v] - slope);
        s += slope * slope;
    }
    if (!(sqrt(d) <= 1e-5 * sqrt(s) + 1e-7))
        fail_msg("T %g, k %d: the gradient is off by %g of %g", T, (int)k, sqrt(d), sqrt(s));
}

static void kl(void **state)
{
    (void)state;
    static const int64_t tokens[] = {0, 1, 2, 9, V - 1, V, V + 5};
    float x[V], other[V];
    for (int i = 0; i < 7; i++)
        for (int hot = 0; hot < 2; hot++) {
            fill(x, 3, 5);
            fill(other, 3, 6);
            one_kl(x, other, hot ? 2.5 : 1, tokens[i]);
        }
    for (int v = 0; v < V; v++) /* many equal logits, signs among them */
        other[v] = (float)(v % 5 - 2);
    for (int i = 0; i < 7; i++)
        one_kl(x, other, 1, tokens[i]);
}

/* A model against itself: 0, whatever k. Distributions so sharp that the rest has no probability: finite numbers. */
static void kl_edges(void **state)
{
    (void)state;
    float x[V], other[V], zero[V] = {0};
    for (int64_t k = 0; k < 20; k += 9) {
        fill(x, 4, 8);
        memcpy(other, x, sizeof x);
        assert_true(fabs(tune_row_kl(x, other, V, 2, k)) <= 1e-6);
        for (int v = 0; v < V; v++)
            assert_true(fabs(x[v]) <= 1e-7);
        fill(x, 1, 8);
        memcpy(other, zero, sizeof zero);
        other[3] = 2000;
        double loss = tune_row_kl(x, other, V, 1, k), sum = 0;
        for (int v = 0; v < V; v++)
            sum += x[v];
        assert_true(isfinite(loss) && loss > 1 && fabs(sum) <= 1e-5);
        assert_true(x[3] < -0.9 && x[4] >= 0);
        memcpy(x, zero, sizeof zero);
        x[3] = 2000; /* the student is sure, the teacher is not: far apart, and finite */
        fill(other, 1, 9);
        other[3] = 5; /* among the largest: nothing is left of the student's rest */
        loss = tune_row_kl(x, other, V, 1, k);
        assert_true(isfinite(loss) && loss > 100);
        fill(x, 1, 8);
        fill(other, 1, 9);
        for (int v = 100; v < V; v++)
            other[v] = -INFINITY; /* tokens that the teacher never says */
        assert_true(isfinite(tune_row_kl(x, other, V, 1, k)));
        assert_true(isfinite(x[5]) && isfinite(x[200]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(log_softmax),
        cmocka_unit_test(kl),
        cmocka_unit_test(kl_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
