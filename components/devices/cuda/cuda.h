/* cuda.h - what the CUDA kernels share: the stream that they are queued in, a tensor's pointers.
 *
 * Each operation of ops.h has a function tune_cuda_<op> that queues kernels in the device's stream.
 * It returns 0, or -1 if the launch failed; then `failed` holds the reason. Kernels are
 * deterministic: no float atomics, and each sum has one order. */
#ifndef TUNE_CUDA_H
#define TUNE_CUDA_H

#include <cuda_bf16.h>

#include "devices/cuda/language.h"
#include "devices/ops.h"

/* The state of a CUDA device. */
struct tune_cuda {
    cudaStream_t stream;    /* for compute */
    cudaError_t failed;     /* the last launch that failed */
    float *scratch;         /* memory.cu */
    int64_t scratch_floats;
};

static inline struct tune_cuda *tune_cuda_of(const struct tune_device *dev)
{
    return static_cast<struct tune_cuda *>(dev->state);
}

/* tune_cuda_queued - 0 if the launches since the last call succeeded, else -1. */
static inline int tune_cuda_queued(struct tune_device *dev)
{
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess)
        return 0;
    tune_cuda_of(dev)->failed = error;
    return -1;
}

/* tune_cuda_data - a tensor's numbers; NULL for an absent tensor.
 * tune_cuda_elements - how many it has.
 * tune_cuda_bytes - the bytes of a dense one, of whole bytes an element. */
template <class T> static inline T *tune_cuda_data(const struct tune_tensor *t)
{
    return t ? reinterpret_cast<T *>(t->data.at) : nullptr;
}

static inline int64_t tune_cuda_elements(const struct tune_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++)
        n *= t->shape[i];
    return n;
}

static inline size_t tune_cuda_bytes(const struct tune_tensor *t)
{
    bool two = t->dtype == TUNE_BF16, eight = t->dtype == TUNE_F64 || t->dtype == TUNE_I64;
    return static_cast<size_t>(tune_cuda_elements(t)) * (two ? 2 : eight ? 8 : 4);
}

/* tune_cuda_scratch - the device's working memory, at least so many floats, aligned to 256 bytes.
 * An operation uses it until it ends; the next one overwrites it. To grow it waits for the stream.
 * So ask for the largest size once, before work that is captured or timed. NULL with an error of
 * kind CANNOT: no memory, or it must grow while the stream is captured.
 * tune_cuda_scratch_free - free it. */
float *tune_cuda_scratch(struct tune_device *dev, int64_t floats);
void tune_cuda_scratch_free(struct tune_device *dev);

/* tune_cuda_attention_floats - the floats of scratch that attentions up to this size take: B rows
 * of T keys. queries: the most queries of a row. training: backward runs too. */
int64_t tune_cuda_attention_floats(int64_t B, int64_t queries, int64_t T, int64_t H, int64_t D,
                                   bool training);

/* tune_cuda_blocks - blocks of `threads` for n elements. There is a limit, so a kernel loops. */
static inline unsigned tune_cuda_blocks(int64_t n, int64_t threads)
{
    int64_t blocks = (n + threads - 1) / threads;
    return static_cast<unsigned>(blocks < 1 ? 1 : blocks > 65535 ? 65535 : blocks);
}

/* tune_cuda_load, tune_cuda_store - an activation as float32. */
__device__ __forceinline__ float tune_cuda_load(float x) { return x; }
__device__ __forceinline__ float tune_cuda_load(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ void tune_cuda_store(float *x, float value) { *x = value; }
__device__ __forceinline__ void tune_cuda_store(__nv_bfloat16 *x, float value)
{
    *x = __float2bfloat16_rn(value);
}

/* Neighbours that one instruction moves: W elements, at most 16 bytes, aligned to their size.
 * tune_cuda_wide - whether rows of n elements can be moved by 16 bytes. */
template <class T, int W> struct __align__(W * sizeof(T)) tune_cuda_pack {
    T v[W];
};

static inline bool tune_cuda_wide(const struct tune_tensor *t, int64_t n)
{
    return t->data.at % 16 == 0 && n % (t->dtype == TUNE_BF16 ? 8 : 4) == 0;
}

/* Every operation of the list. */
#define TUNE_CUDA_DECLARE(op) \
    extern "C" int tune_cuda_##op(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER));
TUNE_OPS(TUNE_CUDA_DECLARE)
#undef TUNE_CUDA_DECLARE

#endif
