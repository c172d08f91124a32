/* attention_backward.cu - the gradients of attention. The probabilities are computed from lse.
 *     P = exp(scale Q K^T - lse)      dP = dO V^T      dS = P (dP - sum(dO O))
 *     dQ = scale dS K                 dK = scale dS^T Q              dV = P^T dO
 * One kernel finds the sums of each query. One has blocks of keys and visits the queries that see
 * them, head after head of the group: dK and dV. One has blocks of queries and visits keys: dQ. So
 * each number has one block that sums it, in one order. The last two are the same code: rows X1, X2
 * and columns Y1, Y2 are K, V and Q, dO, or Q, dO and K, V. S = X1 Y1^T, dP = X2 Y2^T; the results
 * are dS Y1 and P Y2.
 *
 * Source: Dao 2023 (FlashAttention-2), algorithm 2. Here dQ has a pass of its own, not atomics. */
#include "devices/cuda/attention_tiles.h"

#define LOG2_E 1.4426950408889634f

/* ---- sums of the queries ---- */

enum { SUM_THREADS = 256, SUM_LANES = 8 };

/* sums of each query: lse in `unit`s, and the sum of dout out. Queries after the last have 0. Eight
 * lanes for each query and head; W numbers at once. */
template <class T, int W>
__global__ void __launch_bounds__(SUM_THREADS)
    query_sums(const struct tune_cuda_attention a, float unit)
{
    typedef tune_cuda_pack<T, W> pack;
    int64_t i = (static_cast<int64_t>(blockIdx.x) * SUM_THREADS + threadIdx.x) / SUM_LANES;
    int stride = tune_cuda_sums_stride(a.T), lane = static_cast<int>(threadIdx.x) % SUM_LANES;
    int h = static_cast<int>(i % a.H), j = static_cast<int>(i / a.H % stride);
    int64_t b = i / a.H / stride;
    if (b >= a.B)
        return; /* whole warps: stride is a multiple of 64 */
    float sum = 0;
    if (j < a.T) {
        const T *x = tune_cuda_head<T>(a.dout, static_cast<int>(b), h, a.D) + j * a.dout.position;
        const T *y = tune_cuda_head<T>(a.out, static_cast<int>(b), h, a.D) + j * a.out.position;
        for (int d = lane * W; d < a.D; d += SUM_LANES * W) {
            pack p = *reinterpret_cast<const pack *>(x + d);
            pack o = *reinterpret_cast<const pack *>(y + d);
            UNROLL for (int c = 0; c < W; c++)
                sum += tune_cuda_load(p.v[c]) * tune_cuda_load(o.v[c]);
        }
    }
    for (int by = SUM_LANES / 2; by > 0; by /= 2)
        sum += __shfl_xor_sync(0xffffffff, sum, by);
    if (lane == 0) {
        float lse = j < a.T ? a.lse[(b * a.T + j) * a.H + h] * unit : 0.0f;
        a.sums[(b * a.H + h) * stride + j] = make_float2(lse, sum);
    }
}

template <class T>
static void launch_sums(const struct tune_cuda_attention &a, float unit, cudaStream_t stream)
{
    int64_t lanes = static_cast<int64_t>(a.B) * a.H * tune_cuda_sums_stride(a.T) * SUM_LANES;
    unsigned blocks = static_cast<unsigned>(tune_cuda_quotient(lanes, SUM_THREADS));
    if (a.wide)
        LAUNCH((query_sums<T, 16 / sizeof(T)>), blocks, SUM_THREADS, 0, stream, a, unit);
    else
        LAUNCH((query_sums<T, 1>), blocks, SUM_THREADS, 0, stream, a, unit);
}

/* ---- gradients ---- */

/* Of a block of rows: dk, dv, both; or dq. */
enum { DK = 1, DV = 2, DQ = 4 };

/* The sizes of a block: WARPS warps of 16 MT rows, tiles of BN columns. */
template <int WHAT_, int D_, int MT_, int BN_> struct gradient_sizes {
    static constexpr int WHAT = WHAT_, D = D_, MT = MT_, BN = BN_, WARPS = 4;
    static constexpr int BM = 16 * MT * WARPS, THREADS = 32 * WARPS;
    static constexpr bool KEYS = WHAT != DQ, HAS_DS = WHAT != DV;
    static constexpr int PITCH = tune_cuda_tile<tune_cuda_bf16, D>::PITCH;
    static constexpr int STAGE = 2 * BN * PITCH; /* Y1 and Y2 of a tile; two stages */
    static constexpr int SHARED_BYTES = ((HAS_DS ? 2 : 1) * BM * PITCH + 2 * STAGE) * 2;
    static_assert(BM * 8 <= STAGE * 2, "the rows' sights fit where the second stage comes later");
    static_assert(SHARED_BYTES <= TUNE_CUDA_SHARED, "the tiles fit");
};

/* What a thread keeps of its rows: row 16m + g + 8 half of the warp. */
template <int MT> struct gradient_rows {
    struct tune_cuda_sight sight[MT][2];
    float2 sums[MT][2]; /* rows are queries */
};

/* Turn the products s into P. columns: the sums of the tile's queries, or NULL: rows are queries.
 * column: of the thread's first score. masked: some rows do not see all columns. */
template <class S>
__device__ __forceinline__ void probabilities(float (&s)[S::MT][S::BN / 8][4],
                                              const gradient_rows<S::MT> &r, const float4 *columns,
                                              float scale, int column, bool masked)
{
    UNROLL for (int n = 0; n < S::BN / 8; n++) {
        float4 two = S::KEYS ? columns[4 * n] : make_float4(0, 0, 0, 0);
        UNROLL for (int m = 0; m < S::MT; m++)
            UNROLL for (int i = 0; i < 4; i++) {
                struct tune_cuda_sight sight = r.sight[m][i / 2];
                float lse = !S::KEYS ? r.sums[m][i / 2].x : i % 2 ? two.z : two.x;
                float p = ptx_exp2(s[m][n][i] * scale - lse);
                bool seen = static_cast<unsigned>(column + 8 * n + i % 2 - sight.from) <
                            static_cast<unsigned>(sight.to - sight.from);
                s[m][n][i] = masked && !seen ? 0.0f : p;
            }
    }
}

/* Turn dP in ds into dS. */
template <class S>
__device__ __forceinline__ void score_gradients(float (&ds)[S::MT][S::BN / 8][4],
                                                const float (&p)[S::MT][S::BN / 8][4],
                                                const gradient_rows<S::MT> &r,
                                                const float4 *columns)
{
    UNROLL for (int n = 0; n < S::BN / 8; n++) {
        float4 two = S::KEYS ? columns[4 * n] : make_float4(0, 0, 0, 0);
        UNROLL for (int m = 0; m < S::MT; m++)
            UNROLL for (int i = 0; i < 4; i++) {
                float sum = !S::KEYS ? r.sums[m][i / 2].y : i % 2 ? two.w : two.y;
                ds[m][n][i] = p[m][n][i] * (ds[m][n][i] - sum);
            }
    }
}

/* Write factor f to the rows of head h. row: the warp's first. */
template <class S>
__device__ __forceinline__ void write_gradient(const struct tune_cuda_attention &a,
                                               const struct tune_cuda_heads &to,
                                               const float (&f)[S::MT][S::D / 8][4], float factor,
                                               int row)
{
    int lane = static_cast<int>(threadIdx.x) % 32;
    tune_cuda_bf16 *head = tune_cuda_head<tune_cuda_bf16>(to, static_cast<int>(blockIdx.z),
                                                          static_cast<int>(blockIdx.y), a.D);
    UNROLL for (int m = 0; m < S::MT; m++)
        UNROLL for (int half = 0; half < 2; half++) {
            int i = row + 16 * m + lane / 4 + 8 * half;
            UNROLL for (int n = 0; n < S::D / 8; n++)
                if (i < a.T)
                    tune_cuda_store_pair(head + i * to.position, 8 * n + lane % 4 * 2,
                                         f[m][n][2 * half] * factor,
                                         f[m][n][2 * half + 1] * factor, a.D, a.wide);
        }
}

/* Blocks: (tile of rows, key/value head or query head, row). */
template <class S>
__global__ void __launch_bounds__(S::THREADS) gradients(const struct tune_cuda_attention a)
{
    DYNAMIC_SHARED(tune_cuda_bf16, x1);
    tune_cuda_bf16 *x2 = x1 + S::BM * S::PITCH, *stages = S::HAS_DS ? x2 + S::BM * S::PITCH : x2;
    int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
    int mine = thread / 32 * 16 * S::MT; /* the warp's first row in the block */
    /* the first keys and the last queries have most work, so they come first */
    int row = static_cast<int>(S::KEYS ? blockIdx.x : gridDim.x - 1 - blockIdx.x) * S::BM;
    int b = static_cast<int>(blockIdx.z), h = static_cast<int>(blockIdx.y), group = a.H / a.K;
    int stride = tune_cuda_sums_stride(a.T);

    /* rows after the last repeat its sight; they are zeros and are not written */
    struct tune_cuda_sight *sights =
        reinterpret_cast<struct tune_cuda_sight *>(stages + S::STAGE);
    for (int i = thread; i < S::BM; i += S::THREADS) {
        int j = min(row + i, a.T - 1);
        sights[i] = S::KEYS ? tune_cuda_queries(a, b, j) : tune_cuda_keys(a, b, j);
    }
    __syncthreads();
    struct tune_cuda_sight all = {S::KEYS ? row : sights[0].from, sights[S::BM - 1].to};
    /* the warp sees columns in [from, to); all its rows see those in [full_from, full_to) */
    int from = S::KEYS ? row + mine : sights[mine].from;
    int to = sights[mine + 16 * S::MT - 1].to;
    int full_from = S::KEYS ? from + 16 * S::MT - 1 : sights[mine + 16 * S::MT - 1].from;
    int full_to = S::KEYS ? sights[mine].to : row + mine + 1;
    gradient_rows<S::MT> r;
    UNROLL for (int m = 0; m < S::MT; m++)
        UNROLL for (int half = 0; half < 2; half++) {
            int i = mine + 16 * m + lane / 4 + 8 * half;
            r.sight[m][half] = sights[i];
            if (!S::KEYS)
                r.sums[m][half] = a.sums[(static_cast<int64_t>(b) * a.H + h) * stride +
                                         min(row + i, a.T - 1)];
        }

    auto load_columns = [&](int stage, int head, int at) {
        const struct tune_cuda_heads &y1 = S::KEYS ? a.q : a.k, &y2 = S::KEYS ? a.dout : a.v;
        tune_cuda_bf16 *tile = stages + stage * S::STAGE;
        tune_cuda_load_rows<S::BN, S::D, S::THREADS>(
            tile, tune_cuda_head<tune_cuda_bf16>(y1, b, head, a.D), y1.position, 1, at, a.T, a.D,
            a.wide);
        tune_cuda_load_rows<S::BN, S::D, S::THREADS>(
            tile + S::BN * S::PITCH, tune_cuda_head<tune_cuda_bf16>(y2, b, head, a.D), y2.position,
            1, at, a.T, a.D, a.wide);
    };
    const struct tune_cuda_heads &rows1 = S::KEYS ? a.k : a.q, &rows2 = S::KEYS ? a.v : a.dout;
    tune_cuda_load_rows<S::BM, S::D, S::THREADS>(
        x1, tune_cuda_head<tune_cuda_bf16>(rows1, b, h, a.D), rows1.position, 1, row, a.T, a.D,
        a.wide);
    if (S::HAS_DS)
        tune_cuda_load_rows<S::BM, S::D, S::THREADS>(
            x2, tune_cuda_head<tune_cuda_bf16>(rows2, b, h, a.D), rows2.position, 1, row, a.T, a.D,
            a.wide);

    float o1[S::MT][S::D / 8][4], o2[S::MT][S::D / 8][4];
    float s[S::MT][S::BN / 8][4], ds[S::MT][S::BN / 8][4];
    unsigned none[S::MT][1][4];
    if (S::HAS_DS)
        tune_cuda_clear(o1);
    if (S::WHAT & DV)
        tune_cuda_clear(o2);
    int head = S::KEYS ? h * group : h / group, end = S::KEYS ? head + group : head + 1;
    load_columns(0, head, all.from);
    ptx_copy_commit();
    for (int at = all.from, stage = 0; head < end; stage ^= 1) {
        ptx_copy_wait<0>();
        __syncthreads(); /* the tile is there; all warps have used the other stage */
        int next = at + S::BN < all.to ? at + S::BN : all.from;
        int next_head = at + S::BN < all.to ? head : head + 1;
        if (next_head < end)
            load_columns(stage ^ 1, next_head, next);
        ptx_copy_commit();
        if (at < to && at + S::BN > from) {
            const tune_cuda_bf16 *y1 = stages + stage * S::STAGE, *y2 = y1 + S::BN * S::PITCH;
            const float4 *columns = reinterpret_cast<const float4 *>(
                a.sums + (static_cast<int64_t>(b) * a.H + head) * stride + at + lane % 4 * 2);
            tune_cuda_scores<S::D, S::MT, S::BN, false>(s, none, x1 + mine * S::PITCH, y1);
            probabilities<S>(s, r, columns, a.scale * LOG2_E, at + lane % 4 * 2,
                             at < full_from || at + S::BN > full_to);
            if (S::WHAT & DV)
                tune_cuda_add_product<S::D, S::MT, S::BN>(o2, s, y2);
            if (S::HAS_DS) {
                tune_cuda_scores<S::D, S::MT, S::BN, false>(ds, none, x2 + mine * S::PITCH, y2);
                score_gradients<S>(ds, s, r, columns);
                tune_cuda_add_product<S::D, S::MT, S::BN>(o1, ds, y1);
            }
        }
        at = next;
        head = next_head;
    }
    if (S::HAS_DS)
        write_gradient<S>(a, S::KEYS ? a.dk : a.dq, o1, a.scale, row + mine);
    if (S::WHAT & DV)
        write_gradient<S>(a, a.dv, o2, 1, row + mine);
}

template <class S>
static void launch_sizes(const struct tune_cuda_attention &a, cudaStream_t stream)
{
    dim3 grid(static_cast<unsigned>(tune_cuda_quotient(a.T, S::BM)),
              static_cast<unsigned>(S::KEYS ? a.K : a.H), static_cast<unsigned>(a.B));
    TUNE_CUDA_LAUNCH((gradients<S>), grid, S::THREADS, S::SHARED_BYTES, stream, a);
}

/* The sums of dk and dv of wide heads do not fit the registers together. */
template <int D> static void launch(const struct tune_cuda_attention &a, cudaStream_t stream)
{
    if constexpr (D <= 128) {
        constexpr int MT = D <= 32 ? 2 : 1, BN = D <= 32 ? 32 : D <= 96 ? 64 : 32;
        constexpr int QUERY_MT = D <= 96 ? 2 : 1, QUERY_BN = 32;
        launch_sizes<gradient_sizes<DK | DV, D, MT, BN>>(a, stream);
        launch_sizes<gradient_sizes<DQ, D, QUERY_MT, QUERY_BN>>(a, stream);
    } else {
        launch_sizes<gradient_sizes<DK, D, 1, 16>>(a, stream);
        launch_sizes<gradient_sizes<DV, D, 1, 16>>(a, stream);
        launch_sizes<gradient_sizes<DQ, D, 1, 16>>(a, stream);
    }
}

extern "C" int tune_cuda_attention_backward(
    struct tune_device *dev, struct tune_tensor *dq, struct tune_tensor *dk, struct tune_tensor *dv,
    const struct tune_tensor *dout, const struct tune_tensor *q, const struct tune_tensor *k,
    const struct tune_tensor *v, const struct tune_tensor *out, const struct tune_tensor *lse,
    const struct tune_tensor *starts, struct tune_attention params)
{
    struct tune_cuda_attention a = tune_cuda_attention_of(out, lse, q, k, v, starts, params);
    cudaStream_t stream = tune_cuda_of(dev)->stream;
    bool narrow = q->dtype == TUNE_BF16;
    a.dout = tune_cuda_heads_of_rows(dout, a.T);
    a.dq = tune_cuda_heads_of(dq);
    a.dk = tune_cuda_heads_of(dk);
    a.dv = tune_cuda_heads_of(dv);
    const struct tune_cuda_heads *more[] = {&a.dout, &a.dq, &a.dk, &a.dv};
    for (const struct tune_cuda_heads *x : more)
        a.wide = a.wide && tune_cuda_wide_heads(*x, a.D, narrow);
    if (tune_cuda_attention_fits(a) < 0)
        return -1;
    if (a.B == 0 || a.T == 0)
        return 0;
    a.sums = reinterpret_cast<float2 *>(tune_cuda_scratch(
        dev, static_cast<int64_t>(a.B) * a.H * tune_cuda_sums_stride(a.T) * 2));
    if (!a.sums)
        return -1;
    if (narrow) {
        launch_sums<tune_cuda_bf16>(a, LOG2_E, stream);
        tune_cuda_by_width(a.D, [&](auto w) { launch<decltype(w)::value>(a, stream); });
    } else {
        launch_sums<float>(a, 1, stream);
        tune_cuda_exact_backward(a, stream);
    }
    return tune_cuda_queued(dev);
}
