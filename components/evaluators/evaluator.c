/* evaluator.c - one pass over the held-out rows. */
#include "evaluators/evaluator.h"

#include <math.h>
#include <stdlib.h>

#include "core/try.h"
#include "loggers/logger.h"

struct tune_evaluator {
    struct tune_model *m;
    struct tune_loss *loss;
    struct tune_loader *load;
};

struct tune_evaluator *tune_evaluator_new(struct tune_model *m, struct tune_loss *loss, struct tune_loader *load)
{
    struct tune_evaluator *e = calloc(1, sizeof *e);
    if (!e) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for the evaluator");
        return NULL;
    }
    *e = (struct tune_evaluator){m, loss, load};
    return e;
}

void tune_evaluator_free(struct tune_evaluator *e)
{
    if (!e)
        return;
    tune_loader_free(e->load);
    free(e);
}

int tune_evaluator_loss(struct tune_evaluator *e, double *loss)
{
    struct tune_progress at = {0};
    double sum = 0;
    int64_t labels = 0;
    int micros;
    TRY(tune_loader_rewind(e->load));
    while ((micros = tune_loader_more(e->load, &at)) > 0) {
        while (micros-- > 0) {
            struct tune_batch batch;
            struct tune_tensor *hidden;
            TRY(tune_loader_next(e->load, &batch));
            if (batch.label_count == 0)
                continue;
            TRY(tune_model_forward(e->m, &batch, &hidden));
            TRY(tune_loss_forward(e->loss, hidden, &batch, &sum));
            labels += batch.label_count;
        }
        tune_progress_step(&at, e->load);
    }
    TRY(micros);
    if (labels == 0) {
        tune_error_set("the held-out rows have not one label; lower --train-split, or check --response-template and --max-length");
        return -1;
    }
    if (!isfinite(sum)) {
        tune_error_set("the loss on the held-out rows is not finite; lower --lr, or look for NaN in the model's weights");
        return -1;
    }
    *loss = sum / (double)labels;
    return 0;
}

int tune_evaluator_run(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at)
{
    bool first = at->eval_step == 0;
    if (!e->load || at->signal || at->step == 0 || at->eval_step == at->step)
        return 0;
    TRY(tune_evaluator_loss(e, &at->eval_loss));
    at->eval_step = at->step;
    at->best = first || at->eval_loss < at->best_loss;
    if (at->best)
        at->best_loss = at->eval_loss;
    return log ? tune_logger_evaluation(log, at) : 0;
}
