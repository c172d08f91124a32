/* kernels.c - shapes and dtypes are checked here, once, above every device. */
#include "devices/kernels.h"

#include <stdio.h>
#include <string.h>

#include "core/nf4.h"
#include "core/try.h"

/* Nothing lies between the rows. */
static bool is_whole(const struct tune_tensor *t)
{
    return t->stride == 0 || (t->ndim == 2 && t->stride == t->shape[1]);
}

/* A matrix of activations; of statistics, parameters or tables: F32. */
static bool is(const struct tune_tensor *t, int64_t rows, int64_t columns)
{
    return t->ndim == 2 && t->shape[0] == rows && t->shape[1] == columns && is_whole(t);
}

static bool is_f32(const struct tune_tensor *t, int64_t rows, int64_t columns)
{
    return is(t, rows, columns) && t->dtype == TUNE_F32;
}

static bool is_row(const struct tune_tensor *t, int64_t n)
{
    return t->ndim == 1 && t->shape[0] == n && t->dtype == TUNE_F32 && is_whole(t);
}

static bool is_float(const struct tune_tensor *t)
{
    return (t->dtype == TUNE_F32 || t->dtype == TUNE_BF16) && is_whole(t);
}

/* A matrix that a product takes: its rows may lie further apart than they are long. */
static bool is_factor(const struct tune_tensor *t)
{
    return t->ndim == 2 && (t->dtype == TUNE_F32 || t->dtype == TUNE_BF16) && (t->stride == 0 || t->stride >= t->shape[1]);
}

static int refuse(const char *op, const struct tune_tensor *a, const struct tune_tensor *b, const struct tune_tensor *c)
{
    char text[3][96];
    const struct tune_tensor *all[3] = {a, b, c};
    for (int i = 0; i < 3; i++) {
        text[i][0] = 0;
        if (!all[i])
            continue;
        tune_tensor_shape_text(all[i], text[i], sizeof text[i]);
        size_t used = strlen(text[i]);
        if (all[i]->stride)
            snprintf(text[i] + used, sizeof text[i] - used, " stride %lld", (long long)all[i]->stride);
    }
    tune_error_set("%s: shapes or dtypes do not fit: %s%s%s%s%s%s", op, a ? tune_dtype_name(a->dtype) : "", text[0],
                   b ? tune_dtype_name(b->dtype) : "", text[1], c ? tune_dtype_name(c->dtype) : "", text[2]);
    return -1;
}

#define CHECK(condition, op, a, b, c)       \
    do {                                    \
        if (!(condition))                   \
            return refuse(op, a, b, c);     \
    } while (0)

/* Or weights that are dequantised on the way. */
static bool is_weight(const struct tune_tensor *t)
{
    return t->dtype == TUNE_NF4 ? tune_nf4_is_matrix(t) : is_factor(t);
}

static bool gemm_fits(const struct tune_tensor *c, const struct tune_tensor *a, bool at, const struct tune_tensor *b, bool bt)
{
    return is_factor(c) && (is_factor(a) ? is_weight(b) : is_weight(a) && is_factor(b)) && a->shape[!at] > 0 &&
           a->shape[!at] == b->shape[bt] && c->shape[0] == a->shape[at] && c->shape[1] == b->shape[!bt];
}

int tune_gemm(struct tune_device *dev, struct tune_tensor *c, const struct tune_tensor *a, bool at,
              const struct tune_tensor *b, bool bt, float alpha, float beta)
{
    CHECK(gemm_fits(c, a, at, b, bt), "gemm", c, a, b);
    return dev->kernels->gemm(dev, c, a, at, b, bt, alpha, beta);
}

int tune_linear_forward(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x,
                        const struct tune_tensor *w, const struct tune_tensor *bias, float scale, float beta)
{
    CHECK(gemm_fits(y, x, false, w, true), "linear_forward", y, x, w);
    CHECK(!bias || (is_row(bias, y->shape[1]) && is_whole(y)), "linear_forward", y, bias, NULL);
    TRY(tune_gemm(dev, y, x, false, w, true, scale, beta));
    if (!bias)
        return 0;
    return dev->kernels->bias_forward(dev, y, bias, scale);
}

int tune_linear_backward(struct tune_device *dev, struct tune_tensor *dx, struct tune_tensor *dw,
                         struct tune_tensor *dbias, const struct tune_tensor *dy, const struct tune_tensor *x,
                         const struct tune_tensor *w, float scale, float dx_beta)
{
    CHECK(!dx || gemm_fits(dx, dy, false, w, false), "linear_backward", dx, dy, w);
    CHECK(!dw || (gemm_fits(dw, dy, true, x, false) && dw->dtype == TUNE_F32), "linear_backward", dw, dy, x);
    CHECK(!dbias || (dy->ndim == 2 && is_float(dy) && is_row(dbias, dy->shape[1])), "linear_backward", dbias, dy, NULL);
    if (dx)
        TRY(tune_gemm(dev, dx, dy, false, w, false, scale, dx_beta));
    if (dw)
        TRY(tune_gemm(dev, dw, dy, true, x, false, scale, 1));
    if (!dbias)
        return 0;
    return dev->kernels->bias_backward(dev, dbias, dy, scale);
}

int tune_embed_forward(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *w, const int32_t *ids,
                       float scale)
{
    CHECK(x->ndim == 2 && w->ndim == 2 && is_float(x) && is_float(w) && x->shape[1] == w->shape[1], "embed_forward", x, w,
          NULL);
    return dev->kernels->embed_forward(dev, x, w, ids, scale);
}

int tune_embed_backward(struct tune_device *dev, struct tune_tensor *dw, const struct tune_tensor *dx,
                        const int32_t *ids, float scale)
{
    CHECK(dx->ndim == 2 && dw->ndim == 2 && is_float(dx) && is_float(dw) && dw->dtype == TUNE_F32 && dx->shape[1] == dw->shape[1],
          "embed_backward", dw, dx, NULL);
    return dev->kernels->embed_backward(dev, dw, dx, ids, scale);
}

int tune_rmsnorm_forward(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *rstd,
                         const struct tune_tensor *x, const struct tune_tensor *w, float eps)
{
    CHECK(x->ndim == 2 && is(y, x->shape[0], x->shape[1]) && x->dtype == y->dtype && is_float(x) &&
              is_row(w, x->shape[1]) && (!rstd || is_row(rstd, x->shape[0])),
          "rmsnorm_forward", y, x, w);
    return dev->kernels->rmsnorm_forward(dev, y, rstd, x, w, eps);
}

int tune_rmsnorm_backward(struct tune_device *dev, struct tune_tensor *dx, struct tune_tensor *dw,
                          const struct tune_tensor *dy, const struct tune_tensor *x, const struct tune_tensor *w,
                          const struct tune_tensor *rstd)
{
    CHECK(x->ndim == 2 && is(dy, x->shape[0], x->shape[1]) && is(dx, x->shape[0], x->shape[1]) && is_float(x) &&
              dx->dtype == x->dtype && dy->dtype == x->dtype && is_row(w, x->shape[1]) && is_row(rstd, x->shape[0]) &&
              (!dw || is_row(dw, x->shape[1])),
          "rmsnorm_backward", dx, dy, x);
    return dev->kernels->rmsnorm_backward(dev, dx, dw, dy, x, w, rstd);
}

int tune_headnorm_forward(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *rstd,
                          const struct tune_tensor *x, const struct tune_tensor *w, int first, int heads, float eps)
{
    CHECK(x->ndim == 2 && is(y, x->shape[0], x->shape[1]) && x->dtype == y->dtype && is_float(x) && w->ndim == 1 &&
              w->dtype == TUNE_F32 && is_whole(w) && first >= 0 && heads > 0 && (first + heads) * w->shape[0] <= x->shape[1] &&
              is_f32(rstd, x->shape[0], heads),
          "headnorm_forward", y, x, w);
    return dev->kernels->headnorm_forward(dev, y, rstd, x, w, first, heads, eps);
}

int tune_headnorm_backward(struct tune_device *dev, struct tune_tensor *dy, struct tune_tensor *dw,
                           const struct tune_tensor *x, const struct tune_tensor *w, const struct tune_tensor *rstd,
                           int first, int heads)
{
    CHECK(x->ndim == 2 && is(dy, x->shape[0], x->shape[1]) && x->dtype == dy->dtype && is_float(x) && w->ndim == 1 &&
              w->dtype == TUNE_F32 && is_whole(w) && first >= 0 && heads > 0 && (first + heads) * w->shape[0] <= x->shape[1] &&
              is_f32(rstd, x->shape[0], heads) &&
              (!dw || is_row(dw, w->shape[0])),
          "headnorm_backward", dy, x, w);
    return dev->kernels->headnorm_backward(dev, dy, dw, x, w, rstd, first, heads);
}

static int rope(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *table, const int32_t *positions, int T,
                int heads, int D, bool backward)
{
    CHECK(x->ndim == 2 && is_float(x) && (int64_t)heads * D <= x->shape[1] && table->ndim == 2 && table->dtype == TUNE_F32 &&
              is_whole(table) && table->shape[0] >= T && table->shape[1] == D && D % 2 == 0 && T > 0 && x->shape[0] % T == 0,
          "rope", x, table, NULL);
    return dev->kernels->rope(dev, x, table, positions, T, heads, D, backward);
}

int tune_rope_forward(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *table,
                      const int32_t *positions, int T, int heads, int D)
{
    return rope(dev, x, table, positions, T, heads, D, false);
}

int tune_rope_backward(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *table,
                       const int32_t *positions, int T, int heads, int D)
{
    return rope(dev, x, table, positions, T, heads, D, true);
}

static bool attention_fits(const struct tune_attention *s, const struct tune_tensor *qkv, const struct tune_tensor *out,
                           const struct tune_tensor *lse)
{
    int64_t n = (int64_t)s->B * s->T;
    return s->K > 0 && s->H % s->K == 0 && is(qkv, n, (int64_t)(s->H + 2 * s->K) * s->D) &&
           is(out, n, (int64_t)s->H * s->D) && is_f32(lse, n, s->H) && is_float(qkv) && out->dtype == qkv->dtype;
}

int tune_attention_forward(struct tune_device *dev, struct tune_tensor *out, struct tune_tensor *lse,
                           const struct tune_tensor *qkv, const struct tune_attention *size)
{
    CHECK(attention_fits(size, qkv, out, lse), "attention_forward", out, lse, qkv);
    return dev->kernels->attention_forward(dev, out, lse, qkv, size);
}

int tune_attention_backward(struct tune_device *dev, struct tune_tensor *dqkv, struct tune_tensor *work,
                            const struct tune_tensor *dout, const struct tune_tensor *qkv,
                            const struct tune_tensor *out, const struct tune_tensor *lse,
                            const struct tune_attention *size)
{
    CHECK(attention_fits(size, qkv, out, lse) && attention_fits(size, dqkv, dout, lse) && dqkv->dtype == qkv->dtype &&
              is_f32(work, out->shape[0], 2 * out->shape[1]),
          "attention_backward", dqkv, dout, work);
    return dev->kernels->attention_backward(dev, dqkv, work, dout, qkv, out, lse, size);
}

int tune_swiglu_forward(struct tune_device *dev, struct tune_tensor *h, const struct tune_tensor *gate_up)
{
    CHECK(h->ndim == 2 && is(gate_up, h->shape[0], 2 * h->shape[1]) && is_float(h) && h->dtype == gate_up->dtype,
          "swiglu_forward", h, gate_up, NULL);
    return dev->kernels->swiglu_forward(dev, h, gate_up);
}

int tune_swiglu_backward(struct tune_device *dev, struct tune_tensor *dgate_up, const struct tune_tensor *dh,
                         const struct tune_tensor *gate_up)
{
    CHECK(dh->ndim == 2 && is(gate_up, dh->shape[0], 2 * dh->shape[1]) && is(dgate_up, dh->shape[0], 2 * dh->shape[1]) &&
              is_float(dh) && dh->dtype == gate_up->dtype && dgate_up->dtype == dh->dtype,
          "swiglu_backward", dgate_up, dh, gate_up);
    return dev->kernels->swiglu_backward(dev, dgate_up, dh, gate_up);
}

int tune_gather(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const int32_t *rows)
{
    CHECK(x->ndim == 2 && y->ndim == 2 && x->shape[1] == y->shape[1] && is_float(x) && is_float(y), "gather", y, x, NULL);
    return dev->kernels->gather(dev, y, x, rows);
}

int tune_scatter(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const int32_t *rows)
{
    CHECK(x->ndim == 2 && y->ndim == 2 && x->shape[1] == y->shape[1] && is_float(x) && is_float(y), "scatter", y, x, NULL);
    return dev->kernels->scatter(dev, y, x, rows);
}

int tune_cross_entropy(struct tune_device *dev, struct tune_tensor *logits, double *loss_sum, float *log_probs,
                       const int32_t *labels, float scale, bool backward)
{
    CHECK(logits->ndim == 2 && logits->dtype == TUNE_F32 && is_whole(logits), "cross_entropy", logits, NULL, NULL);
    return dev->kernels->cross_entropy(dev, logits, loss_sum, log_probs, labels, scale, backward);
}

int tune_dropout(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const struct tune_dropout *drop,
                 float beta, float plain, float masked)
{
    CHECK(x->ndim == 2 && is(y, x->shape[0], x->shape[1]) && is_float(x) && y->dtype == x->dtype && drop->p >= 0 && drop->p < 1,
          "dropout", y, x, NULL);
    return dev->kernels->dropout(dev, y, x, drop, beta, plain, masked);
}

int tune_scale_columns(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const struct tune_tensor *g,
                       float plus, float scale, float beta)
{
    CHECK(x->ndim == 2 && is(y, x->shape[0], x->shape[1]) && is_float(x) && y->dtype == x->dtype && is_row(g, x->shape[1]),
          "scale_columns", y, x, g);
    return dev->kernels->scale_columns(dev, y, x, g, plus, scale, beta);
}

int tune_dot_columns(struct tune_device *dev, struct tune_tensor *dots, const struct tune_tensor *x, const struct tune_tensor *y,
                     const struct tune_tensor *g, int64_t first, float scale)
{
    CHECK(x->ndim == 2 && is(y, x->shape[0], x->shape[1]) && is_float(x) && y->dtype == x->dtype && dots->ndim == 1 &&
              is_row(dots, dots->shape[0]) && is_row(g, dots->shape[0]) && first >= 0 && first + dots->shape[0] <= x->shape[1],
          "dot_columns", dots, x, y);
    return dev->kernels->dot_columns(dev, dots, x, y, g, first, scale);
}

int tune_row_squares(struct tune_device *dev, struct tune_tensor *squares, const struct tune_tensor *w)
{
    CHECK(w->ndim == 2 && w->stride == 0 && is_weight(w) && is_row(squares, w->shape[0]), "row_squares", squares, w, NULL);
    return dev->kernels->row_squares(dev, squares, w);
}

int tune_dora_scale(struct tune_device *dev, struct tune_tensor *g, struct tune_tensor *inverse,
                    const struct tune_tensor *magnitude, const struct tune_tensor *squares, const struct tune_tensor *b,
                    const struct tune_tensor *p, const struct tune_tensor *aa, float s)
{
    int64_t M = g->shape[0];
    CHECK(g->ndim == 1 && is_row(g, M) && is_row(inverse, M), "dora_scale", g, inverse, NULL);
    CHECK(!magnitude || (is_row(magnitude, M) && is_row(squares, M) && b->ndim == 2 && is_f32(b, M, b->shape[1]) &&
                         is_f32(p, M, b->shape[1]) && is_f32(aa, b->shape[1], b->shape[1])),
          "dora_scale", b, p, aa);
    return dev->kernels->dora_scale(dev, g, inverse, magnitude, squares, b, p, aa, s);
}

int tune_sum_squares(struct tune_device *dev, const float *x, int64_t n, double *sum)
{
    return dev->kernels->sum_squares(dev, x, n, sum);
}

int tune_finish_step(struct tune_device *dev, struct tune_scalars *scalars, double clip_norm)
{
    return dev->kernels->finish_step(dev, scalars, clip_norm);
}

int tune_adamw(struct tune_device *dev, float *w, const float *g, float *m, float *v, int64_t n,
               const struct tune_update *update, const double *gradient_scale)
{
    return dev->kernels->adamw(dev, w, g, m, v, n, update, gradient_scale);
}

int tune_sgd(struct tune_device *dev, float *w, const float *g, float *m, int64_t n, const struct tune_update *update,
             const double *gradient_scale)
{
    return dev->kernels->sgd(dev, w, g, m, n, update, gradient_scale);
}
