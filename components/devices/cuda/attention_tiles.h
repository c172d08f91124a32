/* attention_tiles.h - products of bfloat16 tiles in shared memory by one warp, summed in float32. A
 * warp has 16 MT rows. Its results are in fragments: f[m][n][i] is row 16m + g + 8 (i/2), column
 * 8n + 2t + i%2, with g = lane/4 and t = lane%4 (ptx_mma_bf16). */
#ifndef TUNE_CUDA_ATTENTION_TILES_H
#define TUNE_CUDA_ATTENTION_TILES_H

#include "devices/cuda/attention.h"

__device__ __forceinline__ unsigned tune_cuda_pair_bits(float low, float high)
{
    __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    unsigned bits;
    memcpy(&bits, &pair, 4);
    return bits;
}

template <int MT, int N> __device__ __forceinline__ void tune_cuda_clear(float (&f)[MT][N][4])
{
    UNROLL for (int m = 0; m < MT; m++)
        UNROLL for (int n = 0; n < N; n++)
            UNROLL for (int i = 0; i < 4; i++)
                f[m][n][i] = 0;
}

/* tune_cuda_left - the operands X of rows 16m.., columns 16k.. of a tile. */
template <int D, int MT>
__device__ __forceinline__ void tune_cuda_left(unsigned (&x)[4], const tune_cuda_bf16 *tile, int m,
                                               int k)
{
    constexpr int PITCH = tune_cuda_tile<tune_cuda_bf16, D>::PITCH;
    int lane = static_cast<int>(threadIdx.x) % 32;
    ptx_ldmatrix(x, tile + (16 * m + lane % 16) * PITCH + 16 * k + lane / 16 * 8);
}

/* tune_cuda_scores - S [16 MT, BN] = X Y^T, with X [16 MT, D] and Y [BN, D]. KEPT: X is in `kept`
 * already; else it is read from its tile. */
template <int D, int MT, int BN, bool KEPT>
__device__ __forceinline__ void tune_cuda_scores(float (&s)[MT][BN / 8][4],
                                                 unsigned (&kept)[MT][KEPT ? D / 16 : 1][4],
                                                 const tune_cuda_bf16 *x, const tune_cuda_bf16 *y)
{
    constexpr int PITCH = tune_cuda_tile<tune_cuda_bf16, D>::PITCH;
    int lane = static_cast<int>(threadIdx.x) % 32;
    y += (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * 8;
    tune_cuda_clear(s);
    UNROLL for (int k = 0; k < D / 16; k++) {
        if (!KEPT)
            UNROLL for (int m = 0; m < MT; m++)
                tune_cuda_left<D, MT>(kept[m][0], x, m, k);
        UNROLL for (int n = 0; n < BN / 16; n++) {
            unsigned four[4];
            ptx_ldmatrix(four, y + 16 * n * PITCH + 16 * k);
            const unsigned low[2] = {four[0], four[1]}, high[2] = {four[2], four[3]};
            UNROLL for (int m = 0; m < MT; m++) {
                ptx_mma_bf16(s[m][2 * n], kept[m][KEPT ? k : 0], low);
                ptx_mma_bf16(s[m][2 * n + 1], kept[m][KEPT ? k : 0], high);
            }
        }
    }
}

/* tune_cuda_add_product - O [16 MT, D] += P Y, with P [16 MT, BN] rounded to bfloat16 and
 * Y [BN, D]. */
template <int D, int MT, int BN>
__device__ __forceinline__ void tune_cuda_add_product(float (&o)[MT][D / 8][4],
                                                      const float (&p)[MT][BN / 8][4],
                                                      const tune_cuda_bf16 *y)
{
    constexpr int PITCH = tune_cuda_tile<tune_cuda_bf16, D>::PITCH;
    int lane = static_cast<int>(threadIdx.x) % 32;
    y += lane % 16 * PITCH + lane / 16 * 8;
    UNROLL for (int k = 0; k < BN / 16; k++) {
        unsigned x[MT][4];
        UNROLL for (int m = 0; m < MT; m++)
            UNROLL for (int i = 0; i < 4; i++)
                x[m][i] = tune_cuda_pair_bits(p[m][2 * k + i / 2][i % 2 * 2],
                                              p[m][2 * k + i / 2][i % 2 * 2 + 1]);
        UNROLL for (int n = 0; n < D / 16; n++) {
            unsigned four[4];
            ptx_ldmatrix_transposed(four, y + 16 * k * PITCH + 16 * n);
            const unsigned low[2] = {four[0], four[1]}, high[2] = {four[2], four[3]};
            UNROLL for (int m = 0; m < MT; m++) {
                ptx_mma_bf16(o[m][2 * n], x[m], low);
                ptx_mma_bf16(o[m][2 * n + 1], x[m], high);
            }
        }
    }
}

#endif
