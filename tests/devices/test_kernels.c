/* test_kernels.c - every kernel against plain float64 loops (naive.h), for 1, 2, 3 and 5 threads, F32 and BF16, odd sizes;
 * the last device multiplies by OpenBLAS.
 *
 * Errors are ||d||/||ref||, limits are c * eps of the activations' type; the largest observed c stands beside each limit.
 * Outputs that are set start as NaN, those that are added to start as random numbers. */
#include "arrays.h"
#include "naive.h"
#include "far/far.h"

#include "core/float16.h"
#include "core/nf4.h"
#include "devices/ops.h"
#include "devices/record.h"

enum { DEVICES = 5 };
static const int threads[DEVICES] = {1, 2, 3, 5, 2};
static struct tune_device *devices[DEVICES];
static const enum tune_dtype dtypes[2] = {TUNE_F32, TUNE_BF16};

static int open_devices(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES; i++) {
        setenv("TUNE_MATMUL", i < DEVICES - 1 ? "own" : "openblas", 1);
        if (!(devices[i] = test_device(threads[i])))
            return -1;
    }
    return 0;
}

static int close_devices(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES; i++)
        tune_device_close(devices[i]);
    return 0;
}

static double *zeros(int64_t n)
{
    return calloc((size_t)n, sizeof(double));
}

static double *copy_of(const struct array *a)
{
    double *v = zeros(a->n);
    memcpy(v, a->v, (size_t)a->n * sizeof *v);
    return v;
}

static int32_t *random_ids(int64_t n, int64_t below, uint64_t seed)
{
    int32_t *ids = calloc((size_t)n, sizeof *ids);
    for (int64_t i = 0; i < n; i++)
        ids[i] = (int32_t)(tune_random_u64(seed, 3, (uint64_t)i) % (uint64_t)below);
    return ids;
}

/* ---- matrix products ---- */

/* op(a) op(b) on every device, onto random c, or NaN where c is set. */
static void gemm_case(struct worst *w, const int64_t size[3], int transposes, const enum tune_dtype type[3], int scalings)
{
    bool trans_a = transposes & 1, trans_b = transposes & 2;
    int64_t M = size[0], N = size[1], K = size[2];
    static const struct { float alpha, beta; } scalars[] = {{1, 0}, {1, 1}, {-0.5f, 0.25f}};
    struct array a = array_random(type[1], trans_a ? K : M, trans_a ? M : K, 1, 1), b = array_random(type[2], trans_b ? N : K, trans_b ? K : N, 1, 2);
    double *product = zeros(M * N), *want = zeros(M * N);
    naive_gemm(product, a.v, trans_a, b.v, trans_b, M, N, K, 1, 0);
    for (int s = 0; s < scalings; s++) {
        struct array c = scalars[s].beta == 0 ? array_nan(type[0], M, N) : array_random(type[0], M, N, 1, 3);
        for (int64_t i = 0; i < M * N; i++)
            want[i] = scalars[s].alpha * product[i] + (scalars[s].beta == 0 ? 0 : scalars[s].beta * c.v[i]);
        for (int d = 0; d < DEVICES; d++) {
            put(devices[d], &a);
            put(devices[d], &b);
            put(devices[d], &c);
            assert_ok(tune_gemm(devices[d], &c.t, &a.t, trans_a, &b.t, trans_b, scalars[s].alpha, scalars[s].beta, TUNE_F32));
            worst(w, type[0], error(&c, want));
        }
        drop(&c);
    }
    free(product);
    free(want);
    drop(&a);
    drop(&b);
}

static void gemm(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 17, 65}, {17, 3, 130}, {63, 65, 1}, {65, 130, 63}, {130, 1, 17},
                                       {1, 300, 65}, {33, 17, 513}, {270, 259, 20}, {18, 530, 260}};
    static const enum tune_dtype types[][3] = {{TUNE_F32, TUNE_F32, TUNE_F32}, {TUNE_BF16, TUNE_BF16, TUNE_BF16},
                                               {TUNE_BF16, TUNE_BF16, TUNE_F32}, {TUNE_F32, TUNE_BF16, TUNE_BF16},
                                               {TUNE_F32, TUNE_BF16, TUNE_F32}, {TUNE_F32, TUNE_F32, TUNE_BF16}};
    struct worst w = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int transposes = 0; transposes < 4; transposes++)
            for (size_t t = emulated() ? (s + (size_t)transposes) % 3 : 0; t < sizeof types / sizeof *types; t += emulated() ? 3 : 1)
                gemm_case(&w, sizes[s], transposes, types[t], 3);
    /* Depth in several blocks; more chunks than threads; a shared side in two parts; its depth in two parts. */
    static const int64_t large[][3] = {{60, 100, 1400}, {20, 2000, 90}, {970, 980, 30}, {240, 250, 4500},
                                       {33, 34, 28000}, {37, 38, 90000}}; /* the packed place is full to its last panel */
    for (size_t s = 0; s < sizeof large / sizeof *large; s++)
        for (size_t t = emulated() ? s % 2 : 0; t < 2; t += emulated() ? 2 : 1) /* where each takes a minute */
            gemm_case(&w, large[s], (int)s, types[t], emulated() ? 1 : 3);
    assert_worst("gemm", &w, 24, 2); /* 7.2 (one number, product and c cancel), 0.66 */
}

/* Columns of a matrix that has more of them: where they begin, and their view. */
struct part {
    struct array in;
    int64_t first, rows, columns;
};

static struct part part_random(enum tune_dtype type, int64_t rows, int64_t columns, uint64_t seed)
{
    int64_t before = (int64_t)(tune_random_u64(seed, 1, 1) % 9), behind = (int64_t)(tune_random_u64(seed, 1, 2) % 9);
    return (struct part){array_random(type, rows, before + columns + behind, 1, seed), before, rows, columns};
}

static struct tune_tensor view(const struct part *p)
{
    return tune_tensor_columns(&p->in.t, p->first, p->columns);
}

static double *numbers(const struct part *p)
{
    double *v = zeros(p->rows * p->columns);
    for (int64_t i = 0; i < p->rows * p->columns; i++)
        v[i] = p->in.v[i / p->columns * p->in.t.shape[1] + p->first + i % p->columns];
    return v;
}

/* Random sizes, dtypes, transposes and strides. All of the matrix that c is a part of is compared: what lies beside c stays. */
static void gemm_columns(void **state)
{
    (void)state;
    struct worst w = {0};
    for (uint64_t n = 0; n < 80; n++) {
        uint64_t r = tune_random_u64(n, 11, 1);
        bool trans_a = r & 1, trans_b = r & 2;
        int64_t M = 1 + (int64_t)(r >> 8) % 150, N = 1 + (int64_t)(r >> 24 & 0xffff) % 150, K = 1 + (int64_t)(r >> 40) % 700;
        enum tune_dtype type = dtypes[r >> 2 & 1];
        struct part a = part_random(dtypes[r >> 3 & 1], trans_a ? K : M, trans_a ? M : K, 3 * n);
        struct part b = part_random(dtypes[r >> 4 & 1], trans_b ? N : K, trans_b ? K : N, 3 * n + 1), c = part_random(type, M, N, 3 * n + 2);
        float beta = r & 32 ? 0.5f : 0;
        double *product = zeros(M * N), *va = numbers(&a), *vb = numbers(&b), *want = copy_of(&c.in);
        naive_gemm(product, va, trans_a, vb, trans_b, M, N, K, 1, 0);
        for (int64_t i = 0; i < M * N; i++) {
            double *to = want + i / N * c.in.t.shape[1] + c.first + i % N;
            *to = -2 * product[i] + beta * *to;
        }
        for (int d = 0; d < DEVICES; d++) {
            put(devices[d], &a.in), put(devices[d], &b.in), put(devices[d], &c.in);
            struct tune_tensor ta = view(&a), tb = view(&b), tc = view(&c);
            assert_ok(tune_gemm(devices[d], &tc, &ta, trans_a, &tb, trans_b, -2, beta, TUNE_F32));
            worst(&w, type, error(&c.in, want));
            char *got = get(&c.in);
            int64_t wide = c.in.t.shape[1], size = tune_dtype_bits(type) / 8;
            for (int64_t i = 0; i < M * wide; i++)
                if ((i % wide < c.first || i % wide >= c.first + N) && memcmp(got + i * size, c.in.raw + i * size, (size_t)size))
                    fail_msg("wrote beside the columns: case %d, row %d, column %d", (int)n, (int)(i / wide), (int)(i % wide));
            free(got);
        }
        free(product), free(va), free(vb), free(want);
        drop(&a.in), drop(&b.in), drop(&c.in);
    }
    assert_worst("gemm of columns", &w, 24, 2);
}

/* A quantised tensor of the host's memory, on the device. */
static struct tune_nf4_part put_nf4(struct tune_device *dev, const struct tune_nf4 *q, const char *memory,
                                    const struct tune_nf4_part *below)
{
    return (struct tune_nf4_part){put_bytes(dev, memory, tune_nf4_bytes(q->count)), q->offset, q->count, below};
}

/* A weight of parts, each quantised by itself, and the same dequantised: as F32 the products have the same bits (OpenBLAS sums in
 * another order where it multiplies F32 in place). */
static void nf4_case(struct worst *w, enum tune_dtype type, int64_t rows, int64_t in, const int64_t out[3])
{
    struct tune_nf4 parts[3];
    struct tune_nf4_part there[3]; /* the same on a device */
    struct tune_nf4_writer writer;
    char *memory[3] = {0};
    int count = 0;
    int64_t all = out[0] + out[1] + out[2], at = 0;
    double *v = zeros(all * in);
    for (int p = 0; p < 3 && out[p] > 0; at += out[p++] * in) {
        struct array some = array_random(TUNE_F32, out[p], in, 1 + p, 40 + (uint64_t)p);
        memory[p] = aligned_alloc(64, (size_t)tune_nf4_bytes(some.n));
        assert_ok(tune_nf4_begin(&writer, "a test's weight", memory[p], some.n));
        assert_ok(tune_nf4_write(&writer, (float *)some.raw, some.n));
        assert_ok(tune_nf4_finish(&writer, &parts[p]));
        tune_nf4_read(&parts[p], 0, some.n, (float *)some.raw);
        assert_ok(tune_convert(v + at, TUNE_F64, some.raw, TUNE_F32, some.n));
        count++;
        drop(&some);
    }
    struct array f = array_from(TUNE_F32, all, in, v);
    struct array y = array_nan(type, rows, all), x = array_random(type, rows, in, 1, 50), yt = array_nan(type, all, rows);
    struct array xt = array_nan(type, in, rows);
    double *wy = zeros(rows * all), *wx = zeros(rows * in), *wt = zeros(rows * all);
    naive_gemm(wy, x.v, false, f.v, true, rows, all, in, 1, 0);
    naive_gemm(wt, f.v, false, x.v, true, all, rows, in, 1, 0);
    for (int d = 0; d < DEVICES; d++) {
        char *got[2][4];
        for (int p = 0; p < count; p++)
            there[p] = put_nf4(devices[d], &parts[p], memory[p], p + 1 < count ? &there[p + 1] : NULL);
        struct tune_tensor quantised = tune_nf4_matrix(there, all, in);
        for (int q = 0; q < 2; q++) { /* y = x w', y' = w x'; dx = y w, dx' = w' y' */
            put(devices[d], &x), put(devices[d], &y), put(devices[d], &yt), put(devices[d], &xt), put(devices[d], &f);
            const struct tune_tensor *weight = q ? &quantised : &f.t;
            assert_ok(tune_gemm(devices[d], &y.t, &x.t, false, weight, true, 1, 0, TUNE_F32));
            assert_ok(tune_gemm(devices[d], &yt.t, weight, false, &x.t, true, 1, 0, TUNE_F32));
            worst(w, type, error(&y, wy));
            worst(w, type, error(&yt, wt));
            got[q][0] = get(&y), got[q][1] = get(&yt);
            memset(wx, 0, (size_t)(rows * in) * sizeof *wx);
            double *rounded = zeros(rows * all);
            assert_ok(tune_convert(rounded, TUNE_F64, got[q][0], type, rows * all));
            naive_gemm(wx, rounded, false, f.v, false, rows, in, all, 1, 0);
            assert_ok(tune_gemm(devices[d], &x.t, &y.t, false, weight, false, 1, 0, TUNE_F32));
            worst(w, type, error(&x, wx));
            assert_ok(tune_gemm(devices[d], &xt.t, weight, true, &yt.t, false, 1, 0, TUNE_F32));
            got[q][2] = get(&x), got[q][3] = get(&xt);
            free(rounded);
        }
        const struct array *result[4] = {&y, &yt, &x, &xt};
        for (int i = 0; i < 4; i++) {
            if (d < DEVICES - 1)
                assert_memory_equal(got[0][i], got[1][i], result[i]->bytes);
            free(got[0][i]), free(got[1][i]);
        }
        for (int p = 0; p < count; p++)
            tune_device_free(devices[d], there[p].memory, tune_nf4_bytes(parts[p].count));
    }
    for (int p = 0; p < 3; p++)
        free(memory[p]);
    free(v), free(wy), free(wx), free(wt);
    drop(&f), drop(&x), drop(&y), drop(&yt), drop(&xt);
}

static void gemm_nf4(void **state)
{
    (void)state;
    static const int64_t sizes[][5] = {{1, 1, 1}, {3, 64, 2}, {17, 65, 63, 1, 30}, {130, 63, 17, 18, 19}, {5, 576, 96, 32, 32},
                                       {33, 1000, 130, 70}, {50, 700, 300}, {300, 40, 270, 3, 3}, {8, 3001, 31, 16, 16}};
    struct worst w = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int t = 0; t < 2; t++)
            nf4_case(&w, dtypes[t], sizes[s][0], sizes[s][1], sizes[s] + 2);
    assert_worst("gemm of NF4", &w, 24, 2);
}

/* ---- operands rounded to bfloat16 ---- */

static double *rounded(const double *v, int64_t n)
{
    double *r = zeros(n);
    for (int64_t i = 0; i < n; i++)
        r[i] = tune_bf16_to_float(tune_float_to_bf16((float)v[i]));
    return r;
}

/* The product of the rounded numbers, as exact as any in F32. type: of c, a, b. */
static void rounded_case(struct worst *w, const int64_t size[3], int transposes, const enum tune_dtype type[3])
{
    bool trans_a = transposes & 1, trans_b = transposes & 2;
    int64_t M = size[0], N = size[1], K = size[2];
    struct array a = array_random(type[1], trans_a ? K : M, trans_a ? M : K, 1, 1), b = array_random(type[2], trans_b ? N : K, trans_b ? K : N, 1, 2);
    struct array c = array_random(type[0], M, N, 1, 3);
    double *ra = rounded(a.v, M * K), *rb = rounded(b.v, N * K), *want = copy_of(&c);
    naive_gemm(want, ra, trans_a, rb, trans_b, M, N, K, -0.5, 0.25);
    for (int d = 0; d < DEVICES; d++) {
        put(devices[d], &a), put(devices[d], &b), put(devices[d], &c);
        assert_ok(tune_gemm(devices[d], &c.t, &a.t, trans_a, &b.t, trans_b, -0.5f, 0.25f, TUNE_BF16));
        worst(w, type[0], error(&c, want));
        assert_true(unchanged(&a) && unchanged(&b));
    }
    free(ra), free(rb), free(want);
    drop(&a), drop(&b), drop(&c);
}

/* A weight in NF4 on either side of a product, as it is and turned. */
static void rounded_nf4_case(struct worst *w, enum tune_dtype type, int64_t rows, int64_t in, int64_t out)
{
    struct array f = array_random(TUNE_F32, out, in, 1, 40);
    struct array x[2] = {array_random(type, rows, in, 1, 50), array_random(type, rows, out, 1, 51)};
    char *memory = aligned_alloc(64, (size_t)tune_nf4_bytes(f.n));
    struct tune_nf4_writer writer;
    struct tune_nf4 q;
    assert_ok(tune_nf4_begin(&writer, "a test's weight", memory, f.n));
    assert_ok(tune_nf4_write(&writer, (float *)(void *)f.raw, f.n));
    assert_ok(tune_nf4_finish(&writer, &q));
    tune_nf4_read(&q, 0, f.n, (float *)(void *)f.raw);
    assert_ok(tune_convert(f.v, TUNE_F64, f.raw, TUNE_F32, f.n));
    double *rf = rounded(f.v, f.n);
    for (int way = 0; way < 4; way++) { /* x w', x w; w x', w' x' */
        bool turned = way % 2 == 0, first = way >= 2;
        int64_t n = turned ? out : in, depth = turned ? in : out, side = first ? n : rows, other = first ? rows : n;
        struct array *a = &x[!turned], y = array_nan(TUNE_F32, side, other);
        double *ra = rounded(a->v, a->n), *want = zeros(y.n);
        if (first)
            naive_gemm(want, rf, !turned, ra, true, side, other, depth, 1, 0);
        else
            naive_gemm(want, ra, false, rf, turned, side, other, depth, 1, 0);
        for (int d = 0; d < DEVICES; d++) {
            put(devices[d], a), put(devices[d], &y);
            struct tune_nf4_part part = put_nf4(devices[d], &q, memory, NULL);
            struct tune_tensor weight = tune_nf4_matrix(&part, out, in);
            assert_ok(first ? tune_gemm(devices[d], &y.t, &weight, !turned, &a->t, true, 1, 0, TUNE_BF16)
                            : tune_gemm(devices[d], &y.t, &a->t, false, &weight, turned, 1, 0, TUNE_BF16));
            worst(w, TUNE_F32, error(&y, want));
            tune_device_free(devices[d], part.memory, tune_nf4_bytes(f.n));
        }
        free(ra), free(want);
        drop(&y);
    }
    free(memory), free(rf);
    drop(&f), drop(&x[0]), drop(&x[1]);
}

static void gemm_rounded(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 17, 65}, {65, 130, 63}, {130, 63, 700}, {270, 259, 20}, {18, 530, 260}};
    static const enum tune_dtype types[][3] = {{TUNE_F32, TUNE_F32, TUNE_F32}, {TUNE_F32, TUNE_BF16, TUNE_F32},
                                               {TUNE_F32, TUNE_F32, TUNE_BF16}, {TUNE_BF16, TUNE_F32, TUNE_F32},
                                               {TUNE_F32, TUNE_BF16, TUNE_BF16}, {TUNE_BF16, TUNE_BF16, TUNE_BF16}};
    struct worst w = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int transposes = 0; transposes < 4; transposes++)
            for (size_t t = emulated() ? (s + (size_t)transposes) % 3 : 0; t < sizeof types / sizeof *types; t += emulated() ? 3 : 1)
                rounded_case(&w, sizes[s], transposes, types[t]);
    /* bfloat16 is packed twice as deep: depth in several blocks; more chunks than threads; the depth of the shared side in two parts */
    static const int64_t large[][3] = {{60, 50, 2903}, {20, 900, 90}, {970, 980, 3}, {33, 34, 64001}};
    for (size_t s = 0; s < sizeof large / sizeof *large; s++)
        for (size_t t = s % 2; t < sizeof types / sizeof *types; t += emulated() ? 5 : 1)
            rounded_case(&w, large[s], (int)s, types[t]);
    for (int t = 0; t < 2; t++) {
        rounded_nf4_case(&w, dtypes[t], 1, 1, 1);
        rounded_nf4_case(&w, dtypes[t], 17, 65, 100);
        rounded_nf4_case(&w, dtypes[t], 130, 700, 63);
        rounded_nf4_case(&w, dtypes[t], 5, 130, 300);
    }
    assert_worst("gemm of rounded numbers", &w, 24, 2);
}

static void linear_case(struct worst *forward, struct worst *backward, enum tune_dtype type, int64_t N, int64_t C, int64_t M)
{
    float scale = 0.75f;
    struct array x = array_random(type, N, C, 1, 1), w = array_random(TUNE_F32, M, C, 1, 2), bias = array_random(TUNE_F32, 0, M, 1, 3);
    struct array r = array_random(TUNE_F32, N, M, 1, 4), y = array_nan(type, N, M), dy = array_random(type, N, M, 1, 5), dx = array_nan(type, N, C);
    struct array dw = array_random(TUNE_F32, M, C, 1, 6), db = array_random(TUNE_F32, 0, M, 1, 7);
    const struct tune_tensor *residual = type == TUNE_F32 ? &r.t : NULL;
    double *wy = residual ? copy_of(&r) : zeros(N * M), *wdx = zeros(N * C), *wdw = copy_of(&dw), *wdb = copy_of(&db);
    naive_gemm(wy, x.v, false, w.v, true, N, M, C, scale, 1);
    for (int64_t i = 0; i < N * M; i++)
        wy[i] += scale * bias.v[i % M];
    naive_gemm(wdx, dy.v, false, w.v, false, N, C, M, scale, 0);
    naive_gemm(wdw, dy.v, true, x.v, false, M, C, N, scale, 1);
    naive_bias_backward(wdb, dy.v, N, M, scale);
    struct array *all[] = {&x, &w, &bias, &y, &dy, &dx, &dw, &db, &r};
    for (int d = 0; d < DEVICES; d++) {
        for (int i = 0; i < 9; i++)
            put(devices[d], all[i]);
        assert_ok(tune_linear_forward(devices[d], &y.t, &x.t, &w.t, &bias.t, scale, residual, TUNE_F32));
        worst(forward, type, error(&y, wy));
        assert_ok(tune_linear_backward(devices[d], &dx.t, &dw.t, &db.t, &dy.t, &x.t, &w.t, scale, 0, TUNE_F32));
        worst(backward, type, error(&dx, wdx));
        worst(backward, TUNE_F32, error(&dw, wdw)); /* stored in F32 whatever the activations are */
        worst(backward, TUNE_F32, error(&db, wdb));
        /* what is not wanted is not touched; a second gradient adds */
        assert_ok(tune_linear_backward(devices[d], NULL, NULL, &db.t, &dy.t, &x.t, &w.t, scale, 0, TUNE_F32));
        worst(backward, type, error(&dx, wdx));
        worst(backward, TUNE_F32, error(&dw, wdw));
    }
    for (int i = 0; i < 9; i++)
        drop(all[i]);
    free(wy), free(wdx), free(wdw), free(wdb);
}

static void linear(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 17, 65}, {63, 130, 3}, {65, 63, 130}, {130, 17, 17}};
    struct worst forward = {0}, backward = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int t = 0; t < 2; t++)
            linear_case(&forward, &backward, dtypes[t], sizes[s][0], sizes[s][1], sizes[s][2]);
    assert_worst("linear_forward", &forward, 8, 2);    /* 2.4, 0.6 */
    assert_worst("linear_backward", &backward, 24, 2); /* 6.2, 0.5 */
}

/* y = r + scale x w^T, and the same bits by a copy and a product that adds. */
static void gemm_add_case(struct worst *worst_of, const int64_t size[3], enum tune_dtype tx, enum tune_dtype tw,
                          enum tune_dtype operands)
{
    int64_t N = size[0], M = size[1], C = size[2];
    float scale = 0.75f;
    struct array x = array_random(tx, N, C, 1, 1), w = array_random(tw, M, C, 1, 2), r = array_random(TUNE_F32, N, M, 1, 3);
    struct array y = array_nan(TUNE_F32, N, M), z = array_nan(TUNE_F32, N, M);
    double *want = copy_of(&r), *rx = operands == TUNE_F32 ? copy_of(&x) : rounded(x.v, x.n);
    double *rw = operands == TUNE_F32 ? copy_of(&w) : rounded(w.v, w.n);
    naive_gemm(want, rx, false, rw, true, N, M, C, scale, 1);
    struct array *all[] = {&x, &w, &r, &y, &z};
    for (int d = 0; d < DEVICES; d++) {
        for (int i = 0; i < 5; i++)
            put(devices[d], all[i]);
        assert_ok(tune_gemm_add(devices[d], &y.t, &r.t, &x.t, &w.t, scale, operands));
        worst(worst_of, TUNE_F32, error(&y, want));
        assert_true(unchanged(&r));
        assert_ok(tune_copy(devices[d], &z.t, &r.t));
        assert_ok(tune_gemm(devices[d], &z.t, &x.t, false, &w.t, true, scale, 1, operands));
        char *one = get(&y), *two = get(&z);
        assert_memory_equal(one, two, y.bytes);
        free(one), free(two);
    }
    for (int i = 0; i < 5; i++)
        drop(all[i]);
    free(want), free(rx), free(rw);
}

static void gemm_add(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 17, 65}, {7, 96, 130}, {65, 130, 63}, {270, 259, 700}};
    struct worst w = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int t = emulated() ? (int)s % 4 : 0; t < 8; t += emulated() ? 4 : 1)
            gemm_add_case(&w, sizes[s], dtypes[t & 1], dtypes[t >> 1 & 1], dtypes[t >> 2]);
    assert_worst("gemm_add", &w, 24, 0);
}

/* ---- embedding, gather, scatter ---- */

static void embed_case(struct worst *w, enum tune_dtype type, enum tune_dtype weight, int64_t N, int64_t C, int64_t V)
{
    float scale = 1.5f;
    int32_t *ids = random_ids(N, V, 9); /* some more than once */
    struct array x = array_nan(type, N, C), e = array_random(weight, V, C, 1, 1), dx = array_random(type, N, C, 1, 2);
    struct array dw = array_random(TUNE_F32, V, C, 1, 3);
    double *wx = zeros(N * C), *wdw = copy_of(&dw);
    for (int64_t n = 0; n < N; n++)
        for (int64_t i = 0; i < C; i++) {
            wx[n * C + i] = scale * e.v[ids[n] * C + i];
            wdw[ids[n] * C + i] += scale * dx.v[n * C + i];
        }
    char *first = NULL;
    for (int d = 0; d < DEVICES; d++) {
        struct tune_device *dev = devices[d];
        struct tune_tensor on = put_index(dev, ids, N);
        put(dev, &x), put(dev, &e), put(dev, &dx), put(dev, &dw);
        assert_ok(tune_embed_forward(dev, &x.t, &e.t, &on, scale));
        worst(w, type, error(&x, wx));
        assert_ok(tune_embed_backward(dev, &dw.t, &dx.t, &on, scale));
        worst(w, TUNE_F32, error(&dw, wdw));
        char *bits = get(&dw);
        if (first)
            assert_memory_equal(bits, first, dw.bytes); /* the threads do not matter */
        free(first);
        first = bits;
        drop_tensor(dev, &on);
    }
    free(first), free(ids), free(wx), free(wdw);
    drop(&x), drop(&e), drop(&dx), drop(&dw);
}

static void embed(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {{1, 1, 1}, {3, 17, 5}, {65, 63, 20}, {130, 130, 1000}};
    struct worst w = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int t = 0; t < 2; t++)
            for (int u = 0; u < 2; u++)
                embed_case(&w, dtypes[t], dtypes[u], sizes[s][0], sizes[s][1], sizes[s][2]);
    assert_worst("embed", &w, 4, 1); /* 0.74, 0.64 */
}

static void gather_case(enum tune_dtype from, enum tune_dtype to, int64_t all, int64_t some, int64_t C)
{
    struct worst w = {0};
    int32_t *rows = calloc((size_t)some, 4);
    for (int64_t i = 0; i < some; i++) /* different ones, in no order */
        rows[i] = (int32_t)tune_random_permute(4, 2, (uint64_t)all, (uint64_t)i);
    struct array x = array_random(from, all, C, 1, 1), y = array_nan(to, some, C), z = array_random(to, all, C, 1, 2);
    struct array part = array_random(from, some, C, 1, 3);
    double *wy = zeros(some * C), *wz = copy_of(&z);
    for (int64_t i = 0; i < some; i++)
        for (int64_t k = 0; k < C; k++) {
            wy[i * C + k] = x.v[rows[i] * C + k];
            wz[rows[i] * C + k] = part.v[i * C + k];
        }
    for (int d = 0; d < DEVICES; d++) {
        struct tune_device *dev = devices[d];
        struct tune_tensor on = put_index(dev, rows, some);
        put(dev, &x), put(dev, &y), put(dev, &z), put(dev, &part);
        assert_ok(tune_gather(dev, &y.t, &x.t, &on));
        worst(&w, to, error(&y, wy));
        assert_ok(tune_scatter(dev, &z.t, &part.t, &on));
        worst(&w, to, error(&z, wz));
        drop_tensor(dev, &on);
    }
    bool exact = from == to || to == TUNE_F32;
    if (!(w.e[0] == 0 && w.e[1] <= (exact ? 0 : 1 * EPS_BF16))) /* rounding F32 to BF16: observed 0.42 */
        fail_msg("gather, scatter from %s to %s: %g, %g", tune_dtype_name(from), tune_dtype_name(to), w.e[0], w.e[1]);
    free(rows), free(wy), free(wz);
    drop(&x), drop(&y), drop(&z), drop(&part);
}

static void gather_scatter(void **state)
{
    (void)state;
    for (int f = 0; f < 2; f++)
        for (int t = 0; t < 2; t++) {
            gather_case(dtypes[f], dtypes[t], 1, 1, 1);
            gather_case(dtypes[f], dtypes[t], 17, 3, 65);
            gather_case(dtypes[f], dtypes[t], 130, 63, 17);
            gather_case(dtypes[f], dtypes[t], 65, 65, 130);
        }
}

/* Some columns of one matrix to some columns of another, as a cache takes keys from qkv rows. What
 * lies beside them stays. */
static void gather_columns_case(enum tune_dtype from, enum tune_dtype to, uint64_t seed)
{
    enum { ALL = 23, SOME = 9, COLUMNS = 37 };
    struct part x = part_random(from, ALL, COLUMNS, seed), y = part_random(to, SOME, COLUMNS, seed + 1);
    struct part source = part_random(from, SOME, COLUMNS, seed + 2), z = part_random(to, ALL, COLUMNS, seed + 3);
    struct worst w = {0};
    int32_t rows[SOME];
    double *want_y = copy_of(&y.in), *want_z = copy_of(&z.in), *vx = numbers(&x), *vs = numbers(&source);
    for (int i = 0; i < SOME; i++) {
        rows[i] = (int32_t)tune_random_permute(seed, 2, ALL, (uint64_t)i);
        memcpy(want_y + i * y.in.t.shape[1] + y.first, vx + rows[i] * COLUMNS, COLUMNS * sizeof *vx);
        memcpy(want_z + rows[i] * z.in.t.shape[1] + z.first, vs + i * COLUMNS, COLUMNS * sizeof *vs);
    }
    for (int d = 0; d < DEVICES; d++) {
        struct tune_device *dev = devices[d];
        struct tune_tensor on = put_index(dev, rows, SOME);
        put(dev, &x.in), put(dev, &y.in), put(dev, &source.in), put(dev, &z.in);
        struct tune_tensor tx = view(&x), ty = view(&y), ts = view(&source), tz = view(&z);
        assert_ok(tune_gather(dev, &ty, &tx, &on));
        worst(&w, to, error(&y.in, want_y));
        assert_ok(tune_scatter(dev, &tz, &ts, &on));
        worst(&w, to, error(&z.in, want_z));
        drop_tensor(dev, &on);
    }
    bool exact = from == to || to == TUNE_F32;
    if (!(w.e[0] == 0 && w.e[1] <= (exact ? 0 : 1 * EPS_BF16)))
        fail_msg("columns from %s to %s: %g, %g", tune_dtype_name(from), tune_dtype_name(to), w.e[0], w.e[1]);
    free(want_y), free(want_z), free(vx), free(vs);
    drop(&x.in), drop(&y.in), drop(&source.in), drop(&z.in);
}

static void gather_scatter_columns(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 20; n++)
        gather_columns_case(dtypes[n & 1], dtypes[n >> 1 & 1], 100 * n);
}

/* ---- norms ---- */

static void rmsnorm_case(struct worst *forward, struct worst *backward, enum tune_dtype type, int64_t N, int64_t C, double size, float plus)
{
    float eps = 1e-5f;
    struct array x = array_random(type, N, C, size, 1), w = array_random(TUNE_F32, 0, C, 1, 2), y = array_nan(type, N, C);
    struct array rstd = array_nan(TUNE_F32, 0, N), dy = array_random(type, N, C, 1, 3), dx = array_random(type, N, C, 1, 4);
    struct array dw = array_random(TUNE_F32, 0, C, 1, 5);
    double *wy = zeros(N * C), *ws = zeros(N), *wdx = copy_of(&dx), *wdw = copy_of(&dw), *weight = copy_of(&w);
    for (int64_t i = 0; i < C; i++)
        weight[i] += plus;
    for (int64_t n = 0; n < N; n++) {
        naive_norm(wy + n * C, x.v + n * C, weight, C, eps);
        ws[n] = naive_rstd(x.v + n * C, C, eps);
        naive_norm_backward(wdx + n * C, wdw, dy.v + n * C, x.v + n * C, weight, C, eps);
    }
    struct array *all[] = {&x, &w, &y, &rstd, &dy, &dx, &dw};
    for (int d = 0; d < DEVICES; d++) {
        for (int i = 0; i < 7; i++)
            put(devices[d], all[i]);
        assert_ok(tune_rmsnorm_forward(devices[d], &y.t, &rstd.t, &x.t, &w.t, eps, plus));
        worst(forward, type, error(&y, wy));
        worst(forward, TUNE_F32, error(&rstd, ws));
        put(devices[d], &y);
        assert_ok(tune_rmsnorm_forward(devices[d], &y.t, NULL, &x.t, &w.t, eps, plus));
        worst(forward, type, error(&y, wy));
        assert_ok(tune_rmsnorm_backward(devices[d], &dx.t, &dw.t, &dy.t, &x.t, &w.t, &rstd.t, plus));
        worst(backward, type, error(&dx, wdx));
        worst(backward, TUNE_F32, error(&dw, wdw));
        put(devices[d], &dx);
        assert_ok(tune_rmsnorm_backward(devices[d], &dx.t, NULL, &dy.t, &x.t, &w.t, &rstd.t, plus)); /* a frozen weight */
        worst(backward, type, error(&dx, wdx));
        worst(backward, TUNE_F32, error(&dw, wdw));
    }
    for (int i = 0; i < 7; i++)
        drop(all[i]);
    free(wy), free(ws), free(wdx), free(wdw), free(weight);
}

static void rmsnorm(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {3, 17}, {17, 3}, {63, 65}, {65, 130}, {130, 63}, {2, 2049}};
    struct worst forward = {0}, backward = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int t = 0; t < 2; t++) {
            rmsnorm_case(&forward, &backward, dtypes[t], sizes[s][0], sizes[s][1], 1, 0);
            rmsnorm_case(&forward, &backward, dtypes[t], sizes[s][0], sizes[s][1], 1, 1);
            rmsnorm_case(&forward, &backward, dtypes[t], sizes[s][0], sizes[s][1], 1e-3, 0); /* eps matters */
        }
    assert_worst("rmsnorm_forward", &forward, 4, 2);    /* 1.1, 0.5 */
    assert_worst("rmsnorm_backward", &backward, 16, 2); /* 4.9, 0.55 */
}

static void headnorm_case(struct worst *forward, struct worst *backward, enum tune_dtype type, int64_t N, int total, int first,
                          int heads, int64_t D, float plus)
{
    float eps = 1e-6f;
    int64_t Q = total * D;
    struct array x = array_random(type, N, Q, 1, 1), w = array_random(TUNE_F32, 0, D, 1, 2), y = array_random(type, N, Q, 1, 3);
    struct array rstd = array_nan(TUNE_F32, N, heads), dy = array_random(type, N, Q, 1, 4), dw = array_random(TUNE_F32, 0, D, 1, 5);
    double *wy = copy_of(&y), *ws = zeros(N * heads), *wdy = copy_of(&dy), *wdw = copy_of(&dw), *weight = copy_of(&w);
    for (int64_t i = 0; i < D; i++)
        weight[i] += plus;
    for (int64_t n = 0; n < N; n++)
        for (int h = 0; h < heads; h++) {
            int64_t at = n * Q + (first + h) * D;
            naive_norm(wy + at, x.v + at, weight, D, eps);
            ws[n * heads + h] = naive_rstd(x.v + at, D, eps);
            memset(wdy + at, 0, (size_t)D * sizeof *wdy); /* set, not added to */
            naive_norm_backward(wdy + at, wdw, dy.v + at, x.v + at, weight, D, eps);
        }
    struct array *all[] = {&x, &w, &y, &rstd, &dy, &dw};
    for (int d = 0; d < DEVICES; d++) {
        for (int i = 0; i < 6; i++)
            put(devices[d], all[i]);
        assert_ok(tune_headnorm_forward(devices[d], &y.t, &rstd.t, &x.t, &w.t, first, heads, eps, plus));
        worst(forward, type, error(&y, wy));
        worst(forward, TUNE_F32, error(&rstd, ws));
        assert_ok(tune_headnorm_backward(devices[d], &dy.t, &dw.t, &x.t, &w.t, &rstd.t, first, heads, plus));
        worst(backward, type, error(&dy, wdy));
        worst(backward, TUNE_F32, error(&dw, wdw));
        put(devices[d], &dy);
        assert_ok(tune_headnorm_backward(devices[d], &dy.t, NULL, &x.t, &w.t, &rstd.t, first, heads, plus));
        worst(backward, type, error(&dy, wdy));
        worst(backward, TUNE_F32, error(&dw, wdw));
    }
    for (int i = 0; i < 6; i++)
        drop(all[i]);
    free(wy), free(ws), free(wdy), free(wdw), free(weight);
}

static void headnorm(void **state)
{
    (void)state;
    struct worst forward = {0}, backward = {0};
    for (int t = 0; t < 2; t++) {
        headnorm_case(&forward, &backward, dtypes[t], 1, 1, 0, 1, 3, 1);
        headnorm_case(&forward, &backward, dtypes[t], 17, 8, 0, 4, 17, 0);
        headnorm_case(&forward, &backward, dtypes[t], 63, 8, 4, 2, 65, 1);
        headnorm_case(&forward, &backward, dtypes[t], 130, 5, 3, 1, 130, 0);
    }
    assert_worst("headnorm_forward", &forward, 4, 2);    /* 0.72, 0.5 */
    assert_worst("headnorm_backward", &backward, 12, 2); /* 3.6, 0.55 */
}

/* ---- rope ---- */

/* Rows of 1 to longest tokens one behind the other along each of B sequences of T: positions and starts [B,T], of which either
 * may be NULL. */
static void lay_packs(int B, int T, int longest, int32_t *positions, int32_t *starts)
{
    uint32_t draw = 7;
    for (int64_t n = 0, start = 0, end = 0; n < (int64_t)B * T; n++) {
        if (n % T == 0 || n == end) {
            start = n;
            draw = draw * 1664525 + 1013904223;
            end = n + 1 + draw / 65536 % (uint32_t)longest;
        }
        if (positions)
            positions[n] = (int32_t)(n - start);
        if (starts)
            starts[n] = (int32_t)(start % T);
    }
}

static void rope_case(struct worst *w, enum tune_dtype type, int B, int T, int total, int heads, int D, int R, bool packed)
{
    int64_t N = (int64_t)B * T, Q = (int64_t)total * D;
    int32_t *positions = packed ? malloc((size_t)N * sizeof *positions) : NULL;
    if (packed)
        lay_packs(B, T, 20, positions, NULL);
    struct array x = array_random(type, N, Q, 1, 1), table = array_random(TUNE_F32, T + 3, R, 1, 2); /* longer than T */
    for (int64_t p = 0; p < T + 3; p++)
        for (int i = 0; i < R / 2; i++) {
            float angle = (float)p * powf(100, -2 * (float)i / (float)R);
            float *row = (float *)(void *)table.raw + p * R;
            table.v[p * R + i] = row[i] = cosf(angle);
            table.v[p * R + R / 2 + i] = row[R / 2 + i] = sinf(angle);
        }
    double *forward = copy_of(&x), *backward = copy_of(&x);
    naive_rope(forward, table.v, positions, N, Q, T, heads, D, R, 1);
    naive_rope(backward, table.v, positions, N, Q, T, heads, D, R, -1);
    for (int d = 0; d < DEVICES; d++) {
        struct tune_tensor on = put_index(devices[d], positions, packed ? N : 0);
        put(devices[d], &x), put(devices[d], &table);
        assert_ok(tune_rope(devices[d], &x.t, &table.t, packed ? &on : NULL, T, heads, D, false));
        worst(w, type, error(&x, forward));
        put(devices[d], &x);
        assert_ok(tune_rope(devices[d], &x.t, &table.t, packed ? &on : NULL, T, heads, D, true));
        worst(w, type, error(&x, backward));
        drop_tensor(devices[d], &on);
    }
    drop(&x), drop(&table);
    free(forward), free(backward), free(positions);
}

static void rope(void **state)
{
    (void)state;
    struct worst w = {0};
    for (int t = 0; t < 2; t++) {
        rope_case(&w, dtypes[t], 1, 1, 1, 1, 2, 2, false);
        rope_case(&w, dtypes[t], 3, 17, 5, 3, 6, 6, false);
        rope_case(&w, dtypes[t], 2, 65, 8, 6, 34, 34, false);
        rope_case(&w, dtypes[t], 1, 130, 4, 3, 64, 64, false);
        rope_case(&w, dtypes[t], 2, 65, 8, 6, 34, 34, true);
        rope_case(&w, dtypes[t], 2, 17, 5, 3, 32, 24, true); /* some of each head */
        rope_case(&w, dtypes[t], 1, 9, 3, 3, 7, 2, false);
    }
    assert_worst("rope", &w, 2, 1); /* 0.45, 0.37 */
}

/* ---- attention ---- */

struct heads {
    struct tune_tensor q, k, v;
};

/* Queries, keys and values of rows [B T, (H + 2K) D]. */
static struct heads heads_of(const struct tune_tensor *rows, const struct naive_attention *s)
{
    int64_t q = (int64_t)s->H * s->D, k = (int64_t)s->K * s->D;
    return (struct heads){tune_tensor_heads(rows, s->B, 0, s->H, s->D), tune_tensor_heads(rows, s->B, q, s->K, s->D),
                          tune_tensor_heads(rows, s->B, q + k, s->K, s->D)};
}

static struct tune_attention params_of(const struct naive_attention *s)
{
    return (struct tune_attention){s->window, s->scale};
}

static void attention_case(struct worst *forward, struct worst *backward, enum tune_dtype type, const struct naive_attention *s,
                           double size)
{
    int64_t N = (int64_t)s->B * s->T, Q = (int64_t)(s->H + 2 * s->K) * s->D, HD = (int64_t)s->H * s->D;
    struct array qkv = array_random(type, N, Q, size, 1), out = array_nan(type, N, HD), lse = array_nan(TUNE_F32, N, s->H);
    struct array dout = array_random(type, N, HD, 1, 2), dqkv = array_nan(type, N, Q);
    double *wout = zeros(N * HD), *wlse = zeros(N * s->H), *wdqkv = zeros(N * Q);
    naive_attention(wout, wlse, qkv.v, s);
    naive_attention_backward(wdqkv, dout.v, qkv.v, s);
    struct array *all[] = {&qkv, &out, &lse, &dout, &dqkv};
    char *first = NULL;
    for (int d = 0; d < DEVICES; d++) {
        for (int i = 0; i < 5; i++)
            put(devices[d], all[i]);
        struct heads x = heads_of(&qkv.t, s), dx = heads_of(&dqkv.t, s);
        struct tune_tensor starts = put_index(devices[d], s->starts, s->starts ? N : 0), *first_key = s->starts ? &starts : NULL;
        assert_ok(tune_attention_forward(devices[d], &out.t, &lse.t, &x.q, &x.k, &x.v, first_key, NULL, NULL, params_of(s)));
        worst(forward, type, error(&out, wout));
        worst(forward, TUNE_F32, error(&lse, wlse));
        assert_ok(tune_attention_backward(devices[d], &dx.q, &dx.k, &dx.v, &dout.t, &x.q, &x.k, &x.v, &out.t, &lse.t, first_key,
                                          params_of(s)));
        worst(backward, type, error(&dqkv, wdqkv));
        assert_true(unchanged(&qkv) && unchanged(&dout));
        drop_tensor(devices[d], &starts);
        char *bits = get(&dqkv);
        if (first)
            assert_memory_equal(bits, first, dqkv.bytes); /* which thread did what does not matter */
        free(first);
        first = bits;
    }
    for (int i = 0; i < 5; i++)
        drop(all[i]);
    free(first), free(wout), free(wlse), free(wdqkv);
}

static void attention(void **state)
{
    (void)state;
    /* B, T, H, K, D, window, scale */
    static const struct naive_attention sizes[] = {
        {1, 1, 1, 1, 2, 0, 1, NULL}, {3, 1, 4, 2, 8, 0, .35f, NULL}, {2, 3, 4, 1, 17, 0, .25f, NULL},
        {2, 17, 6, 3, 16, 4, .25f, NULL}, {1, 63, 2, 2, 8, 0, .35f, NULL}, {1, 64, 2, 1, 10, 0, .3f, NULL},
        {2, 65, 3, 3, 17, 5, .25f, NULL}, {2, 130, 6, 2, 12, 0, .3f, NULL}, {2, 130, 4, 2, 8, 33, .35f, NULL},
        {1, 130, 4, 1, 64, 1, .125f, NULL}, {1, 193, 2, 2, 8, 64, .35f, NULL}, {1, 130, 2, 1, 6, 200, .4f, NULL},
        {1, 200, 1, 1, 65, 129, .12f, NULL},
        /* rows in several pieces: as many as fit, with a window, with one block for two pieces */
        {1, 200, 8, 1, 8, 0, .35f, NULL}, {2, 260, 6, 2, 12, 50, .3f, NULL}, {2, 20, 40, 1, 4, 0, .5f, NULL},
    };
    struct worst forward = {0}, backward = {0}, sharp = {0}, sharp_backward = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int t = 0; t < 2; t++) {
            if (sizes[s].T > 1) /* one position alone has no gradient in q and k: nothing to measure against but v */
                attention_case(&sharp, &sharp_backward, dtypes[t], &sizes[s], 8);
            attention_case(&forward, &backward, dtypes[t], &sizes[s], 1);
        }
    assert_worst("attention_forward", &forward, 12, 2);   /* 3.5, 0.42 */
    assert_worst("attention_backward", &backward, 16, 2); /* 5.1, 0.55 */
    /* exp of scores of hundreds: their rounding, eps times the score, is the probability's error */
    assert_worst("  scores of hundreds", &sharp, 200, 2);     /* 51, 0.22 */
    assert_worst("  backward", &sharp_backward, 600, 12);     /* 179, 4.2: out was rounded to BF16, dP - delta cancels */
}

/* Several texts in one sequence: shorter and longer than a block of queries, with windows and without. */
static void attention_packed(void **state)
{
    (void)state;
    static const int longest[] = {1, 5, 40, 150};
    static const struct naive_attention sizes[] = {
        {1, 1, 1, 1, 2, 0, 1, NULL},      {2, 17, 6, 3, 16, 4, .25f, NULL}, {2, 130, 6, 2, 12, 0, .3f, NULL},
        {2, 130, 4, 2, 8, 33, .35f, NULL}, {1, 193, 2, 2, 8, 64, .35f, NULL}, {1, 300, 2, 1, 64, 0, .125f, NULL},
        {1, 300, 8, 1, 8, 0, .35f, NULL}, {2, 260, 6, 2, 12, 50, .3f, NULL}, /* in several pieces */
    };
    struct worst forward = {0}, backward = {0};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int k = 0; k < 4; k++) {
            struct naive_attention s = sizes[i];
            int32_t *starts = malloc((size_t)s.B * (size_t)s.T * sizeof *starts);
            lay_packs(s.B, s.T, longest[k], NULL, starts);
            s.starts = starts;
            for (int t = 0; t < 2; t++)
                attention_case(&forward, &backward, dtypes[t], &s, 1);
            free(starts);
        }
    assert_worst("attention_forward, packed", &forward, 12, 2);   /* 3.1, 0.40 */
    assert_worst("attention_backward, packed", &backward, 16, 2); /* 5.0, 0.53 */
}

/* A token that a query does not see has no part in its output, however large its value is. */
static void attention_unseen(void **state)
{
    (void)state;
    const struct naive_attention s = {1, 2, 1, 1, 2, 0, 1, NULL};
    const double v[12] = {1, 1, 1, 1, 0.5, -0.25, 1, 1, 1, 1, 3e38, -3e38}; /* q, k, v of each token */
    for (int t = 0; t < 2; t++)
        for (int d = 0; d < DEVICES; d++) {
            struct array qkv = array_from(dtypes[t], 2, 6, v), out = array_nan(dtypes[t], 2, 2), lse = array_nan(TUNE_F32, 2, 1);
            double first[2];
            put(devices[d], &qkv), put(devices[d], &out), put(devices[d], &lse);
            struct heads x = heads_of(&qkv.t, &s);
            assert_ok(tune_attention_forward(devices[d], &out.t, &lse.t, &x.q, &x.k, &x.v, NULL, NULL, NULL, params_of(&s)));
            char *raw = get(&out);
            assert_ok(tune_convert(first, TUNE_F64, raw, dtypes[t], 2));
            assert_true(first[0] == 0.5 && first[1] == -0.25);
            free(raw);
            drop(&qkv), drop(&out), drop(&lse);
        }
}

/* Keys and values of a cache, side by side in wider rows, with rows between one b and the next that belong to nobody. */
struct cache {
    struct array in;
    double *k, *v; /* as naive_cached takes them */
};

enum { BETWEEN = 2, BESIDE = 3 };

/* What lies behind keys[b] is NaN: nobody has written it yet. */
static struct cache cache_random(enum tune_dtype type, const struct naive_cache *s)
{
    int64_t wide = 2 * (int64_t)s->K * s->D + BESIDE, rows = s->capacity + BETWEEN, some = (int64_t)s->K * s->D;
    struct array random = array_random(type, s->B * rows, wide, 1, 31);
    for (int64_t i = 0; i < random.n; i++) {
        int64_t b = i / wide / rows, row = i / wide % rows;
        if (row >= (s->kv_length ? s->kv_length[b] : s->capacity))
            random.v[i] = NAN;
    }
    struct cache c = {array_from(type, s->B * rows, wide, random.v), zeros(s->B * s->capacity * some), zeros(s->B * s->capacity * some)};
    for (int64_t i = 0; i < s->B * s->capacity * some; i++) {
        const double *from = c.in.v + (i / some / s->capacity * rows + i / some % s->capacity) * wide + 1 + i % some;
        c.k[i] = from[0];
        c.v[i] = from[some];
    }
    drop(&random);
    return c;
}

/* first: the view's first column. */
static struct tune_tensor cached(const struct cache *c, const struct naive_cache *s, int64_t first)
{
    struct tune_tensor all = tune_tensor_columns(&c->in.t, first, (int64_t)s->K * s->D), t = tune_tensor_heads(&all, 1, 0, s->K, s->D);
    t.shape[0] = s->B;
    t.shape[1] = s->capacity;
    t.outer = (s->capacity + BETWEEN) * t.stride;
    return t;
}

static void cached_case(struct worst *w, enum tune_dtype type, const struct naive_cache *s)
{
    int64_t N = (int64_t)s->B * s->Tq, HD = (int64_t)s->H * s->D;
    struct array q = array_random(type, N, HD + 5, 1, 30), out = array_nan(type, N, HD), lse = array_nan(TUNE_F32, N, s->H);
    struct cache c = cache_random(type, s);
    double *vq = zeros(N * HD), *wout = zeros(N * HD), *wlse = zeros(N * s->H);
    for (int64_t i = 0; i < N * HD; i++)
        vq[i] = q.v[i / HD * (HD + 5) + 2 + i % HD];
    naive_cached(wout, wlse, vq, c.k, c.v, s);
    for (int d = 0; d < DEVICES; d++) {
        struct tune_device *dev = devices[d];
        put(dev, &q), put(dev, &c.in), put(dev, &out), put(dev, &lse);
        struct tune_tensor starts = put_index(dev, s->starts, s->starts ? N : 0);
        struct tune_tensor kv_length = put_index(dev, s->kv_length, s->kv_length ? s->B : 0);
        struct tune_tensor q_offset = put_index(dev, s->q_offset, s->q_offset ? s->B : 0);
        struct tune_tensor at = tune_tensor_heads(&q.t, s->B, 2, s->H, s->D);
        struct tune_tensor k = cached(&c, s, 1), v = cached(&c, s, 1 + (int64_t)s->K * s->D);
        assert_ok(tune_attention_forward(dev, &out.t, &lse.t, &at, &k, &v, s->starts ? &starts : NULL, s->kv_length ? &kv_length : NULL,
                                         s->q_offset ? &q_offset : NULL, (struct tune_attention){s->window, s->scale}));
        worst(w, type, error(&out, wout));
        worst(w, TUNE_F32, error(&lse, wlse));
        drop_tensor(dev, &starts), drop_tensor(dev, &kv_length), drop_tensor(dev, &q_offset);
    }
    drop(&q), drop(&out), drop(&lse), drop(&c.in);
    free(c.k), free(c.v), free(vq), free(wout), free(wlse);
}

/* Attention over a cache: one query, some, as many as one block has and more; rows that are filled to different lengths, and
 * padded on the left; with windows and without. */
static void attention_cached(void **state)
{
    (void)state;
    static const int32_t one[] = {1, 100, 47}, before[] = {0, 99, 46}, lengths[] = {70, 33, 130}, ends[] = {30, 0, 90};
    static const int32_t full[] = {130, 64, 99}, ahead[] = {60, 1, 33}, some[] = {33, 10, 1};
    static int32_t padded[3 * 40];
    for (int i = 0; i < 3 * 40; i++) /* of rows that begin with 5, 0 and 20 tokens of padding; the last queries see less */
        padded[i] = (i / 40 == 0 ? 5 : i / 40 == 1 ? 0 : 20) + (i % 40 > 30 ? 2 : 0);
    static const struct naive_cache cases[] = {
        {3, 1, 130, 4, 2, 8, 0, .35f, NULL, one, before},        {3, 1, 130, 4, 2, 8, 7, .35f, NULL, one, before},
        {3, 40, 130, 6, 2, 17, 0, .25f, NULL, lengths, ends},    {3, 40, 130, 6, 2, 17, 9, .25f, NULL, lengths, ends},
        {3, 40, 130, 2, 1, 10, 33, .3f, padded, lengths, ends},  {3, 70, 130, 2, 2, 6, 0, .4f, NULL, full, ahead},
        {3, 70, 130, 2, 2, 6, 0, .4f, NULL, full, NULL},         {2, 50, 130, 2, 2, 6, 20, .4f, NULL, NULL, ahead},
        {3, 33, 34, 3, 1, 12, 0, .3f, NULL, NULL, NULL},         {3, 33, 33, 3, 1, 12, 0, .3f, NULL, some, NULL},
    };
    struct worst w = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int t = 0; t < 2; t++)
            cached_case(&w, dtypes[t], &cases[i]);
    assert_worst("attention over a cache", &w, 12, 2);
}

/* ---- y = alpha x + beta y ---- */

static void axpby(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 15, 16, 17, 1003};
    struct worst w = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int form = 0; form < 8; form++) { /* set or add; each F32 or BF16 */
            int64_t n = sizes[s];
            int set = form % 2;
            enum tune_dtype to = dtypes[form / 2 % 2], from = dtypes[form / 4];
            double beta = set ? 0 : 1.75;
            struct array x = array_random(from, 0, n, 1, 1);
            struct array y = set ? array_nan(to, 0, n) : array_random(to, 0, n, 1, 2);
            double *want = zeros(n);
            for (int64_t i = 0; i < n; i++)
                want[i] = -.625 * x.v[i] + (set ? 0 : beta * y.v[i]);
            for (int d = 0; d < DEVICES; d++) {
                put(devices[d], &x), put(devices[d], &y);
                assert_ok(tune_axpby(devices[d], &y.t, &x.t, -.625f, (float)beta));
                worst(&w, to, error(&y, want));
                assert_true(unchanged(&x));
            }
            drop(&x), drop(&y);
            free(want);
        }
    assert_worst("axpby", &w, 2, 1); /* 0.5, 0.5 */
}

/* ---- glu ---- */

static void glu_case(struct worst *forward, struct worst *backward, enum tune_dtype type, int64_t N, int64_t F, double size,
                     enum tune_gate kind)
{
    struct array x = array_random(type, N, 2 * F, size, 1), h = array_nan(type, N, F), dh = array_random(type, N, F, 1, 2);
    struct array dx = array_nan(type, N, 2 * F);
    double *wh = zeros(N * F), *wdx = zeros(2 * N * F);
    naive_glu(wh, x.v, N, F, kind == TUNE_GATE_GELU);
    naive_glu_backward(wdx, dh.v, x.v, N, F, kind == TUNE_GATE_GELU);
    for (int d = 0; d < DEVICES; d++) {
        put(devices[d], &x), put(devices[d], &h), put(devices[d], &dh), put(devices[d], &dx);
        assert_ok(tune_glu_forward(devices[d], &h.t, &x.t, kind));
        worst(forward, type, error(&h, wh));
        assert_ok(tune_glu_backward(devices[d], &dx.t, &dh.t, &x.t, kind));
        worst(backward, type, error(&dx, wdx));
        assert_true(unchanged(&x) && unchanged(&dh));
        assert_ok(tune_glu_backward(devices[d], &x.t, &dh.t, &x.t, kind)); /* in place */
        worst(backward, type, error(&x, wdx));
    }
    drop(&x), drop(&h), drop(&dh), drop(&dx);
    free(wh), free(wdx);
}

static void glu(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {3, 17}, {17, 63}, {65, 130}, {130, 3}};
    struct worst forward[2] = {0}, backward[2] = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int form = 0; form < 4; form++) {
            enum tune_dtype type = dtypes[form % 2];
            enum tune_gate kind = form / 2 ? TUNE_GATE_GELU : TUNE_GATE_SILU;
            glu_case(&forward[kind], &backward[kind], type, sizes[s][0], sizes[s][1], 1, kind);
            /* exp(-gate) over and underflows */
            glu_case(&forward[kind], &backward[kind], type, sizes[s][0], sizes[s][1], 60, kind);
        }
    assert_worst("silu, forward", &forward[TUNE_GATE_SILU], 4, 2);    /* 1.1, 0.55 */
    assert_worst("silu, backward", &backward[TUNE_GATE_SILU], 12, 2); /* 3.8, 0.49 */
    assert_worst("gelu, forward", &forward[TUNE_GATE_GELU], 4, 2);
    assert_worst("gelu, backward", &backward[TUNE_GATE_GELU], 12, 2);
}

/* ---- cross entropy ---- */

/* A step's scalars on a device, with that loss so far; and what it has become. */
static tune_address put_loss(struct tune_device *dev, double loss)
{
    struct tune_scalars s = {.loss_sum = loss};
    return put_bytes(dev, &s, sizeof s);
}

static double take_loss(struct tune_device *dev, tune_address step)
{
    struct tune_scalars s;
    get_bytes(dev, &s, step, sizeof s);
    tune_device_free(dev, step, sizeof s);
    return s.loss_sum;
}

static void cross_entropy_case(struct worst *w, int64_t M, int64_t V, double size, bool weighted, double smoothing)
{
    struct array x = array_random(TUNE_F32, M, V, size, 1), log_probs = array_nan(TUNE_F32, 0, M);
    struct array factors = array_random(TUNE_F32, 0, M + 3, 1, 8); /* of more positions than there are labels */
    int32_t *labels = random_ids(M, V, 5), *rows = random_ids(M, M + 3, 6);
    double *wdx = zeros(M * V), *wp = zeros(M), begin = 3.25, want = begin;
    for (int64_t m = 0; m < M; m++) {
        double f = weighted ? factors.v[rows[m]] : 1;
        wp[m] = naive_log_prob(wdx + m * V, x.v + m * V, V, labels[m], 1);
        double every = 0; /* the mean of all log p */
        for (int64_t i = 0; i < V; i++) {
            every += (smoothing > 0 ? naive_log_prob(NULL, x.v + m * V, V, (int32_t)i, 1) : 0) / (double)V;
            wdx[m * V + i] = f * (wdx[m * V + i] + smoothing * ((i == labels[m]) - 1 / (double)V));
        }
        want -= f * ((1 - smoothing) * wp[m] + smoothing * every);
    }
    for (int d = 0; d < DEVICES; d++) {
        struct tune_device *dev = devices[d];
        struct tune_tensor on = put_index(dev, labels, M), at = put_index(dev, rows, M);
        put(dev, &x), put(dev, &log_probs), put(dev, &factors);
        const struct tune_tensor *weights = weighted ? &factors.t : NULL;
        tune_address step = put_loss(dev, begin);
        assert_ok(tune_cross_entropy_rows(dev, &x.t, step, &log_probs.t, &on, weights, &at, smoothing, false));
        double forward = take_loss(dev, step);
        worst(w, TUNE_F32, fabs(forward - want) / fabs(want));
        worst(w, TUNE_F32, error(&log_probs, wp));
        put(dev, &x);
        step = put_loss(dev, begin);
        assert_ok(tune_cross_entropy_rows(dev, &x.t, step, NULL, &on, weights, &at, smoothing, true));
        double both = take_loss(dev, step);
        assert_memory_equal(&forward, &both, sizeof both);
        worst(w, TUNE_F32, error(&x, wdx));
        drop_tensor(dev, &on), drop_tensor(dev, &at);
    }
    drop(&x), drop(&log_probs), drop(&factors);
    free(labels), free(rows), free(wdx), free(wp);
}

static void cross_entropy(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 1}, {1, 3}, {3, 17}, {17, 130}, {65, 63}, {130, 1001}, {5, 50257}};
    struct worst w = {0}, huge = {0}, smooth = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        cross_entropy_case(&w, sizes[s][0], sizes[s][1], 1, false, 0);
        cross_entropy_case(&w, sizes[s][0], sizes[s][1], 1, true, 0);
        if (sizes[s][1] < 1000)
            cross_entropy_case(&smooth, sizes[s][0], sizes[s][1], 4, s % 2, 0.2);
        cross_entropy_case(&huge, sizes[s][0], sizes[s][1], 1e4, false, 0);
        cross_entropy_case(&huge, sizes[s][0], sizes[s][1], 1e30, false, 0);
    }
    assert_worst("cross_entropy", &w, 16, 0);   /* 0.75; 4.2 without vectors: one running sum of 50257 */
    assert_worst("  smoothed", &smooth, 16, 0);
    assert_worst("  huge logits", &huge, 16, 0); /* 1.1 */
}

/* A label that is nearly certain beside large logits: its small loss is not lost in their rounding, nor the gradient of a
 * token that is hardly possible. */
static void cross_entropy_certain(void **state)
{
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        struct tune_device *dev = devices[d];
        double v[3] = {3000, 2990, 2940}, loss = 0, want = log1p(exp(-10)), dx[3];
        int32_t label = 0;
        struct array x = array_from(TUNE_F32, 1, 3, v), log_prob = array_nan(TUNE_F32, 0, 1);
        struct tune_tensor on = put_index(dev, &label, 1);
        tune_address step = put_loss(dev, loss);
        put(dev, &x), put(dev, &log_prob);
        assert_ok(tune_cross_entropy_rows(dev, &x.t, step, &log_prob.t, &on, NULL, NULL, 0, true));
        loss = take_loss(dev, step);
        assert_true(fabs(loss / want - 1) < 1e-2);
        assert_true(error(&log_prob, &(double){-want}) < 1e-2);
        char *raw = get(&x);
        assert_ok(tune_convert(dx, TUNE_F64, raw, TUNE_F32, 3));
        assert_true(fabs(dx[2] / exp(-60) - 1) < 1e-3);
        free(raw);
        drop_tensor(dev, &on);
        drop(&x), drop(&log_prob);
    }
}

/* A gate so low that its exponential is nearly infinite: what is left of it is tiny, and right. */
static void glu_low(void **state)
{
    (void)state;
    for (int d = 0; d < DEVICES; d++) {
        const double v[2] = {-88, 1};
        double h;
        struct array gate_up = array_from(TUNE_F32, 1, 2, v), out = array_nan(TUNE_F32, 1, 1);
        put(devices[d], &gate_up), put(devices[d], &out);
        assert_ok(tune_glu_forward(devices[d], &out.t, &gate_up.t, TUNE_GATE_SILU));
        char *raw = get(&out);
        assert_ok(tune_convert(&h, TUNE_F64, raw, TUNE_F32, 1));
        assert_true(fabs(h / (-88 / (1 + exp(88))) - 1) < 1e-4);
        free(raw);
        drop(&gate_up), drop(&out);
    }
}

/* A NaN or an infinity must reach the loss: that is how a step is found not to be finite. */
static void cross_entropy_not_finite(void **state)
{
    (void)state;
    const double bad[] = {NAN, INFINITY};
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < DEVICES; d++) {
            struct tune_device *dev = devices[d];
            double v[3 * 17] = {0}, loss = 0;
            int32_t labels[3] = {1, 2, 3};
            v[17 + 9] = bad[i];
            struct array x = array_from(TUNE_F32, 3, 17, v);
            struct tune_tensor on = put_index(dev, labels, 3);
            tune_address step = put_loss(dev, loss);
            put(dev, &x);
            assert_ok(tune_cross_entropy_rows(dev, &x.t, step, NULL, &on, NULL, NULL, 0, true));
            assert_false(isfinite(take_loss(dev, step)));
            drop_tensor(dev, &on);
            drop(&x);
        }
}

/* ---- the step ---- */

static void sum_squares(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 3, 17, 4096, 4097, 100003};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct array x = array_random(TUNE_F32, 0, sizes[s], 1e3, 1);
        double want = 2.5;
        for (int64_t i = 0; i < x.n; i++)
            want += x.v[i] * x.v[i];
        for (int d = 0; d < DEVICES; d++) {
            double got[2], begin = 2.5;
            put(devices[d], &x);
            for (int again = 0; again < 2; again++) {
                struct tune_scalars s2 = {.square_sum = begin};
                tune_address step = put_bytes(devices[d], &s2, sizeof s2);
                assert_ok(tune_sum_squares(devices[d], step, &x.t));
                get_bytes(devices[d], &s2, step, sizeof s2);
                got[again] = s2.square_sum;
                tune_device_free(devices[d], step, sizeof s2);
            }
            assert_true(fabs(got[0] - want) <= 1e-13 * want); /* float64 sums: observed 4e-16 */
            assert_memory_equal(&got[0], &got[1], sizeof *got);
        }
        drop(&x);
    }
}

static struct tune_scalars finish(struct tune_device *dev, double loss, double labels, double squares, double clip)
{
    struct tune_scalars s = {.loss_sum = loss, .labels = labels, .square_sum = squares, .gradient_scale = NAN, .grad_norm = NAN,
                             .not_finite = NAN, .updates = 6};
    tune_address on = put_bytes(dev, &s, sizeof s);
    assert_ok(tune_finish_step(dev, on, clip));
    get_bytes(dev, &s, on, sizeof s);
    tune_device_free(dev, on, sizeof s);
    return s;
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) <= 1e-14 * fabs(want)))
        fail_msg("%.17g, expected %.17g", got, want);
}

/* torch.nn.utils.clip_grad_norm_: the factor is min(1, max_norm / (norm + 1e-6)). */
static void finish_step(void **state)
{
    (void)state;
    struct tune_device *dev = devices[1];
    struct tune_scalars s = finish(dev, 20, 8, 6400, 1); /* norm sqrt(6400)/8 = 10 */
    assert_near(s.grad_norm, 10);
    assert_near(s.gradient_scale, 1 / (10 + 1e-6) / 8);
    assert_true(s.not_finite == 0 && s.updates == 7);
    assert_near(finish(dev, 20, 8, 6400, 0).gradient_scale, 1.0 / 8);  /* measured, not clipped */
    assert_near(finish(dev, 20, 8, 6400, 20).gradient_scale, 1.0 / 8); /* below the limit: left alone */
    assert_near(finish(dev, 20, 8, 0, 1).gradient_scale, 1.0 / 8);
    const double bad[] = {NAN, INFINITY, -INFINITY};
    for (int i = 0; i < 3; i++)
        for (int clip = 0; clip < 2; clip++) {
            s = finish(dev, bad[i], 8, 6400, clip);
            assert_true(s.not_finite == 1 && s.gradient_scale == 0 && s.updates == 6);
            s = finish(dev, 20, 8, fabs(bad[i]), clip);
            assert_true(s.not_finite == 1 && s.gradient_scale == 0 && s.updates == 6);
        }
}

static const double an_lr = 0.02;
static const struct tune_update an_update = {.lr_scale = 0.5, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.1,
                                             .momentum = 0.9};

/* size: of the gradients and moments. */
static void update_case(struct worst *worst_of, bool adam, bool momentum, int64_t n, double size)
{
    struct array w = array_random(TUNE_F32, 0, n, 1, 1), g = array_random(TUNE_F32, 0, n, 50 * size, 2);
    struct array m = array_random(TUNE_F32, 0, n, size, 3), v = array_random(TUNE_F32, 0, n, size * size, 4);
    for (int64_t i = 0; i < n; i++)
        ((float *)(void *)v.raw)[i] = (float)(v.v[i] = fabs(v.v[i]));
    double scale = 1.0 / 37, t = 3, *ww = copy_of(&w), *wm = copy_of(&m), *wv = copy_of(&v);
    if (adam)
        naive_adamw(ww, g.v, wm, wv, n, &an_update, an_lr, t, scale);
    else
        naive_sgd(ww, g.v, momentum ? wm : NULL, n, &an_update, an_lr, scale);
    for (int d = 0; d < DEVICES; d++) {
        struct tune_device *dev = devices[d];
        put(dev, &w), put(dev, &g), put(dev, &m), put(dev, &v);
        struct tune_scalars none = {.lr = an_lr, .updates = t}, some = {.lr = an_lr, .updates = t, .gradient_scale = scale};
        tune_address on[2] = {put_bytes(dev, &none, sizeof none), put_bytes(dev, &some, sizeof some)};
        for (int i = 0; i < 2; i++) { /* first with a scale of 0: nothing moves */
            if (adam)
                assert_ok(tune_adamw(dev, &w.t, &g.t, &m.t, &v.t, on[i], an_update));
            else
                assert_ok(tune_sgd(dev, &w.t, &g.t, momentum ? &m.t : NULL, on[i], an_update));
            if (i == 0)
                assert_true(unchanged(&w) && unchanged(&m) && unchanged(&v));
        }
        worst(worst_of, TUNE_F32, error(&w, ww));
        worst(worst_of, TUNE_F32, error(&m, wm));
        worst(worst_of, TUNE_F32, error(&v, wv));
        assert_true(unchanged(&g));
        tune_device_free(dev, on[0], sizeof none);
        tune_device_free(dev, on[1], sizeof some);
    }
    drop(&w), drop(&g), drop(&m), drop(&v);
    free(ww), free(wm), free(wv);
}

/* Muon's operations around its products. */
static void muon_case(struct worst *worst_of, int64_t n, bool zero)
{
    const double momentum = 0.9, size = 0.7, scale = 1.0 / 37, least = 1e-7;
    struct array w = array_random(TUNE_F32, 0, n, 1, 1), g = array_random(TUNE_F32, 0, n, zero ? 0 : 50, 2);
    struct array m = array_random(TUNE_F32, 0, n, zero ? 0 : 1, 3), y = array_nan(TUNE_F32, 0, n);
    struct tune_update params = an_update;
    params.momentum = momentum;
    double *ww = copy_of(&w), *wm = copy_of(&m), *wy = zeros(n), *wunit = zeros(n), squares = 0;
    for (int64_t i = 0; i < n; i++) {
        double grad = g.v[i] * scale;
        wm[i] += (1 - momentum) * (grad - wm[i]);
        wy[i] = grad + momentum * (wm[i] - grad);
        squares += wy[i] * wy[i];
    }
    for (int64_t i = 0; i < n; i++) {
        wunit[i] = wy[i] / fmax(sqrt(squares), least);
        ww[i] = ww[i] * (1 - an_lr * params.lr_scale * params.weight_decay) - an_lr * params.lr_scale * size * wunit[i];
    }
    for (int d = 0; d < DEVICES; d++) {
        struct tune_device *dev = devices[d];
        struct tune_scalars none = {.lr = an_lr}, some = {.lr = an_lr, .gradient_scale = scale};
        tune_address on[2] = {put_bytes(dev, &none, sizeof none), put_bytes(dev, &some, sizeof some)};
        put(dev, &w), put(dev, &g), put(dev, &m), put(dev, &y);
        for (int i = 0; i < 2; i++) { /* first with a scale of 0: nothing moves */
            assert_ok(tune_muon_moment(dev, &y.t, &g.t, &m.t, on[i], params));
            if (i == 1)
                worst(worst_of, TUNE_F32, error(&y, wy));
            assert_ok(tune_unit(dev, &y.t, least));
            assert_ok(tune_muon(dev, &w.t, &y.t, on[i], size, params));
            if (i == 0) {
                double *zero_y = zeros(n);
                assert_true(unchanged(&w) && unchanged(&m) && error(&y, zero_y) == 0);
                free(zero_y);
            }
        }
        worst(worst_of, TUNE_F32, error(&y, wunit));
        worst(worst_of, TUNE_F32, error(&m, wm));
        worst(worst_of, TUNE_F32, error(&w, ww));
        assert_true(unchanged(&g));
        tune_device_free(dev, on[0], sizeof none);
        tune_device_free(dev, on[1], sizeof some);
    }
    drop(&w), drop(&g), drop(&m), drop(&y);
    free(ww), free(wm), free(wy), free(wunit);
}

/* Averages after t updates; d is the lesser of the decay and the warm-up's. */
static void average_case(struct worst *worst_of, int64_t n, double decay, double t)
{
    struct array w = array_random(TUNE_F32, 0, n, 1, 1), e = array_random(TUNE_F32, 0, n, 1, 2);
    double *want = zeros(n), d = fmin(decay, (1 + t) / (10 + t));
    for (int64_t i = 0; i < n; i++)
        want[i] = d * e.v[i] + (1 - d) * w.v[i];
    for (int i = 0; i < DEVICES; i++) {
        struct tune_device *dev = devices[i];
        struct tune_scalars none = {.updates = t}, some = {.updates = t, .gradient_scale = 1e-9};
        tune_address on[2] = {put_bytes(dev, &none, sizeof none), put_bytes(dev, &some, sizeof some)};
        put(dev, &w), put(dev, &e);
        assert_ok(tune_average(dev, &e.t, &w.t, on[0], decay));
        assert_true(unchanged(&e));
        assert_ok(tune_average(dev, &e.t, &w.t, on[1], decay));
        worst(worst_of, TUNE_F32, error(&e, want));
        assert_true(unchanged(&w));
        tune_device_free(dev, on[0], sizeof none);
        tune_device_free(dev, on[1], sizeof some);
    }
    drop(&w), drop(&e);
    free(want);
}

static void exchange_case(int64_t n)
{
    struct array x = array_random(TUNE_F32, 0, n, 1, 1), y = array_random(TUNE_F32, 0, n, 1, 2);
    for (int d = 0; d < DEVICES; d++) {
        put(devices[d], &x), put(devices[d], &y);
        assert_ok(tune_exchange(devices[d], &x.t, &y.t));
        assert_true(error(&x, y.v) == 0 && error(&y, x.v) == 0);
        assert_ok(tune_exchange(devices[d], &x.t, &y.t));
        assert_true(unchanged(&x) && unchanged(&y));
    }
    drop(&x), drop(&y);
}

static void averages(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 3, 17, 130, 4096, 10007};
    struct worst few = {0}, many = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        struct worst *w = sizes[s] < 100 ? &few : &many;
        average_case(w, sizes[s], 0.999, 1);
        average_case(w, sizes[s], 0.999, 1e6);
        average_case(w, sizes[s], 0.1, 1);
        average_case(w, sizes[s], 0.5, 20);
        exchange_case(sizes[s]);
    }
    assert_worst("average", &many, 2, 0);
    assert_worst("  of few", &few, 24, 0); /* one number may be the difference of two much larger ones */
}

static void updates(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 3, 17, 130, 4096, 10007};
    struct worst adamw = {0}, sgd = {0}, muon = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        update_case(&adamw, true, false, sizes[s], 1);
        update_case(&adamw, true, false, sizes[s], an_update.eps); /* eps matters */
        update_case(&sgd, false, false, sizes[s], 1);
        update_case(&sgd, false, true, sizes[s], 1);
        muon_case(&muon, sizes[s], false);
    }
    muon_case(&muon, 17, true); /* a gradient of 0 stays 0 */
    assert_worst("muon", &muon, 4, 0);
    assert_worst("adamw", &adamw, 4, 0); /* 0.63 */
    assert_worst("sgd", &sgd, 4, 0);     /* 0.64 */
}

/* ---- the naive backward against central differences of the naive forward ---- */

/* loss(state) after x[i] moved both ways, against gradient[i], for each i; ||d||/||ref||. */
static double difference(double (*loss)(void *), void *state, double *x, int64_t n, const double *gradient)
{
    double d = 0, s = 0, h = 1e-6;
    for (int64_t i = 0; i < n; i++) {
        double keep = x[i];
        x[i] = keep + h;
        double up = loss(state);
        x[i] = keep - h;
        double down = loss(state);
        x[i] = keep;
        double numeric = (up - down) / (2 * h);
        d += (numeric - gradient[i]) * (numeric - gradient[i]);
        s += numeric * numeric;
    }
    return sqrt(d / s);
}

struct inputs {
    double *x, *w, *dy, *y;
    int64_t N, C, M;
    struct naive_attention attention;
    int32_t *labels;
    bool gelu;
};

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

static double linear_loss(void *state) /* bias: the row M of w */
{
    struct inputs *in = state;
    naive_gemm(in->y, in->x, false, in->w, true, in->N, in->M, in->C, 0.5, 0);
    for (int64_t i = 0; i < in->N * in->M; i++)
        in->y[i] += 0.5 * in->w[in->M * in->C + i % in->M];
    return dot(in->y, in->dy, in->N * in->M);
}

static double norm_loss(void *state)
{
    struct inputs *in = state;
    for (int64_t n = 0; n < in->N; n++)
        naive_norm(in->y + n * in->C, in->x + n * in->C, in->w, in->C, 1e-5);
    return dot(in->y, in->dy, in->N * in->C);
}

static double rope_loss(void *state)
{
    struct inputs *in = state;
    memcpy(in->y, in->x, (size_t)(in->N * in->C) * sizeof *in->y);
    naive_rope(in->y, in->w, NULL, in->N, in->C, 3, 2, 4, 4, 1);
    return dot(in->y, in->dy, in->N * in->C);
}

static double attention_loss(void *state)
{
    struct inputs *in = state;
    naive_attention(in->y, in->w, in->x, &in->attention);
    return dot(in->y, in->dy, (int64_t)in->attention.B * in->attention.T * in->attention.H * in->attention.D);
}

static double glu_loss(void *state)
{
    struct inputs *in = state;
    naive_glu(in->y, in->x, in->N, in->C, in->gelu);
    return dot(in->y, in->dy, in->N * in->C);
}

static double cross_entropy_loss(void *state)
{
    struct inputs *in = state;
    double sum = 0;
    for (int64_t n = 0; n < in->N; n++)
        sum -= naive_log_prob(NULL, in->x + n * in->C, in->C, in->labels[n], 0.7);
    return sum;
}

static void assert_difference(const char *op, double e)
{
    if (!(e <= 1e-6)) /* observed at most 3e-9 */
        fail_msg("naive %s against central differences: %g", op, e);
}

static void naive_backward(void **state)
{
    (void)state;
    enum { N = 6, C = 20, M = 9, ALL = 4000 };
    struct array r[4];
    for (int i = 0; i < 4; i++)
        r[i] = array_random(TUNE_F64, 0, ALL, 1, 20 + (uint64_t)i);
    int32_t *labels = random_ids(N, C, 8);
    struct inputs in = {r[0].v, r[1].v, r[2].v, r[3].v, N, C, M, {0}, labels, false};
    double *dx = zeros(ALL), *dw = zeros(ALL);
#define AGAIN (memset(dx, 0, ALL * sizeof *dx), memset(dw, 0, ALL * sizeof *dw))
    naive_gemm(dx, in.dy, false, in.w, false, N, C, M, 0.5, 0);
    naive_gemm(dw, in.dy, true, in.x, false, M, C, N, 0.5, 0);
    naive_bias_backward(dw + M * C, in.dy, N, M, 0.5);
    assert_difference("linear dx", difference(linear_loss, &in, in.x, N * C, dx));
    assert_difference("linear dw, dbias", difference(linear_loss, &in, in.w, M * C + M, dw));
    AGAIN;
    for (int n = 0; n < N; n++)
        naive_norm_backward(dx + n * C, dw, in.dy + n * C, in.x + n * C, in.w, C, 1e-5);
    assert_difference("norm dx", difference(norm_loss, &in, in.x, N * C, dx));
    assert_difference("norm dw", difference(norm_loss, &in, in.w, C, dw));
    AGAIN;
    memcpy(dx, in.dy, N * C * sizeof *dx);
    for (int i = 0; i < 3 * 2; i++) { /* a table of true rotations: 3 positions, 2 pairs */
        in.w[i / 2 * 4 + i % 2] = cos(i);
        in.w[i / 2 * 4 + 2 + i % 2] = sin(i);
    }
    naive_rope(dx, in.w, NULL, N, C, 3, 2, 4, 4, -1);
    assert_difference("rope", difference(rope_loss, &in, in.x, N * C, dx));
    static const int32_t two_texts[] = {0, 0, 0, 0, 0, 5, 5};
    static const struct naive_attention sizes[] = {{2, 7, 4, 2, 3, 0, .6f, NULL},
                                                  {1, 9, 2, 1, 5, 4, .4f, NULL},
                                                  {2, 5, 3, 3, 4, 1, .5f, NULL},
                                                  {1, 7, 2, 1, 3, 3, .5f, two_texts}};
    for (int i = 0; i < 4; i++) {
        const struct naive_attention *s = &sizes[i];
        in.attention = *s;
        AGAIN;
        naive_attention_backward(dx, in.dy, in.x, s);
        assert_difference("attention", difference(attention_loss, &in, in.x, (int64_t)s->B * s->T * (s->H + 2 * s->K) * s->D, dx));
    }
    AGAIN;
    for (int gelu = 0; gelu < 2; gelu++) {
        in.gelu = gelu;
        naive_glu_backward(dx, in.dy, in.x, N, C, gelu);
        assert_difference("glu", difference(glu_loss, &in, in.x, 2 * N * C, dx));
    }
    AGAIN;
    for (int n = 0; n < N; n++)
        naive_log_prob(dx + n * C, in.x + n * C, C, labels[n], 0.7);
    assert_difference("cross entropy", difference(cross_entropy_loss, &in, in.x, N * C, dx));
    for (int i = 0; i < 4; i++)
        drop(&r[i]);
    free(labels), free(dx), free(dw);
}

/* ---- noise ---- */

/* Noise that one call adds to 1, for a step and a pass. */
static void draw_noise(struct tune_device *dev, float *noise, int64_t N, int64_t C, double step, double pass, struct tune_dropout by)
{
    double *ones = zeros(N * C);
    for (int64_t i = 0; i < N * C; i++)
        ones[i] = 1;
    struct array y = array_from(TUNE_F32, N, C, ones);
    struct tune_scalars s = {.step = step, .pass = pass};
    tune_address at = put_bytes(dev, &s, sizeof s);
    put(dev, &y);
    assert_ok(tune_noise(dev, &y.t, at, by, 0.25f));
    char *raw = get(&y);
    for (int64_t i = 0; i < N * C; i++)
        noise[i] = ((float *)(void *)raw)[i] - 1;
    free(raw);
    tune_device_free(dev, at, sizeof s);
    drop(&y);
    free(ones);
}

/* Even over [-size, size), the same on every device, another for each step, pass, seed and row. */
static void noise(void **state)
{
    (void)state;
    enum { N = 64, C = 250 };
    static float first[N * C], other[N * C];
    const struct tune_dropout with = {.seed = 3, .past_steps = 2, .layer = -1}, seed = {.seed = 4, .past_steps = 2, .layer = -1};
    double sum = 0, squares = 0;
    int bins[8] = {0};
    draw_noise(devices[0], first, N, C, 5, 1, with);
    for (int i = 0; i < N * C; i++) {
        assert_true(first[i] >= -0.25f && first[i] <= 0.25f);
        sum += first[i];
        squares += (double)first[i] * first[i];
        bins[(int)fmin(7, floor((first[i] + 0.25) * 16))]++;
    }
    assert_true(fabs(sum / (N * C)) < 4 * 0.25 / sqrt(3.0 * N * C));
    assert_true(fabs(squares / (N * C) / (0.25 * 0.25 / 3) - 1) < 0.05);
    for (int b = 0; b < 8; b++)
        assert_true(abs(bins[b] - N * C / 8) < 5 * sqrt(N * C / 8.0));
    assert_true(memcmp(first, first + C, C * sizeof *first) != 0);
    for (int d = 0; d < DEVICES; d++) {
        draw_noise(devices[d], other, N, C, 5, 1, with);
        assert_memory_equal(first, other, sizeof first);
    }
    draw_noise(devices[0], other, N, C, 4, 1, (struct tune_dropout){.seed = 3, .past_steps = 3, .layer = -1});
    assert_memory_equal(first, other, sizeof first); /* the same step of a resumed run */
    const struct { double step, pass; struct tune_dropout drop; } others[] = {{6, 1, with}, {5, 2, with}, {5, 1, seed}};
    for (int i = 0; i < 3; i++) {
        draw_noise(devices[0], other, N, C, others[i].step, others[i].pass, others[i].drop);
        double dot = 0;
        for (int k = 0; k < N * C; k++)
            dot += (double)first[k] * other[k];
        assert_true(fabs(dot / squares) < 5 / sqrt(N * C));
    }
}

/* ---- shapes and dtypes that do not fit ---- */

#define assert_refused(call, op)                              \
    do {                                                      \
        tune_error_clear();                                   \
        if ((call) != -1)                                     \
            fail_msg("%s was not refused", #call);            \
        assert_error_has(op);                                 \
        assert_error_has("do not fit");                       \
    } while (0)

/* Operations of adapters and of the step. */
static void refused_adapters(struct tune_device *dev, tune_address memory, tune_address step)
{
    struct tune_tensor x = tune_tensor_2d(memory, TUNE_F32, 2, 4), y = tune_tensor_2d(memory, TUNE_F32, 2, 3);
    struct tune_tensor two = tune_tensor_1d(memory, TUNE_F32, 2), three = tune_tensor_1d(memory, TUNE_F32, 3);
    struct tune_tensor half = tune_tensor_1d(memory, TUNE_BF16, 2), apart = x;
    struct tune_tensor b = tune_tensor_2d(memory, TUNE_F32, 2, 1), aa = tune_tensor_2d(memory, TUNE_F32, 1, 1);
    apart.stride = 5;
    assert_refused(tune_dropout(dev, &x, &x, step, (struct tune_dropout){.p = 1}, 0, 0, 1), "dropout");
    assert_refused(tune_dropout(dev, &x, &x, step, (struct tune_dropout){.p = -0.1}, 0, 0, 1), "dropout");
    assert_refused(tune_dropout(dev, &y, &x, step, (struct tune_dropout){.p = 0.5}, 0, 0, 1), "dropout");
    assert_refused(tune_noise(dev, &half, step, (struct tune_dropout){0}, 1), "noise");
    assert_refused(tune_noise(dev, &apart, step, (struct tune_dropout){0}, 1), "noise");
    assert_refused(tune_noise(dev, &x, step, (struct tune_dropout){0}, -1), "noise");
    assert_refused(tune_scale_columns(dev, &x, &x, &three, 0, 1, 0), "scale_columns");
    assert_refused(tune_dot_columns(dev, &two, &x, &x, &two, -1, 1), "dot_columns");
    assert_refused(tune_dot_columns(dev, &two, &x, &x, &two, 3, 1), "dot_columns");
    assert_refused(tune_dot_columns(dev, &two, &x, &x, &three, 0, 1), "dot_columns");
    assert_refused(tune_row_squares(dev, &two, &apart), "row_squares");
    assert_refused(tune_row_squares(dev, &three, &x), "row_squares");
    assert_refused(tune_dora_scale(dev, &two, &three, NULL, NULL, NULL, NULL, NULL, 1), "dora_scale");
    assert_refused(tune_dora_scale(dev, &two, &two, &two, &two, &b, &b, &x, 1), "dora_scale");
    assert_refused(tune_dora_scale(dev, &two, &two, &three, &two, &b, &b, &aa, 1), "dora_scale");
    assert_refused(tune_sum_squares(dev, step, &half), "sum_squares");
    assert_refused(tune_finish_step(dev, step, -1), "finish_step");
    assert_refused(tune_end_step(dev, &two, step), "end_step");
}

static void refused(void **state)
{
    (void)state;
    struct tune_device *dev = devices[0];
    enum { BYTES = 256 };
    char nothing[BYTES] = {0}, left[BYTES];
    tune_address memory = put_bytes(dev, nothing, BYTES), sum = put_bytes(dev, nothing, BYTES), numbers_at = put_bytes(dev, nothing, BYTES);
#define T(dtype_, ndim_, ...) (&(struct tune_tensor){.data = memory, .dtype = dtype_, .ndim = ndim_, .shape = {__VA_ARGS__}})
#define F(rows, columns) T(TUNE_F32, 2, rows, columns)
#define H(rows, columns) T(TUNE_BF16, 2, rows, columns)
#define I(rows, columns) T(TUNE_I32, 2, rows, columns)
#define N(n) (&(struct tune_tensor){.data = numbers_at, .dtype = TUNE_I32, .ndim = 1, .shape = {n}})
#define R(n) T(TUNE_F32, 1, n)
#define RH(n) T(TUNE_BF16, 1, n)
#define S(rows, columns) (&(struct tune_tensor){.data = memory, .ndim = 2, .shape = {rows, columns}, .stride = (columns) + 1})
#define SR(n) (&(struct tune_tensor){.data = memory, .ndim = 1, .shape = {n}, .stride = 2})
    assert_refused(tune_gemm(dev, F(2, 3), F(2, 4), false, F(5, 3), false, 1, 0, TUNE_F32), "gemm");
    assert_refused(tune_gemm(dev, F(2, 3), F(2, 0), false, F(0, 3), false, 1, 0, TUNE_F32), "gemm");
    assert_refused(tune_gemm(dev, F(2, 3), F(2, 4), true, F(4, 3), false, 1, 0, TUNE_F32), "gemm");
    assert_refused(tune_gemm(dev, F(2, 3), F(2, 4), false, F(4, 3), true, 1, 0, TUNE_F32), "gemm");
    assert_refused(tune_gemm(dev, F(3, 3), F(2, 4), false, F(4, 3), false, 1, 0, TUNE_F32), "gemm");
    assert_refused(tune_gemm(dev, F(2, 3), I(2, 4), false, F(4, 3), false, 1, 0, TUNE_F32), "gemm");
    assert_refused(tune_gemm(dev, R(6), F(2, 4), false, F(4, 3), false, 1, 0, TUNE_F32), "gemm");
    assert_error_has("[2, 4]"); /* the shapes are named */
    assert_refused(tune_linear_forward(dev, F(2, 3), F(2, 4), F(3, 5), NULL, 1, 0, TUNE_F32), "linear_forward");
    assert_refused(tune_linear_forward(dev, F(2, 3), F(2, 4), F(3, 4), R(4), 1, 0, TUNE_F32), "linear_forward");
    assert_refused(tune_linear_forward(dev, F(2, 3), F(2, 4), F(3, 4), RH(3), 1, 0, TUNE_F32), "linear_forward");
    struct tune_tensor r = *F(2, 3), wide = *H(2, 3), apart_r = *S(2, 3);
    r.data = wide.data = apart_r.data = tune_address_plus(memory, 64);
    assert_refused(tune_gemm_add(dev, F(2, 3), F(2, 3), F(2, 4), F(3, 4), 1, TUNE_F32), "gemm_add"); /* y is r */
    assert_refused(tune_gemm_add(dev, F(2, 3), &r, F(2, 4), F(3, 5), 1, TUNE_F32), "gemm_add");
    assert_refused(tune_gemm_add(dev, F(2, 4), &r, F(2, 4), F(4, 4), 1, TUNE_F32), "gemm_add");
    assert_refused(tune_gemm_add(dev, H(2, 3), &r, F(2, 4), F(3, 4), 1, TUNE_F32), "gemm_add");
    assert_refused(tune_gemm_add(dev, F(2, 3), &wide, F(2, 4), F(3, 4), 1, TUNE_F32), "gemm_add");
    assert_refused(tune_gemm_add(dev, F(2, 3), &apart_r, F(2, 4), F(3, 4), 1, TUNE_F32), "gemm_add");
    assert_refused(tune_gemm_add(dev, F(2, 3), &r, F(2, 4), F(3, 4), 1, TUNE_F16), "gemm_add");
    assert_refused(tune_linear_backward(dev, F(2, 5), NULL, NULL, F(2, 3), F(2, 4), F(3, 4), 1, 0, TUNE_F32), "linear_backward");
    assert_refused(tune_linear_backward(dev, NULL, F(4, 3), NULL, F(2, 3), F(2, 4), F(3, 4), 1, 0, TUNE_F32), "linear_backward");
    assert_refused(tune_linear_backward(dev, NULL, H(3, 4), NULL, F(2, 3), F(2, 4), F(3, 4), 1, 0, TUNE_F32), "linear_backward");
    assert_refused(tune_linear_backward(dev, NULL, NULL, R(4), F(2, 3), F(2, 4), F(3, 4), 1, 0, TUNE_F32), "linear_backward");
    assert_refused(tune_embed_forward(dev, F(2, 3), F(5, 4), N(2), 1), "embed_forward");
    assert_refused(tune_embed_forward(dev, F(2, 3), I(5, 3), N(2), 1), "embed_forward");
    assert_refused(tune_embed_backward(dev, F(5, 4), F(2, 3), N(2), 1), "embed_backward");
    assert_refused(tune_embed_backward(dev, H(5, 3), F(2, 3), N(2), 1), "embed_backward");
    assert_refused(tune_rmsnorm_forward(dev, F(2, 3), NULL, F(2, 4), R(4), 1, 0), "rmsnorm_forward");
    assert_refused(tune_rmsnorm_forward(dev, I(2, 4), NULL, H(2, 4), R(4), 1, 0), "rmsnorm_forward");
    assert_refused(tune_rmsnorm_forward(dev, F(2, 4), R(3), F(2, 4), R(4), 1, 0), "rmsnorm_forward");
    assert_refused(tune_rmsnorm_forward(dev, F(2, 4), NULL, F(2, 4), RH(4), 1, 0), "rmsnorm_forward");
    assert_refused(tune_rmsnorm_backward(dev, F(2, 3), NULL, F(2, 4), F(2, 4), R(4), R(2), 0), "rmsnorm_backward");
    assert_refused(tune_rmsnorm_backward(dev, F(2, 4), R(2), F(2, 4), F(2, 4), R(4), R(2), 0), "rmsnorm_backward");
    assert_refused(tune_rmsnorm_backward(dev, I(2, 4), NULL, F(2, 4), F(2, 4), R(4), R(2), 0), "rmsnorm_backward");
    assert_refused(tune_headnorm_forward(dev, F(2, 12), F(2, 2), F(2, 12), R(4), 2, 2, 1, 0), "headnorm_forward");
    assert_refused(tune_headnorm_forward(dev, F(2, 12), F(2, 2), F(2, 12), R(4), -1, 2, 1, 0), "headnorm_forward");
    assert_refused(tune_headnorm_forward(dev, F(2, 12), F(2, 3), F(2, 12), R(4), 0, 2, 1, 0), "headnorm_forward");
    assert_refused(tune_headnorm_forward(dev, F(2, 12), H(2, 2), F(2, 12), R(4), 0, 2, 1, 0), "headnorm_forward");
    assert_refused(tune_headnorm_forward(dev, F(2, 12), F(2, 2), F(2, 12), RH(4), 0, 2, 1, 0), "headnorm_forward");
    assert_refused(tune_headnorm_backward(dev, F(2, 12), R(3), F(2, 12), R(4), F(2, 2), 0, 2, 0), "headnorm_backward");
    assert_refused(tune_headnorm_backward(dev, F(2, 12), NULL, H(2, 12), R(4), F(2, 2), 0, 2, 0), "headnorm_backward");
    assert_refused(tune_headnorm_backward(dev, F(2, 12), NULL, F(2, 12), R(4), H(2, 2), 0, 2, 0), "headnorm_backward");
    assert_refused(tune_headnorm_backward(dev, F(2, 12), NULL, F(2, 12), RH(4), F(2, 2), 0, 2, 0), "headnorm_backward");
    assert_refused(tune_rope(dev, F(4, 8), F(1, 4), NULL, 2, 2, 4, false), "rope");
    assert_refused(tune_rope(dev, F(4, 8), F(2, 4), NULL, 2, 3, 4, false), "rope");
    assert_refused(tune_rope(dev, F(4, 9), F(2, 3), NULL, 2, 3, 3, false), "rope");
    assert_refused(tune_rope(dev, F(4, 8), F(2, 6), NULL, 2, 2, 4, false), "rope");
    assert_refused(tune_rope(dev, F(4, 8), F(3, 4), NULL, 3, 2, 4, false), "rope");
    assert_refused(tune_rope(dev, F(4, 8), F(2, 4), NULL, 0, 2, 4, false), "rope");
    assert_refused(tune_rope(dev, F(4, 8), H(2, 4), NULL, 2, 2, 4, true), "rope");
#define HEADS(dtype_, T_, heads, D) \
    (&(struct tune_tensor){.data = memory, .dtype = dtype_, .ndim = 4, .shape = {1, T_, heads, D}})
#define Q2 HEADS(TUNE_F32, 2, 2, 4)
#define K2 HEADS(TUNE_F32, 2, 1, 4)
    struct tune_attention params = {0, 1};
#define FORWARD(out, lse, q, k, v, starts, kv_length, q_offset) \
    assert_refused(tune_attention_forward(dev, out, lse, q, k, v, starts, kv_length, q_offset, params), "attention_forward")
    FORWARD(F(2, 8), F(2, 2), HEADS(TUNE_F32, 2, 2, 3), K2, K2, NULL, NULL, NULL);
    FORWARD(F(2, 8), F(2, 1), Q2, K2, K2, NULL, NULL, NULL);
    FORWARD(F(2, 8), H(2, 2), Q2, K2, K2, NULL, NULL, NULL);
    FORWARD(H(2, 8), F(2, 2), Q2, K2, K2, NULL, NULL, NULL);
    FORWARD(F(2, 8), F(2, 2), Q2, HEADS(TUNE_BF16, 2, 1, 4), HEADS(TUNE_BF16, 2, 1, 4), NULL, NULL, NULL);
    FORWARD(F(2, 12), F(2, 3), HEADS(TUNE_F32, 2, 3, 4), HEADS(TUNE_F32, 2, 2, 4), HEADS(TUNE_F32, 2, 2, 4), NULL, NULL, NULL);
    FORWARD(F(2, 8), F(2, 2), Q2, K2, HEADS(TUNE_F32, 3, 1, 4), NULL, NULL, NULL);
    FORWARD(F(2, 8), F(2, 2), Q2, HEADS(TUNE_F32, 1, 1, 4), HEADS(TUNE_F32, 1, 1, 4), NULL, NULL, NULL); /* fewer keys than queries */
    FORWARD(F(2, 8), F(2, 2), Q2, K2, K2, N(3), NULL, NULL);
    FORWARD(F(2, 8), F(2, 2), Q2, K2, K2, NULL, N(2), NULL);
    FORWARD(F(2, 8), F(2, 2), Q2, K2, K2, NULL, NULL, N(2));
    FORWARD(F(2, 8), F(2, 2), F(2, 8), K2, K2, NULL, NULL, NULL);
    struct tune_tensor near = *Q2;
    near.stride = 7; /* of rows that are 8 wide */
    FORWARD(F(2, 8), F(2, 2), &near, K2, K2, NULL, NULL, NULL);
#define BACKWARD(dq, dk, dv, dout, q, k, v) \
    assert_refused(tune_attention_backward(dev, dq, dk, dv, dout, q, k, v, F(2, 8), F(2, 2), NULL, params), "attention_backward")
    BACKWARD(HEADS(TUNE_F32, 2, 1, 4), K2, K2, F(2, 8), Q2, K2, K2);
    BACKWARD(Q2, Q2, K2, F(2, 8), Q2, K2, K2);
    BACKWARD(HEADS(TUNE_BF16, 2, 2, 4), K2, K2, F(2, 8), Q2, K2, K2);
    BACKWARD(Q2, K2, K2, H(2, 8), Q2, K2, K2);
    BACKWARD(Q2, K2, K2, F(2, 7), Q2, K2, K2);
    BACKWARD(Q2, HEADS(TUNE_F32, 3, 1, 4), HEADS(TUNE_F32, 3, 1, 4), F(2, 8), Q2, HEADS(TUNE_F32, 3, 1, 4), HEADS(TUNE_F32, 3, 1, 4));
    assert_refused(tune_glu_forward(dev, F(2, 3), F(2, 5), TUNE_GATE_SILU), "glu_forward");
    assert_refused(tune_glu_forward(dev, F(2, 3), H(2, 6), TUNE_GATE_SILU), "glu_forward");
    assert_refused(tune_glu_backward(dev, F(2, 6), F(2, 2), F(2, 6), TUNE_GATE_SILU), "glu_backward");
    assert_refused(tune_glu_backward(dev, H(2, 6), F(2, 3), F(2, 6), TUNE_GATE_SILU), "glu_backward");
    assert_refused(tune_gather(dev, F(2, 3), F(5, 4), N(2)), "gather");
    assert_refused(tune_gather(dev, F(2, 3), I(5, 3), N(2)), "gather");
    assert_refused(tune_scatter(dev, F(5, 3), F(2, 4), N(2)), "scatter");
    assert_refused(tune_scatter(dev, R(6), F(2, 3), N(2)), "scatter");
    /* rows that lie apart: few operations take them, and never closer than they are long */
    struct tune_tensor close = tune_tensor_2d(memory, TUNE_F32, 2, 4);
    close.stride = 3;
    assert_refused(tune_gemm(dev, F(2, 3), &close, false, F(4, 3), false, 1, 0, TUNE_F32), "gemm");
    assert_error_has("[2, 4] stride 3");
    assert_refused(tune_linear_forward(dev, S(2, 3), F(2, 4), F(3, 4), R(3), 1, 0, TUNE_F32), "linear_forward");
    assert_refused(tune_linear_forward(dev, F(2, 3), F(2, 4), F(3, 4), SR(3), 1, 0, TUNE_F32), "linear_forward");
    assert_refused(tune_linear_backward(dev, NULL, NULL, R(3), S(2, 3), F(2, 4), F(3, 4), 1, 0, TUNE_F32), "linear_backward");
    assert_refused(tune_embed_forward(dev, S(2, 3), F(5, 3), N(2), 1), "embed_forward");
    assert_refused(tune_embed_forward(dev, F(2, 3), S(5, 3), N(2), 1), "embed_forward");
    assert_refused(tune_embed_backward(dev, S(5, 3), F(2, 3), N(2), 1), "embed_backward");
    assert_refused(tune_embed_backward(dev, F(5, 3), S(2, 3), N(2), 1), "embed_backward");
    assert_refused(tune_rmsnorm_forward(dev, S(2, 4), NULL, F(2, 4), R(4), 1, 0), "rmsnorm_forward");
    assert_refused(tune_rmsnorm_forward(dev, F(2, 4), NULL, S(2, 4), R(4), 1, 0), "rmsnorm_forward");
    assert_refused(tune_rmsnorm_backward(dev, F(2, 4), NULL, F(2, 4), S(2, 4), R(4), R(2), 0), "rmsnorm_backward");
    assert_refused(tune_headnorm_forward(dev, F(2, 12), F(2, 2), S(2, 12), R(4), 0, 2, 1, 0), "headnorm_forward");
    assert_refused(tune_headnorm_forward(dev, F(2, 12), F(2, 2), F(2, 12), SR(4), 0, 2, 1, 0), "headnorm_forward");
    assert_refused(tune_headnorm_backward(dev, F(2, 12), NULL, S(2, 12), R(4), F(2, 2), 0, 2, 0), "headnorm_backward");
    assert_refused(tune_rope(dev, S(4, 8), F(2, 4), NULL, 2, 2, 4, false), "rope");
    assert_refused(tune_rope(dev, F(4, 8), S(2, 4), NULL, 2, 2, 4, false), "rope");
    assert_refused(tune_glu_forward(dev, F(2, 3), S(2, 6), TUNE_GATE_SILU), "glu_forward");
    assert_refused(tune_glu_backward(dev, F(2, 6), S(2, 3), F(2, 6), TUNE_GATE_SILU), "glu_backward");
    assert_refused(tune_gather(dev, F(2, 4), &close, N(2)), "gather");
    assert_refused(tune_scatter(dev, &close, F(2, 4), N(2)), "scatter");
    /* NF4: one factor of a product at most, with scales for just its numbers, whole; nowhere else */
    struct tune_nf4_part numbers = {.memory = memory, .count = 12};
    struct tune_tensor q = tune_nf4_matrix(&numbers, 3, 4), other = tune_nf4_matrix(&numbers, 4, 3);
    assert_refused(tune_gemm(dev, F(4, 4), &q, true, &q, false, 1, 0, TUNE_F32), "gemm");
    assert_refused(tune_gemm(dev, &q, F(3, 2), false, F(2, 4), false, 1, 0, TUNE_F32), "gemm");
    assert_refused(tune_embed_forward(dev, F(2, 4), &q, N(2), 1), "embed_forward");
    assert_refused(tune_gather(dev, F(2, 4), &q, N(2)), "gather");
    numbers.count = 11;
    assert_refused(tune_linear_forward(dev, F(2, 3), F(2, 4), &q, NULL, 1, 0, TUNE_F32), "linear_forward");
    numbers.count = 12;
    other.stride = 4;
    assert_refused(tune_gemm(dev, F(2, 3), F(2, 4), false, &other, false, 1, 0, TUNE_F32), "gemm");
    q.nf4 = NULL;
    assert_refused(tune_linear_forward(dev, F(2, 3), F(2, 4), &q, NULL, 1, 0, TUNE_F32), "linear_forward");
    assert_refused(tune_cross_entropy_rows(dev, S(2, 3), sum, NULL, N(2), NULL, NULL, 0, false), "cross_entropy_rows");
    assert_refused(tune_cross_entropy_rows(dev, H(2, 3), sum, NULL, N(2), NULL, NULL, 0, false), "cross_entropy_rows");
    assert_refused(tune_cross_entropy_rows(dev, R(3), sum, NULL, N(2), NULL, NULL, 0, false), "cross_entropy_rows");
    assert_refused(tune_cross_entropy_rows(dev, F(2, 3), sum, NULL, N(3), NULL, NULL, 0, false), "cross_entropy_rows");
    assert_refused(tune_cross_entropy_rows(dev, F(2, 3), sum, NULL, N(2), NULL, NULL, 1, false), "cross_entropy_rows");
    assert_refused(tune_cross_entropy_rows(dev, F(2, 3), sum, NULL, N(2), R(5), NULL, 0, false), "cross_entropy_rows");
    assert_refused(tune_cross_entropy_rows(dev, F(2, 3), sum, NULL, N(2), R(5), N(1), 0, false), "cross_entropy_rows");
    assert_refused(tune_bias_forward(dev, F(2, 3), R(4), 1), "bias_forward");
    assert_refused(tune_bias_backward(dev, R(4), F(2, 3), 1), "bias_backward");
    assert_refused(tune_adamw(dev, R(3), R(3), R(4), R(3), sum, an_update), "adamw");
    assert_refused(tune_adamw(dev, RH(3), R(3), R(3), R(3), sum, an_update), "adamw"); /* weights in BF16: not yet */
    assert_refused(tune_sgd(dev, R(3), R(4), NULL, sum, an_update), "sgd");
    assert_refused(tune_muon_moment(dev, R(3), R(4), R(4), sum, an_update), "muon_moment");
    assert_refused(tune_muon_moment(dev, R(4), R(4), R(3), sum, an_update), "muon_moment");
    assert_refused(tune_unit(dev, F(2, 3), 1), "unit");
    assert_refused(tune_unit(dev, R(3), 0), "unit");
    assert_refused(tune_muon(dev, R(3), R(4), sum, 1, an_update), "muon");
    assert_refused(tune_average(dev, R(3), R(4), sum, 0.5), "average");
    assert_refused(tune_average(dev, RH(3), R(3), sum, 0.5), "average");
    assert_refused(tune_average(dev, R(3), R(3), sum, 1), "average");
    assert_refused(tune_average(dev, R(3), R(3), sum, -0.1), "average");
    assert_refused(tune_exchange(dev, R(3), R(4)), "exchange");
    assert_refused(tune_exchange(dev, R(3), RH(3)), "exchange");
    assert_refused(tune_copy(dev, F(2, 3), H(2, 3)), "copy");
    assert_refused(tune_zero(dev, S(2, 3)), "zero");
    assert_refused(tune_axpby(dev, F(2, 3), F(3, 2), 1, 1), "axpby");
    assert_refused(tune_axpby(dev, F(2, 3), R(6), 1, 1), "axpby");
    assert_refused(tune_axpby(dev, S(2, 3), F(2, 3), 1, 1), "axpby");
    assert_refused(tune_gemm(dev, F(2, 3), F(2, 4), false, F(4, 3), false, 1, 0, TUNE_F16), "gemm");
    refused_adapters(dev, memory, sum);
    struct tune_tensor apart = *Q2, overlapping = *K2; /* rows of two b's that overlap, of queries and of keys */
    apart.outer = 15, overlapping.outer = 7;
    FORWARD(F(2, 8), F(2, 2), &apart, K2, K2, NULL, NULL, NULL);
    FORWARD(F(2, 8), F(2, 2), Q2, &overlapping, &overlapping, NULL, NULL, NULL);
    FORWARD(F(2, 8), F(2, 2), Q2, K2, K2, NULL, T(TUNE_F32, 1, 1), NULL);
    get_bytes(dev, left, memory, BYTES);
    assert_memory_equal(left, nothing, BYTES); /* a refused call does nothing */
    tune_device_free(dev, memory, BYTES);
    tune_device_free(dev, numbers_at, BYTES);
    tune_device_free(dev, sum, BYTES);
}

/* ---- looking at tensors ---- */

/* The numbers of t are those of a at these places: of the first dimension's i, the second's j, ... */
static void assert_host(struct tune_device *dev, const struct tune_tensor *t, const struct array *a, const int64_t apart[4], int64_t at)
{
    int64_t n = tune_tensor_elements(t), shape[4] = {1, 1, 1, 1};
    float *got = malloc((size_t)n * sizeof *got + GUARD);
    memset(got + n, 0x5a, GUARD);
    assert_ok(tune_to_host(dev, t, got));
    for (int i = 0; i < t->ndim; i++)
        shape[4 - t->ndim + i] = t->shape[i];
    for (int64_t i = 0; i < n; i++) {
        int64_t d = i % shape[3], c = i / shape[3] % shape[2], b = i / shape[3] / shape[2] % shape[1], x = i / shape[3] / shape[2] / shape[1];
        double want = a->v[at + x * apart[0] + b * apart[1] + c * apart[2] + d * apart[3]];
        if ((double)got[i] != want)
            fail_msg("%s, %d dimensions, number %d: %g, expected %g", tune_dtype_name(t->dtype), t->ndim, (int)i, (double)got[i], want);
    }
    for (int i = 0; i < GUARD; i++)
        assert_int_equal(((unsigned char *)(got + n))[i], 0x5a);
    free(got);
}

/* Vectors, matrices, their columns, and heads of rows that lie apart, in F32 and BF16. */
static void views(void **state)
{
    (void)state;
    enum { B = 2, T = 5, W = 23, H = 3, D = 4 };
    for (int d = 0; d < DEVICES; d += DEVICES - 1)
        for (int k = 0; k < 2; k++) {
            struct tune_device *dev = devices[d];
            struct array a = array_random(dtypes[k], B * T, W, 1, 60), v = array_random(dtypes[k], 0, 17, 1, 61);
            put(dev, &a), put(dev, &v);
            struct tune_tensor part = tune_tensor_part(&v.t, 3, 9), columns = tune_tensor_columns(&a.t, 6, 11);
            struct tune_tensor again = tune_tensor_columns(&columns, 2, 5), heads = tune_tensor_heads(&a.t, B, 7, H, D);
            struct tune_tensor inner = tune_tensor_heads(&columns, B, 1, 2, 5), some = heads;
            some.shape[1] = T - 2; /* the first positions of each b */
            struct tune_tensor tight = {.data = a.t.data, .dtype = dtypes[k], .ndim = 4, .shape = {B, T, 1, W}};
            struct tune_tensor scalar = {.data = v.t.data, .dtype = dtypes[k]};
            assert_int_equal(tune_tensor_stride(&again), W);
            assert_true(heads.shape[0] == B && heads.shape[1] == T && heads.shape[2] == H && heads.shape[3] == D);
            assert_host(dev, &v.t, &v, (int64_t[]){0, 0, 0, 1}, 0);
            assert_host(dev, &part, &v, (int64_t[]){0, 0, 0, 1}, 3);
            assert_host(dev, &scalar, &v, (int64_t[]){0, 0, 0, 1}, 0);
            assert_host(dev, &a.t, &a, (int64_t[]){0, 0, W, 1}, 0);
            assert_host(dev, &columns, &a, (int64_t[]){0, 0, W, 1}, 6);
            assert_host(dev, &again, &a, (int64_t[]){0, 0, W, 1}, 8);
            assert_host(dev, &heads, &a, (int64_t[]){T * W, W, D, 1}, 7);
            assert_host(dev, &inner, &a, (int64_t[]){T * W, W, 5, 1}, 7);
            assert_host(dev, &some, &a, (int64_t[]){T * W, W, D, 1}, 7);
            assert_host(dev, &tight, &a, (int64_t[]){T * W, W, W, 1}, 0);
            drop(&a), drop(&v);
        }
}

/* NF4 of two parts; what is no number of activations or weights is not looked at. */
static void views_nf4(void **state)
{
    (void)state;
    struct tune_device *dev = devices[1];
    struct array f = array_random(TUNE_F32, 70, 30, 1, 62);
    struct tune_nf4_part part[2];
    for (int i = 1; i >= 0; i--) { /* rows 0 to 39, then the rest */
        int64_t at = i * 40 * 30, n = i ? 30 * 30 : 40 * 30;
        char *memory = aligned_alloc(64, (size_t)tune_nf4_bytes(n));
        struct tune_nf4_writer writer;
        struct tune_nf4 q;
        assert_ok(tune_nf4_begin(&writer, "a test's weight", memory, n));
        assert_ok(tune_nf4_write(&writer, (float *)(void *)f.raw + at, n));
        assert_ok(tune_nf4_finish(&writer, &q));
        tune_nf4_read(&q, 0, n, (float *)(void *)f.raw + at);
        part[i] = put_nf4(dev, &q, memory, i ? NULL : &part[1]);
        free(memory);
    }
    assert_ok(tune_convert(f.v, TUNE_F64, f.raw, TUNE_F32, f.n));
    struct tune_tensor t = tune_nf4_matrix(part, 70, 30);
    assert_host(dev, &t, &f, (int64_t[]){0, 0, 30, 1}, 0);
    struct tune_tensor index = put_index(dev, (int32_t[]){1, 2, 3}, 3);
    float none[3];
    assert_int_equal(tune_to_host(dev, &index, none), -1);
    assert_error_has("only F32, BF16 and NF4");
    drop_tensor(dev, &index);
    for (int i = 0; i < 2; i++)
        tune_device_free(dev, part[i].memory, tune_nf4_bytes(part[i].count));
    drop(&f);
}

static void device_memory(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    assert_got(dev);
    int64_t before = dev->bytes;
    tune_address p = tune_device_alloc(dev, 1001, "a test");
    char bytes[1001];
    assert_true(p.at != 0);
    assert_int_equal(p.at % 64, 0);
    get_bytes(dev, bytes, p, sizeof bytes);
    for (int i = 0; i < 1001; i++)
        assert_int_equal(bytes[i], 0);
    assert_int_equal(dev->bytes, before + 1001);
    tune_device_free(dev, p, 1001);
    tune_device_free(dev, (tune_address){0}, 5);
    assert_int_equal(dev->bytes, before);
    assert_true(dev->bytes_peak >= before + 1001);
    assert_int_equal(tune_device_alloc(dev, (int64_t)1 << 60, "the moon").at, 0);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    assert_error_has("the moon");
    tune_device_close(dev);
    tune_device_close(NULL);
    assert_null(tune_device_open("abacus", 1));
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has("abacus");
}

/* Queued operations run in order. An upload has read its source when it returns. A free waits for the
 * operations queued before it; memory allocated after it does not disturb them. */
static void device_order(void **state)
{
    (void)state;
    enum { N = 3000 };
    struct tune_device *dev = test_device(2);
    assert_got(dev);
    float source[N], got[2][N];
    struct tune_tensor y[2];
    for (int i = 0; i < 2; i++) {
        tune_address from = tune_device_alloc(dev, sizeof source, "x");
        struct tune_tensor x = tune_tensor_1d(from, TUNE_F32, N);
        y[i] = tune_tensor_1d(tune_device_alloc(dev, sizeof source, "y"), TUNE_F32, N);
        for (int k = 0; k < N; k++)
            source[k] = (float)(k + 10000 * i);
        assert_ok(tune_device_upload(dev, x.data, source, sizeof source));
        memset(source, 0x5a, sizeof source);
        assert_ok(tune_copy(dev, &y[i], &x));
        tune_device_free(dev, x.data, sizeof source);
    }
    for (int i = 0; i < 2; i++)
        assert_ok(tune_device_download(dev, got[i], y[i].data, sizeof source));
    for (int i = 0; i < 2; i++)
        tune_device_free(dev, y[i].data, sizeof source);
    assert_ok(tune_device_sync(dev));
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < N; k++)
            assert_true(got[i][k] == (float)(k + 10000 * i));
    tune_device_close(dev);
}

int main(int argc, char **argv)
{
    (void)argc;
    sleep_while_waiting(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(naive_backward), cmocka_unit_test(gemm),          cmocka_unit_test(gemm_columns),
        cmocka_unit_test(gemm_nf4),       cmocka_unit_test(gemm_rounded),  cmocka_unit_test(attention_cached),
        cmocka_unit_test(views),          cmocka_unit_test(views_nf4),
        cmocka_unit_test(linear),         cmocka_unit_test(gemm_add),
        cmocka_unit_test(embed),          cmocka_unit_test(gather_scatter), cmocka_unit_test(gather_scatter_columns), cmocka_unit_test(rmsnorm),
        cmocka_unit_test(headnorm),       cmocka_unit_test(rope),          cmocka_unit_test(attention),
        cmocka_unit_test(attention_packed), cmocka_unit_test(attention_unseen),
        cmocka_unit_test(axpby),          cmocka_unit_test(glu),         cmocka_unit_test(cross_entropy), cmocka_unit_test(noise), cmocka_unit_test(cross_entropy_not_finite),
        cmocka_unit_test(cross_entropy_certain), cmocka_unit_test(glu_low),
        cmocka_unit_test(sum_squares),    cmocka_unit_test(finish_step),   cmocka_unit_test(updates),
        cmocka_unit_test(averages),
        cmocka_unit_test(refused),        cmocka_unit_test(device_memory),
        cmocka_unit_test(device_order),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
