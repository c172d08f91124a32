/* largest.c - upper limits of all operations, by which a device takes its working memory once. */
#include "devices/ops.h"
#include "models/activations.h"

enum { WHOLE = 64 };

int64_t tune_model_logit_rows(const struct tune_device *dev, const struct tune_model_config *config, int64_t N)
{
    int64_t rows = dev->logits_bytes / (4 * (int64_t)config->vocabulary);
    rows = (rows < 1 ? WHOLE : rows + WHOLE - 1) / WHOLE * WHOLE;
    return rows < N ? rows : N;
}

static int64_t largest_width(const struct tune_model_config *g)
{
    int64_t width = tune_model_q(g);
    width = width > g->ffn ? width : g->ffn;
    return width > g->hidden ? width : g->hidden;
}

/* Largest inner dimension of a product; usually that of the output projection's backward. */
static int64_t deepest_product(const struct tune_model_config *g)
{
    int64_t ffn = 2 * (int64_t)g->ffn, qkv = (g->heads + 2 * g->kv_heads) * (int64_t)g->head_dim;
    int64_t depth = ffn > qkv ? ffn : qkv;
    depth = depth > g->hidden ? depth : g->hidden;
    return depth > g->vocabulary ? depth : g->vocabulary;
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
static void add_product(const struct tune_model *m, struct tune_largest *l, int64_t N, int64_t in, int64_t out,
                        enum tune_dtype weights, enum tune_dtype result)
{
    struct tune_operand x = matrix(N, in, m->dtype), y = matrix(N, out, result), w = matrix(in, out, weights);
    tune_largest_product(l, y, x, w, m->dtype);
    if (!m->training)
        return;
    tune_largest_product(l, x, y, w, m->dtype);
    tune_largest_product(l, matrix(in, out, TUNE_F32), y, x, m->dtype);
}

/* The adapters of a product, and its matrices merged with them (merged.c). */
static void add_adapters(const struct tune_model *m, struct tune_largest *l, int64_t N, const struct lora_group *g,
                         enum tune_dtype result)
{
    add_product(m, l, N, g->in, g->rank, TUNE_F32, m->dtype);
    for (int k = 0; k < g->count; k++) {
        const struct lora_target *t = &g->target[k];
        int64_t tile = tune_product_tile_rows(g->in), rows = tile < t->out ? tile : t->out;
        struct tune_operand w = matrix(t->out, g->in, m->parameters.at[t->base].storage);
        add_product(m, l, N, t->r, t->out, TUNE_F32, result);
        tune_largest_product(l, matrix(N, rows, result), matrix(N, g->in, m->dtype), matrix(rows, g->in, TUNE_F32), m->dtype);
        if (t->magnitude >= 0) /* DoRA: W A^T, in float32 */
            tune_largest_product(l, matrix(t->out, t->r, TUNE_F32), w, matrix(t->r, g->in, TUNE_F32), TUNE_F32);
    }
}

/* The product that begins with row i. */
static void add_layer_product(const struct tune_model *m, struct tune_largest *l, int64_t N, int i)
{
    const struct tune_parameter *p = &m->parameters.at[i];
    bool to_residual = p->role == TUNE_ATTENTION_OUT || p->role == TUNE_DOWN;
    enum tune_dtype result = to_residual ? TUNE_F32 : m->dtype;
    int64_t out = p->shape[0];
    for (int k = i + 1; k < m->parameters.base && m->parameters.at[k].glued; k++)
        out += m->parameters.at[k].shape[0];
    add_product(m, l, N, p->shape[1], out, p->storage, result);
    if (!m->lora)
        return;
    enum lora_product which = p->role == TUNE_QUERY ? LORA_QKV : p->role == TUNE_ATTENTION_OUT ? LORA_O
                              : p->role == TUNE_GATE ? LORA_GATE_UP : LORA_DOWN;
    const struct lora_group *g = &m->lora->group[(p->unit - 1) * LORA_PRODUCTS + which];
    if (g->count > 0)
        add_adapters(m, l, N, g, result);
}

struct tune_largest tune_model_largest(const struct tune_model *m)
{
    const struct tune_model_config *g = &m->config;
    struct tune_largest l = {.B = m->max_B, .T = m->max_T, .H = g->heads, .K = g->kv_heads, .D = g->head_dim,
                             .width = largest_width(g), .depth = deepest_product(g), .activations = m->dtype,
                             .training = m->training};
    int64_t N = (int64_t)m->max_B * m->max_T, logits = tune_model_logit_rows(m->dev, g, N);
    for (int i = 0; i < m->parameters.count; i++) {
        const struct tune_parameter *p = &m->parameters.at[i];
        bool output = p->role == TUNE_OUTPUT || (g->tied && p->role == TUNE_EMBEDDING);
        if (output)
            add_product(m, &l, logits, p->shape[1], p->shape[0], p->storage, TUNE_F32);
        if (i < m->parameters.base && tune_parameter_is_linear(p) && !p->glued)
            add_layer_product(m, &l, N, i);
    }
    return l;
}
