/* elementwise.cu - operations limited by memory bandwidth: copy, zero, axpby, swiglu. */
#include "devices/cuda/cuda.h"

enum { THREADS = 256 };

extern "C" int tune_cuda_copy(struct tune_device *dev, struct tune_tensor *y,
                              const struct tune_tensor *x)
{
    cudaMemcpyAsync(tune_cuda_data<void>(y), tune_cuda_data<void>(x), tune_cuda_bytes(x),
                    cudaMemcpyDeviceToDevice, tune_cuda_of(dev)->stream);
    return tune_cuda_queued(dev);
}

extern "C" int tune_cuda_zero(struct tune_device *dev, struct tune_tensor *y)
{
    cudaMemsetAsync(tune_cuda_data<void>(y), 0, tune_cuda_bytes(y), tune_cuda_of(dev)->stream);
    return tune_cuda_queued(dev);
}

/* A thread takes the packs first_index(), first_index() + index_step(), ... */
__device__ __forceinline__ int64_t first_index()
{
    return static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x;
}

__device__ __forceinline__ int64_t index_step()
{
    return static_cast<int64_t>(gridDim.x) * THREADS;
}

/* y and x in packs of W numbers; packs: n / W. */
template <int W>
__global__ void __launch_bounds__(THREADS)
    axpby(float *y, const float *x, int64_t packs, float alpha, float beta)
{
    typedef tune_cuda_pack<float, W> pack;
    for (int64_t i = first_index(); i < packs; i += index_step()) {
        pack in = reinterpret_cast<const pack *>(x)[i], out = {};
        if (beta != 0)
            out = reinterpret_cast<pack *>(y)[i];
        for (int j = 0; j < W; j++)
            out.v[j] = alpha * in.v[j] + (beta == 0 ? 0 : beta * out.v[j]);
        reinterpret_cast<pack *>(y)[i] = out;
    }
}

extern "C" int tune_cuda_axpby(struct tune_device *dev, struct tune_tensor *y,
                               const struct tune_tensor *x, float alpha, float beta)
{
    int64_t n = tune_cuda_elements(y);
    cudaStream_t stream = tune_cuda_of(dev)->stream;
    float *to = tune_cuda_data<float>(y);
    const float *from = tune_cuda_data<float>(x);
    if (tune_cuda_wide(x, n) && tune_cuda_wide(y, n))
        LAUNCH(axpby<4>, tune_cuda_blocks(n / 4, THREADS), THREADS, 0, stream, to, from, n / 4,
               alpha, beta);
    else
        LAUNCH(axpby<1>, tune_cuda_blocks(n, THREADS), THREADS, 0, stream, to, from, n, alpha,
               beta);
    return tune_cuda_queued(dev);
}

/* h [N,F], gate_up [N,2F], in packs: F / W for each row. */
template <class T, int W>
__global__ void __launch_bounds__(THREADS)
    swiglu(T *h, const T *gate_up, int64_t rows, int64_t row_packs)
{
    typedef tune_cuda_pack<T, W> pack;
    int64_t packs = rows * row_packs;
    for (int64_t i = first_index(); i < packs; i += index_step()) {
        const pack *row = reinterpret_cast<const pack *>(gate_up) + i / row_packs * 2 * row_packs;
        pack gate = row[i % row_packs], up = row[row_packs + i % row_packs], out;
        for (int j = 0; j < W; j++) {
            float g = tune_cuda_load(gate.v[j]);
            tune_cuda_store(&out.v[j], g / (1.0f + __expf(-g)) * tune_cuda_load(up.v[j]));
        }
        reinterpret_cast<pack *>(h)[i] = out;
    }
}

template <class T, int W>
static void launch_swiglu(struct tune_device *dev, struct tune_tensor *h,
                          const struct tune_tensor *gate_up)
{
    int64_t N = h->shape[0], packs = h->shape[1] / W;
    LAUNCH((swiglu<T, W>), tune_cuda_blocks(N * packs, THREADS), THREADS, 0,
           tune_cuda_of(dev)->stream, tune_cuda_data<T>(h), tune_cuda_data<const T>(gate_up), N,
           packs);
}

extern "C" int tune_cuda_swiglu_forward(struct tune_device *dev, struct tune_tensor *h,
                                        const struct tune_tensor *gate_up)
{
    bool wide = tune_cuda_wide(h, h->shape[1]) && tune_cuda_wide(gate_up, h->shape[1]);
    if (h->dtype == TUNE_BF16)
        wide ? launch_swiglu<__nv_bfloat16, 8>(dev, h, gate_up)
             : launch_swiglu<__nv_bfloat16, 1>(dev, h, gate_up);
    else
        wide ? launch_swiglu<float, 4>(dev, h, gate_up) : launch_swiglu<float, 1>(dev, h, gate_up);
    return tune_cuda_queued(dev);
}
