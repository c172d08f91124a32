/* cross_entropy.c - log softmax and its gradient, in place over a chunk of logits. */
#include "devices/cpu/cpu.h"

#include <math.h>

#include "devices/record.h"

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

int tune_cpu_cross_entropy(struct tune_device *dev, struct tune_tensor *logits, tune_address step, struct tune_tensor *log_probs,
                           const struct tune_tensor *labels, float scale, bool backward)
{
    struct tune_cpu *cpu = dev->state;
    struct tune_scalars *scalars = tune_cpu_pointer(step);
    const int32_t *label = tune_cpu_data(labels);
    float *probs = tune_cpu_data(log_probs);
    int64_t M = logits->shape[0], V = logits->shape[1];
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t begin, end;
        double loss = 0;
        tune_cpu_team(dev);
        tune_cpu_piece(M, 1, &begin, &end);
        for (int64_t m = begin; m < end; m++) {
            float *x = (float *)tune_cpu_data(logits) + m * V, sum, label_logit = x[label[m]] * scale;
            float max = row_exp(x, V, scale, &sum);
            /* the difference first: the logarithm of a sum near 1 would drown in a large max */
            double log_prob = (double)label_logit - max - log((double)sum);
            loss -= log_prob;
            if (probs)
                probs[m] = (float)log_prob;
            if (!backward)
                continue;
            float factor = scale / sum;
            for (int64_t i = 0; i < V; i++)
                x[i] *= factor;
            x[label[m]] -= scale;
        }
        cpu->partial[omp_get_thread_num()] = loss;
    }
    for (int t = 0; t < cpu->team; t++)
        scalars->loss_sum += cpu->partial[t];
    return 0;
}
