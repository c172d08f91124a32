/* cpu.h - what the files of the CPU device share. Inside this folder only.
 *
 * Work is split over dev->threads OpenMP threads, in fixed pieces where sums depend on them, so
 * the same thread count gives the same bits. A row in bfloat16 is widened into the thread's working
 * memory, computed in float32, and narrowed at the end; a float32 row is used where it lies. */
#ifndef TUNE_CPU_H
#define TUNE_CPU_H

#include <omp.h>
#include <string.h>

#include "core/float16.h"
#include "core/nf4.h"
#include "devices/ops.h"

int tune_cpu_open(struct tune_device *dev);

/* The OpenBLAS rules of device.h: right kernel, one pool. text: what runs, for the description;
 * fills warning. */
void tune_cpu_blas_start(struct tune_device *dev, char *text, size_t size);

struct tune_cpu {
    float *work;          /* threads * floats */
    int64_t floats;       /* each thread's working memory, a multiple of 16 */
    float *shared;        /* a packed matrix, all threads' */
    int64_t shared_floats;
    float *sums;          /* an attention's dK and dV of each query head */
    int64_t sums_floats;
    bool blas;            /* products are OpenBLAS's */
    double *partial;      /* [threads] */
    int team;             /* threads the last region with partial sums really had */
};

/* Called first in a region whose threads leave partial sums: how many there are to add
 * afterwards. */
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

/* Make sure each thread has so many floats, or there are so many for all together; both only ever
 * grow. -1, NULL: no memory. */
int tune_cpu_reserve(struct tune_device *dev, int64_t floats);
float *tune_cpu_shared(struct tune_device *dev, int64_t floats);
float *tune_cpu_sums(struct tune_device *dev, int64_t floats);

/* This thread's piece of 0..n-1, whole multiples of grain but the last. */
static inline void tune_cpu_piece(int64_t n, int64_t grain, int64_t *begin, int64_t *end)
{
    int64_t threads = omp_get_num_threads(), me = omp_get_thread_num();
    int64_t grains = (n + grain - 1) / grain;
    *begin = grains * me / threads * grain;
    *end = grains * (me + 1) / threads * grain;
    *begin = *begin < n ? *begin : n;
    *end = *end < n ? *end : n;
}

/* Device memory as the CPU sees it. */
static inline void *tune_cpu_pointer(tune_address a)
{
    return (void *)(uintptr_t)a.at;
}

/* The numbers of a tensor; NULL: there is no tensor. */
static inline void *tune_cpu_data(const struct tune_tensor *t)
{
    return t ? tune_cpu_pointer(t->data) : NULL;
}

/* The parts of an NF4 matrix as the host's views of them; NULL: it is not NF4. */
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

/* n numbers of a tensor from element at, as float32: in place, or widened into room. */
static inline const float *tune_cpu_in(const struct tune_tensor *t, int64_t at, int64_t n,
                                       float *room)
{
    if (t->dtype == TUNE_F32)
        return (const float *)tune_cpu_data(t) + at;
    if (t->dtype == TUNE_NF4) {
        struct tune_nf4 parts[TUNE_NF4_PARTS];
        tune_nf4_read(tune_cpu_nf4(t, parts), at, n, room);
        return room;
    }
    const uint16_t *h = (const uint16_t *)tune_cpu_data(t) + at;
    for (int64_t i = 0; i < n; i++)
        room[i] = tune_bf16_to_float(h[i]);
    return room;
}

/* Where to write n numbers of a tensor from element at: in place, or room, to be narrowed by
 * tune_cpu_out. */
static inline float *tune_cpu_place(struct tune_tensor *t, int64_t at, float *room)
{
    return t->dtype == TUNE_F32 ? (float *)tune_cpu_data(t) + at : room;
}

static inline void tune_cpu_out(struct tune_tensor *t, int64_t at, int64_t n, const float *room)
{
    if (t->dtype == TUNE_F32)
        return;
    uint16_t *h = (uint16_t *)tune_cpu_data(t) + at;
    for (int64_t i = 0; i < n; i++)
        h[i] = tune_float_to_bf16(room[i]);
}

/* n numbers to the nearest bfloat16 each, in place. */
static inline void tune_cpu_round(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = tune_bf16_to_float(tune_float_to_bf16(x[i]));
}

/* exp to about 1 ulp, in plain arithmetic the compiler can make vectors of. NaN stays NaN; below
 * -87.3 it is 0's neighbour, above 88.7 infinity. Cody & Waite's reduction, Taylor's polynomial of
 * degree 7 on |r| <= ln2/2. */
static inline float tune_cpu_exp(float x)
{
    float t = x < -87.3f ? -87.3f : x;
    t = t > 88.8f ? 88.8f : t;
    /* the addition rounds to an integer, left in the low bits */
    float n = t * 1.44269504f + 12582912.f;
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
    /* 2^k in two factors, so that k = 128 does not overflow early */
    int32_t half = k >> 1;
    return p * tune_float_from_bits((uint32_t)(half + 127) << 23) * tune_float_from_bits((uint32_t)(k - half + 127) << 23);
}

/* What one thread needs, in floats: a widened block of each matrix, the backward of an
 * attention. */
int64_t tune_cpu_gemm_floats(bool narrow); /* narrow: a product may be stored in bfloat16 */
int64_t tune_cpu_blas_floats(void);
int64_t tune_cpu_attention_floats(int64_t keys, int64_t D);
int64_t tune_cpu_attention_sums(int64_t B, int64_t T, int64_t H, int64_t D); /* all threads' */

/* What all threads need together, in floats. */
int64_t tune_cpu_gemm_shared_floats(bool narrow, int64_t depth); /* of products at most */

/* gemm.c: whether it was compiled for wide vectors, and which; the product. blas.c: the same
 * product by OpenBLAS. */
bool tune_cpu_gemm_is_fast(void);
const char *tune_cpu_gemm_vectors(void);
int tune_cpu_ceilings(struct tune_device *dev, struct tune_ceilings *ceilings, tune_address memory,
                      int64_t n);
int tune_cpu_blas_gemm(struct tune_device *dev, struct tune_tensor *c, const struct tune_tensor *a,
                       bool at,
                       const struct tune_tensor *b, bool bt, float alpha, float beta, enum tune_dtype operands);

#define TUNE_CPU_KERNEL(op) int tune_cpu_##op(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER));
TUNE_OPS(TUNE_CPU_KERNEL)
#undef TUNE_CPU_KERNEL

#endif
