/* bf16.h - the bfloat16 instructions, each with a body in plain C. Private to this folder.
 *
 * All take bfloat16 operands and sum in float32. A denormal operand counts as 0, and a denormal
 * result becomes 0. The C bodies sum in the order of the instructions; BFMMLA's intermediate
 * roundings differ. Sources: Intel's instruction set reference (VDPBF16PS, TDPBF16PS); Arm's
 * (BFMMLA). */
#ifndef TUNE_CPU_BF16_H
#define TUNE_CPU_BF16_H

#include "devices/cpu/panel.h"

/* 0 in place of a denormal. */
static inline float normal(float x)
{
    uint32_t bits = tune_float_bits(x);
    return bits & 0x7F800000u ? x : tune_float_from_bits(bits & 0x80000000u);
}

/* The product of halves `which` (0: the low one) of two words, added to sum. */
static inline float add_half(uint32_t x, uint32_t y, int which, float sum)
{
    float a = tune_float_from_bits(which ? x & 0xFFFF0000u : x << 16);
    float b = tune_float_from_bits(which ? y & 0xFFFF0000u : y << 16);
    return normal(__builtin_fmaf(normal(a), normal(b), sum));
}

/* add_pairs - sum + the products of both halves of x and y, for each of VL words. The high halves
 * come first. */
#if defined(__AVX512BF16__) && LANES == 16
#include <immintrin.h>
static inline __attribute__((always_inline)) vec add_pairs(vec x, vec y, vec sum)
{
    return (vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)y);
}
#elif defined(AVX512_BF16_IN_C)
static inline __attribute__((always_inline)) vec add_pairs(vec x, vec y, vec sum)
{
    uint32_t a[VL], b[VL];
    memcpy(a, &x, sizeof a);
    memcpy(b, &y, sizeof b);
    for (int i = 0; i < VL; i++)
        sum[i] = add_half(a[i], b[i], 0, add_half(a[i], b[i], 1, sum[i]));
    return sum;
}
#endif

#if LANES == 16
/* Pairs of float32 numbers as words of two bfloat16, rounded to nearest even.
 * round_neighbours - word i: elements 2i and 2i+1 of the 2 VL numbers `first`, `second`.
 * round_rows - word i: element i of `low` and of `high`. */
#if defined(__AVX512BF16__)
static inline __attribute__((always_inline)) vec round_neighbours(vec first, vec second)
{
    return (vec)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
}

static inline __attribute__((always_inline)) vec round_rows(vec low, vec high)
{
    typedef int16_t halves __attribute__((vector_size(64)));
    static const halves order = {0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23,
                                 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return (vec)_mm512_permutexvar_epi16((__m512i)order, (__m512i)round_neighbours(low, high));
}
#elif defined(AVX512_BF16_IN_C) || defined(AMX_IN_C)
static inline vec round_neighbours(vec first, vec second)
{
    uint16_t halves[2 * VL];
    vec words;
    for (int i = 0; i < VL; i++) {
        halves[i] = tune_float_to_bf16(normal(first[i]));
        halves[VL + i] = tune_float_to_bf16(normal(second[i]));
    }
    memcpy(&words, halves, sizeof words);
    return words;
}

static inline vec round_rows(vec low, vec high)
{
    uint32_t word[VL];
    vec words;
    for (int i = 0; i < VL; i++)
        word[i] = (uint32_t)tune_float_to_bf16(normal(high[i])) << 16 |
                  tune_float_to_bf16(normal(low[i]));
    memcpy(&words, word, sizeof words);
    return words;
}
#endif
#endif

/* AMX: eight tiles of 16 rows of 64 bytes.
 * tiles_begin, tiles_end - this thread's tiles, all of full size, until the end.
 * tile_zero(t), tile_load(t, from, stride), tile_store(t, to, stride) - stride in bytes.
 * tile_multiply(c, a, b) - c [16,16] += a b. a: 16 rows of 32 bfloat16. b: 16 rows of 16 pairs.
 * The sums of even and of odd depths are apart until the end.
 * The arguments t, c, a, b are digits from 0 to 7. */
#if defined(__AMX_BF16__)
/* Assembly, because the intrinsics of gcc 12 say too little: that LDTILECFG reads 8 bytes, and that
 * TILELOADD reads no memory. So gcc removed the stores of the tiles' shape. */
#define tile_zero(t) __asm__ volatile("tilezero %%tmm" #t ::)
#define tile_load(t, from, stride) \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #t ::"r"(from), "r"((int64_t)(stride)) : "memory")
#define tile_store(t, to, stride) \
    __asm__ volatile("tilestored %%tmm" #t ", (%0,%1,1)" ::"r"(to), "r"((int64_t)(stride)) \
                     : "memory")
#define tile_multiply(c, a, b) \
    __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)
static inline void tiles_begin(void)
{
    struct {
        uint8_t palette, start, zeros[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shape = {.palette = 1};
    _Static_assert(sizeof shape == 64, "not the layout of LDTILECFG");
    for (int i = 0; i < 8; i++) {
        shape.row_bytes[i] = 64;
        shape.rows[i] = 16;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(shape));
}
static inline void tiles_end(void)
{
    __asm__ volatile("tilerelease" ::);
}
#elif defined(AMX_IN_C)
static __thread uint32_t amx_tile[8][16][16];
static __thread int amx_begun; /* the real ones fault where this is 0 */
static inline void tiles_begin(void)
{
    amx_begun = 1;
    memset(amx_tile, 0, sizeof amx_tile);
}
static inline void tiles_end(void)
{
    amx_begun = 0;
}
static inline void tile_zero(int t)
{
    memset(amx_tile[t], amx_begun ? 0 : 0xFF, sizeof amx_tile[t]);
}
static inline void tile_load(int t, const void *from, int64_t stride)
{
    for (int i = 0; i < 16; i++)
        memcpy(amx_tile[t][i], (const char *)from + i * stride, 64);
}
static inline void tile_store(int t, void *to, int64_t stride)
{
    for (int i = 0; i < 16; i++)
        memcpy((char *)to + i * stride, amx_tile[t][i], 64);
}
static inline void tile_multiply(int c, int a, int b)
{
    for (int m = 0; m < 16; m++)
        for (int n = 0; n < 16; n++) {
            float even = 0, odd = 0;
            for (int k = 0; k < 16; k++) {
                even = add_half(amx_tile[a][m][k], amx_tile[b][k][n], 0, even);
                odd = add_half(amx_tile[a][m][k], amx_tile[b][k][n], 1, odd);
            }
            float sum = normal(tune_float_from_bits(amx_tile[c][m][n]) + normal(even + odd));
            amx_tile[c][m][n] = tune_float_bits(sum);
        }
}
#endif

/* NEON: add_squares - c [2,2] += a b'. a, b: [2,4] of bfloat16. */
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>
static inline __attribute__((always_inline)) vec add_squares(const float *a, const float *b, vec c)
{
    bfloat16x8_t x = vreinterpretq_bf16_f32(vld1q_f32(a)), y = vreinterpretq_bf16_f32(vld1q_f32(b));
    return (vec)vbfmmlaq_f32((float32x4_t)c, x, y);
}
#elif defined(NEON_BF16_IN_C)
static inline __attribute__((always_inline)) vec add_squares(const float *a, const float *b, vec c)
{
    uint32_t x[4], y[4];
    memcpy(x, a, sizeof x);
    memcpy(y, b, sizeof y);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 2; k++) {
            uint32_t left = x[i / 2 * 2 + k], right = y[i % 2 * 2 + k];
            c[i] = normal(c[i] + add_half(left, right, 1, add_half(left, right, 0, 0)));
        }
    return c;
}
#endif

#endif
