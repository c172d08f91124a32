/* norm.cu - RMSNorm of rows, a block each, and of heads, a warp each. */
#include "devices/cuda/columns.h"
#include "devices/cuda/reduce.h"

constexpr int THREADS = TUNE_CUDA_THREADS;

/* y [N,C], rstd [N] or NULL, x [N,C], w [C]; packs: C / W. */
template <class Y, class X, int W>
__global__ void __launch_bounds__(THREADS)
    rmsnorm(Y *y, float *rstd, const X *x, const float *w, int64_t packs, float eps,
            float plus)
{
    typedef tune_cuda_pack<X, W> in_pack;
    typedef tune_cuda_pack<Y, W> out_pack;
    const in_pack *in = reinterpret_cast<const in_pack *>(x) + blockIdx.x * packs;
    out_pack *out = reinterpret_cast<out_pack *>(y) + blockIdx.x * packs;
    float squares = 0;
    for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
        in_pack p = in[i];
        for (int j = 0; j < W; j++)
            squares += tune_cuda_load(p.v[j]) * tune_cuda_load(p.v[j]);
    }
    squares = tune_cuda_block_sum(squares);
    float s = 1.0f / sqrtf(squares / static_cast<float>(packs * W) + eps);
    if (rstd && threadIdx.x == 0)
        rstd[blockIdx.x] = s;
    for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
        in_pack p = in[i];
        out_pack q;
        for (int j = 0; j < W; j++)
            tune_cuda_store(&q.v[j], (w[i * W + j] + plus) * (tune_cuda_load(p.v[j]) * s));
        out[i] = q;
    }
}

extern "C" int tune_cuda_rmsnorm_forward(struct tune_device *dev, struct tune_tensor *y,
                                         struct tune_tensor *rstd, const struct tune_tensor *x,
                                         const struct tune_tensor *w, float eps, float plus)
{
    int64_t N = x->shape[0], C = x->shape[1];
    tune_cuda_typed(y, [&](auto a) {
        tune_cuda_typed(x, [&](auto b) {
            tune_cuda_fours(tune_cuda_has(4, y, C) && tune_cuda_has(4, x, C), [&](auto width) {
                typedef TUNE_CUDA_TYPE(a) Y;
                typedef TUNE_CUDA_TYPE(b) X;
                constexpr int W = decltype(width)::value;
                if (N > 0 && C > 0)
                    LAUNCH((rmsnorm<Y, X, W>), static_cast<unsigned>(N),
                           tune_cuda_row_threads(C / W), 0, tune_cuda_of(dev)->stream,
                           tune_cuda_data<Y>(y), tune_cuda_data<float>(rstd),
                           tune_cuda_data<const X>(x), tune_cuda_data<const float>(w), C / W, eps,
                           plus);
            });
        });
    });
    return tune_cuda_queued(dev);
}

/* dx += s (g - x s^2 mean(g x)), with g = dy w and s = rstd. */
template <class D, class Y, class X, int W>
__global__ void __launch_bounds__(THREADS)
    rmsnorm_dx(D *dx, const Y *dy, const X *x, const float *w, const float *rstd, int64_t packs,
               float plus)
{
    typedef tune_cuda_pack<D, W> d_pack;
    typedef tune_cuda_pack<Y, W> y_pack;
    typedef tune_cuda_pack<X, W> x_pack;
    d_pack *out = reinterpret_cast<d_pack *>(dx) + blockIdx.x * packs;
    const y_pack *dys = reinterpret_cast<const y_pack *>(dy) + blockIdx.x * packs;
    const x_pack *xs = reinterpret_cast<const x_pack *>(x) + blockIdx.x * packs;
    float dot = 0, s = rstd[blockIdx.x];
    for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
        y_pack g = dys[i];
        x_pack p = xs[i];
        for (int j = 0; j < W; j++)
            dot += tune_cuda_load(g.v[j]) * (w[i * W + j] + plus) * tune_cuda_load(p.v[j]);
    }
    float mean = tune_cuda_block_sum(dot) / static_cast<float>(packs * W) * s * s;
    for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
        y_pack g = dys[i];
        x_pack p = xs[i];
        d_pack d = out[i];
        for (int j = 0; j < W; j++)
            tune_cuda_store(&d.v[j],
                            tune_cuda_load(d.v[j]) +
                                s * (tune_cuda_load(g.v[j]) * (w[i * W + j] + plus) -
                                     tune_cuda_load(p.v[j]) * mean));
        out[i] = d;
    }
}

/* Terms of dw: row n is head n % heads of row n / heads. A norm of rows has one head. */
template <class Y, class X> struct norm_terms {
    const Y *dy;
    const X *x;
    const float *rstd;
    int64_t Q, D; /* numbers of a row, of a head */
    int first, heads;
    __device__ float of(int64_t n, int64_t c) const
    {
        int64_t at = n / heads * Q + (first + n % heads) * D + c;
        return tune_cuda_load(dy[at]) * tune_cuda_load(x[at]) * rstd[n];
    }
    __device__ float factor(int64_t) const { return 1; }
};

static int add_dw(struct tune_device *dev, struct tune_tensor *dw, const struct tune_tensor *dy,
                  const struct tune_tensor *x, const struct tune_tensor *rstd, int first, int heads)
{
    int status = 0;
    tune_cuda_typed(dy, [&](auto a) {
        tune_cuda_typed(x, [&](auto b) {
            typedef TUNE_CUDA_TYPE(a) Y;
            typedef TUNE_CUDA_TYPE(b) X;
            int64_t D = dw->shape[0];
            norm_terms<Y, X> terms = {tune_cuda_data<const Y>(dy),
                                      tune_cuda_data<const X>(x),
                                      tune_cuda_data<const float>(rstd),
                                      x->shape[1],
                                      D,
                                      first,
                                      heads};
            status = tune_cuda_add_columns(dev, dw, terms, x->shape[0] * heads, D);
        });
    });
    return status;
}

extern "C" int tune_cuda_rmsnorm_backward(struct tune_device *dev, struct tune_tensor *dx,
                                          struct tune_tensor *dw, const struct tune_tensor *dy,
                                          const struct tune_tensor *x, const struct tune_tensor *w,
                                          const struct tune_tensor *rstd, float plus)
{
    int64_t N = x->shape[0], C = x->shape[1];
    if (dw && add_dw(dev, dw, dy, x, rstd, 0, 1) < 0)
        return -1;
    bool four = tune_cuda_has(4, dx, C) && tune_cuda_has(4, dy, C) && tune_cuda_has(4, x, C);
    tune_cuda_typed(dx, [&](auto a) {
        tune_cuda_typed(dy, [&](auto b) {
            tune_cuda_typed(x, [&](auto c) {
                tune_cuda_fours(four, [&](auto width) {
                    typedef TUNE_CUDA_TYPE(a) D;
                    typedef TUNE_CUDA_TYPE(b) Y;
                    typedef TUNE_CUDA_TYPE(c) X;
                    constexpr int W = decltype(width)::value;
                    if (N > 0 && C > 0)
                        LAUNCH((rmsnorm_dx<D, Y, X, W>), static_cast<unsigned>(N),
                               tune_cuda_row_threads(C / W), 0, tune_cuda_of(dev)->stream,
                               tune_cuda_data<D>(dx), tune_cuda_data<const Y>(dy),
                               tune_cuda_data<const X>(x), tune_cuda_data<const float>(w),
                               tune_cuda_data<const float>(rstd), C / W, plus);
                });
            });
        });
    });
    return tune_cuda_queued(dev);
}

/* ---- heads: a warp each ---- */

constexpr int WARPS = THREADS / 32;

static unsigned head_blocks(int64_t heads)
{
    return static_cast<unsigned>((heads + WARPS - 1) / WARPS);
}

/* count = N heads: head h of row n has its D numbers at n Q + (first + h) D. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    headnorm(T *y, float *rstd, const T *x, const float *w, int64_t count, int64_t Q, int D,
             int first, int heads, float eps, float plus)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
    int lane = static_cast<int>(threadIdx.x) % 32;
    if (i >= count)
        return;
    int64_t at = i / heads * Q + (first + i % heads) * D;
    float squares = 0;
    for (int c = lane; c < D; c += 32)
        squares += tune_cuda_load(x[at + c]) * tune_cuda_load(x[at + c]);
    float s = 1.0f / sqrtf(tune_cuda_warp_sum(squares) / static_cast<float>(D) + eps);
    if (lane == 0)
        rstd[i] = s;
    for (int c = lane; c < D; c += 32)
        tune_cuda_store(&y[at + c], (w[c] + plus) * (tune_cuda_load(x[at + c]) * s));
}

extern "C" int tune_cuda_headnorm_forward(struct tune_device *dev, struct tune_tensor *y,
                                          struct tune_tensor *rstd, const struct tune_tensor *x,
                                          const struct tune_tensor *w, int first, int heads,
                                          float eps, float plus)
{
    int64_t count = x->shape[0] * heads;
    tune_cuda_typed(x, [&](auto t) {
        typedef TUNE_CUDA_TYPE(t) T;
        if (count > 0)
            LAUNCH(headnorm<T>, head_blocks(count), THREADS, 0, tune_cuda_of(dev)->stream,
                   tune_cuda_data<T>(y), tune_cuda_data<float>(rstd), tune_cuda_data<const T>(x),
                   tune_cuda_data<const float>(w), count, x->shape[1],
                   static_cast<int>(w->shape[0]), first, heads, eps, plus);
    });
    return tune_cuda_queued(dev);
}

/* In place: dy becomes the gradient of x. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    headnorm_dx(T *dy, const T *x, const float *w, const float *rstd, int64_t count, int64_t Q,
                int D, int first, int heads, float plus)
{
    int64_t i = static_cast<int64_t>(blockIdx.x) * WARPS + threadIdx.x / 32;
    int lane = static_cast<int>(threadIdx.x) % 32;
    if (i >= count)
        return;
    int64_t at = i / heads * Q + (first + i % heads) * D;
    float dot = 0, s = rstd[i];
    for (int c = lane; c < D; c += 32)
        dot += tune_cuda_load(dy[at + c]) * (w[c] + plus) * tune_cuda_load(x[at + c]);
    float mean = tune_cuda_warp_sum(dot) / static_cast<float>(D) * s * s;
    for (int c = lane; c < D; c += 32)
        tune_cuda_store(&dy[at + c],
                        s * (tune_cuda_load(dy[at + c]) * (w[c] + plus) -
                             tune_cuda_load(x[at + c]) * mean));
}

extern "C" int tune_cuda_headnorm_backward(struct tune_device *dev, struct tune_tensor *dy,
                                           struct tune_tensor *dw, const struct tune_tensor *x,
                                           const struct tune_tensor *w,
                                           const struct tune_tensor *rstd, int first, int heads,
                                           float plus)
{
    int64_t count = x->shape[0] * heads;
    if (dw && add_dw(dev, dw, dy, x, rstd, first, heads) < 0)
        return -1;
    tune_cuda_typed(x, [&](auto t) {
        typedef TUNE_CUDA_TYPE(t) T;
        if (count > 0)
            LAUNCH(headnorm_dx<T>, head_blocks(count), THREADS, 0, tune_cuda_of(dev)->stream,
                   tune_cuda_data<T>(dy), tune_cuda_data<const T>(x),
                   tune_cuda_data<const float>(w), tune_cuda_data<const float>(rstd), count,
                   x->shape[1], static_cast<int>(w->shape[0]), first, heads, plus);
    });
    return tune_cuda_queued(dev);
}
