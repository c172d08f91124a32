/* few_rows.c - products with few rows, c = beta c + alpha a b', as when a model writes token by
 * token. The time is that of reading b from memory, so b is not packed:
 *
 *     strip of b: 24 rows, in tiles of a few rows          a: M rows, float32, in a near cache
 *       k ->  |b0 b1 ...  VL elements at a time            sums[m][n] += a[m, k..] b[n, k..]
 *
 * Lane l of a sum has the elements l, l + VL, l + 2 VL, ... in this order. At the end the lanes are
 * added in pairs. So a number of c depends on its row of a and its row of b only. It has the same
 * bits for every M and N, and for every number of threads. */
#include "devices/cpu/few_rows.h"

#define ALWAYS static inline __attribute__((always_inline))

/* Rows of b in a tile, by rows of a. The sums, the rows of b and one row of a fill 16 or 32
 * registers. A strip is whole tiles. */
#define TILE_1 8
#define TILE_2 (MR == 8 ? 8 : 4)
#define TILE_3 (MR == 8 ? 6 : 4)
#define TILE_4 (MR == 8 ? 6 : 3)
enum { MOST_ROWS = 4 };
_Static_assert(STRIP % TILE_1 == 0 && STRIP % TILE_2 == 0 && STRIP % TILE_3 == 0 &&
               STRIP % TILE_4 == 0 && STRIP % VL == 0, "a strip ends in the middle of a tile");

enum {
    SOME = 256,         /* depth of a block of b that is dequantized or rounded */
    ROOM = STRIP * SOME,
    NEAR = 1 << 12,     /* floats of a block of a */
    PIECES = 8,         /* pieces of b for each thread */
    SMALL = 1 << 15,    /* numbers of b that one thread multiplies faster than several */
    MOST_DEPTH = 1 << 16,
};

/* Add VL elements, or the `count` that are left. */
ALWAYS void step(int R, int W, enum tune_dtype dtype, vec (*sum)[TILE_1], const float *a,
                 int64_t lda, const struct operand *w, int64_t k, int64_t count)
{
    vec row[TILE_1];
#pragma GCC unroll 8
    for (int j = 0; j < W; j++)
        row[j] = count == VL ? load(w, dtype, j * w->ld + k)
                             : load_some(w, dtype, j * w->ld + k, count);
#pragma GCC unroll 4
    for (int i = 0; i < R; i++) {
        vec x = *(const loose_vec *)(a + i * lda + k);
#pragma GCC unroll 8
        for (int j = 0; j < W; j++)
            sum[i][j] += x * row[j];
    }
}

/* One tile: R rows of a, W rows of w. */
ALWAYS void tile_dots(int R, int W, enum tune_dtype dtype, few_sums *sums, const float *a,
                      int64_t lda, const struct operand *w, int64_t depth, int64_t ahead)
{
    const int64_t size = dtype == TUNE_F32 ? 4 : 2, line = 64 / size;
    vec sum[MOST_ROWS][TILE_1];
    int64_t k = 0;
#pragma GCC unroll 4
    for (int i = 0; i < R; i++)
#pragma GCC unroll 8
        for (int j = 0; j < W; j++)
            sum[i][j] = sums[i][j];
    while (k + line <= depth) {
#pragma GCC unroll 8
        for (int j = 0; j < W; j++)
            __builtin_prefetch((const char *)w->data + (j * w->ld + k + ahead) * size);
#pragma GCC unroll 8
        for (int64_t v = 0; v < line; v += VL, k += VL)
            step(R, W, dtype, sum, a, lda, w, k, VL);
    }
    for (; k + VL <= depth; k += VL)
        step(R, W, dtype, sum, a, lda, w, k, VL);
    if (k < depth)
        step(R, W, dtype, sum, a, lda, w, k, depth - k);
#pragma GCC unroll 4
    for (int i = 0; i < R; i++)
#pragma GCC unroll 8
        for (int j = 0; j < W; j++)
            sums[i][j] = sum[i][j];
}

/* R rows of a over all rows of w: in tiles of W, then one by one. */
ALWAYS void strip_dots(int R, int W, enum tune_dtype dtype, few_sums *sums, int64_t N,
                       const float *a, int64_t lda, const struct operand *w, int64_t depth,
                       bool ahead)
{
    const int64_t size = dtype == TUNE_F32 ? 4 : 2;
    struct operand from = *w;
    for (int64_t n = 0, rows; n < N; n += rows) {
        few_sums *to = (few_sums *)(sums[0] + n);
        from.data = (const char *)w->data + n * w->ld * size;
        rows = n + W <= N ? W : 1;
        if (rows == W)
            tile_dots(R, W, dtype, to, a, lda, &from, depth, ahead ? W * w->ld : 0);
        else
            tile_dots(R, 1, dtype, to, a, lda, &from, depth, 0);
    }
}

void tune_cpu_dots(few_sums *sums, int64_t M, int64_t N, const float *a, int64_t lda,
                   const struct operand *w, int64_t depth, bool ahead)
{
    int64_t groups = (M + MOST_ROWS - 1) / MOST_ROWS;
    for (int64_t g = 0; g < groups; g++) {
        int64_t m = M * g / groups, rows = M * (g + 1) / groups - m;
        const float *from = a + m * lda;
#define CASE(R, dtype)                                                                           \
    case (R) + (dtype == TUNE_F32 ? 0 : MOST_ROWS):                                              \
        strip_dots(R, TILE_##R, dtype, sums + m, N, from, lda, w, depth, ahead && g == 0);       \
        break
        switch (rows + (w->dtype == TUNE_F32 ? 0 : MOST_ROWS)) {
            CASE(1, TUNE_F32);
            CASE(2, TUNE_F32);
            CASE(3, TUNE_F32);
            CASE(4, TUNE_F32);
            CASE(1, TUNE_BF16);
            CASE(2, TUNE_BF16);
            CASE(3, TUNE_BF16);
            CASE(4, TUNE_BF16);
        }
#undef CASE
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

struct few {
    struct tune_tensor *c;
    const float *a; /* [M, lda], float32, rounded if the operands are */
    int64_t M, N, K, lda;
    struct operand b;
    const struct tune_nf4 *nf4; /* used instead of b's data */
    bool round;                 /* round b to bfloat16 */
    int64_t depth, rows;        /* of a block that is multiplied at once; rows of b in a piece */
    float alpha, beta;
};

bool tune_cpu_few_rows(const struct tune_tensor *c, const struct tune_tensor *a, bool at, bool bt)
{
    return !at && bt && c->shape[0] <= FEW_ROWS && a->shape[1] <= MOST_DEPTH;
}

/* Dequantize or round rows [n, n+count), depth [k, k+depth) of b into room [count, up(depth)]. */
static struct operand prepare(const struct few *p, int64_t n, int64_t count, int64_t k,
                              int64_t depth, float *room)
{
    int64_t step = up(depth, VL);
    for (int64_t j = 0; j < count; j++) {
        float *to = room + j * step;
        int64_t at = (n + j) * p->b.ld + k;
        if (p->nf4)
            tune_nf4_read(p->nf4, at, depth, to);
        else
            memcpy(to, (const float *)p->b.data + at, (size_t)depth * 4);
        if (p->round)
            tune_cpu_round(to, depth);
    }
    return (struct operand){room, TUNE_F32, step, false};
}

/* Columns [n, n+count) of c, at most a strip. */
static void write_strip(const struct few *p, int64_t n, int64_t count, const few_sums *sums)
{
    float out[STRIP], old[STRIP];
    for (int64_t m = 0; m < p->M; m++) {
        int64_t at = m * tune_tensor_stride(p->c) + n;
        float *to = tune_cpu_place(p->c, at, old);
        tune_cpu_add_lanes(sums[m], count, out);
        if (p->beta != 0)
            tune_cpu_in(p->c, at, count, to);
        for (int64_t j = 0; j < count; j++)
            to[j] = p->beta == 0 ? p->alpha * out[j] : p->beta * to[j] + p->alpha * out[j];
        tune_cpu_out(p->c, at, count, to);
    }
}

/* Rows [n, n+count) of b, at most a strip. room: ROOM floats, used if b is not used in place. */
static void do_strip(const struct few *p, int64_t n, int64_t count, float *room)
{
    few_sums sums[FEW_ROWS];
    bool in_place = !p->nf4 && !p->round;
    memset(sums, 0, (size_t)p->M * sizeof *sums);
    for (int64_t k = 0; k < p->K; k += p->depth) {
        int64_t depth = p->depth < p->K - k ? p->depth : p->K - k;
        int64_t size = p->b.dtype == TUNE_F32 ? 4 : 2;
        struct operand w = p->b;
        if (in_place)
            w.data = (const char *)p->b.data + (n * p->b.ld + k) * size;
        else
            w = prepare(p, n, count, k, depth, room);
        tune_cpu_dots(sums, p->M, count, p->a + k, p->lda, &w, depth, in_place);
    }
    write_strip(p, n, count, (const few_sums *)sums);
}

int tune_cpu_few_rows_gemm(struct tune_device *dev, struct tune_tensor *c,
                           const struct tune_tensor *a, const struct tune_tensor *b, float alpha,
                           float beta, enum tune_dtype operands)
{
    struct tune_nf4 parts[TUNE_NF4_PARTS];
    int64_t M = c->shape[0], N = c->shape[1], K = a->shape[1], lda = up(K, VL), ld = tune_tensor_stride(b);
    float *rows = tune_cpu_shared(dev, M * lda);
    struct few p = {c, rows, M, N, K, lda, {tune_cpu_data(b), b->dtype, ld, false}, tune_cpu_nf4(b, parts),
                    operands == TUNE_BF16 && b->dtype != TUNE_BF16, 0, 0, alpha, beta};
    if (!rows || tune_cpu_reserve(dev, ROOM) < 0)
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
    p.depth = up(NEAR / M, VL);
    if (p.nf4 || p.round)
        p.depth = p.depth < SOME ? p.depth : SOME;
    p.rows = N / (PIECES * dev->threads) / STRIP * STRIP;
    p.rows = p.rows < STRIP ? STRIP : p.rows;
    if (N <= STRIP * dev->threads) /* few rows of b, too */
        p.rows = up((N + dev->threads - 1) / dev->threads, VL);
#pragma omp parallel for schedule(dynamic, 1) num_threads(dev->threads) if (N * K > SMALL)
    for (int64_t n0 = 0; n0 < N; n0 += p.rows) {
        int64_t n1 = n0 + p.rows < N ? n0 + p.rows : N;
        for (int64_t n = n0; n < n1; n += STRIP)
            do_strip(&p, n, STRIP < n1 - n ? STRIP : n1 - n, tune_cpu_work(dev));
    }
    return 0;
}
