/* cuda.h - what the CUDA kernels share: the stream that they are queued in, a tensor's pointers.
 *
 * Each operation of ops.h has a function tune_cuda_<op> that queues kernels in the device's stream.
 * It returns 0, or -1 if the launch failed; then `failed` holds the reason. Kernels are
 * deterministic: no float atomics, and each sum has one order. */
#ifndef TUNE_CUDA_H
#define TUNE_CUDA_H

#include <cuda_bf16.h>

#include <type_traits>

#include "core/error.h"
#include "devices/cuda/language.h"
#include "devices/cuda/sizes.h"
#include "devices/ops.h"

/* The state of a CUDA device. */
struct tune_cuda {
    cudaStream_t stream;   /* for compute */
    cudaError_t failed;    /* the last launch that failed */
    double clock_ahead_s;  /* what the GPU's clock is ahead of tune_clock_s */
    float *scratch;        /* memory.cu */
    int64_t scratch_floats;
    struct tune_cuda_products *products; /* products.cu */
    struct tune_cuda_graphs *graphs;     /* graph.cu */
    const char *algorithms; /* the file that keeps its choices; NULL or "": it chooses untimed */
};

static inline struct tune_cuda *tune_cuda_of(const struct tune_device *dev)
{
    return static_cast<struct tune_cuda *>(dev->state);
}

/* tune_cuda_cast - queue y = x with another dtype. Both are matrices of one shape, whose rows may
 * lie apart; F32 or BF16.
 * tune_cuda_products_begin - take what tune_cuda_gemm needs once: cuBLASLt and its workspace.
 * tune_cuda_products_free - free what tune_cuda_gemm made.
 * tune_cuda_refusals - how often cuBLASLt refused a product so far. */
int tune_cuda_cast(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x);
int tune_cuda_products_begin(struct tune_device *dev);
void tune_cuda_products_free(struct tune_cuda *cuda);
int tune_cuda_refusals(const struct tune_cuda *cuda);

/* tune_cuda_failed - set the error "<what>: <the runtime's error>", and what the user can do.
 * Returns -1. Kind CANNOT: out of memory, or no kernel for this GPU; else FAILED. */
int tune_cuda_failed(cudaError_t error, const char *what, ...) TUNE_PRINTF(2, 3);

/* tune_cuda_count - so many bytes more are held, or fewer. */
static inline void tune_cuda_count(struct tune_device *dev, int64_t more)
{
    dev->bytes += more;
    dev->bytes_peak = tune_cuda_most(dev->bytes_peak, dev->bytes);
    dev->allocations += more > 0;
}

/* tune_cuda_queued - 0 if the launches since the last call succeeded, else -1. */
static inline int tune_cuda_queued(struct tune_device *dev)
{
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess)
        return 0;
    tune_cuda_of(dev)->failed = error;
    return -1;
}

/* tune_cuda_op_failed - name the operation that failed, and its weight. Returns -1. */
int tune_cuda_op_failed(struct tune_device *dev, const char *op);

/* tune_cuda_graph_table - fill in the operations and groups of ops.h.
 * tune_cuda_graph_flush - queue what an open group has collected; the rest of the group is queued
 * call by call. The group's end reports an error.
 * tune_cuda_graphs_drop - forget all graphs: memory that they use is freed. None is running.
 * tune_cuda_graphs_free - the same, for good.
 * tune_cuda_graphs_taken - the GPU's memory that the driver took for graphs. Once it is
 * TUNE_CUDA_GRAPHS, a new graph takes the place of another. */
void tune_cuda_graph_table(struct tune_ops *ops);
void tune_cuda_graph_flush(struct tune_device *dev);
void tune_cuda_graphs_drop(struct tune_cuda *cuda);
void tune_cuda_graphs_free(struct tune_cuda *cuda);
int64_t tune_cuda_graphs_taken(const struct tune_cuda *cuda);

/* tune_cuda_data - a tensor's numbers; NULL for an absent tensor.
 * tune_cuda_elements - how many it has.
 * tune_cuda_bytes - the bytes of a dense one, of whole bytes an element. */
template <class T> static inline T *tune_cuda_data(const struct tune_tensor *t)
{
    return t ? reinterpret_cast<T *>(t->data.at) : nullptr;
}

static inline int64_t tune_cuda_elements(const struct tune_tensor *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++)
        n *= t->shape[i];
    return n;
}

static inline size_t tune_cuda_bytes(const struct tune_tensor *t)
{
    bool two = t->dtype == TUNE_BF16, eight = t->dtype == TUNE_F64 || t->dtype == TUNE_I64;
    return static_cast<size_t>(tune_cuda_elements(t)) * (two ? 2 : eight ? 8 : 4);
}

/* tune_cuda_scratch - the device's working memory, at least so many floats, aligned to 256 bytes.
 * An operation uses it until it ends; the next one overwrites it. To grow it waits for the stream.
 * So ask for the largest size once, before work that is captured or timed. NULL with an error: no
 * memory, or it must grow while the stream is captured.
 * tune_cuda_scratch_free - free it. */
float *tune_cuda_scratch(struct tune_device *dev, int64_t floats);
void tune_cuda_scratch_free(struct tune_device *dev);

/* Threads of a block, mostly.
 * tune_cuda_blocks - blocks for n elements; there is a limit, so a kernel takes the elements
 * tune_cuda_first(), + tune_cuda_step(), ...
 * tune_cuda_row_threads - threads for a row of n elements; a block does one row and loops. */
constexpr int64_t TUNE_CUDA_THREADS = 256, TUNE_CUDA_MOST_BLOCKS = 2048;

static inline unsigned tune_cuda_blocks(int64_t n)
{
    int64_t blocks = (n + TUNE_CUDA_THREADS - 1) / TUNE_CUDA_THREADS;
    return static_cast<unsigned>(blocks < TUNE_CUDA_MOST_BLOCKS ? blocks : TUNE_CUDA_MOST_BLOCKS);
}

static inline unsigned tune_cuda_row_threads(int64_t n)
{
    return static_cast<unsigned>(n < TUNE_CUDA_THREADS ? (n + 31) / 32 * 32 : TUNE_CUDA_THREADS);
}

__device__ __forceinline__ int64_t tune_cuda_first()
{
    return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ int64_t tune_cuda_step()
{
    return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

/* tune_cuda_load, tune_cuda_store - an activation as float32. */
__device__ __forceinline__ float tune_cuda_load(float x) { return x; }
__device__ __forceinline__ float tune_cuda_load(__nv_bfloat16 x) { return __bfloat162float(x); }
__device__ __forceinline__ void tune_cuda_store(float *x, float value) { *x = value; }
__device__ __forceinline__ void tune_cuda_store(__nv_bfloat16 *x, float value)
{
    *x = __float2bfloat16_rn(value);
}

/* W neighbours that one instruction moves: at most 16 bytes, aligned to their size.
 * tune_cuda_has - whether the rows of t, n elements each, can be moved by W elements. */
template <class T, int W> struct __align__(W * sizeof(T)) tune_cuda_pack {
    T v[W];
};

static inline bool tune_cuda_has(int W, const struct tune_tensor *t, int64_t n)
{
    uint64_t size = t->dtype == TUNE_BF16 ? 2 : 4;
    return t->data.at % (static_cast<uint64_t>(W) * size) == 0 && n % W == 0 && t->stride % W == 0;
}

/* tune_cuda_typed - call run with a value whose ::type is the element type of t.
 * tune_cuda_fours - call run with a value whose ::value is 4 if `four` is true, else 1.
 *
 *     tune_cuda_typed(x, [&](auto t) {
 *         LAUNCH((kernel<TUNE_CUDA_TYPE(t)>), ..., tune_cuda_data<TUNE_CUDA_TYPE(t)>(x)); }); */
#define TUNE_CUDA_TYPE(t) typename decltype(t)::type
template <class T> struct tune_cuda_type {
    typedef T type;
};

template <class F> static void tune_cuda_typed(const struct tune_tensor *t, F run)
{
    if (t->dtype == TUNE_BF16)
        run(tune_cuda_type<__nv_bfloat16>());
    else
        run(tune_cuda_type<float>());
}

template <class F> static void tune_cuda_fours(bool four, F run)
{
    if (four)
        run(std::integral_constant<int, 4>());
    else
        run(std::integral_constant<int, 1>());
}

/* Every operation of the list. */
#define TUNE_CUDA_DECLARE(op) \
    extern "C" int tune_cuda_##op(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER));
TUNE_OPS(TUNE_CUDA_DECLARE)
#undef TUNE_CUDA_DECLARE

#endif
