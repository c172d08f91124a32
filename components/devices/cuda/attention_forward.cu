/* attention_forward.cu - attention in bfloat16. A block has some queries of one head; it visits the
 * keys that they see, tile by tile, and keeps the largest score and the sum of each query so far.
 * For each tile of keys:
 *     S = scale Q K^T        the values of the tile are on their way
 *     P = exp2(S - largest)  the next keys are on their way
 *     O = O exp2(largest before - largest) + P V
 * Scores and sums stay in registers. Scores are in units of ln 2.
 *
 * Source: Dao 2023 (FlashAttention-2), algorithm 1. */
#include "devices/cuda/attention_tiles.h"

#define LOG2_E 1.4426950408889634f
#define LN_2 0.6931471805599453f

/* The sizes of a block: WARPS warps of 16 MT queries, tiles of BN keys. KEPT: the queries stay in
 * registers. */
template <int D_, int MT_, int BN_, int WARPS_> struct block_sizes {
    static constexpr int D = D_, MT = MT_, BN = BN_, WARPS = WARPS_;
    static constexpr int BM = 16 * MT * WARPS, THREADS = 32 * WARPS;
    static constexpr bool KEPT = D <= 64;
    static constexpr int PITCH = tune_cuda_tile<tune_cuda_bf16, D>::PITCH;
    static constexpr int SHARED_BYTES = (BM + 2 * BN) * PITCH * 2;
    static_assert(BM * 8 <= BN * PITCH * 2, "the rows' sights fit where the values come later");
    static_assert(TUNE_CUDA_PIECE % BN == 0, "a tile has keys of one piece");
    static_assert(SHARED_BYTES <= TUNE_CUDA_SHARED, "the tiles fit");
};

/* What a thread keeps of its rows: row 16m + g + 8 half of the warp. */
template <int MT> struct row_state {
    float largest[MT][2], sum[MT][2]; /* sum: over this thread's columns */
    struct tune_cuda_sight sight[MT][2];

    /* Whether any row of the warp sees any of the columns; whether any does not see all. */
    __device__ __forceinline__ bool any_sees(int from, int to) const
    {
        bool yes = false;
        UNROLL for (int i = 0; i < 2 * MT; i++)
            yes = yes || (from < sight[i / 2][i % 2].to && to > sight[i / 2][i % 2].from);
        return __any_sync(0xffffffff, yes);
    }
    __device__ __forceinline__ bool any_lacks(int from, int to) const
    {
        bool yes = false;
        UNROLL for (int i = 0; i < 2 * MT; i++)
            yes = yes || from < sight[i / 2][i % 2].from || to > sight[i / 2][i % 2].to;
        return __any_sync(0xffffffff, yes);
    }
};

__device__ __forceinline__ float quad_max(float x)
{
    x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
    return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}

__device__ __forceinline__ float quad_sum(float x)
{
    x += __shfl_xor_sync(0xffffffff, x, 1);
    return x + __shfl_xor_sync(0xffffffff, x, 2);
}

/* Turn the products s into exp2(scale s - largest), and scale what was summed before. column: of
 * the thread's first score. masked: some rows do not see all columns. */
template <class S>
__device__ __forceinline__ void softmax(float (&s)[S::MT][S::BN / 8][4],
                                        float (&o)[S::MT][S::D / 8][4], row_state<S::MT> &r,
                                        float scale, int column, bool masked)
{
    UNROLL for (int m = 0; m < S::MT; m++)
        UNROLL for (int half = 0; half < 2; half++) {
            float before = r.largest[m][half], largest = before, sum = 0;
            int from = r.sight[m][half].from;
            unsigned length = static_cast<unsigned>(r.sight[m][half].to - from);
            UNROLL for (int n = 0; n < S::BN / 8; n++)
                UNROLL for (int i = 0; i < 2; i++) {
                    float x = s[m][n][2 * half + i] * scale;
                    if (masked && static_cast<unsigned>(column + 8 * n + i - from) >= length)
                        x = -INFINITY;
                    s[m][n][2 * half + i] = x;
                    largest = fmaxf(largest, x);
                }
            largest = quad_max(largest);
            float base = largest == -INFINITY ? 0.0f : largest, factor = ptx_exp2(before - base);
            UNROLL for (int n = 0; n < S::BN / 8; n++)
                UNROLL for (int i = 0; i < 2; i++) {
                    float p = ptx_exp2(s[m][n][2 * half + i] - base);
                    s[m][n][2 * half + i] = p;
                    sum += p;
                }
            r.largest[m][half] = largest;
            r.sum[m][half] = r.sum[m][half] * factor + sum;
            UNROLL for (int n = 0; n < S::D / 8; n++)
                UNROLL for (int i = 0; i < 2; i++)
                    o[m][n][2 * half + i] *= factor;
        }
}

/* Write the rows' results: the output, or those of a piece of the keys. row: the warp's first. */
template <class S>
__device__ __forceinline__ void write_rows(const struct tune_cuda_attention &a,
                                           float (&o)[S::MT][S::D / 8][4], row_state<S::MT> &r,
                                           int row, int piece)
{
    int lane = static_cast<int>(threadIdx.x) % 32, b = static_cast<int>(blockIdx.z);
    UNROLL for (int m = 0; m < S::MT; m++)
        UNROLL for (int half = 0; half < 2; half++) {
            int i = row + 16 * m + lane / 4 + 8 * half, column = lane % 4 * 2;
            int j = i / a.per, h = static_cast<int>(blockIdx.y) * a.per + i % a.per;
            float sum = quad_sum(r.sum[m][half]), largest = r.largest[m][half];
            if (j >= a.T)
                continue;
            float inverse = sum == 0 ? 0.0f : 1 / sum; /* NaN stays */
            if (a.pieces) {
                float *found = tune_cuda_found(a, b, j, h, piece);
                UNROLL for (int n = 0; n < S::D / 8; n++)
                    tune_cuda_store_pair(found, column + 8 * n, o[m][n][2 * half],
                                         o[m][n][2 * half + 1], a.D, false);
                if (lane % 4 == 0) {
                    found[a.D] = largest * LN_2;
                    found[a.D + 1] = sum;
                }
                continue;
            }
            tune_cuda_bf16 *out = tune_cuda_head<tune_cuda_bf16>(a.out, b, h, a.D) +
                                  j * a.out.position;
            UNROLL for (int n = 0; n < S::D / 8; n++)
                tune_cuda_store_pair(out, column + 8 * n, o[m][n][2 * half] * inverse,
                                     o[m][n][2 * half + 1] * inverse, a.D, a.wide);
            if (lane % 4 == 0)
                a.lse[(static_cast<int64_t>(b) * a.T + j) * a.H + h] =
                    (largest + log2f(sum)) * LN_2;
        }
}

/* Blocks: (tile of rows and piece, group of `per` heads, row). The last tiles see most keys, so
 * they come first. */
template <class S>
__global__ void __launch_bounds__(S::THREADS, 2) forward(const struct tune_cuda_attention a)
{
    DYNAMIC_SHARED(tune_cuda_bf16, q);
    tune_cuda_bf16 *k = q + S::BM * S::PITCH, *v = k + S::BN * S::PITCH;
    int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
    int mine = thread / 32 * 16 * S::MT; /* the warp's first row in the block */
    int pieces = a.pieces ? a.pieces : 1, piece = static_cast<int>(blockIdx.x) % pieces;
    int row = (static_cast<int>(gridDim.x) - 1 - static_cast<int>(blockIdx.x)) / pieces * S::BM;
    int b = static_cast<int>(blockIdx.z), h = static_cast<int>(blockIdx.y) * a.per;
    const tune_cuda_bf16 *queries = tune_cuda_head<tune_cuda_bf16>(a.q, b, h, a.D);
    const tune_cuda_bf16 *keys = tune_cuda_head<tune_cuda_bf16>(a.k, b, h / (a.H / a.K), a.D);
    const tune_cuda_bf16 *values = tune_cuda_head<tune_cuda_bf16>(a.v, b, h / (a.H / a.K), a.D);

    /* rows after the last repeat its sight, and have queries of zeros */
    struct tune_cuda_sight *sights = reinterpret_cast<struct tune_cuda_sight *>(v), all;
    row_state<S::MT> r;
    for (int i = thread; i < S::BM; i += S::THREADS)
        sights[i] = tune_cuda_keys(a, b, min((row + i) / a.per, a.T - 1));
    __syncthreads();
    all = {sights[0].from, sights[S::BM - 1].to};
    if (a.pieces)
        all = tune_cuda_piece(all, piece);
    UNROLL for (int m = 0; m < S::MT; m++)
        UNROLL for (int half = 0; half < 2; half++) {
            r.sight[m][half] = sights[mine + 16 * m + lane / 4 + 8 * half];
            r.largest[m][half] = -INFINITY;
            r.sum[m][half] = 0;
        }

    float o[S::MT][S::D / 8][4], s[S::MT][S::BN / 8][4];
    unsigned kept[S::MT][S::KEPT ? S::D / 16 : 1][4];
    tune_cuda_clear(o);
    if (all.from < all.to) {
        tune_cuda_load_rows<S::BM, S::D, S::THREADS>(q, queries, a.q.position, a.per, row,
                                                     a.T * a.per, a.D, a.wide);
        tune_cuda_load_rows<S::BN, S::D, S::THREADS>(k, keys, a.k.position, 1, all.from, all.to,
                                                     a.D, a.wide);
        ptx_copy_commit();
    }
    if (S::KEPT && all.from < all.to) {
        ptx_copy_wait<0>();
        __syncthreads();
        UNROLL for (int m = 0; m < S::MT; m++)
            UNROLL for (int d = 0; d < (S::KEPT ? S::D / 16 : 1); d++)
                tune_cuda_left<S::D, S::MT>(kept[m][d], q + mine * S::PITCH, m, d);
    }
    for (int at = all.from; at < all.to; at += S::BN) {
        ptx_copy_wait<0>();
        __syncthreads(); /* the keys are there; all warps have used the values */
        tune_cuda_load_rows<S::BN, S::D, S::THREADS>(v, values, a.v.position, 1, at, all.to, a.D,
                                                     a.wide);
        ptx_copy_commit();
        bool sees = r.any_sees(at, at + S::BN);
        if (sees)
            tune_cuda_scores<S::D, S::MT, S::BN, S::KEPT>(s, kept, q + mine * S::PITCH, k);
        ptx_copy_wait<0>();
        __syncthreads(); /* the values are there; all warps have used the keys */
        if (at + S::BN < all.to)
            tune_cuda_load_rows<S::BN, S::D, S::THREADS>(k, keys, a.k.position, 1, at + S::BN,
                                                         all.to, a.D, a.wide);
        ptx_copy_commit();
        if (sees) {
            softmax<S>(s, o, r, a.scale * LOG2_E, at + lane % 4 * 2,
                       r.any_lacks(at, at + S::BN));
            tune_cuda_add_product<S::D, S::MT, S::BN>(o, s, v);
        }
    }
    write_rows<S>(a, o, r, row + mine, piece);
}

template <class S>
static void launch_sizes(const struct tune_cuda_attention &a, cudaStream_t stream)
{
    int64_t tiles = tune_cuda_quotient(static_cast<int64_t>(a.T) * a.per, S::BM);
    dim3 grid(static_cast<unsigned>(tiles * (a.pieces ? a.pieces : 1)),
              static_cast<unsigned>(a.H / a.per), static_cast<unsigned>(a.B));
    TUNE_CUDA_LAUNCH((forward<S>), grid, S::THREADS, S::SHARED_BYTES, stream, a);
}

/* One warp has the few queries of a step of generation. */
template <int D> static void launch(const struct tune_cuda_attention &a, cudaStream_t stream)
{
    constexpr int MT = D <= 128 ? 2 : 1, BN = D <= 80 ? 64 : 32, FEW_BN = D <= 64 ? 64 : 32;
    if (a.pieces && a.T * a.per <= 16)
        launch_sizes<block_sizes<D, 1, FEW_BN, 1>>(a, stream);
    else
        launch_sizes<block_sizes<D, MT, BN, 4>>(a, stream);
}

extern "C" int tune_cuda_attention_forward(struct tune_device *dev, struct tune_tensor *out,
                                           struct tune_tensor *lse, const struct tune_tensor *q,
                                           const struct tune_tensor *k, const struct tune_tensor *v,
                                           const struct tune_tensor *starts,
                                           const struct tune_tensor *kv_length,
                                           const struct tune_tensor *q_offset,
                                           struct tune_attention params)
{
    struct tune_cuda_attention a = tune_cuda_attention_of(out, lse, q, k, v, starts, params);
    cudaStream_t stream = tune_cuda_of(dev)->stream;
    bool narrow = q->dtype == TUNE_BF16;
    a.kv_length = tune_cuda_data<const int32_t>(kv_length);
    a.q_offset = tune_cuda_data<const int32_t>(q_offset);
    if (tune_cuda_attention_fits(a) < 0)
        return -1;
    if (a.B == 0 || a.T == 0)
        return 0;
    if (a.T <= TUNE_CUDA_DECODE_QUERIES && tune_cuda_split(dev, &a) < 0)
        return -1;
    if (narrow)
        tune_cuda_by_width(a.D, [&](auto w) { launch<decltype(w)::value>(a, stream); });
    else
        tune_cuda_exact_forward(a, stream);
    if (a.pieces)
        tune_cuda_add_pieces(a, narrow, stream);
    return tune_cuda_queued(dev);
}
