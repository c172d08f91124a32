/* row.h - write a loss of your own: arithmetic on the logits of one label, in host memory.
 *
 * Write a function of one row. tune_chunk_each (loss.h) calls it for each label of a chunk. This
 * example is cross entropy plus z times the square of log(sum exp x):
 *
 *     static double with_z(const struct tune_row *r)
 *     {
 *         double z = 1e-4, lse = tune_row_log_softmax(r->x, r->V, 1);
 *         double loss = z * lse * lse - r->x[r->label];
 *         for (int64_t v = 0; v < r->V; v++)
 *             r->x[v] = (1 + 2 * z * lse) * exp(r->x[v]);
 *         r->x[r->label] -= 1;
 *         return loss;
 *     } */
#ifndef TUNE_ROW_H
#define TUNE_ROW_H

#include <math.h> /* for recipes */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The logits of one label. */
struct tune_row {
    float *x;         /* [V] logits; the function replaces them by d loss / d logits */
    float *other;     /* [V] logits of the second model, may be overwritten; NULL: none */
    int64_t V;
    int32_t label;
    int32_t position; /* in the batch, 0..B*T-1 */
    void *context;    /* the caller's own data */
};

/* Returns the loss of one label and leaves its gradient in row->x. Several threads call it at the
 * same time. */
typedef double tune_row_loss(const struct tune_row *row);

/* tune_row_log_softmax - replace x [V] by log softmax(x / temperature). Returns log(sum exp(x /
 * temperature)). */
double tune_row_log_softmax(float *x, int64_t V, double temperature);

/* tune_row_kl - return T^2 KL(p || q) with p = softmax(other / T) and q = softmax(x / T). x [V]
 * becomes its gradient, T (q - p); other [V] is overwritten.
 *
 * 0 < k < V: only the k largest logits of other count by themselves, ties in order of index. All
 * other tokens together count as one token, in p and in q.
 *
 * Source: Hinton et al. 2015, section 2 (T^2 keeps the gradient's size). TRL's distillation trainer
 * also counts the rest as one token by default. */
double tune_row_kl(float *x, float *other, int64_t V, double T, int64_t k);

#ifdef __cplusplus
}
#endif
#endif
