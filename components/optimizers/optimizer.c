/* optimizer.c - ranges of parameters with the same settings, each updated in one operation. */
#include "optimizers/optimizer.h"

#include <math.h>
#include <stdlib.h>

#include "core/try.h"
#include "devices/ops.h"

/* Adjacent parameters of a unit with the same learning rate and weight decay. */
struct run {
    int row; /* the first parameter */
    int unit;
    int64_t gradient, count;
    double lr_scale, weight_decay;
    bool adapter;
    bool frozen;      /* it has gradients, but is not trained now */
    int64_t shape[2]; /* of a single matrix that Muon updates; {0} for other runs */
};

struct tune_optimizer {
    struct tune_model *m;
    struct tune_device *dev;
    struct tune_optimizer_options options;
    tune_address updates; /* F64: updates so far, AdamW's t */
    tune_address work;    /* Muon's matrices, one after the other; 0: none */
    int64_t work_bytes;
    struct run *runs;
    int run_count;
    int ema;   /* kind of the averages; 0: none */
    bool half; /* a step began and failed before its end */
};

/* Make the runs by what the table says now: a recipe may change it between two steps. */
static void make_runs(struct tune_optimizer *opt)
{
    const struct tune_parameters *p = tune_model_parameters(opt->m);
    opt->run_count = 0;
    for (int i = 0; i < p->count; i++) {
        const struct tune_parameter *r = &p->at[i];
        bool decays = opt->options.decay == TUNE_DECAY_ALL || r->ndim == 2;
        double decay = r->weight_decay >= 0 ? r->weight_decay : decays ? opt->options.weight_decay : 0;
        if (r->gradient < 0)
            continue;
        struct run *last = opt->run_count > 0 ? &opt->runs[opt->run_count - 1] : NULL;
        /* Padding is zero in weights, gradients and moments, and stays zero. A run may include
         * it. */
        int64_t apart = last ? (r->offset - p->at[last->row].offset) / 4 : 0;
        bool same = last && last->unit == r->unit && last->weight_decay == decay && last->lr_scale == r->lr_scale && last->adapter == r->adapter &&
                    last->frozen != r->trainable;
        bool muon = opt->options.kind == TUNE_MUON && tune_parameter_is_hidden(r);
        struct run one = {i, r->unit, r->gradient, r->count, r->lr_scale, decay, r->adapter, !r->trainable, {muon ? r->shape[0] : 0, muon ? r->shape[1] : 0}};
        int64_t bytes = muon ? tune_muon_bytes(r->shape[0], r->shape[1]) : 0;
        opt->work_bytes = bytes > opt->work_bytes ? bytes : opt->work_bytes;
        if (same && !muon && last->shape[0] == 0 && apart == r->gradient - last->gradient)
            last->count = apart + r->count;
        else
            opt->runs[opt->run_count++] = one;
    }
}

/* Number of moment buffers. */
static int moments(const struct tune_optimizer_options *options)
{
    return options->kind != TUNE_SGD ? 2 : options->momentum > 0;
}

int64_t tune_optimizer_bytes(const struct tune_optimizer_options *options, int64_t gradients, int64_t muon)
{
    return gradients * moments(options) + (int64_t)sizeof(double) + (options->kind == TUNE_MUON ? muon : 0);
}

struct tune_optimizer *tune_optimizer_new(struct tune_model *m, const struct tune_optimizer_options *options)
{
    if (options->kind == TUNE_MUON && tune_model_is_sharded(m)) {
        tune_error_usage("`optimizer` muon updates whole matrices, and with `shard` a rank has parts of them; take `shard` ddp, or "
                         "`optimizer` adamw");
        return NULL;
    }
    if (tune_model_gradients(m) < 0)
        return NULL;
    /* there is never a second moment without a first */
    if (tune_model_state(m, TUNE_MOMENT_1).shape[0] > 0) {
        tune_error_set("the model has the moments of another optimizer; free that one first");
        return NULL;
    }
    struct tune_optimizer *opt = calloc(1, sizeof *opt);
    if (!opt || !(opt->runs = calloc((size_t)tune_model_parameters(m)->count, sizeof *opt->runs))) {
        tune_error_no_memory("the optimizer");
        free(opt);
        return NULL;
    }
    opt->m = m;
    opt->dev = tune_model_device(m);
    opt->options = *options;
    opt->updates = tune_device_alloc(opt->dev, (int64_t)sizeof(double), "the optimizer's count of steps");
    if (!opt->updates.at) {
        tune_optimizer_free(opt);
        return NULL;
    }
    for (int i = 0; i < moments(options); i++)
        if (tune_model_allocate_state(m, TUNE_MOMENT_1 + i, "the optimizer's moments") < 0) {
            tune_optimizer_free(opt);
            return NULL;
        }
    if (options->ema > 0 && (opt->ema = tune_model_averages(m)) < 0) {
        tune_optimizer_free(opt);
        return NULL;
    }
    make_runs(opt);
    if (opt->work_bytes > 0 && !(opt->work = tune_device_alloc(opt->dev, opt->work_bytes, "Muon's work")).at) {
        tune_optimizer_free(opt);
        return NULL;
    }
    return opt;
}

void tune_optimizer_free(struct tune_optimizer *opt)
{
    if (!opt)
        return;
    tune_model_release_state(opt->m, TUNE_MOMENT_1);
    tune_model_release_state(opt->m, TUNE_MOMENT_2);
    tune_device_free(opt->dev, opt->updates, (int64_t)sizeof(double));
    tune_device_free(opt->dev, opt->work, opt->work_bytes);
    free(opt->runs);
    free(opt);
}

/* The count of updates as an operation's tensor. */
static struct tune_tensor updates(const struct tune_optimizer *opt)
{
    return tune_tensor_1d(opt->updates, TUNE_F64, 1);
}

/* Refuse what a recipe wrote into the table and no step can do. */
static int check_table(const struct tune_parameters *p)
{
    for (int i = 0; i < p->count; i++) {
        const struct tune_parameter *r = &p->at[i];
        if (r->trainable && r->gradient < 0)
            return tune_error_set("%s was made trainable after the optimizer was made, and has no gradient; make it trainable before, and "
                                  "set `trainable` to false in the loop for as long as it shall stay as it is", r->name);
        if (r->gradient >= 0 && (!(r->lr_scale >= 0) || !isfinite(r->lr_scale) || isnan(r->weight_decay)))
            return tune_error_set("%s has lr_scale %g and weight_decay %g; expected a scale from 0 on, and a decay (below 0: the "
                                  "optimizer's)", r->name, r->lr_scale, r->weight_decay);
    }
    return 0;
}

/* Gradients of rows that are frozen for now count neither for the norm nor for the update. */
static int drop_frozen(struct tune_optimizer *opt)
{
    const struct tune_parameters *p = tune_model_parameters(opt->m);
    TRY(check_table(p));
    for (int i = 0; i < p->count; i++) {
        if (p->at[i].trainable || p->at[i].gradient < 0)
            continue;
        int64_t first = p->at[i].gradient, count = p->at[i].count;
        tune_model_own(opt->m, &first, &count);
        struct tune_tensor g = tune_model_owned(opt->m, TUNE_GRADIENT, first, count);
        TRY(count > 0 ? tune_zero(opt->dev, &g) : 0);
    }
    return 0;
}

int tune_optimizer_scale(struct tune_optimizer *opt, double clip_norm, struct tune_record *record)
{
    tune_address step = tune_record_step(record);
    if (!step.at)
        return -1;
    if (tune_model_is_apart(opt->m))
        return tune_error_set("the gradients of several ranks were not added up; call tune_model_reduce before tune_optimizer_scale");
    TRY(drop_frozen(opt));
    struct tune_tensor to = TUNE_SCALAR(step, updates), from = updates(opt);
    tune_device_does(opt->dev, TUNE_CLIP, -1, "");
    TRY(tune_model_sum_squares(opt->m, step));
    TRY(tune_copy(opt->dev, &to, &from));
    TRY(tune_finish_step(opt->dev, step, clip_norm));
    tune_record_scaled(record);
    return 0;
}

/* A part of a kind of values; NULL: the model has none. */
static struct tune_tensor *part(struct tune_optimizer *opt, int kind, int64_t first, int64_t count, struct tune_tensor *view)
{
    *view = tune_model_owned(opt->m, kind, first, count);
    return view->data.at ? view : NULL;
}

/* Make x [rows,columns] nearly orthogonal: its singular values come near to 1. Five steps of
 * Newton and Schulz; the result is in *x. Source: Jordan et al. 2024. */
static int orthogonal(struct tune_optimizer *opt, struct tune_tensor *x, struct tune_tensor *next, struct tune_tensor square[2])
{
    static const float a = 3.4445f, b = -4.7750f, c = 2.0315f;
    bool tall = x->shape[0] > x->shape[1];
    struct tune_tensor flat = tune_tensor_1d(x->data, TUNE_F32, x->shape[0] * x->shape[1]);
    TRY(tune_unit(opt->dev, &flat, 1e-7));
    for (int i = 0; i < 5; i++) {
        TRY(tune_gemm(opt->dev, &square[0], x, tall, x, !tall, 1, 0, TUNE_F32)); /* of the shorter side */
        TRY(tune_axpby(opt->dev, &square[1], &square[0], b, 0));
        TRY(tune_gemm(opt->dev, &square[1], &square[0], false, &square[0], false, c, 1, TUNE_F32));
        TRY(tune_axpby(opt->dev, next, x, a, 0));
        TRY(tall ? tune_gemm(opt->dev, next, x, false, &square[1], false, 1, 1, TUNE_F32)
                 : tune_gemm(opt->dev, next, &square[1], false, x, false, 1, 1, TUNE_F32));
        struct tune_tensor swap = *x;
        *x = *next;
        *next = swap;
    }
    return 0;
}

/* Update one matrix by Muon. Its step is as large as AdamW's mostly is (Liu et al. 2025), so one
 * learning rate suits both. */
static int muon(struct tune_optimizer *opt, const struct run *r, struct tune_tensor *w, const struct tune_tensor *g, struct tune_tensor *m,
                tune_address step, struct tune_update u)
{
    int64_t rows = r->shape[0], columns = r->shape[1], less = rows < columns ? rows : columns, more = rows + columns - less;
    tune_address at = opt->work, second = tune_address_plus(at, 4 * r->count), squares = tune_address_plus(at, 8 * r->count);
    struct tune_tensor x = tune_tensor_2d(at, TUNE_F32, rows, columns), next = tune_tensor_2d(second, TUNE_F32, rows, columns);
    struct tune_tensor square[2] = {tune_tensor_2d(squares, TUNE_F32, less, less),
                                    tune_tensor_2d(tune_address_plus(squares, 4 * less * less), TUNE_F32, less, less)};
    struct tune_tensor flat = tune_tensor_1d(at, TUNE_F32, r->count);
    u.momentum = opt->options.muon_momentum;
    TRY(tune_muon_moment(opt->dev, &flat, g, m, step, u));
    TRY(orthogonal(opt, &x, &next, square));
    flat = tune_tensor_1d(x.data, TUNE_F32, r->count);
    return tune_muon(opt->dev, w, &flat, step, 0.2 * sqrt((double)more), u);
}

static int update_run(struct tune_optimizer *opt, const struct run *r, tune_address step)
{
    const struct tune_optimizer_options *o = &opt->options;
    struct tune_update u = {.lr_scale = r->lr_scale, .weight_decay = r->weight_decay, .beta1 = o->beta1, .beta2 = o->beta2,
                            .eps = o->eps, .momentum = o->momentum};
    int64_t first = r->gradient, count = r->count;
    struct tune_tensor view[3];
    tune_model_own(opt->m, &first, &count);
    if (count == 0)
        return 0;
    struct tune_tensor w = tune_model_owned(opt->m, TUNE_WEIGHT, first, count);
    struct tune_tensor *g = part(opt, TUNE_GRADIENT, first, count, &view[0]);
    struct tune_tensor *m = part(opt, TUNE_MOMENT_1, first, count, &view[1]), *v = part(opt, TUNE_MOMENT_2, first, count, &view[2]);
    if (r->shape[0] > 0 && !r->frozen)
        TRY(muon(opt, r, &w, g, m, step, u));
    else if (!r->frozen)
        TRY(o->kind != TUNE_SGD ? tune_adamw(opt->dev, &w, g, m, v, step, u) : tune_sgd(opt->dev, &w, g, m, step, u));
    return opt->ema ? tune_average(opt->dev, part(opt, opt->ema, first, count, &view[0]), &w, step, o->ema) : 0;
}

/* Update the runs [begin, end), which are of one unit. With shards its weights go to the other ranks. */
static int update_unit(struct tune_optimizer *opt, int begin, int end, tune_address step)
{
    int unit = opt->runs[begin].unit, status;
    TRY(tune_unit_take_own(opt->m, unit));
    status = tune_device_group_begin(opt->dev);
    if (status == 0) {
        for (int i = begin; i < end && status == 0; i++)
            status = update_run(opt, &opt->runs[i], step);
        int ended = tune_device_group_end(opt->dev);
        status = status < 0 ? status : ended;
    }
    TRY(tune_unit_done_own(opt->m, unit, status));
    return tune_model_share_unit(opt->m, unit);
}

static int update(struct tune_optimizer *opt, tune_address step)
{
    for (int begin = 0, end; begin < opt->run_count; begin = end) {
        for (end = begin + 1; end < opt->run_count && opt->runs[end].unit == opt->runs[begin].unit;)
            end++;
        TRY(update_unit(opt, begin, end, step));
    }
    TRY(tune_model_shared(opt->m));
    struct tune_tensor to = updates(opt), from = TUNE_SCALAR(step, updates);
    return tune_copy(opt->dev, &to, &from);
}

int tune_optimizer_step(struct tune_optimizer *opt, double lr, struct tune_record *record)
{
    tune_address step = tune_record_update(record);
    if (!step.at)
        return -1;
    if (!isfinite(lr))
        return tune_error_set("the learning rate of a step is %g; expected a number", lr);
    TRY(check_table(tune_model_parameters(opt->m)));
    make_runs(opt);
    opt->half = true;
    tune_device_does(opt->dev, TUNE_UPDATE, -1, "");
    TRY(tune_set_lr(opt->dev, step, lr));
    TRY(tune_model_begin_averages(opt->m));
    TRY(update(opt, step));
    opt->half = false;
    tune_device_does(opt->dev, TUNE_AFTER, -1, "");
    return tune_record_end(record);
}

int64_t tune_optimizer_steps(const struct tune_optimizer *opt)
{
    double t;
    if (opt->half)
        return tune_error_set("the optimizer's last step failed after it had updated some weights");
    TRY(tune_device_download(opt->dev, &t, opt->updates, sizeof t));
    TRY(tune_device_sync(opt->dev));
    return (int64_t)t;
}

int tune_optimizer_set_steps(struct tune_optimizer *opt, int64_t steps)
{
    double t = (double)steps;
    return tune_device_upload(opt->dev, opt->updates, &t, sizeof t);
}
