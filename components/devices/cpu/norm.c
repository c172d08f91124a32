/* norm.c - RMSNorm over rows, and over the heads of a row. */
#include "devices/cpu/cpu.h"

#include <math.h>

static float row_rstd(const float *x, int64_t n, float eps)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return (float)(1.0 / sqrt(sum / (double)n + (double)eps));
}

/* dx of one row, with g = dy w. add: add to dx instead of setting it. */
static void row_backward(float *dx, bool add, float *dw, const float *dy, const float *x, const float *w, float plus,
                         float rstd, int64_t n)
{
    double dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < n; i++)
        dot += (double)(dy[i] * (w[i] + plus)) * x[i];
    float mean = (float)(dot / (double)n * rstd * rstd);
    if (dw)
        for (int64_t i = 0; i < n; i++)
            dw[i] += dy[i] * x[i] * rstd;
    if (add)
        for (int64_t i = 0; i < n; i++)
            dx[i] += rstd * (dy[i] * (w[i] + plus) - x[i] * mean);
    else
        for (int64_t i = 0; i < n; i++)
            dx[i] = rstd * (dy[i] * (w[i] + plus) - x[i] * mean);
}

int tune_cpu_headnorm_forward(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *rstd,
                              const struct tune_tensor *x, const struct tune_tensor *w, int first, int heads, float eps, float plus)
{
    int64_t N = x->shape[0], Q = x->shape[1], D = w->shape[0];
    const float *weight = tune_cpu_data(w);
    if (tune_cpu_reserve(dev, 2 * D) < 0)
        return -1;
#pragma omp parallel for num_threads(tune_cpu_threads(dev, N * heads * D)) schedule(static)
    for (int64_t n = 0; n < N; n++)
        for (int64_t h = 0; h < heads; h++) {
            int64_t at = n * Q + (first + h) * D;
            float *work = tune_cpu_work(dev);
            const float *in = tune_cpu_in(x, at, D, work);
            float *out = tune_cpu_target(y, at, work + D), s = row_rstd(in, D, eps);
            if (rstd)
                ((float *)tune_cpu_data(rstd))[n * heads + h] = s;
            for (int64_t i = 0; i < D; i++)
                out[i] = (weight[i] + plus) * (in[i] * s);
            tune_cpu_out(y, at, D, out);
        }
    return 0;
}

/* RMSNorm of a row is the head norm with one head. */
int tune_cpu_rmsnorm_forward(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *rstd,
                             const struct tune_tensor *x, const struct tune_tensor *w, float eps, float plus)
{
    return tune_cpu_headnorm_forward(dev, y, rstd, x, w, 0, 1, eps, plus);
}

/* Add the threads' partial sums of dw, in the order of threads. Each is [width], at the front of
 * the thread's working memory. */
static void add_partial(struct tune_device *dev, float *dw, int64_t width)
{
    struct tune_cpu *cpu = dev->state;
    for (int t = 0; t < cpu->team; t++)
        for (int64_t i = 0; i < width; i++)
            dw[i] += cpu->work[t * cpu->floats + i];
}

/* Backward of the heads in rows [N,Q]. add: add to dx; otherwise set it, which may be dy. */
static int heads_backward(struct tune_device *dev, struct tune_tensor *dx, bool add, struct tune_tensor *dw,
                          const struct tune_tensor *dy, const struct tune_tensor *x, const struct tune_tensor *w,
                          const struct tune_tensor *rstd, int first, int heads, float plus)
{
    int64_t N = x->shape[0], Q = x->shape[1], D = w->shape[0];
    const float *s = tune_cpu_data(rstd);
    if (tune_cpu_reserve(dev, 4 * D) < 0)
        return -1;
#pragma omp parallel num_threads(tune_cpu_threads(dev, N * heads * D))
    {
        int64_t begin, end;
        float *work = tune_cpu_work(dev);
        tune_cpu_team(dev);
        memset(work, 0, (size_t)D * 4);
        tune_cpu_piece(N, 1, &begin, &end);
        for (int64_t n = begin; n < end; n++)
            for (int64_t h = 0; h < heads; h++) {
                int64_t at = n * Q + (first + h) * D;
                float *out = tune_cpu_target(dx, at, work + D);
                tune_cpu_in(dx, at, D, out); /* the old dx, which may be added to */
                row_backward(out, add, dw ? work : NULL, tune_cpu_in(dy, at, D, work + 2 * D),
                             tune_cpu_in(x, at, D, work + 3 * D), tune_cpu_data(w), plus, s[n * heads + h], D);
                tune_cpu_out(dx, at, D, out);
            }
    }
    if (dw)
        add_partial(dev, tune_cpu_data(dw), D);
    return 0;
}

int tune_cpu_rmsnorm_backward(struct tune_device *dev, struct tune_tensor *dx, struct tune_tensor *dw,
                              const struct tune_tensor *dy, const struct tune_tensor *x, const struct tune_tensor *w,
                              const struct tune_tensor *rstd, float plus)
{
    return heads_backward(dev, dx, true, dw, dy, x, w, rstd, 0, 1, plus);
}

int tune_cpu_headnorm_backward(struct tune_device *dev, struct tune_tensor *dy, struct tune_tensor *dw,
                               const struct tune_tensor *x, const struct tune_tensor *w, const struct tune_tensor *rstd,
                               int first, int heads, float plus)
{
    return heads_backward(dev, dy, false, dw, dy, x, w, rstd, first, heads, plus);
}
