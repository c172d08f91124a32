/* row.c - log softmax of a row, and KL divergence of two rows. */
#include "losses/row.h"

#include <float.h>
#include <string.h>

double tune_row_log_softmax(float *x, int64_t V, double temperature)
{
    float max = -INFINITY, by = (float)(1 / temperature);
    double sum = 0;
    for (int64_t v = 0; v < V; v++)
        max = x[v] > max ? x[v] : max;
    for (int64_t v = 0; v < V; v++)
        sum += expf((x[v] - max) * by);
    double log_sum = log(sum);
    for (int64_t v = 0; v < V; v++) /* subtract first: the difference of near logits is exact */
        x[v] = (float)((double)(x[v] - max) / temperature - log_sum);
    return max / temperature + log_sum;
}

/* An integer that sorts like the float. */
static uint32_t key_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static int64_t count_from(const float *x, int64_t V, uint32_t key)
{
    int64_t count = 0;
    for (int64_t v = 0; v < V; v++)
        count += key_of(x[v]) >= key;
    return count;
}

/* The key of the k-th largest x, found bit by bit from the highest. */
static uint32_t key_of_largest(const float *x, int64_t V, int64_t k)
{
    uint32_t key = 0;
    for (int bit = 31; bit >= 0; bit--)
        if (count_from(x, V, key | 1u << bit) >= k)
            key |= 1u << bit;
    return key;
}

/* Replace all but the k largest of p: they keep their sum and get q's proportions. Then the
 * divergence of p and q equals the one that counts the rest as one token, and so does its gradient.
 * p and q are logarithms. Those of p are at most 0, so infinity marks the rest. */
static void lump(float *p, const float *q, int64_t V, int64_t k)
{
    uint32_t key = key_of_largest(p, V, k);
    int64_t ties = k - (key < UINT32_MAX ? count_from(p, V, key + 1) : 0);
    double rest_p = 0, rest_q = 0;
    for (int64_t v = 0; v < V; v++) {
        uint32_t own = key_of(p[v]);
        if (own > key || (own == key && ties-- > 0))
            continue;
        rest_p += exp(p[v]);
        rest_q += exp(q[v]);
        p[v] = INFINITY;
    }
    double shift = log(rest_p + DBL_MIN) - log(rest_q + DBL_MIN);
    for (int64_t v = 0; v < V; v++)
        if (p[v] == INFINITY)
            p[v] = (float)(q[v] + shift);
}

double tune_row_kl(float *x, float *other, int64_t V, double T, int64_t k)
{
    double kl = 0;
    tune_row_log_softmax(x, V, T);
    tune_row_log_softmax(other, V, T);
    if (k > 0 && k < V)
        lump(other, x, V, k);
    for (int64_t v = 0; v < V; v++) {
        float p = expf(other[v]);
        if (p > 0) /* where p is 0 its logarithm may be -infinity */
            kl += (double)p * ((double)other[v] - x[v]);
        x[v] = (float)(T * ((double)expf(x[v]) - p));
    }
    return T * T * kl;
}
