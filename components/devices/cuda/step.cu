/* step.cu - the scalars of a step, the gradient's norm, and updates of flat buffers. */
#include "devices/cuda/cuda.h"
#include "devices/cuda/ptx.h"
#include "devices/cuda/reduce.h"

constexpr int THREADS = TUNE_CUDA_THREADS;

static struct tune_scalars *scalars(tune_address step)
{
    return reinterpret_cast<struct tune_scalars *>(step.at);
}

/* ---- one thread ---- */

__device__ __forceinline__ double clock_s(double ahead_s)
{
    return static_cast<double>(ptx_clock_ns()) * 1e-9 - ahead_s;
}

__global__ void begin_step(struct tune_scalars *s, double ahead_s)
{
    struct tune_scalars fresh = {};
    fresh.step = s->step + 1;
    fresh.begin_s = clock_s(ahead_s);
    *s = fresh;
}

__global__ void add_scalar(double *at, double more) { *at += more; }

__global__ void set_scalar(double *at, double value) { *at = value; }

__global__ void end_step(struct tune_scalars *slot, struct tune_scalars *s, double ahead_s)
{
    s->end_s = clock_s(ahead_s);
    *slot = *s;
}

__global__ void finish_step(struct tune_scalars *s, double clip_norm)
{
    double n = s->divisor != 0 ? s->divisor : s->labels;
    s->grad_norm = sqrt(s->square_sum) / n;
    bool fine = isfinite(s->grad_norm) && isfinite(s->loss_sum);
    double factor = clip_norm > 0 ? clip_norm / (s->grad_norm + 1e-6) : 1;
    s->not_finite = fine ? 0 : 1;
    s->updates += fine ? 1 : 0;
    s->gradient_scale = !fine ? 0 : (factor < 1 ? factor : 1) / n;
}

extern "C" int tune_cuda_begin_step(struct tune_device *dev, tune_address step)
{
    struct tune_cuda *cuda = tune_cuda_of(dev);
    LAUNCH(begin_step, 1, 1, 0, cuda->stream, scalars(step), cuda->clock_ahead_s);
    return tune_cuda_queued(dev);
}

static int add(struct tune_device *dev, double *at, double more)
{
    LAUNCH(add_scalar, 1, 1, 0, tune_cuda_of(dev)->stream, at, more);
    return tune_cuda_queued(dev);
}

extern "C" int tune_cuda_begin_pass(struct tune_device *dev, tune_address step, double more)
{
    return add(dev, &scalars(step)->pass, more);
}

extern "C" int tune_cuda_add_labels(struct tune_device *dev, tune_address step, double labels,
                                    double chunks)
{
    int status = add(dev, &scalars(step)->labels, labels);
    return status < 0 ? status : add(dev, &scalars(step)->chunks, chunks);
}

extern "C" int tune_cuda_add_loss(struct tune_device *dev, tune_address step, double loss)
{
    return add(dev, &scalars(step)->loss_sum, loss);
}

extern "C" int tune_cuda_add_divisor(struct tune_device *dev, tune_address step, double more)
{
    return add(dev, &scalars(step)->divisor, more);
}

extern "C" int tune_cuda_set_lr(struct tune_device *dev, tune_address step, double lr)
{
    LAUNCH(set_scalar, 1, 1, 0, tune_cuda_of(dev)->stream, &scalars(step)->lr, lr);
    return tune_cuda_queued(dev);
}

extern "C" int tune_cuda_end_step(struct tune_device *dev, struct tune_tensor *slot,
                                  tune_address step)
{
    struct tune_cuda *cuda = tune_cuda_of(dev);
    LAUNCH(end_step, 1, 1, 0, cuda->stream, tune_cuda_data<struct tune_scalars>(slot),
           scalars(step), cuda->clock_ahead_s);
    return tune_cuda_queued(dev);
}

extern "C" int tune_cuda_finish_step(struct tune_device *dev, tune_address step, double clip_norm)
{
    LAUNCH(finish_step, 1, 1, 0, tune_cuda_of(dev)->stream, scalars(step), clip_norm);
    return tune_cuda_queued(dev);
}

/* ---- sums of squares: parts in a fixed order ---- */

constexpr int PARTS = TUNE_CUDA_PARTS;

__global__ void __launch_bounds__(THREADS) square_parts(double *parts, const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t i = tune_cuda_first(); i < n; i += tune_cuda_step())
        sum += static_cast<double>(x[i]) * x[i];
    sum = tune_cuda_block_sum(sum);
    if (threadIdx.x == 0)
        parts[blockIdx.x] = sum;
}

/* *to = old *to + the parts, if add, else the parts. */
__global__ void __launch_bounds__(THREADS)
    add_parts(double *to, const double *parts, int n, bool add)
{
    double sum = 0;
    for (int i = static_cast<int>(threadIdx.x); i < n; i += THREADS)
        sum += parts[i];
    sum = tune_cuda_block_sum(sum);
    if (threadIdx.x == 0)
        *to = add ? *to + sum : sum;
}

/* Queue *to = (old if add) + sum of squares. to NULL: *to is after the parts. Returns where. */
static double *queue_squares(struct tune_device *dev, double *to, const float *x, int64_t n,
                             bool add)
{
    double *parts = reinterpret_cast<double *>(tune_cuda_scratch(dev, 2 * (PARTS + 1)));
    if (!parts)
        return nullptr;
    int64_t blocks = (n + 4 * THREADS - 1) / (4 * THREADS);
    int count = static_cast<int>(blocks < 1 ? 1 : blocks < PARTS ? blocks : PARTS);
    to = to ? to : parts + PARTS;
    LAUNCH(square_parts, static_cast<unsigned>(count), THREADS, 0, tune_cuda_of(dev)->stream, parts,
           x, n);
    LAUNCH(add_parts, 1, THREADS, 0, tune_cuda_of(dev)->stream, to, parts, count, add);
    return to;
}

extern "C" int tune_cuda_sum_squares(struct tune_device *dev, tune_address step,
                                     const struct tune_tensor *x)
{
    double *to = &scalars(step)->square_sum;
    if (!queue_squares(dev, to, tune_cuda_data<const float>(x), x->shape[0], true))
        return -1;
    return tune_cuda_queued(dev);
}

__global__ void __launch_bounds__(THREADS)
    make_unit(float *y, const double *squares, int64_t n, double least)
{
    float by = static_cast<float>(1 / fmax(sqrt(*squares), least));
    for (int64_t i = tune_cuda_first(); i < n; i += tune_cuda_step())
        y[i] *= by;
}

extern "C" int tune_cuda_unit(struct tune_device *dev, struct tune_tensor *y, double least)
{
    int64_t n = y->shape[0];
    if (n == 0)
        return 0;
    const double *squares = queue_squares(dev, nullptr, tune_cuda_data<const float>(y), n, false);
    if (!squares)
        return -1;
    LAUNCH(make_unit, tune_cuda_blocks(n), THREADS, 0, tune_cuda_of(dev)->stream,
           tune_cuda_data<float>(y), squares, n, least);
    return tune_cuda_queued(dev);
}

/* ---- updates ---- */

/* What an update takes from the step. A block's first thread computes it. */
struct factors {
    float scale, keep, rate, root;
};

__global__ void __launch_bounds__(THREADS)
    adamw(float *w, const float *g, float *m, float *v, const struct tune_scalars *s,
          struct tune_update u, int64_t n)
{
    SHARED(struct factors, f, [1]);
    if (threadIdx.x == 0) {
        double lr = s->lr * u.lr_scale;
        f[0].scale = static_cast<float>(s->gradient_scale);
        f[0].keep = static_cast<float>(1 - lr * u.weight_decay);
        f[0].rate = static_cast<float>(lr / (1 - pow(u.beta1, s->updates)));
        f[0].root = static_cast<float>(1 / sqrt(1 - pow(u.beta2, s->updates)));
    }
    __syncthreads();
    float scale = f[0].scale, keep = f[0].keep, rate = f[0].rate, root = f[0].root;
    float b1 = static_cast<float>(u.beta1), a1 = static_cast<float>(1 - u.beta1);
    float b2 = static_cast<float>(u.beta2), a2 = static_cast<float>(1 - u.beta2);
    float eps = static_cast<float>(u.eps);
    if (scale == 0)
        return;
    for (int64_t i = tune_cuda_first(); i < n; i += tune_cuda_step()) {
        float grad = g[i] * scale;
        float m1 = b1 * m[i] + a1 * grad, v1 = b2 * v[i] + a2 * grad * grad;
        m[i] = m1;
        v[i] = v1;
        w[i] = w[i] * keep - rate * m1 / (sqrtf(v1) * root + eps);
    }
}

extern "C" int tune_cuda_adamw(struct tune_device *dev, struct tune_tensor *w,
                               const struct tune_tensor *g, struct tune_tensor *m,
                               struct tune_tensor *v, tune_address step, struct tune_update params)
{
    int64_t n = g->shape[0];
    if (n > 0)
        LAUNCH(adamw, tune_cuda_blocks(n), THREADS, 0, tune_cuda_of(dev)->stream,
               tune_cuda_data<float>(w), tune_cuda_data<const float>(g), tune_cuda_data<float>(m),
               tune_cuda_data<float>(v), scalars(step), params, n);
    return tune_cuda_queued(dev);
}

/* m NULL: no momentum. */
__global__ void __launch_bounds__(THREADS)
    sgd(float *w, const float *g, float *m, const struct tune_scalars *s, struct tune_update u,
        int64_t n)
{
    float scale = static_cast<float>(s->gradient_scale), momentum = static_cast<float>(u.momentum);
    float lr = static_cast<float>(s->lr * u.lr_scale);
    float keep = static_cast<float>(1 - s->lr * u.lr_scale * u.weight_decay);
    if (scale == 0)
        return;
    for (int64_t i = tune_cuda_first(); i < n; i += tune_cuda_step()) {
        float grad = g[i] * scale;
        if (m)
            grad = m[i] = momentum * m[i] + grad;
        w[i] = w[i] * keep - lr * grad;
    }
}

extern "C" int tune_cuda_sgd(struct tune_device *dev, struct tune_tensor *w,
                             const struct tune_tensor *g, struct tune_tensor *m, tune_address step,
                             struct tune_update params)
{
    int64_t n = g->shape[0];
    if (n > 0)
        LAUNCH(sgd, tune_cuda_blocks(n), THREADS, 0, tune_cuda_of(dev)->stream,
               tune_cuda_data<float>(w), tune_cuda_data<const float>(g), tune_cuda_data<float>(m),
               scalars(step), params, n);
    return tune_cuda_queued(dev);
}

__global__ void __launch_bounds__(THREADS)
    muon_moment(float *y, const float *g, float *m, const struct tune_scalars *s, float momentum,
                float rest, int64_t n)
{
    float scale = static_cast<float>(s->gradient_scale);
    for (int64_t i = tune_cuda_first(); i < n; i += tune_cuda_step()) {
        if (scale == 0) {
            y[i] = 0;
            continue;
        }
        float grad = g[i] * scale;
        m[i] += rest * (grad - m[i]);
        y[i] = grad + momentum * (m[i] - grad);
    }
}

extern "C" int tune_cuda_muon_moment(struct tune_device *dev, struct tune_tensor *y,
                                     const struct tune_tensor *g, struct tune_tensor *m,
                                     tune_address step, struct tune_update params)
{
    int64_t n = g->shape[0];
    if (n > 0)
        LAUNCH(muon_moment, tune_cuda_blocks(n), THREADS, 0, tune_cuda_of(dev)->stream,
               tune_cuda_data<float>(y), tune_cuda_data<const float>(g), tune_cuda_data<float>(m),
               scalars(step), static_cast<float>(params.momentum),
               static_cast<float>(1 - params.momentum), n);
    return tune_cuda_queued(dev);
}

__global__ void __launch_bounds__(THREADS)
    muon(float *w, const float *y, const struct tune_scalars *s, double size, struct tune_update u,
         int64_t n)
{
    double lr = s->lr * u.lr_scale;
    float keep = static_cast<float>(1 - lr * u.weight_decay), rate = static_cast<float>(lr * size);
    if (s->gradient_scale == 0)
        return;
    for (int64_t i = tune_cuda_first(); i < n; i += tune_cuda_step())
        w[i] = w[i] * keep - rate * y[i];
}

extern "C" int tune_cuda_muon(struct tune_device *dev, struct tune_tensor *w,
                              const struct tune_tensor *y, tune_address step, double size,
                              struct tune_update params)
{
    int64_t n = y->shape[0];
    if (n > 0)
        LAUNCH(muon, tune_cuda_blocks(n), THREADS, 0, tune_cuda_of(dev)->stream,
               tune_cuda_data<float>(w), tune_cuda_data<const float>(y), scalars(step), size,
               params, n);
    return tune_cuda_queued(dev);
}

__global__ void __launch_bounds__(THREADS)
    average(float *e, const float *w, const struct tune_scalars *s, double decay, int64_t n)
{
    double most = (1 + s->updates) / (10 + s->updates);
    float rest = static_cast<float>(1 - (decay < most ? decay : most));
    if (s->gradient_scale == 0)
        return;
    for (int64_t i = tune_cuda_first(); i < n; i += tune_cuda_step())
        e[i] += rest * (w[i] - e[i]);
}

extern "C" int tune_cuda_average(struct tune_device *dev, struct tune_tensor *e,
                                 const struct tune_tensor *w, tune_address step, double decay)
{
    int64_t n = w->shape[0];
    if (n > 0)
        LAUNCH(average, tune_cuda_blocks(n), THREADS, 0, tune_cuda_of(dev)->stream,
               tune_cuda_data<float>(e), tune_cuda_data<const float>(w), scalars(step), decay, n);
    return tune_cuda_queued(dev);
}
