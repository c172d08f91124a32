/* optimizer.c - runs of parameters that decay alike, updated in one pass each. */
#include "optimizers/optimizer.h"

#include <stdlib.h>

#include "core/try.h"
#include "devices/kernels.h"

/* Neighbours in weights and gradients with the same decay. */
struct run {
    float *weight;
    int64_t gradient, count;
    bool decays, adapter;
};

struct tune_optimizer {
    struct tune_model *m;
    struct tune_device *dev;
    struct tune_optimizer_options options;
    double *updates; /* on the device: t so far */
    struct run *runs;
    int run_count;
    bool half; /* a step began, and an error kept it from its end */
};

static void make_runs(struct tune_optimizer *opt)
{
    const struct tune_parameters *p = tune_model_parameters(opt->m);
    for (int i = 0; i < p->count; i++) {
        const struct tune_parameter *r = &p->at[i];
        bool decays = opt->options.decay_all || r->ndim == 2;
        float *weight = tune_model_tensor(opt->m, r).data;
        if (r->gradient < 0)
            continue;
        struct run *last = opt->run_count > 0 ? &opt->runs[opt->run_count - 1] : NULL;
        /* padding between two rows is zero in weights, gradients and moments, and stays zero: runs may span it */
        if (last && last->decays == decays && last->adapter == r->adapter && weight - last->weight == r->gradient - last->gradient)
            last->count = weight - last->weight + r->count;
        else
            opt->runs[opt->run_count++] = (struct run){weight, r->gradient, r->count, decays, r->adapter};
    }
}

/* Buffers of the gradients' size. */
static int moments(const struct tune_optimizer_options *options)
{
    return options->kind == TUNE_ADAMW ? 2 : options->momentum > 0;
}

int64_t tune_optimizer_bytes(const struct tune_optimizer_options *options, int64_t gradients)
{
    return gradients * moments(options) + (int64_t)sizeof *((struct tune_optimizer *)NULL)->updates;
}

struct tune_optimizer *tune_optimizer_new(struct tune_model *m, const struct tune_optimizer_options *options)
{
    if (tune_model_gradients(m) < 0)
        return NULL;
    struct tune_optimizer *opt = calloc(1, sizeof *opt);
    if (!opt || !(opt->runs = calloc((size_t)tune_model_parameters(m)->count, sizeof *opt->runs))) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for the optimizer");
        free(opt);
        return NULL;
    }
    opt->m = m;
    opt->dev = tune_model_device(m);
    opt->options = *options;
    opt->updates = tune_device_alloc(opt->dev, sizeof *opt->updates, "the optimizer's count of steps");
    if (!opt->updates) {
        tune_optimizer_free(opt);
        return NULL;
    }
    for (int i = 0; i < moments(options); i++)
        if (tune_model_keep(m, TUNE_MOMENT_1 + i, "the optimizer's moments") < 0) {
            tune_optimizer_free(opt);
            return NULL;
        }
    make_runs(opt);
    return opt;
}

void tune_optimizer_free(struct tune_optimizer *opt)
{
    if (!opt)
        return;
    tune_model_drop(opt->m, TUNE_MOMENT_1);
    tune_model_drop(opt->m, TUNE_MOMENT_2);
    tune_device_free(opt->dev, opt->updates, sizeof *opt->updates);
    free(opt->runs);
    free(opt);
}

int tune_optimizer_clip(struct tune_optimizer *opt, double clip_norm, struct tune_sums *sums)
{
    struct tune_scalars *s = tune_sums_device(sums);
    if (!s)
        return -1;
    struct tune_tensor g = tune_model_kept(opt->m, TUNE_GRADIENT);
    TRY(tune_sum_squares(opt->dev, g.data, g.shape[0], &s->square_sum));
    TRY(opt->dev->kernels->copy(opt->dev, &s->updates, opt->updates, sizeof *opt->updates));
    TRY(tune_finish_step(opt->dev, s, clip_norm));
    tune_sums_scale(sums);
    return 0;
}

int tune_optimizer_step(struct tune_optimizer *opt, double lr, struct tune_sums *sums)
{
    const struct tune_optimizer_options *o = &opt->options;
    const struct tune_scalars *scalars = tune_sums_scaled(sums);
    if (!scalars)
        return -1;
    const double *scale = &scalars->gradient_scale;
    float *g = tune_model_kept(opt->m, TUNE_GRADIENT).data, *moment1 = tune_model_kept(opt->m, TUNE_MOMENT_1).data;
    float *moment2 = tune_model_kept(opt->m, TUNE_MOMENT_2).data;
    struct tune_update u = {.lr = lr, .beta1 = o->beta1, .beta2 = o->beta2, .eps = o->eps, .momentum = o->momentum,
                            .updates = &scalars->updates};
    opt->half = true;
    for (int i = 0; i < opt->run_count; i++) {
        const struct run *r = &opt->runs[i];
        float *m = moment1 ? moment1 + r->gradient : NULL;
        u.weight_decay = r->decays ? o->weight_decay : 0;
        if (o->kind == TUNE_ADAMW)
            TRY(tune_adamw(opt->dev, r->weight, g + r->gradient, m, moment2 + r->gradient, r->count, &u, scale));
        else
            TRY(tune_sgd(opt->dev, r->weight, g + r->gradient, m, r->count, &u, scale));
    }
    TRY(opt->dev->kernels->copy(opt->dev, opt->updates, &scalars->updates, sizeof *opt->updates));
    opt->half = false;
    tune_sums_end(sums, lr);
    return 0;
}

int64_t tune_optimizer_steps(const struct tune_optimizer *opt)
{
    double updates;
    if (opt->half) {
        tune_error_set("the optimizer's last step ended by an error, half of the weights are of it");
        return -1;
    }
    TRY(opt->dev->kernels->download(opt->dev, &updates, opt->updates, sizeof updates));
    TRY(opt->dev->kernels->sync(opt->dev));
    return (int64_t)updates;
}

int tune_optimizer_set_steps(struct tune_optimizer *opt, int64_t steps)
{
    double updates = (double)steps;
    return opt->dev->kernels->upload(opt->dev, opt->updates, &updates, sizeof updates);
}
