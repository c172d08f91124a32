/* tiles.h - the tile of a matrix product, for float32 and for bfloat16 operands. Private to this
 * folder.
 *
 *     a panel of A: `rows` rows         a panel of B: `columns` columns        a tile of C:
 *       [depth / group, rows, group]      [depth / group, columns, group]      [rows, columns]
 *
 * A group is some adjacent depths of one row, as a bfloat16 instruction takes them: 2 with AVX-512,
 * 4 with NEON. With AMX a group of A is 32, one of B is 2. Panels are counted in words of 32
 * bits. */
#ifndef TUNE_CPU_TILES_H
#define TUNE_CPU_TILES_H

#include "devices/cpu/panel.h"

struct tiles {
    int64_t rows, columns; /* of a tile */
    int64_t both;          /* a number of rows that is whole panels of A and of B */
    int64_t grain;         /* panels are so many depths deep, or a multiple; the last are zeros */
    int64_t in_word;       /* depths in 32 bits */
    int64_t vector;        /* a panel of B may be so many columns narrower, or a multiple */
    /* Pack the panel of `count` rows of A, or columns of B, from i, and depths [k0,k1). Those from
     * count to width are zeros. The dtype is F32 or BF16. */
    void (*pack)(const struct operand *from, bool is_a, int64_t i, int64_t count, int64_t width,
                 int64_t k0, int64_t k1, float *out);
    /* Pack the panels of A of rows [i0,i1) and depths [k0,k1), if the rows are neighbours in memory
     * (by_depth). From one panel to the next: `apart` floats. Returns how many depths it packed.
     * NULL: pack does it as well. */
    int64_t (*pack_lines)(const struct operand *from, int64_t i0, int64_t i1, int64_t k0,
                          int64_t k1, float *out, int64_t apart);
    /* c [<= rows, <= columns] = beta c + alpha a b, for panels of `depth`, a multiple of grain. b
     * is a panel of `width` columns. */
    void (*multiply)(int64_t width, int64_t depth, const float *a, const float *b, float alpha,
                     float beta, float *c, int64_t ldc, int64_t rows, int64_t columns);
    /* called by each thread before and after its tiles; NULL: not needed */
    void (*begin)(void), (*end)(void);
};

/* TUNE_BF16_TILES: this set has tiles for bfloat16. The last three are for tests: what the
 * instructions of these processors do, in plain C. */
#if defined(__AMX_BF16__) || defined(__AVX512BF16__) || \
    defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC) || defined(AMX_IN_C) || \
    defined(AVX512_BF16_IN_C) || defined(NEON_BF16_IN_C)
#define TUNE_BF16_TILES
#endif

extern const struct tiles tune_cpu_f32_tiles, tune_cpu_bf16_tiles;

/* Words of a panel of one row and this depth. */
static inline int64_t words(const struct tiles *t, int64_t depth)
{
    return up(depth, t->grain) / t->in_word;
}

/* Width of a panel of B of which `left` columns are left. The last one has as many vectors as it
 * needs. */
static inline int64_t panel_width(const struct tiles *t, int64_t left)
{
    return left >= t->columns ? t->columns : up(left, t->vector);
}

enum { TALL = 32 }; /* most rows of a tile */

/* Measure this set's float32 tile and its bfloat16 tile. NULL: it has none. See cpu.h. */
struct tune_cpu_rates tune_cpu_tiles_rates(const struct tiles *bf16);

#endif
