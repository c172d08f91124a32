/* max_sizes.c - upper limits of all operations, by which a device takes its working memory once. */
#include "devices/ops.h"
#include "models/activations.h"

enum { WHOLE = 64 };

int64_t tune_model_logit_rows(const struct tune_device *dev, const struct tune_model_config *config, int64_t N)
{
    int64_t rows = dev->logits_bytes / (4 * (int64_t)config->vocabulary);
    rows = (rows < 1 ? WHOLE : rows + WHOLE - 1) / WHOLE * WHOLE;
    return rows < N ? rows : N;
}

struct tune_widths tune_model_widths(const struct tune_model *m, int i)
{
    const struct tune_layer *l = &m->parameters.unit[i + 1];
    struct tune_widths w;
    int64_t other;
    const struct tune_module *q = tune_layer_has(l, TUNE_QUERY_NORM), *k = tune_layer_has(l, TUNE_KEY_NORM);
    tune_layer_linear(l, TUNE_LINEAR_QKV, &w.qkv, &other);
    tune_layer_linear(l, TUNE_LINEAR_O, &other, &w.att);
    tune_layer_linear(l, TUNE_LINEAR_GATE_UP, &w.gate_up, &other);
    tune_layer_linear(l, TUNE_LINEAR_DOWN, &other, &w.h);
    w.post1 = tune_layer_has(l, TUNE_POST_ATTENTION_NORM) ? m->config.hidden : 0;
    w.post2 = tune_layer_has(l, TUNE_POST_MLP_NORM) ? m->config.hidden : 0;
    w.q_norms = q ? w.att / q->in : 0;
    w.k_norms = k ? (w.qkv - w.att) / 2 / k->in : 0;
    return w;
}

struct tune_widths tune_model_widest(const struct tune_model *m)
{
    union {
        struct tune_widths w;
        int64_t each[sizeof(struct tune_widths) / sizeof(int64_t)];
    } most = {0}, one;
    for (int i = 0; i < m->config.layers; i++) {
        one.w = tune_model_widths(m, i);
        for (size_t k = 0; k < sizeof one.each / sizeof *one.each; k++)
            most.each[k] = one.each[k] > most.each[k] ? one.each[k] : most.each[k];
    }
    return most.w;
}

static int64_t largest_of(const int64_t *numbers, int count)
{
    int64_t most = 0;
    for (int i = 0; i < count; i++)
        most = numbers[i] > most ? numbers[i] : most;
    return most;
}

/* A matrix. More than 2^58 numbers count as so many: no device has them, and sums of bytes stay in 64
 * bits. */
static struct tune_operand matrix(int64_t rows, int64_t columns, enum tune_dtype dtype)
{
    int64_t most = (int64_t)1 << 58, count;
    bool over = __builtin_mul_overflow(rows, columns, &count) || count > most;
    return (struct tune_operand){over ? most : count, dtype};
}

/* y = x W^T, and backward dx = dy W and dW = dy^T x, for x [N,in], y [N,out] and a W of that dtype.
 * y and dy: the dtype of the result, for the residual stream and logits F32. */
static void add_product(const struct tune_model *m, struct tune_max_sizes *l, int64_t N, int64_t in, int64_t out,
                        enum tune_dtype weights, enum tune_dtype result)
{
    struct tune_operand x = matrix(N, in, m->dtype), y = matrix(N, out, result), w = matrix(in, out, weights);
    tune_max_sizes_add_product(l, y, x, w, m->dtype);
    if (!m->training)
        return;
    tune_max_sizes_add_product(l, x, y, w, m->dtype);
    tune_max_sizes_add_product(l, matrix(in, out, TUNE_F32), y, x, m->dtype);
}

/* The adapters of a linear layer. */
static void add_adapters(const struct tune_model *m, struct tune_max_sizes *l, int64_t N, const struct lora_group *g,
                         enum tune_dtype result)
{
    add_product(m, l, N, g->in, g->rank, TUNE_F32, m->dtype);
    for (int k = 0; k < g->count; k++) {
        const struct lora_target *t = &g->target[k];
        struct tune_operand w = matrix(t->out, g->in, m->parameters.at[t->base].storage);
        add_product(m, l, N, t->r, t->out, TUNE_F32, result);
        if (t->magnitude >= 0) /* DoRA: W A^T, in float32 */
            tune_max_sizes_add_product(l, matrix(t->out, t->r, TUNE_F32), w, matrix(t->r, g->in, TUNE_F32), TUNE_F32);
    }
}

/* The linear layer that begins with row i. */
static void add_layer_linear(const struct tune_model *m, struct tune_max_sizes *l, int64_t N, int i)
{
    const struct tune_parameter *p = &m->parameters.at[i];
    const struct tune_layer *layer = &m->parameters.unit[p->unit];
    /* with a post norm, the gradient of the result is F32 */
    bool to_residual = p->linear == TUNE_LINEAR_O || p->linear == TUNE_LINEAR_DOWN;
    enum tune_dtype result = tune_layer_adds(layer, p->linear) || (to_residual && m->training) ? TUNE_F32 : m->dtype;
    int64_t out, in;
    tune_layer_linear(layer, p->linear, &out, &in);
    add_product(m, l, N, in, out, p->storage, result);
    if (!m->lora)
        return;
    const struct lora_group *g = &m->lora->group[(p->unit - 1) * TUNE_LINEARS + (int)p->linear];
    if (g->count > 0)
        add_adapters(m, l, N, g, result);
}

struct tune_max_sizes tune_model_max_sizes(const struct tune_model *m)
{
    const struct tune_model_config *g = &m->config;
    struct tune_widths w = tune_model_widest(m);
    /* the depth is usually that of the output projection's backward */
    const int64_t widths[] = {w.qkv, w.h, g->hidden}, depths[] = {w.gate_up, w.qkv, g->hidden, g->vocabulary};
    struct tune_max_sizes l = {.B = m->max_B, .T = m->max_T, .H = g->heads, .K = g->kv_heads, .D = g->head_dim,
                             .width = largest_of(widths, 3), .depth = largest_of(depths, 4), .activations = m->dtype,
                             .training = m->training};
    int64_t N = (int64_t)m->max_B * m->max_T, logits = tune_model_logit_rows(m->dev, g, N);
    for (int i = 0; i < m->parameters.count; i++) {
        const struct tune_parameter *p = &m->parameters.at[i];
        bool output = p->kind == TUNE_MODULE_HEAD || (g->tied && p->kind == TUNE_MODULE_EMBEDDING);
        if (output)
            add_product(m, &l, logits, p->shape[1], p->shape[0], p->storage, TUNE_F32);
        if (tune_parameter_is_linear(p) && !p->fused)
            add_layer_linear(m, &l, N, i);
    }
    return l;
}
