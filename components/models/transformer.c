/* transformer.c - forward and hand-written backward.
 *
 *            x[i] ──norm1── Wqkv ──rope── attention ── Wo ──(+)── mid ──norm2── Wgu ──swiglu── Wd ──(+)── x[i+1]
 *              └───────────────────────────────────────────┘  └──────────────────────────────────┘
 *   kept:    x[i]  rstd1    qkv          att, lse              mid   rstd2    gate_up
 *
 * Backward recomputes the outputs of norm and swiglu. That is cheap elementwise work, and saves 8
 * bytes for each element. With checkpointing only x[i] is kept, and backward runs the layer's
 * forward again. It runs the same operations on the same numbers, so the gradients have the same
 * bits. */
#include <math.h>
#include <string.h>

#include "core/nf4.h"
#include "core/try.h"
#include "devices/ops.h"
#include "models/activations.h"

/* A parameter, or a group that is one matrix, and its gradient (address 0: frozen). */
struct weight {
    struct tune_tensor w, dw;
};

struct layer_weights {
    struct weight norm1, q_norm, k_norm, norm2, w[LORA_PRODUCTS], bias[LORA_PRODUCTS];
};

/* The first matrix of each product, and the product's name. */
static const struct {
    enum tune_role role;
    const char *name;
} products[LORA_PRODUCTS] = {
    [LORA_QKV] = {TUNE_QUERY, "qkv"},
    [LORA_O] = {TUNE_ATTENTION_OUT, "o"},
    [LORA_GATE_UP] = {TUNE_GATE, "gate_up"},
    [LORA_DOWN] = {TUNE_DOWN, "down"},
};

/* The weight of a role (or its bias) in a unit, with the rows fused to it. Address 0: there is
 * none. */
static struct weight view(struct tune_model *m, int unit, enum tune_role role, bool bias)
{
    const struct tune_parameter *p = tune_model_row(m, unit, role, bias), *end = &m->parameters.at[m->parameters.base];
    struct weight v = {0};
    int64_t rows = 0;
    int count = 0;
    if (!p)
        return v;
    for (const struct tune_parameter *r = p; r == p || (r < end && r->glued); r++, count++)
        rows += r->shape[0];
    v.w = tune_model_tensor(m, p, TUNE_WEIGHT);
    v.w.shape[0] = rows;
    v.dw = v.w;
    v.dw.dtype = TUNE_F32;
    v.dw.nf4 = NULL;
    if (v.w.nf4 && count > 1)
        v.w.nf4 = &m->nf4[m->parameters.base + (p - m->parameters.at)];
    v.dw.data = tune_model_gradient_at(m, p);
    return v;
}

static struct layer_weights layer_view(struct tune_model *m, int i)
{
    int unit = i + 1;
    struct layer_weights w = {
        .norm1 = view(m, unit, TUNE_INPUT_NORM, false),
        .q_norm = view(m, unit, TUNE_QUERY_NORM, false),
        .k_norm = view(m, unit, TUNE_KEY_NORM, false),
        .norm2 = view(m, unit, TUNE_MLP_NORM, false),
    };
    for (int k = 0; k < LORA_PRODUCTS; k++) {
        w.w[k] = view(m, unit, products[k].role, false);
        w.bias[k] = view(m, unit, products[k].role, true);
    }
    return w;
}

static struct tune_tensor *gradient(struct weight *w)
{
    return w->dw.data.at ? &w->dw : NULL;
}

/* The residual stream or its gradient. It is F32 for any dtype of activations. */
static struct tune_tensor residual(const struct tune_model *m, tune_address data)
{
    return tune_tensor_2d(data, TUNE_F32, (int64_t)m->B * m->T, m->config.hidden);
}

static struct tune_tensor stat(const struct tune_model *m, tune_address data)
{
    return tune_tensor_1d(data, TUNE_F32, (int64_t)m->B * m->T);
}

/* Tell the profiler which weight the next operations use. */
static void on(struct tune_model *m, int i, const char *what)
{
    m->dev->doing.layer = i;
    m->dev->doing.what = what;
}

/* A product of layer i, with adapters if the model has them. The profiler is told. */
static struct product product(struct tune_model *m, int i, struct layer_weights *w, enum lora_product which)
{
    struct weight *matrix = &w->w[which], *bias = &w->bias[which];
    bool to_residual = which == LORA_O || which == LORA_DOWN;
    on(m, i, products[which].name);
    return (struct product){i, which, &matrix->w, bias->w.data.at ? &bias->w : NULL, gradient(matrix), gradient(bias),
                            to_residual ? m->config.residual_multiplier : 1};
}

static int product_forward(struct tune_model *m, int i, struct layer_weights *w, enum lora_product which,
                           struct tune_tensor *y, const struct tune_tensor *x, const struct tune_tensor *r)
{
    struct product p = product(m, i, w, which);
    return tune_product_forward(m, &p, y, x, r);
}

static int product_backward(struct tune_model *m, int i, struct layer_weights *w, enum lora_product which,
                            struct tune_tensor *dx, const struct tune_tensor *dy, const struct tune_tensor *x)
{
    struct product p = product(m, i, w, which);
    return tune_product_backward(m, &p, dx, dy, x);
}

/* NULL if the batch has none. */
static const struct tune_tensor *some(const struct tune_tensor *index)
{
    return index->shape[0] > 0 ? index : NULL;
}

static int rotate(struct tune_model *m, struct tune_tensor *x, bool backward)
{
    const struct tune_model_config *c = &m->config;
    const struct tune_cached *k = m->cached;
    struct tune_tensor table = tune_tensor_2d(k ? k->rope : m->rope, TUNE_F32,
                                              k ? k->capacity : m->max_T, c->head_dim);
    return tune_rope(m->dev, x, &table, k ? &k->positions : some(&m->positions), m->T,
                     c->heads + c->kv_heads, c->head_dim, backward);
}

/* Views of the heads in rows [N,Q]: queries, keys, values. */
struct heads {
    struct tune_tensor q, k, v;
};

static struct heads heads_of(const struct tune_model *m, const struct tune_tensor *qkv)
{
    const struct tune_model_config *c = &m->config;
    int64_t D = c->head_dim, q = c->heads * D, k = c->kv_heads * D;
    return (struct heads){tune_tensor_heads(qkv, m->B, 0, c->heads, D), tune_tensor_heads(qkv, m->B, q, c->kv_heads, D),
                          tune_tensor_heads(qkv, m->B, q + k, c->kv_heads, D)};
}

static struct tune_attention attention_how(const struct tune_model *m, int layer)
{
    return (struct tune_attention){tune_model_config_window(&m->config, layer), m->config.attention_scale};
}

/* Put the keys and values of layer i into the cache, and let h name all that are there. */
static int put_keys(struct tune_model *m, int i, const struct tune_tensor *qkv, struct heads *h)
{
    const struct tune_cached *k = m->cached;
    int64_t D = m->config.head_dim, K = m->config.kv_heads, width = 2 * K * D;
    int64_t layer = (int64_t)i * k->layer_rows * width * tune_dtype_bits(m->dtype) / 8;
    struct tune_tensor all = tune_tensor_2d(tune_address_plus(k->kv, layer), m->dtype,
                                            (int64_t)k->rows * k->capacity, width);
    struct tune_tensor new = tune_tensor_columns(qkv, m->config.heads * D, width);
    TRY(tune_scatter(m->dev, &all, &new, &k->to));
    h->k = tune_tensor_heads(&all, k->rows, 0, K, D);
    h->v = tune_tensor_heads(&all, k->rows, K * D, K, D);
    return 0;
}

/* Attention of the batch to itself, or to all that is in the cache. */
static int attend(struct tune_model *m, int i, const struct tune_tensor *qkv, struct tune_tensor *att)
{
    struct tune_tensor lse = tune_tensor_2d(m->layer[i].lse, TUNE_F32, (int64_t)m->B * m->T, m->config.heads);
    struct heads h = heads_of(m, qkv);
    const struct tune_cached *k = m->cached;
    if (k)
        TRY(put_keys(m, i, qkv, &h));
    return tune_attention_forward(m->dev, att, &lse, &h.q, &h.k, &h.v, k ? &k->first : some(&m->starts),
                                  k ? &k->keys : NULL, k ? &k->begin : NULL, attention_how(m, i));
}

/* Compute qkv from x[i], with bias, head norms and rope. */
static int project_qkv(struct tune_model *m, int i, struct layer_weights *w)
{
    const struct tune_model_config *c = &m->config;
    struct layer_state *s = &m->layer[i];
    int64_t N = (int64_t)m->B * m->T, Q = tune_model_q(c);
    struct tune_tensor x = residual(m, m->x[i]), norm = rows(m, m->norm, c->hidden), rstd = stat(m, s->rstd1);
    struct tune_tensor qkv = rows(m, s->qkv, Q), raw = rows(m, c->qk_norm ? s->raw : s->qkv, Q);
    on(m, i, "1");
    TRY(tune_rmsnorm_forward(m->dev, &norm, &rstd, &x, &w->norm1.w, c->norm_eps));
    TRY(product_forward(m, i, w, LORA_QKV, &raw, &norm, NULL));
    on(m, i, "");
    if (c->qk_norm) {
        struct tune_tensor rq = tune_tensor_2d(s->rstd_q, TUNE_F32, N, c->heads);
        struct tune_tensor rk = tune_tensor_2d(s->rstd_k, TUNE_F32, N, c->kv_heads);
        /* copies the values; queries and keys are overwritten below */
        TRY(tune_copy(m->dev, &qkv, &raw));
        on(m, i, "q");
        TRY(tune_headnorm_forward(m->dev, &qkv, &rq, &raw, &w->q_norm.w, 0, c->heads, c->norm_eps));
        on(m, i, "k");
        TRY(tune_headnorm_forward(m->dev, &qkv, &rk, &raw, &w->k_norm.w, c->heads, c->kv_heads, c->norm_eps));
        on(m, i, "");
    }
    return rotate(m, &qkv, false);
}

/* Compute x[i+1] from x[i]. again: for backward; compute only the activations it reads. */
static int layer_forward(struct tune_model *m, int i, bool again)
{
    const struct tune_model_config *c = &m->config;
    struct layer_weights w = layer_view(m, i);
    struct layer_state *s = &m->layer[i];
    struct tune_tensor x = residual(m, m->x[i]), out = residual(m, m->x[i + 1]);
    struct tune_tensor qkv = rows(m, s->qkv, tune_model_q(c)), att = rows(m, s->att, (int64_t)c->heads * c->head_dim);
    struct tune_tensor mid = residual(m, s->mid), norm = rows(m, m->norm, c->hidden), rstd = stat(m, s->rstd2);
    struct tune_tensor gate_up = rows(m, s->gate_up, 2 * (int64_t)c->ffn), h = rows(m, m->h, c->ffn);
    TRY(project_qkv(m, i, &w));
    TRY(attend(m, i, &qkv, &att));
    TRY(product_forward(m, i, &w, LORA_O, &mid, &att, &x));
    on(m, i, "2");
    TRY(tune_rmsnorm_forward(m->dev, &norm, &rstd, &mid, &w.norm2.w, c->norm_eps));
    TRY(product_forward(m, i, &w, LORA_GATE_UP, &gate_up, &norm, NULL));
    on(m, i, "");
    if (again && !m->lora)
        return 0;
    TRY(tune_swiglu_forward(m->dev, &h, &gate_up));
    if (again) {
        struct product down = product(m, i, &w, LORA_DOWN);
        return tune_product_again(m, &down, &h);
    }
    return product_forward(m, i, &w, LORA_DOWN, &out, &h, &mid);
}

static int check_places(const struct tune_model *m, const struct tune_batch *b)
{
    for (int64_t i = 0; i < (int64_t)b->B * b->T; i++) {
        int64_t t = i % b->T, position = b->positions ? b->positions[i] : t, start = b->starts ? b->starts[i] : 0;
        int64_t before = b->starts && t > 0 ? b->starts[i - 1] : 0;
        if (position < 0 || position >= m->max_T || start < before || start > t)
            return tune_error_set(
                "row %lld, token %lld: position %lld, start %lld; expected a position below %d, and a start "
                "from the previous token's start to this token",
                (long long)(i / b->T), (long long)t, (long long)position, (long long)start, m->max_T);
    }
    return 0;
}

/* Check that a token id or label is in the vocabulary. */
static int check_token(const struct tune_model *m, const struct tune_batch *b, int64_t i, const char *what, int32_t id)
{
    if (id >= 0 && id < m->config.vocabulary)
        return 0;
    return tune_error_set(
        "row %lld, position %lld: %s %d is outside the model's vocabulary of %d; the tokenizer belongs to another model",
        (long long)(i / b->T), (long long)(i % b->T), what, id, m->config.vocabulary);
}

static int check_batch(const struct tune_model *m, const struct tune_batch *b)
{
    bool fits = m->cached ? (int64_t)b->B * b->T <= tune_model_max_tokens(m) : b->B <= m->max_B && b->T <= m->max_T;
    if (b->B < 1 || b->T < 1 || !fits)
        return tune_error_set("a batch of %d rows of %d positions; tune_model_reserve made room for %d of %d", b->B, b->T,
                              m->max_B, m->max_T);
    for (int64_t i = 0; i < (int64_t)b->B * b->T; i++) {
        TRY(check_token(m, b, i, "token id", b->ids[i]));
        if (b->labels && b->labels[i] != TUNE_NO_LABEL)
            TRY(check_token(m, b, i, "label", b->labels[i]));
    }
    return m->cached ? 0 : check_places(m, b);
}

/* Append n values to the staging buffer. Returns their tensor on the device. */
static struct tune_tensor stage(struct tune_model *m, int64_t *used, const int32_t *from, int64_t n)
{
    struct tune_tensor t = tune_tensor_1d(tune_address_plus(m->batch, *used * 4), TUNE_I32, from ? n : 0);
    if (from && from != m->staging + *used)
        memcpy(m->staging + *used, from, (size_t)n * sizeof *from);
    *used += t.shape[0];
    return t;
}

/* Append the labelled positions, or their labels. */
static struct tune_tensor stage_labels(struct tune_model *m, int64_t *used, const struct tune_batch *b, bool rows)
{
    int32_t *to = m->staging + *used;
    int64_t n = 0;
    for (int64_t i = 0; b->labels && i < (int64_t)b->B * b->T; i++)
        if (b->labels[i] != TUNE_NO_LABEL)
            to[n++] = rows ? (int32_t)i : b->labels[i];
    return stage(m, used, to, n);
}

/* Send all index data of a batch in one upload. */
static int upload_batch(struct tune_model *m, const struct tune_batch *b)
{
    int64_t used = 0, N = (int64_t)b->B * b->T;
    m->ids = stage(m, &used, b->ids, N);
    m->positions = stage(m, &used, b->positions, N);
    m->starts = stage(m, &used, b->starts, N);
    m->labels.forward++;
    m->labels.host_rows = m->staging + used;
    m->labels.rows = stage_labels(m, &used, b, true);
    m->labels.host_labels = m->staging + used;
    m->labels.labels = stage_labels(m, &used, b, false);
    return tune_device_upload(m->dev, m->batch, m->staging, used * 4);
}

int tune_model_labels(const struct tune_model *m, const struct tune_batch *b, struct tune_model_labels *labels)
{
    int64_t n = 0;
    for (int64_t i = 0; b->labels && i < (int64_t)b->B * b->T; i++)
        n += b->labels[i] != TUNE_NO_LABEL;
    *labels = m->labels;
    if (b->B == m->B && b->T == m->T && n == labels->rows.shape[0])
        return 0;
    return tune_error_set("the batch is not the last one given to the model: %d rows of %d with %lld labels, "
                          "expected %d of %d with %lld",
                          b->B, b->T, (long long)n, m->B, m->T, (long long)labels->rows.shape[0]);
}

int tune_model_same_labels(const struct tune_model *other, const struct tune_model *m, struct tune_model_labels *labels)
{
    int64_t n = m->labels.rows.shape[0], bytes = n * (int64_t)sizeof(int32_t);
    *labels = other->labels;
    if (n == labels->rows.shape[0] && other->B == m->B && other->T == m->T && !memcmp(labels->host_rows, m->labels.host_rows, (size_t)bytes) &&
        !memcmp(labels->host_labels, m->labels.host_labels, (size_t)bytes))
        return 0;
    return tune_error_set("the other model's last batch is not the same");
}

/* Compute the hidden states of the batch that was uploaded. */
static int all_forward(struct tune_model *m)
{
    const struct tune_model_config *c = &m->config;
    struct tune_tensor x = residual(m, m->x[0]), last = residual(m, m->x[c->layers]);
    struct tune_tensor rstd = stat(m, m->rstd);
    struct tune_tensor table = tune_model_tensor(m, tune_model_embedding(m), TUNE_WEIGHT);
    struct weight norm = view(m, c->layers + 1, TUNE_FINAL_NORM, false);
    on(m, -1, "");
    TRY(tune_embed_forward(m->dev, &x, &table, &m->ids, c->embedding_multiplier));
    if (m->noisy) {
        float size = (float)(m->noise_alpha / sqrt((double)m->T * c->hidden) * c->embedding_multiplier);
        TRY(tune_noise(m->dev, &x, m->step_at, (struct tune_dropout){.seed = m->noise_seed, .past_steps = m->past_steps, .layer = -1}, size));
    }
    for (int i = 0; i < c->layers; i++) {
        if (m->cached && m->cached->stop && *m->cached->stop)
            return 1;
        TRY(layer_forward(m, i, false));
    }
    m->hidden_tensor = rows(m, m->hidden, c->hidden);
    on(m, -1, "final");
    TRY(tune_rmsnorm_forward(m->dev, &m->hidden_tensor, &rstd, &last, &norm.w, c->norm_eps));
    on(m, -1, "");
    return 0;
}

static int forward(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor **hidden)
{
    TRY(check_batch(m, batch));
    m->B = batch->B;
    m->T = batch->T;
    TRY(upload_batch(m, batch));
    TRY(tune_device_group_begin(m->dev));
    int status = all_forward(m), ended = tune_device_group_end(m->dev);
    *hidden = &m->hidden_tensor;
    return status < 0 ? status : ended < 0 ? ended : status;
}

int tune_model_forward(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor **hidden)
{
    m->dropping = m->lora && m->lora->options.dropout > 0 && m->training;
    tune_device_does(m->dev, TUNE_FORWARD, -1, "");
    m->noisy = m->noise_alpha > 0 && m->training;
    m->bare = false;
    bool draws = m->dropping || m->noisy;
    if (draws && !m->step_at.at)
        m->step_at = m->own_step;
    if (draws)
        TRY(tune_begin_pass(m->dev, m->step_at));
    return forward(m, batch, hidden);
}

void tune_model_noise(struct tune_model *m, double alpha, uint64_t seed)
{
    m->noise_alpha = alpha;
    m->noise_seed = seed;
}

static int infer(struct tune_model *m, const struct tune_batch *batch, bool bare, struct tune_tensor **hidden)
{
    m->dropping = m->noisy = false;
    m->bare = bare;
    tune_device_does(m->dev, TUNE_EVALUATION, -1, "");
    return forward(m, batch, hidden);
}

int tune_model_infer(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor **hidden)
{
    return infer(m, batch, false, hidden);
}

int tune_model_extend(struct tune_model *m, const struct tune_cached *cached, const struct tune_batch *batch, bool bare,
                      struct tune_tensor **hidden)
{
    m->cached = cached;
    int status = infer(m, batch, bare, hidden);
    m->cached = NULL;
    return status;
}

int tune_model_infer_merged(struct tune_model *m, const struct tune_batch *batch, const struct tune_weights_source *merged,
                            struct tune_tensor **hidden)
{
    m->merged = merged;
    int status = infer(m, batch, false, hidden);
    m->merged = NULL;
    return status;
}

int tune_model_infer_base(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor **hidden)
{
    return infer(m, batch, true, hidden);
}

/* Backward of the feed-forward half: dx is replaced, tmp is overwritten. bottom: no gradient is
 * wanted below this product; LORA_PRODUCTS: all are wanted. */
static int feed_forward_backward(struct tune_model *m, int i, struct layer_weights *w, struct tune_tensor *dx,
                                 struct tune_tensor *tmp, enum lora_product bottom)
{
    const struct tune_model_config *c = &m->config;
    struct layer_state *s = &m->layer[i];
    struct tune_tensor mid = residual(m, s->mid), norm = rows(m, m->norm, c->hidden), rstd = stat(m, s->rstd2);
    struct tune_tensor gate_up = rows(m, s->gate_up, 2 * (int64_t)c->ffn), h = rows(m, m->h, c->ffn), dh = rows(m, m->dh, c->ffn);
    on(m, i, "");
    TRY(tune_swiglu_forward(m->dev, &h, &gate_up));
    TRY(product_backward(m, i, w, LORA_DOWN, bottom == LORA_DOWN ? NULL : &dh, dx, &h));
    if (bottom == LORA_DOWN)
        return 0;
    on(m, i, "");
    /* in place: gate_up becomes its own gradient */
    TRY(tune_swiglu_backward(m->dev, &gate_up, &dh, &gate_up));
    on(m, i, "2");
    TRY(tune_rmsnorm_forward(m->dev, &norm, NULL, &mid, &w->norm2.w, c->norm_eps));
    TRY(product_backward(m, i, w, LORA_GATE_UP, bottom == LORA_GATE_UP ? NULL : tmp, &gate_up, &norm));
    if (bottom == LORA_GATE_UP)
        return 0;
    on(m, i, "2");
    return tune_rmsnorm_backward(m->dev, dx, gradient(&w->norm2), tmp, &mid, &w->norm2.w, &rstd);
}

static int attention_half_backward(struct tune_model *m, int i, struct layer_weights *w, struct tune_tensor *dx,
                                   struct tune_tensor *tmp, enum lora_product bottom)
{
    const struct tune_model_config *c = &m->config;
    struct layer_state *s = &m->layer[i];
    int64_t N = (int64_t)m->B * m->T, HD = (int64_t)c->heads * c->head_dim, Q = tune_model_q(c);
    struct tune_tensor x = residual(m, m->x[i]), norm = rows(m, m->norm, c->hidden), rstd = stat(m, s->rstd1);
    struct tune_tensor qkv = rows(m, s->qkv, Q), att = rows(m, s->att, HD), dqkv = rows(m, m->dqkv, Q), datt = rows(m, m->datt, HD);
    struct tune_tensor lse = tune_tensor_2d(s->lse, TUNE_F32, N, c->heads);
    struct heads x3 = heads_of(m, &qkv), d3 = heads_of(m, &dqkv);
    TRY(product_backward(m, i, w, LORA_O, bottom == LORA_O ? NULL : &datt, dx, &att));
    if (bottom == LORA_O)
        return 0;
    on(m, i, "");
    TRY(tune_attention_backward(m->dev, &d3.q, &d3.k, &d3.v, &datt, &x3.q, &x3.k, &x3.v, &att, &lse, some(&m->starts),
                                attention_how(m, i)));
    TRY(rotate(m, &dqkv, true));
    if (c->qk_norm) {
        struct tune_tensor raw = rows(m, s->raw, Q);
        struct tune_tensor rq = tune_tensor_2d(s->rstd_q, TUNE_F32, N, c->heads);
        struct tune_tensor rk = tune_tensor_2d(s->rstd_k, TUNE_F32, N, c->kv_heads);
        on(m, i, "q");
        TRY(tune_headnorm_backward(m->dev, &dqkv, gradient(&w->q_norm), &raw, &w->q_norm.w, &rq, 0, c->heads));
        on(m, i, "k");
        TRY(tune_headnorm_backward(m->dev, &dqkv, gradient(&w->k_norm), &raw, &w->k_norm.w, &rk, c->heads, c->kv_heads));
    }
    on(m, i, "1");
    TRY(tune_rmsnorm_forward(m->dev, &norm, NULL, &x, &w->norm1.w, c->norm_eps));
    TRY(product_backward(m, i, w, LORA_QKV, bottom == LORA_QKV ? NULL : tmp, &dqkv, &norm));
    if (bottom == LORA_QKV)
        return 0;
    on(m, i, "1");
    return tune_rmsnorm_backward(m->dev, dx, gradient(&w->norm1), tmp, &x, &w->norm1.w, &rstd);
}

/* The lowest unit that has a gradient. Backward stops there. */
static int lowest_trainable(const struct tune_model *m)
{
    int lowest = m->config.layers + 2;
    for (int i = 0; i < m->parameters.count; i++)
        if (m->parameters.at[i].gradient >= 0 && m->parameters.at[i].unit < lowest)
            lowest = m->parameters.at[i].unit;
    return lowest;
}

/* The product of layer i below which nothing has a gradient. LORA_PRODUCTS: something has, or may
 * have. */
static enum lora_product bottom_of(const struct tune_model *m, int i, int lowest)
{
    int k = 0;
    if (!m->lora || i + 1 > lowest)
        return LORA_PRODUCTS;
    for (int row = 0; row < m->parameters.base; row++)
        if (m->parameters.at[row].gradient >= 0 && m->parameters.at[row].unit <= i + 1)
            return LORA_PRODUCTS;
    while (k < LORA_PRODUCTS && m->lora->group[i * LORA_PRODUCTS + k].count == 0)
        k++;
    return (enum lora_product)k;
}

static int all_backward(struct tune_model *m, struct tune_tensor *dhidden)
{
    const struct tune_model_config *c = &m->config;
    struct weight norm = view(m, c->layers + 1, TUNE_FINAL_NORM, false);
    struct tune_tensor last = residual(m, m->x[c->layers]), rstd = stat(m, m->rstd), dx = residual(m, m->dnorm);
    TRY(tune_zero(m->dev, &dx));
    on(m, -1, "final");
    TRY(tune_rmsnorm_backward(m->dev, &dx, gradient(&norm), dhidden, &last, &norm.w, &rstd));
    int lowest = lowest_trainable(m);
    for (int i = c->layers - 1; i >= 0 && i + 1 >= lowest; i--) {
        struct layer_weights w = layer_view(m, i);
        if (m->checkpointing)
            TRY(layer_forward(m, i, true));
        enum lora_product bottom = bottom_of(m, i, lowest);
        TRY(feed_forward_backward(m, i, &w, &dx, dhidden, bottom));
        if (bottom != LORA_DOWN && bottom != LORA_GATE_UP)
            TRY(attention_half_backward(m, i, &w, &dx, dhidden, bottom));
    }
    const struct tune_parameter *embedding = tune_model_embedding(m);
    if (embedding->gradient < 0)
        return 0;
    struct tune_tensor dw = tune_tensor_2d(tune_model_gradient_at(m, embedding), TUNE_F32, c->vocabulary, c->hidden);
    on(m, -1, "");
    return tune_embed_backward(m->dev, &dw, &dx, &m->ids, c->embedding_multiplier);
}

int tune_model_backward(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor *dhidden)
{
    if (!m->training || !m->kept[TUNE_GRADIENT].at || batch->B != m->B || batch->T != m->T)
        return tune_error_set("backward: %s", !m->training ? "the model was not reserved with TUNE_FOR_TRAINING"
                                              : !m->kept[TUNE_GRADIENT].at
                                                  ? "there are no gradients; call tune_model_zero_grad first"
                                                  : "the batch is not the last one given to tune_model_forward");
    tune_device_does(m->dev, TUNE_BACKWARD, -1, "");
    TRY(tune_device_group_begin(m->dev));
    int status = all_backward(m, dhidden), ended = tune_device_group_end(m->dev);
    return status < 0 ? status : ended;
}

int tune_model_logits(struct tune_model *m, const struct tune_tensor *hidden, const int32_t *chosen, int count, float *logits)
{
    const struct tune_model_config *c = &m->config;
    struct tune_tensor w, dw;
    int64_t e = tune_dtype_bits(m->dtype) / 8, V = c->vocabulary;
    tune_model_output_weight(m, &w, &dw);
    tune_address out = tune_device_alloc(m->dev, V * 4, "logits");
    int status = out.at ? 0 : -1;
    for (int i = 0; i < count && status == 0; i++) {
        struct tune_tensor row = tune_tensor_2d(tune_address_plus(hidden->data, (int64_t)chosen[i] * c->hidden * e), m->dtype, 1, c->hidden);
        struct tune_tensor y = tune_tensor_2d(out, TUNE_F32, 1, V);
        status = tune_gemm(m->dev, &y, &row, false, &w, true, 1 / c->logits_scaling, 0, m->dtype);
        if (status == 0)
            status = tune_device_download(m->dev, logits + i * V, out, V * 4);
    }
    if (status == 0)
        status = tune_device_sync(m->dev);
    tune_device_free(m->dev, out, V * 4);
    return status;
}
