/* reduce.h - sums over a warp and over a block. Every thread gets the sum. The order of additions
 * depends only on the number of threads. */
#ifndef TUNE_CUDA_REDUCE_H
#define TUNE_CUDA_REDUCE_H

#include "devices/cuda/language.h"

__device__ __forceinline__ float tune_cuda_warp_sum(float x)
{
    for (int by = 16; by > 0; by /= 2)
        x += __shfl_xor_sync(0xffffffff, x, by);
    return x;
}

/* All threads of the block call it; THREADS is their number, whole warps. */
template <int THREADS> __device__ __forceinline__ float tune_cuda_block_sum(float x)
{
    SHARED(float, parts, [THREADS / 32]);
    float sum = 0;
    x = tune_cuda_warp_sum(x);
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = x;
    __syncthreads();
    for (int i = 0; i < THREADS / 32; i++)
        sum += parts[i];
    __syncthreads(); /* the next call writes to parts */
    return sum;
}

#endif
