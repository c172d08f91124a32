/* parameters.cu - gradients of parameters that are sums over rows: bias, embedding, column dots. */
#include "devices/cuda/columns.h"

template <class T> struct bias_terms {
    const T *dy;
    int64_t C;
    float scale;
    __device__ float of(int64_t n, int64_t c) const { return tune_cuda_load(dy[n * C + c]); }
    __device__ float factor(int64_t) const { return scale; }
};

extern "C" int tune_cuda_bias_backward(struct tune_device *dev, struct tune_tensor *dbias,
                                       const struct tune_tensor *dy, float scale)
{
    int status = 0;
    tune_cuda_typed(dy, [&](auto t) {
        typedef TUNE_CUDA_TYPE(t) T;
        bias_terms<T> terms = {tune_cuda_data<const T>(dy), dy->shape[1], scale};
        status = tune_cuda_add_columns(dev, dbias, terms, dy->shape[0], dy->shape[1]);
    });
    return status;
}

template <class X, class Y> struct dot_terms {
    const X *x;
    const Y *y;
    const float *g;
    int64_t C, first;
    float scale;
    __device__ float of(int64_t n, int64_t c) const
    {
        return tune_cuda_load(x[n * C + first + c]) * tune_cuda_load(y[n * C + first + c]);
    }
    __device__ float factor(int64_t c) const { return scale * g[c]; }
};

extern "C" int tune_cuda_dot_columns(struct tune_device *dev, struct tune_tensor *dots,
                                     const struct tune_tensor *x, const struct tune_tensor *y,
                                     const struct tune_tensor *g, int64_t first, float scale)
{
    int status = 0;
    tune_cuda_typed(x, [&](auto a) {
        tune_cuda_typed(y, [&](auto b) {
            typedef TUNE_CUDA_TYPE(a) X;
            typedef TUNE_CUDA_TYPE(b) Y;
            dot_terms<X, Y> terms = {tune_cuda_data<const X>(x),
                                     tune_cuda_data<const Y>(y),
                                     tune_cuda_data<const float>(g),
                                     x->shape[1],
                                     first,
                                     scale};
            status = tune_cuda_add_columns(dev, dots, terms, x->shape[0], dots->shape[0]);
        });
    });
    return status;
}

/* ---- embedding ---- */

constexpr int THREADS = TUNE_CUDA_THREADS;

/* Block n does all rows with the token of row n, in their order, if n is the first of them. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    embed_dw(float *dw, const T *dx, const int *ids, int64_t N, int64_t C, float scale)
{
    SHARED(bool, same, [THREADS]);
    int64_t n = blockIdx.x;
    int id = ids[n];
    bool before = false;
    for (int64_t m = threadIdx.x; m < n; m += THREADS)
        before |= ids[m] == id;
    if (__syncthreads_or(before))
        return;
    for (int64_t some = n; some < N; some += THREADS) {
        int64_t m = some + threadIdx.x;
        same[threadIdx.x] = m < N && ids[m] == id;
        if (!__syncthreads_or(same[threadIdx.x]))
            continue;
        for (int i = 0; i < THREADS; i++)
            for (int64_t c = threadIdx.x; same[i] && c < C; c += THREADS)
                dw[id * C + c] += scale * tune_cuda_load(dx[(some + i) * C + c]);
        __syncthreads(); /* `same` is read */
    }
}

extern "C" int tune_cuda_embed_backward(struct tune_device *dev, struct tune_tensor *dw,
                                        const struct tune_tensor *dx, const struct tune_tensor *ids,
                                        float scale)
{
    int64_t N = dx->shape[0], C = dx->shape[1];
    tune_cuda_typed(dx, [&](auto t) {
        typedef TUNE_CUDA_TYPE(t) T;
        if (N > 0)
            LAUNCH(embed_dw<T>, static_cast<unsigned>(N), THREADS, 0, tune_cuda_of(dev)->stream,
                   tune_cuda_data<float>(dw), tune_cuda_data<const T>(dx),
                   tune_cuda_data<const int>(ids), N, C, scale);
    });
    return tune_cuda_queued(dev);
}
