/* bench_decode.c - what a token costs: products with few rows, and attention over a long cache.
 *
 *     bench_decode [seconds] [threads]     about that long (default 60); threads default: as many
 *                                          as may be used
 *
 * The products are those of smollm2-135m, with the weights of all its layers, so that they come
 * from memory. Each figure is a ratio: the bytes of the weights by the time, over the bandwidth of
 * a plain sum over memory by the same threads. The two take turns. The best time of each
 * counts, of the weights that of the best layer. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/nf4.h"
#include "devices/ops.h"
#include "plain_sum.h"

enum { C = 576, H = 9, K = 3, D = 64, F = 1536, V = 49152, LAYERS = 30, LONGEST = 2048 };
enum { F32, BF16, NF4, KINDS, SHAPES = 5 };
static const char *const kinds[KINDS] = {"float32", "bfloat16", "NF4"};
static const struct shape {
    const char *name;
    int64_t in, out;
    int count;
} shapes[SHAPES] = {{"q,k,v", C, (H + 2 * K) * D, LAYERS}, {"o", H * D, C, LAYERS},
                    {"gate,up", C, 2 * F, LAYERS}, {"down", F, C, LAYERS}, {"output", C, V, 1}};

static void must(int status)
{
    if (status == 0)
        return;
    fprintf(stderr, "bench_decode: %s\n", tune_error_message());
    exit(1);
}

static tune_address memory(struct tune_device *dev, int64_t bytes)
{
    tune_address a = tune_device_alloc(dev, bytes, "a bench");
    must(a.at ? 0 : -1);
    return a;
}

static struct tune_tensor zeros(struct tune_device *dev, enum tune_dtype dtype, int64_t rows,
                                int64_t columns)
{
    return tune_tensor_2d(memory(dev, rows * columns * tune_dtype_bits(dtype) / 8), dtype, rows,
                          columns);
}

/* Seconds of a sum over n floats at the best rate of any window, which takes about as long as a
 * product: other programs disturb both alike. */
static double best_sum(struct tune_device *dev, const float *x, int64_t n)
{
    enum { WINDOWS = 16 };
    double best = 0;
    for (int64_t i = 0; i < WINDOWS; i++) {
        double took = plain_sum(dev, x + n / WINDOWS * i, n / WINDOWS) * WINDOWS;
        best = best == 0 || took < best ? took : best;
    }
    return best;
}

struct weights {
    struct tune_tensor w[SHAPES][LAYERS];
    struct tune_nf4_part parts[SHAPES][LAYERS];
};

/* The same numbers for every layer, each layer in memory of its own. */
static void make(struct tune_device *dev, struct weights *m, int kind)
{
    static const enum tune_dtype dtypes[] = {TUNE_F32, TUNE_BF16, TUNE_NF4};
    for (int s = 0; s < SHAPES; s++) {
        int64_t n = shapes[s].in * shapes[s].out;
        int64_t bytes = kind == NF4 ? tune_nf4_bytes(n) : n * (kind == F32 ? 4 : 2);
        float *numbers = malloc((size_t)n * 4);
        char *host = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
        struct tune_nf4_writer writer;
        struct tune_nf4 q = {0};
        must(numbers && host ? 0 : tune_error_set("no memory"));
        for (int64_t i = 0; i < n; i++)
            numbers[i] = (float)(i * 7919 % 1009) / 1009 - .5f;
        if (kind != NF4) {
            must(tune_convert(host, dtypes[kind], numbers, TUNE_F32, n));
        } else {
            must(tune_nf4_begin(&writer, shapes[s].name, host, n));
            must(tune_nf4_write(&writer, numbers, n));
            must(tune_nf4_finish(&writer, &q));
        }
        for (int l = 0; l < shapes[s].count; l++) {
            tune_address at = memory(dev, bytes);
            must(tune_device_upload(dev, at, host, bytes));
            m->parts[s][l] = (struct tune_nf4_part){at, q.offset, n, NULL};
            m->w[s][l] = kind == NF4 ? tune_nf4_matrix(&m->parts[s][l], shapes[s].out, shapes[s].in)
                                     : tune_tensor_2d(at, dtypes[kind], shapes[s].out, shapes[s].in);
        }
        free(numbers);
        free(host);
    }
}

static double bytes_of(int s, int kind)
{
    int64_t n = shapes[s].in * shapes[s].out;
    return kind == NF4 ? (double)tune_nf4_bytes(n) : (double)n * (kind == F32 ? 4 : 2);
}

static void keep(double *best, double took)
{
    *best = *best == 0 || took < *best ? took : *best;
}

enum { BATCHES = 4 };
static const int64_t batches[BATCHES] = {1, 2, 4, 8};

/* Prints the ratios of one kind of weights. float32[b]: seconds of a token with float32; set by
 * that kind. */
static void products(struct tune_device *dev, int kind, const float *memory_read, int64_t n,
                     double seconds, double float32[BATCHES])
{
    struct weights m;
    double best[BATCHES][SHAPES] = {{0}}, plain = 0, end = tune_clock_s() + seconds;
    enum tune_dtype rows = kind == BF16 ? TUNE_BF16 : TUNE_F32;
    make(dev, &m, kind);
    struct tune_tensor x = zeros(dev, rows, batches[BATCHES - 1], F), y = zeros(dev, TUNE_F32, batches[BATCHES - 1], V);
    for (int round = 0; round < 3 || tune_clock_s() < end; round++)
        for (int b = 0; b < BATCHES; b++) {
            keep(&plain, best_sum(dev, memory_read, n));
            for (int s = 0; s < SHAPES; s++) {
                struct tune_tensor in = tune_tensor_2d(x.data, rows, batches[b], shapes[s].in);
                struct tune_tensor out = tune_tensor_2d(y.data, TUNE_F32, batches[b], shapes[s].out);
                for (int l = 0; l < shapes[s].count; l++) {
                    double begin = tune_clock_s();
                    must(tune_gemm(dev, &out, &in, false, &m.w[s][l], true, 1, 0, rows));
                    keep(&best[b][s], tune_clock_s() - begin);
                }
            }
        }
    double rate = (double)n * 4 / plain;
    printf("# %s; plain sum %.1f GB/s\n%-9s", kinds[kind], rate / 1e9, "rows");
    for (int s = 0; s < SHAPES; s++)
        printf(" %8s", shapes[s].name);
    printf(" %8s  token, of 1 row's  of float32's\n", "all");
    for (int b = 0; b < BATCHES; b++) {
        double bytes = 0, took = 0, one = 0;
        printf("%-9d", (int)batches[b]);
        for (int s = 0; s < SHAPES; s++) {
            double all = bytes_of(s, kind) * shapes[s].count, time = best[b][s] * shapes[s].count;
            printf(" %8.2f", all / time / rate);
            bytes += all, took += time, one += best[0][s] * shapes[s].count;
        }
        if (kind == F32)
            float32[b] = took;
        printf(" %8.2f  %17.2f  %12.2f\n", bytes / took / rate, took / one, took / float32[b]);
    }
    for (int s = 0; s < SHAPES; s++)
        for (int l = 0; l < shapes[s].count; l++)
            tune_device_free(dev, kind == NF4 ? m.parts[s][l].memory : m.w[s][l].data, (int64_t)bytes_of(s, kind));
    tune_device_free(dev, x.data, tune_tensor_bytes(&x));
    tune_device_free(dev, y.data, tune_tensor_bytes(&y));
}

/* Attention of one token of each of B rows, in all layers, each with a cache of its own. */
static void attention(struct tune_device *dev, enum tune_dtype dtype, int32_t B, int32_t keys,
                      const float *memory_read, int64_t n, double seconds)
{
    int64_t size = tune_dtype_bits(dtype) / 8, each = (int64_t)B * LONGEST * 2 * K * D;
    tune_address cache = memory(dev, LAYERS * each * size);
    struct tune_tensor q = zeros(dev, dtype, B, H * D), out = zeros(dev, dtype, B, H * D), lse = zeros(dev, TUNE_F32, B, H);
    struct tune_tensor count = tune_tensor_1d(memory(dev, 4 * B), TUNE_I32, B), q_offset = tune_tensor_1d(memory(dev, 4 * B), TUNE_I32, B);
    double best = 0, plain = 0, end = tune_clock_s() + seconds;
    for (int32_t b = 0, last = keys - 1; b < B; b++) {
        must(tune_device_upload(dev, tune_address_plus(count.data, 4 * b), &keys, 4));
        must(tune_device_upload(dev, tune_address_plus(q_offset.data, 4 * b), &last, 4));
    }
    for (int round = 0; round < 3 || tune_clock_s() < end; round++) {
        keep(&plain, best_sum(dev, memory_read, n));
        for (int l = 0; l < LAYERS; l++) {
            double from = tune_clock_s();
            struct tune_tensor rows = tune_tensor_2d(tune_address_plus(cache, l * each * size), dtype, (int64_t)B * LONGEST, 2 * K * D);
            struct tune_tensor heads = tune_tensor_heads(&q, B, 0, H, D);
            struct tune_tensor k = tune_tensor_heads(&rows, B, 0, K, D), v = tune_tensor_heads(&rows, B, K * D, K, D);
            must(tune_attention_forward(dev, &out, &lse, &heads, &k, &v, NULL, &count, &q_offset, (struct tune_attention){0, 0.125f}));
            keep(&best, tune_clock_s() - from);
        }
    }
    double bytes = (double)B * keys * 2 * K * D * (double)size;
    printf("%-9s %5d %6d %8.2f  %8.1f us\n", dtype == TUNE_F32 ? "float32" : "bfloat16", (int)B, (int)keys,
           bytes / best / ((double)n * 4 / plain), best * 1e6);
    tune_device_free(dev, cache, LAYERS * each * size);
    tune_device_free(dev, q.data, tune_tensor_bytes(&q));
    tune_device_free(dev, out.data, tune_tensor_bytes(&out));
    tune_device_free(dev, lse.data, tune_tensor_bytes(&lse));
    tune_device_free(dev, count.data, 4 * B);
    tune_device_free(dev, q_offset.data, 4 * B);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 60, float32[BATCHES];
    struct tune_device *dev = tune_device_open("cpu", argc > 2 ? atoi(argv[2]) : 0);
    must(dev ? 0 : -1);
    int64_t n = 32 << 20;
    tune_address buffer = memory(dev, n * 4);
    void *read = NULL;
    must(tune_device_in_place(dev, buffer, &read));
    printf("# %s\n", dev->description);
    for (int kind = 0; kind < KINDS; kind++)
        products(dev, kind, read, n, seconds / 5, float32);
    printf("# attention of one token\n%-9s %5s %6s %8s  %11s\n", "", "rows", "keys", "ratio", "a layer");
    for (int type = 0; type < 2; type++)
        for (int B = 1; B <= 8; B *= 8)
            for (int keys = 64; keys <= LONGEST; keys = keys == 64 ? 512 : 4 * keys)
                attention(dev, type ? TUNE_BF16 : TUNE_F32, B, keys, read, n, seconds / 30);
    tune_device_free(dev, buffer, n * 4);
    tune_device_close(dev);
    return 0;
}
