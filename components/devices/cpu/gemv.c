/* gemv.c - gemv, for up to GEMV_ROWS rows at once: c = beta c + alpha a b', as when a model writes
 * token by token. The time is that of reading b from memory, so b is not packed:
 *
 *     strip of b: 24 rows, in tiles of a few rows          a: M rows, float32, in a near cache
 *       k ->  |b0 b1 ...  VL elements at a time            sums[m][n] += a[m, k..] b[n, k..]
 *
 * Lane l of a sum has the elements l, l + VL, l + 2 VL, ... in this order. At the end the lanes are
 * added in pairs. So a number of c depends on its row of a and its row of b only. It has the same
 * bits for every M and N, and for every number of threads. */
#include "devices/cpu/gemv.h"

#define ALWAYS static inline __attribute__((always_inline))

/* A tile is at most MOST_ROWS rows of a by WIDE_TILE of b, or 1 row of a by LONG_TILE of b. These
 * load the least for each multiply-add and fit in 16 or 32 registers. A strip is whole tiles. */
enum { MOST_ROWS = 4, WIDE_TILE = MR == 8 ? 6 : 3, LONG_TILE = 8 };
_Static_assert(STRIP % WIDE_TILE == 0 && STRIP % LONG_TILE == 0 && STRIP % VL == 0,
               "a strip ends in the middle of a tile");

enum {
    SOME = 256,         /* depth of a block of b that is dequantized or rounded */
    BUFFER = STRIP * SOME,
    NEAR = 5 << 10,     /* floats of a block of a */
    AHEAD = 1 << 13,    /* bytes of b until a prefetched one is used */
    PIECES = 8,         /* pieces of b for each thread */
    /* below, the lanes take longer to add than the rows to pack; above, a does not fit */
    LEAST_DEPTH = 64, MOST_DEPTH = 1 << 16,
};

/* Add VL elements, or the `count` that are left. */
ALWAYS void step(int R, int W, enum tune_dtype dtype, vec (*sum)[LONG_TILE], const float *a,
                 int64_t lda, const struct operand w[LONG_TILE], int64_t k, int64_t count)
{
    vec row[LONG_TILE];
#pragma GCC unroll 8
    for (int j = 0; j < W; j++) {
        row[j] = count == VL ? load(&w[j], dtype, k) : load_some(&w[j], dtype, k, count);
        if (R > 1)
            STAY(row[j]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < R; i++) {
        vec x = *(const loose_vec *)(a + i * lda + k);
        STAY(x);
#pragma GCC unroll 8
        for (int j = 0; j < W; j++)
            sum[i][j] = fused(x, row[j], sum[i][j]);
    }
}

/* Memory that will be needed, prefetched line by line: rows of `bytes`, then `skip` until the next. */
struct prefetch {
    const char *at, *end;
    int64_t bytes, skip;
    int64_t lines; /* prefetched at a time */
};

ALWAYS void prefetch(struct prefetch *c)
{
    for (int64_t i = 0; i < c->lines; i++, c->at += 64)
        __builtin_prefetch(c->at);
    if (c->at >= c->end) {
        c->at += c->skip;
        c->end += c->skip + c->bytes;
    }
}

/* One tile: R rows of a, W rows of w. Those after the `rows` that exist repeat the last. */
ALWAYS void tile_dots(int R, int W, enum tune_dtype dtype, gemv_sums *sums, const float *a,
                      int64_t lda, const struct operand *w, int64_t rows, int64_t depth,
                      struct prefetch *next)
{
    const int64_t line = dtype == TUNE_F32 ? 16 : 32;
    struct operand row[LONG_TILE]; /* each row of the tile by itself: plain addresses */
    vec sum[MOST_ROWS][LONG_TILE];
    int64_t k = 0;
#pragma GCC unroll 8
    for (int j = 0; j < W; j++)
        row[j].data = (const char *)w->data +
                      (j < rows ? j : rows - 1) * w->ld * (dtype == TUNE_F32 ? 4 : 2);
#pragma GCC unroll 4
    for (int i = 0; i < R; i++)
#pragma GCC unroll 8
        for (int j = 0; j < W; j++)
            sum[i][j] = sums[i][j];
    for (; k + line <= depth; k += line) {
        if (next)
            prefetch(next);
#pragma GCC unroll 8
        for (int v = 0; v < line / VL; v++)
            step(R, W, dtype, sum, a, lda, row, k + v * VL, VL);
    }
    for (; k + VL <= depth; k += VL)
        step(R, W, dtype, sum, a, lda, row, k, VL);
    if (k < depth)
        step(R, W, dtype, sum, a, lda, row, k, depth - k);
#pragma GCC unroll 4
    for (int i = 0; i < R; i++)
#pragma GCC unroll 8
        for (int j = 0; j < W; j++)
            sums[i][j] = sum[i][j];
}

typedef void tile_function(gemv_sums *sums, const float *a, int64_t lda, const struct operand *w,
                           int64_t rows, int64_t depth, struct prefetch *next);
#define TILE(R, W, dtype)                                                                         \
    static void tile_##R##_##dtype(gemv_sums *sums, const float *a, int64_t lda,                  \
                                   const struct operand *w, int64_t rows, int64_t depth,          \
                                   struct prefetch *next)                                         \
    {                                                                                             \
        tile_dots(R, W, TUNE_##dtype, sums, a, lda, w, rows, depth, next);                        \
    }
#define TILES(dtype)                                                                              \
    TILE(1, LONG_TILE, dtype) TILE(2, WIDE_TILE, dtype) TILE(3, WIDE_TILE, dtype)                 \
    TILE(4, WIDE_TILE, dtype)
TILES(F32)
TILES(BF16)

/* [BF16][rows of a - 1] */
static tile_function *const tiles[2][MOST_ROWS] = {
    {tile_1_F32, tile_2_F32, tile_3_F32, tile_4_F32},
    {tile_1_BF16, tile_2_BF16, tile_3_BF16, tile_4_BF16}};

void tune_cpu_dots(gemv_sums *sums, int64_t M, int64_t N, const float *a, int64_t lda,
                   const struct operand *w, int64_t depth, int64_t ahead)
{
    const int64_t size = w->dtype == TUNE_F32 ? 4 : 2, tile = M == 1 ? LONG_TILE : WIDE_TILE;
    const int64_t groups = (M + MOST_ROWS - 1) / MOST_ROWS; /* each has two rows or more, if M has */
    const char *data = (const char *)w->data + ahead * w->ld * size;
    struct prefetch next = {data, data + depth * size, depth * size, (w->ld - depth) * size,
                          groups == 1 ? tile : (tile + 1) / 2};
    struct operand from = *w;
    for (int64_t n = 0; n < N; n += tile) {
        from.data = (const char *)w->data + n * w->ld * size;
        for (int64_t g = 0; g < groups; g++) {
            int64_t m = M * g / groups, count = M * (g + 1) / groups - m;
            tiles[w->dtype == TUNE_BF16][count - 1]((gemv_sums *)(sums[m] + n), a + m * lda, lda, &from,
                                                    N - n, depth, ahead && g < 2 ? &next : NULL);
        }
    }
}

void tune_cpu_add_lanes(const vec *sums, int64_t N, float *out)
{
    for (int64_t n = 0; n < N; n += VL) {
        vec r[VL > MR ? VL : MR];
#pragma GCC unroll 16
        for (int i = 0; i < VL; i++)
            r[i] = sums[n + i];
        transpose(r, VL);
#pragma GCC unroll 4
        for (int half = VL / 2; half > 0; half /= 2)
#pragma GCC unroll 16
            for (int i = 0; i < half; i++)
                r[i] += r[i + half];
        *(loose_vec *)(out + n) = r[0];
    }
}

/* ---- products ---- */

struct gemv {
    struct tune_tensor *c;
    const float *a; /* [M, lda], float32, rounded if the operands are */
    int64_t M, N, K, lda;
    struct operand b;
    const struct tune_nf4 *nf4; /* used instead of b's data */
    bool round;                 /* round b to bfloat16 */
    int64_t depth, rows;        /* of a block that is multiplied at once; rows of b in a piece */
    float alpha, beta;
};

bool tune_cpu_is_gemv(const struct tune_tensor *c, const struct tune_tensor *a, bool trans_a, bool trans_b)
{
    int64_t depth = a->shape[1];
    return !trans_a && trans_b && c->shape[0] > 0 && c->shape[0] <= GEMV_ROWS && c->shape[1] > 0 &&
           depth >= LEAST_DEPTH && depth <= MOST_DEPTH;
}

/* The codes of number `at`. */
static const uint8_t *codes_at(const struct tune_nf4 *q, int64_t at)
{
    for (; at >= q->count && q->below; q = q->below)
        at -= q->count;
    return q->codes + at / 2;
}

/* Dequantize or round rows [n, n+count), depth [k, k+depth) of b into the buffer [count, up(depth)]. */
static struct operand prepare(const struct gemv *p, int64_t n, int64_t count, int64_t k,
                              int64_t depth, float *buffer)
{
    int64_t step = up(depth, VL);
    for (int64_t j = 0; j < count; j++) {
        float *to = buffer + j * step;
        int64_t at = (n + j) * p->b.ld + k;
        if (p->nf4) {
            const char *next = (const char *)codes_at(p->nf4, at) + STRIP * p->b.ld / 2;
            for (int64_t i = 0; i < depth / 2; i += 64)
                __builtin_prefetch(next + i);
            tune_nf4_read(p->nf4, at, depth, to);
        } else
            memcpy(to, (const float *)p->b.data + at, (size_t)depth * 4);
        if (p->round)
            tune_cpu_round(to, depth);
    }
    return (struct operand){buffer, TUNE_F32, step, false};
}

/* Columns [n, n+count) of c, at most a strip. */
static void write_strip(const struct gemv *p, int64_t n, int64_t count, const gemv_sums *sums)
{
    float out[STRIP], old[STRIP], alpha = p->alpha, beta = p->beta;
    for (int64_t m = 0; m < p->M; m++) {
        int64_t at = m * tune_tensor_stride(p->c) + n;
        float *to = tune_cpu_target(p->c, at, old);
        tune_cpu_add_lanes(sums[m], count, out);
        if (beta != 0)
            tune_cpu_in(p->c, at, count, to);
        for (int64_t j = 0; j < count; j++)
            to[j] = beta == 0 ? alpha * out[j] : beta * to[j] + alpha * out[j];
        tune_cpu_out(p->c, at, count, to);
    }
}

/* Rows [n, n+count) of b, at most a strip. buffer: BUFFER floats, used if b is not used in place. */
static void do_strip(const struct gemv *p, int64_t n, int64_t count, float *buffer)
{
    gemv_sums sums[GEMV_ROWS];
    bool in_place = !p->nf4 && !p->round;
    memset(sums, 0, (size_t)p->M * sizeof *sums);
    for (int64_t k = 0; k < p->K; k += p->depth) {
        int64_t depth = p->depth < p->K - k ? p->depth : p->K - k;
        int64_t size = p->b.dtype == TUNE_F32 ? 4 : 2;
        int64_t ahead = in_place ? AHEAD / (p->b.ld * size) + 1 : 0;
        struct operand w = p->b;
        if (in_place)
            w.data = (const char *)p->b.data + (n * p->b.ld + k) * size;
        else
            w = prepare(p, n, count, k, depth, buffer);
        tune_cpu_dots(sums, p->M, count, p->a + k, p->lda, &w, depth, ahead);
    }
    write_strip(p, n, count, (const gemv_sums *)sums);
}

/* The largest depth of a block: K in equal parts of at most `most`, rounded up to whole lines. */
static int64_t part_of(int64_t K, int64_t most)
{
    int64_t parts = (K + most - 1) / most;
    return up((K + parts - 1) / parts, 32);
}

int tune_cpu_gemv(struct tune_device *dev, struct tune_tensor *c, const struct tune_tensor *a,
                  const struct tune_tensor *b, float alpha, float beta, enum tune_dtype operands)
{
    struct tune_nf4 parts[TUNE_NF4_PARTS];
    int64_t M = c->shape[0], N = c->shape[1], K = a->shape[1], lda = up(K, VL);
    float *rows = tune_cpu_shared(dev, M * lda);
    struct gemv p = {.c = c, .a = rows, .M = M, .N = N, .K = K, .lda = lda, .alpha = alpha,
                    .beta = beta, .nf4 = tune_cpu_nf4(b, parts)};
    p.b = (struct operand){tune_cpu_data(b), b->dtype, tune_tensor_stride(b), false};
    p.round = operands == TUNE_BF16 && b->dtype != TUNE_BF16;
    if (!rows || tune_cpu_reserve(dev, BUFFER) < 0)
        return -1;
    for (int64_t m = 0; m < M; m++) {
        float *to = rows + m * lda;
        const float *from = tune_cpu_in(a, m * tune_tensor_stride(a), K, to);
        if (from != to)
            memcpy(to, from, (size_t)K * 4);
        for (int64_t k = K; k < lda; k++)
            to[k] = 0;
        if (operands == TUNE_BF16)
            tune_cpu_round(to, K);
    }
    p.depth = part_of(K, p.nf4 || p.round ? SOME : NEAR / M);
    p.rows = N / (PIECES * dev->threads) / STRIP * STRIP;
    p.rows = p.rows < STRIP ? STRIP : p.rows;
    if (N <= STRIP * dev->threads) /* few rows of b, too */
        p.rows = up((N + dev->threads - 1) / dev->threads, VL);
#pragma omp parallel for schedule(dynamic, 1) num_threads(tune_cpu_threads(dev, N * K / 2))
    for (int64_t n0 = 0; n0 < N; n0 += p.rows) {
        int64_t n1 = n0 + p.rows < N ? n0 + p.rows : N;
        for (int64_t n = n0; n < n1; n += STRIP)
            do_strip(&p, n, STRIP < n1 - n ? STRIP : n1 - n, tune_cpu_work(dev));
    }
    return 0;
}
