/* ops.c - checks shapes and dtypes of every operation, for all devices. */
#include "devices/ops.h"

#include <stdio.h>

#include "core/nf4.h"
#include "core/print.h"
#include "core/try.h"

/* The rows are contiguous. */
static bool is_whole(const struct tune_tensor *t)
{
    return t->stride == 0 || (t->ndim == 2 && t->stride == t->shape[1]);
}

/* A contiguous matrix. is_f32 also requires dtype F32. */
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

static bool is_index(const struct tune_tensor *t, int64_t n)
{
    return t->ndim == 1 && t->shape[0] == n && t->dtype == TUNE_I32 && is_whole(t);
}

static bool is_float(const struct tune_tensor *t)
{
    return (t->dtype == TUNE_F32 || t->dtype == TUNE_BF16) && is_whole(t);
}

/* A matrix that a product accepts. Its rows may have a stride. */
static bool is_factor(const struct tune_tensor *t)
{
    return t->ndim == 2 && (t->dtype == TUNE_F32 || t->dtype == TUNE_BF16) && (t->stride == 0 || t->stride >= t->shape[1]);
}

enum { SHOWN = 512 };

/* Add a tensor of an operation to the text of an error message. */
static void show(char text[SHOWN], const char *name, const struct tune_tensor *t)
{
    char shape[96];
    if (!t)
        return;
    tune_append_item(text, SHOWN, "%s %s%s", name, tune_dtype_name(t->dtype),
                     tune_shape_text(t->ndim, t->shape, shape, sizeof shape));
    if (t->stride)
        tune_append(text, SHOWN, " stride %lld", (long long)t->stride);
}

/* Reports that arguments do not fit. It is called before anything is written. */
static int refuse(const char *op, const char *shown)
{
    return tune_error_set("%s: shapes, dtypes or values do not fit: %s", op, shown);
}

/* A matrix for a product, or NF4 weights that the product dequantizes. */
static bool is_weight(const struct tune_tensor *t)
{
    return t->dtype == TUNE_NF4 ? tune_nf4_is_matrix(t) : is_factor(t);
}

static bool gemm_fits(const struct tune_tensor *c, const struct tune_tensor *a, bool trans_a, const struct tune_tensor *b, bool trans_b)
{
    return is_factor(c) && (is_factor(a) ? is_weight(b) : is_weight(a) && is_factor(b)) && a->shape[!trans_a] > 0 &&
           a->shape[!trans_a] == b->shape[trans_b] && c->shape[0] == a->shape[trans_a] && c->shape[1] == b->shape[!trans_b];
}

static bool heads_fit(const struct tune_tensor *x, const struct tune_tensor *w, const struct tune_tensor *rstd, int first, int heads)
{
    return is_float(x) && w->ndim == 1 && w->dtype == TUNE_F32 && is_whole(w) && first >= 0 && heads > 0 &&
           (first + heads) * w->shape[0] <= x->shape[1] && is_f32(rstd, x->shape[0], heads);
}

/* A tensor [B,T,heads,D] whose heads are contiguous. */
static bool are_heads(const struct tune_tensor *t)
{
    int64_t row = t->ndim == 4 ? t->shape[2] * t->shape[3] : 0;
    return row > 0 && (t->stride == 0 || t->stride >= row) && (t->dtype == TUNE_F32 || t->dtype == TUNE_BF16) &&
           (t->outer == 0 || t->outer >= t->shape[1] * (t->stride ? t->stride : row));
}

/* Two matrices of one shape, of numbers of any kind. */
static bool are_alike(const struct tune_tensor *a, const struct tune_tensor *b)
{
    return a->ndim == 2 && is(b, a->shape[0], a->shape[1]) && is_float(a) && is_float(b);
}

/* Two matrices with rows of one length, of numbers of any kind. */
static bool have_rows(const struct tune_tensor *a, const struct tune_tensor *b)
{
    return a->ndim == 2 && b->ndim == 2 && a->shape[1] == b->shape[1] && is_float(a) && is_float(b);
}

/* The same, of rows that may lie apart. */
static bool have_columns(const struct tune_tensor *a, const struct tune_tensor *b)
{
    return is_factor(a) && is_factor(b) && a->shape[1] == b->shape[1];
}

static bool same_sizes(const struct tune_tensor *a, const struct tune_tensor *b)
{
    bool same = a->ndim == b->ndim;
    for (int i = 0; i < a->ndim && same; i++)
        same = a->shape[i] == b->shape[i];
    return same;
}

static bool same_shape(const struct tune_tensor *a, const struct tune_tensor *b)
{
    return a->dtype == b->dtype && same_sizes(a, b);
}

static bool attention_fits(const struct tune_tensor *out, const struct tune_tensor *lse, const struct tune_tensor *q,
                           const struct tune_tensor *k, const struct tune_tensor *v, const struct tune_tensor *starts,
                           const struct tune_tensor *kv_length, const struct tune_tensor *q_offset)
{
    if (!are_heads(q) || !are_heads(k) || !are_heads(v) || !same_shape(k, v))
        return false;
    int64_t B = q->shape[0], rows = B * q->shape[1], H = q->shape[2], D = q->shape[3];
    return k->shape[0] == B && k->shape[2] > 0 && H % k->shape[2] == 0 && k->shape[3] == D && q->dtype == k->dtype &&
           is(out, rows, H * D) && out->dtype == q->dtype && is_f32(lse, rows, H) && (!starts || is_index(starts, rows)) &&
           (!kv_length || is_index(kv_length, B)) && (!q_offset || is_index(q_offset, B)) &&
           (kv_length || q_offset || q->shape[1] <= k->shape[1]);
}

/* ---- the functions ---- */

#define SHOW(kind, ...) SHOW_##kind(__VA_ARGS__)
#define SHOW_SET(x) show(text_, #x, x);
#define SHOW_EDIT(x, old) show(text_, #x, x);
#define SHOW_GET(x) show(text_, #x, x);
#define SHOW_STEP(x)
#define SHOW_VALUE(x, T)

/* Numbers without an address. */
static bool is_nowhere(const struct tune_tensor *t)
{
    return t && t->data.at == 0 && tune_tensor_elements(t) > 0;
}

static int refuse_nowhere(const char *op, const char *name)
{
    return tune_error_set("%s: its argument \"%s\" has no address. A weight has one from tune_unit_take to tune_unit_release.", op, name);
}

#define THERE(kind, ...) THERE_##kind(__VA_ARGS__)
#define THERE_SET(x) if (is_nowhere(x)) return refuse_nowhere(op_, #x);
#define THERE_EDIT(x, old) THERE_SET(x)
#define THERE_GET(x) THERE_SET(x)
#define THERE_STEP(x)
#define THERE_VALUE(x, T)

#define CHECKED(op)                                                                        \
    int tune_##op(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER))                  \
    {                                                                                      \
        const char *op_ = #op;                                                             \
        (void)op_;                                                                         \
        TUNE_ARGS_##op(THERE)                                                              \
        if (TUNE_FIT_##op)                                                                 \
            return dev->ops->op(dev TUNE_ARGS_##op(TUNE_ARGUMENT));                        \
        char text_[SHOWN] = "";                                                            \
        TUNE_ARGS_##op(SHOW)                                                               \
        return refuse(#op, text_);                                                         \
    }
TUNE_OPS(CHECKED)

/* ---- linear layers ---- */

static int refuse_linear(const char *op, const struct tune_tensor *a, const struct tune_tensor *b, const struct tune_tensor *c,
                         const struct tune_tensor *d)
{
    char text[SHOWN] = "";
    show(text, "first", a);
    show(text, "then", b);
    show(text, "then", c);
    show(text, "then", d);
    return refuse(op, text);
}

int tune_linear_forward(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x,
                        const struct tune_tensor *w, const struct tune_tensor *bias, float scale,
                        const struct tune_tensor *r, enum tune_dtype operands)
{
    if (!gemm_fits(y, x, false, w, true) || (bias && !(is_row(bias, y->shape[1]) && is_float(y))))
        return refuse_linear("linear_forward", y, x, w, bias);
    TRY(r ? tune_gemm_add(dev, y, r, x, w, scale, operands) : tune_gemm(dev, y, x, false, w, true, scale, 0, operands));
    return bias ? tune_bias_forward(dev, y, bias, scale) : 0;
}

int tune_linear_backward(struct tune_device *dev, struct tune_tensor *dx, struct tune_tensor *dw,
                         struct tune_tensor *dbias, const struct tune_tensor *dy, const struct tune_tensor *x,
                         const struct tune_tensor *w, float scale, float dx_beta, enum tune_dtype operands)
{
    if ((dx && !gemm_fits(dx, dy, false, w, false)) || (dw && !(gemm_fits(dw, dy, true, x, false) && dw->dtype == TUNE_F32)) ||
        (dbias && !(dy->ndim == 2 && is_float(dy) && is_row(dbias, dy->shape[1]))))
        return refuse_linear("linear_backward", dx ? dx : dw ? dw : dbias, dy, x, w);
    if (dx)
        TRY(tune_gemm(dev, dx, dy, false, w, false, scale, dx_beta, operands));
    if (dw)
        TRY(tune_gemm(dev, dw, dy, true, x, false, scale, 1, operands));
    return dbias ? tune_bias_backward(dev, dbias, dy, scale) : 0;
}
