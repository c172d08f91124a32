/* nf4.h - NF4 weights on the GPU: dequantized into the device's scratch before they are used. */
#ifndef TUNE_CUDA_NF4_H
#define TUNE_CUDA_NF4_H

#include "devices/cuda/cuda.h"

/* tune_cuda_matrix_floats - room for a dense copy of w as `dtype`, in floats, a multiple of 64.
 * tune_cuda_dequantize - replace *w, an NF4 matrix, by its dense copy in room. The numbers are
 * those of tune_nf4_read; BF16 rounds them. dtype: F32 or BF16. */
int64_t tune_cuda_matrix_floats(const struct tune_tensor *w, enum tune_dtype dtype);
int tune_cuda_dequantize(struct tune_device *dev, struct tune_tensor *w, enum tune_dtype dtype,
                         float *room);

#endif
