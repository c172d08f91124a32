/* reduce.h - sums and the largest number of a warp or a block. Every thread gets the result. The
 * order of additions depends only on the number of threads. */
#ifndef TUNE_CUDA_REDUCE_H
#define TUNE_CUDA_REDUCE_H

#include "devices/cuda/language.h"

template <class T> __device__ __forceinline__ T tune_cuda_warp_sum(T x)
{
    for (int by = 16; by > 0; by /= 2)
        x += __shfl_xor_sync(0xffffffff, x, by);
    return x;
}

__device__ __forceinline__ float tune_cuda_warp_max(float x)
{
    for (int by = 16; by > 0; by /= 2)
        x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, by));
    return x;
}

/* All threads of the block call it; the block has whole warps. */
template <class T> __device__ __forceinline__ T tune_cuda_block_sum(T x)
{
    SHARED(T, parts, [32]);
    T sum = 0;
    x = tune_cuda_warp_sum(x);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = x;
    __syncthreads();
    for (unsigned i = 0; i < blockDim.x / 32; i++)
        sum += parts[i];
    __syncthreads(); /* the next call writes to parts */
    return sum;
}

__device__ __forceinline__ float tune_cuda_block_max(float x)
{
    SHARED(float, parts, [32]);
    x = tune_cuda_warp_max(x);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = x;
    __syncthreads();
    x = parts[0];
    for (unsigned i = 1; i < blockDim.x / 32; i++)
        x = fmaxf(x, parts[i]);
    __syncthreads();
    return x;
}

#endif
