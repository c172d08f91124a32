/* tiles_bf16.c - the tile of a matrix product for bfloat16 operands: by AVX512_BF16, by AMX or by
 * NEON's BFMMLA. Each takes groups of its own number of depths (tiles.h). */
#include "devices/cpu/tiles.h"

#ifdef TUNE_BF16_TILES

#include "devices/cpu/bf16.h"

#define ALWAYS static inline __attribute__((always_inline))

/* A vector of words at any address. */
typedef float any_vec __attribute__((vector_size(VL * 4), aligned(1), may_alias));

static uint16_t half(const struct operand *o, int64_t i, int64_t k)
{
    int64_t at = o->by_depth ? k * o->ld + i : i * o->ld + k;
    return o->dtype == TUNE_F32 ? tune_float_to_bf16(((const float *)o->data)[at])
                                : ((const uint16_t *)o->data)[at];
}

/* Any part of a panel, one by one: for the edges of a matrix. G: depths in a group. */
ALWAYS void pack_edge_groups(int64_t G, const struct operand *o, int64_t i, int64_t count,
                             int64_t width, int64_t k0, int64_t k1, uint16_t *out)
{
    for (int64_t k = k0; k < k1; k += G, out += G * width)
        for (int64_t j = 0; j < width; j++)
            for (int64_t g = 0; g < G; g++)
                out[j * G + g] = j < count && k + g < k1 ? half(o, i + j, k + g) : 0;
}

#if !defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) && !defined(NEON_BF16_IN_C)
/* ---- pairs ---- */

/* The 2 VL neighbours at this index, as words of pairs. */
ALWAYS vec neighbours(const struct operand *o, enum tune_dtype dtype, int64_t at)
{
    const float *f = (const float *)o->data + at;
    if (dtype == TUNE_F32)
        return round_neighbours(*(const loose_vec *)f, *(const loose_vec *)(f + VL));
    return *(const any_vec *)((const uint16_t *)o->data + at);
}

/* R rows from i, their pairs of depths: word w of the rows is at out + w * width. */
ALWAYS void pack_pair_rows(int R, const struct operand *o, enum tune_dtype dtype, int64_t i,
                           int64_t k0, int64_t k1, int64_t width, float *out)
{
    int64_t k = k0;
    for (; k + 2 * VL <= k1; k += 2 * VL, out += VL * width) {
        vec r[VL > MR ? VL : MR];
#pragma GCC unroll 16
        for (int j = 0; j < R; j++)
            r[j] = neighbours(o, dtype, (i + j) * o->ld + k);
        transpose(r, R);
#pragma GCC unroll 16
        for (int j = 0; j < R; j++)
            *(loose_vec *)(R < VL ? out + j * VL : out + j * width) = r[j];
    }
    for (; k < k1; k += 2, out += width)
        for (int j = 0; j < R; j++) {
            uint32_t high = k + 1 < k1 ? half(o, i + j, k + 1) : 0;
            ((uint32_t *)out)[j] = high << 16 | half(o, i + j, k);
        }
}

/* The pairs of depths k and k + 1 of `width` neighbours in memory. */
ALWAYS void pair_up(const struct operand *o, enum tune_dtype dtype, int64_t i, int64_t k,
                    int64_t k1, int64_t width, float *out)
{
    const float *f = (const float *)o->data + k * o->ld + i, *g = f + o->ld;
    const uint16_t *low = (const uint16_t *)o->data + k * o->ld + i, *high = low + o->ld;
    uint32_t *to = (uint32_t *)out;
    int64_t j = 0;
    if (k + 1 == k1)
        for (; j < width; j++)
            to[j] = dtype == TUNE_F32 ? tune_float_to_bf16(f[j]) : low[j];
    if (dtype == TUNE_F32)
        for (; j + VL <= width; j += VL)
            *(loose_vec *)(out + j) = round_rows(*(const loose_vec *)(f + j), *(const loose_vec *)(g + j));
    for (; j < width; j++)
        to[j] = dtype == TUNE_F32 ? (uint32_t)tune_float_to_bf16(g[j]) << 16 | tune_float_to_bf16(f[j])
                                  : (uint32_t)high[j] << 16 | low[j];
}

ALWAYS void pack_pair_depth(const struct operand *o, enum tune_dtype dtype, int64_t i, int64_t k0,
                            int64_t k1, int64_t width, float *out)
{
    const int64_t size = dtype == TUNE_F32 ? 4 : 2;
    for (int64_t k = k0; k < k1; k += 2, out += width) {
        const char *next = (const char *)o->data + ((k + SOON) * o->ld + i) * size;
        for (int64_t j = 0; j < width; j += 64 / size) {
            __builtin_prefetch(next + j * size);
            __builtin_prefetch(next + (o->ld + j) * size);
        }
        pair_up(o, dtype, i, k, k1, width, out);
    }
}

ALWAYS void pack_whole_pairs(const struct operand *o, enum tune_dtype dtype, int64_t i,
                             int64_t width, int64_t k0, int64_t k1, float *out)
{
    if (o->by_depth && width == NR)
        pack_pair_depth(o, dtype, i, k0, k1, NR, out);
    else if (o->by_depth && width == MR)
        pack_pair_depth(o, dtype, i, k0, k1, MR, out);
    else if (o->by_depth)
        pack_pair_depth(o, dtype, i, k0, k1, width, out);
    else if (MR < VL && width == MR)
        pack_pair_rows(MR, o, dtype, i, k0, k1, MR, out);
    else
        for (int64_t j = 0; j < width; j += VL)
            pack_pair_rows(VL, o, dtype, i + j, k0, k1, width, out + j);
}

/* A panel of groups of 2. */
static void pack_pairs(const struct operand *o, int64_t i, int64_t count, int64_t width, int64_t k0,
                       int64_t k1, float *out)
{
    if (count < width)
        pack_edge_groups(2, o, i, count, width, k0, k1, (uint16_t *)out);
    else if (o->dtype == TUNE_F32)
        pack_whole_pairs(o, TUNE_F32, i, width, k0, k1, out);
    else
        pack_whole_pairs(o, TUNE_BF16, i, width, k0, k1, out);
}
#endif

#if defined(__AMX_BF16__) || defined(AMX_IN_C)
/* ---- AMX: two tiles of A by two of B ---- */

enum { SIDE = 16, ROWS = 2 * SIDE, COLUMNS = 2 * SIDE, DEEP = 32, BOTH_SIDES = ROWS, GROUP = 2 };
_Static_assert((int)VL == (int)SIDE, "a row of a tile is one vector");

/* A panel of A: 32 depths of a row are adjacent. */
static void pack_left(const struct operand *o, int64_t i, int64_t count, int64_t k0, int64_t k1,
                      float *out)
{
    for (int64_t k = k0; k < k1; k += DEEP, out += ROWS * SIDE) {
        int64_t end = k + DEEP < k1 ? k + DEEP : k1;
        if (count < ROWS || end < k + DEEP)
            pack_edge_groups(DEEP, o, i, count, ROWS, k, end, (uint16_t *)out);
        else if (!o->by_depth)
            for (int64_t j = 0; j < ROWS; j++)
                *(loose_vec *)(out + j * SIDE) = neighbours(o, o->dtype, (i + j) * o->ld + k);
        else
            for (int64_t j = 0; j < ROWS; j += SIDE) {
                vec r[SIDE];
                for (int w = 0; w < SIDE; w++)
                    pair_up(o, o->dtype, i + j, k + 2 * w, end, SIDE, (float *)&r[w]);
                transpose(r, SIDE);
                memcpy(out + j * SIDE, r, sizeof r);
            }
    }
}

static void pack(const struct operand *o, bool is_a, int64_t i, int64_t count, int64_t width,
                 int64_t k0, int64_t k1, float *out)
{
    if (is_a)
        pack_left(o, i, count, k0, k1, out);
    else {
        pack_pairs(o, i, count, width, k0, k1, out);
        int64_t have = up(k1 - k0, 2) / 2, wanted = up(k1 - k0, DEEP) / 2;
        memset(out + have * width, 0, (size_t)((wanted - have) * width) * 4);
    }
}

static void multiply(int64_t width, int64_t depth, const float *a, const float *b, float alpha,
                     float beta, float *c, int64_t ldc, int64_t rows, int64_t columns)
{
    float sum[ROWS][COLUMNS];
    bool below = rows > SIDE, right = columns > SIDE;
    tile_zero(0);
    tile_zero(1);
    tile_zero(2);
    tile_zero(3);
    for (int64_t k = 0; k < depth; k += DEEP, a += ROWS * SIDE, b += SIDE * width) {
        tile_load(4, a, 64);
        tile_load(6, b, width * 4);
        tile_multiply(0, 4, 6);
        if (right) {
            tile_load(7, b + SIDE, width * 4);
            tile_multiply(1, 4, 7);
        }
        if (below) {
            tile_load(5, a + SIDE * SIDE, 64);
            tile_multiply(2, 5, 6);
        }
        if (below && right)
            tile_multiply(3, 5, 7);
    }
    tile_store(0, &sum[0][0], sizeof *sum);
    tile_store(1, &sum[0][SIDE], sizeof *sum);
    tile_store(2, &sum[SIDE][0], sizeof *sum);
    tile_store(3, &sum[SIDE][SIDE], sizeof *sum);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            c[i * ldc + j] = beta == 0 ? alpha * sum[i][j] : beta * c[i * ldc + j] + alpha * sum[i][j];
}
#define BEGIN tiles_begin
#define END tiles_end

#elif defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) || defined(NEON_BF16_IN_C)
/* ---- NEON: squares of 2 by 2 ---- */

enum { ROWS = MR, COLUMNS = NR, BOTH_SIDES = BOTH, DEEP = 4, GROUP = 4 };
_Static_assert(VL == 4 && ROWS % 2 == 0, "a square is one vector");

static void pack(const struct operand *o, bool is_a, int64_t i, int64_t count, int64_t width,
                 int64_t k0, int64_t k1, float *out)
{
    (void)is_a;
    int64_t whole = count < width || o->by_depth ? k0 : k1 - (k1 - k0) % GROUP;
    for (int64_t k = k0; k < whole; k += GROUP, out += 2 * width)
        for (int64_t j = 0; j < width; j++)
            for (int64_t g = 0; g < GROUP; g++)
                ((uint16_t *)out)[j * GROUP + g] = half(o, i + j, k + g);
    pack_edge_groups(GROUP, o, i, count, width, whole, k1, (uint16_t *)out);
}

ALWAYS void bf16_tile(int W, int64_t depth, const float *a, const float *b, float alpha, float beta,
                      float *c, int64_t ldc, int64_t rows, int64_t columns)
{
    vec square[ROWS / 2][2 * WIDE], sum[MR][WIDE];
    begin_tile(W, sum, c, ldc);
#pragma GCC unroll 4
    for (int i = 0; i < ROWS / 2; i++)
#pragma GCC unroll 6
        for (int j = 0; j < 2 * W; j++)
            square[i][j] = (vec){0};
    for (int64_t k = 0; k < depth; k += GROUP, a += 2 * ROWS, b += 2 * W * VL)
#pragma GCC unroll 6
        for (int j = 0; j < 2 * W; j++)
#pragma GCC unroll 4
            for (int i = 0; i < ROWS / 2; i++)
                square[i][j] = add_squares(a + 4 * i, b + 4 * j, square[i][j]);
#pragma GCC unroll 4
    for (int i = 0; i < ROWS / 2; i++)
#pragma GCC unroll 3
        for (int j = 0; j < W; j++) {
            vec l = square[i][2 * j], r = square[i][2 * j + 1];
            sum[2 * i][j] = (vec){l[0], l[1], r[0], r[1]};
            sum[2 * i + 1][j] = (vec){l[2], l[3], r[2], r[3]};
        }
    write_tile(W, sum, alpha, beta, c, ldc, rows, columns);
}

#else
/* ---- AVX512_BF16: the tile of float32 operands, with a pair in the place of each ---- */

enum { ROWS = MR, COLUMNS = NR, BOTH_SIDES = BOTH, DEEP = 2, GROUP = 2 };

static void pack(const struct operand *o, bool is_a, int64_t i, int64_t count, int64_t width,
                 int64_t k0, int64_t k1, float *out)
{
    (void)is_a;
    pack_pairs(o, i, count, width, k0, k1, out);
}

ALWAYS void bf16_tile(int W, int64_t depth, const float *a, const float *b, float alpha, float beta,
                      float *c, int64_t ldc, int64_t rows, int64_t columns)
{
    typedef int32_t word __attribute__((may_alias));
    vec sum[MR][WIDE];
    begin_tile(W, sum, c, ldc);
    for (int64_t k = 0; k < depth; k += GROUP, a += MR, b += W * VL) {
        vec row[WIDE];
#pragma GCC unroll 3
        for (int j = 0; j < W; j++) {
            row[j] = *(const vec *)(b + j * VL);
            STAY(row[j]);
        }
#pragma GCC unroll 8
        for (int i = 0; i < MR; i++) {
            vec every = (vec)(((const word *)a)[i] - (int_vec){0});
#pragma GCC unroll 3
            for (int j = 0; j < W; j++)
                sum[i][j] = add_pairs(every, row[j], sum[i][j]);
        }
    }
    write_tile(W, sum, alpha, beta, c, ldc, rows, columns);
}

#endif

/* ---- any ---- */

#ifndef BEGIN
#define BEGIN NULL
#define END NULL
static void multiply(int64_t width, int64_t depth, const float *a, const float *b, float alpha,
                     float beta, float *c, int64_t ldc, int64_t rows, int64_t columns)
{
    switch (width / VL) {
    case 1: bf16_tile(1, depth, a, b, alpha, beta, c, ldc, rows, columns); break;
    case 2: bf16_tile(2, depth, a, b, alpha, beta, c, ldc, rows, columns); break;
    case 3: bf16_tile(3, depth, a, b, alpha, beta, c, ldc, rows, columns); break;
    }
}
#endif

_Static_assert((int)ROWS <= (int)TALL, "buffers for one panel of A are too small");

const struct tiles tune_cpu_bf16_tiles = {
    .rows = ROWS, .columns = COLUMNS, .both = BOTH_SIDES, .grain = DEEP, .in_word = 2, .vector = VL,
    .pack = pack, .multiply = multiply, .begin = BEGIN, .end = END,
};

#endif
