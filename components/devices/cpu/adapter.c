/* adapter.c - operations of low-rank adapters besides matrix products, and noise: dropout, DoRA's column
 * scales. */
#include <math.h>

#include "core/random.h"
#include "devices/cpu/cpu.h"
#include "devices/record.h"

/* 32 random bits for a column, from the row's 64 bits. Plain arithmetic, so the compiler vectorizes
 * it. Source: Appleby's 32-bit finalizer (MurmurHash3). The row's bits come from Philox. */
static inline uint32_t column_bits(uint64_t row, uint32_t column)
{
    uint32_t h = (uint32_t)row + column * 0x9E3779B9u;
    h ^= h >> 16;
    h *= 0x85EBCA6Bu;
    h ^= (uint32_t)(row >> 32);
    h ^= h >> 13;
    h *= 0xC2B2AE35u;
    return h ^ h >> 16;
}

/* The key of this forward pass's random numbers, in this layer and product. */
static uint64_t pass_key(const struct tune_scalars *s, struct tune_dropout drop)
{
    uint64_t pass = tune_random_u64(drop.seed, (uint64_t)(drop.past_steps + (int64_t)s->step), (uint64_t)s->pass);
    return tune_random_u64(pass, (uint64_t)drop.layer, (uint64_t)drop.which);
}

int tune_cpu_dropout(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, tune_address step,
                     struct tune_dropout drop,
                     float beta, float plain, float masked)
{
    int64_t N = x->shape[0], C = x->shape[1];
    uint64_t key = pass_key(tune_cpu_pointer(step), drop);
    uint32_t below = (uint32_t)(drop.p * 0x1p32); /* p < 1, so it fits */
    float stays = plain + masked * (float)(1 / (1 - drop.p));
    if (tune_cpu_reserve(dev, 2 * C) < 0)
        return -1;
#pragma omp parallel for num_threads(tune_cpu_threads(dev, N * C)) schedule(static)
    for (int64_t n = 0; n < N; n++) {
        float *work = tune_cpu_work(dev);
        uint64_t row = tune_random_u64(key, 0, (uint64_t)n);
        const float *in = tune_cpu_in(x, n * C, C, work);
        float *out = tune_cpu_target(y, n * C, work + C);
        if (beta != 0)
            tune_cpu_in(y, n * C, C, out);
#pragma omp simd
        for (int64_t i = 0; i < C; i++) {
            float to = (column_bits(row, (uint32_t)i) < below ? plain : stays) * in[i];
            out[i] = beta == 0 ? to : beta * out[i] + to;
        }
        tune_cpu_out(y, n * C, C, out);
    }
    return 0;
}

int tune_cpu_noise(struct tune_device *dev, struct tune_tensor *y, tune_address step, struct tune_dropout drop, float size)
{
    int64_t N = y->shape[0], C = y->shape[1];
    uint64_t key = pass_key(tune_cpu_pointer(step), drop);
#pragma omp parallel for num_threads(tune_cpu_threads(dev, N * C)) schedule(static)
    for (int64_t n = 0; n < N; n++) {
        uint64_t row = tune_random_u64(key, 0, (uint64_t)n);
        float *out = (float *)tune_cpu_data(y) + n * C;
#pragma omp simd
        for (int64_t i = 0; i < C; i++)
            out[i] += size * ((float)(int32_t)column_bits(row, (uint32_t)i) * 0x1p-31f);
    }
    return 0;
}

int tune_cpu_scale_columns(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const struct tune_tensor *g,
                           float plus, float scale, float beta)
{
    int64_t N = x->shape[0], C = x->shape[1];
    const float *factor = tune_cpu_data(g);
    if (tune_cpu_reserve(dev, 2 * C) < 0)
        return -1;
#pragma omp parallel for num_threads(tune_cpu_threads(dev, N * C)) schedule(static)
    for (int64_t n = 0; n < N; n++) {
        float *work = tune_cpu_work(dev);
        const float *in = tune_cpu_in(x, n * C, C, work);
        float *out = tune_cpu_target(y, n * C, work + C);
        if (beta != 0)
            tune_cpu_in(y, n * C, C, out);
#pragma omp simd
        for (int64_t i = 0; i < C; i++) {
            float to = scale * (factor[i] + plus) * in[i];
            out[i] = beta == 0 ? to : beta * out[i] + to;
        }
        tune_cpu_out(y, n * C, C, out);
    }
    return 0;
}

int tune_cpu_dot_columns(struct tune_device *dev, struct tune_tensor *dots, const struct tune_tensor *x,
                         const struct tune_tensor *y, const struct tune_tensor *g, int64_t first, float scale)
{
    int64_t N = x->shape[0], C = x->shape[1], n = dots->shape[0];
    if (tune_cpu_reserve(dev, 3 * n) < 0)
        return -1;
#pragma omp parallel num_threads(tune_cpu_threads(dev, N * n))
    {
        /* Each thread sums its own columns in the order of rows, so the bits do not depend on the
         * number of threads. */
        int64_t begin, end;
        tune_cpu_piece(n, 16, &begin, &end);
        int64_t wide = end - begin;
        float *sum = tune_cpu_work(dev), *buffer = sum + wide, *to = (float *)tune_cpu_data(dots) + begin;
        const float *factor = (const float *)tune_cpu_data(g) + begin;
        for (int64_t i = 0; i < wide; i++)
            sum[i] = 0;
        for (int64_t r = 0; r < N; r++) {
            const float *a = tune_cpu_in(x, r * C + first + begin, wide, buffer);
            const float *b = tune_cpu_in(y, r * C + first + begin, wide, buffer + wide);
            for (int64_t i = 0; i < wide; i++)
                sum[i] += a[i] * b[i];
        }
        for (int64_t i = 0; i < wide; i++)
            to[i] += scale * factor[i] * sum[i];
    }
    return 0;
}

int tune_cpu_row_squares(struct tune_device *dev, struct tune_tensor *squares, const struct tune_tensor *w)
{
    int64_t M = w->shape[0], K = w->shape[1];
    if (tune_cpu_reserve(dev, K) < 0)
        return -1;
#pragma omp parallel for num_threads(tune_cpu_threads(dev, M * K)) schedule(static)
    for (int64_t m = 0; m < M; m++) {
        const float *in = tune_cpu_in(w, m * K, K, tune_cpu_work(dev));
        double sum = 0;
        for (int64_t k = 0; k < K; k++)
            sum += (double)in[k] * in[k];
        ((float *)tune_cpu_data(squares))[m] = (float)sum;
    }
    return 0;
}

/* Length of a row of W + s B A: square is W's part, then s b.p and s^2 b (A A^T) b. Sums are
 * float64 because the added terms are small beside square. */
static double row_length(double square, const float *b, const float *p, const float *aa, int64_t r, double s)
{
    double linear = 0, square_of = 0;
    for (int64_t k = 0; k < r; k++) {
        double sum = 0;
        for (int64_t j = 0; j < r; j++)
            sum += (double)aa[k * r + j] * b[j];
        linear += (double)b[k] * p[k];
        square_of += b[k] * sum;
    }
    return sqrt(square + 2 * s * linear + s * s * square_of);
}

int tune_cpu_dora_scale(struct tune_device *dev, struct tune_tensor *g, struct tune_tensor *inverse,
                        const struct tune_tensor *magnitude, const struct tune_tensor *squares, const struct tune_tensor *b,
                        const struct tune_tensor *p, const struct tune_tensor *aa, float s)
{
    int64_t M = g->shape[0], r = magnitude ? b->shape[1] : 0;
    float *to = tune_cpu_data(g), *over = tune_cpu_data(inverse);
#pragma omp parallel for num_threads(tune_cpu_threads(dev, M * r * r)) schedule(static)
    for (int64_t m = 0; m < M; m++) {
        to[m] = 1;
        over[m] = 0;
        if (!magnitude)
            continue;
        double l = row_length(((const float *)tune_cpu_data(squares))[m], (const float *)tune_cpu_data(b) + m * r, (const float *)tune_cpu_data(p) + m * r,
                              tune_cpu_data(aa), r, s);
        /* a zero row has length 0 and gets scale 0 */
        to[m] = l > 0 ? (float)(((const float *)tune_cpu_data(magnitude))[m] / l) : 0;
        over[m] = l > 0 ? (float)(1 / l) : 0;
    }
    return 0;
}
