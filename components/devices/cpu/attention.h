/* attention.h - the arguments of an attention, for the kernels for many queries (attention.c) and
 * for few (decode_attention.c). Private to this folder. */
#ifndef TUNE_CPU_ATTENTION_H
#define TUNE_CPU_ATTENTION_H

#include "devices/cpu/tiles.h"

enum { DECODE_QUERIES = 16 }; /* most queries of a row for which decode_attention.c is faster */

/* Queries [B,Tq,H,D], keys and values [B,capacity,K,D], their strides and the mask. */
struct attention {
    const struct tune_tensor *q, *k, *v;
    const int32_t *starts, *kv_length, *q_offset; /* NULL: 0, all keys, 0 */
    int64_t B, T, H, K, D;                 /* T: queries in a row */
    int64_t window;
    float scale;
    const struct tiles *tiles; /* of attention.c's products */
};

static inline struct attention attention(const struct tune_tensor *q, const struct tune_tensor *k,
                                         const struct tune_tensor *v,
                                         const struct tune_tensor *starts,
                                         const struct tune_attention *params)
{
    const struct tiles *tiles = &tune_cpu_f32_tiles;
#ifdef TUNE_BF16_TILES
    tiles = q->dtype == TUNE_BF16 ? &tune_cpu_bf16_tiles : tiles;
#endif
    return (struct attention){q, k, v, tune_cpu_data(starts), NULL, NULL, q->shape[0], q->shape[1],
                              q->shape[2], k->shape[2], q->shape[3], params->window, params->scale,
                              tiles};
}

/* The keys are a cache, not those of the queries themselves. */
static inline bool is_cache(const struct attention *s)
{
    return s->kv_length || s->q_offset || s->T != s->k->shape[1];
}

static inline int64_t position_stride(const struct tune_tensor *t)
{
    return t->stride ? t->stride : t->shape[2] * t->shape[3];
}

/* Index of the first element of head h at position i of row b. */
static inline int64_t head_at(const struct tune_tensor *t, int64_t b, int64_t i, int64_t h)
{
    int64_t stride = position_stride(t), outer = t->outer ? t->outer : t->shape[1] * stride;
    return b * outer + i * stride + h * t->shape[3];
}

/* One head of row b as an operand, from position i. */
static inline struct operand head(const struct tune_tensor *t, int64_t b, int64_t i, int64_t h)
{
    int64_t size = t->dtype == TUNE_F32 ? 4 : 2;
    return (struct operand){(const char *)tune_cpu_data(t) + head_at(t, b, i, h) * size, t->dtype,
                            position_stride(t), false};
}

/* tune_cpu_exp in vectors, of numbers up to 88. */
static inline vec exponential(vec x)
{
    int_vec low = x < -87.3f;
    vec t = (vec)((low & (int_vec)((vec){0} - 87.3f)) | (~low & (int_vec)x));
    vec n = t * 1.44269504f + 12582912.f;
    int_vec k = (int_vec)n - 0x4B400000;
    n -= 12582912.f;
    vec r = t - n * 0.693359375f + n * 2.12194440e-4f, p = r * 1.9841270e-4f + 1.3888889e-3f;
    p = p * r + 8.3333333e-3f;
    p = p * r + 4.1666667e-2f;
    p = p * r + 1.6666667e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return p * (vec)((k + 127) << 23);
}

/* tune_cpu_decode_attention - attention over a cache for at most DECODE_QUERIES queries of each
 * row. */
int tune_cpu_decode_attention(struct tune_device *dev, const struct attention *s,
                              struct tune_tensor *out, float *lse);

#endif
