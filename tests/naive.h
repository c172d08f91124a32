/* naive.h - operations of devices/ops.h as plain float64 loops: the reference of the tests.
 *
 * Nothing here is fast or clever; each function is the formula of ops.h written down.
 * The backward ones are themselves checked against central differences of the forward ones
 * (test_kernels.c, "naive_backward"), so they cannot be wrong together with the kernels. */
#ifndef TUNE_TEST_NAIVE_H
#define TUNE_TEST_NAIVE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "devices/device.h"

/* c [M,N] = alpha op(a) op(b) + beta c */
static inline void naive_gemm(double *c, const double *a, bool trans_a, const double *b, bool trans_b, int64_t M, int64_t N, int64_t K,
                              double alpha, double beta)
{
    for (int64_t m = 0; m < M; m++)
        for (int64_t n = 0; n < N; n++) {
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += a[trans_a ? k * M + m : m * K + k] * b[trans_b ? n * K + k : k * N + n];
            c[m * N + n] = alpha * sum + (beta == 0 ? 0 : beta * c[m * N + n]);
        }
}

/* dbias [C] += scale sum of the rows of dy [N,C] */
static inline void naive_bias_backward(double *dbias, const double *dy, int64_t N, int64_t C, double scale)
{
    for (int64_t n = 0; n < N; n++)
        for (int64_t i = 0; i < C; i++)
            dbias[i] += scale * dy[n * C + i];
}

static inline double naive_rstd(const double *x, int64_t n, double eps)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += x[i] * x[i];
    return 1 / sqrt(sum / (double)n + eps);
}

/* One row, or one head: y = w x s */
static inline void naive_norm(double *y, const double *x, const double *w, int64_t n, double eps)
{
    double s = naive_rstd(x, n, eps);
    for (int64_t i = 0; i < n; i++)
        y[i] = w[i] * x[i] * s;
}

/* dx += s (g - x s^2 mean(g x)), g = dy w;  dw += dy x s */
static inline void naive_norm_backward(double *dx, double *dw, const double *dy, const double *x, const double *w, int64_t n,
                                       double eps)
{
    double s = naive_rstd(x, n, eps), mean = 0;
    for (int64_t i = 0; i < n; i++)
        mean += dy[i] * w[i] * x[i] / (double)n;
    for (int64_t i = 0; i < n; i++) {
        dx[i] += s * (dy[i] * w[i] - x[i] * s * s * mean);
        dw[i] += dy[i] * x[i] * s;
    }
}

/* The first R numbers of the first heads of each row of x [N,Q], by position (NULL: n mod T); sign -1: backward. */
static inline void naive_rope(double *x, const double *table, const int32_t *positions, int64_t N, int64_t Q, int T, int heads,
                              int D, int R, double sign)
{
    for (int64_t n = 0; n < N; n++)
        for (int h = 0; h < heads; h++)
            for (int i = 0; i < R / 2; i++) {
                double *first = x + n * Q + h * D + i, *second = first + R / 2, a = *first, b = *second;
                int64_t position = positions ? positions[n] : n % T;
                double c = table[position * R + i], s = sign * table[position * R + R / 2 + i];
                *first = a * c - b * s;
                *second = b * c + a * s;
            }
}

/* An attention of B sequences of T positions: sizes, and who sees whom (devices/ops.h). */
struct naive_attention {
    int B, T, H, K, D;
    int window;
    float scale;
    const int32_t *starts; /* [B,T] or NULL */
};

static inline bool naive_visible(const struct naive_attention *s, int64_t b, int64_t query, int64_t key)
{
    return (!s->starts || s->starts[b * s->T + query] <= key) && key <= query && (s->window <= 0 || key > query - s->window);
}

/* Row t of q (which 0), k (1), v (2) of query head h. */
static inline int64_t naive_at(const struct naive_attention *s, int64_t b, int64_t t, int which, int64_t h)
{
    int64_t head = which == 0 ? h : s->H + (which - 1) * s->K + h / (s->H / s->K);
    return ((b * s->T + t) * (s->H + 2 * s->K) + head) * s->D;
}

/* p [T]: the probabilities of one query; returns lse */
static inline double naive_probabilities(double *p, const double *qkv, const struct naive_attention *s, int64_t b, int64_t h,
                                         int64_t j)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < s->T; i++) {
        p[i] = -INFINITY;
        if (!naive_visible(s, b, j, i))
            continue;
        p[i] = 0;
        for (int64_t d = 0; d < s->D; d++)
            p[i] += (double)s->scale * qkv[naive_at(s, b, j, 0, h) + d] * qkv[naive_at(s, b, i, 1, h) + d];
        max = fmax(max, p[i]);
    }
    for (int64_t i = 0; i < s->T; i++)
        sum += exp(p[i] - max);
    for (int64_t i = 0; i < s->T; i++)
        p[i] = exp(p[i] - max) / sum;
    return max + log(sum);
}

/* out [B T, H D], lse [B T, H] */
static inline void naive_attention(double *out, double *lse, const double *qkv, const struct naive_attention *s)
{
    double *p = malloc((size_t)s->T * sizeof *p);
    for (int64_t b = 0; b < s->B; b++)
        for (int64_t h = 0; h < s->H; h++)
            for (int64_t j = 0; j < s->T; j++) {
                int64_t row = b * s->T + j;
                lse[row * s->H + h] = naive_probabilities(p, qkv, s, b, h, j);
                for (int64_t d = 0; d < s->D; d++) {
                    double sum = 0;
                    for (int64_t i = 0; i < s->T; i++)
                        if (naive_visible(s, b, j, i))
                            sum += p[i] * qkv[naive_at(s, b, i, 2, h) + d];
                    out[(row * s->H + h) * s->D + d] = sum;
                }
            }
    free(p);
}

/* An attention over a cache: Tq queries of each row, q [B,Tq,H,D], and its keys and values, k and v [B,capacity,K,D]. */
struct naive_cache {
    int B, Tq, capacity, H, K, D;
    int window;
    float scale;
    const int32_t *starts, *kv_length, *q_offset; /* [B,Tq], [B], [B]; NULL: 0, capacity, 0 */
};

static inline bool naive_cached_sees(const struct naive_cache *s, int64_t b, int64_t query, int64_t key)
{
    int64_t position = (s->q_offset ? s->q_offset[b] : 0) + query;
    return key <= position && key < (s->kv_length ? s->kv_length[b] : s->capacity) &&
           (!s->starts || key >= s->starts[b * s->Tq + query]) && (s->window <= 0 || key > position - s->window);
}

/* out [B Tq, H D], lse [B Tq, H] */
static inline void naive_cached(double *out, double *lse, const double *q, const double *k, const double *v,
                                const struct naive_cache *s)
{
    double *p = malloc((size_t)s->capacity * sizeof *p);
    for (int64_t n = 0; n < (int64_t)s->B * s->Tq * s->H; n++) { /* a head of a query */
        int64_t row = n / s->H, b = row / s->Tq, kv = n % s->H / (s->H / s->K);
        double max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < s->capacity; i++) {
            p[i] = naive_cached_sees(s, b, row % s->Tq, i) ? 0 : -INFINITY;
            for (int64_t d = 0; d < s->D && p[i] > -INFINITY; d++)
                p[i] += (double)s->scale * q[n * s->D + d] * k[((b * s->capacity + i) * s->K + kv) * s->D + d];
            max = fmax(max, p[i]);
        }
        for (int64_t i = 0; i < s->capacity; i++)
            sum += exp(p[i] - max);
        lse[n] = max + log(sum);
        for (int64_t d = 0; d < s->D; d++) {
            out[n * s->D + d] = 0;
            for (int64_t i = 0; i < s->capacity; i++)
                if (p[i] > -INFINITY)
                    out[n * s->D + d] += exp(p[i] - lse[n]) * v[((b * s->capacity + i) * s->K + kv) * s->D + d];
        }
    }
    free(p);
}

/* dqkv set. The softmax's Jacobian written out: dS_i = p_i (dP_i - sum_k p_k dP_k) */
static inline void naive_attention_backward(double *dqkv, const double *dout, const double *qkv, const struct naive_attention *s)
{
    double *p = malloc(2 * (size_t)s->T * sizeof *p), *dp = p + s->T;
    memset(dqkv, 0, (size_t)s->B * (size_t)s->T * (size_t)(s->H + 2 * s->K) * (size_t)s->D * sizeof *dqkv);
    for (int64_t b = 0; b < s->B; b++)
        for (int64_t h = 0; h < s->H; h++)
            for (int64_t j = 0; j < s->T; j++) {
                const double *g = dout + ((b * s->T + j) * s->H + h) * s->D;
                double mean = 0;
                naive_probabilities(p, qkv, s, b, h, j);
                for (int64_t i = 0; i <= j; i++) {
                    dp[i] = 0;
                    for (int64_t d = 0; d < s->D; d++) {
                        dp[i] += g[d] * qkv[naive_at(s, b, i, 2, h) + d];
                        dqkv[naive_at(s, b, i, 2, h) + d] += p[i] * g[d];
                    }
                    mean += p[i] * dp[i];
                }
                for (int64_t i = 0; i <= j; i++)
                    for (int64_t d = 0; d < s->D; d++) {
                        double ds = p[i] * (dp[i] - mean) * (double)s->scale;
                        dqkv[naive_at(s, b, j, 0, h) + d] += ds * qkv[naive_at(s, b, i, 1, h) + d];
                        dqkv[naive_at(s, b, i, 1, h) + d] += ds * qkv[naive_at(s, b, j, 0, h) + d];
                    }
            }
    free(p);
}

/* h [N,F], gate_up [N,2F] */
/* f(gate) up, with f silu or gelu: x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). */
static inline void naive_glu(double *h, const double *gate_up, int64_t N, int64_t F, bool gelu)
{
    for (int64_t n = 0; n < N; n++)
        for (int64_t i = 0; i < F; i++) {
            double g = gate_up[2 * n * F + i], u = gate_up[2 * n * F + F + i];
            double f = gelu ? g / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (g + .044715 * g * g * g))) : g / (1 + exp(-g));
            h[n * F + i] = f * u;
        }
}

static inline void naive_glu_backward(double *dgate_up, const double *dh, const double *gate_up, int64_t N, int64_t F, bool gelu)
{
    for (int64_t n = 0; n < N; n++)
        for (int64_t i = 0; i < F; i++) {
            double g = gate_up[2 * n * F + i], u = gate_up[2 * n * F + F + i], d = dh[n * F + i], e = exp(-g);
            double t = tanh(sqrt(2 / acos(-1)) * (g + .044715 * g * g * g));
            double f = gelu ? g / 2 * (1 + t) : g / (1 + e);
            double slope = gelu ? (1 + t) / 2 + g / 2 * (1 - t * t) * sqrt(2 / acos(-1)) * (1 + 3 * .044715 * g * g)
                                : 1 / (1 + e) + g * e / ((1 + e) * (1 + e));
            dgate_up[2 * n * F + i] = d * u * slope;
            dgate_up[2 * n * F + F + i] = d * f;
        }
}

/* log softmax(scale logits)[label] of one row; gradient [V] of its negative, NULL: not wanted. */
static inline double naive_log_prob(double *gradient, const double *logits, int64_t V, int32_t label, double scale)
{
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < V; i++)
        max = fmax(max, scale * logits[i]);
    for (int64_t i = 0; i < V; i++)
        sum += exp(scale * logits[i] - max);
    for (int64_t i = 0; i < V && gradient; i++)
        gradient[i] = scale * (exp(scale * logits[i] - max) / sum - (i == label));
    return scale * logits[label] - max - log(sum);
}

static inline void naive_adamw(double *w, const double *g, double *m, double *v, int64_t n, const struct tune_update *u,
                               double lr, double t, double scale)
{
    for (int64_t i = 0; i < n; i++) {
        double grad = g[i] * scale;
        m[i] = u->beta1 * m[i] + (1 - u->beta1) * grad;
        v[i] = u->beta2 * v[i] + (1 - u->beta2) * grad * grad;
        w[i] -= u->lr_scale * lr * u->weight_decay * w[i];
        w[i] -= u->lr_scale * lr * (m[i] / (1 - pow(u->beta1, t))) / (sqrt(v[i] / (1 - pow(u->beta2, t))) + u->eps);
    }
}

/* m NULL: no momentum */
static inline void naive_sgd(double *w, const double *g, double *m, int64_t n, const struct tune_update *u, double lr,
                             double scale)
{
    for (int64_t i = 0; i < n; i++) {
        double grad = g[i] * scale;
        if (m)
            grad = m[i] = u->momentum * m[i] + grad;
        w[i] -= u->lr_scale * lr * u->weight_decay * w[i];
        w[i] -= u->lr_scale * lr * grad;
    }
}

#endif
