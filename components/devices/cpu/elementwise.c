/* elementwise.c - operations limited by memory bandwidth: embedding, bias, rope, glu, gather. */
#include "devices/cpu/cpu.h"

/* axpby where a tensor is BF16, in blocks. */
static int axpby_narrow(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, float alpha, float beta)
{
    enum { BLOCK = 1024 };
    int64_t n = tune_tensor_elements(y);
    if (tune_cpu_reserve(dev, 2 * BLOCK) < 0)
        return -1;
#pragma omp parallel for num_threads(tune_cpu_threads(dev, n)) schedule(static)
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t count = n - at < BLOCK ? n - at : BLOCK;
        float *work = tune_cpu_work(dev);
        const float *in = tune_cpu_in(x, at, count, work);
        float *out = tune_cpu_target(y, at, work + BLOCK);
        if (beta != 0)
            tune_cpu_in(y, at, count, out);
        for (int64_t i = 0; i < count; i++)
            out[i] = alpha * in[i] + (beta == 0 ? 0 : beta * out[i]);
        tune_cpu_out(y, at, count, out);
    }
    return 0;
}

int tune_cpu_axpby(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, float alpha, float beta)
{
    if (x->dtype != TUNE_F32 || y->dtype != TUNE_F32)
        return axpby_narrow(dev, y, x, alpha, beta);
    const float *in = tune_cpu_data(x);
    float *out = tune_cpu_data(y);
#pragma omp parallel num_threads(tune_cpu_threads(dev, tune_tensor_elements(y)))
    {
        int64_t begin, end;
        tune_cpu_piece(tune_tensor_elements(y), 16, &begin, &end);
        for (int64_t i = begin; i < end; i++)
            out[i] = alpha * in[i] + (beta == 0 ? 0 : beta * out[i]);
    }
    return 0;
}

int tune_cpu_exchange(struct tune_device *dev, struct tune_tensor *x, struct tune_tensor *y)
{
    float *a = tune_cpu_data(x), *b = tune_cpu_data(y);
#pragma omp parallel num_threads(tune_cpu_threads(dev, tune_tensor_elements(x)))
    {
        int64_t begin, end;
        tune_cpu_piece(tune_tensor_elements(x), 16, &begin, &end);
        for (int64_t i = begin; i < end; i++) {
            float was = a[i];
            a[i] = b[i];
            b[i] = was;
        }
    }
    return 0;
}

/* The copy is a few thousandths of the product's time. */
int tune_cpu_gemm_add(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *r, const struct tune_tensor *x,
                      const struct tune_tensor *w, float scale, enum tune_dtype operands)
{
    tune_cpu_copy(dev, y, r);
    return tune_cpu_gemm(dev, y, x, false, w, true, scale, 1, operands);
}

int tune_cpu_embed_forward(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *w, const struct tune_tensor *ids, float scale)
{
    int64_t N = x->shape[0], C = x->shape[1];
    const int32_t *id = tune_cpu_data(ids);
    if (tune_cpu_reserve(dev, 2 * C) < 0)
        return -1;
#pragma omp parallel for num_threads(tune_cpu_threads(dev, N * C)) schedule(static)
    for (int64_t n = 0; n < N; n++) {
        float *work = tune_cpu_work(dev);
        const float *in = tune_cpu_in(w, id[n] * C, C, work);
        float *out = tune_cpu_target(x, n * C, work + C);
        for (int64_t i = 0; i < C; i++)
            out[i] = scale * in[i];
        tune_cpu_out(x, n * C, C, out);
    }
    return 0;
}

/* Add each row of dx, times scale, to row id[n] of sums; id NULL: to row 0. */
static int add_rows(struct tune_device *dev, struct tune_tensor *sums, const struct tune_tensor *dx, const int32_t *id,
                    float scale)
{
    int64_t N = dx->shape[0], C = dx->shape[1];
    if (tune_cpu_reserve(dev, C) < 0)
        return -1;
#pragma omp parallel num_threads(tune_cpu_threads(dev, N * C))
    {
        /* Each thread adds its own columns of all rows, in the order of rows. No two threads share
         * an element. */
        int64_t begin, end;
        float *work = tune_cpu_work(dev);
        tune_cpu_piece(C, 16, &begin, &end);
        for (int64_t n = 0; n < N; n++) {
            const float *in = tune_cpu_in(dx, n * C + begin, end - begin, work);
            float *out = (float *)tune_cpu_data(sums) + (id ? id[n] * C : 0) + begin;
            for (int64_t i = 0; i < end - begin; i++)
                out[i] += scale * in[i];
        }
    }
    return 0;
}

int tune_cpu_embed_backward(struct tune_device *dev, struct tune_tensor *dw, const struct tune_tensor *dx,
                            const struct tune_tensor *ids, float scale)
{
    return add_rows(dev, dw, dx, tune_cpu_data(ids), scale);
}

int tune_cpu_bias_forward(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *bias, float scale)
{
    int64_t N = y->shape[0], C = y->shape[1];
    const float *b = tune_cpu_data(bias);
    if (tune_cpu_reserve(dev, C) < 0)
        return -1;
#pragma omp parallel for num_threads(tune_cpu_threads(dev, N * C)) schedule(static)
    for (int64_t n = 0; n < N; n++) {
        float *work = tune_cpu_work(dev);
        float *out = tune_cpu_target(y, n * C, work);
        tune_cpu_in(y, n * C, C, out);
        for (int64_t i = 0; i < C; i++)
            out[i] += scale * b[i];
        tune_cpu_out(y, n * C, C, out);
    }
    return 0;
}

int tune_cpu_bias_backward(struct tune_device *dev, struct tune_tensor *dbias, const struct tune_tensor *dy, float scale)
{
    return add_rows(dev, dbias, dy, NULL, scale);
}

int tune_cpu_rope(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *table, const struct tune_tensor *positions,
                  int T, int heads, int D, bool backward)
{
    int64_t N = x->shape[0], Q = x->shape[1], R = table->shape[1], half = R / 2;
    float sign = backward ? -1.0f : 1.0f;
    const int32_t *given = tune_cpu_data(positions);
    if (tune_cpu_reserve(dev, D) < 0)
        return -1;
#pragma omp parallel for num_threads(tune_cpu_threads(dev, N * Q)) schedule(static)
    for (int64_t n = 0; n < N; n++) {
        float *work = tune_cpu_work(dev);
        int64_t position = given ? given[n] : n % T;
        const float *cosine = (const float *)tune_cpu_data(table) + position * R, *sine = cosine + half;
        for (int64_t h = 0; h < heads; h++) {
            float *v = tune_cpu_target(x, n * Q + h * D, work);
            tune_cpu_in(x, n * Q + h * D, R, v);
            for (int64_t i = 0; i < half; i++) {
                float a = v[i], b = v[i + half], s = sign * sine[i];
                v[i] = a * cosine[i] - b * s;
                v[i + half] = b * cosine[i] + a * s;
            }
            tune_cpu_out(x, n * Q + h * D, R, v);
        }
    }
    return 0;
}

/* The argument of the sigmoid that gates x, and its derivative. */
static inline float gate_of(float x, bool gelu)
{
    return gelu ? 1.5957691216f * x * (1.0f + 0.044715f * x * x) : x;
}

static inline float gate_slope(float x, bool gelu)
{
    return gelu ? 1.5957691216f * (1.0f + 0.134145f * x * x) : 1.0f;
}

static inline void glu_row(float *out, const float *gate, const float *up, int64_t F, bool gelu)
{
#pragma omp simd
    for (int64_t i = 0; i < F; i++)
        out[i] = gate[i] / (1.0f + tune_cpu_exp(-gate_of(gate[i], gelu))) * up[i];
}

/* dgate, dup may be gate, up, so read before writing. */
static inline void glu_row_backward(float *dgate, float *dup, const float *d, const float *gate, const float *up, int64_t F, bool gelu)
{
#pragma omp simd
    for (int64_t i = 0; i < F; i++) {
        float g = gate[i], u = up[i], s = 1.0f / (1.0f + tune_cpu_exp(-gate_of(g, gelu)));
        dgate[i] = d[i] * u * s * (1.0f + g * gate_slope(g, gelu) * (1.0f - s));
        dup[i] = d[i] * g * s;
    }
}

int tune_cpu_glu_forward(struct tune_device *dev, struct tune_tensor *h, const struct tune_tensor *gate_up, enum tune_gate kind)
{
    int64_t N = h->shape[0], F = h->shape[1];
    if (tune_cpu_reserve(dev, 3 * F) < 0)
        return -1;
#pragma omp parallel for num_threads(tune_cpu_threads(dev, N * F)) schedule(static)
    for (int64_t n = 0; n < N; n++) {
        float *work = tune_cpu_work(dev);
        const float *gate = tune_cpu_in(gate_up, 2 * n * F, 2 * F, work), *up = gate + F;
        float *out = tune_cpu_target(h, n * F, work + 2 * F);
        if (kind == TUNE_GATE_GELU) /* two loops, each with one function */
            glu_row(out, gate, up, F, true);
        else
            glu_row(out, gate, up, F, false);
        tune_cpu_out(h, n * F, F, out);
    }
    return 0;
}

int tune_cpu_glu_backward(struct tune_device *dev, struct tune_tensor *dgate_up, const struct tune_tensor *dh,
                          const struct tune_tensor *gate_up, enum tune_gate kind)
{
    int64_t N = dh->shape[0], F = dh->shape[1];
    if (tune_cpu_reserve(dev, 5 * F) < 0)
        return -1;
#pragma omp parallel for num_threads(tune_cpu_threads(dev, N * F)) schedule(static)
    for (int64_t n = 0; n < N; n++) {
        float *work = tune_cpu_work(dev);
        const float *gate = tune_cpu_in(gate_up, 2 * n * F, 2 * F, work), *up = gate + F;
        const float *d = tune_cpu_in(dh, n * F, F, work + 2 * F);
        float *dgate = tune_cpu_target(dgate_up, 2 * n * F, work + 3 * F), *dup = dgate + F;
        if (kind == TUNE_GATE_GELU)
            glu_row_backward(dgate, dup, d, gate, up, F, true);
        else
            glu_row_backward(dgate, dup, d, gate, up, F, false);
        tune_cpu_out(dgate_up, 2 * n * F, 2 * F, dgate);
    }
    return 0;
}

/* Copy rows of x to y, converting the dtype: row[n] of x to n (gather), or n to row[n] of y. Rows
 * of either may lie apart. */
static int copy_rows(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x,
                     const struct tune_tensor *rows, bool gather)
{
    int64_t N = rows->shape[0], C = x->shape[1];
    int64_t x_step = tune_tensor_stride(x), y_step = tune_tensor_stride(y);
    const int32_t *row = tune_cpu_data(rows);
    if (tune_cpu_reserve(dev, 2 * C) < 0)
        return -1;
#pragma omp parallel for num_threads(tune_cpu_threads(dev, N * C)) schedule(static)
    for (int64_t n = 0; n < N; n++) {
        int64_t from = (gather ? row[n] : n) * x_step, to = (gather ? n : row[n]) * y_step;
        float *work = tune_cpu_work(dev), *out = tune_cpu_target(y, to, work + C);
        memcpy(out, tune_cpu_in(x, from, C, work), (size_t)C * 4);
        tune_cpu_out(y, to, C, out);
    }
    return 0;
}

int tune_cpu_gather(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x,
                    const struct tune_tensor *rows)
{
    return copy_rows(dev, y, x, rows, true);
}

int tune_cpu_scatter(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const struct tune_tensor *rows)
{
    return copy_rows(dev, y, x, rows, false);
}
