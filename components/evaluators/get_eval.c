/* get_eval.c - the evaluator that the flags ask for. */
#include "core/error.h"
#include "datasets/dataset.h"
#include "evaluators/evaluator.h"
#include "flags/flags.h"

static int nothing(const char *option)
{
    return tune_error_usage("%s, but no rows are held out to evaluate on; give --eval-dataset "
                            "FILE, or --train-split below 1, say 0.95", option);
}

static int check(const struct tune_flags *flags)
{
    bool split = flags->loader.train_split < 1;
    if (flags->eval.path && split)
        return tune_error_usage("--eval-dataset and --train-split below 1 both say what to "
                                "evaluate on; leave one of them out");
    if (flags->eval.patience > 0 && flags->eval.every == 0)
        return tune_error_usage("--patience counts evaluations, and without --eval-every "
                                "there is one, at the end; give --eval-every N");
    if (flags->eval.min_delta > 0 && flags->eval.patience == 0)
        return tune_error_usage("--min-delta is what --patience goes by; give --patience N, or "
                                "leave it out");
    if (flags->eval.path || split)
        return 0;
    if (flags->eval.every > 0)
        return nothing("--eval-every");
    if (flags->loader.max_steps == 0)
        return nothing("--max-steps 0 only evaluates");
    return flags->eval_rows > 0 ? nothing("--eval-rows") : 0;
}

/* One pass over a part of data. most above 0: at most that many rows, drawn with the seed. */
static struct tune_loader *rows(const struct tune_flags *flags, struct tune_dataset *data, enum tune_part part, int64_t most)
{
    struct tune_loader_options options = {
        .part = part,
        .train_split = flags->loader.train_split,
        .seed = (uint64_t)flags->seed,
        .packing = flags->loader.packing,
        .pairs = flags->data.pairs,
        .batch_size = flags->loader.batch_size,
        .accumulate = 1,
        .max_length = flags->data.max_length,
        .epochs = 1,
        .max_steps = -1,
        .stop_after_seconds = -1,
        .stop_signal = flags->stop_signal,
    };
    struct tune_loader *load = tune_loader_new(data, &options);
    int64_t all = load ? tune_loader_rows(load) : 0;
    if (most <= 0 || all <= most)
        return load;
    tune_loader_free(load);
    options.shuffle = true;
    options.epochs = (double)most / (double)all;
    return tune_loader_new(data, &options);
}

struct tune_evaluator *tune_get_eval(const struct tune_flags *flags, struct tune_model *m, struct tune_loss *loss,
                                     struct tune_dataset *data, struct tune_tokenizer *tok)
{
    struct tune_evaluator_options options = flags->eval;
    struct tune_loader *load = NULL;
    struct tune_evaluator *e = NULL;
    bool file = flags->eval.path != NULL;
    if (check(flags) < 0 || (file && !(options.data = tune_get_eval_dataset(flags, tok))))
        return NULL;
    if (!file && flags->loader.train_split >= 1)
        return tune_evaluator_new(m, loss, NULL, &options);
    load = rows(flags, file ? options.data : data, file ? TUNE_ALL : TUNE_HELD_OUT, flags->eval_rows);
    if (load)
        e = tune_evaluator_new(m, loss, load, &options);
    if (!e) {
        tune_loader_free(load);
        tune_dataset_free(options.data);
    }
    if (e && tune_evaluator_check(e) < 0) {
        tune_error_prefix("%s: ", file ? "--eval-dataset" : "--train-split holds out");
        tune_evaluator_free(e);
        return NULL;
    }
    return e;
}
