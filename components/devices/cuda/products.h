/* products.h - a matrix product of operands that cuBLASLt takes as they are. Private to gemm.cu. */
#ifndef TUNE_CUDA_PRODUCTS_H
#define TUNE_CUDA_PRODUCTS_H

#include "devices/cuda/cuda.h"

/* tune_cuda_multiply - queue c = alpha op(a) op(b) + beta r. a and b have one dtype; c is F32 or
 * has it. r is c, or it has c's layout. TUNE_CUDA_REFUSED, with an error: cuBLASLt refuses every
 * algorithm that it offers for operands that lie so. c is as before. It is not asked again. */
constexpr int TUNE_CUDA_REFUSED = 1;
int tune_cuda_multiply(struct tune_device *dev, const struct tune_tensor *c,
                       const struct tune_tensor *r, const struct tune_tensor *a, bool trans_a,
                       const struct tune_tensor *b, bool trans_b, float alpha, float beta);

#endif
