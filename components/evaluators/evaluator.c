/* evaluator.c - one pass over the held-out rows, and early stopping. */
#include "evaluators/evaluator.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "loggers/logger.h"

struct tune_evaluator {
    struct tune_model *m;
    struct tune_loss *loss;
    struct tune_loader *load;
    struct tune_evaluator_options options;
};

struct tune_evaluator *tune_evaluator_new(struct tune_model *m, struct tune_loss *loss, struct tune_loader *load,
                                          const struct tune_evaluator_options *options)
{
    struct tune_evaluator *e = tune_zeroed(1, sizeof *e, "the evaluator");
    if (!e)
        return NULL;
    *e = (struct tune_evaluator){.m = m, .loss = loss, .load = load};
    if (options)
        e->options = *options;
    return e;
}

void tune_evaluator_free(struct tune_evaluator *e)
{
    if (!e)
        return;
    tune_loader_free(e->load);
    tune_dataset_free(e->options.data);
    free(e);
}

/* One pass over the rows. *at counts this pass only; at->signal: a signal interrupted it. loss
 * NULL: only read the rows. */
static int pass(struct tune_evaluator *e, struct tune_progress *at, double *loss)
{
    double sum = 0;
    int64_t labels = 0;
    int micros;
    if (e->options.data)
        TRY(tune_dataset_unchanged(e->options.data));
    TRY(tune_loader_rewind(e->load));
    while ((micros = tune_loader_more(e->load, at)) > 0) {
        while (micros-- > 0) {
            struct tune_batch batch;
            struct tune_tensor *hidden;
            TRY(tune_loader_next(e->load, &batch));
            labels += batch.label_count;
            if (!loss)
                continue;
            TRY(tune_model_infer(e->m, &batch, &hidden));
            TRY(tune_loss_forward(e->loss, hidden, &batch, &sum));
        }
        tune_progress_step(at, e->load);
    }
    TRY(micros);
    if (at->signal)
        return 0;
    if (!loss)
        return 0;
    if (!isfinite(sum))
        return tune_error_set("the loss on the rows held out is not finite; lower `lr`, or look "
                              "for NaN in the model's weights");
    *loss = sum / (double)labels;
    return 0;
}

int tune_evaluator_check(struct tune_evaluator *e)
{
    struct tune_progress at = {0};
    return e->load ? pass(e, &at, NULL) : 0;
}

int tune_evaluator_loss(struct tune_evaluator *e, double *loss)
{
    struct tune_progress at = {0};
    TRY(pass(e, &at, loss));
    return at.signal;
}

/* True if the last evaluation used up the patience. */
static bool spent(const struct tune_evaluator *e, const struct tune_progress *at)
{
    return e->options.patience > 0 && at->stale >= e->options.patience;
}

int tune_evaluator_run(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at)
{
    struct tune_progress own = {0};
    bool first = !at->evaluated;
    if (!e->load || at->signal || at->stopped || (at->evaluated && at->eval_step == at->step))
        return 0;
    TRY(log ? tune_logger_catch_up(log, at) : 0); /* the step's line comes before its evaluation */
    double loss = 0;
    struct tune_progress before = *at;
    TRY(pass(e, &own, &loss));
    if (own.signal) { /* a resumed run evaluates again */
        at->signal = own.signal;
        at->stopped = own.stopped;
        return 0;
    }
    at->evaluated = true;
    at->eval_loss = loss;
    at->eval_step = at->step;
    at->best = first || at->eval_loss < at->best_loss;
    if (at->best) {
        at->best_loss = at->eval_loss;
        at->best_step = at->step;
    }
    bool better = first || at->eval_loss < at->patience_loss - e->options.min_delta;
    at->stale = better ? 0 : at->stale + 1;
    if (better)
        at->patience_loss = at->eval_loss;
    at->early_stop = spent(e, at) && !at->finished;
    if (!log || tune_logger_evaluation(log, at) == 0)
        return 0;
    *at = before; /* an evaluation that is not in the metrics does not count */
    return -1;
}

int tune_evaluator_step(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at)
{
    return tune_every(at->step, e->options.every) ? tune_evaluator_run(e, log, at) : 0;
}

int tune_evaluator_resume(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at)
{
    at->early_stop = spent(e, at);
    return tune_evaluator_step(e, log, at);
}

int tune_evaluator_note(const struct tune_evaluator *e, struct tune_logger *log)
{
    char text[96];
    if (!e->load)
        return 0;
    if (e->options.data)
        TRY(tune_logger_eval_data(log, e->options.path, e->options.data));
    snprintf(text, sizeof text, "on %" PRId64 " rows", tune_loader_planned_rows(e->load));
    if (e->options.patience > 0)
        tune_append(text, sizeof text, "; the run ends after %d without a loss lower by more than %g", e->options.patience,
                    e->options.min_delta);
    return tune_logger_note(log, "evaluation", text);
}
