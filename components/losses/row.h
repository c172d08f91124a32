/* row.h - a loss of your own, written for the logits of one label, in host memory.
 *
 * Write a function of one row. tune_chunk_each (loss.h) calls it for each label of a chunk. An
 * example is z-loss: cross entropy plus z times the square of log(sum exp).
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

#include <math.h> /* exp and log, for the recipe */
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The logits of one label. */
struct tune_row {
    float *x;         /* [V]; must end as d loss / d logits */
    float *other;     /* [V], the second model's logits; you may overwrite them. NULL: none */
    int64_t V;
    int32_t label;
    int32_t position; /* position in the batch, 0..B*T-1 */
    void *context;    /* the caller's */
};

/* tune_row_loss - your function: returns the loss of one label and leaves its gradient in row->x.
 * Several threads call it at once. */
typedef double tune_row_loss(const struct tune_row *row);

/* tune_row_log_softmax - x [V] becomes log softmax(x / temperature). Returns log(sum exp(x /
 * temperature)). */
double tune_row_log_softmax(float *x, int64_t V, double temperature);

/* tune_row_kl - returns T^2 KL(p || q) with p = softmax(other / T) and q = softmax(x / T). x
 * becomes its gradient, T (q - p). other is overwritten.
 * With 0 < k < V, only the k largest of other count one by one. The rest of the vocabulary counts
 * as one token, in p and in q. Among equal logits the first ones are taken.
 * Source: Hinton et al. 2015, section 2 (T^2 keeps the gradient's size). Counting the rest as one
 * token is the default of TRL's distillation trainer. */
double tune_row_kl(float *x, float *other, int64_t V, double T, int64_t k);

#ifdef __cplusplus
}
#endif
#endif
