/* attention.c - causal attention, one block of queries of one head at a time.
 *
 *   forward, per (sequence, head), per block of BQ queries:      keys up to the block's last query
 *     S = scale Q K^T        [BQ, keys]   in the thread's working memory
 *     P = exp(S - lse)                    masked entries are 0
 *     O = P V
 *   backward, the same blocks; P again from lse; delta_j = sum_d dO_jd O_jd:
 *     dV += P^T dO      dP = dO V^T      dS = P (dP - delta) scale
 *     dQ  = dS K        dK += dS^T Q
 *
 * Each query head sums its dK and dV in a place of its own (work); the heads of a group are
 * added in order afterwards, so the bits do not depend on which thread did what. */
#include <cblas.h>
#include <math.h>

#include "devices/cpu/cpu.h"

enum { BQ = 64 };

/* One (sequence, head): its q, k, v as float32 with leading dimensions. */
struct head {
    const float *q, *k, *v;
    int64_t ld;
};

/* A column of D numbers of T rows as float32, in place or widened to [T,D] in room. */
static const float *columns(const struct tune_tensor *t, int64_t row, int64_t column, int64_t T, int64_t D, float *room)
{
    int64_t width = t->shape[1];
    if (t->dtype == TUNE_F32)
        return (const float *)t->data + row * width + column;
    for (int64_t i = 0; i < T; i++)
        tune_cpu_in(t, (row + i) * width + column, D, room + i * D);
    return room;
}

static struct head open_head(const struct tune_tensor *qkv, const struct tune_attention *s, int64_t b, int64_t h, float *room)
{
    int64_t T = s->T, D = s->D, kv = h / (s->H / s->K), row = b * T;
    return (struct head){
        .q = columns(qkv, row, h * D, T, D, room),
        .k = columns(qkv, row, (s->H + kv) * D, T, D, room + T * D),
        .v = columns(qkv, row, (s->H + s->K + kv) * D, T, D, room + 2 * T * D),
        .ld = qkv->dtype == TUNE_F32 ? qkv->shape[1] : D,
    };
}

static void gemm(bool at, bool bt, int64_t M, int64_t N, int64_t K, float alpha, const float *a, int64_t lda,
                 const float *b, int64_t ldb, float beta, float *c, int64_t ldc)
{
    cblas_sgemm(CblasRowMajor, at ? CblasTrans : CblasNoTrans, bt ? CblasTrans : CblasNoTrans, (blasint)M, (blasint)N,
                (blasint)K, alpha, a, (blasint)lda, b, (blasint)ldb, beta, c, (blasint)ldc);
}

/* The keys [k0,k1) that some query of [q0,q1) sees. */
static void key_range(const struct tune_attention *s, int64_t q0, int64_t q1, int64_t *k0, int64_t *k1)
{
    *k1 = q1;
    *k0 = s->window > 0 && q0 - s->window + 1 > 0 ? q0 - s->window + 1 : 0;
}

/* The visible part [*from,*to) of row j's scores, counted from k0. */
static void row_range(const struct tune_attention *s, int64_t j, int64_t k0, int64_t *from, int64_t *to)
{
    int64_t first = s->window > 0 && j - s->window + 1 > 0 ? j - s->window + 1 : 0;
    *from = first - k0;
    *to = j + 1 - k0;
}

/* Scores of one row to probabilities; returns lse. */
static float softmax_row(float *x, int64_t n, int64_t from, int64_t to)
{
    float max = -INFINITY, sum = 0;
    for (int64_t i = from; i < to; i++)
        max = x[i] > max ? x[i] : max;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = from; i < to; i++) {
        x[i] = tune_cpu_exp(x[i] - max);
        sum += x[i];
    }
    float inverse = 1.0f / sum;
    for (int64_t i = from; i < to; i++)
        x[i] *= inverse;
    memset(x, 0, (size_t)from * 4);
    memset(x + to, 0, (size_t)(n - to) * 4);
    return max + logf(sum);
}

static int64_t work_floats(const struct tune_attention *s, int matrices)
{
    return (int64_t)matrices * BQ * s->T + 5 * (int64_t)s->T * s->D + 64;
}

int64_t tune_cpu_attention_floats(const struct tune_attention *s)
{
    return work_floats(s, 2) + 2 * BQ * (int64_t)s->D;
}

static void forward_head(const struct tune_attention *s, struct tune_tensor *out, float *lse, const struct tune_tensor *qkv,
                         int64_t b, int64_t h, float *work)
{
    int64_t T = s->T, D = s->D, width = (int64_t)s->H * D;
    float *scores = work, *room = work + BQ * T;
    struct head x = open_head(qkv, s, b, h, room);
    float *narrow = room + 3 * T * D; /* the block's output before it is rounded */
    for (int64_t q0 = 0; q0 < T; q0 += BQ) {
        int64_t q1 = q0 + BQ < T ? q0 + BQ : T, k0, k1, from, to;
        key_range(s, q0, q1, &k0, &k1);
        int64_t n = k1 - k0, at = (b * T + q0) * width + h * D;
        gemm(false, true, q1 - q0, n, D, s->scale, x.q + q0 * x.ld, x.ld, x.k + k0 * x.ld, x.ld, 0, scores, n);
        for (int64_t j = q0; j < q1; j++) {
            row_range(s, j, k0, &from, &to);
            lse[(b * T + j) * s->H + h] = softmax_row(scores + (j - q0) * n, n, from, to);
        }
        bool f32 = out->dtype == TUNE_F32;
        gemm(false, false, q1 - q0, D, n, 1, scores, n, x.v + k0 * x.ld, x.ld, 0, f32 ? (float *)out->data + at : narrow,
             f32 ? width : D);
        for (int64_t j = q0; j < q1 && !f32; j++)
            tune_cpu_out(out, at + (j - q0) * width, D, narrow + (j - q0) * D);
    }
}

int tune_cpu_attention_forward(struct tune_device *dev, struct tune_tensor *out, struct tune_tensor *lse,
                               const struct tune_tensor *qkv, const struct tune_attention *size)
{
    if (tune_cpu_reserve(dev, work_floats(size, 1)) < 0)
        return -1;
#pragma omp parallel num_threads(dev->threads)
    {
        omp_set_num_threads(1);
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < (int64_t)size->B * size->H; task++)
            forward_head(size, out, lse->data, qkv, task / size->H, task % size->H, tune_cpu_work(dev));
    }
    return 0;
}

/* dS in ds (over dP) from P in p; also leaves P alone. */
static void score_gradient(const struct tune_attention *s, float *p, float *ds, const float *lse, const float *delta,
                           int64_t rows, int64_t q0, int64_t k0, int64_t n, int64_t stride)
{
    for (int64_t r = 0; r < rows; r++) {
        int64_t from, to;
        float *pr = p + r * n, *dr = ds + r * n, l = lse[r * stride], d = delta[r];
        row_range(s, q0 + r, k0, &from, &to);
        memset(pr, 0, (size_t)from * 4);
        memset(dr, 0, (size_t)from * 4);
#pragma omp simd
        for (int64_t i = from; i < to; i++) {
            pr[i] = tune_cpu_exp(pr[i] - l);
            dr[i] = pr[i] * (dr[i] - d) * s->scale;
        }
        memset(pr + to, 0, (size_t)(n - to) * 4);
        memset(dr + to, 0, (size_t)(n - to) * 4);
    }
}

struct backward {
    const struct tune_attention *s;
    struct tune_tensor *dqkv;
    float *work; /* [B, H, 2, T, D]: each query head's dK and dV */
    const struct tune_tensor *dout, *qkv, *out;
    const float *lse;
};

static void backward_head(const struct backward *w, int64_t b, int64_t h, float *work)
{
    const struct tune_attention *s = w->s;
    int64_t T = s->T, D = s->D, width = (int64_t)s->H * D, Q = w->qkv->shape[1];
    float *p = work, *ds = p + BQ * T, *room = ds + BQ * T, *dk = w->work + (b * s->H + h) * 2 * T * D, *dv = dk + T * D;
    struct head x = open_head(w->qkv, s, b, h, room);
    float *wide_do = room + 3 * T * D, *wide_o = wide_do + BQ * D, *dq = wide_o; /* o is read before dq is written */
    bool f32 = w->qkv->dtype == TUNE_F32;
    memset(dk, 0, (size_t)(2 * T * D) * 4);
    for (int64_t q0 = 0; q0 < T; q0 += BQ) {
        int64_t rows = q0 + BQ < T ? BQ : T - q0, k0, k1;
        float delta[BQ];
        key_range(s, q0, q0 + rows, &k0, &k1);
        int64_t n = k1 - k0, ldo = f32 ? width : D;
        const float *go = columns(w->dout, b * T + q0, h * D, rows, D, wide_do);
        const float *o = columns(w->out, b * T + q0, h * D, rows, D, wide_o);
        for (int64_t r = 0; r < rows; r++) {
            float sum = 0;
            for (int64_t i = 0; i < D; i++)
                sum += go[r * ldo + i] * o[r * ldo + i];
            delta[r] = sum;
        }
        gemm(false, true, rows, n, D, s->scale, x.q + q0 * x.ld, x.ld, x.k + k0 * x.ld, x.ld, 0, p, n);
        gemm(false, true, rows, n, D, 1, go, ldo, x.v + k0 * x.ld, x.ld, 0, ds, n);
        score_gradient(s, p, ds, w->lse + (b * T + q0) * s->H + h, delta, rows, q0, k0, n, s->H);
        gemm(true, false, n, D, rows, 1, p, n, go, ldo, 1, dv + k0 * D, D);
        gemm(true, false, n, D, rows, 1, ds, n, x.q + q0 * x.ld, x.ld, 1, dk + k0 * D, D);
        int64_t dq_at = (b * T + q0) * Q + h * D;
        gemm(false, false, rows, D, n, 1, ds, n, x.k + k0 * x.ld, x.ld, 0, f32 ? (float *)w->dqkv->data + dq_at : dq,
             f32 ? Q : D);
        for (int64_t r = 0; r < rows && !f32; r++)
            tune_cpu_out(w->dqkv, dq_at + r * Q, D, dq + r * D);
    }
}

/* dK (which 0) and dV (1) of a group: its query heads' sums, added in order. */
static void add_group(const struct backward *w, int64_t b, int64_t kv, int64_t t, float *work)
{
    const struct tune_attention *s = w->s;
    int64_t D = s->D, T = s->T, group = s->H / s->K, Q = w->dqkv->shape[1];
    for (int64_t which = 0; which < 2; which++) {
        int64_t at = (b * T + t) * Q + (s->H + which * s->K + kv) * D;
        float *sum = tune_cpu_place(w->dqkv, at, work);
        for (int64_t g = 0; g < group; g++) {
            const float *part = w->work + (((b * s->H + kv * group + g) * 2 + which) * T + t) * D;
            for (int64_t i = 0; i < D; i++)
                sum[i] = g == 0 ? part[i] : sum[i] + part[i];
        }
        tune_cpu_out(w->dqkv, at, D, sum);
    }
}

int tune_cpu_attention_backward(struct tune_device *dev, struct tune_tensor *dqkv, struct tune_tensor *work,
                                const struct tune_tensor *dout, const struct tune_tensor *qkv,
                                const struct tune_tensor *out, const struct tune_tensor *lse,
                                const struct tune_attention *size)
{
    struct backward w = {size, dqkv, work->data, dout, qkv, out, lse->data};
    int64_t B = size->B, T = size->T, H = size->H, K = size->K;
    if (tune_cpu_reserve(dev, tune_cpu_attention_floats(size)) < 0)
        return -1;
#pragma omp parallel num_threads(dev->threads)
    {
        omp_set_num_threads(1);
#pragma omp for schedule(dynamic, 1)
        for (int64_t task = 0; task < B * H; task++)
            backward_head(&w, task / H, task % H, tune_cpu_work(dev));
#pragma omp for schedule(static)
        for (int64_t row = 0; row < B * T; row++)
            for (int64_t kv = 0; kv < K; kv++)
                add_group(&w, row / T, kv, row % T, tune_cpu_work(dev));
    }
    return 0;
}
