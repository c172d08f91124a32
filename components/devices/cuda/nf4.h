/* nf4.h - NF4 weights on the GPU: dequantized into the device's scratch before they are used. */
#ifndef TUNE_CUDA_NF4_H
#define TUNE_CUDA_NF4_H

#include "devices/cuda/cuda.h"

/* tune_cuda_dequantize - replace *w, an NF4 matrix, by its dense copy in scratch, which has
 * tune_copy_bytes. The numbers are those of tune_nf4_read; BF16 rounds them. dtype: F32 or BF16. */
int tune_cuda_dequantize(struct tune_device *dev, struct tune_tensor *w, enum tune_dtype dtype,
                         float *scratch);

#endif
