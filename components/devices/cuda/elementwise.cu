/* elementwise.cu - operations limited by memory bandwidth, each element by itself: copy, zero,
 * axpby, exchange, glu, bias, rope, and rows that move: embed, gather, scatter. */
#include "devices/cuda/cuda.h"

constexpr int THREADS = TUNE_CUDA_THREADS;

extern "C" int tune_cuda_copy(struct tune_device *dev, struct tune_tensor *y,
                              const struct tune_tensor *x)
{
    cudaMemcpyAsync(tune_cuda_data<void>(y), tune_cuda_data<void>(x), tune_cuda_bytes(x),
                    cudaMemcpyDeviceToDevice, tune_cuda_of(dev)->stream);
    return tune_cuda_queued(dev);
}

extern "C" int tune_cuda_zero(struct tune_device *dev, struct tune_tensor *y)
{
    cudaMemsetAsync(tune_cuda_data<void>(y), 0, tune_cuda_bytes(y), tune_cuda_of(dev)->stream);
    return tune_cuda_queued(dev);
}

/* y and x in packs of W numbers; packs: n / W. */
template <class Y, class X, int W>
__global__ void __launch_bounds__(THREADS)
    axpby(Y *y, const X *x, int64_t packs, float alpha, float beta)
{
    typedef tune_cuda_pack<Y, W> out_pack;
    typedef tune_cuda_pack<X, W> in_pack;
    for (int64_t i = tune_cuda_first(); i < packs; i += tune_cuda_step()) {
        in_pack in = reinterpret_cast<const in_pack *>(x)[i];
        out_pack out = {};
        if (beta != 0)
            out = reinterpret_cast<out_pack *>(y)[i];
        for (int j = 0; j < W; j++)
            tune_cuda_store(&out.v[j], alpha * tune_cuda_load(in.v[j]) +
                                           (beta == 0 ? 0 : beta * tune_cuda_load(out.v[j])));
        reinterpret_cast<out_pack *>(y)[i] = out;
    }
}

extern "C" int tune_cuda_axpby(struct tune_device *dev, struct tune_tensor *y,
                               const struct tune_tensor *x, float alpha, float beta)
{
    int64_t n = tune_cuda_elements(y);
    bool four = tune_cuda_has(4, x, n) && tune_cuda_has(4, y, n);
    auto add = [&](auto y_type, auto x_type, auto w) {
        typedef TUNE_CUDA_TYPE(y_type) Y;
        typedef TUNE_CUDA_TYPE(x_type) X;
        constexpr int W = decltype(w)::value;
        if (n > 0)
            LAUNCH((axpby<Y, X, W>), tune_cuda_blocks(n / W), THREADS, 0, tune_cuda_of(dev)->stream,
                   tune_cuda_data<Y>(y), tune_cuda_data<const X>(x), n / W, alpha, beta);
    };
    tune_cuda_typed(y, [&](auto y_type) {
        tune_cuda_typed(x, [&](auto x_type) {
            tune_cuda_fours(four, [&](auto w) { add(y_type, x_type, w); });
        });
    });
    return tune_cuda_queued(dev);
}

__global__ void __launch_bounds__(THREADS) exchange(float *x, float *y, int64_t n)
{
    for (int64_t i = tune_cuda_first(); i < n; i += tune_cuda_step()) {
        float was = x[i];
        x[i] = y[i];
        y[i] = was;
    }
}

extern "C" int tune_cuda_exchange(struct tune_device *dev, struct tune_tensor *x,
                                  struct tune_tensor *y)
{
    int64_t n = tune_cuda_elements(x);
    if (n > 0)
        LAUNCH(exchange, tune_cuda_blocks(n), THREADS, 0, tune_cuda_of(dev)->stream,
               tune_cuda_data<float>(x), tune_cuda_data<float>(y), n);
    return tune_cuda_queued(dev);
}

/* ---- rows: one block each ---- */

/* The argument of the sigmoid that gates x, and its derivative. */
template <bool GELU> static __device__ float gate_of(float x)
{
    return GELU ? 1.5957691216f * x * (1.0f + 0.044715f * x * x) : x;
}

template <bool GELU> static __device__ float gate_slope(float x)
{
    return GELU ? 1.5957691216f * (1.0f + 0.134145f * x * x) : 1.0f;
}

/* h [N,F], gate_up [N,2F]; packs: F / W. */
template <class T, int W, bool GELU>
__global__ void __launch_bounds__(THREADS) glu(T *h, const T *gate_up, int64_t packs)
{
    typedef tune_cuda_pack<T, W> pack;
    const pack *gate = reinterpret_cast<const pack *>(gate_up) + blockIdx.x * 2 * packs;
    pack *out = reinterpret_cast<pack *>(h) + blockIdx.x * packs;
    for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
        pack g = gate[i], up = gate[packs + i];
        for (int j = 0; j < W; j++) {
            float x = tune_cuda_load(g.v[j]);
            float f = x / (1.0f + __expf(-gate_of<GELU>(x)));
            tune_cuda_store(&g.v[j], f * tune_cuda_load(up.v[j]));
        }
        out[i] = g;
    }
}

template <bool GELU>
static int glu_forward(struct tune_device *dev, struct tune_tensor *h,
                       const struct tune_tensor *gate_up)
{
    int64_t N = h->shape[0], F = h->shape[1];
    tune_cuda_typed(h, [&](auto t) {
        tune_cuda_fours(tune_cuda_has(4, h, F) && tune_cuda_has(4, gate_up, F), [&](auto w) {
            typedef TUNE_CUDA_TYPE(t) T;
            constexpr int W = decltype(w)::value;
            if (N > 0 && F > 0)
                LAUNCH((glu<T, W, GELU>), static_cast<unsigned>(N), tune_cuda_row_threads(F / W), 0,
                       tune_cuda_of(dev)->stream, tune_cuda_data<T>(h),
                       tune_cuda_data<const T>(gate_up), F / W);
        });
    });
    return tune_cuda_queued(dev);
}

extern "C" int tune_cuda_glu_forward(struct tune_device *dev, struct tune_tensor *h,
                                     const struct tune_tensor *gate_up, enum tune_gate kind)
{
    return kind == TUNE_GATE_GELU ? glu_forward<true>(dev, h, gate_up)
                                  : glu_forward<false>(dev, h, gate_up);
}

/* dgate_up may be gate_up. */
template <class T, int W, bool GELU>
__global__ void __launch_bounds__(THREADS)
    glu_dx(T *dgate_up, const T *dh, const T *gate_up, int64_t packs)
{
    typedef tune_cuda_pack<T, W> pack;
    const pack *gate = reinterpret_cast<const pack *>(gate_up) + blockIdx.x * 2 * packs;
    const pack *d = reinterpret_cast<const pack *>(dh) + blockIdx.x * packs;
    pack *out = reinterpret_cast<pack *>(dgate_up) + blockIdx.x * 2 * packs;
    for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
        pack g = gate[i], up = gate[packs + i], dy = d[i];
        for (int j = 0; j < W; j++) {
            float x = tune_cuda_load(g.v[j]), u = tune_cuda_load(up.v[j]);
            float s = 1.0f / (1.0f + __expf(-gate_of<GELU>(x))), by = tune_cuda_load(dy.v[j]);
            tune_cuda_store(&g.v[j], by * u * s * (1.0f + x * gate_slope<GELU>(x) * (1.0f - s)));
            tune_cuda_store(&up.v[j], by * x * s);
        }
        out[i] = g;
        out[packs + i] = up;
    }
}

template <bool GELU>
static int glu_backward(struct tune_device *dev, struct tune_tensor *dgate_up,
                        const struct tune_tensor *dh, const struct tune_tensor *gate_up)
{
    int64_t N = dh->shape[0], F = dh->shape[1];
    bool four =
        tune_cuda_has(4, dh, F) && tune_cuda_has(4, gate_up, F) && tune_cuda_has(4, dgate_up, F);
    tune_cuda_typed(dh, [&](auto t) {
        tune_cuda_fours(four, [&](auto w) {
            typedef TUNE_CUDA_TYPE(t) T;
            constexpr int W = decltype(w)::value;
            if (N > 0 && F > 0)
                LAUNCH((glu_dx<T, W, GELU>), static_cast<unsigned>(N), tune_cuda_row_threads(F / W),
                       0, tune_cuda_of(dev)->stream, tune_cuda_data<T>(dgate_up),
                       tune_cuda_data<const T>(dh), tune_cuda_data<const T>(gate_up), F / W);
        });
    });
    return tune_cuda_queued(dev);
}

extern "C" int tune_cuda_glu_backward(struct tune_device *dev, struct tune_tensor *dgate_up,
                                      const struct tune_tensor *dh,
                                      const struct tune_tensor *gate_up, enum tune_gate kind)
{
    return kind == TUNE_GATE_GELU ? glu_backward<true>(dev, dgate_up, dh, gate_up)
                                  : glu_backward<false>(dev, dgate_up, dh, gate_up);
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    add_bias(T *y, const float *bias, int64_t columns, float scale)
{
    T *row = y + blockIdx.x * columns;
    for (int64_t i = threadIdx.x; i < columns; i += blockDim.x)
        tune_cuda_store(&row[i], tune_cuda_load(row[i]) + scale * bias[i]);
}

extern "C" int tune_cuda_bias_forward(struct tune_device *dev, struct tune_tensor *y,
                                      const struct tune_tensor *bias, float scale)
{
    int64_t N = y->shape[0], C = y->shape[1];
    tune_cuda_typed(y, [&](auto t) {
        typedef TUNE_CUDA_TYPE(t) T;
        if (N > 0 && C > 0)
            LAUNCH(add_bias<T>, static_cast<unsigned>(N), tune_cuda_row_threads(C), 0,
                   tune_cuda_of(dev)->stream, tune_cuda_data<T>(y),
                   tune_cuda_data<const float>(bias), C, scale);
    });
    return tune_cuda_queued(dev);
}

/* Rotate pairs (i, i + half) of each head; a thread has some pairs of all heads, so it reads the
 * table once. */
template <class T>
__global__ void __launch_bounds__(THREADS)
    rotate(T *x, const float *table, const int *positions, int64_t Q, int T_, int heads, int D,
           int half, float sign)
{
    int64_t n = blockIdx.x, position = positions ? positions[n] : n % T_;
    const float *cosine = table + position * 2 * half, *sine = cosine + half;
    for (int i = static_cast<int>(threadIdx.x); i < heads * half;
         i += static_cast<int>(blockDim.x)) {
        T *v = x + n * Q + i / half * D + i % half;
        float a = tune_cuda_load(v[0]), b = tune_cuda_load(v[half]);
        float c = cosine[i % half], s = sign * sine[i % half];
        tune_cuda_store(&v[0], a * c - b * s);
        tune_cuda_store(&v[half], b * c + a * s);
    }
}

extern "C" int tune_cuda_rope(struct tune_device *dev, struct tune_tensor *x,
                              const struct tune_tensor *table, const struct tune_tensor *positions,
                              int T, int heads, int D, bool backward)
{
    int64_t N = x->shape[0];
    int half = static_cast<int>(table->shape[1] / 2);
    tune_cuda_typed(x, [&](auto t) {
        typedef TUNE_CUDA_TYPE(t) E;
        if (N > 0 && heads > 0 && half > 0)
            LAUNCH(rotate<E>, static_cast<unsigned>(N), tune_cuda_row_threads(heads * half), 0,
                   tune_cuda_of(dev)->stream, tune_cuda_data<E>(x),
                   tune_cuda_data<const float>(table), tune_cuda_data<const int>(positions),
                   x->shape[1], T, heads, D, half, backward ? -1.0f : 1.0f);
    });
    return tune_cuda_queued(dev);
}

/* y[to[n]] = scale x[from[n]] for each n; without an index, n itself. Steps: elements between
 * rows. */
template <class Y, class X, int W>
__global__ void __launch_bounds__(THREADS)
    move_rows(Y *y, int64_t y_step, const int *to, const X *x, int64_t x_step, const int *from,
              int64_t packs, float scale)
{
    int64_t n = blockIdx.x;
    typedef tune_cuda_pack<Y, W> out_pack;
    typedef tune_cuda_pack<X, W> in_pack;
    out_pack *out = reinterpret_cast<out_pack *>(y + (to ? to[n] : n) * y_step);
    const in_pack *in = reinterpret_cast<const in_pack *>(x + (from ? from[n] : n) * x_step);
    for (int64_t i = threadIdx.x; i < packs; i += blockDim.x) {
        in_pack p = in[i];
        out_pack q;
        for (int j = 0; j < W; j++)
            tune_cuda_store(&q.v[j], scale * tune_cuda_load(p.v[j]));
        out[i] = q;
    }
}

static int move(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *to,
                const struct tune_tensor *x, const struct tune_tensor *from, float scale)
{
    int64_t N = to ? to->shape[0] : y->shape[0], C = x->shape[1];
    int64_t y_step = y->stride ? y->stride : C, x_step = x->stride ? x->stride : C;
    tune_cuda_typed(y, [&](auto a) {
        tune_cuda_typed(x, [&](auto b) {
            tune_cuda_fours(tune_cuda_has(4, y, C) && tune_cuda_has(4, x, C), [&](auto w) {
                typedef TUNE_CUDA_TYPE(a) Y;
                typedef TUNE_CUDA_TYPE(b) X;
                constexpr int W = decltype(w)::value;
                if (N > 0 && C > 0)
                    LAUNCH((move_rows<Y, X, W>), static_cast<unsigned>(N),
                           tune_cuda_row_threads(C / W), 0, tune_cuda_of(dev)->stream,
                           tune_cuda_data<Y>(y), y_step, tune_cuda_data<const int>(to),
                           tune_cuda_data<const X>(x), x_step, tune_cuda_data<const int>(from),
                           C / W, scale);
            });
        });
    });
    return tune_cuda_queued(dev);
}

extern "C" int tune_cuda_embed_forward(struct tune_device *dev, struct tune_tensor *x,
                                       const struct tune_tensor *w, const struct tune_tensor *ids,
                                       float scale)
{
    return move(dev, x, nullptr, w, ids, scale);
}

int tune_cuda_cast(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x)
{
    return move(dev, y, nullptr, x, nullptr, 1);
}

extern "C" int tune_cuda_gather(struct tune_device *dev, struct tune_tensor *y,
                                const struct tune_tensor *x, const struct tune_tensor *rows)
{
    return move(dev, y, nullptr, x, rows, 1);
}

extern "C" int tune_cuda_scatter(struct tune_device *dev, struct tune_tensor *y,
                                 const struct tune_tensor *x, const struct tune_tensor *rows)
{
    return move(dev, y, rows, x, nullptr, 1);
}
