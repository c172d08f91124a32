/* bench_gpu.c - rates of a GPU: one product, copying, element by element, attention, adapters, the loss, NF4, and whole training
 * steps of gpu_step.h, against the product's and the copy's rate. sh tests/gpu.sh runs it.
 *
 *     bench_gpu DEVICE [SECONDS of each figure (2) [WORD...]]
 *         none      only says what the device is         tiny       sizes to try the program out, on any device
 *         figures   no steps                             steps      no figures
 *         only=TEXT figures whose names have the text    case=NAME  steps of this case of gpu_step.h; it may be given twice
 *         layers=N  of the case's model                  count=N    so many steps, not SECONDS * 5
 *         logits=MIB  of logits at a time, not what the library takes
 *
 * A figure is the fastest of several batches of calls; the host waits once for each batch. */
#include "gpu_figure.h"

#include "core/nf4.h"

struct sizes {
    int64_t product, copy;   /* n of n x n x n; float32 numbers */
    int64_t rows, width, ffn; /* of activations */
    int64_t vocabulary, narrow_vocabulary, narrow; /* of llama3-8b; of smollm2-135m, and its width */
    int B, T, text, H, K, D; /* of attention */
    const char *cases[2];
};

static const struct sizes full = {8192, 1 << 28, 8192, 4096, 14336, 128256, 49152, 576, 4, 2048, 512, 32, 8, 128,
                                  {"llama3-8b-lora", "smollm2-135m-full"}};
static const struct sizes tiny = {32, 1 << 12, 32, 32, 48, 64, 64, 32, 1, 32, 16, 2, 1, 32, {"tiny-lora", "tiny-full"}};
enum { RANK = 16 };

/* ---- the calls ---- */

static int product(struct work *w) { return tune_gemm(dev, &w->t[0], &w->t[1], false, &w->t[2], true, 1, 0, TUNE_BF16); }
static int product_added(struct work *w) { return tune_gemm(dev, &w->t[0], &w->t[1], false, &w->t[2], true, 2, 1, TUNE_BF16); }
static int product_dx(struct work *w) { return tune_gemm(dev, &w->t[0], &w->t[1], false, &w->t[2], false, 1, 0, TUNE_BF16); }
static int product_dx_added(struct work *w) { return tune_gemm(dev, &w->t[0], &w->t[1], false, &w->t[2], false, 1, 1, TUNE_BF16); }
static int product_dw(struct work *w) { return tune_gemm(dev, &w->t[0], &w->t[1], true, &w->t[2], false, 1, 1, TUNE_BF16); }
static int copy(struct work *w) { return tune_copy(dev, &w->t[0], &w->t[1]); }
static int glu(struct work *w) { return tune_glu_forward(dev, &w->t[0], &w->t[1], TUNE_GATE_SILU); }
static int glu_backward(struct work *w) { return tune_glu_backward(dev, &w->t[0], &w->t[1], &w->t[2], TUNE_GATE_SILU); }
static int rmsnorm(struct work *w) { return tune_rmsnorm_forward(dev, &w->t[0], &w->t[1], &w->t[2], &w->t[3], 1e-5f, 0); }
static int rmsnorm_backward(struct work *w)
{
    return tune_rmsnorm_backward(dev, &w->t[0], NULL, &w->t[1], &w->t[2], &w->t[3], &w->t[4], 0);
}
static int rope(struct work *w) { return tune_rope(dev, &w->t[0], &w->t[1], NULL, w->T, w->H, w->D, false); }
static int adamw(struct work *w)
{
    struct tune_update params = {1, 0.9, 0.999, 1e-8, 0.01, 0};
    return tune_adamw(dev, &w->t[0], &w->t[1], &w->t[2], &w->t[3], w->step, params);
}
static int cross_entropy(struct work *w)
{
    return tune_cross_entropy_rows(dev, &w->t[0], w->step, NULL, &w->t[1], NULL, NULL, 0, true);
}
static int embed_backward(struct work *w) { return tune_embed_backward(dev, &w->t[0], &w->t[1], &w->t[2], 1); }

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
    return tune_attention_forward(dev, &w->t[1], &w->t[2], &q, &k, &v, w->starts, NULL, NULL, w->params);
}
static int attention_backward(struct work *w)
{
    int64_t B = w->t[0].shape[0] / w->T, K = kv_of(w);
    struct tune_tensor q = heads(w, 0, B, 0, w->H), k = heads(w, 0, B, w->H, K), v = heads(w, 0, B, w->H + K, K);
    struct tune_tensor dq = heads(w, 4, B, 0, w->H), dk = heads(w, 4, B, w->H, K), dv = heads(w, 4, B, w->H + K, K);
    return tune_attention_backward(dev, &dq, &dk, &dv, &w->t[3], &q, &k, &v, &w->t[1], &w->t[2], w->starts, w->params);
}

/* ---- the figures ---- */

static void products(const struct sizes *z)
{
    const int64_t shapes[][3] = {{z->product, z->product, z->product}, {z->rows, z->width, z->width},
                                 {z->rows, 2 * z->ffn, z->width}, {z->rows, z->width, z->ffn},
                                 {2 * z->rows, z->narrow, z->narrow}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        const int64_t *s = shapes[i];
        struct work w = {.reference = i == 0};
        char name[64];
        snprintf(name, sizeof name, "product %lldx%lldx%lld", (long long)s[0], (long long)s[1], (long long)s[2]);
        add(&w, TUNE_BF16, s[0], s[1]), add(&w, TUNE_BF16, s[0], s[2]), add(&w, TUNE_BF16, s[1], s[2]);
        figure(name, product, &w, 3, 2.0 * (double)s[0] * (double)s[1] * (double)s[2], 0);
        drop(&w);
    }
}

/* The six products of an adapter, A and B float32: h = x A^T, y += h B^T; dh = dy B, dx += dh A; dA += dh^T x, dB += dy^T h.
 * y and dy are half the columns of a wider matrix, as gate's and up's are. */
static void adapters(const struct sizes *z)
{
    struct part {
        const char *name;
        int (*call)(struct work *w);
        int c, a, b;
    };
    enum { X, H, Y, A, B, DA, DB };
    static const struct part parts[] = {{"rank_16 h = x A'", product, H, X, A}, {"rank_16 y += h B'", product_added, Y, H, B},
                                        {"rank_16 dh = dy B", product_dx, H, Y, B}, {"rank_16 dx += dh A", product_dx_added, X, H, A},
                                        {"rank_16 dA += dh' x", product_dw, DA, H, X}, {"rank_16 dB += dy' h", product_dw, DB, Y, H}};
    struct work all = {0};
    add(&all, TUNE_BF16, z->rows, z->width), add(&all, TUNE_BF16, z->rows, RANK), add(&all, TUNE_BF16, z->rows, 2 * z->ffn);
    add(&all, TUNE_F32, RANK, z->width), add(&all, TUNE_F32, z->ffn, RANK);
    add(&all, TUNE_F32, RANK, z->width), add(&all, TUNE_F32, z->ffn, RANK);
    bool filled = ready(&all, 7) == 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        const struct part *p = &parts[i];
        struct work w = {.count = 3, .filled = true, .t = {all.t[p->c], all.t[p->a], all.t[p->b]}};
        double bytes = 0;
        for (int k = 0; k < 3; k++) {
            if (w.t[k].shape[1] == 2 * z->ffn)
                w.t[k] = tune_tensor_columns(&w.t[k], z->ffn, z->ffn);
            bytes += (double)tune_tensor_elements(&w.t[k]) * tune_dtype_bits(w.t[k].dtype) / 8;
        }
        if (p->call != product && p->call != product_dx) /* what is added to is read too */
            bytes += (double)tune_tensor_elements(&w.t[0]) * tune_dtype_bits(w.t[0].dtype) / 8;
        figure(p->name, p->call, &w, filled ? 3 : -1, 0, bytes);
    }
    drop(&all);
}

static void elementwise(const struct sizes *z)
{
    double N = (double)z->rows, C = (double)z->width, F = (double)z->ffn;
    struct work w = {.reference = true};
    add(&w, TUNE_F32, 0, z->copy), add(&w, TUNE_F32, 0, z->copy);
    figure("copy, float32", copy, &w, 2, 0, 8.0 * (double)z->copy);
    drop(&w);
    w.reference = false;
    add(&w, TUNE_BF16, z->rows, z->ffn), add(&w, TUNE_BF16, z->rows, 2 * z->ffn);
    figure("glu_forward, bfloat16", glu, &w, 2, 0, 6 * N * F);
    drop(&w);
    add(&w, TUNE_BF16, z->rows, 2 * z->ffn), add(&w, TUNE_BF16, z->rows, z->ffn), add(&w, TUNE_BF16, z->rows, 2 * z->ffn);
    figure("glu_backward, bfloat16", glu_backward, &w, 3, 0, 10 * N * F);
    drop(&w);
    add(&w, TUNE_BF16, z->rows, z->width), add(&w, TUNE_F32, 0, z->rows), add(&w, TUNE_F32, z->rows, z->width);
    add(&w, TUNE_F32, 0, z->width);
    figure("rmsnorm_forward, float32 to bfloat16", rmsnorm, &w, 4, 0, 6 * N * C);
    drop(&w);
    add(&w, TUNE_F32, z->rows, z->width), add(&w, TUNE_BF16, z->rows, z->width), add(&w, TUNE_F32, z->rows, z->width);
    add(&w, TUNE_F32, 0, z->width), add(&w, TUNE_F32, 0, z->rows);
    figure("rmsnorm_backward, without dw", rmsnorm_backward, &w, 5, 0, 14 * N * C);
    drop(&w);
    w.T = z->T, w.H = z->H + z->K, w.D = z->D;
    add(&w, TUNE_BF16, (int64_t)z->B * z->T, (int64_t)(z->H + 2 * z->K) * z->D), add(&w, TUNE_F32, z->T, z->D);
    figure("rope, bfloat16", rope, &w, 2, 0, 4.0 * z->B * z->T * (z->H + z->K) * z->D);
    drop(&w);
}

static void optimizer(const struct sizes *z, tune_address step)
{
    struct work w = {.step = step};
    int64_t n = z->copy / 4;
    for (int i = 0; i < 4; i++)
        add(&w, TUNE_F32, 0, n);
    figure("adamw", adamw, &w, 4, 0, 28.0 * (double)n);
    drop(&w);
}

/* ids, one of `different` in turn: ids[i] = i * 7919 % different. */
static int fill_ids(const struct tune_tensor *ids, int64_t different)
{
    int32_t part[4096];
    for (int64_t at = 0; at < ids->shape[0]; at += 4096) {
        int64_t some = ids->shape[0] - at < 4096 ? ids->shape[0] - at : 4096;
        for (int64_t i = 0; i < some; i++)
            part[i] = (int32_t)((at + i) * 7919 % different);
        if (tune_device_upload(dev, tune_address_plus(ids->data, 4 * at), part, 4 * some) < 0)
            return -1;
    }
    return 0;
}

/* The projection on the vocabulary, its gradient, and cross entropy, for so many rows at a time. */
static void losses(const struct sizes *z, tune_address step)
{
    const int64_t rows[] = {128, 512, 2048};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t n = z == &tiny ? 16 << i : rows[i];
        double flops = 2.0 * (double)n * (double)z->vocabulary * (double)z->width;
        struct work w = {.step = step};
        char name[64];
        add(&w, TUNE_F32, n, z->vocabulary), add(&w, TUNE_BF16, n, z->width), add(&w, TUNE_BF16, z->vocabulary, z->width);
        snprintf(name, sizeof name, "lm_head, %lld rows", (long long)n);
        figure(name, product, &w, 3, flops, 0);
        struct work back = {.count = 3, .t = {w.t[1], w.t[0], w.t[2]}};
        snprintf(name, sizeof name, "lm_head dx, %lld rows", (long long)n);
        figure(name, product_dx, &back, w.count == 3 ? 3 : -1, flops, 0);
        drop(&w);
        add(&w, TUNE_F32, n, z->vocabulary), add(&w, TUNE_I32, 0, n);
        snprintf(name, sizeof name, "cross_entropy, %lld rows", (long long)n);
        bool filled = w.count == 2 && fill_ids(&w.t[1], z->vocabulary) == 0;
        figure(name, cross_entropy, &w, filled ? 2 : -1, 0, 8.0 * (double)n * (double)z->vocabulary);
        drop(&w);
    }
}

/* The gradient of the embedding: a token may come once, or in a quarter of all positions (as padding does). */
static void embeddings(const struct sizes *z)
{
    int64_t N = 2 * z->rows;
    for (int often = 0; often < 2; often++) {
        const char *name = often ? "embed_backward, four tokens" : "embed_backward, all tokens";
        struct work w = {0};
        add(&w, TUNE_F32, z->narrow_vocabulary, z->narrow), add(&w, TUNE_F32, N, z->narrow), add(&w, TUNE_I32, 0, N);
        bool filled = w.count == 3 && fill_ids(&w.t[2], often ? 4 : z->narrow_vocabulary) == 0;
        figure(name, embed_backward, &w, filled ? 3 : -1, 0, 12.0 * (double)N * (double)z->narrow);
        drop(&w);
    }
}

/* A product with a matrix in NF4. With 64 rows it is little more than the expansion of the matrix. */
static void quantized(const struct sizes *z)
{
    const int64_t rows[] = {64, z->rows};
    int64_t count = z->ffn * z->width, bytes = tune_nf4_bytes(count);
    struct tune_nf4_layout at = tune_nf4_layout(count);
    struct tune_nf4_part part = {tune_device_alloc(dev, bytes, "an NF4 matrix"), 0.1f, count, NULL};
    unsigned char *codes = (unsigned char *)malloc((size_t)bytes);
    bool filled = part.memory.at && codes;
    for (int64_t i = 0; filled && i < bytes; i++)
        codes[i] = (unsigned char)((uint64_t)i * 2654435761u >> 13);
    for (int64_t i = at.absmax2; filled && i + 4 <= bytes; i += 4)
        memcpy(codes + i, &(float){0.1f}, 4);
    filled = filled && tune_device_upload(dev, part.memory, codes, bytes) == 0;
    for (int i = 0; i < 2; i++) {
        struct work w = {0};
        char name[64];
        snprintf(name, sizeof name, "NF4 product %lldx%lldx%lld", (long long)rows[i], (long long)z->ffn, (long long)z->width);
        add(&w, TUNE_BF16, rows[i], z->ffn), add(&w, TUNE_BF16, rows[i], z->width);
        if (w.count == 2)
            w.t[w.count++] = tune_nf4_matrix(&part, z->ffn, z->width);
        figure(name, product, &w, filled ? 3 : -1, 2.0 * (double)rows[i] * (double)count, 0);
        w.count -= w.count == 3;
        drop(&w);
    }
    tune_device_free(dev, part.memory, bytes);
    free(codes);
}

/* Rows of one text each, and rows of several, where each query has a first visible key. */
static void attentions(const struct sizes *z)
{
    int64_t N = (int64_t)z->B * z->T;
    for (int packed = 0; packed < 2; packed++) {
        int text = packed ? z->text : z->T;
        double pairs = (double)z->B * z->H * z->T * (text + 1) / 2;
        struct work w = {.params = {0, 1 / sqrtf((float)z->D)}, .T = z->T, .H = z->H, .D = z->D};
        char name[64];
        add(&w, TUNE_BF16, N, (int64_t)(z->H + 2 * z->K) * z->D), add(&w, TUNE_BF16, N, (int64_t)z->H * z->D);
        add(&w, TUNE_F32, N, z->H), add(&w, TUNE_BF16, N, (int64_t)z->H * z->D);
        add(&w, TUNE_BF16, N, (int64_t)(z->H + 2 * z->K) * z->D), add(&w, TUNE_I32, 0, N);
        int32_t *starts = (int32_t *)malloc((size_t)N * 4);
        for (int64_t i = 0; starts && i < N; i++)
            starts[i] = (int32_t)(i % z->T / text * text);
        bool filled = w.count == 6 && starts && tune_device_upload(dev, w.t[5].data, starts, 4 * N) == 0;
        free(starts);
        w.starts = packed ? &w.t[5] : NULL;
        snprintf(name, sizeof name, "attention_forward, texts of %d", text);
        figure(name, attention, &w, filled ? 6 : -1, 4 * pairs * z->D, 0);
        snprintf(name, sizeof name, "attention_backward, texts of %d", text);
        figure(name, attention_backward, &w, filled ? 6 : -1, 10 * pairs * z->D, 0);
        drop(&w);
    }
}

static void figures(const struct sizes *z)
{
    products(z);
    elementwise(z);
    struct tune_record *record = tune_record_new(dev, 1);
    if (record && tune_record_begin(record) == 0 && tune_add_labels(dev, tune_record_step(record), 1, 1) == 0) {
        losses(z, tune_record_step(record));
        if (tune_finish_step(dev, tune_record_step(record), 0) < 0)
            fail("adamw, the end of a step");
        else
            optimizer(z, tune_record_step(record));
    } else {
        fail("the losses and adamw, a step's record");
    }
    tune_record_free(record);
    attentions(z);
    adapters(z);
    quantized(z);
    embeddings(z);
}

/* ---- steps ---- */

struct wanted {
    const char *cases[2];
    int layers, count; /* 0: the model's own; by time */
};

static void print_step(const struct gpu_step *s, const char *name, double best, double all, double loss, double built)
{
    double tokens = (double)s->batch.tokens, flops = tune_model_flops(s->m, s->text) * tokens;
    printf("%-24s %9.1f ms a step, %9.1f with the host's part; %9.0f tokens/s, %7.1f TFLOP/s", name, 1e3 * best, 1e3 * all,
           tokens / all, flops / all / 1e12);
    if (product_rate > 0)
        printf(", %.3f of the product", flops / all / product_rate);
    printf("; the fourth step's loss %.9g; logits of %lld rows at a time; %.2f GiB of tensors, %.1f MiB for graphs;"
           " made in %.1f s\n", loss, (long long)tune_model_logit_rows(s->dev, &s->config, s->batch.tokens),
           (double)dev->bytes_peak / 1073741824, (double)dev->graph_bytes / 1048576, built);
}

/* The device's own time of a step, the fastest. */
static void steps(const char *name, const struct wanted *wanted)
{
    const struct gpu_case *known = gpu_case_named(name);
    const struct tune_done_step *done;
    struct gpu_step s;
    double best = 1e30, all = 1e30, begin, built, loss = 0;
    int n = 0, status = 0;
    if (!known) {
        printf("%s: no such case\n", name);
        failed++;
        return;
    }
    struct gpu_case k = *known;
    k.layers = wanted->layers;
    begin = tune_clock_s();
    if (gpu_step_new(&s, dev, &k) < 0 || tune_device_sync(dev) < 0) {
        fail(name);
        gpu_step_free(&s);
        return;
    }
    built = tune_clock_s() - begin;
    begin = tune_clock_s();
    while (status == 0 && (wanted->count > 0 ? n < wanted->count : n < 4 || tune_clock_s() - begin < 5 * seconds)) {
        double from = tune_clock_s();
        int some = wanted->count > 0 && wanted->count - n < 4 ? wanted->count - n : 4;
        for (int i = 0; i < some && status == 0; i++)
            status = gpu_step_run(&s);
        int read = status == 0 ? tune_record_read(s.record, &done) : -1;
        status = read == some ? 0 : -1;
        for (int i = 0; i < read; i++) {
            double took = done[i].end.wall_s - done[i].begin.wall_s;
            best = (n + i > 0 || wanted->count == 1) && took < best ? took : best; /* the first one takes memory */
            loss = n + i < 4 ? done[i].loss : loss;
        }
        double each = (tune_clock_s() - from) / some;
        all = each < all ? each : all;
        n += some;
    }
    if (status == 0)
        print_step(&s, name, best, all, loss, built);
    else
        fail(name);
    gpu_step_free(&s);
}

int main(int argc, char **argv)
{
    const struct sizes *z = &full;
    struct wanted wanted = {{NULL, NULL}, 0, 0};
    bool none = false, no_steps = false, no_figures = false, bad = false;
    int cases = 0;
    if (argc < 2) {
        puts("# bench_gpu DEVICE [SECONDS [WORD...]]: rates of a GPU; sh tests/gpu.sh runs it. tests/bench/bench_gpu.c has the words");
        return 0;
    }
    if (argc > 2)
        seconds = atof(argv[2]);
    for (int i = 3; i < argc; i++) {
        const char *word = argv[i], *equals = strchr(word, '='), *value = equals ? equals + 1 : "";
        if (strcmp(word, "tiny") == 0) z = &tiny;
        else if (strcmp(word, "none") == 0) none = true;
        else if (strcmp(word, "figures") == 0) no_steps = true;
        else if (strcmp(word, "steps") == 0) no_figures = true;
        else if (strncmp(word, "only=", 5) == 0) only = value;
        else if (strncmp(word, "case=", 5) == 0 && cases < 2) wanted.cases[cases++] = value;
        else if (strncmp(word, "layers=", 7) == 0) wanted.layers = atoi(value);
        else if (strncmp(word, "logits=", 7) == 0) gpu_step_logits = (int64_t)(atof(value) * 1048576);
        else if (strncmp(word, "count=", 6) == 0) wanted.count = atoi(value);
        else bad = true;
        if (bad) {
            printf("bench_gpu: no word \"%s\"; tests/bench/bench_gpu.c has them\n", word);
            return 2;
        }
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    dev = tune_device_open(argv[1], 0);
    if (!dev) {
        fail(argv[1]);
        return 3;
    }
    printf("# %s: %s; the fastest of %.2g s each\n", dev->name, dev->description, seconds);
    if (!none && !no_figures)
        figures(z);
    for (int i = 0; i < (cases ? cases : 2) && !none && !no_steps; i++)
        steps(cases ? wanted.cases[i] : z->cases[i], &wanted);
    if (*dev->met)
        printf("# warning: device: %s\n", dev->met);
    tune_device_close(dev);
    return failed > 0;
}
