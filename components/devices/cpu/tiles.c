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

static void multiply(int64_t width, int64_t depth, const float *a, const float *b, float alpha,
                     float beta, float *c, int64_t ldc, int64_t rows, int64_t columns)
{
    tune_cpu_tile(width, depth, a, 1, MR, b, alpha, beta, c, ldc, rows, columns);
}

const struct tiles tune_cpu_f32_tiles = {
    .rows = MR, .columns = NR, .both = BOTH, .grain = 1, .in_word = 1, .vector = VL,
    .pack = pack, .multiply = multiply,
};

double tune_cpu_tiles_rate(const struct tiles *t)
{
    enum { DEPTH = 512, ROUNDS = 8, TIMES = 3 };
    static const double seconds = 3e-4;
    int64_t wide = words(t, DEPTH);
    float *a = aligned_alloc(64, (size_t)(wide * (t->rows + t->columns) + t->rows * t->columns) * 4);
    double best = 0;
    if (!a)
        return 0;
    float *b = a + wide * t->rows, *c = b + wide * t->columns;
    memset(a, 0, (size_t)(wide * (t->rows + t->columns)) * 4);
    if (t->begin)
        t->begin();
    for (int i = 0; i < TIMES; i++) {
        double begin = tune_clock_s(), flops = 0, now = begin;
        while (now - begin < seconds) {
            for (int j = 0; j < ROUNDS; j++)
                t->multiply(t->columns, DEPTH, a, b, 1, 0, c, t->columns, t->rows, t->columns);
            flops += 2.0 * ROUNDS * DEPTH * (double)(t->rows * t->columns);
            now = tune_clock_s();
        }
        best = flops / (now - begin) > best ? flops / (now - begin) : best;
    }
    if (t->end)
        t->end();
    free(a);
    return best;
}
