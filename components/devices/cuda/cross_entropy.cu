/* cross_entropy.cu - log softmax and its gradient, in place in a chunk of logits: a block for each
 * row. It reads the logits once for the sum, and once for the gradient.
 * Source: Milakov & Gimelshein 2018, the sum of exp in one pass. */
#include "devices/cuda/cuda.h"
#include "devices/cuda/reduce.h"

constexpr int THREADS = TUNE_CUDA_THREADS;

/* The largest logit so far, the sum of exp(x - max), and the sum of x. */
struct softmax {
    float max, sum;
    double total;
};

template <int W> __device__ static struct softmax scan(const float *x, int64_t packs)
{
    struct softmax s = {-INFINITY, 0, 0};
    for (int64_t i = threadIdx.x; i < packs; i += THREADS) {
        tune_cuda_pack<float, W> p = reinterpret_cast<const tune_cuda_pack<float, W> *>(x)[i];
        float max = s.max;
        for (int j = 0; j < W; j++) {
            max = fmaxf(max, p.v[j]);
            s.total += p.v[j];
        }
        if (max > s.max) {
            s.sum *= expf(s.max - max);
            s.max = max;
        }
        for (int j = 0; j < W; j++)
            s.sum += expf(p.v[j] - s.max);
    }
    float max = tune_cuda_block_max(s.max);
    s.sum = tune_cuda_block_sum(s.sum == 0 ? 0 : s.sum * expf(s.max - max));
    s.total = tune_cuda_block_sum(s.total);
    s.max = max;
    return s;
}

/* losses [M]: f times minus the target's log probability. */
template <int W>
__global__ void __launch_bounds__(THREADS)
    cross_entropy(float *logits, double *losses, float *log_probs, const int *labels,
                  const float *weights, const int *rows, int64_t V, double smoothing, bool backward)
{
    typedef tune_cuda_pack<float, W> pack;
    int64_t m = blockIdx.x, label = labels[m];
    float *x = logits + m * V, f = weights ? weights[rows[m]] : 1, at_label = x[label];
    struct softmax s = scan<W>(x, V / W); /* its barriers come after every read of at_label */
    if (threadIdx.x == 0) {
        /* subtract max first: log(sum) is small, and would lose digits next to a large max */
        double rest = log(static_cast<double>(s.sum));
        double log_prob = static_cast<double>(at_label) - s.max - rest;
        double mean = s.total / static_cast<double>(V) - s.max - rest;
        losses[m] = -f * (smoothing > 0 ? (1 - smoothing) * log_prob + smoothing * mean : log_prob);
        if (log_probs)
            log_probs[m] = static_cast<float>(log_prob);
    }
    float factor = f / s.sum, one = f * static_cast<float>(1 - smoothing);
    float every = f * static_cast<float>(smoothing / static_cast<double>(V));
    for (int64_t i = threadIdx.x; backward && i < V / W; i += THREADS) {
        pack p = reinterpret_cast<pack *>(x)[i];
        for (int j = 0; j < W; j++) {
            p.v[j] = expf(p.v[j] - s.max) * factor;
            if (i * W + j == label)
                p.v[j] -= one;
            if (smoothing > 0)
                p.v[j] -= every;
        }
        reinterpret_cast<pack *>(x)[i] = p;
    }
}

__global__ void __launch_bounds__(THREADS)
    add_losses(struct tune_scalars *s, const double *losses, int64_t M)
{
    double sum = 0;
    for (int64_t m = threadIdx.x; m < M; m += THREADS)
        sum += losses[m];
    sum = tune_cuda_block_sum(sum);
    if (threadIdx.x == 0)
        s->loss_sum += sum;
}

extern "C" int tune_cuda_cross_entropy_rows(struct tune_device *dev, struct tune_tensor *logits,
                                            tune_address step, struct tune_tensor *log_probs,
                                            const struct tune_tensor *labels,
                                            const struct tune_tensor *weights,
                                            const struct tune_tensor *rows, double smoothing,
                                            bool backward)
{
    int64_t M = logits->shape[0], V = logits->shape[1];
    cudaStream_t stream = tune_cuda_of(dev)->stream;
    if (M == 0)
        return 0;
    double *losses = reinterpret_cast<double *>(tune_cuda_scratch(dev, 2 * M));
    if (!losses)
        return -1;
    tune_cuda_fours(tune_cuda_has(4, logits, V), [&](auto w) {
        constexpr int W = decltype(w)::value;
        LAUNCH(cross_entropy<W>, static_cast<unsigned>(M), THREADS, 0, stream,
               tune_cuda_data<float>(logits), losses, tune_cuda_data<float>(log_probs),
               tune_cuda_data<const int>(labels), tune_cuda_data<const float>(weights),
               tune_cuda_data<const int>(rows), V, smoothing, backward);
    });
    LAUNCH(add_losses, 1, THREADS, 0, stream, reinterpret_cast<struct tune_scalars *>(step.at),
           losses, M);
    return tune_cuda_queued(dev);
}
