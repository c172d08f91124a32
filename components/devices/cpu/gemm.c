/* gemm.c - matrix products: C = beta C + alpha op(A) op(B), row-major. Operands are float32,
 * bfloat16 or NF4; C is float32 or bfloat16. Blocks are named
 * as in BLIS: MC is the size of a thread's chunk, NC that of the shared side, KC the depth of both.
 * Here the shared side is the shorter one, A or B.
 *
 * The side of C with fewer rows or columns is packed once by all threads into a shared buffer. The
 * other side is cut into chunks that threads claim one by one. A thread packs its chunk itself. So
 * every element of A and B is packed once:
 *
 *              columns of the longer side, chunks claimed in turn
 *            +------+------+------+------+------+---
 *     shared |  t0  |  t1  |  t1  |  t0  |  ...        depth in blocks of at most KC:
 *     side   |      |      |      |      |             pack the chunk's block, go over the shared panels
 *            +------+------+------+------+------+---
 *
 * The order of summation depends only on the shapes. Neither the number of threads nor their timing
 * changes a bit. */
#include "devices/cpu/gemv.h"
#include "devices/cpu/tiles.h"

/* Sizes in words of 32 bits: one float32, or two bfloat16. */
enum {
    KC = 640,                 /* depth of a packed block: a panel of B stays in a near cache */
    MC = 4 * NR,              /* most rows or columns of a thread's chunk */
    SHARED = 1 << 20,         /* most words of the shared buffer; */
    SHARED_NARROW = 4 << 20,  /* ... if C is bfloat16, which needs its whole depth at once */
    NC = 960,                 /* most rows or columns of the shared side at once: the other is packed anew for each part */
};

/* One side of the product: rows of A or columns of B. */
struct side {
    struct operand from;
    const struct tune_nf4 *nf4; /* used instead of from's data */
    bool is_a;
    bool round;                 /* round to bfloat16: the tiles are for float32 */
    int64_t n;                  /* rows or columns */
    int64_t panel;              /* those of a panel */
};

struct product {
    const struct tiles *tiles;
    struct side shared, chunked;
    struct tune_tensor *c;
    float alpha, beta;
    int64_t K, depth;         /* largest depth of a block */
    int64_t s0, s1;           /* range of the shared side that is packed now */
    int64_t k0, k1;           /* range of depth that is packed now */
    int64_t chunk, parts; /* rows of a chunk; parts of the shared side that are separate tasks */
    float *packed;
};

/* Width of the panel at row `at`. */
static int64_t width_of(const struct tiles *t, const struct side *s, int64_t at)
{
    return s->is_a ? s->panel : panel_width(t, s->n - at);
}

/* Index in a packed block [i0..) of the panel of row i. */
static int64_t panel_offset(const struct tiles *t, int64_t i, int64_t i0, int64_t depth)
{
    return (i - i0) * words(t, depth);
}

/* Pack NF4: dequantize a piece of a row at a time, in a buffer that stays in cache. */
static void pack_nf4(const struct tiles *t, const struct side *s, int64_t i0, int64_t i1, int64_t k0, int64_t k1, float *out)
{
    enum { SOME = TUNE_NF4_BLOCK, MOST_GRAIN = 32 };
    float buffer[NR * SOME > MC * MOST_GRAIN ? NR * SOME : MC * MOST_GRAIN]; /* of a panel; or some depths of a chunk */
    int64_t columns = s->from.ld, depth = k1 - k0, n;
    for (int64_t k = k0; s->from.by_depth && k < k1; k += n) {
        struct operand some = {buffer, TUNE_F32, i1 - i0, true};
        n = k + t->grain < k1 ? t->grain : k1 - k;
        for (int64_t j = 0; j < n; j++)
            tune_nf4_read(s->nf4, (k + j) * columns + i0, i1 - i0, buffer + j * (i1 - i0));
        for (int64_t i = i0; i < i1; i += s->panel) {
            int64_t left = i1 - i, count = left < s->panel ? left : s->panel, width = width_of(t, s, i);
            t->pack(&some, s->is_a, i - i0, count, width, 0, n, out + panel_offset(t, i, i0, depth) + words(t, k - k0) * width);
        }
    }
    for (int64_t i = i0; !s->from.by_depth && i < i1; i += s->panel) {
        struct operand rows = {buffer, TUNE_F32, SOME, false};
        int64_t left = i1 - i, count = left < s->panel ? left : s->panel, width = width_of(t, s, i);
        for (int64_t k = k0; k < k1; k += n) {
            n = k1 - k < SOME - k % SOME ? k1 - k : SOME - k % SOME;
            for (int64_t j = 0; j < count; j++)
                tune_nf4_read(s->nf4, (i + j) * columns + k, n, buffer + j * SOME);
            t->pack(&rows, s->is_a, 0, count, width, 0, n, out + panel_offset(t, i, i0, depth) + words(t, k - k0) * width);
        }
    }
}

/* Pack panels of [i0,i1) x [k0,k1), one after the other. If neighbours in memory belong to
 * neighbouring panels, it packs a few depths of all panels at a time. Each cache line is then
 * fetched once. lines: use pack_lines where there is one. That is faster for a chunk, and slower for
 * the shared side. */
static void pack(const struct tiles *t, const struct side *s, bool lines, int64_t i0, int64_t i1, int64_t k0, int64_t k1, float *out)
{
    int64_t few = s->from.by_depth ? up(FEW, t->grain) : k1 - k0, k = k0;
    if (s->nf4) {
        pack_nf4(t, s, i0, i1, k0, k1, out);
        if (s->round)
            tune_cpu_round(out, (k1 - k0) * up(i1 - i0, s->is_a ? s->panel : t->vector));
        return;
    }
    if (lines && t->pack_lines && s->is_a && s->from.by_depth && !s->round)
        k += t->pack_lines(&s->from, i0, i1 < s->n ? i1 : s->n, k0, k1, out, words(t, k1 - k0) * s->panel);
    for (; k < k1; k += few)
        for (int64_t i = i0; i < i1; i += s->panel) {
            int64_t left = s->n - i, width = width_of(t, s, i), end = k + few < k1 ? k + few : k1;
            float *to = out + panel_offset(t, i, i0, k1 - k0) + words(t, k - k0) * width;
            t->pack(&s->from, s->is_a, i, left < s->panel ? left : s->panel, width, k, end, to);
            if (s->round)
                tune_cpu_round(to, (end - k) * width);
        }
}

/* A tile of C. If C is bfloat16, the tile goes through a float32 buffer. */
struct target {
    float *c;
    int64_t ld, row, column; /* row and column of c[0] in C */
};

/* A part of a matrix that is packed next. It is prefetched line by line during the
 * multiplication. */
struct prefetch {
    const char *data;
    int64_t rows, bytes, stride; /* bytes of a row; bytes between rows */
    int64_t row, at;             /* the next cache line */
    int64_t each;                /* lines to prefetch for each tile */
};

/* Plan to prefetch rows [i0,i1), depth [k0,k1) of a side, during this many tiles. */
static struct prefetch plan_prefetch(const struct side *s, int64_t i0, int64_t i1, int64_t k0, int64_t k1, int64_t tiles)
{
    const struct operand *o = &s->from;
    int64_t halves = s->nf4 ? 1 : o->dtype == TUNE_F32 ? 8 : 4; /* bytes of an element, times 2 */
    struct prefetch c = {.stride = o->ld * halves / 2};
    i1 = i1 < s->n ? i1 : s->n;
    if (i0 >= i1 || k0 >= k1 || (s->nf4 && s->nf4->below)) /* NF4 parts may be anywhere in memory */
        return c;
    c.data = (const char *)o->data + (o->by_depth ? k0 * o->ld + i0 : i0 * o->ld + k0) * halves / 2;
    c.rows = o->by_depth ? k1 - k0 : i1 - i0;
    c.bytes = (o->by_depth ? i1 - i0 : k1 - k0) * halves / 2;
    c.each = (c.rows * ((c.bytes + 63) / 64) + tiles - 1) / tiles;
    return c;
}

static void prefetch(struct prefetch *c)
{
    for (int64_t n = 0; n < c->each && c->row < c->rows; n++) {
        __builtin_prefetch(c->data + c->row * c->stride + c->at, 0, 2);
        c->at += 64;
        if (c->at >= c->bytes) {
            c->at = 0;
            c->row++;
        }
    }
}

/* Multiply chunk rows [i0,i1) by shared panels [s0,s1), over depth [k0,k1). */
static void multiply(const struct product *p, const float *chunk, int64_t i0, int64_t i1, int64_t s0, int64_t s1, int64_t k0,
                     int64_t k1, float beta, const struct target *t, struct prefetch *next)
{
    const struct tiles *tiles = p->tiles;
    bool shared_is_a = p->shared.is_a;
    const struct side *a = shared_is_a ? &p->shared : &p->chunked, *b = shared_is_a ? &p->chunked : &p->shared;
    int64_t depth = k1 - k0, m0 = shared_is_a ? s0 : i0, m1 = shared_is_a ? s1 : i1;
    int64_t n0 = shared_is_a ? i0 : s0, n1 = shared_is_a ? i1 : s1;
    /* The shared buffer holds whole depths, block after block: [k block][panel]. */
    const float *block = p->packed + words(tiles, k0 - p->k0) * up(p->s1 - p->s0, p->shared.panel);
    for (int64_t m = m0; m < m1; m += a->panel)
        for (int64_t n = n0; n < n1; n += b->panel) {
            const float *pa = shared_is_a ? block + panel_offset(tiles, m, p->s0, depth) : chunk + panel_offset(tiles, m, i0, depth);
            const float *pb = shared_is_a ? chunk + panel_offset(tiles, n, i0, depth) : block + panel_offset(tiles, n, p->s0, depth);
            prefetch(next);
            int64_t rows = a->n - m < a->panel ? a->n - m : a->panel, columns = b->n - n < b->panel ? b->n - n : b->panel;
            tiles->multiply(width_of(tiles, b, n), up(depth, tiles->grain), pa, pb, p->alpha, beta,
                            t->c + (m - t->row) * t->ld + (n - t->column), t->ld, rows, columns);
        }
}

/* Do one task: a chunk times a part of the shared side. work: memory for the packed chunk, and for
 * C's tile if C is bfloat16. */
static void do_task(const struct product *p, int64_t task, int threads, float *work)
{
    int64_t i0 = task / p->parts * p->chunk, i1 = i0 + p->chunk < p->chunked.n ? i0 + p->chunk : p->chunked.n;
    int64_t panels = up(p->s1 - p->s0, p->shared.panel) / p->shared.panel, part = task % p->parts;
    int64_t s0 = p->s0 + panels * part / p->parts * p->shared.panel, s1 = p->s0 + panels * (part + 1) / p->parts * p->shared.panel;
    s1 = s1 < p->s1 ? s1 : p->s1;
    bool narrow = p->c->dtype != TUNE_F32;
    bool shared_is_a = p->shared.is_a;
    int64_t m0 = shared_is_a ? s0 : i0, m1 = shared_is_a ? s1 : i1, n0 = shared_is_a ? i0 : s0, n1 = shared_is_a ? i1 : s1, apart = tune_tensor_stride(p->c);
    struct target t = {tune_cpu_data(p->c), apart, 0, 0};
    if (narrow) {
        t = (struct target){work + words(p->tiles, p->depth) * p->chunk, n1 - n0, m0, n0};
        for (int64_t m = m0; m < m1 && p->beta != 0; m++)
            tune_cpu_in(p->c, m * apart + n0, n1 - n0, t.c + (m - m0) * t.ld);
    }
    for (int64_t k0 = p->k0; k0 < p->k1; k0 += p->depth) {
        int64_t k1 = k0 + p->depth < p->k1 ? k0 + p->depth : p->k1;
        int64_t tiles = up(m1 - m0, p->tiles->rows) / p->tiles->rows * (up(n1 - n0, p->tiles->columns) / p->tiles->columns), far = p->chunk * threads;
        bool last = k1 == p->k1;
        struct prefetch next = plan_prefetch(&p->chunked, last ? i0 + far : i0, last ? i1 + far : i1, last ? p->k0 : k1,
                                             last ? p->k0 + k1 - k0 : k1 + p->depth < p->k1 ? k1 + p->depth : p->k1, tiles);
        pack(p->tiles, &p->chunked, true, i0, i1, k0, k1, work);
        multiply(p, work, i0, i1, s0, s1, k0, k1, k0 == 0 ? p->beta : 1, &t, &next);
    }
    for (int64_t m = m0; m < m1 && narrow; m++)
        tune_cpu_out(p->c, m * apart + n0, n1 - n0, t.c + (m - m0) * t.ld);
}

/* Pack the shared side with all threads, some neighbouring panels at a time. */
static void pack_shared(const struct product *p, int threads)
{
    int64_t rows = up(p->s1 - p->s0, p->shared.panel), some = up(rows / (4 * threads), p->shared.panel);
    some = some < p->shared.panel ? p->shared.panel : some > MC ? MC : some;
#pragma omp for schedule(dynamic, 1)
    for (int64_t s = p->s0; s < p->s1; s += some)
        for (int64_t k0 = p->k0; k0 < p->k1; k0 += p->depth) {
            int64_t k1 = k0 + p->depth < p->k1 ? k0 + p->depth : p->k1;
            pack(p->tiles, &p->shared, false, s, s + some < p->s1 ? s + some : p->s1, k0, k1,
                 p->packed + words(p->tiles, k0 - p->k0) * rows + panel_offset(p->tiles, s, p->s0, k1 - k0));
        }
}

static struct operand operand(const struct tune_tensor *t, bool by_depth)
{
    return (struct operand){tune_cpu_data(t), t->dtype, tune_tensor_stride(t), by_depth};
}

/* Depth of a block: K in equal parts, rounded up to whole vectors and groups. */
static int64_t block_depth(const struct tiles *t, int64_t K)
{
    int64_t most = KC * t->in_word, blocks = (K + most - 1) / most;
    return up(up((K + blocks - 1) / blocks, VL), t->grain);
}

/* Decide how much of the depth and of the shared side to pack at once, in whole panels. */
static void plan(const struct product *p, int64_t *rows, int64_t *depth)
{
    const struct tiles *t = p->tiles;
    bool narrow = p->c->dtype != TUNE_F32;
    int64_t K = up(p->K, p->depth), all = up(p->shared.n, t->both), at_once = up(NC, t->both);
    int64_t most = all < at_once ? all : at_once;
    *depth = narrow || words(t, K) * most <= SHARED ? K : SHARED * t->in_word / most / p->depth * p->depth;
    *rows = (narrow ? SHARED_NARROW : SHARED) / words(t, *depth) / t->both * t->both;
    *rows = *rows < t->both ? t->both : *rows > most ? most : *rows;
}

/* Make chunks small enough that every thread gets about four. If there are too few, the shared side
 * is also split. */
static int64_t count_tasks(struct product *p, int threads)
{
    int64_t panels = up(p->chunked.n, p->chunked.panel) / p->chunked.panel, most = MC / p->chunked.panel;
    int64_t each = panels / (4 * threads), chunks;
    each = each < 1 ? 1 : each > most ? most : each;
    p->chunk = each * p->chunked.panel;
    chunks = (panels + each - 1) / each;
    p->parts = chunks >= 2 * threads ? 1 : (2 * threads + chunks - 1) / chunks;
    panels = up(p->s1 - p->s0, p->shared.panel) / p->shared.panel;
    p->parts = p->parts < panels ? p->parts : panels;
    return chunks * p->parts;
}

int64_t tune_cpu_gemm_floats(bool narrow)
{
    return (KC + VL) * (int64_t)MC + (narrow ? (NC + BOTH) * (int64_t)MC : 0);
}

int64_t tune_cpu_gemm_shared_floats(bool narrow, int64_t depth)
{
    int64_t least = (depth + (depth / KC + 1) * VL) * BOTH; /* blocks are whole vectors deep */
    return !narrow ? SHARED : least > SHARED_NARROW ? least : SHARED_NARROW;
}

int tune_cpu_gemm(struct tune_device *dev, struct tune_tensor *c, const struct tune_tensor *a, bool trans_a,
                  const struct tune_tensor *b, bool trans_b, float alpha, float beta, enum tune_dtype operands)
{
    if (((struct tune_cpu *)dev->state)->blas)
        return tune_cpu_blas_gemm(dev, c, a, trans_a, b, trans_b, alpha, beta, operands);
    if (tune_cpu_is_gemv(c, a, trans_a, trans_b))
        return tune_cpu_gemv(dev, c, a, b, alpha, beta, operands);
    const struct tiles *t = &tune_cpu_f32_tiles;
#ifdef TUNE_BF16_TILES
    t = operands == TUNE_BF16 ? &tune_cpu_bf16_tiles : t;
#endif
    bool round = operands == TUNE_BF16 && t == &tune_cpu_f32_tiles;
    struct product p = {.tiles = t, .c = c, .alpha = alpha, .beta = beta, .K = a->shape[!trans_a]};
    struct tune_nf4 parts_a[TUNE_NF4_PARTS], parts_b[TUNE_NF4_PARTS];
    struct side sa = {operand(a, trans_a), tune_cpu_nf4(a, parts_a), true, round && a->dtype != TUNE_BF16, c->shape[0], t->rows};
    struct side sb = {operand(b, !trans_b), tune_cpu_nf4(b, parts_b), false, round && b->dtype != TUNE_BF16, c->shape[1], t->columns};
    int64_t rows, depth;
    if (sa.n == 0 || sb.n == 0)
        return 0;
    p.shared = sa.n <= sb.n ? sa : sb;
    p.chunked = sa.n <= sb.n ? sb : sa;
    p.depth = block_depth(t, p.K);
    plan(&p, &rows, &depth);
    p.packed = tune_cpu_shared(dev, rows * words(t, depth));
    if (!p.packed || tune_cpu_reserve(dev, tune_cpu_gemm_floats(c->dtype != TUNE_F32)) < 0)
        return -1;
    int threads = tune_cpu_threads(dev, sa.n * sb.n * p.K / 16);
#pragma omp parallel num_threads(threads) firstprivate(p)
    for (p.s0 = 0; p.s0 < p.shared.n; p.s0 = p.s1) {
        p.s1 = p.s0 + rows < p.shared.n ? p.s0 + rows : p.shared.n;
        for (p.k0 = 0; p.k0 < p.K; p.k0 = p.k1) {
            p.k1 = p.k0 + depth < p.K ? p.k0 + depth : p.K;
            pack_shared(&p, threads);
            int64_t tasks = count_tasks(&p, threads);
            if (t->begin)
                t->begin();
#pragma omp for schedule(dynamic, 1)
            for (int64_t task = 0; task < tasks; task++)
                do_task(&p, task, threads, tune_cpu_work(dev));
            if (t->end)
                t->end();
        }
    }
    return 0;
}
