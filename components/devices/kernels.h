/* kernels.h - the operations of a transformer, forward and backward, on any device.
 *
 * Shapes and dtypes are checked here, once; then the device's table is called. Rows of a matrix touch, except in
 * tune_gemm (and the linear layers without a bias), whose matrices may be columns of wider ones. Outputs come
 * first, then inputs, then scalars. The gradient of x is dx. Parameter gradients always add;
 * every other output says "set" or "add". Activations are F32 or BF16 (all of one call
 * alike); parameters, their gradients, statistics and tables are F32. Sums are in F32 or
 * better whatever the storage.
 *
 * N rows (B*T), C width, F ffn width, H query heads, K key/value heads, D head width,
 * Q = (H + 2K) D, V vocabulary. 0, or -1 with an error naming the operation and the shapes. */
#ifndef TUNE_KERNELS_H
#define TUNE_KERNELS_H

#include "devices/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tune_gemm - c = alpha op(a) op(b) + beta c, where op transposes if asked.
 *   c [M,N] set (beta 0) or add (beta 1)   a [M,K], or [K,M] transposed   b [K,N], or [N,K] transposed; K > 0
 * Each may be F32 or BF16 by itself, and have rows that lie apart; what lies between c's rows is left alone. a or b may be NF4
 * (nf4.h): the product is that of its numbers in float32, bit for bit. */
int tune_gemm(struct tune_device *dev, struct tune_tensor *c, const struct tune_tensor *a, bool at,
              const struct tune_tensor *b, bool bt, float alpha, float beta);

/* tune_linear_forward - y = scale (x w^T + bias) + beta y:  y [N,M]  x [N,C]  w [M,C]  bias [M] or NULL.
 * tune_linear_backward - dx = scale dy w + dx_beta dx;  dw += scale dy^T x;  dbias += scale sum of dy's rows.
 *   dx, dw, dbias: NULL where not wanted. */
int tune_linear_forward(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x,
                        const struct tune_tensor *w, const struct tune_tensor *bias, float scale, float beta);
int tune_linear_backward(struct tune_device *dev, struct tune_tensor *dx, struct tune_tensor *dw,
                         struct tune_tensor *dbias, const struct tune_tensor *dy, const struct tune_tensor *x,
                         const struct tune_tensor *w, float scale, float dx_beta);

/* tune_embed_forward - x[n] = scale w[ids[n]]:  x [N,C] set  w [V,C]  ids [N], each in 0..V-1 (the caller's to check).
 * tune_embed_backward - dw[ids[n]] += scale dx[n], in the order of n: the same bits whatever the threads do. */
int tune_embed_forward(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *w, const int32_t *ids,
                       float scale);
int tune_embed_backward(struct tune_device *dev, struct tune_tensor *dw, const struct tune_tensor *dx,
                        const int32_t *ids, float scale);

/* tune_rmsnorm_forward - y = w x / sqrt(mean(x^2) + eps), each row by itself.
 *   y [N,C] set   rstd [N] set, or NULL: 1/sqrt(..), kept for backward   x [N,C]   w [C]
 * tune_rmsnorm_backward - with s = rstd, g = dy w:  dx += s (g - x s^2 mean(g x));  dw += sum over rows of dy x s.
 * Source: Zhang & Sennrich 2019, eq. 4. */
int tune_rmsnorm_forward(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *rstd,
                         const struct tune_tensor *x, const struct tune_tensor *w, float eps);
int tune_rmsnorm_backward(struct tune_device *dev, struct tune_tensor *dx, struct tune_tensor *dw,
                          const struct tune_tensor *dy, const struct tune_tensor *x, const struct tune_tensor *w,
                          const struct tune_tensor *rstd);

/* tune_headnorm_forward - RMSNorm over each head by itself (Qwen 3): heads first .. first+heads-1 of rows of Q numbers.
 *   y [N,Q] those heads set, the others left   rstd [N,heads] set   x [N,Q]   w [D]
 * tune_headnorm_backward - in place: dy [N,Q] becomes the gradient of x in those heads;  dw [D] add. */
int tune_headnorm_forward(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *rstd,
                          const struct tune_tensor *x, const struct tune_tensor *w, int first, int heads, float eps);
int tune_headnorm_backward(struct tune_device *dev, struct tune_tensor *dy, struct tune_tensor *dw,
                           const struct tune_tensor *x, const struct tune_tensor *w, const struct tune_tensor *rstd,
                           int first, int heads);

/* tune_rope_forward - rotate the first heads of each row by its position n mod T, in place; half-split pairs (i, i + D/2).
 *   x [N,Q]   table [positions >= T, D]: D/2 cosines, then D/2 sines
 * tune_rope_backward - by the opposite angle, in place. Source: Su et al. 2021, eq. 34. */
int tune_rope_forward(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *table, int T, int heads,
                      int D);
int tune_rope_backward(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *table, int T, int heads,
                       int D);

/* tune_attention_forward - out = softmax(scale q k^T + causal mask) v for each head; query head h uses key/value head
 * h / (H/K). Scores exist for one block of queries of one head at a time.
 *   out [N,HD] set   lse [N,H] set: log of the sum of exp, for backward   qkv [N,Q]: H queries, K keys, K values
 * tune_attention_backward - dqkv [N,Q] set   work [N, 2HD] F32, overwritten   dout, out [N,HD].
 * Source: Dao et al. 2022, algorithm 4 (recomputes the probabilities from lse). */
int tune_attention_forward(struct tune_device *dev, struct tune_tensor *out, struct tune_tensor *lse,
                           const struct tune_tensor *qkv, const struct tune_attention *size);
int tune_attention_backward(struct tune_device *dev, struct tune_tensor *dqkv, struct tune_tensor *work,
                            const struct tune_tensor *dout, const struct tune_tensor *qkv,
                            const struct tune_tensor *out, const struct tune_tensor *lse,
                            const struct tune_attention *size);

/* tune_swiglu_forward - h = silu(gate) up:  h [N,F] set   gate_up [N,2F]: gate, then up. silu(x) = x / (1 + exp(-x)).
 * tune_swiglu_backward - dgate_up [N,2F] set, may be gate_up itself   dh [N,F]. Source: Shazeer 2020, eq. 6. */
int tune_swiglu_forward(struct tune_device *dev, struct tune_tensor *h, const struct tune_tensor *gate_up);
int tune_swiglu_backward(struct tune_device *dev, struct tune_tensor *dgate_up, const struct tune_tensor *dh,
                         const struct tune_tensor *gate_up);

/* tune_gather - y[i] = x[rows[i]], set.  tune_scatter - y[rows[i]] = x[i], set; rows differ. y, x [*,C]. */
int tune_gather(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const int32_t *rows);
int tune_scatter(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const int32_t *rows);

/* tune_cross_entropy - for each row of logits [M,V] F32, -log softmax(scale logits)[label]: their sum is added to
 * *loss_sum, and log_probs [M], where not NULL, set to log softmax(..)[label]. With backward, logits become the gradient
 * of the sum: scale (softmax - onehot). labels [M], each in 0..V-1. loss_sum, log_probs, labels are device memory. */
int tune_cross_entropy(struct tune_device *dev, struct tune_tensor *logits, double *loss_sum, float *log_probs,
                       const int32_t *labels, float scale, bool backward);

/* tune_dropout - y = beta y + (plain + masked k) x, where k is 0 for what is dropped and 1/(1-p) for what stays; may be in
 * place.   y, x [N,C]. (0, 0, 1) drops; (1, 0, 1) adds the gradient of that; (0, 1, -1) is what dropping takes away.
 * Source: Srivastava et al. 2014, scaled in training. */
int tune_dropout(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const struct tune_dropout *drop,
                 float beta, float plain, float masked);

/* tune_scale_columns - y = beta y + scale (g + plus) x, g for each column:  y, x [N,C], may be one   g [C]
 * tune_dot_columns - dots += scale g sum over rows of x y, in columns [first, first + n):  dots, g [n]   x, y [N,C] */
int tune_scale_columns(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const struct tune_tensor *g,
                       float plus, float scale, float beta);
int tune_dot_columns(struct tune_device *dev, struct tune_tensor *dots, const struct tune_tensor *x, const struct tune_tensor *y,
                     const struct tune_tensor *g, int64_t first, float scale);

/* tune_row_squares - the square of each row's length, set:  squares [M]   w [M,K], in whatever a product takes.
 * tune_dora_scale - with l the lengths of the rows of W + s B A:  inverse = 1/l, g = magnitude/l, set; l 0: both 0.
 *   l^2 = squares + 2 s b.p + s^2 b (A A^T) b for each row b of B
 *    g, inverse, magnitude, squares [M]   b, p = W A^T [M,r]   aa = A A^T [r,r]
 * magnitude NULL: no adapter there: g 1, inverse 0; squares, b, p and aa are not read. */
int tune_row_squares(struct tune_device *dev, struct tune_tensor *squares, const struct tune_tensor *w);
int tune_dora_scale(struct tune_device *dev, struct tune_tensor *g, struct tune_tensor *inverse,
                    const struct tune_tensor *magnitude, const struct tune_tensor *squares, const struct tune_tensor *b,
                    const struct tune_tensor *p, const struct tune_tensor *aa, float s);

/* tune_sum_squares - *sum += sum of x[i]^2, in float64, in an order that depends on n and the threads alone. */
int tune_sum_squares(struct tune_device *dev, const float *x, int64_t n, double *sum);

/* tune_finish_step - from scalars' loss_sum, labels and square_sum to its grad_norm, not_finite and gradient_scale:
 * norm = sqrt(square_sum) / labels; scale = min(1, clip_norm / (norm + 1e-6)) / labels, where clip_norm 0 does not clip; not
 * finite: the scale is 0, else updates goes up by one. As torch.nn.utils.clip_grad_norm_ on the gradient of the mean loss. */
int tune_finish_step(struct tune_device *dev, struct tune_scalars *scalars, double clip_norm);

/* tune_adamw - with g scaled by *gradient_scale (device memory; a scale of 0 leaves everything as it is):
 *   m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2;  w -= lr wd w;  w -= lr (m/c1) / (sqrt(v/c2) + eps)
 *   where c1 = 1 - b1^t, c2 = 1 - b2^t, t = *update->updates (device memory, read when the kernel runs)
 * Source: Loshchilov & Hutter 2019, algorithm 2; eps outside the root, as PyTorch.
 * tune_sgd - w -= lr wd w;  m = momentum m + g;  w -= lr m. m NULL: no momentum. */
int tune_adamw(struct tune_device *dev, float *w, const float *g, float *m, float *v, int64_t n,
               const struct tune_update *update, const double *gradient_scale);
int tune_sgd(struct tune_device *dev, float *w, const float *g, float *m, int64_t n, const struct tune_update *update,
             const double *gradient_scale);

#ifdef __cplusplus
}
#endif
#endif
