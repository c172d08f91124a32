/* cross_entropy.c - log softmax and its gradient, in place in a chunk of logits. */
#include "devices/cpu/cpu.h"

#include <math.h>

#include "devices/record.h"

static double mean_of(const float *x, int64_t V)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < V; i++)
        sum += x[i];
    return sum / (double)V;
}

/* Replace x by exp(x - max); *sum is their sum. Returns max. */
static float row_exp(float *x, int64_t V, float *sum)
{
    float max = -INFINITY, total = 0;
    for (int64_t i = 0; i < V; i++)
        max = x[i] > max ? x[i] : max;
#pragma omp simd reduction(+ : total)
    for (int64_t i = 0; i < V; i++) {
        x[i] = tune_cpu_exp(x[i] - max);
        total += x[i];
    }
    *sum = total;
    return max;
}

int tune_cpu_cross_entropy_rows(struct tune_device *dev, struct tune_tensor *logits, tune_address step, struct tune_tensor *log_probs,
                                const struct tune_tensor *labels, const struct tune_tensor *weights, const struct tune_tensor *rows,
                                double smoothing, bool backward)
{
    struct tune_cpu *cpu = dev->state;
    struct tune_scalars *scalars = tune_cpu_pointer(step);
    const int32_t *label = tune_cpu_data(labels), *row = tune_cpu_data(rows);
    const float *weight = tune_cpu_data(weights);
    float *probs = tune_cpu_data(log_probs);
    int64_t M = logits->shape[0], V = logits->shape[1];
#pragma omp parallel num_threads(tune_cpu_threads(dev, M * V))
    {
        int64_t begin, end;
        double loss = 0;
        tune_cpu_team(dev);
        tune_cpu_piece(M, 1, &begin, &end);
        for (int64_t m = begin; m < end; m++) {
            float *x = (float *)tune_cpu_data(logits) + m * V, sum, label_logit = x[label[m]], f = weight ? weight[row[m]] : 1;
            double mean = smoothing > 0 ? mean_of(x, V) : 0;
            float max = row_exp(x, V, &sum);
            /* subtract max first: log(sum) is small and would lose digits next to a large max */
            double log_prob = (double)label_logit - max - log((double)sum);
            loss -= f * (smoothing > 0 ? (1 - smoothing) * log_prob + smoothing * (mean - max - log((double)sum)) : log_prob);
            if (probs)
                probs[m] = (float)log_prob;
            if (!backward)
                continue;
            float factor = f / sum;
            for (int64_t i = 0; i < V; i++)
                x[i] *= factor;
            x[label[m]] -= f * (float)(1 - smoothing);
            float every = f * (float)(smoothing / (double)V);
            for (int64_t i = 0; smoothing > 0 && i < V; i++)
                x[i] -= every;
        }
        cpu->partial[omp_get_thread_num()] = loss;
    }
    for (int t = 0; t < cpu->team; t++)
        scalars->loss_sum += cpu->partial[t];
    return 0;
}
