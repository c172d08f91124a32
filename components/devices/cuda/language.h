/* language.h - the two ways in which our .cu files are compiled: by nvcc, and as C++ by any
 * compiler with the headers of tests/cuda_on_cpu. What C++ cannot parse has a macro here.
 *
 *     __global__ void twice(float *x, int n) { ... }
 *     LAUNCH(twice, blocks, threads, 0, stream, x, n);       cudaGetLastError() tells
 *     LAUNCH((twice<float, 4>), ...);                        parentheses around commas
 *     SHARED(float, tile, [64][72]);                         static shared memory
 *     DYNAMIC_SHARED(float, buffer);                         the dynamic part, a pointer
 *     UNROLL for (...)                                       arrays it indexes stay in registers
 *     ROLLED for (...)                                       a loop that takes few registers */
#ifndef TUNE_CUDA_LANGUAGE_H
#define TUNE_CUDA_LANGUAGE_H

#include <cuda_runtime.h>

#ifdef __CUDACC__
#define LAUNCH(kernel, grid, block, shared, stream, ...) \
    kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)
#define SHARED(type, name, dimensions) __shared__ __align__(16) type name dimensions
#define DYNAMIC_SHARED(type, name)                                         \
    extern __shared__ __align__(1024) unsigned char tune_dynamic_shared[]; \
    type *name = reinterpret_cast<type *>(tune_dynamic_shared)
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#else
#define UNROLL
#define ROLLED
#endif

#endif
