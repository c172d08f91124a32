/* timed.c - the table of kernels with a clock around each: what every operation computes, reads and writes. */
#include "profilers/timing.h"

static struct tune_profiler *self(struct tune_device *dev)
{
    return (struct tune_profiler *)(void *)(uintptr_t)dev->kernels; /* the table is the profiler's first member */
}

enum kind { UPLOAD, DOWNLOAD, LARGE_DOWNLOAD, LOSS_OP, NORM_BACKWARD, CLIP_OP, UPDATE_OP, ANY };

/* The phase an operation belongs to, by what came before it. */
static enum tune_phase phase_of(const struct tune_profiler *p, enum kind kind)
{
    enum tune_phase now = p->phase;
    bool over = now == TUNE_UPDATE || now == TUNE_AFTER;
    switch (kind) {
    case UPLOAD: /* token ids; after forward the places of labels */
        return over || now == TUNE_EVALUATION            ? TUNE_EVALUATION
               : now == TUNE_FORWARD || now == TUNE_LOSS ? TUNE_LOSS
                                                         : TUNE_FORWARD;
    case DOWNLOAD: return over ? TUNE_AFTER : now;
    case LARGE_DOWNLOAD: return over || now == TUNE_EVALUATION ? TUNE_AFTER : now; /* weights, to be saved */
    case LOSS_OP: return now == TUNE_FORWARD ? TUNE_LOSS : now;
    case NORM_BACKWARD: return TUNE_BACKWARD;
    case CLIP_OP: return TUNE_CLIP;
    case UPDATE_OP: return TUNE_UPDATE;
    default: return now;
    }
}

/* One entry of the table: the call timed, then described. */
#define TIMED(function, kind_, arguments, ...)                                  \
    struct tune_profiler *p = self(dev);                                        \
    enum tune_phase phase_ = phase_of(p, kind_);                                \
    double begin_ = tune_timed_begin(p, phase_);                                \
    int status_ = p->real->function arguments;                                  \
    return tune_timed_end(p, begin_, status_, &(struct tune_op){__VA_ARGS__, .phase = phase_})

static double count(const struct tune_tensor *t)
{
    return (double)tune_tensor_elements(t);
}

static double bytes(const struct tune_tensor *t)
{
    return t ? (double)tune_tensor_bytes(t) : 0;
}

#define SHAPE(t) {(t)->shape[0], (t)->ndim > 1 ? (t)->shape[1] : 0, 0}

static int upload(struct tune_device *dev, void *to, const void *from, int64_t n)
{
    TIMED(upload, UPLOAD, (dev, to, from, n), "upload", "", .bytes = 2.0 * (double)n);
}

static int download(struct tune_device *dev, void *to, const void *from, int64_t n)
{
    TIMED(download, n > 4096 ? LARGE_DOWNLOAD : DOWNLOAD, (dev, to, from, n), "download", "", .bytes = 2.0 * (double)n);
}

static int copy(struct tune_device *dev, void *to, const void *from, int64_t n)
{
    TIMED(copy, ANY, (dev, to, from, n), "copy", "", .bytes = 2.0 * (double)n);
}

static int zero(struct tune_device *dev, void *to, int64_t n)
{
    TIMED(zero, ANY, (dev, to, n), "zero", "", .weight = to, .bytes = (double)n);
}

static int sync_device(struct tune_device *dev)
{
    TIMED(sync, DOWNLOAD, (dev), "sync", "");
}

static int gemm(struct tune_device *dev, struct tune_tensor *c, const struct tune_tensor *a, bool at, const struct tune_tensor *b,
                bool bt, float alpha, float beta)
{
    int64_t K = a->shape[!at];
    TIMED(gemm, ANY, (dev, c, a, at, b, bt, alpha, beta), "gemm", at ? "dW" : bt ? "" : "dx", .weight = at ? c->data : b->data,
          .shape = {c->shape[0], c->shape[1], K}, .flops = 2 * count(c) * (double)K,
          .bytes = bytes(a) + bytes(b) + bytes(c) * (beta != 0 ? 2 : 1));
}

static int bias_forward(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *bias, float scale)
{
    TIMED(bias_forward, ANY, (dev, y, bias, scale), "bias", "", .weight = bias->data, .shape = SHAPE(y), .flops = 2 * count(y),
          .bytes = 2 * bytes(y) + bytes(bias));
}

static int bias_backward(struct tune_device *dev, struct tune_tensor *dbias, const struct tune_tensor *dy, float scale)
{
    TIMED(bias_backward, ANY, (dev, dbias, dy, scale), "bias", "dW", .weight = dbias->data, .shape = SHAPE(dy),
          .flops = count(dy), .bytes = bytes(dy) + 2 * bytes(dbias));
}

static int embed_forward(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *w, const int32_t *ids,
                         float scale)
{
    TIMED(embed_forward, ANY, (dev, x, w, ids, scale), "embed", "", .weight = w->data, .shape = SHAPE(x), .flops = count(x),
          .bytes = 2 * bytes(x));
}

static int embed_backward(struct tune_device *dev, struct tune_tensor *dw, const struct tune_tensor *dx, const int32_t *ids,
                          float scale)
{
    TIMED(embed_backward, ANY, (dev, dw, dx, ids, scale), "embed", "dW", .weight = dw->data, .shape = SHAPE(dx),
          .flops = 2 * count(dx), .bytes = bytes(dx) + 8 * count(dx));
}

static int rmsnorm_forward(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *rstd, const struct tune_tensor *x,
                           const struct tune_tensor *w, float eps)
{
    TIMED(rmsnorm_forward, ANY, (dev, y, rstd, x, w, eps), "rmsnorm", "", .weight = w->data, .shape = SHAPE(x),
          .flops = 4 * count(x), .bytes = bytes(x) + bytes(y) + bytes(w) + bytes(rstd));
}

static int rmsnorm_backward(struct tune_device *dev, struct tune_tensor *dx, struct tune_tensor *dw, const struct tune_tensor *dy,
                            const struct tune_tensor *x, const struct tune_tensor *w, const struct tune_tensor *rstd)
{
    TIMED(rmsnorm_backward, NORM_BACKWARD, (dev, dx, dw, dy, x, w, rstd), "rmsnorm", "dx", .weight = w->data, .shape = SHAPE(x),
          .flops = 10 * count(x), .bytes = 2 * bytes(dx) + 2 * bytes(dw) + bytes(dy) + bytes(x) + bytes(w) + bytes(rstd));
}

static int headnorm_forward(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *rstd, const struct tune_tensor *x,
                            const struct tune_tensor *w, int first, int heads, float eps)
{
    double part = (double)heads * (double)w->shape[0] / (double)x->shape[1];
    TIMED(headnorm_forward, ANY, (dev, y, rstd, x, w, first, heads, eps), "headnorm", "", .weight = w->data,
          .shape = {x->shape[0], heads, w->shape[0]}, .flops = 4 * part * count(x), .bytes = 2 * part * bytes(x) + bytes(rstd));
}

static int headnorm_backward(struct tune_device *dev, struct tune_tensor *dy, struct tune_tensor *dw, const struct tune_tensor *x,
                             const struct tune_tensor *w, const struct tune_tensor *rstd, int first, int heads)
{
    double part = (double)heads * (double)w->shape[0] / (double)x->shape[1];
    TIMED(headnorm_backward, ANY, (dev, dy, dw, x, w, rstd, first, heads), "headnorm", "dx", .weight = w->data,
          .shape = {x->shape[0], heads, w->shape[0]}, .flops = 10 * part * count(x), .bytes = 3 * part * bytes(x) + bytes(rstd));
}

static int rope(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *table, int T, int heads, int D,
                bool backward)
{
    double n = (double)x->shape[0] * heads * D;
    TIMED(rope, ANY, (dev, x, table, T, heads, D, backward), "rope", backward ? "dx" : "", .shape = {x->shape[0], heads, D},
          .flops = 3 * n, .bytes = 2 * n * (tune_dtype_bits(x->dtype) / 8) + (double)T * D * 4);
}

/* Pairs of query and key that see each other, over all heads and sequences. */
static double pairs(const struct tune_attention *s)
{
    double window = s->window > 0 && s->window < s->T ? s->window : s->T;
    return (double)s->B * s->H * (window * (window + 1) / 2 + (s->T - window) * window);
}

static int attention_forward(struct tune_device *dev, struct tune_tensor *out, struct tune_tensor *lse,
                             const struct tune_tensor *qkv, const struct tune_attention *size)
{
    TIMED(attention_forward, ANY, (dev, out, lse, qkv, size), "attention", "",
          .shape = {size->B, size->T, (int64_t)size->H * size->D}, .flops = 4 * pairs(size) * size->D,
          .bytes = bytes(qkv) + bytes(out) + bytes(lse));
}

static int attention_backward(struct tune_device *dev, struct tune_tensor *dqkv, struct tune_tensor *work,
                              const struct tune_tensor *dout, const struct tune_tensor *qkv, const struct tune_tensor *out,
                              const struct tune_tensor *lse, const struct tune_attention *size)
{
    TIMED(attention_backward, ANY, (dev, dqkv, work, dout, qkv, out, lse, size), "attention", "dx",
          .shape = {size->B, size->T, (int64_t)size->H * size->D}, .flops = 10 * pairs(size) * size->D,
          .bytes = bytes(dqkv) + 2 * bytes(work) + bytes(dout) + bytes(qkv) + bytes(out) + bytes(lse));
}

static int swiglu_forward(struct tune_device *dev, struct tune_tensor *h, const struct tune_tensor *gate_up)
{
    TIMED(swiglu_forward, ANY, (dev, h, gate_up), "swiglu", "", .shape = SHAPE(h), .flops = 5 * count(h),
          .bytes = bytes(h) + bytes(gate_up));
}

static int swiglu_backward(struct tune_device *dev, struct tune_tensor *dgate_up, const struct tune_tensor *dh,
                           const struct tune_tensor *gate_up)
{
    TIMED(swiglu_backward, ANY, (dev, dgate_up, dh, gate_up), "swiglu", "dx", .shape = SHAPE(dh), .flops = 12 * count(dh),
          .bytes = bytes(dgate_up) + bytes(dh) + bytes(gate_up));
}

static int gather(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const int32_t *rows)
{
    TIMED(gather, LOSS_OP, (dev, y, x, rows), "gather", "", .shape = SHAPE(y), .bytes = 2 * bytes(y));
}

static int scatter(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const int32_t *rows)
{
    TIMED(scatter, LOSS_OP, (dev, y, x, rows), "scatter", "", .shape = SHAPE(x), .bytes = 2 * bytes(x));
}

static int dropout(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const struct tune_dropout *drop,
                   float beta, float plain, float masked)
{
    TIMED(dropout, ANY, (dev, y, x, drop, beta, plain, masked), "dropout", "", .shape = SHAPE(y), .flops = 3 * count(y),
          .bytes = bytes(x) + (beta == 0 ? 1 : 2) * bytes(y));
}

static int scale_columns(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const struct tune_tensor *g,
                         float plus, float scale, float beta)
{
    TIMED(scale_columns, ANY, (dev, y, x, g, plus, scale, beta), "scale columns", "", .shape = SHAPE(y), .flops = 3 * count(y),
          .bytes = bytes(x) + (beta == 0 ? 1 : 2) * bytes(y));
}

static int dot_columns(struct tune_device *dev, struct tune_tensor *dots, const struct tune_tensor *x, const struct tune_tensor *y,
                       const struct tune_tensor *g, int64_t first, float scale)
{
    double read = (double)x->shape[0] * count(dots);
    TIMED(dot_columns, ANY, (dev, dots, x, y, g, first, scale), "dot columns", "dw", .shape = {x->shape[0], dots->shape[0], 0},
          .flops = 2 * read, .bytes = 2 * read * tune_dtype_bits(x->dtype) / 8);
}

static int row_squares(struct tune_device *dev, struct tune_tensor *squares, const struct tune_tensor *w)
{
    TIMED(row_squares, ANY, (dev, squares, w), "row squares", "", .shape = SHAPE(w), .flops = 2 * count(w), .bytes = bytes(w));
}

static int dora_scale(struct tune_device *dev, struct tune_tensor *g, struct tune_tensor *inverse,
                      const struct tune_tensor *magnitude, const struct tune_tensor *squares, const struct tune_tensor *b,
                      const struct tune_tensor *wa, const struct tune_tensor *aa, float s)
{
    double r = magnitude ? (double)b->shape[1] : 0;
    TIMED(dora_scale, ANY, (dev, g, inverse, magnitude, squares, b, wa, aa, s), "dora scale", "", .shape = SHAPE(g),
          .flops = 2 * count(g) * r * (r + 1), .bytes = 2 * bytes(g) + (r > 0 ? 2 * bytes(b) : 0));
}

static int cross_entropy(struct tune_device *dev, struct tune_tensor *logits, double *loss_sum, float *log_probs,
                         const int32_t *labels, float scale, bool backward)
{
    TIMED(cross_entropy, LOSS_OP, (dev, logits, loss_sum, log_probs, labels, scale, backward), "softmax", backward ? "dx" : "",
          .shape = SHAPE(logits), .flops = (backward ? 7 : 5) * count(logits), .bytes = (backward ? 2 : 1) * bytes(logits));
}

static int sum_squares(struct tune_device *dev, const float *x, int64_t n, double *sum)
{
    TIMED(sum_squares, CLIP_OP, (dev, x, n, sum), "sum squares", "", .shape = {n}, .flops = 2.0 * (double)n,
          .bytes = 4.0 * (double)n);
}

static int add_scalar(struct tune_device *dev, double *to, double value)
{
    TIMED(add_scalar, LOSS_OP, (dev, to, value), "count labels", "");
}

static int finish_step(struct tune_device *dev, struct tune_scalars *scalars, double clip_norm)
{
    TIMED(finish_step, CLIP_OP, (dev, scalars, clip_norm), "norm", "");
}

static int adamw(struct tune_device *dev, float *w, const float *g, float *m, float *v, int64_t n,
                 const struct tune_update *update, const double *gradient_scale)
{
    TIMED(adamw, UPDATE_OP, (dev, w, g, m, v, n, update, gradient_scale), "adamw", "", .shape = {n}, .flops = 14.0 * (double)n,
          .bytes = 28.0 * (double)n);
}

static int sgd(struct tune_device *dev, float *w, const float *g, float *m, int64_t n, const struct tune_update *update,
               const double *gradient_scale)
{
    TIMED(sgd, UPDATE_OP, (dev, w, g, m, n, update, gradient_scale), "sgd", "", .shape = {n}, .flops = (m ? 5.0 : 3.0) * (double)n,
          .bytes = (m ? 20.0 : 12.0) * (double)n);
}

void tune_timed_kernels(struct tune_profiler *p)
{
    struct tune_kernels *t = &p->table;
    *t = *p->real; /* what has no wrapper is called as it is, and its time stands between the operations */
    t->upload = upload;
    t->download = download;
    t->copy = copy;
    t->zero = zero;
    t->sync = sync_device;
    t->gemm = gemm;
    t->bias_forward = bias_forward;
    t->bias_backward = bias_backward;
    t->embed_forward = embed_forward;
    t->embed_backward = embed_backward;
    t->rmsnorm_forward = rmsnorm_forward;
    t->rmsnorm_backward = rmsnorm_backward;
    t->headnorm_forward = headnorm_forward;
    t->headnorm_backward = headnorm_backward;
    t->rope = rope;
    t->attention_forward = attention_forward;
    t->attention_backward = attention_backward;
    t->swiglu_forward = swiglu_forward;
    t->swiglu_backward = swiglu_backward;
    t->gather = gather;
    t->scatter = scatter;
    t->dropout = dropout;
    t->scale_columns = scale_columns;
    t->dot_columns = dot_columns;
    t->row_squares = row_squares;
    t->dora_scale = dora_scale;
    t->cross_entropy = cross_entropy;
    t->sum_squares = sum_squares;
    t->add_scalar = add_scalar;
    t->finish_step = finish_step;
    t->adamw = adamw;
    t->sgd = sgd;
}
