/* cpu.h - declarations shared by the files of the CPU device. Private to this folder.
 *
 * Work is split over dev->threads OpenMP threads. Sums use fixed pieces, so the same number of
 * threads gives the same bits. A bfloat16 row is widened to float32 in the thread's working memory
 * and rounded at the end. A float32 row is used in place. */
#ifndef TUNE_CPU_H
#define TUNE_CPU_H

#include <omp.h>
#include <string.h>

#include "core/float16.h"
#include "core/nf4.h"
#include "devices/ops.h"

int tune_cpu_open(struct tune_device *dev);

/* The features of processors that sets need. */
enum {
    TUNE_CPU_SSE42 = 1, TUNE_CPU_AVX2 = 2, TUNE_CPU_AVX512 = 4, TUNE_CPU_AVX512_BF16 = 8,
    TUNE_CPU_AMX_BF16 = 16, TUNE_CPU_NEON_BF16 = 32
};

/* True if the bfloat16 products of a set that needs these (bits of the above) are clearly faster
 * than float32 products. amd: AMD made the processor. */
bool tune_cpu_bf16_is_faster(unsigned needs, bool amd);

/* FLOP/s of the products' tiles in this thread: the best of 41 tries of 20 us each. bf16 is 0 where
 * bf16_tiles is false. Both are 0 without memory. */
struct tune_cpu_rates {
    double f32, bf16;
};

/* The kernels compiled for one instruction set. Everything else of theirs has internal linkage:
 * see open.c. */
struct tune_cpu_isa {
    const char *name; /* as TUNE_CPU names it */
    unsigned needs;   /* what the processor must have */
    const struct tune_ops *ops;
    bool wide;        /* vectors of 256 bits, or NEON: our products are the faster ones */
    bool bf16_tiles;  /* false: products of bfloat16 use the float32 tile */
    struct tune_cpu_rates (*rates)(void);
    /* apply the OpenBLAS rules of device.h. text: its kernel, for the description. May set
     * dev->warning */
    void (*use_blas)(struct tune_device *dev, char *text, size_t size);
};

struct tune_cpu {
    const struct tune_cpu_isa *isa;
    float *work;          /* threads * floats */
    int64_t floats;       /* working memory of a thread, a multiple of 16 */
    float *shared;        /* a packed matrix that all threads read */
    int64_t shared_floats;
    float *sums;          /* dK and dV of each query head of an attention */
    int64_t sums_floats;
    bool blas;            /* products use OpenBLAS */
    bool bf16;            /* activations are bfloat16, so that products take such operands */
    double *partial;      /* [threads] partial sums */
    int team;             /* threads in the last region with partial sums */
    int64_t small;        /* TUNE_CPU_SMALL; tests set 0 */
};

/* The threads for an operation on so many numbers, or on 16 times as many products. It is one if
 * there are few: waking the others would take longer. */
enum { TUNE_CPU_SMALL = 1 << 14 };
static inline int tune_cpu_threads(const struct tune_device *dev, int64_t numbers)
{
    return numbers > ((const struct tune_cpu *)dev->state)->small ? dev->threads : 1;
}

/* Call first in a parallel region with partial sums. It records the number of threads to add up. */
static inline void tune_cpu_team(struct tune_device *dev)
{
    if (omp_get_thread_num() == 0)
        ((struct tune_cpu *)dev->state)->team = omp_get_num_threads();
}

static inline float *tune_cpu_work(struct tune_device *dev)
{
    struct tune_cpu *cpu = dev->state;
    return cpu->work + omp_get_thread_num() * cpu->floats;
}

/* Ensure working memory of this many floats: for each thread, or shared by all. Buffers only grow.
 * -1 or NULL with an error: no memory. */
int tune_cpu_reserve(struct tune_device *dev, int64_t floats);
float *tune_cpu_shared(struct tune_device *dev, int64_t floats);
float *tune_cpu_sums(struct tune_device *dev, int64_t floats);

/* This thread's part [begin,end) of 0..n-1. All parts but the last are multiples of grain. */
static inline void tune_cpu_piece(int64_t n, int64_t grain, int64_t *begin, int64_t *end)
{
    int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    int64_t grains = (n + grain - 1) / grain;
    *begin = grains * me / threads * grain;
    *end = grains * (me + 1) / threads * grain;
    *begin = *begin < n ? *begin : n;
    *end = *end < n ? *end : n;
}

/* A device address as a host pointer. */
static inline void *tune_cpu_pointer(tune_address a)
{
    return (void *)(uintptr_t)a.at;
}

/* The data of a tensor. NULL if t is NULL. */
static inline void *tune_cpu_data(const struct tune_tensor *t)
{
    return t ? tune_cpu_pointer(t->data) : NULL;
}

/* The parts of an NF4 matrix as views. NULL: t is not NF4. */
static inline const struct tune_nf4 *tune_cpu_nf4(const struct tune_tensor *t,
                                                  struct tune_nf4 parts[TUNE_NF4_PARTS])
{
    int n = 0;
    for (const struct tune_nf4_part *p = t->nf4; p; p = p->below, n++) {
        parts[n] = tune_nf4_at(tune_cpu_pointer(p->memory), p->count, p->offset);
        if (n > 0)
            parts[n - 1].below = &parts[n];
    }
    return n > 0 ? parts : NULL;
}

/* n elements of a tensor from element at, as float32: in place, or widened into the buffer. */
static inline const float *tune_cpu_in(const struct tune_tensor *t, int64_t at, int64_t n,
                                       float *buffer)
{
    if (t->dtype == TUNE_F32)
        return (const float *)tune_cpu_data(t) + at;
    if (t->dtype == TUNE_NF4) {
        struct tune_nf4 parts[TUNE_NF4_PARTS];
        tune_nf4_read(tune_cpu_nf4(t, parts), at, n, buffer);
        return buffer;
    }
    const uint16_t *h = (const uint16_t *)tune_cpu_data(t) + at;
    for (int64_t i = 0; i < n; i++)
        buffer[i] = tune_bf16_to_float(h[i]);
    return buffer;
}

/* The memory to write n elements from element at to: the tensor itself, or the buffer, which
 * tune_cpu_out then narrows. */
static inline float *tune_cpu_target(struct tune_tensor *t, int64_t at, float *buffer)
{
    return t->dtype == TUNE_F32 ? (float *)tune_cpu_data(t) + at : buffer;
}

static inline void tune_cpu_out(struct tune_tensor *t, int64_t at, int64_t n, const float *buffer)
{
    if (t->dtype == TUNE_F32)
        return;
    uint16_t *h = (uint16_t *)tune_cpu_data(t) + at;
    for (int64_t i = 0; i < n; i++)
        h[i] = tune_float_to_bf16(buffer[i]);
}

/* Round n floats to the nearest bfloat16, in place. */
static inline void tune_cpu_round(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = tune_bf16_to_float(tune_float_to_bf16(x[i]));
}

/* exp with an error of about 1 ulp, in arithmetic that the compiler can vectorize. NaN stays NaN.
 * The result is tiny below -87.3 and infinity above 88.7. Source: Cody & Waite's reduction; Taylor
 * polynomial of degree 7 on |r| <= ln2/2. */
static inline float tune_cpu_exp(float x)
{
    float t = x < -87.3f ? -87.3f : x;
    t = t > 88.8f ? 88.8f : t;
    float n = t * 1.44269504f + 12582912.f; /* the addition rounds to an integer in the low bits */
    int32_t k = (int32_t)(tune_float_bits(n) - 0x4B400000u);
    n -= 12582912.f;
    float r = t - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.9841270e-4f;
    p = p * r + 1.3888889e-3f;
    p = p * r + 8.3333333e-3f;
    p = p * r + 4.1666667e-2f;
    p = p * r + 1.6666667e-1f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    /* 2^k in two factors, because 2^128 alone would overflow */
    int32_t half = k >> 1;
    return p * tune_float_from_bits((uint32_t)(half + 127) << 23) *
           tune_float_from_bits((uint32_t)(k - half + 127) << 23);
}

/* Working memory that one thread needs, in floats. */
int64_t tune_cpu_gemm_floats(bool narrow); /* narrow: an output may be bfloat16 */
int64_t tune_cpu_blas_floats(void);
int64_t tune_cpu_attention_floats(int64_t keys, int64_t D);
/* shared by all threads */
int64_t tune_cpu_attention_sums(int64_t B, int64_t T, int64_t H, int64_t K, int64_t D);

/* Working memory that all threads share, in floats. */
/* depth: largest inner dimension */
int64_t tune_cpu_gemm_shared_floats(bool narrow, int64_t depth);
/* INT64_MAX: more than 64 bits count */
int64_t tune_cpu_decode_attention_floats(int64_t B, int64_t capacity, int64_t H, int64_t D);

void tune_cpu_use_blas(struct tune_device *dev, char *text, size_t size);
int tune_cpu_peak_rates(struct tune_device *dev, struct tune_peak_rates *peak_rates,
                        tune_address memory, int64_t n);
int tune_cpu_blas_gemm(struct tune_device *dev, struct tune_tensor *c, const struct tune_tensor *a,
                       bool trans_a, const struct tune_tensor *b, bool trans_b, float alpha,
                       float beta, enum tune_dtype operands);

#define TUNE_CPU_KERNEL(op) \
    int tune_cpu_##op(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER));
TUNE_OPS(TUNE_CPU_KERNEL)
#undef TUNE_CPU_KERNEL

#endif
