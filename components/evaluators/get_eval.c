/* get_eval.c - the evaluator over the rows that the flags hold out. */
#include "core/error.h"
#include "evaluators/evaluator.h"
#include "flags/flags.h"

struct tune_evaluator *tune_get_eval(const struct tune_flags *flags, struct tune_model *m, struct tune_loss *loss,
                                     struct tune_dataset *data)
{
    struct tune_loader *load = NULL;
    if (flags->eval_every > 0 && flags->train_split >= 1) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "--eval-every %d, but no rows are held out to evaluate on; give --train-split below "
                            "1, say 0.95", flags->eval_every);
        return NULL;
    }
    if (flags->train_split < 1) {
        load = tune_loader_new(data, &(struct tune_loader_options){
                                         .part = TUNE_HELD_OUT,
                                         .train_split = flags->train_split,
                                         .seed = (uint64_t)flags->seed,
                                         .batch_size = flags->batch_size,
                                         .accumulate = 1,
                                         .max_length = flags->max_length,
                                         .epochs = 1,
                                         .max_steps = -1,
                                         .stop_after_seconds = -1,
                                         .unlabelled = true,
                                     });
        if (!load)
            return NULL;
    }
    struct tune_evaluator *e = tune_evaluator_new(m, loss, load);
    if (!e)
        tune_loader_free(load);
    return e;
}
