/* attention.h - what the attention kernels share: their arguments, which keys a query sees, tiles
 * of shared memory, and the widths of heads.
 *
 * A block computes some rows against columns, tile by tile. In forward, and for dq, rows are
 * queries and columns are keys. For dk and dv, rows are keys and columns are queries. A row sees
 * the columns [from, to); neither bound decreases from row to row. So a block visits one range of
 * columns. */
#ifndef TUNE_CUDA_ATTENTION_H
#define TUNE_CUDA_ATTENTION_H

#include "core/error.h"
#include "devices/cuda/cuda.h"
#include "devices/cuda/ptx.h"

constexpr int TUNE_CUDA_WIDEST = 256; /* the widest head */

typedef __nv_bfloat16 tune_cuda_bf16;

/* A tensor [B,T,heads,D]: elements from one position to the next, from one row to the next. */
struct tune_cuda_heads {
    void *data;
    int64_t position, outer;
};

/* An attention. A block's rows are pairs (query, head): row i is query i / per, and head i % per of
 * the block's heads. per: 1, or all query heads of a key/value head. */
struct tune_cuda_attention {
    struct tune_cuda_heads q, k, v, out, dout, dq, dk, dv; /* the last four: backward */
    float *lse;
    const int32_t *starts, *kv_length, *q_offset; /* NULL: 0, capacity, 0 */
    int B, T, capacity, H, K, D, window;
    float scale;
    bool wide; /* all heads can be moved by 16 bytes */
    int per;
    int pieces;   /* 0: the keys are not split */
    float *found; /* of each (row, query, head, piece): D numbers, their largest score, their sum */
    float2 *sums; /* backward, of each (row, head, query): lse and sum(dout out) */
};

/* Columns [from, to). */
struct tune_cuda_sight {
    int from, to;
};

/* The keys that query j of row b sees. */
__device__ __forceinline__ struct tune_cuda_sight
tune_cuda_keys(const struct tune_cuda_attention &a, int b, int j)
{
    int at = (a.q_offset ? a.q_offset[b] : 0) + j, end = a.kv_length ? a.kv_length[b] : a.capacity;
    int from = a.starts ? a.starts[static_cast<int64_t>(b) * a.T + j] : 0;
    if (a.window > 0)
        from = max(from, at - a.window + 1);
    end = min(at + 1, min(end, a.capacity));
    return {min(from, end), end};
}

/* The queries that see a key, where keys are the queries' own. They are an interval, because starts
 * never decreases. */
__device__ __forceinline__ struct tune_cuda_sight
tune_cuda_queries(const struct tune_cuda_attention &a, int b, int key)
{
    int low = key, high = a.window > 0 && a.window < a.T - key ? key + a.window : a.T;
    if (a.starts) {
        const int32_t *starts = a.starts + static_cast<int64_t>(b) * a.T;
        for (int end = low; end < high;) { /* the first query whose start is above the key */
            int middle = end + (high - end) / 2;
            if (starts[middle] > key)
                high = middle;
            else
                end = middle + 1;
        }
    }
    return {low, high};
}

/* The first element of head h of row b. */
template <class T>
__device__ __forceinline__ T *tune_cuda_head(const struct tune_cuda_heads &x, int b, int h, int D)
{
    return static_cast<T *>(x.data) + b * x.outer + static_cast<int64_t>(h) * D;
}

/* Rows of a tile lie so far apart that 8 of them, of 16 bytes each, are in different banks. */
template <class T, int D> struct tune_cuda_tile {
    static constexpr int PACK = 16 / static_cast<int>(sizeof(T)), PITCH = D + PACK;
};

/* tune_cuda_load_rows - start to copy rows row .. row+ROWS-1 into a tile: row i is at
 * from + (i / per) position + (i % per) width. Rows from `end` on, and columns from width on,
 * become 0. All threads of the block call it. */
template <int ROWS, int D, int THREADS, class T>
__device__ __forceinline__ void tune_cuda_load_rows(T *tile, const T *from, int64_t position,
                                                    int per, int row, int end, int width, bool wide)
{
    constexpr int PITCH = tune_cuda_tile<T, D>::PITCH, PACK = tune_cuda_tile<T, D>::PACK;
    constexpr int PACKS = D / PACK;
    int thread = static_cast<int>(threadIdx.x);
    if (wide) {
        ROLLED for (int i = thread; i < ROWS * PACKS; i += THREADS) {
            int at = row + i / PACKS, column = i % PACKS * PACK;
            const T *x = from + (at / per) * position + at % per * width + column;
            bool have = at < end && column < width;
            ptx_copy_async(tile + i / PACKS * PITCH + column, have ? x : from, have ? 16 : 0);
        }
        return;
    }
    ROLLED for (int i = thread; i < ROWS * D; i += THREADS) {
        int at = row + i / D, column = i % D;
        const T *x = from + (at / per) * position + at % per * width + column;
        bool have = at < end && column < width;
        tune_cuda_store(tile + i / D * PITCH + column, have ? tune_cuda_load(*x) : 0.0f);
    }
}

/* tune_cuda_store_pair - write two neighbours of a head of D numbers, where the head has them. */
template <class T>
__device__ __forceinline__ void tune_cuda_store_pair(T *head, int column, float x, float y, int D,
                                                     bool wide)
{
    tune_cuda_pack<T, 2> pair;
    tune_cuda_store(&pair.v[0], x);
    tune_cuda_store(&pair.v[1], y);
    if (wide && column < D)
        *reinterpret_cast<tune_cuda_pack<T, 2> *>(head + column) = pair;
    for (int i = 0; i < 2 && !wide; i++)
        if (column + i < D)
            head[column + i] = pair.v[i];
}

/* tune_cuda_piece - the part of a block's columns that is its piece of them. Pieces are counted
 * from the first key that the block sees. */
__device__ __forceinline__ struct tune_cuda_sight
tune_cuda_piece(struct tune_cuda_sight all, int piece)
{
    int n = all.to - all.from, each = (n + TUNE_CUDA_PIECES - 1) / TUNE_CUDA_PIECES;
    each = (each + TUNE_CUDA_PIECE - 1) / TUNE_CUDA_PIECE * TUNE_CUDA_PIECE;
    each = max(each, TUNE_CUDA_PIECE);
    int from = min(all.from + piece * each, all.to);
    return {from, min(from + each, all.to)};
}

/* The address of a result in `found`. */
__device__ __forceinline__ float *tune_cuda_found(const struct tune_cuda_attention &a, int b, int j,
                                                  int h, int piece)
{
    int64_t row = (static_cast<int64_t>(b) * a.T + j) * a.H + h;
    return a.found + (row * a.pieces + piece) * (a.D + 2);
}

/* ---- the host's side ---- */

/* The widths of heads that have a kernel. Others take the next one, with zeros after their end. */
#define TUNE_CUDA_WIDTHS(V) V(16) V(32) V(64) V(80) V(96) V(128) V(256)

/* tune_cuda_by_width - call run with a value whose ::value is the width of D's kernel.
 * tune_cuda_attention_fits - 0; -1 with an error: no kernel for heads of D numbers, too many heads
 * or rows for a grid. */
template <class F> static void tune_cuda_by_width(int D, F run)
{
#define TUNE_CUDA_TRY_WIDTH(W) \
    if (D <= W)                \
        return run(std::integral_constant<int, W>());
    TUNE_CUDA_WIDTHS(TUNE_CUDA_TRY_WIDTH)
#undef TUNE_CUDA_TRY_WIDTH
}

/* The most heads, and rows, that a grid has. */
constexpr int TUNE_CUDA_GRID = 65535;

static inline int tune_cuda_attention_fits(const struct tune_cuda_attention &a)
{
    if (a.D > TUNE_CUDA_WIDEST)
        return tune_error_cannot("heads of %d numbers; on a GPU they may have at most %d. Use the "
                                 "CPU for this model",
                                 a.D, TUNE_CUDA_WIDEST);
    if (a.H > TUNE_CUDA_GRID)
        return tune_error_cannot("%d heads; on a GPU a layer may have at most %d. Use the CPU for "
                                 "this model",
                                 a.H, TUNE_CUDA_GRID);
    if (a.B > TUNE_CUDA_GRID)
        return tune_error_cannot("a batch of %d rows; on a GPU it may have at most %d. Use a "
                                 "smaller `batch_size`",
                                 a.B, TUNE_CUDA_GRID);
    return 0;
}

/* Most bytes of shared memory that a block of any supported GPU may ask for. */
constexpr int TUNE_CUDA_SHARED = 99 * 1024;

/* Rounded-up quotient; n rounded up to a multiple. */
static inline int64_t tune_cuda_quotient(int64_t n, int64_t by) { return (n + by - 1) / by; }
static inline int64_t tune_cuda_multiple(int64_t n, int64_t of)
{
    return tune_cuda_quotient(n, of) * of;
}

__host__ __device__ static inline int tune_cuda_sums_stride(int T)
{
    return TUNE_CUDA_SUMS_STRIDE(T);
}

static inline struct tune_cuda_heads tune_cuda_heads_of(const struct tune_tensor *t)
{
    int64_t position = t->stride ? t->stride : t->shape[2] * t->shape[3];
    return {tune_cuda_data<void>(t), position, t->outer ? t->outer : t->shape[1] * position};
}

/* A matrix [B T, H D]. */
static inline struct tune_cuda_heads tune_cuda_heads_of_rows(const struct tune_tensor *t, int64_t T)
{
    return {tune_cuda_data<void>(t), t->shape[1], T * t->shape[1]};
}

static inline bool tune_cuda_wide_heads(const struct tune_cuda_heads &x, int64_t D, bool narrow)
{
    uint64_t pack = narrow ? 8 : 4;
    return (reinterpret_cast<uint64_t>(x.data) % 16 |
            static_cast<uint64_t>(D | x.position | x.outer) % pack) == 0;
}

static inline struct tune_cuda_attention
tune_cuda_attention_of(const struct tune_tensor *out, const struct tune_tensor *lse,
                       const struct tune_tensor *q, const struct tune_tensor *k,
                       const struct tune_tensor *v, const struct tune_tensor *starts,
                       const struct tune_attention &params)
{
    struct tune_cuda_attention a = {};
    bool narrow = q->dtype == TUNE_BF16;
    a.q = tune_cuda_heads_of(q);
    a.k = tune_cuda_heads_of(k);
    a.v = tune_cuda_heads_of(v);
    a.out = tune_cuda_heads_of_rows(out, q->shape[1]);
    a.lse = tune_cuda_data<float>(lse);
    a.starts = tune_cuda_data<const int32_t>(starts);
    a.B = static_cast<int>(q->shape[0]);
    a.T = static_cast<int>(q->shape[1]);
    a.capacity = static_cast<int>(k->shape[1]);
    a.H = static_cast<int>(q->shape[2]);
    a.K = static_cast<int>(k->shape[2]);
    a.D = static_cast<int>(q->shape[3]);
    a.window = params.window;
    a.scale = params.scale;
    a.per = 1;
    a.wide = tune_cuda_wide_heads(a.q, a.D, narrow) && tune_cuda_wide_heads(a.k, a.D, narrow) &&
             tune_cuda_wide_heads(a.v, a.D, narrow) && tune_cuda_wide_heads(a.out, a.D, narrow);
    return a;
}

/* TUNE_CUDA_LAUNCH - launch a kernel with so many bytes of dynamic shared memory. The kernel stands
 * in parentheses. If the GPU has less, cudaGetLastError tells. */
#define TUNE_CUDA_LAUNCH(kernel, grid, threads, shared, stream, ...)                         \
    do {                                                                                     \
        if (cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,        \
                                 static_cast<int>(shared)) == cudaSuccess)                   \
            LAUNCH(kernel, grid, threads, static_cast<size_t>(shared), stream, __VA_ARGS__); \
    } while (0)

/* The kernels in float32 (attention_exact.cu), and the second kernel for few queries
 * (decode_attention.cu). All queue work in the stream. */
void tune_cuda_exact_forward(const struct tune_cuda_attention &a, cudaStream_t stream);
void tune_cuda_exact_backward(const struct tune_cuda_attention &a, cudaStream_t stream);
void tune_cuda_add_pieces(const struct tune_cuda_attention &a, bool narrow, cudaStream_t stream);

/* tune_cuda_split - if there are few queries, split the keys: set per, pieces and found. -1: no
 * memory. */
int tune_cuda_split(struct tune_device *dev, struct tune_cuda_attention *a);

#endif
