/* attention_exact.cu - attention in float32, forward and backward. The algorithms are those of
 * attention_forward.cu and attention_backward.cu; products are sums of float32 products, without
 * tensor cores. Thread (ty, tx) of 16 x 16 has the rows ty + 16 i and the columns tx + 16 j. */
#include "devices/cuda/attention.h"

enum { THREADS = 256 };

/* The widths with a kernel; fewer than in bfloat16. */
#define EXACT_WIDTHS(V) V(16) V(64) V(128) V(256)

/* R rows, tiles of C columns, heads of D numbers. */
template <int D_, int R_, int C_> struct exact_sizes {
    static constexpr int D = D_, R = R_, C = C_, RI = R / 16, CI = C / 16, DI = D / 16;
    static constexpr int PITCH = tune_cuda_tile<float, D>::PITCH, SCORES = C + 1;
};

template <int R, int N> __device__ __forceinline__ void exact_clear(float (&o)[R][N])
{
    UNROLL for (int i = 0; i < R; i++)
        UNROLL for (int j = 0; j < N; j++)
            o[i][j] = 0;
}

/* s = x y^T for the thread's rows and columns. */
template <class S>
__device__ __forceinline__ void exact_scores(float (&s)[S::RI][S::CI], const float *x,
                                             const float *y, int ty, int tx)
{
    typedef tune_cuda_pack<float, 4> pack;
    exact_clear(s);
    for (int d = 0; d < S::D; d += 4) {
        pack a[S::RI], b[S::CI];
        UNROLL for (int i = 0; i < S::RI; i++)
            a[i] = *reinterpret_cast<const pack *>(x + (ty + 16 * i) * S::PITCH + d);
        UNROLL for (int j = 0; j < S::CI; j++)
            b[j] = *reinterpret_cast<const pack *>(y + (tx + 16 * j) * S::PITCH + d);
        UNROLL for (int i = 0; i < S::RI; i++)
            UNROLL for (int j = 0; j < S::CI; j++)
                UNROLL for (int c = 0; c < 4; c++)
                    s[i][j] += a[i].v[c] * b[j].v[c];
    }
}

/* Write the thread's scores to shared memory. The same half of a warp reads them. */
template <class S>
__device__ __forceinline__ void keep_scores(float *p, const float (&s)[S::RI][S::CI], int ty,
                                            int tx)
{
    UNROLL for (int i = 0; i < S::RI; i++)
        UNROLL for (int j = 0; j < S::CI; j++)
            p[(ty + 16 * i) * S::SCORES + tx + 16 * j] = s[i][j];
}

/* o += p y, with p [R, C] and y [C, D]. */
template <class S>
__device__ __forceinline__ void exact_add_product(float (&o)[S::RI][S::DI], const float *p,
                                                  const float *y, int ty, int tx)
{
    for (int c = 0; c < S::C; c++) {
        float a[S::RI];
        UNROLL for (int i = 0; i < S::RI; i++)
            a[i] = p[(ty + 16 * i) * S::SCORES + c];
        UNROLL for (int d = 0; d < S::DI; d++) {
            float b = y[c * S::PITCH + tx + 16 * d];
            UNROLL for (int i = 0; i < S::RI; i++)
                o[i][d] += a[i] * b;
        }
    }
}

__device__ __forceinline__ bool is_seen(const struct tune_cuda_sight &sight, int column)
{
    return column >= sight.from && column < sight.to;
}

/* ---- forward ---- */

template <class S> struct exact_row_state {
    float largest[S::RI], sum[S::RI]; /* sum: of the row */
    struct tune_cuda_sight sight[S::RI];
};

/* Turn the products s into exp(scale s - largest), and scale what was summed before. */
template <class S>
__device__ __forceinline__ void exact_softmax(float (&s)[S::RI][S::CI], float (&o)[S::RI][S::DI],
                                              exact_row_state<S> &r, float scale, int column)
{
    UNROLL for (int i = 0; i < S::RI; i++) {
        float before = r.largest[i], largest = before, sum = 0;
        UNROLL for (int j = 0; j < S::CI; j++) {
            s[i][j] = is_seen(r.sight[i], column + 16 * j) ? s[i][j] * scale : -INFINITY;
            largest = fmaxf(largest, s[i][j]);
        }
        for (int by = 8; by > 0; by /= 2)
            largest = fmaxf(largest, __shfl_xor_sync(0xffffffff, largest, by));
        float base = largest == -INFINITY ? 0.0f : largest, factor = expf(before - base);
        UNROLL for (int j = 0; j < S::CI; j++) {
            s[i][j] = expf(s[i][j] - base);
            sum += s[i][j];
        }
        for (int by = 8; by > 0; by /= 2)
            sum += __shfl_xor_sync(0xffffffff, sum, by);
        r.largest[i] = largest;
        r.sum[i] = r.sum[i] * factor + sum;
        UNROLL for (int d = 0; d < S::DI; d++)
            o[i][d] *= factor;
    }
}

template <class S>
__device__ __forceinline__ void exact_write_rows(const struct tune_cuda_attention &a,
                                                 const float (&o)[S::RI][S::DI],
                                                 const exact_row_state<S> &r, int row, int tx,
                                                 int piece)
{
    int b = static_cast<int>(blockIdx.z);
    UNROLL for (int i = 0; i < S::RI; i++) {
        int at = row + 16 * i, j = at / a.per;
        int h = static_cast<int>(blockIdx.y) * a.per + at % a.per;
        if (j >= a.T)
            continue;
        float factor = a.pieces ? 1.0f : r.sum[i] == 0 ? 0.0f : 1 / r.sum[i];
        float *to = a.pieces ? tune_cuda_found(a, b, j, h, piece)
                             : tune_cuda_head<float>(a.out, b, h, a.D) + j * a.out.position;
        UNROLL for (int d = 0; d < S::DI; d++)
            if (tx + 16 * d < a.D)
                to[tx + 16 * d] = o[i][d] * factor;
        if (tx == 0 && a.pieces) {
            to[a.D] = r.largest[i];
            to[a.D + 1] = r.sum[i];
        }
        if (tx == 0 && !a.pieces)
            a.lse[(static_cast<int64_t>(b) * a.T + j) * a.H + h] = r.largest[i] + logf(r.sum[i]);
    }
}

/* Blocks: (tile of rows and piece, group of `per` heads, row). */
template <class S>
__global__ void __launch_bounds__(THREADS, 2) exact_forward(const struct tune_cuda_attention a)
{
    DYNAMIC_SHARED(float, q);
    SHARED(struct tune_cuda_sight, sights, [S::R]);
    float *k = q + S::R * S::PITCH, *v = k + S::C * S::PITCH, *p = v + S::C * S::PITCH;
    int thread = static_cast<int>(threadIdx.x), tx = thread % 16, ty = thread / 16;
    int pieces = a.pieces ? a.pieces : 1, piece = static_cast<int>(blockIdx.x) % pieces;
    int row = (static_cast<int>(gridDim.x) - 1 - static_cast<int>(blockIdx.x)) / pieces * S::R;
    int b = static_cast<int>(blockIdx.z), h = static_cast<int>(blockIdx.y) * a.per;
    const float *queries = tune_cuda_head<float>(a.q, b, h, a.D);
    const float *keys = tune_cuda_head<float>(a.k, b, h / (a.H / a.K), a.D);
    const float *values = tune_cuda_head<float>(a.v, b, h / (a.H / a.K), a.D);

    if (thread < S::R)
        sights[thread] = tune_cuda_keys(a, b, min((row + thread) / a.per, a.T - 1));
    __syncthreads();
    struct tune_cuda_sight all = {sights[0].from, sights[S::R - 1].to};
    if (a.pieces)
        all = tune_cuda_piece(all, piece);
    exact_row_state<S> r;
    float s[S::RI][S::CI], o[S::RI][S::DI];
    exact_clear(o);
    UNROLL for (int i = 0; i < S::RI; i++) {
        r.sight[i] = sights[ty + 16 * i];
        r.largest[i] = -INFINITY;
        r.sum[i] = 0;
    }
    if (all.from < all.to)
        tune_cuda_load_rows<S::R, S::D, THREADS>(q, queries, a.q.position, a.per, row, a.T * a.per,
                                                 a.D, a.wide);
    for (int at = all.from; at < all.to; at += S::C) {
        __syncthreads(); /* all threads have used the tiles */
        tune_cuda_load_rows<S::C, S::D, THREADS>(k, keys, a.k.position, 1, at, all.to, a.D, a.wide);
        tune_cuda_load_rows<S::C, S::D, THREADS>(v, values, a.v.position, 1, at, all.to, a.D,
                                                 a.wide);
        ptx_copy_commit();
        ptx_copy_wait<0>();
        __syncthreads();
        exact_scores<S>(s, q, k, ty, tx);
        exact_softmax<S>(s, o, r, a.scale, at + tx);
        keep_scores<S>(p, s, ty, tx);
        __syncwarp();
        exact_add_product<S>(o, p, v, ty, tx);
    }
    exact_write_rows<S>(a, o, r, row + ty, tx, piece);
}

template <class S>
static void launch_forward(const struct tune_cuda_attention &a, cudaStream_t stream)
{
    constexpr int BYTES = ((S::R + 2 * S::C) * S::PITCH + S::R * S::SCORES) * 4;
    static_assert(BYTES + S::R * 8 <= TUNE_CUDA_SHARED, "the tiles fit");
    static_assert(TUNE_CUDA_PIECE % S::C == 0, "a tile has keys of one piece");
    int64_t tiles = tune_cuda_quotient(static_cast<int64_t>(a.T) * a.per, S::R);
    dim3 grid(static_cast<unsigned>(tiles * (a.pieces ? a.pieces : 1)),
              static_cast<unsigned>(a.H / a.per), static_cast<unsigned>(a.B));
    TUNE_CUDA_LAUNCH((exact_forward<S>), grid, THREADS, BYTES, stream, a);
}

template <int D> static void forward(const struct tune_cuda_attention &a, cudaStream_t stream)
{
    constexpr int R = D <= 128 ? 64 : 32, C = D <= 64 ? 64 : D <= 128 ? 32 : 16;
    constexpr int FEW_C = D <= 128 ? 64 : 32;
    if (a.pieces && a.T * a.per <= 16)
        launch_forward<exact_sizes<D, 16, FEW_C>>(a, stream);
    else
        launch_forward<exact_sizes<D, R, C>>(a, stream);
}

void tune_cuda_exact_forward(const struct tune_cuda_attention &a, cudaStream_t stream)
{
#define TRY_WIDTH(W) \
    if (a.D <= W)    \
        return forward<W>(a, stream);
    EXACT_WIDTHS(TRY_WIDTH)
#undef TRY_WIDTH
}

/* ---- backward ---- */

/* KEYS: dk and dv of a block of keys; else dq of a block of queries. Blocks: (rows, head, row). */
template <class S, bool KEYS>
__global__ void __launch_bounds__(THREADS, 1) exact_backward(const struct tune_cuda_attention a)
{
    DYNAMIC_SHARED(float, x1);
    SHARED(struct tune_cuda_sight, sights, [S::R]);
    float *x2 = x1 + S::R * S::PITCH, *y1 = x2 + S::R * S::PITCH, *y2 = y1 + S::C * S::PITCH;
    float *p = y2 + S::C * S::PITCH, *ds = p + S::R * S::SCORES;
    int thread = static_cast<int>(threadIdx.x), tx = thread % 16, ty = thread / 16;
    int row = static_cast<int>(KEYS ? blockIdx.x : gridDim.x - 1 - blockIdx.x) * S::R;
    int b = static_cast<int>(blockIdx.z), h = static_cast<int>(blockIdx.y), group = a.H / a.K;
    const struct tune_cuda_heads &rows1 = KEYS ? a.k : a.q, &rows2 = KEYS ? a.v : a.dout;
    const struct tune_cuda_heads &columns1 = KEYS ? a.q : a.k, &columns2 = KEYS ? a.dout : a.v;

    if (thread < S::R) {
        int i = min(row + thread, a.T - 1);
        sights[thread] = KEYS ? tune_cuda_queries(a, b, i) : tune_cuda_keys(a, b, i);
    }
    __syncthreads();
    int from = sights[0].from, to = sights[S::R - 1].to;
    float s[S::RI][S::CI], dp[S::RI][S::CI], o1[S::RI][S::DI], o2[S::RI][S::DI];
    exact_clear(o1);
    exact_clear(o2);
    tune_cuda_load_rows<S::R, S::D, THREADS>(x1, tune_cuda_head<float>(rows1, b, h, a.D),
                                             rows1.position, 1, row, a.T, a.D, a.wide);
    tune_cuda_load_rows<S::R, S::D, THREADS>(x2, tune_cuda_head<float>(rows2, b, h, a.D),
                                             rows2.position, 1, row, a.T, a.D, a.wide);
    for (int g = 0; g < (KEYS ? group : 1); g++) {
        int other = KEYS ? h * group + g : h / group;
        const float2 *sums = a.sums + (static_cast<int64_t>(b) * a.H + (KEYS ? other : h)) *
                                          tune_cuda_sums_stride(a.T);
        for (int at = from; at < to; at += S::C) {
            __syncthreads(); /* all threads have used the tiles */
            tune_cuda_load_rows<S::C, S::D, THREADS>(y1, tune_cuda_head<float>(columns1, b, other,
                                                                               a.D),
                                                     columns1.position, 1, at, a.T, a.D, a.wide);
            tune_cuda_load_rows<S::C, S::D, THREADS>(y2, tune_cuda_head<float>(columns2, b, other,
                                                                               a.D),
                                                     columns2.position, 1, at, a.T, a.D, a.wide);
            ptx_copy_commit();
            ptx_copy_wait<0>();
            __syncthreads();
            exact_scores<S>(s, x1, y1, ty, tx);
            exact_scores<S>(dp, x2, y2, ty, tx);
            UNROLL for (int i = 0; i < S::RI; i++)
                UNROLL for (int j = 0; j < S::CI; j++) {
                    int r = row + ty + 16 * i, column = at + tx + 16 * j;
                    bool seen = is_seen(sights[ty + 16 * i], column) && r < a.T;
                    float2 sum = seen ? sums[KEYS ? column : r] : make_float2(0, 0);
                    s[i][j] = seen ? expf(s[i][j] * a.scale - sum.x) : 0.0f;
                    dp[i][j] = seen ? s[i][j] * (dp[i][j] - sum.y) : 0.0f;
                }
            keep_scores<S>(p, s, ty, tx);
            keep_scores<S>(ds, dp, ty, tx);
            __syncwarp();
            if (KEYS)
                exact_add_product<S>(o2, p, y2, ty, tx);
            exact_add_product<S>(o1, ds, y1, ty, tx);
        }
    }
    for (int i = 0; i < S::RI; i++)
        if (row + ty + 16 * i < a.T)
            UNROLL for (int d = 0; d < S::DI; d++)
                if (tx + 16 * d < a.D) {
                    const struct tune_cuda_heads &to1 = KEYS ? a.dk : a.dq;
                    int64_t r = row + ty + 16 * i, column = tx + 16 * d;
                    tune_cuda_head<float>(to1, b, h, a.D)[r * to1.position + column] =
                        o1[i][d] * a.scale;
                    if (KEYS)
                        tune_cuda_head<float>(a.dv, b, h, a.D)[r * a.dv.position + column] =
                            o2[i][d];
                }
}

template <int D> static void backward(const struct tune_cuda_attention &a, cudaStream_t stream)
{
    constexpr int R = D <= 64 ? 64 : D <= 128 ? 32 : 16, C = D <= 128 ? 32 : 16;
    typedef exact_sizes<D, R, C> S;
    constexpr int BYTES = ((R + C) * 2 * S::PITCH + 2 * R * S::SCORES) * 4;
    static_assert(BYTES + R * 8 <= TUNE_CUDA_SHARED, "the tiles fit");
    unsigned tiles = static_cast<unsigned>(tune_cuda_quotient(a.T, R));
    dim3 keys(tiles, static_cast<unsigned>(a.K), static_cast<unsigned>(a.B));
    dim3 queries(tiles, static_cast<unsigned>(a.H), static_cast<unsigned>(a.B));
    TUNE_CUDA_LAUNCH((exact_backward<S, true>), keys, THREADS, BYTES, stream, a);
    TUNE_CUDA_LAUNCH((exact_backward<S, false>), queries, THREADS, BYTES, stream, a);
}

void tune_cuda_exact_backward(const struct tune_cuda_attention &a, cudaStream_t stream)
{
#define TRY_WIDTH(W) \
    if (a.D <= W)    \
        return backward<W>(a, stream);
    EXACT_WIDTHS(TRY_WIDTH)
#undef TRY_WIDTH
}
