/* decode_attention.cu - attention of a few queries over many keys, as when a model writes token
 * by token. There are too few queries to fill a GPU, so the keys are split into pieces. A block
 * takes a piece, with all query heads of its key/value head; so the cache is read once. Here the
 * pieces are put together, in their order.
 *
 * Pieces are counted from the first key that a block's queries see. So the bits do not depend on
 * the padding before it, on the capacity or on other rows.
 *
 * Source: Dao et al. 2023 (Flash-Decoding). */
#include "devices/cuda/attention.h"

enum { THREADS = 128 };

int tune_cuda_split(struct tune_device *dev, struct tune_cuda_attention *a)
{
    a->found = tune_cuda_scratch(dev, tune_cuda_found_floats(a->B, a->T, a->capacity, a->H, a->D));
    a->per = a->H / a->K;
    a->pieces = static_cast<int>(tune_cuda_pieces(a->capacity));
    return a->found ? 0 : -1;
}

/* A warp for each (row, query, head). Pieces without keys have the sum 0. */
template <class T>
__global__ void __launch_bounds__(THREADS) add_pieces(const struct tune_cuda_attention a)
{
    enum { COLUMNS = TUNE_CUDA_WIDEST / 32 };
    int64_t i = (static_cast<int64_t>(blockIdx.x) * THREADS + threadIdx.x) / 32;
    int lane = static_cast<int>(threadIdx.x) % 32, h = static_cast<int>(i % a.H);
    int64_t row = i / a.H;
    if (row >= static_cast<int64_t>(a.B) * a.T)
        return;
    int b = static_cast<int>(row / a.T), j = static_cast<int>(row % a.T);
    float largest = -INFINITY, sum = 0, o[COLUMNS] = {};
    for (int piece = 0; piece < a.pieces; piece++) {
        const float *found = tune_cuda_found(a, b, j, h, piece);
        if (found[a.D + 1] != 0)
            largest = fmaxf(largest, found[a.D]);
    }
    for (int piece = 0; piece < a.pieces; piece++) {
        const float *found = tune_cuda_found(a, b, j, h, piece);
        if (found[a.D + 1] == 0)
            continue;
        float factor = expf(found[a.D] - largest);
        sum += found[a.D + 1] * factor;
        UNROLL for (int c = 0; c < COLUMNS; c++)
            if (lane + 32 * c < a.D)
                o[c] += found[lane + 32 * c] * factor;
    }
    T *out = tune_cuda_head<T>(a.out, b, h, a.D) + j * a.out.position;
    UNROLL for (int c = 0; c < COLUMNS; c++)
        if (lane + 32 * c < a.D)
            tune_cuda_store(out + lane + 32 * c, sum == 0 ? 0.0f : o[c] / sum);
    if (lane == 0)
        a.lse[row * a.H + h] = largest + logf(sum);
}

void tune_cuda_add_pieces(const struct tune_cuda_attention &a, bool narrow, cudaStream_t stream)
{
    int64_t warps = static_cast<int64_t>(a.B) * a.T * a.H;
    unsigned blocks = static_cast<unsigned>(tune_cuda_quotient(warps, THREADS / 32));
    if (narrow)
        LAUNCH(add_pieces<tune_cuda_bf16>, blocks, THREADS, 0, stream, a);
    else
        LAUNCH(add_pieces<float>, blocks, THREADS, 0, stream, a);
}
