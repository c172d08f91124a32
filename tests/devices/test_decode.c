/* test_decode.c - the kernels for one token at a time: products with few rows, and attention of a
 * few queries over a cache, against float64 loops (naive.h). Their bits do not depend on the other
 * rows, on padding, or on the number of threads. */
#include "arrays.h"
#include "naive.h"
#include "far/far.h"

#include "core/float16.h"
#include "core/nf4.h"
#include "devices/ops.h"

enum { DEVICES = 3, MOST = 17 }; /* rows: the first number that is packed again is the last */
static const int threads[DEVICES] = {1, 2, 3};
static struct tune_device *devices[DEVICES];
static const enum tune_dtype dtypes[2] = {TUNE_F32, TUNE_BF16};

static int open_devices(void **state)
{
    (void)state;
    setenv("TUNE_MATMUL", "own", 1);
    for (int i = 0; i < DEVICES; i++)
        if (!(devices[i] = test_device(threads[i])))
            return -1;
    return 0;
}

static int close_devices(void **state)
{
    (void)state;
    for (int i = 0; i < DEVICES; i++)
        tune_device_close(devices[i]);
    return 0;
}

/* ---- products ---- */

/* Sizes and types of c [M,N] = beta c + alpha a [M,K] b', and columns beside each matrix. */
struct product {
    int64_t M, N, K, beside;
    enum tune_dtype c, a, b, operands;
    float alpha, beta;
};

static struct tune_tensor some_columns(const struct array *a, int64_t beside)
{
    return tune_tensor_columns(&a->t, beside / 2, a->t.shape[1] - beside);
}

/* Number (i,k) of the columns that are used, rounded as operands are. */
static double number(const struct array *a, const struct product *p, int64_t i, int64_t k)
{
    double v = a->v[i * a->t.shape[1] + p->beside / 2 + k];
    return p->operands == TUNE_F32 ? v : tune_bf16_to_float(tune_float_to_bf16((float)v));
}

static double *expected(const struct product *p, const struct array *a, const struct array *b,
                        const struct array *c)
{
    double *want = malloc((size_t)c->n * sizeof *want);
    memcpy(want, c->v, (size_t)c->n * sizeof *want);
    for (int64_t m = 0; m < p->M; m++)
        for (int64_t n = 0; n < p->N; n++) {
            double *to = want + m * (p->N + p->beside) + p->beside / 2 + n, sum = 0;
            for (int64_t k = 0; k < p->K; k++)
                sum += number(a, p, m, k) * number(b, p, n, k);
            *to = p->alpha * sum + (p->beta == 0 ? 0 : p->beta * *to);
        }
    return want;
}

static void product_case(struct worst *w, const struct product *p)
{
    struct array a = array_random(p->a, p->M, p->K + p->beside, 1, 1);
    struct array b = array_random(p->b, p->N, p->K + p->beside, 1, 2);
    struct array c = p->beta == 0 && p->beside == 0 ? array_nan(p->c, p->M, p->N)
                                                    : array_random(p->c, p->M, p->N + p->beside, 1, 3);
    double *want = expected(p, &a, &b, &c);
    char *first = NULL;
    for (int d = 0; d < DEVICES; d++) {
        put(devices[d], &a), put(devices[d], &b), put(devices[d], &c);
        struct tune_tensor ta = some_columns(&a, p->beside), tb = some_columns(&b, p->beside);
        struct tune_tensor tc = some_columns(&c, p->beside);
        assert_ok(tune_gemm(devices[d], &tc, &ta, false, &tb, true, p->alpha, p->beta, p->operands));
        worst(w, p->c, error(&c, want));
        char *bits = get(&c);
        if (first)
            assert_memory_equal(bits, first, c.bytes); /* the threads do not matter */
        free(first);
        first = bits;
    }
    free(first), free(want);
    drop(&a), drop(&b), drop(&c);
}

static void products(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{1, 64},   {2, 65},   {7, 96},    {8, 77},   {23, 257}, {24, 576},
                                       {25, 130}, {49, 700}, {131, 300}, {16, 576}, {960, 576},
                                       {97, 1536}, {33, 5200}, {301, 63}, {20, 16}, {2000, 64}};
    static const enum tune_dtype types[][4] = {
        {TUNE_F32, TUNE_F32, TUNE_F32, TUNE_F32},     {TUNE_BF16, TUNE_BF16, TUNE_BF16, TUNE_BF16},
        {TUNE_F32, TUNE_BF16, TUNE_F32, TUNE_BF16},   {TUNE_F32, TUNE_F32, TUNE_BF16, TUNE_F32},
        {TUNE_BF16, TUNE_F32, TUNE_F32, TUNE_BF16},   {TUNE_F32, TUNE_BF16, TUNE_BF16, TUNE_F32},
        {TUNE_F32, TUNE_F32, TUNE_F32, TUNE_BF16}};
    struct worst w = {0};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int64_t M = 1; M <= MOST; M += s < 8 ? 1 : 5)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
                struct product p = {M, sizes[s][0], sizes[s][1], t % 2 ? 0 : 7, types[t][0],
                                    types[t][1], types[t][2], types[t][3], 1, 0};
                product_case(&w, &p);
                p.alpha = -0.5f, p.beta = 0.25f, p.beside = 7 - p.beside;
                product_case(&w, &p);
            }
    assert_worst("products with few rows", &w, 24, 2); /* 9.2, 0.65 */
}

/* A weight in memory: its kind, and a tensor of it on a device. */
struct weight {
    struct array f; /* F32 or BF16; for NF4 the numbers that its codes stand for */
    struct tune_nf4 q[2];
    struct tune_nf4_part parts[2];
    char *memory[2];
};

/* Two parts, each quantised by itself. */
static struct weight quantised(int64_t rows, int64_t K)
{
    struct weight w = {.f = array_random(TUNE_F32, rows, K, 1, 5)};
    for (int64_t p = 0, at = 0; p < 2; p++) {
        int64_t n = (p == 0 ? rows / 3 : rows - rows / 3) * K;
        float *numbers = (float *)(void *)w.f.raw + at;
        struct tune_nf4_writer writer;
        w.memory[p] = aligned_alloc(64, (size_t)tune_nf4_bytes(n));
        assert_ok(tune_nf4_begin(&writer, "a test's weight", w.memory[p], n));
        assert_ok(tune_nf4_write(&writer, numbers, n));
        assert_ok(tune_nf4_finish(&writer, &w.q[p]));
        assert_ok(tune_nf4_read(&w.q[p], 0, n, numbers));
        at += n;
    }
    return w;
}

/* a b' for M rows of a from m on; malloc'd bits. */
static char *rows_of_product(struct tune_device *dev, const struct tune_tensor *a, int64_t m, int64_t M,
                             const struct tune_tensor *b, enum tune_dtype operands)
{
    struct array y = array_nan(TUNE_F32, M, b->shape[0]);
    struct tune_tensor some = *a;
    some.shape[0] = M;
    some.data = tune_address_plus(a->data, m * a->shape[1] * tune_dtype_bits(a->dtype) / 8);
    put(dev, &y);
    assert_ok(tune_gemm(dev, &y.t, &some, false, b, true, 1, 0, operands));
    char *bits = get(&y);
    drop(&y);
    return bits;
}

/* Each row by itself, two, five, eight, and all sixteen: the same bits. NF4: those of its numbers. */
static void same_bits(struct tune_device *dev, const struct tune_tensor *b, const char *first,
                      struct array *a, enum tune_dtype operands, char **all)
{
    static const int64_t together[] = {1, 2, 3, 5, 8};
    int64_t row = b->shape[0] * 4;
    put(dev, a);
    *all = rows_of_product(dev, &a->t, 0, 16, b, operands);
    if (first)
        assert_memory_equal(*all, first, 16 * row);
    for (size_t i = 0; i < sizeof together / sizeof *together; i++)
        for (int64_t m = 0; m + together[i] <= 16; m += together[i]) {
            char *some = rows_of_product(dev, &a->t, m, together[i], b, operands);
            assert_memory_equal(some, *all + m * row, together[i] * row);
            free(some);
        }
}

static void bits_of_a_row(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{31, 64}, {50, 577}, {97, 1536}, {26, 2500}};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
        for (int d = 0; d < DEVICES; d++)
            for (int o = 0; o < 2; o++) {
                int64_t N = sizes[s][0], K = sizes[s][1];
                struct weight w = quantised(N, K);
                struct array a = array_random(dtypes[o], 16, K, 1, 6), h = array_random(TUNE_BF16, N, K, 1, 7);
                char *f32, *nf4, *bf16;
                put(devices[d], &w.f), put(devices[d], &h);
                for (int p = 0; p < 2; p++)
                    w.parts[p] = (struct tune_nf4_part){
                        put_bytes(devices[d], w.memory[p], tune_nf4_bytes(w.q[p].count)), w.q[p].offset,
                        w.q[p].count, p == 0 ? &w.parts[1] : NULL};
                struct tune_tensor q = tune_nf4_matrix(w.parts, N, K);
                same_bits(devices[d], &w.f.t, NULL, &a, dtypes[o], &f32);
                same_bits(devices[d], &q, f32, &a, dtypes[o], &nf4);
                same_bits(devices[d], &h.t, NULL, &a, dtypes[o], &bf16);
                for (int p = 0; p < 2; p++) {
                    tune_device_free(devices[d], w.parts[p].memory, tune_nf4_bytes(w.q[p].count));
                    free(w.memory[p]);
                }
                free(f32), free(nf4), free(bf16);
                drop(&a), drop(&h), drop(&w.f);
            }
}

static void no_rows(void **state)
{
    (void)state;
    struct array y = array_nan(TUNE_F32, 4, 70), x = array_random(TUNE_F32, 4, 70, 1, 1);
    for (int d = 0; d < DEVICES; d++)
        for (int side = 0; side < 2; side++) {
            put(devices[d], &y), put(devices[d], &x);
            struct tune_tensor none = x.t, c = y.t;
            none.shape[0] = 0;
            c.shape[side] = 0, c.shape[1 - side] = 4;
            assert_ok(tune_gemm(devices[d], &c, side ? &x.t : &none, false, side ? &none : &x.t, true, 1,
                                0, TUNE_F32));
            assert_true(unchanged(&y));
        }
    drop(&y), drop(&x);
}

/* ---- attention ---- */

/* Keys and values side by side in wider rows, NaN behind keys[b]; queries in wider rows, too. */
struct problem {
    struct array q, cache, out, lse;
    double *vq, *vk, *vv, *wout, *wlse;
};
enum { BESIDE = 3, BETWEEN = 2 };

static double *zeros(int64_t n)
{
    return calloc((size_t)n + 1, sizeof(double));
}

static struct problem problem(enum tune_dtype type, const struct naive_cache *s)
{
    int64_t N = (int64_t)s->B * s->Tq, HD = (int64_t)s->H * s->D, KD = (int64_t)s->K * s->D;
    int64_t wide = 2 * KD + BESIDE, rows = s->capacity + BETWEEN, n = s->B * s->capacity * KD;
    struct array random = array_random(type, s->B * rows, wide, 1, 31);
    for (int64_t i = 0; i < random.n; i++)
        if (i / wide % rows >= (s->kv_length ? s->kv_length[i / wide / rows] : s->capacity))
            random.v[i] = NAN;
    struct problem p = {array_random(type, N, HD + BESIDE, 1, 30), array_from(type, s->B * rows, wide, random.v),
                        array_nan(type, N, HD), array_nan(TUNE_F32, N, s->H),
                        zeros(N * HD), zeros(n), zeros(n), zeros(N * HD), zeros(N * s->H)};
    for (int64_t i = 0; i < N * HD; i++)
        p.vq[i] = p.q.v[i / HD * (HD + BESIDE) + 1 + i % HD];
    for (int64_t i = 0; i < n; i++) {
        const double *from = p.cache.v + (i / KD / s->capacity * rows + i / KD % s->capacity) * wide + 1 + i % KD;
        p.vk[i] = from[0], p.vv[i] = from[KD];
    }
    drop(&random);
    return p;
}

static void drop_problem(struct problem *p)
{
    drop(&p->q), drop(&p->cache), drop(&p->out), drop(&p->lse);
    free(p->vq), free(p->vk), free(p->vv), free(p->wout), free(p->wlse);
}

/* Keys (which 0) or values (1) from position `from` on. */
static struct tune_tensor part_of_cache(const struct problem *p, const struct naive_cache *s, int which, int64_t from)
{
    int64_t KD = (int64_t)s->K * s->D;
    struct tune_tensor all = tune_tensor_columns(&p->cache.t, 1 + which * KD, KD);
    struct tune_tensor t = tune_tensor_heads(&all, 1, 0, s->K, s->D);
    t.shape[0] = s->B;
    t.shape[1] = s->capacity - from;
    t.outer = (s->capacity + BETWEEN) * t.stride;
    t.data = tune_address_plus(t.data, from * t.stride * tune_dtype_bits(t.dtype) / 8);
    return t;
}

static void attend(struct tune_device *dev, struct problem *p, const struct naive_cache *s, int64_t from)
{
    int64_t N = (int64_t)s->B * s->Tq;
    put(dev, &p->q), put(dev, &p->cache), put(dev, &p->out), put(dev, &p->lse);
    struct tune_tensor starts = put_index(dev, s->starts, s->starts ? N : 0);
    struct tune_tensor kv_length = put_index(dev, s->kv_length, s->kv_length ? s->B : 0);
    struct tune_tensor q_offset = put_index(dev, s->q_offset, s->q_offset ? s->B : 0);
    struct tune_tensor q = tune_tensor_heads(&p->q.t, s->B, 1, s->H, s->D);
    struct tune_tensor k = part_of_cache(p, s, 0, from), v = part_of_cache(p, s, 1, from);
    assert_ok(tune_attention_forward(dev, &p->out.t, &p->lse.t, &q, &k, &v, s->starts ? &starts : NULL,
                                     s->kv_length ? &kv_length : NULL, s->q_offset ? &q_offset : NULL,
                                     (struct tune_attention){s->window, s->scale}));
    drop_tensor(dev, &starts), drop_tensor(dev, &kv_length), drop_tensor(dev, &q_offset);
}

static void attention(void **state)
{
    (void)state;
    static const int32_t keys[] = {1, 700, 97}, begin[] = {0, 699, 96}, later[] = {0, 690, 80}, pad[] = {0, 13, 50};
    static int32_t first[3 * 16];
    for (int i = 0; i < 3 * 16; i++) /* some queries of a row see less than the one before */
        first[i] = pad[i / 16] + (i / 16 > 0 && i % 16 > 6 ? 3 : 0);
    const struct naive_cache cases[] = {
        {3, 1, 700, 9, 3, 64, 0, .125f, NULL, keys, begin},   {3, 1, 700, 4, 4, 16, 0, .25f, NULL, keys, begin},
        {3, 1, 700, 8, 1, 20, 0, .2f, NULL, keys, begin},     {3, 1, 700, 4, 2, 80, 50, .1f, NULL, keys, begin},
        {3, 1, 700, 5, 1, 128, 1, .1f, NULL, keys, begin},    {3, 1, 700, 6, 2, 17, 300, .2f, NULL, keys, begin},
        {3, 10, 700, 6, 3, 64, 0, .125f, NULL, keys, later},  {3, 16, 130, 7, 1, 20, 9, .2f, NULL, NULL, pad},
        {3, 16, 700, 3, 1, 64, 0, .125f, first, keys, later}, {3, 16, 130, 4, 2, 10, 33, .3f, first, NULL, pad},
        {1, 2, 2100, 2, 1, 16, 0, .25f, NULL, NULL, (const int32_t[]){2098}},
        {2, 1, 48, 2, 2, 64, 0, .125f, NULL, NULL, (const int32_t[]){47, 46}},
        {2, 1, 49, 2, 2, 64, 0, .125f, NULL, NULL, (const int32_t[]){48, 24}},
        {1, 17, 700, 2, 1, 16, 0, .25f, NULL, NULL, (const int32_t[]){600}},
    };
    struct worst w = {0};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int t = 0; t < 2; t++) {
            struct problem p = problem(dtypes[t], &cases[i]);
            char *bits = NULL, *again;
            naive_cached(p.wout, p.wlse, p.vq, p.vk, p.vv, &cases[i]);
            for (int d = 0; d < DEVICES; d++) {
                attend(devices[d], &p, &cases[i], 0);
                worst(&w, dtypes[t], error(&p.out, p.wout));
                worst(&w, TUNE_F32, error(&p.lse, p.wlse));
                again = get(&p.out);
                if (bits)
                    assert_memory_equal(again, bits, p.out.bytes);
                free(bits);
                bits = again;
            }
            free(bits);
            drop_problem(&p);
        }
    assert_worst("attention of few queries", &w, 24, 2); /* 9.9 (700 keys), 0.6 */
}

/* Scores so far apart that most keys count for nothing, the largest in the last of many blocks; or
 * all of them far below zero. */
static void attention_far_apart(void **state)
{
    (void)state;
    const struct naive_cache s = {1, 1, 1000, 2, 1, 16, 0, 1, NULL, NULL, (const int32_t[]){999}};
    struct worst w = {0};
    for (int way = 0; way < 4; way++) {
        int t = way % 2;
        struct problem p = problem(dtypes[t], &s);
        int64_t wide = p.cache.t.shape[1];
        for (int64_t i = 0; i < s.capacity; i++)
            for (int64_t d = 0; d < s.D; d++) {
                double size = (double)(way < 2 ? i / 100 * 8 : -20 - i / 100);
                p.cache.v[i * wide + 1 + d] = p.vk[i * s.D + d] = size * (p.vq[d] > 0 ? 1 : -1);
            }
        assert_ok(tune_convert(p.cache.raw, dtypes[t], p.cache.v, TUNE_F64, p.cache.n));
        naive_cached(p.wout, p.wlse, p.vq, p.vk, p.vv, &s);
        for (int d = 0; d < DEVICES; d++) {
            attend(devices[d], &p, &s, 0);
            worst(&w, dtypes[t], error(&p.out, p.wout));
        }
        drop_problem(&p);
    }
    assert_worst("scores far apart", &w, 12, 2); /* 1.9, 0.4 */
}

/* A row behind padding, beside others, or without either, and queries together or one by one: the
 * same bits. */
static void bits_of_a_query(void **state)
{
    (void)state;
    enum { PAD = 5, LENGTH = 400, QUERIES = 3 };
    static const int32_t pad[] = {0, 0, 0, PAD, PAD, PAD}, kv_length[] = {300, PAD + LENGTH};
    static const int32_t q_offset[] = {297, PAD + LENGTH - QUERIES}, alone[] = {LENGTH}, at[] = {LENGTH - QUERIES};
    const struct naive_cache both = {2, QUERIES, PAD + LENGTH, 6, 2, 24, 0, .2f, pad, kv_length, q_offset};
    for (int t = 0; t < 2; t++) {
        struct problem p = problem(dtypes[t], &both);
        int64_t row = 6 * 24 * tune_dtype_bits(dtypes[t]) / 8;
        for (int d = 0; d < DEVICES; d++) {
            struct naive_cache one = both;
            struct tune_tensor q, k, v, n, b;
            attend(devices[d], &p, &both, 0);
            char *want = get(&p.out);
            one.B = 1, one.Tq = 1;
            for (int j = 0; j < QUERIES; j++) {
                int32_t position = at[0] + j;
                put(devices[d], &p.out), put(devices[d], &p.lse);
                n = put_index(devices[d], alone, 1), b = put_index(devices[d], &position, 1);
                struct tune_tensor all = tune_tensor_columns(&p.q.t, 1, 6 * 24);
                q = tune_tensor_heads(&all, 1, 0, 6, 24);
                q.shape[1] = 1;
                q.data = tune_address_plus(q.data, (QUERIES + j) * q.stride * tune_dtype_bits(dtypes[t]) / 8);
                k = part_of_cache(&p, &one, 0, PAD), v = part_of_cache(&p, &one, 1, PAD);
                k.data = tune_address_plus(k.data, k.outer * tune_dtype_bits(dtypes[t]) / 8);
                v.data = tune_address_plus(v.data, v.outer * tune_dtype_bits(dtypes[t]) / 8);
                struct tune_tensor out = tune_tensor_2d(p.out.t.data, dtypes[t], 1, 6 * 24);
                struct tune_tensor lse = tune_tensor_2d(p.lse.t.data, TUNE_F32, 1, 6);
                assert_ok(tune_attention_forward(devices[d], &out, &lse, &q, &k, &v, NULL, &n, &b,
                                                 (struct tune_attention){0, .2f}));
                char *got = get(&p.out);
                assert_memory_equal(got, want + (QUERIES + j) * row, row);
                free(got);
                drop_tensor(devices[d], &n), drop_tensor(devices[d], &b);
            }
            free(want);
        }
        drop_problem(&p);
    }
}

/* Operations of the announced sizes take no more memory than reserve took. */
static void reserved(void **state)
{
    (void)state;
    const struct naive_cache s = {3, 1, 700, 9, 3, 64, 0, .125f, NULL, NULL, (const int32_t[]){699, 300, 20}};
    for (int matmul = 0; matmul < 2; matmul++) {
        setenv("TUNE_MATMUL", matmul ? "openblas" : "own", 1);
        struct tune_device *dev = test_device(2);
        struct tune_max_sizes most = {.B = 3, .T = 700, .H = 9, .K = 3, .D = 64, .width = 1536, .depth = 1536};
        struct problem p = problem(TUNE_F32, &s);
        assert_ok(tune_device_reserve(dev, &most));
        assert_ok(tune_device_sync(dev));
        put(dev, &p.q), put(dev, &p.cache), put(dev, &p.out), put(dev, &p.lse);
        struct tune_tensor q_offset = put_index(dev, s.q_offset, 3), q = tune_tensor_heads(&p.q.t, 3, 1, 9, 64);
        struct tune_tensor k = part_of_cache(&p, &s, 0, 0), v = part_of_cache(&p, &s, 1, 0);
        int64_t before = dev->bytes;
        assert_ok(tune_attention_forward(dev, &p.out.t, &p.lse.t, &q, &k, &v, NULL, NULL, &q_offset,
                                         (struct tune_attention){0, .125f}));
        assert_ok(tune_device_sync(dev));
        assert_int_equal(dev->bytes, before);
        drop_tensor(dev, &q_offset);
        drop_problem(&p);
        tune_device_close(dev);
    }
    setenv("TUNE_MATMUL", "own", 1);
}

int main(int argc, char **argv)
{
    (void)argc;
    sleep_while_waiting(argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products),        cmocka_unit_test(bits_of_a_row), cmocka_unit_test(no_rows),
        cmocka_unit_test(attention),       cmocka_unit_test(attention_far_apart),
        cmocka_unit_test(bits_of_a_query), cmocka_unit_test(reserved),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
