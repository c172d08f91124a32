/* ops.h - the operations of a transformer, in one list. Every device implements all of them.
 *
 * Each operation stands here once: what it computes, its arguments, what it reads and writes, its
 * checks, and its cost. A new operation is an entry here, a kernel for each device, and a test.
 *     tune_gemm(dev, &c, &a, false, &b, true, 1, 0, TUNE_F32);
 *
 * An entry is written with these words:
 *     arguments   SET, EDIT, GET, STEP, VALUE                  below
 *     checks      is_row, is_f32, are_alike, gemm_fits, ...    devices/ops.c
 *     costs       COST, count, bytes, part, pairs, ...         profilers/costs.h, timed.c
 * These are made from the list, TUNE_OPS:
 *     tune_gemm, ... check their arguments and call the device's table    devices/ops.c
 *     that table, struct tune_ops                                         below
 *     tables of kernels                       devices/cpu/cpu.c, devices/cuda/graph.cu
 *     the profiler's table, which times each operation                    profilers/timed.c
 * tests/naive.h has the larger operations, such as attention, as plain loops in float64.
 *
 * TUNE_ARGS_x lists the arguments after the device, in order:
 *     V(SET, x)        a tensor that is written whole and not read
 *     V(EDIT, x, old)  a tensor that is written; if `old` is true, it is read too
 *     V(GET, x)        a tensor that is read
 *     V(STEP, r)       the address of the step's scalars (record.h), read and written
 *     V(VALUE, x, T)   a value of type T
 * TUNE_FIT_x is true if the arguments fit each other: shapes, dtypes, and what may be NULL.
 * TUNE_COST_x is COST(FLOPs, bytes, way) for the profiler. `all` is the bytes of all tensors, each
 * read or written once, or both. way is "dx" or "dW" for a gradient, else "".
 *
 * Rules for all operations:
 *     Matrices are dense. Only gemm, linear layers without a bias, attention, gather and scatter
 *     take some columns of a wider matrix.
 *     Outputs come first, then inputs, then scalars. The gradient of x is dx. Gradients of
 *     parameters add; for each other output the text says "set" or "add".
 *     Activations are F32 or BF16. Parameters, their gradients, statistics and tables are F32,
 *     indices I32. Sums are float32 or better.
 *     BF16 activations mean the same on every device. Products round their operands to bfloat16 and
 *     sum in float32. The residual stream and its gradient, norms, softmax and the loss are
 *     float32. Everything between products is stored in bfloat16.
 *
 * N rows (B*T), C width, F ffn width, H query heads, K key/value heads, D head width, Q = (H + 2K)
 * D, V vocabulary. All return 0, or -1 with an error that names the operation and the shapes. */
#ifndef TUNE_OPS_H
#define TUNE_OPS_H

#include "devices/device.h"
#include "devices/record.h"

/* tune_copy(dev, y, x) - y = x.   y set; x has its shape and dtype
 * tune_zero(dev, y) - y = 0. */
#define TUNE_ARGS_copy(V) V(SET, y) V(GET, x)
#define TUNE_FIT_copy (y->dtype == x->dtype && is_whole(x) && is_whole(y) && \
    tune_tensor_elements(x) == tune_tensor_elements(y))
#define TUNE_COST_copy COST(0, all, "")
#define TUNE_ARGS_zero(V) V(SET, y)
#define TUNE_FIT_zero (is_whole(y))
#define TUNE_COST_zero COST(0, all, "")

/* tune_axpby(dev, y, x, alpha, beta) - y = alpha x + beta y.   y add, or set if beta is 0; x has
 * its shape. Each is F32 or BF16, so it also changes the dtype. */
#define TUNE_ARGS_axpby(V) V(EDIT, y, beta != 0) V(GET, x) V(VALUE, alpha, float) \
    V(VALUE, beta, float)
#define TUNE_FIT_axpby (is_float(x) && is_float(y) && same_sizes(y, x))
#define TUNE_COST_axpby COST(3 * count(y), all, "")

/* tune_exchange(dev, x, y) - x and y change places.   x, y [n] */
#define TUNE_ARGS_exchange(V) V(EDIT, x, true) V(EDIT, y, true)
#define TUNE_FIT_exchange (is_row(x, y->shape[0]) && is_row(y, y->shape[0]))
#define TUNE_COST_exchange COST(0, all, "")

/* tune_gemm(dev, c, a, trans_a, b, trans_b, alpha, beta, operands) - c = alpha op(a) op(b) + beta
 * c. op transposes if trans_a, trans_b, as in BLAS.
 *     c [M,N] set (beta 0) or add   a [M,K]; trans_a: [K,M]   b [K,N]; trans_b: [N,K]   K > 0
 * Each is F32 or BF16. Each may be some columns of a wider matrix; the other columns of c are left
 * alone. a or b may be NF4 (nf4.h): the result is that of its dequantized numbers, bit for bit.
 * operands BF16: a and b are rounded to bfloat16 first. Products are summed in float32. */
#define TUNE_ARGS_gemm(V) \
    V(EDIT, c, beta != 0) V(GET, a) V(VALUE, trans_a, bool) V(GET, b) V(VALUE, trans_b, bool) \
    V(VALUE, alpha, float) V(VALUE, beta, float) \
    V(VALUE, operands, enum tune_dtype)
#define TUNE_FIT_gemm (gemm_fits(c, a, trans_a, b, trans_b) && \
    (operands == TUNE_F32 || operands == TUNE_BF16))
#define TUNE_COST_gemm \
    COST(2 * count(c) * (double)a->shape[!trans_a], all, trans_a ? "dW" : trans_b ? "" : "dx")

/* tune_gemm_add(dev, y, r, x, w, scale, operands) - y = r + scale x w^T: a linear layer that goes
 * on the residual stream. CUDA adds where it stores the product, without a copy of r.
 *     y [N,M] set   r [N,M], not y itself   both F32   x [N,C], w [M,C]: as for tune_gemm */
#define TUNE_ARGS_gemm_add(V) \
    V(SET, y) V(GET, r) V(GET, x) V(GET, w) V(VALUE, scale, float) \
    V(VALUE, operands, enum tune_dtype)
#define TUNE_FIT_gemm_add \
    (gemm_fits(y, x, false, w, true) && is_f32(y, x->shape[0], w->shape[0]) && \
     is_f32(r, x->shape[0], w->shape[0]) && r->data.at != y->data.at && \
     (operands == TUNE_F32 || operands == TUNE_BF16))
#define TUNE_COST_gemm_add COST(2 * count(y) * (double)x->shape[1], all, "")

/* tune_bias_forward(dev, y, bias, scale) - every row of y += scale bias.   y [N,M] add  bias [M]
 * tune_bias_backward(dev, dbias, dy, scale) - dbias += scale * sum of dy's rows. */
#define TUNE_ARGS_bias_forward(V) V(EDIT, y, true) V(GET, bias) V(VALUE, scale, float)
#define TUNE_FIT_bias_forward (y->ndim == 2 && is_float(y) && is_row(bias, y->shape[1]))
#define TUNE_COST_bias_forward COST(2 * count(y), all, "")
#define TUNE_ARGS_bias_backward(V) V(EDIT, dbias, true) V(GET, dy) V(VALUE, scale, float)
#define TUNE_FIT_bias_backward (dy->ndim == 2 && is_float(dy) && is_row(dbias, dy->shape[1]))
#define TUNE_COST_bias_backward COST(count(dy), all, "dW")

/* tune_embed_forward(dev, x, w, ids, scale) - x[n] = scale w[ids[n]].   x [N,C] set  w [V,C]  ids
 * [N], each in 0..V-1; the caller checks them
 * tune_embed_backward(dev, dw, dx, ids, scale) - dw[ids[n]] += scale dx[n], in the order of n, so
 * the bits do not depend on the threads. */
#define TUNE_ARGS_embed_forward(V) V(SET, x) V(GET, w) V(GET, ids) V(VALUE, scale, float)
#define TUNE_FIT_embed_forward (have_rows(x, w) && is_index(ids, x->shape[0]))
#define TUNE_COST_embed_forward COST(count(x), 2 * bytes(x), "")
#define TUNE_ARGS_embed_backward(V) V(EDIT, dw, true) V(GET, dx) V(GET, ids) V(VALUE, scale, float)
#define TUNE_FIT_embed_backward \
    (have_rows(dx, dw) && dw->dtype == TUNE_F32 && is_index(ids, dx->shape[0]))
#define TUNE_COST_embed_backward COST(2 * count(dx), bytes(dx) + 8 * count(dx), "dW")

/* tune_rmsnorm_forward(dev, y, rstd, x, w, eps, plus) - y = (w + plus) x / sqrt(mean(x^2) + eps),
 * for each row. plus is 0, or 1 for norms whose weights count from 1.
 *     y [N,C] set   rstd [N] set, or NULL: 1/sqrt(..), kept for backward   x [N,C]   w [C]
 * tune_rmsnorm_backward(dev, dx, dw, dy, x, w, rstd, plus) - with s = rstd, g = dy (w + plus):
 *     dx += s (g - x s^2 mean(g x));   dw += sum over rows of dy x s; dw may be NULL
 * Source: Zhang & Sennrich 2019, eq. 4. */
#define TUNE_ARGS_rmsnorm_forward(V) V(SET, y) V(SET, rstd) V(GET, x) V(GET, w) \
    V(VALUE, eps, float) V(VALUE, plus, float)
#define TUNE_FIT_rmsnorm_forward \
    (are_alike(x, y) && is_row(w, x->shape[1]) && (!rstd || is_row(rstd, x->shape[0])))
#define TUNE_COST_rmsnorm_forward COST(4 * count(x), all, "")
#define TUNE_ARGS_rmsnorm_backward(V) V(EDIT, dx, true) V(EDIT, dw, true) V(GET, dy) V(GET, x) \
    V(GET, w) V(GET, rstd) V(VALUE, plus, float)
#define TUNE_FIT_rmsnorm_backward \
    (are_alike(x, dy) && are_alike(x, dx) && is_row(w, x->shape[1]) && \
     is_row(rstd, x->shape[0]) && (!dw || is_row(dw, x->shape[1])))
#define TUNE_COST_rmsnorm_backward COST(10 * count(x), all, "dx")

/* tune_headnorm_forward(dev, y, rstd, x, w, first, heads, eps, plus) - RMSNorm of each head by
 * itself (Qwen 3), for the heads first .. first+heads-1 of rows of Q numbers.
 *     y [N,Q]: those heads set, the others left   rstd [N,heads] set   x [N,Q]   w [D]
 * tune_headnorm_backward(dev, dy, dw, x, w, rstd, first, heads, plus) - in place: in those heads,
 * dy [N,Q] becomes the gradient of x.   dw [D] add, or NULL */
#define TUNE_ARGS_headnorm_forward(V) \
    V(EDIT, y, true) V(SET, rstd) V(GET, x) V(GET, w) V(VALUE, first, int) \
    V(VALUE, heads, int) V(VALUE, eps, float) V(VALUE, plus, float)
#define TUNE_FIT_headnorm_forward \
    (x->ndim == 2 && is(y, x->shape[0], x->shape[1]) && x->dtype == y->dtype && \
     heads_fit(x, w, rstd, first, heads))
#define TUNE_COST_headnorm_forward COST(4.0 * heads * (double)(x->shape[0] * w->shape[0]), \
    2 * part(x, heads * w->shape[0]) + bytes(rstd), "")
#define TUNE_ARGS_headnorm_backward(V) \
    V(EDIT, dy, true) V(EDIT, dw, true) V(GET, x) V(GET, w) V(GET, rstd) V(VALUE, first, int) \
    V(VALUE, heads, int) V(VALUE, plus, float)
#define TUNE_FIT_headnorm_backward \
    (x->ndim == 2 && is(dy, x->shape[0], x->shape[1]) && x->dtype == dy->dtype && \
     heads_fit(x, w, rstd, first, heads) && \
     (!dw || is_row(dw, w->shape[0])))
#define TUNE_COST_headnorm_backward \
    COST(10.0 * heads * (double)(x->shape[0] * w->shape[0]), 3 * part(x, \
    heads * w->shape[0]) + bytes(rstd), "dx")

/* tune_rope(dev, x, table, positions, T, heads, D, backward) - rotate the first heads of each row
 * by its position, in place. Of each head it rotates the first R numbers. Pairs are (i, i + R/2).
 * backward: by the opposite angle.
 *     x [N,Q]   table [at least T, R]: R/2 cosines, then R/2 sines; R is even, at most D
 *     positions [N], each a row of the table; the caller checks them; NULL: n mod T
 * Source: Su et al. 2021, eq. 34. */
#define TUNE_ARGS_rope(V) \
    V(EDIT, x, true) V(GET, table) V(GET, positions) V(VALUE, T, int) V(VALUE, heads, int) \
    V(VALUE, D, int) V(VALUE, backward, bool)
#define TUNE_FIT_rope \
    (x->ndim == 2 && is_float(x) && (int64_t)heads * D <= x->shape[1] && table->ndim == 2 && \
     table->dtype == TUNE_F32 && \
     is_whole(table) && table->shape[0] >= T && table->shape[1] <= D && \
     table->shape[1] % 2 == 0 && T > 0 && \
     x->shape[0] % T == 0 && \
     (!positions || is_index(positions, x->shape[0])))
#define TUNE_COST_rope COST(3.0 * (double)(x->shape[0] * heads * table->shape[1]), 2 * part(x, \
    heads * table->shape[1]) + 4.0 * (double)(T * table->shape[1]), backward ? "dx" : "")

/* tune_attention_forward(dev, out, lse, q, k, v, starts, kv_length, q_offset, params) - out =
 * softmax(scale q k^T + mask) v for each head. Query head h uses key/value head h / (H/K). Query j
 * of row b has position q_offset[b] + j among the keys. It sees key i if i <= its position, i <
 * kv_length[b], and i >= starts[b,j]. With window > 0, also i > its position - window. If it sees
 * none, out is 0 and lse is -infinity.
 *     out [B Tq, H D] set   lse [B Tq, H] set: log of the sum of exp, for backward
 *     q [B,Tq,H,D]   k, v [B,capacity,K,D]
 *     starts [B Tq] or NULL: 0; never decreases along a row, never above the query (not checked)
 *     kv_length [B] or NULL: capacity   q_offset [B] or NULL: 0
 * Scores exist for one block of queries of one head at a time. Blocks of keys that no query sees
 * are not computed.
 * tune_attention_backward(dev, dq, dk, dv, dout, q, k, v, out, lse, starts, params) - dq, dk, dv
 * set; only for Tq = capacity.
 * Source: Dao et al. 2022, algorithm 4 (computes the probabilities again from lse). */
#define TUNE_ARGS_attention_forward(V) \
    V(SET, out) V(SET, lse) V(GET, q) V(GET, k) V(GET, v) V(GET, starts) V(GET, kv_length) \
    V(GET, q_offset) V(VALUE, params, struct tune_attention)
#define TUNE_FIT_attention_forward (attention_fits(out, lse, q, k, v, starts, kv_length, q_offset))
#define TUNE_COST_attention_forward COST(4 * pairs(dev, q, k, starts, kv_length, q_offset, \
    &params) * (double)q->shape[3], all, "")
#define TUNE_ARGS_attention_backward(V) \
    V(SET, dq) V(SET, dk) V(SET, dv) V(GET, dout) V(GET, q) V(GET, k) V(GET, v) V(GET, out) \
    V(GET, lse) V(GET, starts) \
    V(VALUE, params, struct tune_attention)
#define TUNE_FIT_attention_backward \
    (attention_fits(out, lse, q, k, v, starts, NULL, NULL) && q->shape[1] == k->shape[1] && \
     attention_fits(dout, lse, dq, dk, dv, starts, NULL, NULL) && same_shape(dq, q) && \
     same_shape(dk, k) && dq->dtype == q->dtype)
#define TUNE_COST_attention_backward COST(10 * pairs(dev, q, k, starts, NULL, NULL, \
    &params) * (double)q->shape[3], all, "dx")

/* tune_glu_forward(dev, h, gate_up, kind) - h = f(gate) up, with kind's f:
 *     SILU: f(x) = x / (1 + exp(-x))                              (SwiGLU)
 *     GELU: f(x) = x / (1 + exp(-2 z)), z = sqrt(2/pi) (x + 0.044715 x^3)   (GeGLU; equals
 *           x/2 (1 + tanh z), the tanh approximation)
 *     h [N,F] set   gate_up [N,2F]: gate, then up
 * tune_glu_backward(dev, dgate_up, dh, gate_up, kind) - the gradient of gate_up.
 *     dgate_up [N,2F] set, may be gate_up itself   dh [N,F]
 * Source: Shazeer 2020, eq. 6; Hendrycks & Gimpel 2016. */
#define TUNE_ARGS_glu_forward(V) V(SET, h) V(GET, gate_up) V(VALUE, kind, enum tune_gate)
#define TUNE_FIT_glu_forward \
    (h->ndim == 2 && is(gate_up, h->shape[0], 2 * h->shape[1]) && is_float(h) && \
     h->dtype == gate_up->dtype && (kind == TUNE_GATE_SILU || kind == TUNE_GATE_GELU))
#define TUNE_COST_glu_forward COST((kind == TUNE_GATE_GELU ? 9 : 5) * count(h), all, "")
#define TUNE_ARGS_glu_backward(V) V(SET, dgate_up) V(GET, dh) V(GET, gate_up) \
    V(VALUE, kind, enum tune_gate)
#define TUNE_FIT_glu_backward \
    (dh->ndim == 2 && is(gate_up, dh->shape[0], 2 * dh->shape[1]) && \
     is(dgate_up, dh->shape[0], 2 * dh->shape[1]) && \
     is_float(dh) && dh->dtype == gate_up->dtype && dgate_up->dtype == dh->dtype && \
     (kind == TUNE_GATE_SILU || kind == TUNE_GATE_GELU))
#define TUNE_COST_glu_backward COST((kind == TUNE_GATE_GELU ? 20 : 12) * count(dh), all, "dx")

/* tune_gather(dev, y, x, rows) - y[i] = x[rows[i]].   y set
 * tune_scatter(dev, y, x, rows) - y[rows[i]] = x[i].   y: those rows set
 *     y, x [*,C], maybe some columns of wider matrices; rows differ; the caller checks them */
#define TUNE_ARGS_gather(V) V(SET, y) V(GET, x) V(GET, rows)
#define TUNE_FIT_gather (have_columns(x, y) && is_index(rows, y->shape[0]))
#define TUNE_COST_gather COST(0, 2 * bytes(y), "")
#define TUNE_ARGS_scatter(V) V(EDIT, y, true) V(GET, x) V(GET, rows)
#define TUNE_FIT_scatter (have_columns(x, y) && is_index(rows, x->shape[0]))
#define TUNE_COST_scatter COST(0, 2 * bytes(x), "")

/* tune_cross_entropy_rows(dev, logits, step, log_probs, labels, weights, rows, smoothing, backward)
 * - for each row of logits [M,V] F32, add f times -log softmax(logits)[label] to the step's
 * loss_sum. f is weights[rows[m]], or 1 if weights is NULL. log_probs [M], unless NULL, is set to
 * log softmax(..)[label]. With backward, logits become the gradient of that sum, f (softmax -
 * onehot); without, they are lost. smoothing e in [0,1): the target is 1 - e + e/V for the label
 * and e/V for every other token.
 *     labels [M], each in 0..V-1   rows [M], each an index of weights, or NULL with weights
 * The caller checks labels and rows. */
#define TUNE_ARGS_cross_entropy_rows(V) \
    V(EDIT, logits, true) V(STEP, step) V(SET, log_probs) V(GET, labels) V(GET, weights) \
    V(GET, rows) V(VALUE, smoothing, double) V(VALUE, backward, bool)
#define TUNE_FIT_cross_entropy_rows \
    (smoothing >= 0 && smoothing < 1 && \
     logits->ndim == 2 && logits->dtype == TUNE_F32 && is_whole(logits) && \
     (!log_probs || is_row(log_probs, logits->shape[0])) && \
     is_index(labels, logits->shape[0]) && (!weights || (is_row(weights, weights->shape[0]) && \
     rows && is_index(rows, logits->shape[0]))))
#define TUNE_COST_cross_entropy_rows \
    COST((backward ? 7 : 5) * count(logits), (backward ? 2 : 1) * bytes(logits), \
    backward ? "dx" : "")

/* tune_dropout(dev, y, x, step, drop, beta, plain, masked) - y = beta y + (plain + masked k) x. k
 * is 0 for what is dropped and 1/(1-p) for the rest. It may be in place.   y, x [N,C]
 * (beta, plain, masked) = (0, 0, 1) drops. (1, 0, 1) adds the gradient of that. (0, 1, -1) is what
 * dropping takes away.
 * Source: Srivastava et al. 2014, scaled in training. */
#define TUNE_ARGS_dropout(V) \
    V(EDIT, y, beta != 0) V(GET, x) V(STEP, step) V(VALUE, drop, struct tune_dropout) \
    V(VALUE, beta, float) \
        V(VALUE, plain, float) V(VALUE, masked, float)
#define TUNE_FIT_dropout (are_alike(x, y) && drop.p >= 0 && drop.p < 1)
#define TUNE_COST_dropout COST(3 * count(y), all, "")

/* tune_noise(dev, y, step, drop, size) - y += u, with each u drawn evenly from [-size, size).
 * drop.p is not read.   y [N,C] F32
 * Source: Jain et al. 2023, "NEFTune". */
#define TUNE_ARGS_noise(V) \
    V(EDIT, y, true) V(STEP, step) V(VALUE, drop, struct tune_dropout) V(VALUE, size, float)
#define TUNE_FIT_noise (y->ndim == 2 && y->dtype == TUNE_F32 && is_whole(y) && size >= 0)
#define TUNE_COST_noise COST(2 * count(y), 2 * bytes(y), "")

/* tune_scale_columns(dev, y, x, g, plus, scale, beta) - y = beta y + scale (g + plus) x, with g for
 * each column.   y, x [N,C], may be one   g [C]
 * tune_dot_columns(dev, dots, x, y, g, first, scale) - dots += scale g * (sum over rows of x y), in
 * the columns [first, first + n).   dots, g [n]   x, y [N,C] */
#define TUNE_ARGS_scale_columns(V) \
    V(EDIT, y, beta != 0) V(GET, x) V(GET, g) V(VALUE, plus, float) V(VALUE, scale, float) \
    V(VALUE, beta, float)
#define TUNE_FIT_scale_columns (are_alike(x, y) && is_row(g, x->shape[1]))
#define TUNE_COST_scale_columns COST(3 * count(y), all, "")
#define TUNE_ARGS_dot_columns(V) \
    V(EDIT, dots, true) V(GET, x) V(GET, y) V(GET, g) V(VALUE, first, int64_t) \
    V(VALUE, scale, float)
#define TUNE_FIT_dot_columns \
    (are_alike(x, y) && dots->ndim == 1 && is_row(dots, dots->shape[0]) && \
     is_row(g, dots->shape[0]) && first >= 0 && first + dots->shape[0] <= x->shape[1])
#define TUNE_COST_dot_columns COST(2 * (double)x->shape[0] * count(dots), 2 * part(x, \
    dots->shape[0]), "dW")

/* tune_row_squares(dev, squares, w) - the square of the length of each row.   squares [M] set   w
 * [M,K], any dtype of a product
 * tune_dora_scale(dev, g, inverse, magnitude, squares, b, p, aa, s) - scale the rows of W + s B A.
 * l are their lengths; inverse = 1/l and g = magnitude/l, both 0 where l is 0. For each row b of B,
 * l^2 = squares + 2 s b.p + s^2 b (A A^T) b.
 *     g, inverse set; magnitude, squares [M]   b, p = W A^T [M,r]   aa = A A^T [r,r]
 * magnitude NULL: there is no adapter; g is 1, inverse 0, and squares, b, p, aa are not read. */
#define TUNE_ARGS_row_squares(V) V(SET, squares) V(GET, w)
#define TUNE_FIT_row_squares (w->ndim == 2 && w->stride == 0 && is_weight(w) && \
    is_row(squares, w->shape[0]))
#define TUNE_COST_row_squares COST(2 * count(w), bytes(w), "")
#define TUNE_ARGS_dora_scale(V) \
    V(SET, g) V(SET, inverse) V(GET, magnitude) V(GET, squares) V(GET, b) V(GET, p) V(GET, aa) \
    V(VALUE, s, float)
#define TUNE_FIT_dora_scale \
    (g->ndim == 1 && is_row(g, g->shape[0]) && is_row(inverse, g->shape[0]) && \
     (!magnitude || (is_row(magnitude, g->shape[0]) && is_row(squares, g->shape[0]) && \
      b->ndim == 2 && \
                     is_f32(b, g->shape[0], b->shape[1]) && is_f32(p, g->shape[0], b->shape[1]) && \
                     is_f32(aa, b->shape[1], b->shape[1]))))
#define TUNE_COST_dora_scale \
    COST(magnitude ? 2 * count(g) * (double)(b->shape[1] * (b->shape[1] + 1)) : 0, \
    2 * bytes(g) + (magnitude ? 2 * bytes(b) : 0), "")

/* tune_begin_step(dev, step) - begin a step: set its scalars (record.h); step goes up by one.
 * tune_begin_pass(dev, step, more) - pass += more.
 * tune_add_labels(dev, step, labels, chunks) - add to the step's labels and chunks.
 * tune_add_loss(dev, step, loss) - loss_sum += loss.
 * tune_add_divisor(dev, step, more) - divisor += more.
 * tune_set_lr(dev, step, lr) - set lr.
 * tune_end_step(dev, slot, step) - set end_s to now and copy the scalars to slot. */
#define TUNE_ARGS_begin_step(V) V(STEP, step)
#define TUNE_FIT_begin_step (true)
#define TUNE_COST_begin_step COST(0, 0, "")
#define TUNE_ARGS_begin_pass(V) V(STEP, step) V(VALUE, more, double)
#define TUNE_FIT_begin_pass (true)
#define TUNE_COST_begin_pass COST(0, 0, "")
#define TUNE_ARGS_add_labels(V) V(STEP, step) V(VALUE, labels, double) V(VALUE, chunks, double)
#define TUNE_FIT_add_labels (true)
#define TUNE_COST_add_labels COST(0, 0, "")
#define TUNE_ARGS_add_loss(V) V(STEP, step) V(VALUE, loss, double)
#define TUNE_FIT_add_loss (true)
#define TUNE_COST_add_loss COST(0, 0, "")
#define TUNE_ARGS_add_divisor(V) V(STEP, step) V(VALUE, more, double)
#define TUNE_FIT_add_divisor (true)
#define TUNE_COST_add_divisor COST(0, 0, "")
#define TUNE_ARGS_set_lr(V) V(STEP, step) V(VALUE, lr, double)
#define TUNE_FIT_set_lr (true)
#define TUNE_COST_set_lr COST(0, 0, "")
#define TUNE_ARGS_end_step(V) V(SET, slot) V(STEP, step)
#define TUNE_FIT_end_step (slot->ndim == 1 && \
    tune_tensor_bytes(slot) == (int64_t)sizeof(struct tune_scalars))
#define TUNE_COST_end_step COST(0, all, "")

/* tune_sum_squares(dev, step, x) - square_sum += sum of x[i]^2, in float64. The order depends only
 * on n and the threads.   x [n] F32
 * tune_finish_step(dev, step, clip_norm) - compute grad_norm, not_finite and gradient_scale. n is
 * divisor, or labels if divisor is 0.
 *     grad_norm = sqrt(square_sum) / n
 *     gradient_scale = min(1, clip_norm / (grad_norm + 1e-6)) / n; clip_norm 0: no clipping
 * If something is not finite, the scale is 0; else updates goes up by one. It matches
 * torch.nn.utils.clip_grad_norm_ on the gradient of the mean loss. */
#define TUNE_ARGS_sum_squares(V) V(STEP, step) V(GET, x)
#define TUNE_FIT_sum_squares (is_row(x, x->shape[0]))
#define TUNE_COST_sum_squares COST(2 * count(x), all, "")
#define TUNE_ARGS_finish_step(V) V(STEP, step) V(VALUE, clip_norm, double)
#define TUNE_FIT_finish_step (clip_norm >= 0)
#define TUNE_COST_finish_step COST(0, 0, "")

/* tune_adamw(dev, w, g, m, v, step, params) - one AdamW update. g is scaled by gradient_scale
 * first; 0 leaves everything as it is. lr is the step's lr times params.lr_scale, t the step's
 * updates.
 *     m = b1 m + (1-b1) g;  v = b2 v + (1-b2) g^2
 *     w -= lr wd w;  w -= lr (m/c1) / (sqrt(v/c2) + eps)
 *     c1 = 1 - b1^t, c2 = 1 - b2^t   w, g, m, v [n]
 * Source: Loshchilov & Hutter 2019, algorithm 2; eps is outside the root, as in PyTorch.
 * tune_sgd(dev, w, g, m, step, params) - w -= lr wd w;  m = momentum m + g;  w -= lr m. m NULL: no
 * momentum.
 * All tensors are F32. Other dtypes of weights and moments are refused until a device has them. */
#define TUNE_ARGS_adamw(V) V(EDIT, w, true) V(GET, g) V(EDIT, m, true) V(EDIT, v, true) \
    V(STEP, step) V(VALUE, params, struct tune_update)
#define TUNE_FIT_adamw (is_row(w, g->shape[0]) && is_row(g, g->shape[0]) && \
    is_row(m, g->shape[0]) && is_row(v, g->shape[0]))
#define TUNE_COST_adamw COST(14 * count(w), all, "")
#define TUNE_ARGS_sgd(V) V(EDIT, w, true) V(GET, g) V(EDIT, m, true) V(STEP, step) \
    V(VALUE, params, struct tune_update)
#define TUNE_FIT_sgd (is_row(w, g->shape[0]) && is_row(g, g->shape[0]) && \
    (!m || is_row(m, g->shape[0])))
#define TUNE_COST_sgd COST((m ? 5 : 3) * count(w), all, "")

/* Muon's three operations; between the last two, products make y nearly orthogonal.
 * tune_muon_moment(dev, y, g, m, step, params) - scale g by gradient_scale. Then m += (1 - b) (g -
 * m) and y = g + b (m - g), with b = params.momentum. gradient_scale 0: m stays, y is 0.   y, g, m
 * [n]
 * tune_unit(dev, y, least) - y /= max(|y|, least), |y| the root of the sum of squares.   y [n]
 * tune_muon(dev, w, y, step, size, params) - w -= lr wd w;  w -= lr size y. gradient_scale 0
 * leaves w as it is.   w, y [n]
 * Source: Jordan et al. 2024, "Muon"; as torch.optim.Muon. */
#define TUNE_ARGS_muon_moment(V) V(SET, y) V(GET, g) V(EDIT, m, true) V(STEP, step) \
    V(VALUE, params, struct tune_update)
#define TUNE_FIT_muon_moment (is_row(y, g->shape[0]) && is_row(g, g->shape[0]) && \
    is_row(m, g->shape[0]))
#define TUNE_COST_muon_moment COST(6 * count(g), all, "")
#define TUNE_ARGS_unit(V) V(EDIT, y, true) V(VALUE, least, double)
#define TUNE_FIT_unit (is_row(y, y->shape[0]) && least > 0)
#define TUNE_COST_unit COST(3 * count(y), 2 * bytes(y), "")
#define TUNE_ARGS_muon(V) V(EDIT, w, true) V(GET, y) V(STEP, step) V(VALUE, size, double) \
    V(VALUE, params, struct tune_update)
#define TUNE_FIT_muon (is_row(w, y->shape[0]) && is_row(y, y->shape[0]))
#define TUNE_COST_muon COST(3 * count(w), all, "")

/* tune_average(dev, e, w, step, decay) - e = d e + (1 - d) w, with d = min(decay, (1+t) / (10+t)).
 * t is the step's updates. gradient_scale 0 leaves e as it is.   e, w [n] */
#define TUNE_ARGS_average(V) V(EDIT, e, true) V(GET, w) V(STEP, step) V(VALUE, decay, double)
#define TUNE_FIT_average (is_row(e, w->shape[0]) && is_row(w, w->shape[0]) && \
    decay >= 0 && decay < 1)
#define TUNE_COST_average COST(3 * count(e), all, "")

/* The list. */
#define TUNE_OPS(OP) \
    OP(copy) OP(zero) OP(axpby) OP(exchange) OP(gemm) OP(gemm_add) \
    OP(bias_forward) OP(bias_backward) \
    OP(embed_forward) OP(embed_backward) OP(rmsnorm_forward) \
    OP(rmsnorm_backward) OP(headnorm_forward) OP(headnorm_backward) OP(rope) \
    OP(attention_forward) OP(attention_backward) \
    OP(glu_forward) OP(glu_backward) OP(gather) OP(scatter) OP(cross_entropy_rows) \
    OP(dropout) OP(noise) OP(scale_columns) \
    OP(dot_columns) OP(row_squares) OP(dora_scale) OP(begin_step) OP(begin_pass) \
    OP(add_labels) OP(add_loss) OP(add_divisor) OP(set_lr) OP(end_step) \
    OP(sum_squares) OP(finish_step) OP(adamw) OP(sgd) \
    OP(muon_moment) OP(unit) OP(muon) OP(average)

/* ---- made from the list ---- */

#define TUNE_PARAMETER(kind, ...) TUNE_PARAMETER_##kind(__VA_ARGS__)
#define TUNE_PARAMETER_SET(x) , struct tune_tensor *x
#define TUNE_PARAMETER_EDIT(x, old) , struct tune_tensor *x
#define TUNE_PARAMETER_GET(x) , const struct tune_tensor *x
#define TUNE_PARAMETER_STEP(x) , tune_address x
#define TUNE_PARAMETER_VALUE(x, T) , T x
#define TUNE_ARGUMENT(kind, ...) TUNE_ARGUMENT_##kind(__VA_ARGS__)
#define TUNE_ARGUMENT_SET(x) , x
#define TUNE_ARGUMENT_EDIT(x, old) , x
#define TUNE_ARGUMENT_GET(x) , x
#define TUNE_ARGUMENT_STEP(x) , x
#define TUNE_ARGUMENT_VALUE(x, T) , x

#ifdef __cplusplus
extern "C" {
#endif

/* The functions that check their arguments. */
#define TUNE_DECLARE_OP(op) int tune_##op(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER));
TUNE_OPS(TUNE_DECLARE_OP)
#undef TUNE_DECLARE_OP

/* The table that a device fills. A kernel's arguments were checked. */
struct tune_ops {
    void (*close)(struct tune_device *dev);
    /* 64-byte aligned, zeroed; 0: no memory. free takes effect in order of the queue. */
    tune_address (*alloc)(struct tune_device *dev, int64_t bytes);
    void (*free)(struct tune_device *dev, tune_address memory, int64_t bytes);
    int (*memory)(const struct tune_device *dev, struct tune_device_memory *memory);
    int (*reserve)(struct tune_device *dev, const struct tune_max_sizes *sizes);
    int64_t (*reserve_bytes)(const struct tune_device *dev, const struct tune_max_sizes *sizes,
                             int64_t *library);
    int (*peak_rates)(struct tune_device *dev, struct tune_peak_rates *peak_rates,
                      tune_address memory, int64_t n); /* NULL: unknown */
    int (*upload)(struct tune_device *dev, tune_address to, const void *from, int64_t bytes);
    int (*download)(struct tune_device *dev, void *to, tune_address from, int64_t bytes);
    int (*sync)(struct tune_device *dev);
    /* NULL: the device has no second stream */
    void *(*beside)(struct tune_device *dev);
    int (*done)(struct tune_device *dev);
    void *(*mark)(struct tune_device *dev);
    int (*reached)(struct tune_device *dev, void *mark);
    void (*unmark)(struct tune_device *dev, void *mark);
    /* NULL: the host cannot read the memory */
    void *(*in_place)(struct tune_device *dev, tune_address memory);
    /* NULL: the device queues each operation when it is called */
    int (*group_begin)(struct tune_device *dev);
    int (*group_end)(struct tune_device *dev);
    /* NULL: nothing is to be done */
    int (*acquire)(struct tune_device *dev, tune_address memory, int64_t bytes);
    int (*release)(struct tune_device *dev, tune_address memory, int64_t bytes);
#define TUNE_TABLE_ENTRY(op) int (*op)(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER));
    TUNE_OPS(TUNE_TABLE_ENTRY)
#undef TUNE_TABLE_ENTRY
};

/* tune_linear_forward - y = scale (x w^T + bias) + r.   y [N,M]  x [N,C]  w [M,C]  bias [M] or NULL
 * r [N,M] or NULL, as for tune_gemm_add
 * tune_linear_backward - dx = scale dy w + dx_beta dx;  dw += scale dy^T x;  dbias += scale * sum
 * of dy's rows. dx, dw, dbias: NULL if not wanted. operands: as for tune_gemm. */
int tune_linear_forward(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x,
                        const struct tune_tensor *w, const struct tune_tensor *bias, float scale,
                        const struct tune_tensor *r, enum tune_dtype operands);
int tune_linear_backward(struct tune_device *dev, struct tune_tensor *dx, struct tune_tensor *dw,
                         struct tune_tensor *dbias, const struct tune_tensor *dy,
                         const struct tune_tensor *x,
                         const struct tune_tensor *w, float scale, float dx_beta,
                         enum tune_dtype operands);

#ifdef __cplusplus
}
#endif
#endif
