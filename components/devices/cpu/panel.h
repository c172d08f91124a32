/* panel.h - the inner part of every matrix product: packed panels, and the kernel that multiplies
 * two.
 *
 *     a panel of A: [depth, MR]       a panel of B: [depth, NR]       C tile [MR, NR] += A^T B
 *
 *                 <----- NR = 3 vectors ----->
 *        k |  b0 ............ b1 ............ b2 ............      one row at a time, from packed B
 *     MR   |  a[k,i] times b0 b1 b2, into MR * 3 vectors that stay in registers
 *
 * A need not be packed: its elements may have any two strides. MR * 3 sums, 3 vectors of B and one
 * of A fill the registers: 32 with AVX-512 and NEON, 16 with AVX2.
 *
 * The code uses the compilers' vector types, so the same text serves all of them. gcc and clang
 * both reach the FMA peak within 1 % (tests/bench/bench_gemm.c). Source: Goto & van de Geijn 2008;
 * Van Zee & van de Geijn 2015 (BLIS). */
#ifndef TUNE_PANEL_H
#define TUNE_PANEL_H

#include "devices/cpu/cpu.h"

/* Tests set the first two, to run other processors' tiles. */
#if defined(LANES) && defined(TILE_ROWS)
#elif defined(__aarch64__)
#define LANES 4
#define TILE_ROWS 8
#elif defined(__AVX512F__)
#define LANES 16
#define TILE_ROWS 8
#elif defined(__AVX__)
#define LANES 8
#define TILE_ROWS 4
#else
#define LANES 4
#define TILE_ROWS 4
#endif
/* BOTH: a number of rows that is whole panels of A and of B. */
enum { VL = LANES, MR = TILE_ROWS, WIDE = 3, NR = WIDE * VL, BOTH = NR % MR == 0 ? NR : 2 * NR };
_Static_assert(BOTH % MR == 0, "a panel of A would not end where one of B ends");
enum { FEW = 16, SOON = 48 }; /* depths packed at a time; depths prefetched, if far apart */

typedef float vec __attribute__((vector_size(VL * 4)));
typedef float loose_vec __attribute__((vector_size(VL * 4), aligned(4), may_alias));
typedef int32_t int_vec __attribute__((vector_size(VL * 4)));

static inline int64_t up(int64_t n, int64_t to)
{
    return (n + to - 1) / to * to;
}

/* Interleave the lanes of a and b: first halves (a0 b0 a1 b1 ...), or second halves. */
#if defined(__clang__)
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (int_vec){__VA_ARGS__})
#endif
static inline vec low(vec a, vec b)
{
#if LANES == 16
    return SHUFFLE(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
#elif LANES == 8
    return SHUFFLE(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
#else
    return SHUFFLE(a, b, 0, 4, 1, 5);
#endif
}

static inline vec high(vec a, vec b)
{
#if LANES == 16
    return SHUFFLE(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
#elif LANES == 8
    return SHUFFLE(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
#else
    return SHUFFLE(a, b, 2, 6, 3, 7);
#endif
}

/* Transpose R rows of VL elements to VL columns of R elements, in log2(R) perfect shuffles. */
#define ALWAYS static inline __attribute__((always_inline))
ALWAYS void transpose(vec *r, int R)
{
    for (int round = 1; round < R; round *= 2) {
        vec t[VL > MR ? VL : MR];
#pragma GCC unroll 16
        for (int i = 0; i < R / 2; i++) {
            t[2 * i] = low(r[i], r[i + R / 2]);
            t[2 * i + 1] = high(r[i], r[i + R / 2]);
        }
#pragma GCC unroll 16
        for (int i = 0; i < R; i++)
            r[i] = t[i];
    }
}

/* A matrix to pack. Element (i,k), i along the panel, is at data[i*ld + k], or data[k*ld + i] if
 * by_depth. */
struct operand {
    const void *data;
    enum tune_dtype dtype; /* F32 or BF16 */
    int64_t ld;
    bool by_depth;
};

ALWAYS vec load(const struct operand *o, enum tune_dtype dtype, int64_t at)
{
    vec v;
    if (dtype == TUNE_F32) {
        v = *(const loose_vec *)((const float *)o->data + at);
    } else {
        const uint16_t *h = (const uint16_t *)o->data + at;
        uint32_t bits[VL];
        for (int i = 0; i < VL; i++)
            bits[i] = (uint32_t)h[i] << 16;
        memcpy(&v, bits, sizeof v);
    }
    return v;
}

ALWAYS float element(const struct operand *o, int64_t at)
{
    return o->dtype == TUNE_F32 ? ((const float *)o->data)[at]
                                : tune_bf16_to_float(((const uint16_t *)o->data)[at]);
}

/* Pack R full rows from i. Row k of the panel is at out + k * width. */
ALWAYS void pack_rows(const struct operand *o, enum tune_dtype dtype, int64_t i, int64_t k0,
                      int64_t k1, int R, int64_t width, float *out)
{
    int64_t k = k0;
    for (; k + VL <= k1; k += VL, out += VL * width) {
        vec r[VL > MR ? VL : MR];
#pragma GCC unroll 16
        for (int j = 0; j < R; j++)
            r[j] = load(o, dtype, (i + j) * o->ld + k);
        transpose(r, R);
#pragma GCC unroll 16
        for (int j = 0; j < R; j++)
            *(loose_vec *)(R < VL ? out + j * VL : out + j * width) = r[j];
    }
    for (; k < k1; k++, out += width)
        for (int j = 0; j < R; j++)
            out[j] = element(o, (i + j) * o->ld + k);
}

/* Pack `width` elements of each depth; all exist. Later rows are prefetched early, because they are
 * far apart and mostly not in cache. */
ALWAYS void pack_depth(const struct operand *o, enum tune_dtype dtype, int64_t i, int64_t k0,
                       int64_t k1, int width, float *out)
{
    const int64_t size = dtype == TUNE_F32 ? 4 : 2, line = 64 / size;
    for (int64_t k = k0; k < k1; k++, out += width) {
        const char *from = (const char *)o->data + (k * o->ld + i) * size,
                   *next = from + SOON * o->ld * size;
#pragma GCC unroll 4
        for (int64_t j = 0; j < width; j += line)
            __builtin_prefetch(next + j * size);
        if (dtype == TUNE_F32)
            memcpy(out, from, (size_t)width * 4);
        else
            for (int j = 0; j < width; j++)
                out[j] = tune_bf16_to_float(((const uint16_t *)from)[j]);
    }
}

/* Pack any part of a panel, element by element, for the edges of a matrix. */
static inline void pack_edge(const struct operand *o, int64_t i, int64_t count, int64_t width,
                             int64_t k0, int64_t k1, float *out)
{
    int64_t row = o->by_depth ? 1 : o->ld, step = o->by_depth ? o->ld : 1;
    for (int64_t k = k0; k < k1; k++, out += width)
        for (int64_t j = 0; j < width; j++)
            out[j] = j < count ? element(o, (i + j) * row + k * step) : 0;
}

ALWAYS void pack_whole(const struct operand *o, enum tune_dtype dtype, int64_t i, int64_t width,
                       int64_t k0, int64_t k1, float *out)
{
    if (o->by_depth && width == NR)
        pack_depth(o, dtype, i, k0, k1, NR, out);
    else if (o->by_depth && width == MR)
        pack_depth(o, dtype, i, k0, k1, MR, out);
    else if (o->by_depth)
        for (int64_t k = k0; k < k1; k++, out += width)
            for (int64_t j = 0; j < width; j += VL)
                *(loose_vec *)(out + j) = load(o, dtype, k * o->ld + i + j);
    else if (MR < VL && width == MR)
        pack_rows(o, dtype, i, k0, k1, MR, MR, out);
    else
        for (int64_t j = 0; j < width; j += VL)
            pack_rows(o, dtype, i + j, k0, k1, VL, width, out + j);
}

/* Pack the panel of `count` rows from i and depth [k0,k1) to out [k1-k0, width]. Rows beyond count
 * are zero. width is MR for a panel of A, a multiple of VL for one of B. */
static inline void pack_panel(const struct operand *o, int64_t i, int64_t count, int64_t width,
                              int64_t k0, int64_t k1, float *out)
{
    if (count < width)
        pack_edge(o, i, count, width, k0, k1, out);
    else if (o->dtype == TUNE_F32)
        pack_whole(o, TUNE_F32, i, width, k0, k1, out);
    else
        pack_whole(o, TUNE_BF16, i, width, k0, k1, out);
}

/* STAY - keep v in a register. Without this, gcc loads it again for each product: with AVX2 the
 * loads then take longer than the products. */
#if defined(__x86_64__) && (LANES == 4 || defined(__AVX512F__) || (LANES == 8 && defined(__AVX__)))
#define STAY(v) __asm__("" : "+v"(v))
#else
#define STAY(v) ((void)0)
#endif

/* c [rows <= MR, columns <= W*VL] = beta c + alpha sum */
ALWAYS void write_tile(int W, vec (*sum)[WIDE], float alpha, float beta, float *c, int64_t ldc,
                       int64_t rows, int64_t columns)
{
    if (rows == MR && columns == W * VL) {
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++)
#pragma GCC unroll 3
            for (int j = 0; j < W; j++) {
                loose_vec *to = (loose_vec *)(c + i * ldc + j * VL);
                vec v = alpha * sum[i][j];
                if (beta != 0)
                    v += beta * *to;
                *to = v;
            }
        return;
    }
    float edge[MR][NR];
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 3
        for (int j = 0; j < W; j++)
            memcpy(&edge[i][j * VL], &sum[i][j], sizeof(vec));
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            c[i * ldc + j] = beta == 0 ? alpha * edge[i][j]
                                       : beta * c[i * ldc + j] + alpha * edge[i][j];
}

/* Set the sums of a tile to 0, and prefetch its part of c, which is needed when they are done. */
ALWAYS void begin_tile(int W, vec (*sum)[WIDE], float *c, int64_t ldc)
{
#pragma GCC unroll 8
    for (int i = 0; i < MR; i++)
#pragma GCC unroll 3
        for (int j = 0; j < W; j++) {
            sum[i][j] = (vec){0};
            __builtin_prefetch(c + i * ldc + j * VL, 1);
        }
}

/* c [rows <= MR, columns <= W*VL] = beta c + alpha a b. a(i,k) is at a[i*a_row + k*a_step], for all
 * MR rows. b is a packed panel. */
ALWAYS void tile(int W, int64_t depth, const float *a, int64_t a_row, int64_t a_step,
                 const float *b, float alpha, float beta, float *c, int64_t ldc, int64_t rows,
                 int64_t columns)
{
    vec sum[MR][WIDE];
    begin_tile(W, sum, c, ldc);
    for (int64_t k = 0; k < depth; k++, a += a_step, b += W * VL) {
        vec row[WIDE];
#pragma GCC unroll 3
        for (int j = 0; j < W; j++) {
            row[j] = *(const vec *)(b + j * VL);
            STAY(row[j]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++) {
            vec every = a[i * a_row] - (vec){0};
#pragma GCC unroll 3
            for (int j = 0; j < W; j++)
                sum[i][j] += every * row[j];
        }
    }
    write_tile(W, sum, alpha, beta, c, ldc, rows, columns);
}

/* tune_cpu_tile - tile for a panel of B of `width` columns (VL, 2 VL or 3 VL), aligned to a
 * vector. */
void tune_cpu_tile(int64_t width, int64_t depth, const float *a, int64_t a_row, int64_t a_step,
                   const float *b, float alpha, float beta, float *c, int64_t ldc, int64_t rows,
                   int64_t columns);

#undef ALWAYS
#endif
