/* bench_gpu.c - rates of a GPU: one product, copying, element by element, attention, and whole training steps of gpu_step.h,
 * against the product's and the copy's rate. sh tests/gpu.sh runs it.
 *
 *     bench_gpu DEVICE [SECONDS of each figure (2) [tiny | none]]
 *         tiny: sizes to try the program out, on any device   none: only says what the device is
 *
 * A figure is the fastest of several batches of calls; the host waits once for each batch. */
#include "gpu_step.h"

#include <math.h>

#include "core/clock.h"

struct sizes {
    int64_t product, copy;   /* n of n x n x n; float32 numbers */
    int64_t rows, width, ffn; /* of activations */
    int B, T, H, K, D;       /* of attention */
    const char *cases[2];
};

static const struct sizes full = {8192, 1 << 28, 8192, 4096, 14336, 4, 2048, 32, 8, 128, {"llama3-8b-lora", "smollm2-135m-full"}};
static const struct sizes tiny = {32, 1 << 12, 32, 32, 48, 1, 32, 2, 1, 32, {"tiny-lora", "tiny-full"}};

static struct tune_device *dev;
static double seconds = 2, product_rate, copy_rate;

/* Tensors of one figure, on the device. */
enum { MOST = 8 };
struct work {
    struct tune_tensor t[MOST];
    int count;
    struct tune_attention how;
    int T, H, D;
    tune_address step;
};

static struct tune_tensor *add(struct work *w, enum tune_dtype dtype, int64_t rows, int64_t columns)
{
    struct tune_tensor *t = &w->t[w->count];
    tune_address none = {0};
    *t = rows ? tune_tensor_2d(none, dtype, rows, columns) : tune_tensor_1d(none, dtype, columns);
    t->data = tune_device_alloc(dev, tune_tensor_bytes(t), "a bench");
    if (!t->data.at)
        return NULL;
    w->count++;
    return t;
}

static void drop(struct work *w)
{
    while (w->count > 0) {
        struct tune_tensor *t = &w->t[--w->count];
        tune_device_free(dev, t->data, tune_tensor_bytes(t));
    }
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
    for (int i = 0; i < w->count && status == 0; i++)
        status = w->t[i].dtype == TUNE_F32 || w->t[i].dtype == TUNE_BF16 ? fill(w, &w->t[i]) : 0;
    return status;
}

/* ---- the calls ---- */

static int product(struct work *w) { return tune_gemm(dev, &w->t[0], &w->t[1], false, &w->t[2], true, 1, 0, TUNE_BF16); }
static int copy(struct work *w) { return tune_copy(dev, &w->t[0], &w->t[1]); }
static int swiglu(struct work *w) { return tune_swiglu_forward(dev, &w->t[0], &w->t[1]); }
static int swiglu_backward(struct work *w) { return tune_swiglu_backward(dev, &w->t[0], &w->t[1], &w->t[2]); }
static int rmsnorm(struct work *w) { return tune_rmsnorm_forward(dev, &w->t[0], &w->t[1], &w->t[2], &w->t[3], 1e-5f); }
static int rmsnorm_backward(struct work *w)
{
    return tune_rmsnorm_backward(dev, &w->t[0], NULL, &w->t[1], &w->t[2], &w->t[3], &w->t[4]);
}
static int rope(struct work *w) { return tune_rope(dev, &w->t[0], &w->t[1], NULL, w->T, w->H, w->D, false); }
static int adamw(struct work *w)
{
    struct tune_update how = {1, 0.9, 0.999, 1e-8, 0.01, 0};
    return tune_adamw(dev, &w->t[0], &w->t[1], &w->t[2], &w->t[3], w->step, how);
}

/* t: qkv, out, lse, dout, dqkv */
static struct tune_tensor heads(struct work *w, int of, int64_t B, int64_t first, int64_t count)
{
    return tune_tensor_heads(&w->t[of], B, first * w->D, count, w->D);
}
static int64_t kv_of(const struct work *w) { return (w->t[0].shape[1] / w->D - w->H) / 2; }
static int attention(struct work *w)
{
    int64_t B = w->t[0].shape[0] / w->T, K = kv_of(w);
    struct tune_tensor q = heads(w, 0, B, 0, w->H), k = heads(w, 0, B, w->H, K), v = heads(w, 0, B, w->H + K, K);
    return tune_attention_forward(dev, &w->t[1], &w->t[2], &q, &k, &v, NULL, NULL, NULL, w->how);
}
static int attention_backward(struct work *w)
{
    int64_t B = w->t[0].shape[0] / w->T, K = kv_of(w);
    struct tune_tensor q = heads(w, 0, B, 0, w->H), k = heads(w, 0, B, w->H, K), v = heads(w, 0, B, w->H + K, K);
    struct tune_tensor dq = heads(w, 4, B, 0, w->H), dk = heads(w, 4, B, w->H, K), dv = heads(w, 4, B, w->H + K, K);
    return tune_attention_backward(dev, &dq, &dk, &dv, &w->t[3], &q, &k, &v, &w->t[1], &w->t[2], NULL, w->how);
}

/* ---- the figures ---- */

static int fail(const char *what)
{
    printf("%s: failed: %s\n", what, tune_error_message());
    return -1;
}

/* A figure in FLOP/s, beside the product's. */
static int arithmetic(const char *name, int (*call)(struct work *w), struct work *w, double flops)
{
    double s = time_of(call, w);
    if (s < 0)
        return fail(name);
    if (product_rate == 0)
        product_rate = flops / s;
    printf("%-34s %10.1f us %9.2f TFLOP/s  %.3f of the product\n", name, 1e6 * s, flops / s / 1e12, flops / s / product_rate);
    return 0;
}

/* A figure in bytes/s, beside copying. */
static int moving(const char *name, int (*call)(struct work *w), struct work *w, double bytes)
{
    double s = time_of(call, w);
    if (s < 0)
        return fail(name);
    if (copy_rate == 0)
        copy_rate = bytes / s;
    printf("%-34s %10.1f us %9.1f GB/s     %.3f of copying\n", name, 1e6 * s, bytes / s / 1e9, bytes / s / copy_rate);
    return 0;
}

static int products(const struct sizes *z)
{
    const int64_t shapes[][3] = {{z->product, z->product, z->product}, {z->rows, z->width, z->width},
                                 {z->rows, 2 * z->ffn, z->width}, {z->rows, z->width, z->ffn}, {z->rows, 16, z->width}};
    int status = 0;
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes && status == 0; i++) {
        const int64_t *s = shapes[i];
        struct work w = {0};
        char name[64];
        snprintf(name, sizeof name, "product %lldx%lldx%lld", (long long)s[0], (long long)s[1], (long long)s[2]);
        add(&w, TUNE_BF16, s[0], s[1]), add(&w, TUNE_BF16, s[0], s[2]), add(&w, TUNE_BF16, s[1], s[2]);
        status = ready(&w, 3) < 0 ? fail(name) : arithmetic(name, product, &w, 2.0 * (double)s[0] * (double)s[1] * (double)s[2]);
        drop(&w);
    }
    return status;
}

static int elementwise(const struct sizes *z)
{
    double N = (double)z->rows, C = (double)z->width, F = (double)z->ffn;
    struct work w = {0};
    int status;
    add(&w, TUNE_F32, 0, z->copy), add(&w, TUNE_F32, 0, z->copy);
    status = ready(&w, 2) < 0 ? fail("copy") : moving("copy, float32", copy, &w, 8.0 * (double)z->copy);
    drop(&w);
    add(&w, TUNE_BF16, z->rows, z->ffn), add(&w, TUNE_BF16, z->rows, 2 * z->ffn);
    if (status == 0)
        status = ready(&w, 2) < 0 ? fail("swiglu") : moving("swiglu_forward, bfloat16", swiglu, &w, 6 * N * F);
    drop(&w);
    add(&w, TUNE_BF16, z->rows, 2 * z->ffn), add(&w, TUNE_BF16, z->rows, z->ffn), add(&w, TUNE_BF16, z->rows, 2 * z->ffn);
    if (status == 0)
        status = ready(&w, 3) < 0 ? fail("swiglu") : moving("swiglu_backward, bfloat16", swiglu_backward, &w, 10 * N * F);
    drop(&w);
    add(&w, TUNE_BF16, z->rows, z->width), add(&w, TUNE_F32, 0, z->rows), add(&w, TUNE_F32, z->rows, z->width);
    add(&w, TUNE_F32, 0, z->width);
    if (status == 0)
        status = ready(&w, 4) < 0 ? fail("rmsnorm") : moving("rmsnorm_forward, float32 to bfloat16", rmsnorm, &w, 6 * N * C);
    drop(&w);
    add(&w, TUNE_F32, z->rows, z->width), add(&w, TUNE_BF16, z->rows, z->width), add(&w, TUNE_F32, z->rows, z->width);
    add(&w, TUNE_F32, 0, z->width), add(&w, TUNE_F32, 0, z->rows);
    if (status == 0)
        status = ready(&w, 5) < 0 ? fail("rmsnorm") : moving("rmsnorm_backward, without dw", rmsnorm_backward, &w, 14 * N * C);
    drop(&w);
    w.T = z->T, w.H = z->H + z->K, w.D = z->D;
    add(&w, TUNE_BF16, (int64_t)z->B * z->T, (int64_t)(z->H + 2 * z->K) * z->D), add(&w, TUNE_F32, z->T, z->D);
    if (status == 0)
        status = ready(&w, 2) < 0 ? fail("rope") : moving("rope, bfloat16", rope, &w, 4.0 * z->B * z->T * (z->H + z->K) * z->D);
    drop(&w);
    int64_t n = z->copy / 4;
    add(&w, TUNE_F32, 0, n), add(&w, TUNE_F32, 0, n), add(&w, TUNE_F32, 0, n), add(&w, TUNE_F32, 0, n);
    struct tune_record *record = tune_record_new(dev, 1);
    if (status == 0 && (!record || tune_record_begin(record) < 0 || ready(&w, 4) < 0))
        status = fail("adamw");
    if (status == 0) {
        w.step = tune_record_step(record);
        status = tune_add_labels(dev, w.step, 1, 1) < 0 || tune_finish_step(dev, w.step, 0) < 0
                     ? fail("adamw") : moving("adamw", adamw, &w, 28.0 * (double)n);
    }
    tune_record_free(record);
    drop(&w);
    return status;
}

static int attentions(const struct sizes *z)
{
    int64_t N = (int64_t)z->B * z->T;
    double pairs = (double)z->B * z->H * z->T * (z->T + 1) / 2;
    struct work w = {.how = {0, 1 / sqrtf((float)z->D)}, .T = z->T, .H = z->H, .D = z->D};
    add(&w, TUNE_BF16, N, (int64_t)(z->H + 2 * z->K) * z->D), add(&w, TUNE_BF16, N, (int64_t)z->H * z->D);
    add(&w, TUNE_F32, N, z->H), add(&w, TUNE_BF16, N, (int64_t)z->H * z->D);
    add(&w, TUNE_BF16, N, (int64_t)(z->H + 2 * z->K) * z->D);
    int status = ready(&w, 5) < 0 ? fail("attention") : 0;
    if (status == 0)
        status = arithmetic("attention_forward, causal", attention, &w, 4 * pairs * z->D);
    if (status == 0)
        status = arithmetic("attention_backward, causal", attention_backward, &w, 10 * pairs * z->D);
    drop(&w);
    return status;
}

/* The device's own time of a step, the fastest. */
static int steps(const char *name)
{
    const struct gpu_case *k = gpu_case_named(name);
    const struct tune_done_step *done;
    struct gpu_step s;
    double best = 1e30, all = 0, begin, built, loss = 0;
    int n = 0, status = 0;
    begin = tune_clock_s();
    if (gpu_step_new(&s, dev, k) < 0 || tune_device_sync(dev) < 0) {
        gpu_step_free(&s);
        return fail(name);
    }
    built = tune_clock_s() - begin;
    for (begin = tune_clock_s(); status == 0 && (n < 4 || tune_clock_s() - begin < 5 * seconds); n += 4) {
        double from = tune_clock_s();
        for (int i = 0; i < 4 && status == 0; i++)
            status = gpu_step_run(&s);
        int read = status == 0 ? tune_record_read(s.record, &done) : -1;
        status = read == 4 ? 0 : -1;
        for (int i = 0; i < read; i++) {
            double took = done[i].end.wall_s - done[i].begin.wall_s;
            best = n + i > 0 && took < best ? took : best; /* the first one takes memory */
            loss = done[i].loss;
        }
        all = (tune_clock_s() - from) / 4;
    }
    if (status == 0) {
        double tokens = (double)s.batch.tokens, flops = tune_model_flops(s.m, k->text) * tokens;
        printf("%-24s %9.1f ms a step, %9.1f with the host's part; %9.0f tokens/s, %7.1f TFLOP/s, %.3f of the product; loss %.4f;"
               " %.1f GiB; made in %.1f s\n", name, 1e3 * best, 1e3 * all, tokens / all, flops / all / 1e12,
               flops / all / product_rate, loss, (double)dev->bytes_peak / 1073741824, built);
    }
    gpu_step_free(&s);
    return status == 0 ? 0 : fail(name);
}

int main(int argc, char **argv)
{
    const struct sizes *z = argc > 3 && strcmp(argv[3], "tiny") == 0 ? &tiny : &full;
    if (argc < 2) {
        puts("# bench_gpu DEVICE [SECONDS [tiny]]: rates of a GPU; sh tests/gpu.sh runs it");
        return 0;
    }
    if (argc > 2)
        seconds = atof(argv[2]);
    dev = tune_device_open(argv[1], 0);
    if (!dev) {
        fail(argv[1]);
        return 3;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("# %s: %s; the fastest of %.1f s each\n", dev->name, dev->description, seconds);
    if (argc > 3 && strcmp(argv[3], "none") == 0) {
        tune_device_close(dev);
        return 0;
    }
    int failed = products(z) < 0;
    failed += elementwise(z) < 0;
    failed += attentions(z) < 0;
    for (int i = 0; i < 2; i++)
        failed += steps(z->cases[i]) < 0;
    tune_device_close(dev);
    return failed > 0;
}
