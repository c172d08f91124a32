/* bench_attention.c - what attention reaches beside matrix products: forward and backward of one row of smollm2-135m's
 * heads, by its length.
 *
 *     bench_attention [seconds] [threads] [dtype]      about that long (default 20); threads default: as many as may be used;
 *                                                      dtype: float32 (default) or bfloat16
 *
 * Products are those of one layer with 512 rows, all directions, weighted by their FLOPs. Only what the causal mask leaves is
 * counted: 4 D (backward 10 D) for each pair of a query and a key it sees. All take turns; the fastest of each counts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/error.h"
#include "devices/ops.h"

enum { H = 9, K = 3, D = 64, WIDTH = 576, ROWS = 512, LONGEST = 4096 };
static const int64_t lengths[] = {512, 1024, 2048, 4096};
static const int64_t layers[][2] = {{576, 960}, {576, 576}, {576, 3072}, {1536, 576}}; /* inputs, outputs */
enum { LENGTHS = sizeof lengths / sizeof *lengths, LAYERS = sizeof layers / sizeof *layers };

static void must(int status)
{
    if (status < 0) {
        fprintf(stderr, "bench_attention: %s\n", tune_error_message());
        exit(1);
    }
}

/* Numbers in (-.5, .5). */
static tune_address fill(struct tune_device *dev, enum tune_dtype dtype, int64_t n)
{
    tune_address to = tune_device_alloc(dev, n * tune_dtype_bits(dtype) / 8, "numbers");
    float *f = malloc((size_t)n * sizeof *f);
    void *host = malloc((size_t)n * sizeof *f);
    must(to.at && f && host ? 0 : -1);
    for (int64_t i = 0; i < n; i++)
        f[i] = (float)(i * 7919 % 1009) / 1009 - .5f;
    must(tune_convert(host, dtype, f, TUNE_F32, n));
    must(tune_device_upload(dev, to, host, n * tune_dtype_bits(dtype) / 8));
    free(f);
    free(host);
    return to;
}

/* [1,T,count,D] */
static struct tune_tensor heads(tune_address at, enum tune_dtype dtype, int64_t T, int64_t count)
{
    struct tune_tensor rows = tune_tensor_2d(at, dtype, T, count * D);
    return tune_tensor_heads(&rows, 1, 0, count, D);
}

/* The least seconds in *best. */
static void keep(double *best, double begin)
{
    double s = tune_clock_s() - begin;
    *best = *best == 0 || s < *best ? s : *best;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 20, product_s[LAYERS][3] = {0}, attention_s[LENGTHS][2] = {0};
    enum tune_dtype dtype = argc > 3 && !strcmp(argv[3], "bfloat16") ? TUNE_BF16 : TUNE_F32;
    struct tune_device *dev = tune_device_open("cpu", argc > 2 ? atoi(argv[2]) : 0);
    must(dev ? 0 : -1);
    tune_address x = fill(dev, dtype, ROWS * 3072), y = fill(dev, dtype, ROWS * 3072);
    tune_address w = fill(dev, TUNE_F32, 576 * 3072), dw = fill(dev, TUNE_F32, 576 * 3072);
    tune_address q = fill(dev, dtype, LONGEST * WIDTH), k = fill(dev, dtype, LONGEST * K * D), v = fill(dev, dtype, LONGEST * K * D);
    tune_address out = fill(dev, dtype, LONGEST * WIDTH), dout = fill(dev, dtype, LONGEST * WIDTH), dq = fill(dev, dtype, LONGEST * WIDTH);
    tune_address dk = fill(dev, dtype, LONGEST * K * D), dv = fill(dev, dtype, LONGEST * K * D), lse = fill(dev, TUNE_F32, LONGEST * H);
    struct tune_attention params = {.scale = .125f};
    for (double end = tune_clock_s() + seconds; tune_clock_s() < end;) {
        for (int i = 0; i < LAYERS; i++) {
            int64_t in = layers[i][0], outs = layers[i][1];
            struct tune_tensor tx = tune_tensor_2d(x, dtype, ROWS, in), ty = tune_tensor_2d(y, dtype, ROWS, outs);
            struct tune_tensor tw = tune_tensor_2d(w, TUNE_F32, outs, in), tdw = tune_tensor_2d(dw, TUNE_F32, outs, in);
            double begin = tune_clock_s();
            must(tune_gemm(dev, &ty, &tx, false, &tw, true, 1, 0, dtype));
            keep(&product_s[i][0], begin);
            begin = tune_clock_s();
            must(tune_gemm(dev, &tx, &ty, false, &tw, false, 1, 0, dtype));
            keep(&product_s[i][1], begin);
            begin = tune_clock_s();
            must(tune_gemm(dev, &tdw, &ty, true, &tx, false, 1, 0, dtype));
            keep(&product_s[i][2], begin);
        }
        for (int i = 0; i < LENGTHS; i++) {
            int64_t T = lengths[i];
            struct tune_tensor tq = heads(q, dtype, T, H), tk = heads(k, dtype, T, K);
            struct tune_tensor tv = heads(v, dtype, T, K), to = tune_tensor_2d(out, dtype, T, WIDTH);
            struct tune_tensor tdq = heads(dq, dtype, T, H), tdk = heads(dk, dtype, T, K);
            struct tune_tensor tdv = heads(dv, dtype, T, K), tdo = tune_tensor_2d(dout, dtype, T, WIDTH);
            struct tune_tensor tlse = tune_tensor_2d(lse, TUNE_F32, T, H);
            double begin = tune_clock_s();
            must(tune_attention_forward(dev, &to, &tlse, &tq, &tk, &tv, NULL, NULL, NULL, params));
            keep(&attention_s[i][0], begin);
            begin = tune_clock_s();
            must(tune_attention_backward(dev, &tdq, &tdk, &tdv, &tdo, &tq, &tk, &tv, &to, &tlse, NULL, params));
            keep(&attention_s[i][1], begin);
        }
    }
    double flops = 0, s = 0;
    for (int i = 0; i < LAYERS; i++)
        for (int way = 0; way < 3; way++)
            flops += 2. * ROWS * (double)(layers[i][0] * layers[i][1]), s += product_s[i][way];
    double rate = flops / s / 1e9;
    printf("# %s, %s\nproducts of a layer, 512 rows %34.1f GFLOP/s\n", dev->description, dtype == TUNE_F32 ? "float32" : "bfloat16", rate);
    for (int i = 0; i < LENGTHS; i++) {
        double pairs = .5 * (double)lengths[i] * (double)(lengths[i] + 1) * H * D / 1e9;
        double forward = 4 * pairs / attention_s[i][0], backward = 10 * pairs / attention_s[i][1];
        printf("attention, length %5lld: forward %6.1f GFLOP/s, %.3f of products; backward %6.1f, %.3f\n", (long long)lengths[i],
               forward, forward / rate, backward, backward / rate);
    }
    tune_device_close(dev);
    return 0;
}
