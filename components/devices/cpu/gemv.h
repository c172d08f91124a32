/* gemv.h - dot products of a few rows with many, for products and attention of one token at a
 * time. The many rows are read once, in place. Private to this folder. */
#ifndef TUNE_GEMV_H
#define TUNE_GEMV_H

#include "devices/cpu/panel.h"

/* fused - x y + sum in one rounding. A compiler left to itself fuses in one loop and not in the
 * other; then the bits would depend on the number of rows. */
#if defined(__FMA__) && LANES == 4
#include <immintrin.h>
#define FUSED return _mm_fmadd_ps(x, y, sum)
#elif defined(__FMA__) && LANES == 8
#include <immintrin.h>
#define FUSED return _mm256_fmadd_ps(x, y, sum)
#elif defined(__AVX512F__)
#include <immintrin.h>
#define FUSED return _mm512_fmadd_ps(x, y, sum)
#elif defined(__aarch64__)
#include <arm_neon.h>
#define FUSED return vfmaq_f32(sum, x, y)
#elif defined(__FMA__)
#define FUSED for (int i = 0; i < VL; i++) sum[i] = __builtin_fmaf(x[i], y[i], sum[i]); return sum
#else
#define FUSED return x * y + sum
#endif
static inline __attribute__((always_inline)) vec fused(vec x, vec y, vec sum)
{
    FUSED;
}
#undef FUSED

/* rows of the many that are done together; most of the few */
enum { STRIP = VL == 16 ? 48 : 24, GEMV_ROWS = 16 };

/* Sums of products: lane l of sums[m][n] has the elements l, l + VL, ... of a[m] w[n]. */
typedef vec gemv_sums[STRIP];

/* The last elements of a row, and zeros. */
static inline __attribute__((always_inline)) vec load_some(
    const struct operand *o, enum tune_dtype dtype, int64_t at, int64_t count)
{
    float some[VL] = {0};
    for (int64_t i = 0; i < count; i++)
        some[i] = dtype == TUNE_F32 ? ((const float *)o->data)[at + i]
                                    : tune_bf16_to_float(((const uint16_t *)o->data)[at + i]);
    return *(const loose_vec *)some;
}

/* tune_cpu_dots - add to sums [M][N] the products of M rows of a with N rows of w, over `depth`
 * elements. The order of summation is the same for every M and N.
 *     a [M, lda]: zeros up to whole vectors after depth   w: rows w->ld apart, by_depth not used
 *     ahead: prefetch w that many rows ahead; 0: do not
 * tune_cpu_add_lanes - out[n] = the sum of the lanes of sums[n], for n < N up to whole vectors. */
void tune_cpu_dots(gemv_sums *sums, int64_t M, int64_t N, const float *a, int64_t lda,
                   const struct operand *w, int64_t depth, int64_t ahead);
void tune_cpu_add_lanes(const vec *sums, int64_t N, float *out);

/* tune_cpu_is_gemv - whether a product has at most GEMV_ROWS rows, and is of that kind.
 * tune_cpu_gemv - tune_gemm for such a product: c = beta c + alpha a b'. */
bool tune_cpu_is_gemv(const struct tune_tensor *c, const struct tune_tensor *a, bool trans_a,
                      bool trans_b);
int tune_cpu_gemv(struct tune_device *dev, struct tune_tensor *c, const struct tune_tensor *a,
                  const struct tune_tensor *b, float alpha, float beta, enum tune_dtype operands);
#endif
