/* tiles.c - the tile of a matrix product for float32 operands (panel.h), and the rate of any. */
#include <stdlib.h>

#include "core/clock.h"
#include "devices/cpu/tiles.h"

/* Rows of packed A are adjacent. With a constant row step the compiler needs no multiplication. */
#define TILE(W, row) tile(W, depth, a, row, a_step, b, alpha, beta, c, ldc, rows, columns)
void tune_cpu_tile(int64_t width, int64_t depth, const float *a, int64_t a_row, int64_t a_step,
                   const float *b, float alpha, float beta, float *c, int64_t ldc, int64_t rows,
                   int64_t columns)
{
    switch ((a_row == 1) * 4 + width / VL) {
    case 1: TILE(1, a_row); break;
    case 2: TILE(2, a_row); break;
    case 3: TILE(3, a_row); break;
    case 5: TILE(1, 1); break;
    case 6: TILE(2, 1); break;
    case 7: TILE(3, 1); break;
    }
}

static void pack(const struct operand *from, bool is_a, int64_t i, int64_t count, int64_t width,
                 int64_t k0, int64_t k1, float *out)
{
    (void)is_a;
    pack_panel(from, i, count, width, k0, k1, out);
}

/* A cache line has a few depths of one panel in packed A, and one depth of a few panels in memory.
 * Each is touched once: LINE / MR depths of as many panels at a time. */
enum { LINE = 16, STEP = LINE / MR };

static inline void pack_line(const struct operand *from, enum tune_dtype dtype, int64_t panels,
                             int64_t i, int64_t k, float *out, int64_t apart)
{
    for (int64_t d = 0; d < STEP; d++) {
        int64_t at = (k + d) * from->ld + i;
        __builtin_prefetch((const char *)from->data + (at + SOON * from->ld) * (dtype == TUNE_F32 ? 4 : 2));
        for (int64_t p = 0; p < panels; p++)
            for (int64_t j = 0; j < MR; j++)
                out[p * apart + d * MR + j] =
                    dtype == TUNE_F32 ? ((const float *)from->data)[at + p * MR + j]
                                      : tune_bf16_to_float(((const uint16_t *)from->data)[at + p * MR + j]);
    }
}

static int64_t pack_lines(const struct operand *from, int64_t i0, int64_t i1, int64_t k0, int64_t k1,
                          float *out, int64_t apart)
{
    int64_t depths = (k1 - k0) / STEP * STEP, full = (i1 - i0) / MR * MR;
    for (int64_t k = 0; k < depths; k += STEP) {
        float *to = out + k * MR;
        for (int64_t i = 0, panels; i < full; i += panels * MR, to += panels * apart) {
            panels = full - i < LINE ? (full - i) / MR : STEP;
            if (from->dtype == TUNE_F32 && panels == STEP)
                pack_line(from, TUNE_F32, STEP, i0 + i, k0 + k, to, apart);
            else if (from->dtype == TUNE_F32)
                pack_line(from, TUNE_F32, panels, i0 + i, k0 + k, to, apart);
            else
                pack_line(from, TUNE_BF16, panels, i0 + i, k0 + k, to, apart);
        }
        if (full < i1 - i0)
            pack_panel(from, i0 + full, i1 - i0 - full, MR, k0 + k, k0 + k + STEP, to);
    }
    return depths;
}

static void multiply(int64_t width, int64_t depth, const float *a, const float *b, float alpha,
                     float beta, float *c, int64_t ldc, int64_t rows, int64_t columns)
{
    tune_cpu_tile(width, depth, a, 1, MR, b, alpha, beta, c, ldc, rows, columns);
}

const struct tiles tune_cpu_f32_tiles = {
    .rows = MR, .columns = NR, .both = BOTH, .grain = 1, .in_word = 1, .vector = VL,
    .pack = pack, .pack_lines = pack_lines, .multiply = multiply,
};

enum { TRY_DEPTH = 512 };

/* FLOP/s of a tile in one try of 20 us. */
static double try_tile(const struct tiles *t, const float *a, const float *b, float *c)
{
    enum { ROUNDS = 4 };
    double flops = 0, begin = tune_clock_s(), now = begin;
    if (t->begin)
        t->begin();
    do {
        for (int j = 0; j < ROUNDS; j++)
            t->multiply(t->columns, TRY_DEPTH, a, b, 1, 0, c, t->columns, t->rows, t->columns);
        flops += 2.0 * ROUNDS * TRY_DEPTH * (double)(t->rows * t->columns);
        now = tune_clock_s();
    } while (now - begin < 2e-5);
    if (t->end)
        t->end();
    return flops / (now - begin);
}

struct tune_cpu_rates tune_cpu_tiles_rates(const struct tiles *bf16)
{
    enum { TRIES = 41, SIDE = 64 }; /* a tile has at most SIDE rows and columns */
    const struct tiles *f32 = &tune_cpu_f32_tiles;
    struct tune_cpu_rates best = {0};
    float *a = aligned_alloc(64, sizeof(float) * SIDE * (2 * TRY_DEPTH + SIDE));
    if (!a)
        return best;
    float *b = a + SIDE * TRY_DEPTH, *c = b + SIDE * TRY_DEPTH;
    memset(a, 0, sizeof(float) * 2 * SIDE * TRY_DEPTH);
    for (int i = 0; i < TRIES; i++) {
        double one = try_tile(f32, a, b, c), other = bf16 ? try_tile(bf16, a, b, c) : 0;
        best.f32 = one > best.f32 ? one : best.f32;
        best.bf16 = other > best.bf16 ? other : best.bf16;
    }
    free(a);
    return best;
}
