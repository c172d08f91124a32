/* linear.c - the linear layers of a transformer layer with their adapters, forward and backward.
 *
 *     LoRA:  h = d A^T            y = x W^T + s h B^T             d = dropout(x), or x
 *     DoRA:  u = d W^T + s h B^T  y = (x - d) W^T + g u
 *            which equals x W^T + (g - 1) d W^T + g s h B^T
 *
 * Forward keeps h, u and g; backward recomputes d. With dz = dy (LoRA) or dz = g dy (DoRA):
 *     dB += s dz^T h    dh = s dz B    dA += dh^T d    dmagnitude += sum of dy u / |W + s B A|
 *     LoRA: dx = dy W + mask(dh A)    DoRA: dx = dy W + mask((g - 1) dy W + dh A)
 *
 * mask applies the dropout mask. The gradient of W is computed only if it is wanted. */
#include "core/try.h"
#include "devices/ops.h"
#include "models/activations.h"

/* The adapters of a linear layer; NULL: none, or none wanted. */
static const struct lora_group *group(const struct tune_model *m, const struct linear *p)
{
    const struct lora_group *g = m->lora && !p->pass->base ? &m->lora->group[p->layer * TUNE_LINEARS + p->which] : NULL;
    return g && g->count > 0 ? g : NULL;
}

static struct lora_state *state(struct tune_model *m, const struct linear *p)
{
    return &m->layer[p->layer].lora[p->which];
}

static struct tune_tensor parameter(struct tune_model *m, int row)
{
    return tune_model_tensor(m, &m->parameters.at[row], TUNE_WEIGHT);
}

static struct tune_tensor gradient(struct tune_model *m, int row)
{
    struct tune_tensor t = parameter(m, row);
    t.data = tune_model_gradient_at(m, &m->parameters.at[row]);
    return t;
}

/* All A matrices of a linear layer as one matrix, given a view of the first. */
static struct tune_tensor all_a(struct tune_tensor first, const struct lora_group *g)
{
    first.shape[0] = g->rank;
    return first;
}

/* A range of g, or of 1/|W + s B A| if inverse. */
static struct tune_tensor factors(const struct lora_state *s, const struct lora_group *g, bool inverse, int64_t at, int64_t n)
{
    return tune_tensor_1d(tune_address_plus(s->g, ((inverse ? g->out : 0) + at) * 4), TUNE_F32, n);
}

/* The dropout of this linear layer in this forward pass. */
static struct tune_dropout dropout(const struct tune_model *m, const struct linear *p)
{
    return (struct tune_dropout){m->lora->seed, m->past_steps, p->layer, (int)p->which, m->lora->options.dropout};
}

/* Compute d. Without dropout it is x itself. */
static int dropped(struct tune_model *m, const struct linear *p, const struct tune_tensor *x, struct tune_tensor *d)
{
    struct tune_dropout drop = dropout(m, p);
    *d = *x;
    if (!p->pass->dropout)
        return 0;
    d->data = m->lora_work.d;
    return tune_dropout(m->dev, d, x, m->step_at, drop, 0, 0, 1);
}

/* Add scale s h B^T to y's columns. */
static int add_adapters(struct tune_model *m, const struct lora_group *g, struct tune_tensor *y, const struct tune_tensor *h,
                        float scale)
{
    for (int i = 0; i < g->count; i++) {
        const struct lora_target *t = &g->target[i];
        struct tune_tensor b = parameter(m, t->b), to = tune_tensor_columns(y, t->at, t->out);
        struct tune_tensor from = tune_tensor_columns(h, t->first, t->r);
        TRY(tune_gemm(m->dev, &to, &from, false, &b, true, scale * t->scale, 1, m->dtype));
    }
    return 0;
}

/* Compute g and 1/|W + s B A| of every column. Columns without adapter get 1 and 0. */
static int scales(struct tune_model *m, const struct lora_group *g, const struct lora_state *s)
{
    struct tune_tensor all = factors(s, g, false, 0, g->out), none = factors(s, g, true, 0, g->out);
    TRY(tune_dora_scale(m->dev, &all, &none, NULL, NULL, NULL, NULL, NULL, 0));
    for (int i = 0; i < g->count; i++) {
        const struct lora_target *t = &g->target[i];
        struct tune_tensor w = parameter(m, t->base), a = parameter(m, t->a), b = parameter(m, t->b);
        struct tune_tensor p = tune_tensor_2d(m->lora_work.p, TUNE_F32, t->out, t->r);
        struct tune_tensor aa = tune_tensor_2d(m->lora_work.aa, TUNE_F32, t->r, t->r);
        struct tune_tensor squares = tune_tensor_1d(tune_address_plus(m->lora->squares, t->squares * 4), TUNE_F32, t->out);
        struct tune_tensor magnitude = parameter(m, t->magnitude);
        struct tune_tensor factor = factors(s, g, false, t->at, t->out), inverse = factors(s, g, true, t->at, t->out);
        TRY(tune_gemm(m->dev, &p, &w, false, &a, true, 1, 0, TUNE_F32));
        TRY(tune_gemm(m->dev, &aa, &a, false, &a, true, 1, 0, TUNE_F32));
        TRY(tune_dora_scale(m->dev, &factor, &inverse, &magnitude, &squares, &b, &p, &aa, t->scale));
    }
    return 0;
}

/* Compute h, and with DoRA u and g, for backward. *d: the input after dropout. */
static int keep(struct tune_model *m, const struct linear *p, const struct lora_group *g, const struct tune_tensor *x,
                struct tune_tensor *d)
{
    struct lora_state *s = state(m, p);
    struct tune_tensor h = rows(m, s->h, g->rank), u = rows(m, s->u, g->out), a = all_a(parameter(m, g->target[0].a), g);
    TRY(dropped(m, p, x, d));
    TRY(tune_gemm(m->dev, &h, d, false, &a, true, 1, 0, m->dtype));
    if (!m->lora->options.dora)
        return 0;
    TRY(tune_gemm(m->dev, &u, d, false, p->w, true, 1, 0, m->dtype));
    TRY(add_adapters(m, g, &u, &h, 1));
    return scales(m, g, s);
}

int tune_model_linear_recompute(struct tune_model *m, const struct linear *p, const struct tune_tensor *x)
{
    const struct lora_group *g = group(m, p);
    struct tune_tensor d;
    return g ? keep(m, p, g, x, &d) : 0;
}

int tune_model_linear_forward(struct tune_model *m, const struct linear *p, struct tune_tensor *y, const struct tune_tensor *x,
                              const struct tune_tensor *r)
{
    const struct lora_group *g = group(m, p);
    struct tune_tensor d;
    if (!g)
        return tune_linear_forward(m->dev, y, x, p->w, p->bias, p->scale, r, m->dtype);
    struct lora_state *s = state(m, p);
    struct tune_tensor h = rows(m, s->h, g->rank), u = rows(m, s->u, g->out);
    TRY(keep(m, p, g, x, &d));
    if (!m->lora->options.dora) {
        TRY(tune_linear_forward(m->dev, y, x, p->w, p->bias, p->scale, r, m->dtype));
        return add_adapters(m, g, y, &h, p->scale);
    }
    struct tune_tensor factor = factors(s, g, false, 0, g->out);
    if (p->pass->dropout) {
        struct tune_dropout drop = dropout(m, p);
        TRY(tune_dropout(m->dev, &d, x, m->step_at, drop, 0, 1, -1)); /* x - d */
        TRY(tune_linear_forward(m->dev, y, &d, p->w, p->bias, p->scale, r, m->dtype));
        return tune_scale_columns(m->dev, y, &u, &factor, 0, p->scale, 1);
    }
    TRY(r ? tune_copy(m->dev, y, r) : 0);
    TRY(tune_scale_columns(m->dev, y, &u, &factor, 0, p->scale, r ? 1 : 0));
    return p->bias ? tune_bias_forward(m->dev, y, p->bias, p->scale) : 0;
}

/* Gradients of A, B and the magnitude, and dh. dz: dy, or with DoRA g dy. */
static int adapters_backward(struct tune_model *m, const struct linear *p, const struct lora_group *g,
                             const struct tune_tensor *dy, const struct tune_tensor *dz, const struct tune_tensor *x,
                             struct tune_tensor *dh)
{
    struct lora_state *s = state(m, p);
    struct tune_tensor h = rows(m, s->h, g->rank), u = rows(m, s->u, g->out), da = all_a(gradient(m, g->target[0].a), g), d;
    for (int i = 0; i < g->count; i++) {
        const struct lora_target *t = &g->target[i];
        struct tune_tensor from = tune_tensor_columns(dz, t->at, t->out), b = parameter(m, t->b), db = gradient(m, t->b);
        struct tune_tensor part = tune_tensor_columns(&h, t->first, t->r), to = tune_tensor_columns(dh, t->first, t->r);
        TRY(tune_linear_backward(m->dev, &to, &db, NULL, &from, &part, &b, p->scale * t->scale, 0, m->dtype));
        if (t->magnitude < 0)
            continue;
        struct tune_tensor dm = gradient(m, t->magnitude), inverse = factors(s, g, true, t->at, t->out);
        TRY(tune_dot_columns(m->dev, &dm, dy, &u, &inverse, t->at, p->scale));
    }
    TRY(dropped(m, p, x, &d));
    return tune_gemm(m->dev, &da, dh, true, &d, false, 1, 1, m->dtype);
}

int tune_model_linear_backward(struct tune_model *m, const struct linear *p, struct tune_tensor *dx,
                               const struct tune_tensor *dy, const struct tune_tensor *x)
{
    const struct lora_group *g = group(m, p);
    if (!g)
        return tune_linear_backward(m->dev, dx, p->dw, p->dbias, dy, x, p->w, p->scale, 0, m->dtype);
    bool dora = m->lora->options.dora;
    struct tune_tensor dh = rows(m, m->lora_work.dh, g->rank), du = rows(m, m->lora_work.du, g->out), dd = *x;
    struct tune_tensor factor, a = all_a(parameter(m, g->target[0].a), g);
    if (dora) {
        factor = factors(state(m, p), g, false, 0, g->out);
        TRY(tune_scale_columns(m->dev, &du, dy, &factor, 0, 1, 0));
    }
    TRY(adapters_backward(m, p, g, dy, dora ? &du : dy, x, &dh));
    TRY(tune_linear_backward(m->dev, dora && !p->pass->dropout ? NULL : dx, p->dw, p->dbias, dy, x, p->w, p->scale, 0,
                             m->dtype));
    if (!dx)
        return 0;
    if (!p->pass->dropout) {
        if (dora)
            TRY(tune_gemm(m->dev, dx, &du, false, p->w, false, p->scale, 0, m->dtype));
        return tune_gemm(m->dev, dx, &dh, false, &a, false, 1, 1, m->dtype);
    }
    struct tune_dropout drop = dropout(m, p);
    dd.data = m->lora_work.d; /* d is not needed any more */
    TRY(tune_gemm(m->dev, &dd, &dh, false, &a, false, 1, 0, m->dtype));
    if (dora) {
        TRY(tune_scale_columns(m->dev, &du, dy, &factor, -1, 1, 0));
        TRY(tune_gemm(m->dev, &dd, &du, false, p->w, false, p->scale, 1, m->dtype));
    }
    return tune_dropout(m->dev, dx, &dd, m->step_at, drop, 1, 0, 1);
}
