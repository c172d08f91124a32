/* norm.cu - RMSNorm of rows: one block for each row. */
#include "devices/cuda/cuda.h"
#include "devices/cuda/reduce.h"

enum { THREADS = 256 };

/* y [N,C], rstd [N] or NULL, x [N,C], w [C]; packs: C / W. */
template <class T, int W>
__global__ void __launch_bounds__(THREADS)
    rmsnorm(T *y, float *rstd, const T *x, const float *w, int64_t packs, float eps)
{
    typedef tune_cuda_pack<T, W> pack;
    const pack *in = reinterpret_cast<const pack *>(x) + blockIdx.x * packs;
    pack *out = reinterpret_cast<pack *>(y) + blockIdx.x * packs;
    float squares = 0;
    for (int64_t i = threadIdx.x; i < packs; i += THREADS) {
        pack p = in[i];
        for (int j = 0; j < W; j++)
            squares += tune_cuda_load(p.v[j]) * tune_cuda_load(p.v[j]);
    }
    squares = tune_cuda_block_sum<THREADS>(squares);
    float s = 1.0f / sqrtf(squares / static_cast<float>(packs * W) + eps);
    if (rstd && threadIdx.x == 0)
        rstd[blockIdx.x] = s;
    for (int64_t i = threadIdx.x; i < packs; i += THREADS) {
        pack p = in[i];
        for (int j = 0; j < W; j++)
            tune_cuda_store(&p.v[j], w[i * W + j] * (tune_cuda_load(p.v[j]) * s));
        out[i] = p;
    }
}

template <class T, int W>
static void launch_rmsnorm(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *rstd,
                           const struct tune_tensor *x, const struct tune_tensor *w, float eps)
{
    if (x->shape[0] > 0)
        LAUNCH((rmsnorm<T, W>), static_cast<unsigned>(x->shape[0]), THREADS, 0,
               tune_cuda_of(dev)->stream, tune_cuda_data<T>(y), tune_cuda_data<float>(rstd),
               tune_cuda_data<const T>(x), tune_cuda_data<const float>(w), x->shape[1] / W, eps);
}

extern "C" int tune_cuda_rmsnorm_forward(struct tune_device *dev, struct tune_tensor *y,
                                         struct tune_tensor *rstd, const struct tune_tensor *x,
                                         const struct tune_tensor *w, float eps)
{
    bool wide = tune_cuda_wide(x, x->shape[1]) && tune_cuda_wide(y, x->shape[1]);
    if (x->dtype == TUNE_BF16)
        wide ? launch_rmsnorm<__nv_bfloat16, 8>(dev, y, rstd, x, w, eps)
             : launch_rmsnorm<__nv_bfloat16, 1>(dev, y, rstd, x, w, eps);
    else
        wide ? launch_rmsnorm<float, 4>(dev, y, rstd, x, w, eps)
             : launch_rmsnorm<float, 1>(dev, y, rstd, x, w, eps);
    return tune_cuda_queued(dev);
}
