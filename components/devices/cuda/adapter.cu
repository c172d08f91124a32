/* adapter.cu - operations of low-rank adapters besides products, and noise: dropout, column scales,
 * row lengths. Random bits are those of the CPU. */
#include "devices/cuda/cuda.h"
#include "devices/cuda/nf4.h"
#include "devices/cuda/reduce.h"

constexpr int THREADS = TUNE_CUDA_THREADS;

/* core/random.h's tune_random_u64. Source: Salmon et al. 2011, Philox 2x64-10. */
__device__ static uint64_t random_u64(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint64_t left = counter, right = stream;
    for (int round = 0; round < 10; round++) {
        uint64_t high = __umul64hi(0xD2B74407B1CE6E93u, left), low = 0xD2B74407B1CE6E93u * left;
        left = high ^ seed ^ right;
        right = low;
        seed += 0x9E3779B97F4A7C15u;
    }
    return left;
}

/* 32 bits for a column, from the row's 64 bits. Source: Appleby's finalizer (MurmurHash3). */
__device__ __forceinline__ uint32_t column_bits(uint64_t row, uint32_t column)
{
    uint32_t h = static_cast<uint32_t>(row) + column * 0x9E3779B9u;
    h ^= h >> 16;
    h *= 0x85EBCA6Bu;
    h ^= static_cast<uint32_t>(row >> 32);
    h ^= h >> 13;
    h *= 0xC2B2AE35u;
    return h ^ h >> 16;
}

/* The 64 bits of this block's row, drawn by its first thread. */
__device__ static uint64_t row_bits(const struct tune_scalars *s, const struct tune_dropout &drop)
{
    SHARED(uint64_t, row, [1]);
    if (threadIdx.x == 0) {
        uint64_t steps = static_cast<uint64_t>(drop.past_steps + static_cast<int64_t>(s->step));
        uint64_t pass = random_u64(drop.seed, steps, static_cast<uint64_t>(s->pass));
        uint64_t key =
            random_u64(pass, static_cast<uint64_t>(drop.layer), static_cast<uint64_t>(drop.which));
        row[0] = random_u64(key, 0, blockIdx.x);
    }
    __syncthreads();
    return row[0];
}

static const struct tune_scalars *scalars(tune_address step)
{
    return reinterpret_cast<const struct tune_scalars *>(step.at);
}

template <class Y, class X>
__global__ void __launch_bounds__(THREADS)
    drop_out(Y *y, const X *x, const struct tune_scalars *s, struct tune_dropout drop, int64_t C,
             uint32_t below, float beta, float plain, float stays)
{
    uint64_t row = row_bits(s, drop);
    const X *in = x + blockIdx.x * C;
    Y *out = y + blockIdx.x * C;
    for (int64_t i = threadIdx.x; i < C; i += blockDim.x) {
        bool dropped = column_bits(row, static_cast<uint32_t>(i)) < below;
        float to = (dropped ? plain : stays) * tune_cuda_load(in[i]);
        tune_cuda_store(&out[i], beta == 0 ? to : beta * tune_cuda_load(out[i]) + to);
    }
}

extern "C" int tune_cuda_dropout(struct tune_device *dev, struct tune_tensor *y,
                                 const struct tune_tensor *x, tune_address step,
                                 struct tune_dropout drop, float beta, float plain, float masked)
{
    int64_t N = x->shape[0], C = x->shape[1];
    uint32_t below = static_cast<uint32_t>(drop.p * 4294967296.0); /* p < 1, so it fits */
    float stays = plain + masked * static_cast<float>(1 / (1 - drop.p));
    tune_cuda_typed(y, [&](auto a) {
        tune_cuda_typed(x, [&](auto b) {
            typedef TUNE_CUDA_TYPE(a) Y;
            typedef TUNE_CUDA_TYPE(b) X;
            if (N > 0 && C > 0)
                LAUNCH((drop_out<Y, X>), static_cast<unsigned>(N), tune_cuda_row_threads(C), 0,
                       tune_cuda_of(dev)->stream, tune_cuda_data<Y>(y), tune_cuda_data<const X>(x),
                       scalars(step), drop, C, below, beta, plain, stays);
        });
    });
    return tune_cuda_queued(dev);
}

__global__ void __launch_bounds__(THREADS)
    add_noise(float *y, const struct tune_scalars *s, struct tune_dropout drop, int64_t C,
              float size)
{
    uint64_t row = row_bits(s, drop);
    float *out = y + blockIdx.x * C;
    for (int64_t i = threadIdx.x; i < C; i += blockDim.x) {
        int32_t bits = static_cast<int32_t>(column_bits(row, static_cast<uint32_t>(i)));
        out[i] += size * (static_cast<float>(bits) * (1.0f / 2147483648.0f));
    }
}

extern "C" int tune_cuda_noise(struct tune_device *dev, struct tune_tensor *y, tune_address step,
                               struct tune_dropout drop, float size)
{
    int64_t N = y->shape[0], C = y->shape[1];
    if (N > 0 && C > 0)
        LAUNCH(add_noise, static_cast<unsigned>(N), tune_cuda_row_threads(C), 0,
               tune_cuda_of(dev)->stream, tune_cuda_data<float>(y), scalars(step), drop, C, size);
    return tune_cuda_queued(dev);
}

/* ---- DoRA ---- */

template <class Y, class X>
__global__ void __launch_bounds__(THREADS)
    scale_columns(Y *y, const X *x, const float *g, int64_t C, float plus, float scale, float beta)
{
    const X *in = x + blockIdx.x * C;
    Y *out = y + blockIdx.x * C;
    for (int64_t i = threadIdx.x; i < C; i += blockDim.x) {
        float to = scale * (g[i] + plus) * tune_cuda_load(in[i]);
        tune_cuda_store(&out[i], beta == 0 ? to : beta * tune_cuda_load(out[i]) + to);
    }
}

extern "C" int tune_cuda_scale_columns(struct tune_device *dev, struct tune_tensor *y,
                                       const struct tune_tensor *x, const struct tune_tensor *g,
                                       float plus, float scale, float beta)
{
    int64_t N = x->shape[0], C = x->shape[1];
    tune_cuda_typed(y, [&](auto a) {
        tune_cuda_typed(x, [&](auto b) {
            typedef TUNE_CUDA_TYPE(a) Y;
            typedef TUNE_CUDA_TYPE(b) X;
            if (N > 0 && C > 0)
                LAUNCH((scale_columns<Y, X>), static_cast<unsigned>(N), tune_cuda_row_threads(C), 0,
                       tune_cuda_of(dev)->stream, tune_cuda_data<Y>(y), tune_cuda_data<const X>(x),
                       tune_cuda_data<const float>(g), C, plus, scale, beta);
        });
    });
    return tune_cuda_queued(dev);
}

template <class T>
__global__ void __launch_bounds__(THREADS) row_squares(float *squares, const T *w, int64_t K)
{
    const T *row = w + blockIdx.x * K;
    double sum = 0;
    for (int64_t k = threadIdx.x; k < K; k += blockDim.x)
        sum += static_cast<double>(tune_cuda_load(row[k])) * tune_cuda_load(row[k]);
    sum = tune_cuda_block_sum(sum);
    if (threadIdx.x == 0)
        squares[blockIdx.x] = static_cast<float>(sum);
}

extern "C" int tune_cuda_row_squares(struct tune_device *dev, struct tune_tensor *squares,
                                     const struct tune_tensor *w)
{
    int64_t M = w->shape[0], K = w->shape[1];
    struct tune_tensor plain = *w;
    if (M == 0)
        return 0;
    if (w->dtype == TUNE_NF4) {
        float *scratch = tune_cuda_scratch(dev, tune_copy_bytes({M * K, TUNE_NF4}, TUNE_F32) / 4);
        if (!scratch || tune_cuda_dequantize(dev, &plain, TUNE_F32, scratch) < 0)
            return -1;
    }
    tune_cuda_typed(&plain, [&](auto t) {
        typedef TUNE_CUDA_TYPE(t) T;
        LAUNCH(row_squares<T>, static_cast<unsigned>(M), tune_cuda_row_threads(K), 0,
               tune_cuda_of(dev)->stream, tune_cuda_data<float>(squares),
               tune_cuda_data<const T>(&plain), K);
    });
    return tune_cuda_queued(dev);
}

/* A warp for each row of W + s B A. Its length squared is W's, 2 s b.p and s^2 b (A A^T) b. Sums
 * are float64, because the added terms are small. */
__global__ void __launch_bounds__(THREADS)
    dora_scale(float *g, float *inverse, const float *magnitude, const float *squares,
               const float *b, const float *p, const float *aa, int64_t M, int r, double s)
{
    int64_t m = static_cast<int64_t>(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32;
    int lane = static_cast<int>(threadIdx.x) % 32;
    if (m >= M)
        return;
    double linear = 0, square_of = 0;
    for (int k = lane; k < r; k += 32) {
        double sum = 0;
        for (int j = 0; j < r; j++)
            sum += static_cast<double>(aa[k * r + j]) * b[m * r + j];
        linear += static_cast<double>(b[m * r + k]) * p[m * r + k];
        square_of += b[m * r + k] * sum;
    }
    linear = tune_cuda_warp_sum(linear);
    square_of = tune_cuda_warp_sum(square_of);
    double l = sqrt(squares[m] + 2 * s * linear + s * s * square_of);
    if (lane == 0) {
        g[m] = l > 0 ? static_cast<float>(magnitude[m] / l) : 0;
        inverse[m] = l > 0 ? static_cast<float>(1 / l) : 0;
    }
}

__global__ void __launch_bounds__(THREADS) no_scale(float *g, float *inverse, int64_t M)
{
    for (int64_t i = tune_cuda_first(); i < M; i += tune_cuda_step()) {
        g[i] = 1;
        inverse[i] = 0;
    }
}

extern "C" int tune_cuda_dora_scale(struct tune_device *dev, struct tune_tensor *g,
                                    struct tune_tensor *inverse,
                                    const struct tune_tensor *magnitude,
                                    const struct tune_tensor *squares, const struct tune_tensor *b,
                                    const struct tune_tensor *p, const struct tune_tensor *aa,
                                    float s)
{
    int64_t M = g->shape[0];
    cudaStream_t stream = tune_cuda_of(dev)->stream;
    float *to = tune_cuda_data<float>(g), *over = tune_cuda_data<float>(inverse);
    if (M > 0 && !magnitude)
        LAUNCH(no_scale, tune_cuda_blocks(M), THREADS, 0, stream, to, over, M);
    else if (M > 0)
        LAUNCH(dora_scale, static_cast<unsigned>((M + THREADS / 32 - 1) / (THREADS / 32)), THREADS,
               0, stream, to, over, tune_cuda_data<const float>(magnitude),
               tune_cuda_data<const float>(squares), tune_cuda_data<const float>(b),
               tune_cuda_data<const float>(p), tune_cuda_data<const float>(aa), M,
               static_cast<int>(b->shape[1]), static_cast<double>(s));
    return tune_cuda_queued(dev);
}
