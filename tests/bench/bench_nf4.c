/* bench_nf4.c - what it costs that weights are NF4: a linear layer's products with float32, bfloat16 and NF4 weights.
 *
 *     bench_nf4 [seconds] [threads]      about that long (default 20); threads default: as many as may be used
 *
 * Layers of smollm2-135m and -1.7b, 512 rows (or as BENCH_ROWS says), forward and backward to the input. Each layer has several
 * weights, taken in turn, so that they come from memory. The three take turns; the fastest of each counts. */
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/nf4.h"
#include "devices/ops.h"

enum { F32, BF16, NF4, KINDS, COPIES = 3 };

static const struct shape {
    const char *name;
    int64_t in, out;
} shapes[] = {{"135m q,k,v", 576, 960}, {"135m o", 576, 576}, {"135m gate,up", 576, 3072}, {"135m down", 1536, 576},
              {"1.7b q,k,v", 2048, 6144}, {"1.7b o", 2048, 2048}, {"1.7b gate,up", 2048, 16384}, {"1.7b down", 8192, 2048}};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void must(int status)
{
    if (status < 0) {
        fprintf(stderr, "bench_nf4: %s\n", tune_error_message());
        exit(1);
    }
}

struct layer {
    struct tune_tensor w[KINDS][COPIES];
    struct tune_nf4_part nf4[COPIES];
    tune_address memory[KINDS];
    int64_t bytes[KINDS];
};

static void make(struct tune_device *dev, const struct shape *s, struct layer *l)
{
    int64_t n = s->in * s->out, each = tune_nf4_bytes(n);
    l->bytes[F32] = COPIES * n * 4, l->bytes[BF16] = COPIES * n * 2, l->bytes[NF4] = COPIES * each;
    for (int k = 0; k < KINDS; k++)
        must((l->memory[k] = tune_device_alloc(dev, l->bytes[k], "weights")).at ? 0 : -1);
    float *numbers = malloc((size_t)n * sizeof *numbers);
    char *host = aligned_alloc(64, (size_t)(each > n * 2 ? each : (n * 2 + 63) / 64 * 64));
    must(numbers && host ? 0 : -1);
    for (int c = 0; c < COPIES; c++) {
        tune_address f32 = tune_address_plus(l->memory[F32], c * n * 4), bf16 = tune_address_plus(l->memory[BF16], c * n * 2);
        tune_address nf4 = tune_address_plus(l->memory[NF4], c * each);
        struct tune_nf4_writer w;
        struct tune_nf4 q;
        for (int64_t i = 0; i < n; i++)
            numbers[i] = (float)((c * n + i) * 7919 % 1009) / 1009 - .5f;
        must(tune_device_upload(dev, f32, numbers, n * 4));
        must(tune_convert(host, TUNE_BF16, numbers, TUNE_F32, n));
        must(tune_device_upload(dev, bf16, host, n * 2));
        must(tune_nf4_begin(&w, s->name, host, n));
        must(tune_nf4_write(&w, numbers, n));
        must(tune_nf4_finish(&w, &q));
        must(tune_device_upload(dev, nf4, host, each));
        l->nf4[c] = (struct tune_nf4_part){nf4, q.offset, n, NULL};
        l->w[F32][c] = tune_tensor_2d(f32, TUNE_F32, s->out, s->in);
        l->w[BF16][c] = tune_tensor_2d(bf16, TUNE_BF16, s->out, s->in);
        l->w[NF4][c] = tune_nf4_matrix(&l->nf4[c], s->out, s->in);
    }
    free(numbers);
    free(host);
}

/* Fastest seconds of [direction][kind]. */
static void measure(struct tune_device *dev, const struct shape *s, int64_t rows, double seconds, double best[2][KINDS])
{
    struct layer l;
    make(dev, s, &l);
    int64_t bytes = rows * (s->in > s->out ? s->in : s->out) * 4;
    tune_address x = tune_device_alloc(dev, bytes, "x"), y = tune_device_alloc(dev, bytes, "y");
    must(x.at && y.at ? 0 : -1);
    struct tune_tensor tx = tune_tensor_2d(x, TUNE_F32, rows, s->in), ty = tune_tensor_2d(y, TUNE_F32, rows, s->out);
    double end = tune_clock_s() + seconds;
    for (int round = 0; round < 3 || tune_clock_s() < end; round++)
        for (int k = 0; k < KINDS; k++)
            for (int back = 0; back < 2; back++) {
                const struct tune_tensor *w = &l.w[k][round % COPIES];
                double begin = tune_clock_s();
                must(back ? tune_gemm(dev, &tx, &ty, false, w, false, 1, 0, TUNE_F32) : tune_gemm(dev, &ty, &tx, false, w, true, 1, 0, TUNE_F32));
                double took = tune_clock_s() - begin;
                best[back][k] = best[back][k] == 0 || took < best[back][k] ? took : best[back][k];
            }
    tune_device_free(dev, x, bytes);
    tune_device_free(dev, y, bytes);
    for (int k = 0; k < KINDS; k++)
        tune_device_free(dev, l.memory[k], l.bytes[k]);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 20, sum[KINDS] = {0};
    struct tune_device *dev = tune_device_open("cpu", argc > 2 ? atoi(argv[2]) : 0);
    int64_t rows = getenv("BENCH_ROWS") ? atoi(getenv("BENCH_ROWS")) : 512;
    must(dev && rows > 0 ? 0 : -1);
    printf("# %s, %d rows; GFLOP/s\n%-14s %6s %6s  %-9s %8s %8s %8s  %s\n", dev->description, (int)rows, "layer", "in", "out", "",
           "float32", "bfloat16", "NF4", "time of NF4 / float32");
    for (int i = 0; i < SHAPES; i++) {
        double best[2][KINDS] = {{0}}, flops = 2.0 * (double)rows * (double)(shapes[i].in * shapes[i].out);
        measure(dev, &shapes[i], rows, seconds / SHAPES, best);
        for (int back = 0; back < 2; back++) {
            const double *b = best[back];
            printf("%-14s %6d %6d  %-9s %8.1f %8.1f %8.1f  %.3f\n", shapes[i].name, (int)shapes[i].in, (int)shapes[i].out,
                   back ? "to input" : "forward", flops / b[F32] / 1e9, flops / b[BF16] / 1e9, flops / b[NF4] / 1e9, b[NF4] / b[F32]);
            for (int k = 0; k < KINDS; k++)
                sum[k] += b[k];
        }
    }
    printf("all together: bfloat16 %.3f, NF4 %.3f of float32's time\n", sum[BF16] / sum[F32], sum[NF4] / sum[F32]);
    tune_device_close(dev);
    return 0;
}
