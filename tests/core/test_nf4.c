/* test_nf4.c - NF4: codes, scales and values bit for bit the published ones (tests/reference/nf4.h), in whatever pieces the numbers
 * come and are read; what is refused. */
#include "test.h"

#include "core/nf4.h"
#include "core/nf4_levels.h"
#include "core/random.h"
#include "reference/nf4.h"

enum { CASES = sizeof expected / sizeof *expected };

static uint64_t fnv(const void *bytes, int64_t n)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int64_t i = 0; i < n; i++)
        h = (h ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    return h;
}

/* The same as in tests/reference/make_nf4.py. */
static float *numbers(int count, int exponent, int kind)
{
    float *x = calloc((size_t)count, sizeof *x);
    uint64_t s = 1;
    for (int i = 0; i < count; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        int e = exponent + (kind == 1 ? i / 64 * 7 % 23 - 11 : 0);
        if (kind != 2 || i == count / 2)
            x[i] = (float)ldexp((double)((int64_t)(s >> 40) - (1 << 23)), e - 23);
    }
    return x;
}

/* In pieces of 1 to most numbers. */
static struct tune_nf4 quantised(void *memory, const float *x, int64_t n, int64_t most)
{
    struct tune_nf4_writer w;
    struct tune_nf4 q;
    assert_ok(tune_nf4_begin(&w, "a tensor", memory, n));
    for (int64_t at = 0, piece = 0; at < n; at += piece) {
        piece = 1 + (int64_t)(tune_random_u64(5, 5, (uint64_t)at) % (uint64_t)most);
        piece = piece < n - at ? piece : n - at;
        assert_ok(tune_nf4_write(&w, x + at, piece));
    }
    assert_ok(tune_nf4_finish(&w, &q));
    return q;
}

static void *memory_for(int64_t n)
{
    assert_true(tune_nf4_bytes(n) % 64 == 0);
    void *memory = aligned_alloc(64, (size_t)tune_nf4_bytes(n) + 64);
    memset((char *)memory + tune_nf4_bytes(n), 0x5a, 64);
    return memory;
}

static void published(void **state)
{
    (void)state;
    for (int c = 0; c < CASES; c++) {
        int64_t n = expected[c].count, blocks = (n + 63) / 64;
        float *x = numbers(expected[c].count, expected[c].exponent, expected[c].kind), *y = calloc((size_t)n, sizeof *y);
        void *memory = memory_for(n);
        for (int pieces = 0; pieces < 4; pieces++) {
            struct tune_nf4 q = quantised(memory, x, n, (int64_t[]){1, 63, 200, n}[pieces]);
            tune_nf4_read(&q, 0, n, y);
            if (q.offset != expected[c].offset || y[0] != expected[c].first || y[n - 1] != expected[c].last)
                fail_msg("%s: offset %a, first %a, last %a", expected[c].name, q.offset, y[0], y[n - 1]);
            if (fnv(q.codes, (n + 1) / 2) != expected[c].codes)
                fail_msg("%s: codes differ", expected[c].name);
            if (fnv(q.absmax, blocks) != expected[c].absmax || fnv(q.absmax2, (blocks + 255) / 256 * 4) != expected[c].absmax2)
                fail_msg("%s: scales differ", expected[c].name);
            if (fnv(y, n * 4) != expected[c].values)
                fail_msg("%s: values differ", expected[c].name);
        }
        for (int i = 0; i < 64; i++)
            assert_int_equal(((char *)memory)[tune_nf4_bytes(n) + i], 0x5a);
        free(memory), free(x), free(y);
    }
}

/* A number halfway between two levels gets the lower one. The block's largest magnitude is 1, so numbers are not rounded. */
static void ties_of_numbers(void **state)
{
    (void)state;
    float x[64] = {1};
    void *memory = memory_for(64);
    for (int b = 0; b < 15; b++)
        x[1 + b] = (levels4[b] + levels4[b + 1]) / 2;
    struct tune_nf4 q = quantised(memory, x, 64, 64);
    for (int b = 0; b < 15; b++) {
        int code = (b + 1) % 2 ? q.codes[(b + 1) / 2] & 15 : q.codes[(b + 1) / 2] >> 4;
        assert_int_equal(code, b);
    }
    for (int b = 0; b < 15; b++) /* and the next number above gets the upper one */
        x[1 + b] = nextafterf(x[1 + b], 2);
    q = quantised(memory, x, 64, 64);
    for (int b = 0; b < 15; b++)
        assert_int_equal((b + 1) % 2 ? q.codes[(b + 1) / 2] & 15 : q.codes[(b + 1) / 2] >> 4, b + 1);
    free(memory);
}

/* The same for the blocks' magnitudes. Those of four blocks are 2, 0, 1 + t and 1 - t: their mean is 1, the largest difference
 * from it is 1, and t is halfway between two levels. */
static void ties_of_magnitudes(void **state)
{
    (void)state;
    void *memory = memory_for(256);
    int ties = 0;
    for (int m = 0; m < 255; m++) {
        float t = (level8(m) + level8(m + 1)) / 2, above = 1 + t, below = 1 - t, x[256] = {2};
        if ((double)above != 1 + (double)t || (double)below != 1 - (double)t)
            continue; /* float32 has no such magnitude */
        x[128] = above;
        x[192] = below;
        struct tune_nf4 q = quantised(memory, x, 256, 256);
        assert_true(q.offset == 1 && q.absmax2[0] == 1);
        assert_int_equal(q.absmax[2], m);
        ties++;
    }
    print_message("# %d ties of magnitudes\n", ties);
    assert_true(ties > 10);
    free(memory);
}

/* Any stretch of them, odd beginnings too; rows of a matrix of three parts. */
static void stretches(void **state)
{
    (void)state;
    enum { COLUMNS = 77, N = COLUMNS * 53 };
    static const int64_t rows[3] = {20, 1, 32};
    static float y[N], part[N + 1];
    float *x = numbers(N, 0, 1);
    struct tune_nf4 q[3];
    void *memory[3];
    int64_t at = 0;
    for (int p = 0; p < 3; at += rows[p++] * COLUMNS) {
        memory[p] = memory_for(rows[p] * COLUMNS);
        q[p] = quantised(memory[p], x + at, rows[p] * COLUMNS, 1000);
        tune_nf4_read(&q[p], 0, q[p].count, y + at);
    }
    q[0].below = &q[1];
    q[1].below = &q[2];
    struct tune_nf4_part parts[3];
    for (int p = 0; p < 3; p++)
        parts[p] = (struct tune_nf4_part){.count = q[p].count, .below = p < 2 ? &parts[p + 1] : NULL};
    struct tune_tensor t = tune_nf4_matrix(parts, 53, COLUMNS);
    assert_true(tune_nf4_is_matrix(&t));
    for (uint64_t i = 0; i < 3000; i++) {
        int64_t row = (int64_t)(tune_random_u64(1, 1, i) % 53), column = (int64_t)(tune_random_u64(1, 2, i) % COLUMNS);
        int64_t n = (int64_t)(tune_random_u64(1, 3, i) % 200);
        n = n < N - row * COLUMNS - column ? n : N - row * COLUMNS - column;
        part[n] = 7;
        assert_ok(tune_nf4_read(q, row * COLUMNS + column, n, part));
        assert_memory_equal(part, y + row * COLUMNS + column, (size_t)n * 4);
        assert_true(part[n] == 7);
    }
    assert_int_equal(tune_nf4_read(q, N - 3, 4, part), -1); /* one more than there are */
    assert_error_has("numbers from 2464 of 2464");
    assert_memory_equal(part, y + N - 3, 3 * 4);
    assert_int_equal(tune_nf4_read(q, N, 1, part), -1);
    assert_int_equal(tune_nf4_read(q, -1, 1, part), -1);
    assert_ok(tune_nf4_read(q, N, 0, part));
    t.shape[0] = 52;
    assert_false(tune_nf4_is_matrix(&t));
    t = tune_nf4_matrix(parts, COLUMNS, 53); /* as many numbers, but a part would end inside a row */
    assert_false(tune_nf4_is_matrix(&t));
    for (int p = 0; p < 3; p++)
        free(memory[p]);
    free(x);
}

static void refused(void **state)
{
    (void)state;
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    void *memory = memory_for(200);
    struct tune_nf4_writer w;
    struct tune_nf4 q;
    float x[201] = {0};
    for (int b = 0; b < 3; b++) {
        x[130] = bad[b];
        assert_ok(tune_nf4_begin(&w, "layer.weight", memory, 200));
        assert_int_equal(tune_nf4_write(&w, x, 200), -1);
        assert_error_has("layer.weight");
        assert_error_has("128 to 191");
        assert_int_equal(tune_nf4_write(&w, x, 1), -1); /* stays refused */
        assert_int_equal(tune_nf4_finish(&w, &q), -1);
    }
    x[130] = 0;
    assert_ok(tune_nf4_begin(&w, "layer.weight", memory, 200));
    assert_ok(tune_nf4_write(&w, x, 199));
    assert_int_equal(tune_nf4_write(&w, x, 2), -1);
    assert_error_has("more numbers");
    assert_ok(tune_nf4_begin(&w, "layer.weight", memory, 200));
    assert_ok(tune_nf4_write(&w, x, 199));
    assert_int_equal(tune_nf4_finish(&w, &q), -1);
    assert_error_has("199 numbers for NF4, 200 announced");
    tune_nf4_abandon(&w);
    assert_int_equal(tune_nf4_bytes(-1), -1);
    assert_int_equal(tune_nf4_bytes(INT64_MAX), -1);
    assert_int_equal(tune_nf4_bytes(0), 0);
    assert_int_equal(tune_nf4_bytes(1), 3 * 64);
    assert_int_equal(tune_nf4_bytes(2048 * 8192), 8388608 + 262144 + 4096); /* 4.127 bits a number */
    assert_ok(tune_nf4_begin(&w, "nothing", memory, 0));
    assert_ok(tune_nf4_finish(&w, &q));
    free(memory);
}

/* Numbers of a whole block are multiplied by a reciprocal, those of a last one that is not full are divided: now and then that
 * is another code. */
static void short_blocks(void **state)
{
    (void)state;
    int different = 0;
    void *memory = memory_for(64);
    for (uint64_t i = 0; i < 4000; i++) {
        int b = (int)(i % 15);
        float bound = (levels4[b] + levels4[b + 1]) / 2, d = (float)(1 + tune_random_uniform(1, 1, i)), near = bound * d;
        float reciprocal = 1 / d, x[64] = {d, nextafterf(near, i % 2 ? 4 : -4)};
        int divided = b + (x[1] / d > bound), multiplied = b + (x[1] * reciprocal > bound);
        if (divided == multiplied)
            continue;
        for (int n = 2; n <= 64; n += 62) {
            struct tune_nf4 q = quantised(memory, x, n, n);
            assert_int_equal(q.codes[0] & 15, n < 64 ? divided : multiplied);
        }
        different++;
    }
    assert_true(different > 10);
    free(memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published), cmocka_unit_test(ties_of_numbers), cmocka_unit_test(ties_of_magnitudes),
        cmocka_unit_test(short_blocks), cmocka_unit_test(stretches), cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
