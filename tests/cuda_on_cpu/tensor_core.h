/* tensor_core.h - mma.sync and ldmatrix, for ptx.h of the device. All 32 lanes take part. The maps
 * from lanes to elements are those of the PTX ISA ("Matrix fragments for mma.m16n8k16", "...k8").
 */
#ifndef CUDA_ON_CPU_TENSOR_CORE_H
#define CUDA_ON_CPU_TENSOR_CORE_H

#include <cstdint>

namespace emu
{

/* mma_bf16 - D[16,8] = A[16,16] B[16,8] + C, bfloat16 operands, two in each register.
 * mma_tf32 - D[16,8] = A[16,8] B[8,8] + C; the low 13 bits of each operand are not read.
 * ldmatrix - `matrices` (1, 2, 4) of 8x8 16-bit elements; lanes 8i..8i+7 bring the rows of matrix
 * i. */
void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4],
              const char *file, int line);
void mma_tf32(float d[4], const uint32_t a[4], const uint32_t b[2], const float c[4],
              const char *file, int line);
void ldmatrix(uint32_t *d, int matrices, bool transposed, const void *row, const char *file,
              int line);

} // namespace emu
#endif
