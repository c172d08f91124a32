/* transformer.c - forward and hand-written backward.
 *
 *            x[i] ──norm1── Wqkv ──rope── attention ── Wo ──(+)── mid ──norm2── Wgu ──swiglu── Wd ──(+)── x[i+1]
 *              └───────────────────────────────────────────┘  └──────────────────────────────────┘
 *   kept:    x[i]  rstd1    qkv          att, lse              mid   rstd2    gate_up
 *
 * Backward recomputes the outputs of norm and gate. That is cheap elementwise work, and saves 8
 * bytes for each element. With checkpointing only x[i] is kept, and backward runs the layer's
 * forward again. It runs the same operations on the same numbers, so the gradients have the same
 * bits. */
#include <math.h>
#include <string.h>

#include "core/nf4.h"
#include "core/try.h"
#include "devices/ops.h"
#include "models/activations.h"

/* A parameter, or a group that is one matrix, and its gradient (address 0: frozen). ndim 0: the unit has none. */
struct weight {
    struct tune_tensor w, dw;
};

/* A layer: its modules, the columns of its activations, and its weights. */
struct layer {
    int i;
    const struct tune_model_pass *pass;
    const struct tune_layer *is;
    struct tune_widths n;
    struct weight norm1, q_norm, k_norm, post1, norm2, post2, w[TUNE_LINEARS], bias[TUNE_LINEARS];
};

static const char *const linear_names[TUNE_LINEARS] = {"qkv", "o", "gate_up", "down"};

/* The weight of a role (or its bias) in a unit, with the rows fused to it. ndim 0: there is none. */
static struct weight view(struct tune_model *m, int unit, enum tune_role role, bool bias)
{
    const struct tune_parameter *p = tune_model_row(m, unit, role, bias), *end = &m->parameters.at[m->parameters.base];
    struct weight v = {0};
    int64_t rows = 0;
    int count = 0;
    if (!p)
        return v;
    for (const struct tune_parameter *r = p; r == p || (r < end && r->fused); r++, count++)
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

static struct layer layer_view(struct tune_model *m, const struct tune_model_pass *pass, int i)
{
    int unit = i + 1;
    struct layer w = {
        .i = i,
        .pass = pass,
        .is = &m->parameters.unit[unit],
        .n = tune_model_widths(m, i),
        .norm1 = view(m, unit, TUNE_INPUT_NORM, false),
        .q_norm = view(m, unit, TUNE_QUERY_NORM, false),
        .k_norm = view(m, unit, TUNE_KEY_NORM, false),
        .post1 = view(m, unit, TUNE_POST_ATTENTION_NORM, false),
        .norm2 = view(m, unit, TUNE_MLP_NORM, false),
        .post2 = view(m, unit, TUNE_POST_MLP_NORM, false),
    };
    for (int k = 0; k < TUNE_LINEARS; k++) {
        int64_t out, in;
        const struct tune_module *first = tune_layer_linear(w.is, (enum tune_layer_linear)k, &out, &in);
        w.w[k] = view(m, unit, first->role, false);
        w.bias[k] = view(m, unit, first->role, true);
    }
    return w;
}

/* Whether the unit has that weight, taken or not. */
static bool exists(const struct weight *w)
{
    return w->w.ndim > 0;
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
static void on(struct tune_model *m, const char *what)
{
    m->dev->doing.what = what;
}

/* A linear layer of layer i, with adapters if the model has them. The profiler is told. */
static struct linear linear(struct tune_model *m, struct layer *w, enum tune_layer_linear which)
{
    struct weight *matrix = &w->w[which], *bias = &w->bias[which];
    on(m, linear_names[which]);
    return (struct linear){w->pass, w->i, which, &matrix->w, exists(bias) ? &bias->w : NULL, gradient(matrix), gradient(bias),
                            tune_layer_adds(w->is, which) ? m->config.residual_multiplier : 1};
}

static int linear_forward(struct tune_model *m, struct layer *w, enum tune_layer_linear which,
                          struct tune_tensor *y, const struct tune_tensor *x, const struct tune_tensor *r)
{
    struct linear p = linear(m, w, which);
    return tune_model_linear_forward(m, &p, y, x, r);
}

static int linear_backward(struct tune_model *m, struct layer *w, enum tune_layer_linear which,
                           struct tune_tensor *dx, const struct tune_tensor *dy, const struct tune_tensor *x)
{
    struct linear p = linear(m, w, which);
    return tune_model_linear_backward(m, &p, dx, dy, x);
}

/* ---- norms that a layer may lack ---- */

/* y = norm(x), or x if there is no such norm. rstd NULL: for backward, which has it. */
static int norm_forward(struct tune_model *m, const char *what, const struct weight *norm, struct tune_tensor *y,
                        struct tune_tensor *rstd, const struct tune_tensor *x)
{
    on(m, what);
    if (!exists(norm))
        return tune_axpby(m->dev, y, x, 1, 0);
    return tune_rmsnorm_forward(m->dev, y, rstd, x, &norm->w, m->config.norm_eps, m->config.norm_plus);
}

/* dx += the gradient of that. */
static int norm_backward(struct tune_model *m, const char *what, struct weight *norm, struct tune_tensor *dx,
                         const struct tune_tensor *dy, const struct tune_tensor *x, const struct tune_tensor *rstd)
{
    on(m, what);
    if (!exists(norm))
        return tune_axpby(m->dev, dx, dy, 1, 1);
    return tune_rmsnorm_backward(m->dev, dx, gradient(norm), dy, x, &norm->w, rstd, m->config.norm_plus);
}

/* y = r + linear(x), through the post norm if there is one. kept, rstd: input and statistic of that norm. r NULL: only
 * compute these two again. */
static int add_linear(struct tune_model *m, struct layer *w, enum tune_layer_linear which, const struct weight *post, tune_address kept,
                      tune_address rstd, struct tune_tensor *y, const struct tune_tensor *x, const struct tune_tensor *r)
{
    struct tune_tensor input = rows(m, kept, m->config.hidden), s = stat(m, rstd), normed = residual(m, m->post);
    if (!exists(post))
        return linear_forward(m, w, which, y, x, r);
    TRY(linear_forward(m, w, which, &input, x, NULL));
    on(m, which == TUNE_LINEAR_O ? "post 1" : "post 2");
    TRY(tune_rmsnorm_forward(m->dev, &normed, &s, &input, &post->w, m->config.norm_eps, m->config.norm_plus));
    if (!r)
        return 0;
    TRY(tune_copy(m->dev, y, r));
    return tune_axpby(m->dev, y, &normed, 1, 1);
}

/* dx: set to the gradient of the linear layer's input. dy: that of y. */
static int add_linear_backward(struct tune_model *m, struct layer *w, enum tune_layer_linear which, struct weight *post,
                               tune_address kept, tune_address rstd, struct tune_tensor *dx, const struct tune_tensor *dy,
                               const struct tune_tensor *x)
{
    struct tune_tensor input = rows(m, kept, m->config.hidden), s = stat(m, rstd), dinput = residual(m, m->post);
    if (!exists(post))
        return linear_backward(m, w, which, dx, dy, x);
    on(m, which == TUNE_LINEAR_O ? "post 1" : "post 2");
    TRY(tune_zero(m->dev, &dinput));
    TRY(tune_rmsnorm_backward(m->dev, &dinput, gradient(post), dy, &input, &post->w, &s, m->config.norm_plus));
    return linear_backward(m, w, which, dx, &dinput, x);
}

/* NULL if the batch has none. */
static const struct tune_tensor *some(const struct tune_tensor *index)
{
    return index->shape[0] > 0 ? index : NULL;
}

static int rotate(struct tune_model *m, const struct layer *w, struct tune_tensor *x, bool backward)
{
    const struct tune_model_config *c = &m->config;
    const struct tune_cached *k = w->pass->cache;
    int i = w->is->rotary, T = k ? k->capacity : m->max_T;
    if (i < 0)
        return 0;
    i = c->long_from > 0 && (k ? k->longer : m->longest > c->long_from) ? 1 : i;
    tune_address at = tune_address_plus(k ? k->rope : m->rope, i * (int64_t)T * c->rotary[0].dims * 4);
    struct tune_tensor table = tune_tensor_2d(at, TUNE_F32, T, c->rotary[i].dims);
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

static struct tune_attention attention_params(const struct tune_model *m, const struct layer *w)
{
    return (struct tune_attention){w->is->window, m->config.attention_scale};
}

/* Put the keys and values of layer i into the cache, and let h name all that are there. */
static int put_keys(struct tune_model *m, const struct tune_cached *k, int i, const struct tune_tensor *qkv, struct heads *h)
{
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
static int attend(struct tune_model *m, const struct layer *w, const struct tune_tensor *qkv, struct tune_tensor *att)
{
    struct tune_tensor lse = tune_tensor_2d(m->layer[w->i].lse, TUNE_F32, (int64_t)m->B * m->T, m->config.heads);
    struct heads h = heads_of(m, qkv);
    const struct tune_cached *k = w->pass->cache;
    if (k)
        TRY(put_keys(m, k, w->i, qkv, &h));
    return tune_attention_forward(m->dev, att, &lse, &h.q, &h.k, &h.v, k ? &k->starts : some(&m->starts),
                                  k ? &k->kv_length : NULL, k ? &k->q_offset : NULL, attention_params(m, w));
}

/* The number of the first norm of a key in a row of queries and keys. */
static int first_key(const struct layer *w)
{
    return (int)(w->n.att / w->k_norm.w.shape[0]);
}

/* Compute qkv from x[i], with bias, head norms and rope. */
static int project_qkv(struct tune_model *m, struct layer *w)
{
    const struct tune_model_config *c = &m->config;
    struct layer_state *s = &m->layer[w->i];
    int64_t N = (int64_t)m->B * m->T, Q = w->n.qkv;
    bool qk_norm = w->n.q_norms > 0;
    struct tune_tensor x = residual(m, m->x[w->i]), norm = rows(m, m->norm, c->hidden), rstd = stat(m, s->rstd1);
    struct tune_tensor qkv = rows(m, s->qkv, Q), raw = rows(m, qk_norm ? s->raw : s->qkv, Q);
    TRY(norm_forward(m, "1", &w->norm1, &norm, &rstd, &x));
    TRY(linear_forward(m, w, TUNE_LINEAR_QKV, &raw, &norm, NULL));
    on(m, "");
    if (qk_norm) {
        struct tune_tensor rq = tune_tensor_2d(s->rstd_q, TUNE_F32, N, w->n.q_norms);
        struct tune_tensor rk = tune_tensor_2d(s->rstd_k, TUNE_F32, N, w->n.k_norms);
        /* copies the values; queries and keys are overwritten below */
        TRY(tune_copy(m->dev, &qkv, &raw));
        on(m, "q");
        TRY(tune_headnorm_forward(m->dev, &qkv, &rq, &raw, &w->q_norm.w, 0, (int)w->n.q_norms, c->norm_eps, m->config.norm_plus));
        on(m, "k");
        TRY(tune_headnorm_forward(m->dev, &qkv, &rk, &raw, &w->k_norm.w, first_key(w), (int)w->n.k_norms, c->norm_eps, m->config.norm_plus));
        on(m, "");
    }
    return rotate(m, w, &qkv, false);
}

/* Compute x[i+1] from x[i]. recompute: for backward; compute only the activations it reads. */
static int layer_forward(struct tune_model *m, const struct tune_model_pass *pass, int i, bool recompute)
{
    const struct tune_model_config *c = &m->config;
    struct layer w = layer_view(m, pass, i);
    struct layer_state *s = &m->layer[i];
    struct tune_tensor x = residual(m, m->x[i]), out = residual(m, m->x[i + 1]);
    struct tune_tensor qkv = rows(m, s->qkv, w.n.qkv), att = rows(m, s->att, w.n.att);
    struct tune_tensor mid = residual(m, s->mid), norm = rows(m, m->norm, c->hidden), rstd = stat(m, s->rstd2);
    struct tune_tensor gate_up = rows(m, s->gate_up, w.n.gate_up), h = rows(m, m->h, w.n.h);
    TRY(project_qkv(m, &w));
    TRY(attend(m, &w, &qkv, &att));
    TRY(add_linear(m, &w, TUNE_LINEAR_O, &w.post1, s->post1, s->rstd_post1, &mid, &att, &x));
    TRY(norm_forward(m, "2", &w.norm2, &norm, &rstd, &mid));
    TRY(linear_forward(m, &w, TUNE_LINEAR_GATE_UP, &gate_up, &norm, NULL));
    on(m, "");
    if (recompute && !m->lora && w.n.post2 == 0)
        return 0;
    TRY(tune_glu_forward(m->dev, &h, &gate_up, w.is->gate));
    if (recompute && w.n.post2 == 0) {
        struct linear down = linear(m, &w, TUNE_LINEAR_DOWN);
        return tune_model_linear_recompute(m, &down, &h);
    }
    return add_linear(m, &w, TUNE_LINEAR_DOWN, &w.post2, s->post2, s->rstd_post2, &out, &h, recompute ? NULL : &mid);
}

/* Check positions and starts, and find the longest text. */
static int check_positions(struct tune_model *m, const struct tune_batch *b)
{
    m->longest = 0;
    for (int64_t i = 0; i < (int64_t)b->B * b->T; i++) {
        int64_t t = i % b->T, position = b->positions ? b->positions[i] : t, start = b->starts ? b->starts[i] : 0;
        int64_t before = b->starts && t > 0 ? b->starts[i - 1] : 0;
        if (position < 0 || position >= m->max_T || start < before || start > t)
            return tune_error_set(
                "row %lld, token %lld: position %lld, start %lld; expected a position below %d, and a start "
                "from the previous token's start to this token",
                (long long)(i / b->T), (long long)t, (long long)position, (long long)start, m->max_T);
        m->longest = position >= m->longest ? (int)position + 1 : m->longest;
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

static int check_batch(struct tune_model *m, const struct tune_model_pass *pass, const struct tune_batch *b)
{
    bool fits = pass->cache ? (int64_t)b->B * b->T <= tune_model_max_tokens(m) : b->B <= m->max_B && b->T <= m->max_T;
    if (b->B < 1 || b->T < 1 || !fits)
        return tune_error_set("a batch of %d rows of %d positions; tune_model_reserve made room for %d of %d", b->B, b->T,
                              m->max_B, m->max_T);
    for (int64_t i = 0; i < (int64_t)b->B * b->T; i++) {
        TRY(check_token(m, b, i, "token id", b->ids[i]));
        if (b->labels && b->labels[i] != TUNE_NO_LABEL)
            TRY(check_token(m, b, i, "label", b->labels[i]));
    }
    return pass->cache ? 0 : check_positions(m, b);
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

/* ---- units ---- */

/* Operations of one unit: its weights are there, and the device may queue them as one group. next: the unit that comes after it;
 * -1: none. */
static int begin_unit(struct tune_model *m, int unit, int next)
{
    TRY(tune_unit_take(m, unit));
    TRY(tune_slot_ahead(m, next));
    return tune_device_group_begin(m->dev) < 0 ? tune_unit_done(m, unit, -1) : 0;
}

/* status: of the operations. Returns it, or -1 if the end failed. */
static int end_unit(struct tune_model *m, int unit, int status)
{
    int ended = tune_device_group_end(m->dev);
    return tune_unit_done(m, unit, status < 0 || ended == 0 ? status : ended);
}

static int embed(struct tune_model *m, const struct tune_model_pass *pass)
{
    const struct tune_model_config *c = &m->config;
    struct tune_tensor x = residual(m, m->x[0]), table = tune_model_tensor(m, tune_model_embedding(m), TUNE_WEIGHT);
    on(m, "");
    TRY(tune_embed_forward(m->dev, &x, &table, &m->ids, c->embedding_multiplier));
    if (!pass->noise)
        return 0;
    double scale = c->scaled_embedding ? 1 : c->embedding_multiplier;
    float size = (float)(m->noise_alpha / sqrt((double)m->T * c->hidden) * scale);
    return tune_noise(m->dev, &x, m->step_at, (struct tune_dropout){.seed = m->noise_seed, .past_steps = m->past_steps, .layer = -1}, size);
}

static int final_norm(struct tune_model *m)
{
    const struct tune_model_config *c = &m->config;
    struct tune_tensor last = residual(m, m->x[c->layers]), rstd = stat(m, m->rstd);
    struct weight norm = view(m, c->layers + 1, TUNE_FINAL_NORM, false);
    m->hidden_tensor = rows(m, m->hidden, c->hidden);
    on(m, "final");
    TRY(tune_rmsnorm_forward(m->dev, &m->hidden_tensor, &rstd, &last, &norm.w, c->norm_eps, c->norm_plus));
    on(m, "");
    return 0;
}

/* Compute the hidden states of the batch that was uploaded. */
static int all_forward(struct tune_model *m, const struct tune_model_pass *pass)
{
    int layers = m->config.layers;
    TRY(begin_unit(m, 0, 1));
    TRY(end_unit(m, 0, embed(m, pass)));
    for (int i = 0; i < layers; i++) {
        if (pass->cache && pass->cache->stop && *pass->cache->stop)
            return 1;
        TRY(begin_unit(m, i + 1, i + 2));
        TRY(end_unit(m, i + 1, layer_forward(m, pass, i, false)));
    }
    TRY(begin_unit(m, layers + 1, -1));
    return end_unit(m, layers + 1, final_norm(m));
}

/* The loss adds to the output's gradient before backward begins. */
static int open_output(struct tune_model *m)
{
    if (!tune_model_gathers(m) || !m->state[TUNE_GRADIENT].at)
        return 0;
    TRY(tune_gradients_collect(m));
    return tune_gradients_open(m, tune_model_output_unit(m));
}

int tune_model_run(struct tune_model *m, const struct tune_model_pass *pass, const struct tune_batch *batch, struct tune_tensor **hidden)
{
    TRY(tune_unit_check(m));
    m->pass = *pass;
    tune_device_does(m->dev, pass->training ? TUNE_FORWARD : TUNE_EVALUATION, -1, "");
    if (pass->dropout || pass->noise) {
        m->step_at = m->step_at.at ? m->step_at : m->own_step;
        TRY(tune_begin_pass(m->dev, m->step_at, m->comm ? tune_comm_size(m->comm) : 1));
    }
    TRY(check_batch(m, pass, batch));
    m->B = batch->B;
    m->T = batch->T;
    TRY(upload_batch(m, batch));
    *hidden = &m->hidden_tensor;
    TRY(pass->training ? open_output(m) : 0);
    return all_forward(m, pass);
}

int tune_model_no_batch(struct tune_model *m)
{
    for (int unit = 0; tune_model_gathers(m) && unit < m->config.layers + 2; unit++) {
        TRY(tune_unit_take(m, unit));
        TRY(tune_slot_ahead(m, unit <= m->config.layers ? unit + 1 : -1));
        TRY(tune_unit_release(m, unit));
    }
    return 0;
}

int tune_model_forward(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor **hidden)
{
    struct tune_model_pass pass = {.training = true, .dropout = m->lora && m->lora->options.dropout > 0 && m->training,
                             .noise = m->noise_alpha > 0 && m->training};
    return tune_model_run(m, &pass, batch, hidden);
}

void tune_model_noise(struct tune_model *m, double alpha, uint64_t seed)
{
    m->noise_alpha = alpha;
    m->noise_seed = seed;
}

int tune_model_infer(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor **hidden)
{
    return tune_model_run(m, &(struct tune_model_pass){0}, batch, hidden);
}

int tune_model_infer_base(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor **hidden)
{
    return tune_model_run(m, &(struct tune_model_pass){.base = true}, batch, hidden);
}

/* Backward of the feed-forward half: dx is replaced, tmp is overwritten. bottom: no gradient is
 * wanted below this linear layer; TUNE_LINEARS: all are wanted. */
static int feed_forward_backward(struct tune_model *m, struct layer *w, struct tune_tensor *dx,
                                 struct tune_tensor *tmp, enum tune_layer_linear bottom)
{
    const struct tune_model_config *c = &m->config;
    struct layer_state *s = &m->layer[w->i];
    struct tune_tensor mid = residual(m, s->mid), norm = rows(m, m->norm, c->hidden), rstd = stat(m, s->rstd2);
    struct tune_tensor gate_up = rows(m, s->gate_up, w->n.gate_up), h = rows(m, m->h, w->n.h), dh = rows(m, m->dh, w->n.h);
    on(m, "");
    TRY(tune_glu_forward(m->dev, &h, &gate_up, w->is->gate));
    TRY(add_linear_backward(m, w, TUNE_LINEAR_DOWN, &w->post2, s->post2, s->rstd_post2, bottom == TUNE_LINEAR_DOWN ? NULL : &dh, dx, &h));
    if (bottom == TUNE_LINEAR_DOWN)
        return 0;
    on(m, "");
    /* in place: gate_up becomes its own gradient */
    TRY(tune_glu_backward(m->dev, &gate_up, &dh, &gate_up, w->is->gate));
    TRY(norm_forward(m, "2", &w->norm2, &norm, NULL, &mid));
    TRY(linear_backward(m, w, TUNE_LINEAR_GATE_UP, bottom == TUNE_LINEAR_GATE_UP ? NULL : tmp, &gate_up, &norm));
    if (bottom == TUNE_LINEAR_GATE_UP)
        return 0;
    return norm_backward(m, "2", &w->norm2, dx, tmp, &mid, &rstd);
}

static int attention_half_backward(struct tune_model *m, struct layer *w, struct tune_tensor *dx,
                                   struct tune_tensor *tmp, enum tune_layer_linear bottom)
{
    const struct tune_model_config *c = &m->config;
    struct layer_state *s = &m->layer[w->i];
    int64_t N = (int64_t)m->B * m->T, HD = w->n.att, Q = w->n.qkv;
    struct tune_tensor x = residual(m, m->x[w->i]), norm = rows(m, m->norm, c->hidden), rstd = stat(m, s->rstd1);
    struct tune_tensor qkv = rows(m, s->qkv, Q), att = rows(m, s->att, HD), dqkv = rows(m, m->dqkv, Q), datt = rows(m, m->datt, HD);
    struct tune_tensor lse = tune_tensor_2d(s->lse, TUNE_F32, N, c->heads);
    struct heads x3 = heads_of(m, &qkv), d3 = heads_of(m, &dqkv);
    TRY(add_linear_backward(m, w, TUNE_LINEAR_O, &w->post1, s->post1, s->rstd_post1, bottom == TUNE_LINEAR_O ? NULL : &datt, dx, &att));
    if (bottom == TUNE_LINEAR_O)
        return 0;
    on(m, "");
    TRY(tune_attention_backward(m->dev, &d3.q, &d3.k, &d3.v, &datt, &x3.q, &x3.k, &x3.v, &att, &lse, some(&m->starts),
                                attention_params(m, w)));
    TRY(rotate(m, w, &dqkv, true));
    if (w->n.q_norms > 0) {
        struct tune_tensor raw = rows(m, s->raw, Q);
        struct tune_tensor rq = tune_tensor_2d(s->rstd_q, TUNE_F32, N, w->n.q_norms);
        struct tune_tensor rk = tune_tensor_2d(s->rstd_k, TUNE_F32, N, w->n.k_norms);
        on(m, "q");
        TRY(tune_headnorm_backward(m->dev, &dqkv, gradient(&w->q_norm), &raw, &w->q_norm.w, &rq, 0, (int)w->n.q_norms, m->config.norm_plus));
        on(m, "k");
        TRY(tune_headnorm_backward(m->dev, &dqkv, gradient(&w->k_norm), &raw, &w->k_norm.w, &rk, first_key(w), (int)w->n.k_norms, m->config.norm_plus));
    }
    TRY(norm_forward(m, "1", &w->norm1, &norm, NULL, &x));
    TRY(linear_backward(m, w, TUNE_LINEAR_QKV, bottom == TUNE_LINEAR_QKV ? NULL : tmp, &dqkv, &norm));
    if (bottom == TUNE_LINEAR_QKV)
        return 0;
    return norm_backward(m, "1", &w->norm1, dx, tmp, &x, &rstd);
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

/* The linear layer of layer i below which nothing has a gradient. TUNE_LINEARS: something has, or may
 * have. */
static enum tune_layer_linear bottom_of(const struct tune_model *m, int i, int lowest)
{
    int k = 0;
    if (!m->lora || i + 1 > lowest)
        return TUNE_LINEARS;
    for (int row = 0; row < m->parameters.base; row++)
        if (m->parameters.at[row].gradient >= 0 && m->parameters.at[row].unit <= i + 1)
            return TUNE_LINEARS;
    while (k < TUNE_LINEARS && m->lora->group[i * TUNE_LINEARS + k].count == 0)
        k++;
    return (enum tune_layer_linear)k;
}

static int final_norm_backward(struct tune_model *m, struct tune_tensor *dx, const struct tune_tensor *dhidden)
{
    const struct tune_model_config *c = &m->config;
    struct weight norm = view(m, c->layers + 1, TUNE_FINAL_NORM, false);
    struct tune_tensor last = residual(m, m->x[c->layers]), rstd = stat(m, m->rstd);
    on(m, "final");
    TRY(tune_zero(m->dev, dx));
    return tune_rmsnorm_backward(m->dev, dx, gradient(&norm), dhidden, &last, &norm.w, &rstd, c->norm_plus);
}

/* dx: the gradient of the layer's output, then of its input. tmp is overwritten. */
static int layer_backward(struct tune_model *m, int i, int lowest, struct tune_tensor *dx, struct tune_tensor *tmp)
{
    struct layer w = layer_view(m, &m->pass, i);
    enum tune_layer_linear bottom = bottom_of(m, i, lowest);
    if (m->checkpointing)
        TRY(layer_forward(m, &m->pass, i, true));
    TRY(feed_forward_backward(m, &w, dx, tmp, bottom));
    if (bottom == TUNE_LINEAR_DOWN || bottom == TUNE_LINEAR_GATE_UP)
        return 0;
    return attention_half_backward(m, &w, dx, tmp, bottom);
}

static int embed_backward(struct tune_model *m, const struct tune_tensor *dx)
{
    const struct tune_parameter *p = tune_model_embedding(m);
    struct tune_tensor dw = tune_tensor_2d(tune_model_gradient_at(m, p), TUNE_F32, p->shape[0], p->shape[1]);
    on(m, "");
    return tune_embed_backward(m->dev, &dw, dx, &m->ids, m->config.embedding_multiplier);
}

/* The gradient of the embedding needs no weights, so none are gathered for it. */
static int embed_unit_backward(struct tune_model *m, const struct tune_tensor *dx)
{
    TRY(tune_unit_take_own(m, 0));
    int status = tune_device_group_begin(m->dev);
    if (status == 0) {
        status = embed_backward(m, dx);
        int ended = tune_device_group_end(m->dev);
        status = status < 0 ? status : ended;
    }
    return tune_unit_done_own(m, 0, status);
}

/* Like begin_unit. The layer below comes next, down to the unit `lowest`. */
static int begin_backward(struct tune_model *m, int unit, int lowest)
{
    TRY(tune_gradients_open(m, unit));
    return begin_unit(m, unit, unit > 1 && unit - 1 >= lowest ? unit - 1 : -1);
}

static int all_backward(struct tune_model *m, struct tune_tensor *dhidden, bool last)
{
    int layers = m->config.layers, lowest = lowest_trainable(m);
    struct tune_tensor dx = residual(m, m->dnorm);
    TRY(begin_backward(m, layers + 1, lowest));
    TRY(end_unit(m, layers + 1, final_norm_backward(m, &dx, dhidden)));
    TRY(tune_model_reduce_unit(m, layers + 1, last));
    for (int i = layers - 1; i >= 0 && i + 1 >= lowest; i--) {
        TRY(begin_backward(m, i + 1, lowest));
        TRY(end_unit(m, i + 1, layer_backward(m, i, lowest, &dx, dhidden)));
        TRY(tune_model_reduce_unit(m, i + 1, last));
    }
    if (tune_model_embedding(m)->gradient < 0)
        return 0;
    TRY(tune_gradients_open(m, 0));
    TRY(embed_unit_backward(m, &dx));
    return tune_model_reduce_unit(m, 0, last);
}

int tune_model_backward(struct tune_model *m, const struct tune_batch *batch, struct tune_tensor *dhidden)
{
    if (!m->training || !m->state[TUNE_GRADIENT].at || !m->pass.training || batch->B != m->B || batch->T != m->T)
        return tune_error_set("backward: %s", !m->training ? "the model was not reserved with TUNE_FOR_TRAINING"
                                              : !m->state[TUNE_GRADIENT].at
                                                  ? "there are no gradients; call tune_model_zero_grad first"
                                              : !m->pass.training ? "the model's last pass was an inference; call tune_model_forward first"
                                                  : "the batch is not the last one given to tune_model_forward");
    if (m->comm && m->reduced_from < m->config.layers + 2)
        return tune_error_set("backward: the step's last micro-batch has gone backward already, and its gradients are on their way to the "
                              "other ranks; set `last` of the batches before to false");
    tune_device_does(m->dev, TUNE_BACKWARD, -1, "");
    TRY(tune_unit_check(m));
    return all_backward(m, dhidden, batch->last);
}
