/* gpu_figure.h - one figure of bench_gpu: tensors on the device, a call that is timed, a line that is printed.
 *
 *     struct work w = {0};
 *     add(&w, TUNE_BF16, rows, columns), add(&w, TUNE_BF16, rows, columns);
 *     figure("copy", copy, &w, 2, 0, 4.0 * rows * columns);        by bytes; drop(&w) when the tensors are done with */
#ifndef TUNE_BENCH_GPU_FIGURE_H
#define TUNE_BENCH_GPU_FIGURE_H

#include <math.h>

#include "core/clock.h"
#include "gpu_step.h"

static struct tune_device *dev;
static double seconds = 2, product_rate, copy_rate;
static const char *only; /* only figures whose names have this text; NULL: all */
static int failed;       /* figures and steps that failed; the others go on */

/* Tensors of one figure, on the device. */
enum { MOST = 8 };
struct work {
    struct tune_tensor t[MOST];
    int count;
    bool reference; /* others are printed as a share of its rate */
    bool filled;    /* t are views of tensors that have numbers */
    bool lacking;   /* a tensor found no memory; those behind it are left out */
    struct tune_attention params;
    const struct tune_tensor *starts;
    int T, H, D;
    tune_address step;
};

static void add(struct work *w, enum tune_dtype dtype, int64_t rows, int64_t columns)
{
    struct tune_tensor *t = &w->t[w->count];
    tune_address none = {0};
    if (w->lacking)
        return;
    *t = rows ? tune_tensor_2d(none, dtype, rows, columns) : tune_tensor_1d(none, dtype, columns);
    t->data = tune_device_alloc(dev, tune_tensor_bytes(t), "a bench");
    w->lacking = !t->data.at;
    w->count += !w->lacking;
}

static void drop(struct work *w)
{
    while (w->count > 0) {
        struct tune_tensor *t = &w->t[--w->count];
        tune_device_free(dev, t->data, tune_tensor_bytes(t));
    }
    w->lacking = false;
}

/* Seconds of one call, or -1 with an error. */
static double time_of(int (*call)(struct work *w), struct work *w)
{
    double best = 1e30, begin = tune_clock_s();
    int n = 1;
    if (call(w) < 0 || tune_device_sync(dev) < 0)
        return -1;
    do {
        double from = tune_clock_s();
        for (int i = 0; i < n; i++)
            if (call(w) < 0)
                return -1;
        if (tune_device_sync(dev) < 0)
            return -1;
        double took = tune_clock_s() - from;
        best = took / n < best ? took / n : best;
        n = took < 0.05 && n < 4096 ? 2 * n : n;
    } while (tune_clock_s() - begin < seconds);
    return best;
}

/* Numbers that are not zero: rates depend on them. */
static int fill(struct work *w, struct tune_tensor *t)
{
    float part[4096];
    int64_t n = tune_tensor_elements(t), size = tune_dtype_bits(t->dtype) / 8;
    for (int i = 0; i < 4096; i++)
        part[i] = 0.1f * sinf((float)(i + w->count));
    uint16_t narrow[4096];
    if (tune_convert(narrow, TUNE_BF16, part, TUNE_F32, 4096) < 0)
        return -1;
    const void *from = size == 2 ? (const void *)narrow : part;
    for (int64_t at = 0; at < n; at += 4096) {
        int64_t some = n - at < 4096 ? n - at : 4096;
        if (tune_device_upload(dev, tune_address_plus(t->data, at * size), from, some * size) < 0)
            return -1;
        if (at == 0 && n > (1 << 22)) /* the rest by doubling, on the device */
            break;
    }
    for (int64_t have = 4096; n > (1 << 22) && have < n; have *= 2) {
        int64_t some = n - have < have ? n - have : have;
        struct tune_tensor x = tune_tensor_1d(t->data, t->dtype, some);
        struct tune_tensor y = tune_tensor_1d(tune_address_plus(t->data, have * size), t->dtype, some);
        if (tune_copy(dev, &y, &x) < 0)
            return -1;
    }
    return 0;
}

static int ready(struct work *w, int wanted)
{
    int status = w->count == wanted ? 0 : -1;
    if (w->filled)
        return status;
    for (int i = 0; i < w->count && status == 0; i++)
        status = w->t[i].dtype == TUNE_F32 || w->t[i].dtype == TUNE_BF16 ? fill(w, &w->t[i]) : 0;
    return status;
}

static void fail(const char *what)
{
    printf("%s: failed: %s\n", what, tune_error_message());
    failed++;
}

/* figure - time the call, unless it is not asked for, and print its rate: FLOP/s, or bytes/s where flops is 0. w must have so
 * many tensors: else memory was short. */
static void figure(const char *name, int (*call)(struct work *w), struct work *w, int tensors, double flops, double bytes)
{
    if (only && !strstr(name, only))
        return;
    double s = ready(w, tensors) < 0 ? -1 : time_of(call, w);
    if (s < 0) {
        fail(name);
        return;
    }
    double *rate = flops > 0 ? &product_rate : &copy_rate, this_one = (flops > 0 ? flops : bytes) / s;
    if (w->reference)
        *rate = this_one;
    printf("%-44s %10.1f us %9.2f %s", name, 1e6 * s, this_one / (flops > 0 ? 1e12 : 1e9), flops > 0 ? "TFLOP/s" : "GB/s   ");
    if (*rate > 0)
        printf("  %.3f of %s", this_one / *rate, flops > 0 ? "the product" : "copying");
    puts("");
}

#endif
