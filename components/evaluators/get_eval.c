/* get_eval.c - the evaluator that the flags ask for. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "evaluators/evaluator.h"
#include "flags/flags.h"

enum { NAME = 34 }; /* room for the name of a set */

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
    if (flags->eval.every != 0)
        return nothing("--eval-every");
    if (flags->loader.max_steps == 0)
        return nothing("--max-steps 0 only evaluates");
    return flags->eval_rows > 0 ? nothing("--eval-rows") : 0;
}

/* One pass over a part of data, or of one of its joined sets. most above 0: at most that many rows,
 * drawn with the seed; of a set, its share of them. */
static struct tune_loader *rows(const struct tune_flags *flags, struct tune_dataset *data, int set, enum tune_part part, int64_t most)
{
    struct tune_loader_options options = {
        .part = part,
        .only_set = set,
        .train_split = flags->loader.train_split,
        .split_by = flags->loader.split_by,
        .seed = (uint64_t)flags->seed,
        .packing = flags->loader.packing,
        .sequences = tune_get_sequences(flags),
        .batch_size = flags->loader.batch_size,
        .accumulate = 1,
        .pad_to_multiple_of = tune_get_loader_options(flags).pad_to_multiple_of,
        .max_length = flags->data.max_length,
        .epochs = 1,
        .max_steps = -1,
        .stop_after_seconds = -1,
        .stop_signal = flags->stop_signal,
    };
    struct tune_loader *load = tune_loader_new(data, &options);
    int64_t all = load ? tune_loader_rows(load) : 0;
    if (set > 0 && most > 0) {
        double share = (double)tune_dataset_rows(tune_dataset_set(data, set - 1)) / (double)tune_dataset_rows(data);
        most = (int64_t)ceil((double)most * share);
    }
    if (most <= 0 || all <= most)
        return load;
    tune_loader_free(load);
    options.shuffle = true;
    options.epochs = (double)most / (double)all;
    return tune_loader_new(data, &options);
}

/* Names that are logged for each set: those of the files, without folder and ending. */
static void name_sets(struct tune_dataset *data, char names[][NAME])
{
    for (int k = 0; k < tune_dataset_sets(data); k++) {
        const char *path = tune_dataset_path(tune_dataset_set(data, k)), *slash = path ? strrchr(path, '/') : NULL;
        const char *stem = slash ? slash + 1 : path ? path : "rows";
        bool again = false;
        int size = snprintf(names[k], NAME, "%.*s", (int)strcspn(stem, "."), stem);
        size = size >= NAME - 4 ? NAME - 4 : size;
        for (int i = 0; i < size; i++)
            if (!isalnum((unsigned char)names[k][i]) && names[k][i] != '-')
                names[k][i] = '_';
        names[k][size] = 0;
        for (int l = 0; l < k; l++)
            again = again || !strcmp(names[l], names[k]);
        if (again)
            snprintf(names[k] + size, (size_t)(NAME - size), "_%d", k + 1);
    }
}

static int add_rows(struct tune_evaluator *e, const struct tune_flags *flags, struct tune_dataset *data, enum tune_part part)
{
    char names[TUNE_DATASET_SETS][NAME];
    int sets = tune_dataset_sets(data);
    name_sets(data, names);
    for (int k = 0; k < sets; k++) {
        struct tune_loader *load = rows(flags, data, sets > 1 ? k + 1 : 0, part, flags->eval_rows);
        if (!load) {
            if (sets > 1)
                tune_error_prefix("%s: ", tune_dataset_path(tune_dataset_set(data, k)));
            return -1;
        }
        TRY(tune_evaluator_add(e, load, sets > 1 ? names[k] : ""));
    }
    return 0;
}

/* Look for copies of rows to train on. A split by content has none. A resumed run told it at its
 * beginning. */
static int compare(struct tune_evaluator *e, const struct tune_flags *flags, struct tune_dataset *train)
{
    bool apart = !flags->eval.path && flags->loader.split_by == TUNE_SPLIT_BY_CONTENT;
    if (apart || flags->loader.max_steps == 0 || flags->resume_checkpoint || !tune_dataset_stamp(train))
        return 0;
    return tune_evaluator_compare(e, train);
}

struct tune_evaluator *tune_get_eval(const struct tune_flags *flags, struct tune_model *m, struct tune_loss *loss,
                                     struct tune_dataset *data, struct tune_tokenizer *tok)
{
    struct tune_evaluator_options options = flags->eval;
    struct tune_evaluator *e = NULL;
    bool file = flags->eval.path != NULL;
    if (check(flags) < 0 || (file && !(options.data = tune_get_eval_dataset(flags, tok))))
        return NULL;
    if (!file && flags->loader.train_split >= 1)
        return tune_evaluator_new(m, loss, NULL, &options);
    e = tune_evaluator_new(m, loss, NULL, &options);
    if (!e) {
        tune_dataset_free(options.data);
        return NULL;
    }
    if (add_rows(e, flags, file ? options.data : data, file ? TUNE_ALL : TUNE_HELD_OUT) < 0) {
        tune_evaluator_free(e);
        return NULL;
    }
    if (tune_evaluator_check(e) < 0 || compare(e, flags, data) < 0) {
        tune_error_prefix("%s: ", file ? "--eval-dataset" : "--train-split holds out");
        tune_evaluator_free(e);
        return NULL;
    }
    return e;
}
