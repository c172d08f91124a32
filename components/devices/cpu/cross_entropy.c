/* cross_entropy.c - log softmax and its gradient, in place over a chunk of logits. */
#include "devices/cpu/cpu.h"

#include <math.h>

/* exp(scale x - max) in x's place; *sum is their sum. Returns max. */
static float row_exp(float *x, int64_t V, float scale, float *sum)
{
    float max = -INFINITY, total = 0;
    for (int64_t i = 0; i < V; i++) {
        x[i] *= scale;
        max = x[i] > max ? x[i] : max;
    }
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < V; i++) {
        x[i] = tune_cpu_exp(x[i] - max);
        total += x[i];
    }
    *sum = total;
    return max;
}

int tune_cpu_cross_entropy(struct tune_device *dev, struct tune_tensor *logits, double *loss_sum, float *log_probs,
                           const int32_t *labels, float scale, bool backward)
{
    struct tune_cpu *cpu = dev->state;
    int64_t M = logits->shape[0], V = logits->shape[1];
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t begin, end;
        double loss = 0;
        tune_cpu_team(dev);
        tune_cpu_piece(M, 1, &begin, &end);
        for (int64_t m = begin; m < end; m++) {
            float *x = (float *)logits->data + m * V, sum, label_logit = x[labels[m]] * scale;
            float max = row_exp(x, V, scale, &sum);
            /* the difference first: the logarithm of a sum near 1 would drown in a large max */
            double log_prob = (double)label_logit - max - log((double)sum);
            loss -= log_prob;
            if (log_probs)
                log_probs[m] = (float)log_prob;
            if (!backward)
                continue;
            float factor = scale / sum;
            for (int64_t i = 0; i < V; i++)
                x[i] *= factor;
            x[labels[m]] -= scale;
        }
        cpu->partial[omp_get_thread_num()] = loss;
    }
    for (int t = 0; t < cpu->team; t++)
        *loss_sum += cpu->partial[t];
    return 0;
}
