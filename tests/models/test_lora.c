/* test_lora.c - adapters: each product against float64 loops, whole models against merged ones and central differences. */
#include "values.h"
#include "far/far.h"

#include "core/random.h"
#include "devices/ops.h"
#include "losses/loss.h"
#include "models/activations.h"
#include "models/cache.h"
#include "models/lora.h"

static const char *const folders[] = {"tests/reference/llama-biases", "tests/reference/qwen2", "tests/reference/qwen3",
                                      "tests/reference/granite", "tests/reference/smollm3", "tests/reference/olmo2",
                                      "tests/reference/gemma3", "tests/reference/phi3"};
enum { FOLDERS = sizeof folders / sizeof *folders, B = 2, T = 7, N = B * T };

/* Every option by itself and with the others. */
static const struct tune_lora_options cases[] = {
    {.r = 4, .alpha = 8, .targets = "all-linear"},
    {.r = 4, .alpha = 8, .targets = "all-linear", .rslora = true},
    {.r = 3, .alpha = 8, .targets = "all-linear", .dropout = .25},
    {.r = 4, .alpha = 8, .targets = "all-linear", .dora = true},
    {.r = 3, .alpha = 5, .targets = "all-linear", .dora = true, .dropout = .25, .rslora = true},
    {.r = 4, .alpha = 8, .targets = "q_proj,v_proj", .rank_pattern = "v_proj=7", .alpha_pattern = "layers.0.self_attn.q_proj=3"},
    {.r = 4, .alpha = 8, .targets = "k_proj,up_proj,layers.1.mlp.down_proj", .dora = true, .dropout = .5,
     .rank_pattern = "k_proj=1"},
    {.r = 2, .alpha = 2, .targets = "all-linear", .layers = "1", .dropout = .1},
    {.r = 2, .alpha = 2, .targets = "layers.1.mlp.up_proj,layers.1.mlp.down_proj"},
    {.r = 2, .alpha = 2, .targets = "layers.0.self_attn.o_proj,layers.1.mlp.gate_proj", .dora = true},
    {.r = 2, .alpha = 4, .targets = "q_proj,down_proj", .modules_to_save = "lm_head,embed_tokens"},
    {.r = 2, .alpha = 4, .targets = "layers.1.mlp.down_proj", .dropout = .1, .modules_to_save = "embed_tokens"},
    {.r = 2, .alpha = 4, .targets = "layers.1.mlp.down_proj", .modules_to_save = "lm_head"},
};
enum { CASES = sizeof cases / sizeof *cases };

/* The same for a family that has one module for queries, keys and values, and one for gate and up (phi3). */
static const struct tune_lora_options fused_cases[CASES] = {
    {.r = 4, .alpha = 8, .targets = "all-linear"},
    {.r = 4, .alpha = 8, .targets = "all-linear", .rslora = true},
    {.r = 3, .alpha = 8, .targets = "all-linear", .dropout = .25},
    {.r = 4, .alpha = 8, .targets = "all-linear", .dora = true},
    {.r = 3, .alpha = 5, .targets = "all-linear", .dora = true, .dropout = .25, .rslora = true},
    {.r = 4, .alpha = 8, .targets = "qkv_proj,o_proj", .rank_pattern = "o_proj=7", .alpha_pattern = "layers.0.self_attn.qkv_proj=3"},
    {.r = 4, .alpha = 8, .targets = "qkv_proj,gate_up_proj,layers.1.mlp.down_proj", .dora = true, .dropout = .5,
     .rank_pattern = "qkv_proj=1"},
    {.r = 2, .alpha = 2, .targets = "all-linear", .layers = "1", .dropout = .1},
    {.r = 2, .alpha = 2, .targets = "layers.1.mlp.gate_up_proj,layers.1.mlp.down_proj"},
    {.r = 2, .alpha = 2, .targets = "layers.0.self_attn.o_proj,layers.1.mlp.gate_up_proj", .dora = true},
    {.r = 2, .alpha = 4, .targets = "qkv_proj,down_proj", .modules_to_save = "lm_head,embed_tokens"},
    {.r = 2, .alpha = 4, .targets = "layers.1.mlp.down_proj", .dropout = .1, .modules_to_save = "embed_tokens"},
    {.r = 2, .alpha = 4, .targets = "layers.1.mlp.down_proj", .modules_to_save = "lm_head"},
};

static const struct tune_lora_options *case_of(int folder, int c)
{
    return strstr(folders[folder], "phi3") ? &fused_cases[c] : &cases[c];
}

static double noise(uint64_t stream, int64_t i)
{
    return tune_random_normal(7, stream, (uint64_t)i);
}

static struct tune_model *open_model(const char *folder, struct tune_device *dev, const struct tune_lora_options *o, int what)
{
    struct tune_model *m = tune_model_load_frozen(folder, dev, TUNE_F32, TUNE_F32);
    assert_got(m);
    assert_ok(tune_lora_add(m, o, 42));
    assert_ok(tune_model_reserve(m, B, T, TUNE_FOR_TRAINING | what));
    for (int i = m->parameters.base; i < m->parameters.count; i++) { /* B is 0, which would hide A's gradient */
        const struct tune_parameter *p = &m->parameters.at[i];
        float *w = values(m, p, TUNE_WEIGHT);
        for (int64_t k = 0; k < p->count; k++)
            w[k] = (float)(p->ndim == 2 ? .2 * noise((uint64_t)i, k) : w[k] * (1 + .3 * noise((uint64_t)i, k)));
        set_values(m, p, TUNE_WEIGHT, w);
        free(w);
    }
    return m;
}

static int ascending(const void *a, const void *b)
{
    double d = *(const double *)a - *(const double *)b;
    return (d > 0) - (d < 0);
}

/* A base without a folder, as one that was read: nothing is trained but the adapters. */
static void new_base(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    assert_got(dev);
    for (int f = 0; f < FOLDERS; f++) {
        struct tune_model *read = tune_model_load_frozen(folders[f], dev, TUNE_F32, TUNE_BF16);
        assert_got(read);
        struct tune_model *m = tune_model_new_frozen(tune_model_config(read), dev, TUNE_F32, TUNE_BF16);
        assert_got(m);
        assert_int_equal(m->parameters.count, read->parameters.count);
        assert_int_equal(m->parameters.weights, read->parameters.weights);
        for (int i = 0; i < m->parameters.count; i++) {
            const struct tune_parameter *p = &m->parameters.at[i];
            assert_false(p->trainable);
            assert_int_equal(p->storage, p->ndim == 2 ? TUNE_BF16 : TUNE_F32);
            float *w = values(m, p, TUNE_WEIGHT);
            for (int64_t k = 0; k < p->count; k++)
                assert_float_equal(w[k], tune_parameter_is_norm(p) ? 1 - m->config.norm_plus : 0, 0);
            free(w);
        }
        assert_ok(tune_lora_add(m, &cases[0], 42));
        assert_true(tune_parameters_trainable(&m->parameters) > 0);
        tune_model_free(m);
        assert_null(tune_model_new_frozen(tune_model_config(read), dev, TUNE_F32, TUNE_F16));
        tune_model_free(read);
    }
    tune_device_close(dev);
}

/* ---- one linear layer ---- */

struct arrays {
    double *x, *y, *dy, *dx, *d, *v, *keep; /* keep [N,in]: 0 or 1/(1-p) */
    const float *bias;                      /* [all]; NULL: none */
};

static void fill(double *to, uint64_t stream, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)noise(stream, i);
}

static float *narrow(const double *from, int64_t n)
{
    float *to = malloc((size_t)n * 4);
    for (int64_t i = 0; i < n; i++)
        to[i] = (float)from[i];
    return to;
}

static double worst;
static void same(const char *what, const float *got, const double *want, int64_t n)
{
    double d = 0, s = 0;
    for (int64_t i = 0; i < n; i++) {
        d += (got[i] - want[i]) * (got[i] - want[i]);
        s += want[i] * want[i];
    }
    double error = s > 0 ? sqrt(d / s) : sqrt(d);
    worst = error > worst ? error : worst;
    if (!(error <= 3e-6))
        fail_msg("%s: off by %g", what, error);
}

/* A gradient on the device. */
static void same_gradient(const char *what, struct tune_model *m, int row, const double *want)
{
    const struct tune_parameter *p = &m->parameters.at[row];
    float *got = values(m, p, TUNE_GRADIENT);
    same(what, got, want, p->count);
    free(got);
}

/* One module of a linear layer, columns [at, at + out): y, dx and the gradients of its adapter by the formulas of lora.h. */
static void member(struct tune_model *m, const struct linear *p, int base, const struct lora_target *t, int64_t at, int64_t in,
                   int64_t all, struct arrays *a)
{
    const struct tune_parameter *rows = m->parameters.at;
    int64_t out = rows[base].shape[0], r = t ? t->r : 0;
    bool dora = t && t->magnitude >= 0;
    float *w = values(m, &rows[base], TUNE_WEIGHT);
    float *A = t ? values(m, &rows[t->a], TUNE_WEIGHT) : NULL;
    float *Bm = t ? values(m, &rows[t->b], TUNE_WEIGHT) : NULL;
    float *magnitude = dora ? values(m, &rows[t->magnitude], TUNE_WEIGHT) : NULL;
    double s = t ? t->scale : 0, *dA = calloc((size_t)(r * in + 1), 8),
           *dB = calloc((size_t)(out * r + 1), 8), *dm = calloc((size_t)out, 8);
    for (int64_t o = 0; o < out; o++) {
        double l = 0, g = 1;
        for (int64_t i = 0; i < in; i++) {
            a->v[i] = 0;
            for (int64_t k = 0; k < r; k++)
                a->v[i] += s * Bm[o * r + k] * A[k * in + i];
            l += (w[o * in + i] + a->v[i]) * (w[o * in + i] + a->v[i]);
        }
        if (dora)
            g = magnitude[o] / sqrt(l);
        for (int64_t n = 0; n < N; n++) {
            double dy = p->scale * a->dy[n * all + at + o], u = 0, sum = 0;
            for (int64_t i = 0; i < in; i++) {
                double x = a->x[n * in + i], k = t ? a->keep[n * in + i] : 0, d = x * k;
                sum += w[o * in + i] * x + (g - 1) * w[o * in + i] * d + g * a->v[i] * d;
                u += (w[o * in + i] + a->v[i]) * d;
                a->dx[n * in + i] += dy * (w[o * in + i] + k * ((g - 1) * w[o * in + i] + g * a->v[i]));
                for (int64_t j = 0; j < r; j++) {
                    dA[j * in + i] += dy * g * s * Bm[o * r + j] * d;
                    dB[o * r + j] += dy * g * s * A[j * in + i] * d;
                }
            }
            a->y[n * all + at + o] += p->scale * (sum + (a->bias ? a->bias[at + o] : 0));
            dm[o] += dora ? dy * u / sqrt(l) : 0;
        }
    }
    if (t) {
        same_gradient("dA", m, t->a, dA);
        same_gradient("dB", m, t->b, dB);
    }
    if (dora)
        same_gradient("dmagnitude", m, t->magnitude, dm);
    free(w), free(magnitude), free(A), free(Bm);
    free(dA), free(dB), free(dm);
}

/* What the kernel keeps of ones. */
static void read_mask(struct tune_model *m, const struct linear *p, double *keep, int64_t in)
{
    struct tune_dropout drop = {42, m->past_steps, p->layer, (int)p->which, m->lora->options.dropout};
    float *ones = malloc((size_t)(N * in) * 4);
    for (int64_t i = 0; i < N * in; i++)
        ones[i] = 1;
    struct tune_tensor t = put_tensor(m->dev, N, in, ones);
    if (m->pass.dropout)
        assert_ok(tune_dropout(m->dev, &t, &t, m->step_at, drop, 0, 0, 1));
    float *kept = get_tensor(m->dev, &t);
    for (int64_t i = 0; i < N * in; i++)
        keep[i] = kept[i];
    drop_tensor(m->dev, &t);
    free(ones), free(kept);
}

static float *nans(int64_t n)
{
    float *v = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = NAN;
    return v;
}

static void one_linear(struct tune_model *m, int layer, enum tune_layer_linear which, bool biased)
{
    const struct lora_group *g = &m->lora->group[layer * TUNE_LINEARS + which];
    static const char *const parted[TUNE_LINEARS][3] = {
        {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
        {"self_attn.o_proj"},
        {"mlp.gate_proj", "mlp.up_proj"},
        {"mlp.down_proj"},
    };
    static const char *const whole[TUNE_LINEARS][3] = {{"self_attn.qkv_proj"}, {"self_attn.o_proj"}, {"mlp.gate_up_proj"}, {"mlp.down_proj"}};
    const char *const(*names)[3] = strcmp(m->config.family, "phi3") ? parted : whole;
    int64_t in = g->in, all = g->out, big = N * (in > all ? in : all);
    struct arrays a;
    for (double **p = &a.x; p <= &a.keep; p++)
        *p = calloc((size_t)big, 8);
    a.bias = NULL;
    char name[96];
    snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, names[which][0]);
    struct tune_parameter *first = tune_parameters_find(&m->parameters, name);
    assert_ok(tune_unit_take(m, first->unit));
    struct tune_tensor w = tune_model_tensor(m, first, TUNE_WEIGHT);
    w.shape[0] = all;
    float *some = malloc((size_t)all * 4);
    for (int64_t i = 0; i < all; i++)
        some[i] = (float)noise(99, i);
    struct tune_tensor bias = put_tensor(m->dev, 0, all, some);
    struct linear p = {&m->pass, layer, which, &w, biased ? &bias : NULL, NULL, NULL, biased ? .5f : 1};
    a.bias = biased ? some : NULL;
    fill(a.x, 1, N * in);
    fill(a.y, 2, N * all);
    fill(a.dy, 3, N * all);
    float *x = narrow(a.x, N * in), *r = narrow(a.y, N * all), *y = nans(N * all), *dy = narrow(a.dy, N * all), *dx = narrow(a.dx, N * in);
    struct tune_tensor tx = put_tensor(m->dev, N, in, x), ty = put_tensor(m->dev, N, all, y);
    struct tune_tensor tr = put_tensor(m->dev, N, all, r);
    struct tune_tensor tdy = put_tensor(m->dev, N, all, dy), tdx = put_tensor(m->dev, N, in, dx);
    const struct tune_tensor *mine[] = {&bias, &tx, &ty, &tr, &tdy, &tdx};
    if (!biased)
        memset(a.y, 0, (size_t)(N * all) * 8);
    assert_ok(tune_model_zero_grad(m, NULL));
    m->B = B;
    m->T = T;
    m->step_at = m->own_step;
    for (int i = 0; i < 3; i++)
        assert_ok(tune_begin_pass(m->dev, m->step_at, 1));
    m->pass.dropout = m->lora->options.dropout > 0;
    assert_ok(tune_model_linear_forward(m, &p, &ty, &tx, biased ? &tr : NULL));
    assert_ok(tune_model_linear_backward(m, &p, &tdx, &tdy, &tx));
    assert_ok(tune_unit_release(m, first->unit));
    read_mask(m, &p, a.keep, in);
    int64_t at = 0;
    for (int i = 0; i < 3 && names[which][i]; i++) {
        snprintf(name, sizeof name, "model.layers.%d.%s.weight", layer, names[which][i]);
        int base = (int)(tune_parameters_find(&m->parameters, name) - m->parameters.at);
        const struct lora_target *t = NULL;
        for (int k = 0; k < g->count; k++)
            t = g->target[k].base == base ? &g->target[k] : t;
        member(m, &p, base, t, at, in, all, &a);
        at += m->parameters.at[base].shape[0];
    }
    assert_int_equal(at, all);
    float *got_y = get_tensor(m->dev, &ty), *got_dx = get_tensor(m->dev, &tdx);
    same("y", got_y, a.y, N * all);
    same("dx", got_dx, a.dx, N * in);
    for (double **d = &a.x; d <= &a.keep; d++)
        free(*d);
    for (int i = 0; i < 6; i++)
        drop_tensor(m->dev, mine[i]);
    free(x), free(r), free(y), free(dy), free(dx), free(some), free(got_y), free(got_dx);
}

static void products(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    for (int f = 0; f < FOLDERS; f++)
        for (int c = 0; c < CASES; c++) {
            struct tune_model *m = open_model(folders[f], dev, case_of(f, c), 0);
            for (int which = 0; which < TUNE_LINEARS; which++) {
                one_linear(m, 1, (enum tune_layer_linear)which, false);
                one_linear(m, 0, (enum tune_layer_linear)which, true);
            }
            tune_model_free(m);
        }
    tune_device_close(dev);
    print_message("# products: worst %.1e\n", worst);
}

/* ---- whole models ---- */

struct run {
    struct tune_model *m;
    struct tune_loss *loss;
    struct tune_batch batch;
    int32_t ids[N], labels[N], lengths[B];
};

static void start(struct run *r, struct tune_model *m)
{
    r->m = m;
    r->loss = tune_loss_new(m, true);
    assert_got(r->loss);
    for (int i = 0; i < N; i++) {
        r->ids[i] = (int32_t)(tune_random_u64(5, 0, (uint64_t)i) % (uint64_t)m->config.vocabulary);
        r->labels[i] = i % 5 == 4 ? TUNE_NO_LABEL : (int32_t)(tune_random_u64(5, 1, (uint64_t)i) % (uint64_t)m->config.vocabulary);
    }
    r->lengths[0] = r->lengths[1] = T;
    r->batch = (struct tune_batch){.B = B, .T = T, .ids = r->ids, .labels = r->labels, .lengths = r->lengths, .tokens = N};
    for (int i = 0; i < N; i++)
        r->batch.label_count += r->labels[i] != TUNE_NO_LABEL;
}

static void stop(struct run *r)
{
    tune_loss_free(r->loss);
    tune_model_free(r->m);
}

/* The loss sum in pass number pass of the first step. */
static double loss_of(struct run *r, int64_t pass, bool infer)
{
    struct tune_tensor *hidden;
    double sum = 0;
    tune_model_set_step(r->m, 1);
    struct tune_scalars s = {.pass = (double)pass};
    r->m->step_at = r->m->own_step;
    r->m->past_steps = 1;
    assert_ok(tune_device_upload(r->m->dev, r->m->step_at, &s, sizeof s));
    assert_ok(infer ? tune_model_infer(r->m, &r->batch, &hidden) : tune_model_forward(r->m, &r->batch, &hidden));
    assert_ok(tune_loss_forward(r->loss, hidden, &r->batch, &sum));
    return sum;
}

/* The loss sums of the next steps, counted by a record. */
static void losses_of(struct run *r, struct tune_record *record, int steps, double *losses)
{
    struct tune_tensor *hidden;
    for (int i = 0; i < steps; i++) {
        losses[i] = 0;
        assert_ok(tune_model_zero_grad(r->m, record));
        assert_ok(tune_model_forward(r->m, &r->batch, &hidden));
        assert_ok(tune_loss_forward(r->loss, hidden, &r->batch, &losses[i]));
    }
}

/* Dropout depends on the number of the step alone, also in a resumed run. */
static void dropping_goes_on(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    double first[3], then[3];
    for (int on = 0; on < 2; on++) {
        struct tune_record *record = tune_record_new(dev, 1);
        struct run r;
        assert_got(record);
        start(&r, open_model(folders[0], dev, &cases[2], TUNE_FOR_TRAINING));
        if (on)
            tune_model_set_step(r.m, 1);
        losses_of(&r, record, 3, on ? then : first);
        tune_record_free(record);
        stop(&r);
    }
    assert_true(first[0] != first[1] && first[1] != first[2] && first[0] != first[2]);
    assert_true(then[0] == first[1] && then[1] == first[2]);
    tune_device_close(dev);
}

static void gradients(struct run *r)
{
    struct tune_tensor *hidden, *dhidden;
    tune_model_set_step(r->m, 0);
    assert_ok(tune_model_zero_grad(r->m, NULL));
    for (int i = 0; i < 2; i++) {
        assert_ok(tune_model_forward(r->m, &r->batch, &hidden));
        assert_ok(tune_loss_forward_backward(r->loss, hidden, &r->batch, NULL, &dhidden));
        assert_ok(tune_model_backward(r->m, &r->batch, dhidden));
    }
}

/* The model with its adapters folded into the matrices, trained in full: what it gives is known to be right. */
static struct tune_model *merged(const char *folder, struct tune_model *from)
{
    struct tune_model_config config = from->config;
    config.tied = config.tied && !from->lora->options.modules_to_save;
    struct tune_model *m = config.tied ? tune_model_load(folder, from->dev, TUNE_F32) : tune_model_new(&config, from->dev, TUNE_F32);
    assert_got(m);
    assert_ok(tune_model_reserve(m, B, T, TUNE_FOR_TRAINING));
    for (int i = 0; i < m->parameters.count && !config.tied; i++) {
        const struct tune_parameter *p = &m->parameters.at[i];
        const struct tune_parameter *q = p->role == TUNE_EMBEDDING ? tune_model_embedding(from)
                                         : p->role == TUNE_OUTPUT  ? tune_model_output(from) : &from->parameters.at[i];
        float *w = values(from, q, TUNE_WEIGHT);
        set_values(m, p, TUNE_WEIGHT, w);
        free(w);
    }
    for (int i = 0; i < from->config.layers * TUNE_LINEARS; i++)
        for (int k = 0; k < from->lora->group[i].count; k++) {
            const struct lora_target *t = &from->lora->group[i].target[k];
            const struct tune_parameter *rows = from->parameters.at;
            bool dora = t->magnitude >= 0;
            float *A = values(from, &rows[t->a], TUNE_WEIGHT);
            float *Bm = values(from, &rows[t->b], TUNE_WEIGHT);
            float *magnitude = dora ? values(from, &rows[t->magnitude], TUNE_WEIGHT) : NULL;
            float *w = values(m, &m->parameters.at[t->base], TUNE_WEIGHT);
            int64_t in = from->lora->group[i].in;
            for (int64_t o = 0; o < t->out; o++) {
                double l = 0, v[4096];
                for (int64_t c = 0; c < in; c++) {
                    v[c] = w[o * in + c];
                    for (int j = 0; j < t->r; j++)
                        v[c] += (double)t->scale * Bm[o * t->r + j] * A[j * in + c];
                    l += v[c] * v[c];
                }
                double g = magnitude ? magnitude[o] / sqrt(l) : 1;
                for (int64_t c = 0; c < in; c++)
                    w[o * in + c] = (float)(g * v[c]);
            }
            set_values(m, &m->parameters.at[t->base], TUNE_WEIGHT, w);
            free(A), free(Bm), free(magnitude), free(w);
        }
    return m;
}

static void against_merged(void **state)
{
    (void)state;
    double most = 0;
    struct tune_device *dev = test_device(2);
    for (int f = 0; f < FOLDERS; f++)
        for (int c = 0; c < CASES; c++) {
            struct run a, b;
            start(&a, open_model(folders[f], dev, case_of(f, c), 0));
            start(&b, merged(folders[f], a.m));
            double x = loss_of(&a, 0, true), y = loss_of(&b, 0, true);
            most = test_worse(most, fabs(x / y - 1));
            assert_true(fabs(x / y - 1) < 2e-6);
            if (case_of(f, c)->dropout > 0)
                assert_true(fabs(loss_of(&a, 0, false) / y - 1) > 1e-5);
            stop(&a);
            stop(&b);
        }
    tune_device_close(dev);
    print_message("# against merged models: losses %.1e\n", most);
}

/* What central_differences moves: vectors or matrices, the adapters' rows of one kind. */
static bool moves(const struct tune_parameters *p, int row, bool vectors)
{
    return (p->at[row].ndim == 1) == vectors;
}

static double squares_of_gradient(struct tune_model *m, bool vectors)
{
    const struct tune_parameters *p = &m->parameters;
    double size = 0;
    for (int i = p->base; i < p->count; i++)
        if (moves(p, i, vectors)) {
            float *g = values(m, &p->at[i], TUNE_GRADIENT);
            for (int64_t k = 0; k < p->at[i].count; k++)
                size += (double)g[k] * g[k];
            free(g);
        }
    return size;
}

/* Weights by that much along the gradient. */
static void move(struct tune_model *m, bool vectors, double by)
{
    const struct tune_parameters *p = &m->parameters;
    for (int i = p->base; i < p->count; i++)
        if (moves(p, i, vectors)) {
            float *g = values(m, &p->at[i], TUNE_GRADIENT), *w = values(m, &p->at[i], TUNE_WEIGHT);
            for (int64_t k = 0; k < p->at[i].count; k++)
                w[k] += (float)(by * g[k]);
            set_values(m, &p->at[i], TUNE_WEIGHT, w);
            free(g), free(w);
        }
}

/* Along the gradient of A and B together, or of the magnitudes; DoRA's norm is a constant for A and
 * B, which differences do not know. */
static void central_differences(void **state)
{
    (void)state;
    double most = 0;
    struct tune_device *dev = test_device(2);
    for (int f = 0; f < FOLDERS; f++)
        for (int c = 0; c < CASES; c++) {
            struct run r;
            start(&r, open_model(folders[f], dev, case_of(f, c), 0));
            gradients(&r);
            double by_gradient = sqrt(squares_of_gradient(r.m, case_of(f, c)->dora)), loss[2] = {0, 0};
            for (int side = 0; side < 2; side++) {
                move(r.m, case_of(f, c)->dora, (side ? -2 : 1) * 4e-4 / by_gradient);
                loss[side] = loss_of(&r, 0, false) + loss_of(&r, 1, false);
            }
            double difference = (loss[0] - loss[1]) / 8e-4, error = fabs(difference / by_gradient - 1);
            most = test_worse(most, error);
            if (!(error < 5e-3))
                fail_msg("%s, case %d: gradient %g, difference %g", folders[f], c, by_gradient, difference);
            stop(&r);
        }
    tune_device_close(dev);
    print_message("# central differences: %.1e\n", most);
}

/* Twice, and with checkpointing: the same bits. */
static void same_bits(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    for (int f = 0; f < FOLDERS; f++)
        for (int c = 0; c < CASES; c++) {
            struct run r[3];
            for (int i = 0; i < 3; i++) {
                start(&r[i], open_model(folders[f], dev, case_of(f, c), i == 2 ? TUNE_CHECKPOINTING : 0));
                gradients(&r[i]);
                int64_t held = dev->bytes;
                gradients(&r[i]);
                assert_int_equal(dev->bytes, held);
            }
            for (int i = 1; i < 3; i++) {
                float *x = all_state(r[0].m, TUNE_GRADIENT), *y = all_state(r[i].m, TUNE_GRADIENT);
                assert_memory_equal(x, y, (size_t)r[0].m->parameters.gradients * 4);
                free(x), free(y);
            }
            for (int i = 0; i < 3; i++)
                stop(&r[i]);
        }
    tune_device_close(dev);
}

/* Rows one behind the other in packs give the loss and the gradients of the rows by themselves. (A mask of dropout goes by the
 * place in the batch, so packs draw others: without it.) */
enum { TEXTS = 4 };
static const int text_length[TEXTS] = {3, 4, 6, 1};

static void lay(struct run *r, int text, int at, int32_t *positions, int32_t *starts)
{
    for (int i = 0; i < text_length[text]; i++) {
        r->ids[at + i] = (int32_t)(tune_random_u64(9, (uint64_t)text, (uint64_t)i) % (uint64_t)r->m->config.vocabulary);
        r->labels[at + i] = TUNE_NO_LABEL;
        if (i > 0 && (text + i) % 3)
            r->labels[at + i - 1] = r->ids[at + i];
        positions[at + i] = i;
        starts[at + i] = at % T;
    }
}

static double loss_and_gradients(struct run *r)
{
    struct tune_tensor *hidden, *dhidden;
    double sum = 0;
    r->batch.label_count = 0;
    for (int i = 0; i < r->batch.B * r->batch.T; i++)
        r->batch.label_count += r->labels[i] != TUNE_NO_LABEL;
    assert_ok(tune_model_forward(r->m, &r->batch, &hidden));
    assert_ok(tune_loss_forward(r->loss, hidden, &r->batch, &sum));
    assert_ok(tune_model_forward(r->m, &r->batch, &hidden));
    assert_ok(tune_loss_forward_backward(r->loss, hidden, &r->batch, NULL, &dhidden));
    assert_ok(tune_model_backward(r->m, &r->batch, dhidden));
    return sum;
}

/* Passes alternate on one model: what a training step computes does not depend on what came before it. */
static void passes_alternate(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    for (int f = 0; f < FOLDERS; f++)
        for (int dropout = 0; dropout < 2; dropout++) {
            struct tune_lora_options o = {.r = 3, .alpha = 8, .targets = "all-linear", .dropout = dropout ? .25 : 0, .modules_to_save = "lm_head"};
            double sums[2];
            struct tune_tensor *hidden;
            for (int between = 0; between < 2; between++) {
                struct run r;
                start(&r, open_model(folders[f], dev, &o, TUNE_FOR_TRAINING));
                assert_ok(tune_model_zero_grad(r.m, NULL));
                sums[between] = loss_and_gradients(&r);
                struct tune_cache *c = tune_cache_new(r.m, 1, T);
                assert_got(c);
                if (between) {
                    float *logits;
                    assert_ok(tune_cache_begin(c, 1, NULL));
                    assert_ok(tune_cache_forward(c, r.ids, T - 1));
                    assert_ok(tune_cache_logits(c, &logits));
                    assert_ok(tune_model_infer_base(r.m, &r.batch, &hidden));
                    assert_int_equal(tune_model_backward(r.m, &r.batch, hidden), -1);
                    assert_error_has("the model's last pass was an inference");
                }
                assert_ok(tune_model_zero_grad(r.m, NULL));
                sums[between] += loss_and_gradients(&r);
                struct tune_tensor g = tune_model_state(r.m, TUNE_GRADIENT);
                float *numbers = get_tensor(dev, &g);
                for (int64_t i = 0; i < g.shape[0]; i++)
                    sums[between] += (double)numbers[i] * (double)(i % 7 + 1);
                free(numbers);
                tune_cache_free(c);
                stop(&r);
            }
            assert_true(sums[0] == sums[1]);
        }
    tune_device_close(dev);
}

static void packing(void **state)
{
    (void)state;
    double worst = 0;
    struct tune_device *dev = test_device(2);
    for (int f = 0; f < FOLDERS; f++)
        for (int c = 0; c < 2 * CASES; c++) {
            struct tune_lora_options o = *case_of(f, c % CASES);
            struct run r;
            int32_t positions[N], starts[N];
            double apart = 0, packed, e = 0, size = 0;
            o.dropout = 0;
            start(&r, open_model(folders[f], dev, &o, c < CASES ? 0 : TUNE_CHECKPOINTING));
            size_t count = (size_t)r.m->parameters.gradients;
            assert_ok(tune_model_zero_grad(r.m, NULL));
            for (int k = 0; k < TEXTS; k++) {
                lay(&r, k, 0, positions, starts);
                int n = text_length[k];
                r.batch = (struct tune_batch){.B = 1, .T = n, .ids = r.ids, .labels = r.labels, .lengths = &n, .tokens = n};
                apart += loss_and_gradients(&r);
            }
            float *want = all_state(r.m, TUNE_GRADIENT);
            assert_ok(tune_model_zero_grad(r.m, NULL));
            for (int k = 0, at = 0; k < TEXTS; at += text_length[k++])
                lay(&r, k, at, positions, starts);
            r.batch = (struct tune_batch){.B = B, .T = T, .ids = r.ids, .labels = r.labels, .lengths = r.lengths, .tokens = N,
                                          .positions = positions, .starts = starts, .row_count = TEXTS};
            packed = loss_and_gradients(&r);
            float *got = all_state(r.m, TUNE_GRADIENT);
            for (size_t i = 0; i < count; i++) {
                e += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
                size += (double)want[i] * want[i];
            }
            e = test_worse(sqrt(e / size), fabs(packed / apart - 1));
            worst = test_worse(worst, e);
            if (!(e <= 1e-5))
                fail_msg("%s, case %d: loss %.9g in packs, %.9g apart; differing by %g", folders[f], c, packed, apart, e);
            free(want), free(got);
            stop(&r);
        }
    tune_device_close(dev);
    print_message("# packed against apart: %.1e\n", worst);
}

/* What is planned before a model is made is what it takes. */
static void planned_bytes(void **state)
{
    (void)state;
    for (int f = 0; f < FOLDERS; f++)
        for (int c = 0; c < 2 * CASES; c++) {
            struct tune_device *dev = test_device(2);
            int what = TUNE_FOR_TRAINING | (c < CASES ? 0 : TUNE_CHECKPOINTING);
            struct tune_model_bytes bytes;
            struct tune_model_adapted adapted = {case_of(f, c % CASES), TUNE_BF16};
            int64_t before = dev->bytes;
            struct tune_model *m = tune_model_load_frozen(folders[f], dev, TUNE_F32, TUNE_BF16);
            assert_got(m);
            assert_ok(tune_model_bytes(&bytes, tune_model_config(m), dev, TUNE_F32, &adapted, B, T, what));
            assert_ok(tune_lora_add(m, adapted.lora, 1));
            assert_ok(tune_model_reserve(m, B, T, what));
            assert_ok(tune_model_gradients(m));
            assert_int_equal(dev->bytes - before, bytes.weights + bytes.gradients + bytes.activations + bytes.working);
            tune_model_free(m);
            tune_device_close(dev);
        }
}

/* An adapter as it begins changes nothing; what is frozen has no gradient; bfloat16 bases are what their numbers say. */
static void beginnings(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    for (int f = 0; f < FOLDERS; f++)
        for (int dora = 0; dora < 2; dora++) {
            struct tune_lora_options o = {.r = 4, .alpha = 8, .targets = "all-linear", .dora = dora,
                                          .modules_to_save = dora ? "model.embed_tokens,lm_head" : f % 2 ? "lm_head" : NULL};
            struct run a, b;
            struct tune_model *m = tune_model_load(folders[f], dev, TUNE_F32);
            struct tune_model *narrow = tune_model_load_frozen(folders[f], dev, TUNE_F32, TUNE_BF16);
            assert_got(m);
            assert_got(narrow);
            for (int i = 0; i < m->parameters.count; i++) {
                const struct tune_parameter *p = &m->parameters.at[i];
                uint16_t *half = malloc((size_t)p->count * 2);
                assert_false(narrow->parameters.at[i].trainable);
                enum tune_dtype storage = p->ndim == 1 ? TUNE_F32 : TUNE_BF16;
                assert_int_equal(narrow->parameters.at[i].storage, storage);
                if (p->ndim == 2) {
                    float *w = values(m, p, TUNE_WEIGHT);
                    assert_ok(tune_convert(half, TUNE_BF16, w, TUNE_F32, p->count));
                    assert_ok(tune_convert(w, TUNE_F32, half, TUNE_BF16, p->count));
                    set_values(m, p, TUNE_WEIGHT, w);
                    free(w);
                }
                free(half);
            }
            assert_ok(tune_lora_add(narrow, &o, 1));
            assert_int_equal(tune_lora_add(narrow, &o, 1), -1);
            assert_error_has("already");
            assert_ok(tune_model_reserve(m, B, T, TUNE_FOR_TRAINING));
            assert_ok(tune_model_reserve(narrow, B, T, TUNE_FOR_TRAINING));
            start(&a, m);
            start(&b, narrow);
            double x = loss_of(&a, 0, true), y = loss_of(&b, 0, true);
            assert_true(dora ? fabs(x / y - 1) < 1e-6 : x == y);
            assert_ok(tune_model_zero_grad(narrow, NULL));
            for (int i = 0; i < narrow->parameters.count; i++) {
                const struct tune_parameter *p = &narrow->parameters.at[i];
                assert_true(tune_model_has(narrow, p, TUNE_GRADIENT) == p->adapter);
            }
            stop(&a);
            stop(&b);
        }
    tune_device_close(dev);
}

/* How many matrix products a backward pass makes: none of frozen weights' gradients, none below the lowest adapter. */
static int products_made;
static const struct tune_ops *real;
static int counted(struct tune_device *dev, struct tune_tensor *c, const struct tune_tensor *a, bool trans_a,
                   const struct tune_tensor *b, bool trans_b, float alpha, float beta, enum tune_dtype operands)
{
    products_made++;
    return real->gemm(dev, c, a, trans_a, b, trans_b, alpha, beta, operands);
}

static void work(void **state)
{
    (void)state;
    static const struct {
        const char *targets;
        int products; /* an adapter's three, and one where it or a frozen matrix hands on a gradient */
    } all[] = {{"layers.1.mlp.down_proj", 3}, {"layers.1.mlp.up_proj", 3 + 1}, {"layers.1.self_attn.o_proj", 3 + 2},
               {"layers.1.self_attn.k_proj", 3 + 3}, {"layers.0.mlp.down_proj", 3 + 4}};
    struct tune_device *dev = test_device(2);
    struct tune_ops table = *dev->ops;
    real = dev->ops;
    table.gemm = counted;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct run r;
        struct tune_tensor *hidden, *dhidden;
        struct tune_lora_options o = {.r = 2, .alpha = 2, .targets = all[i].targets};
        start(&r, open_model(folders[1], dev, &o, 0));
        assert_int_equal(r.m->config.layers, 2);
        assert_ok(tune_model_zero_grad(r.m, NULL));
        assert_ok(tune_model_forward(r.m, &r.batch, &hidden));
        assert_ok(tune_loss_forward_backward(r.loss, hidden, &r.batch, NULL, &dhidden));
        products_made = 0;
        dev->ops = &table;
        assert_ok(tune_model_backward(r.m, &r.batch, dhidden));
        dev->ops = real;
        assert_int_equal(products_made, all[i].products);
        stop(&r);
    }
    tune_device_close(dev);
}

/* ---- kernels and options ---- */

static void dropping(void **state)
{
    (void)state;
    enum { ROWS = 400, WIDE = 333 };
    static float x[ROWS * WIDE], zeros[ROWS * WIDE];
    struct tune_device *dev[2] = {test_device(1), test_device(2)};
    struct tune_dropout drop = {.seed = 12345, .p = .05};
    struct tune_scalars at = {.step = 3, .pass = 2};
    tune_address step[2] = {put_bytes(dev[0], &at, sizeof at), put_bytes(dev[1], &at, sizeof at)};
    for (int64_t i = 0; i < ROWS * WIDE; i++)
        x[i] = (float)noise(8, i);
    struct tune_tensor tx = put_tensor(dev[0], ROWS, WIDE, x);
    struct tune_tensor ty = put_tensor(dev[0], ROWS, WIDE, zeros);
    struct tune_tensor tz = put_tensor(dev[1], ROWS, WIDE, x);
    assert_ok(tune_dropout(dev[0], &ty, &tx, step[0], drop, 0, 0, 1));
    float *y = get_tensor(dev[0], &ty);
    int64_t gone = 0, pairs = 0, columns = 0;
    for (int64_t i = 0; i < ROWS * WIDE; i++) {
        assert_true(y[i] == 0 || fabs(y[i] * .95 / x[i] - 1) < 1e-6);
        gone += y[i] == 0;
        pairs += i % WIDE > 0 && y[i] == 0 && y[i - 1] == 0;
        columns += i >= WIDE && y[i] == 0 && y[i - WIDE] == 0;
    }
    double share = (double)gone / (ROWS * WIDE), each = .05 * .05 * ROWS * WIDE;
    assert_true(fabs(share - .05) < 4 * sqrt(.05 * .95 / (ROWS * WIDE)));
    assert_true(fabs((double)pairs - each) < 4 * sqrt(each) && fabs((double)columns - each) < 4 * sqrt(each));
    assert_ok(tune_dropout(dev[1], &tz, &tz, step[1], drop, 0, 1, -1)); /* in place, other threads: what was taken away */
    float *z = get_tensor(dev[1], &tz);
    for (int64_t i = 0; i < ROWS * WIDE; i++)
        assert_true(fabs(y[i] + z[i] - x[i]) <= 2e-7 * fabs(x[i]) + 1e-9);
    for (int i = 0; i < 6; i++) { /* another seed, step, pass, layer, product: other numbers */
        struct tune_dropout other_drop = drop;
        struct tune_scalars other_at = at;
        other_drop.seed += i == 0;
        other_drop.past_steps += i == 1;
        other_drop.layer += i == 2;
        other_drop.which += i == 3;
        other_at.step += i == 4;
        other_at.pass += i == 5;
        assert_ok(tune_device_upload(dev[0], step[0], &other_at, sizeof other_at));
        assert_ok(tune_dropout(dev[0], &ty, &tx, step[0], other_drop, 0, 0, 1));
        float *other = get_tensor(dev[0], &ty);
        assert_memory_not_equal(y, other, sizeof x);
        free(other);
    }
    drop.p = 1;
    assert_int_equal(tune_dropout(dev[0], &ty, &tx, step[0], drop, 0, 0, 1), -1);
    free(y), free(z);
    tune_device_free(dev[0], step[0], sizeof at), tune_device_free(dev[1], step[1], sizeof at);
    drop_tensor(dev[0], &tx), drop_tensor(dev[0], &ty), drop_tensor(dev[1], &tz);
    tune_device_close(dev[0]);
    tune_device_close(dev[1]);
}

static void options(void **state)
{
    (void)state;
    static const struct {
        struct tune_lora_options o;
        const char *message;
    } bad[] = {
        {{.r = 0, .alpha = 1, .targets = "all-linear"}, "the rank r is 0"},
        {{.r = 99999, .alpha = 1, .targets = "all-linear"}, "16384"},
        {{.r = 1, .alpha = 0, .targets = "all-linear"}, "alpha is 0"},
        {{.r = 1, .alpha = NAN, .targets = "all-linear"}, "alpha"},
        {{.r = 1, .alpha = 1, .dropout = 1, .targets = "all-linear"}, "dropout 1"},
        {{.r = 1, .alpha = 1}, "no targets"},
        {{.r = 1, .alpha = 1, .targets = ""}, "self_attn.q_proj, self_attn.k_proj"},
        {{.r = 1, .alpha = 1, .targets = "q_proj,"}, "fits no module"},
        {{.r = 1, .alpha = 1, .targets = "q_proj,c_attn"}, "\"c_attn\" fits no module; in each layer there are self_attn.q_proj"},
        {{.r = 1, .alpha = 1, .targets = "proj"}, "\"proj\" fits no"},
        {{.r = 1, .alpha = 1, .targets = "lm_head"}, "low-rank adapters of lm_head are read and merged, but not trained"},
        {{.r = 1, .alpha = 1, .targets = ".*(q_proj|embed_tokens)"}, "low-rank adapters of model.embed_tokens are read"},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .rank_pattern = "q_proj"}, "k_proj=4"},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .rank_pattern = "q_proj=0"}, "a rank from 1"},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .rank_pattern = "q_proj=1.5"}, "a rank from 1"},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .rank_pattern = "k_proj=4"}, "fits no module with an adapter"},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .alpha_pattern = "q_proj=0"}, "above 0"},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .alpha_pattern = "q_proj=2e9"}, "at most 1e9"},
        {{.r = 1, .alpha = 2e9, .targets = "q_proj"}, "at most 1e9"},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .rank_pattern = "0.self_attn.q_proj=3,q_proj=2,q_proj=4"},
         "\"q_proj=4\"; expected each name once"},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .layers = "1-0"}, "8-15"},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .layers = "0,x"}, "\"x\""},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .layers = "0-99"}, "the model has layers 0 to"},
        {{.r = 1, .alpha = 1, .targets = "layers.0.self_attn.q_proj", .layers = "1"}, "no target lies in the layers 1"},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .modules_to_save = "norm"}, "\"norm\"; expected embed_tokens, lm_head, or both"},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .modules_to_save = "lm_head,"}, "modules to save: \"\""},
        {{.r = 1, .alpha = 1, .targets = "q_proj", .modules_to_save = ""}, "modules to save: \"\""},
    };
    struct tune_device *dev = test_device(1);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct tune_model *m = tune_model_load_frozen(folders[0], dev, TUNE_F32, TUNE_F32);
        assert_int_equal(tune_lora_add(m, &bad[i].o, 1), -1);
        assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
        assert_error_has(bad[i].message);
        tune_model_free(m);
    }
    const struct tune_lora_options o = {.r = 8, .alpha = 16, .targets = "q_proj,layers.1.mlp.up_proj",
                                        .rank_pattern = "1.self_attn.q_proj=2,q_proj=4", .alpha_pattern = "up_proj=3",
                                        .rslora = true};
    assert_int_equal(tune_lora_rank(&o, "model.layers.0.self_attn.q_proj"), 4);
    assert_int_equal(tune_lora_rank(&o, "model.layers.1.self_attn.q_proj"), 2);
    assert_int_equal(tune_lora_rank(&o, "model.layers.11.self_attn.q_proj"), 4);
    assert_int_equal(tune_lora_rank(&o, "model.layers.1.mlp.up_proj"), 8);
    assert_int_equal(tune_lora_rank(&o, "model.layers.11.mlp.up_proj"), 0);
    assert_true(fabs(tune_lora_scale(&o, "model.layers.1.mlp.up_proj") - 3 / sqrt(8)) < 1e-15);
    assert_true(tune_lora_scale(&o, "model.layers.0.self_attn.q_proj") == 8);
    static const char *const saved[] = {NULL, "embed_tokens", "lm_head", "lm_head,model.embed_tokens"};
    for (int i = 0; i < 4; i++) {
        const struct tune_lora_options s = {.modules_to_save = saved[i]};
        for (int k = 0; k < 3; k++) {
            const char *want = i == 0 ? NULL : i == 3 ? (k == 0 ? "model.embed_tokens" : k == 1 ? "lm_head" : NULL)
                               : k > 0 ? NULL : i == 1 ? "model.embed_tokens" : "lm_head";
            const char *is = tune_lora_saved(&s, k);
            assert_true(want ? is && strcmp(is, want) == 0 : !is);
        }
    }
    tune_device_close(dev);
}

/* A begins uniform between -1/sqrt(in) and 1/sqrt(in), each adapter with numbers of its own; B begins as 0. */
static void first_values(void **state)
{
    (void)state;
    enum { MOST = 1 << 14 };
    static double u[MOST];
    const struct tune_lora_options o = {.r = 16, .alpha = 16, .targets = "all-linear"};
    struct tune_device *dev = test_device(1);
    struct tune_model *m = tune_model_load_frozen(folders[2], dev, TUNE_F32, TUNE_F32);
    int n = 0;
    double apart = 0, product = 0;
    assert_got(m);
    assert_ok(tune_lora_add(m, &o, 42));
    assert_ok(tune_model_reserve(m, B, T, TUNE_FOR_TRAINING));
    for (int i = m->parameters.base; i < m->parameters.count; i++) {
        const struct tune_parameter *p = &m->parameters.at[i];
        float *w = values(m, p, TUNE_WEIGHT);
        bool a = strstr(p->name, "lora_A") != NULL;
        for (int64_t k = 0; !a && k < p->count; k++)
            assert_true(w[k] == 0);
        for (int64_t k = 0; a && k < p->count && n < MOST; k++)
            u[n++] = .5 + .5 * w[k] * sqrt((double)p->shape[1]); /* in [0, 1) */
        free(w);
    }
    assert_true(n > 3000);
    for (int i = 0; i + 1 < n; i += 2)
        product += 24 * (u[i] - .5) * (u[i + 1] - .5) / n; /* neighbours have nothing to do with one another */
    qsort(u, (size_t)n, sizeof *u, ascending);
    for (int i = 0; i < n; i++) { /* Kolmogorov and Smirnov's distance */
        double distance = fabs(u[i] - (double)i / n);
        apart = distance > apart ? distance : apart;
    }
    print_message("# %d first values: %.5f to %.5f of the range, %.4f from uniform, neighbours %.4f\n", n, u[0], u[n - 1], apart,
                  product);
    assert_true(u[0] >= 0 && u[0] < 5. / n && u[n - 1] <= 1 && u[n - 1] > 1 - 5. / n);
    assert_true(apart < 1.63 / sqrt(n)); /* 1 % of seeds would be above: this one is fixed */
    assert_true(fabs(product) < 3 * sqrt(2. / n));
    tune_model_free(m);
    tune_device_close(dev);
}

/* DoRA divides by the length of a row of W + s B A. One of zeros has none: it is left as it is. */
static void row_of_zeros(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    assert_got(dev);
    const float magnitude[2] = {3, 3}, squares[2] = {4, 0}, zeros[2] = {0, 0}, aa[1] = {1};
    const float unset[2] = {NAN, NAN};
    struct tune_tensor to = put_tensor(dev, 0, 2, unset), over = put_tensor(dev, 0, 2, unset);
    struct tune_tensor m = put_tensor(dev, 0, 2, magnitude), w = put_tensor(dev, 0, 2, squares);
    struct tune_tensor b = put_tensor(dev, 2, 1, zeros), p = put_tensor(dev, 2, 1, zeros);
    struct tune_tensor a = put_tensor(dev, 1, 1, aa);
    const struct tune_tensor *mine[] = {&to, &over, &m, &w, &b, &p, &a};
    assert_ok(tune_dora_scale(dev, &to, &over, &m, &w, &b, &p, &a, 2));
    float *g = get_tensor(dev, &to), *inverse = get_tensor(dev, &over);
    assert_true(g[0] == 1.5f && inverse[0] == 0.5f && g[1] == 0 && inverse[1] == 0);
    free(g), free(inverse);
    for (int i = 0; i < 7; i++)
        drop_tensor(dev, mine[i]);
    tune_device_close(dev);
}

/* A trained output takes 6 for each of its weights in place of 4, a trained embedding nothing more. */
static void flops(void **state)
{
    (void)state;
    static const char *const saved[] = {NULL, "embed_tokens", "lm_head", "embed_tokens,lm_head"};
    double have[4];
    struct tune_device *dev = test_device(1);
    struct tune_model_config config;
    for (int i = 0; i < 4; i++) {
        struct tune_lora_options o = {.r = 4, .alpha = 8, .targets = "all-linear", .modules_to_save = saved[i]};
        struct tune_model *m = tune_model_load_frozen(folders[0], dev, TUNE_F32, TUNE_F32);
        assert_got(m);
        assert_ok(tune_lora_add(m, &o, 1));
        config = *tune_model_config(m);
        have[i] = tune_model_flops(m, 8);
        tune_model_free(m);
    }
    double more = 2.0 * config.vocabulary * config.hidden;
    assert_true(have[1] == have[0] && have[2] == have[0] + more && have[3] == have[2]);
    tune_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options),        cmocka_unit_test(dropping), cmocka_unit_test(dropping_goes_on),           cmocka_unit_test(products),
        cmocka_unit_test(against_merged), cmocka_unit_test(central_differences), cmocka_unit_test(same_bits),
        cmocka_unit_test(beginnings),     cmocka_unit_test(planned_bytes),       cmocka_unit_test(work),
        cmocka_unit_test(passes_alternate), cmocka_unit_test(packing),        cmocka_unit_test(first_values),        cmocka_unit_test(row_of_zeros),
        cmocka_unit_test(flops),          cmocka_unit_test(new_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
