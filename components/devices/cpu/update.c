/* update.c - gradient norm, AdamW, SGD, Muon, averages: one pass over the flat buffers. */
#include "devices/cpu/cpu.h"

#include <math.h>

#include "devices/record.h"

/* Without this attribute, clang without -fno-math-errno does not vectorize the loop of adamw. */
extern float sqrtf(float x) __attribute__((const));

int tune_cpu_sum_squares(struct tune_device *dev, tune_address step, const struct tune_tensor *numbers)
{
    struct tune_cpu *cpu = dev->state;
    const float *x = tune_cpu_data(numbers);
    int64_t n = numbers->shape[0];
#pragma omp parallel num_threads(tune_cpu_threads(dev, n))
    {
        int64_t begin, end;
        double total = 0;
        tune_cpu_team(dev);
        tune_cpu_piece(n, 4096, &begin, &end);
#pragma omp simd reduction(+ : total)
        for (int64_t i = begin; i < end; i++)
            total += (double)x[i] * x[i];
        cpu->partial[omp_get_thread_num()] = total;
    }
    for (int t = 0; t < cpu->team; t++)
        ((struct tune_scalars *)tune_cpu_pointer(step))->square_sum += cpu->partial[t];
    return 0;
}

/* ---- the step's scalars ---- */

int tune_cpu_begin_step(struct tune_device *dev, tune_address step)
{
    struct tune_scalars *s = tune_cpu_pointer(step);
    (void)dev;
    *s = (struct tune_scalars){.step = s->step + 1, .begin_s = tune_clock_s()};
    return 0;
}

int tune_cpu_begin_pass(struct tune_device *dev, tune_address step, double more)
{
    (void)dev;
    ((struct tune_scalars *)tune_cpu_pointer(step))->pass += more;
    return 0;
}

int tune_cpu_add_labels(struct tune_device *dev, tune_address step, double labels, double chunks)
{
    struct tune_scalars *s = tune_cpu_pointer(step);
    (void)dev;
    s->labels += labels;
    s->chunks += chunks;
    return 0;
}

int tune_cpu_add_loss(struct tune_device *dev, tune_address step, double loss)
{
    (void)dev;
    ((struct tune_scalars *)tune_cpu_pointer(step))->loss_sum += loss;
    return 0;
}

int tune_cpu_add_divisor(struct tune_device *dev, tune_address step, double more)
{
    (void)dev;
    ((struct tune_scalars *)tune_cpu_pointer(step))->divisor += more;
    return 0;
}

int tune_cpu_set_lr(struct tune_device *dev, tune_address step, double lr)
{
    (void)dev;
    ((struct tune_scalars *)tune_cpu_pointer(step))->lr = lr;
    return 0;
}

int tune_cpu_end_step(struct tune_device *dev, struct tune_tensor *slot, tune_address step)
{
    struct tune_scalars *s = tune_cpu_pointer(step);
    (void)dev;
    s->end_s = tune_clock_s();
    memcpy(tune_cpu_data(slot), s, sizeof *s);
    return 0;
}

int tune_cpu_finish_step(struct tune_device *dev, tune_address step, double clip_norm)
{
    struct tune_scalars *s = tune_cpu_pointer(step);
    double n = s->divisor != 0 ? s->divisor : s->labels;
    (void)dev;
    s->grad_norm = sqrt(s->square_sum) / n;
    s->not_finite = !isfinite(s->grad_norm) || !isfinite(s->loss_sum);
    double factor = clip_norm > 0 ? clip_norm / (s->grad_norm + 1e-6) : 1;
    s->updates += !s->not_finite;
    s->gradient_scale = s->not_finite ? 0 : (factor < 1 ? factor : 1) / n;
    return 0;
}

/* ---- updates ---- */

int tune_cpu_adamw(struct tune_device *dev, struct tune_tensor *weights, const struct tune_tensor *gradients,
                   struct tune_tensor *moment1, struct tune_tensor *moment2, tune_address step, struct tune_update params)
{
    const struct tune_scalars *s = tune_cpu_pointer(step);
    const struct tune_update *u = &params;
    float *w = tune_cpu_data(weights), *m = tune_cpu_data(moment1), *v = tune_cpu_data(moment2);
    const float *g = tune_cpu_data(gradients);
    int64_t count = gradients->shape[0];
    float scale = (float)s->gradient_scale, b1 = (float)u->beta1, b2 = (float)u->beta2, eps = (float)u->eps;
    float a1 = (float)(1 - u->beta1), a2 = (float)(1 - u->beta2);
    if (scale == 0)
        return 0;
    double lr = s->lr * u->lr_scale;
    float keep = (float)(1 - lr * u->weight_decay), rate = (float)(lr / (1 - pow(u->beta1, s->updates)));
    float root = (float)(1 / sqrt(1 - pow(u->beta2, s->updates)));
#pragma omp parallel num_threads(tune_cpu_threads(dev, count))
    {
        int64_t begin, end;
        tune_cpu_piece(count, 4096, &begin, &end);
#pragma omp simd
        for (int64_t i = begin; i < end; i++) {
            float grad = g[i] * scale;
            float m1 = b1 * m[i] + a1 * grad, v1 = b2 * v[i] + a2 * grad * grad;
            m[i] = m1;
            v[i] = v1;
            w[i] = w[i] * keep - rate * m1 / (sqrtf(v1) * root + eps);
        }
    }
    return 0;
}

int tune_cpu_sgd(struct tune_device *dev, struct tune_tensor *weights, const struct tune_tensor *gradients,
                 struct tune_tensor *moment, tune_address step, struct tune_update params)
{
    const struct tune_update *u = &params;
    float *w = tune_cpu_data(weights), *m = tune_cpu_data(moment);
    const float *g = tune_cpu_data(gradients);
    int64_t count = gradients->shape[0];
    const struct tune_scalars *s = tune_cpu_pointer(step);
    float scale = (float)s->gradient_scale, momentum = (float)u->momentum, lr = (float)(s->lr * u->lr_scale);
    float keep = (float)(1 - s->lr * u->lr_scale * u->weight_decay);
    if (scale == 0)
        return 0;
#pragma omp parallel num_threads(tune_cpu_threads(dev, count))
    {
        int64_t begin, end;
        tune_cpu_piece(count, 4096, &begin, &end);
        for (int64_t i = begin; i < end; i++) {
            float grad = g[i] * scale;
            if (m)
                grad = m[i] = momentum * m[i] + grad;
            w[i] = w[i] * keep - lr * grad;
        }
    }
    return 0;
}

int tune_cpu_muon_moment(struct tune_device *dev, struct tune_tensor *to, const struct tune_tensor *gradients,
                         struct tune_tensor *moment, tune_address step, struct tune_update params)
{
    float *y = tune_cpu_data(to), *m = tune_cpu_data(moment);
    const float *g = tune_cpu_data(gradients);
    int64_t count = gradients->shape[0];
    const struct tune_scalars *s = tune_cpu_pointer(step);
    float scale = (float)s->gradient_scale, momentum = (float)params.momentum, rest = (float)(1 - params.momentum);
    if (scale == 0) {
        memset(y, 0, (size_t)count * sizeof *y);
        return 0;
    }
#pragma omp parallel num_threads(tune_cpu_threads(dev, count))
    {
        int64_t begin, end;
        tune_cpu_piece(count, 4096, &begin, &end);
#pragma omp simd
        for (int64_t i = begin; i < end; i++) {
            float grad = g[i] * scale;
            m[i] += rest * (grad - m[i]);
            y[i] = grad + momentum * (m[i] - grad);
        }
    }
    return 0;
}

int tune_cpu_unit(struct tune_device *dev, struct tune_tensor *numbers, double least)
{
    struct tune_cpu *cpu = dev->state;
    float *y = tune_cpu_data(numbers);
    int64_t count = numbers->shape[0];
#pragma omp parallel num_threads(tune_cpu_threads(dev, count))
    {
        int64_t begin, end;
        double squares = 0;
        tune_cpu_team(dev);
        tune_cpu_piece(count, 4096, &begin, &end);
#pragma omp simd reduction(+ : squares)
        for (int64_t i = begin; i < end; i++)
            squares += (double)y[i] * y[i];
        cpu->partial[omp_get_thread_num()] = squares;
#pragma omp barrier
        squares = 0;
        for (int part = 0; part < cpu->team; part++)
            squares += cpu->partial[part];
        float by = (float)(1 / fmax(sqrt(squares), least));
        for (int64_t i = begin; i < end; i++)
            y[i] *= by;
    }
    return 0;
}

int tune_cpu_muon(struct tune_device *dev, struct tune_tensor *weights, const struct tune_tensor *direction, tune_address step,
                  double size, struct tune_update params)
{
    float *w = tune_cpu_data(weights);
    const float *y = tune_cpu_data(direction);
    int64_t count = direction->shape[0];
    const struct tune_scalars *s = tune_cpu_pointer(step);
    double lr = s->lr * params.lr_scale;
    float keep = (float)(1 - lr * params.weight_decay), rate = (float)(lr * size);
    if (s->gradient_scale == 0)
        return 0;
#pragma omp parallel num_threads(tune_cpu_threads(dev, count))
    {
        int64_t begin, end;
        tune_cpu_piece(count, 4096, &begin, &end);
        for (int64_t i = begin; i < end; i++)
            w[i] = w[i] * keep - rate * y[i];
    }
    return 0;
}

int tune_cpu_average(struct tune_device *dev, struct tune_tensor *average, const struct tune_tensor *weights, tune_address step,
                     double decay)
{
    float *e = tune_cpu_data(average);
    const float *w = tune_cpu_data(weights);
    int64_t count = weights->shape[0];
    const struct tune_scalars *s = tune_cpu_pointer(step);
    double most = (1 + s->updates) / (10 + s->updates);
    float rest = (float)(1 - (decay < most ? decay : most));
    if (s->gradient_scale == 0)
        return 0;
#pragma omp parallel num_threads(tune_cpu_threads(dev, count))
    {
        int64_t begin, end;
        tune_cpu_piece(count, 4096, &begin, &end);
#pragma omp simd
        for (int64_t i = begin; i < end; i++)
            e[i] += rest * (w[i] - e[i]);
    }
    return 0;
}
