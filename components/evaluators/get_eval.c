/* get_eval.c - the evaluator that the flags ask for. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "evaluators/evaluator.h"
#include "evaluators/get_answering.h"
#include "flags/flags.h"

enum {
    NAME = TUNE_ANSWERING_NAME, /* room for the name of a set */
    /* of an evaluation: metrics, the loss of each set, loss, perplexity and general_loss. With the
     * step they stay below TUNE_METRICS_MOST */
    NUMBERS = TUNE_EVAL_METRICS + TUNE_DATASET_SETS + 3
};

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
    if (flags->eval.general && tune_get_sequences(flags) > 0)
        return tune_error_usage("--general-dataset has one answer in a row, and these rows are preferences; leave it out. "
                                "evaluate measures a checkpoint on other rows");
    if (flags->eval.metrics && tune_get_sequences(flags) > 0)
        return tune_error_usage("--eval-metrics compares an answer with the one of its row, and a row of preferences has no "
                                "such answer; leave it out. Accuracies and margins are measured anyway, and evaluate measures "
                                "a checkpoint's answers");
    for (int i = 0; i < 2 && !flags->eval.metrics; i++)
        if (tune_flags_differs(flags, i ? "eval-tokens" : "eval-answers"))
            return tune_error_usage("--%s is for --eval-metrics; give --eval-metrics NAMES, or leave it out", i ? "eval-tokens" : "eval-answers");
    if (flags->eval.path || split)
        return 0;
    if (flags->eval.metrics)
        return nothing("--eval-metrics");
    if (flags->eval.general)
        return nothing("--general-dataset is beside rows of your own");
    if (flags->eval.every != 0)
        return nothing("--eval-every");
    if (flags->eval.first)
        return nothing("--eval-first");
    if (flags->eval.best_by)
        return nothing("--best-by");
    if (flags->loader.max_steps == 0)
        return nothing("--max-steps 0 only evaluates");
    return flags->eval_rows > 0 ? nothing("--eval-rows") : 0;
}

/* One pass over a part of data, or of one of its joined sets. most above 0: at most that many rows,
 * drawn with the seed; of a set, its share of them. */
static struct tune_loader *rows(const struct tune_flags *flags, struct tune_dataset *data, int set, enum tune_part part, int64_t most)
{
    struct tune_loader_options options = {
        .comm = flags->comm,
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

/* Names that are logged for each set: those of the files, without folder and ending, behind prefix. */
static void name_sets(struct tune_dataset *data, const char *prefix, char names[][NAME])
{
    for (int k = 0; k < tune_dataset_sets(data); k++) {
        const char *path = tune_dataset_path(tune_dataset_set(data, k)), *slash = path ? strrchr(path, '/') : NULL;
        const char *stem = slash ? slash + 1 : path ? path : "rows";
        bool again = false;
        int size = snprintf(names[k], NAME, "%s%s%.*s", prefix, *prefix ? "_" : "", (int)strcspn(stem, "."), stem);
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

static int add_rows(struct tune_evaluator *e, const struct tune_flags *flags, const struct tune_evaluated *of)
{
    int sets = tune_dataset_sets(of->data);
    bool general = of->which == TUNE_ROWS_GENERAL;
    name_sets(of->data, of->name, of->names);
    for (int k = 0; k < sets; k++) {
        struct tune_loader *load = rows(flags, of->data, sets > 1 ? k + 1 : 0, of->which == TUNE_ROWS_TRAINING ? TUNE_HELD_OUT : TUNE_ALL,
                                        flags->eval_rows);
        const char *name = sets > 1 ? of->names[k] : of->name;
        if (!load) {
            if (sets > 1)
                tune_error_prefix("%s: ", tune_dataset_path(tune_dataset_set(of->data, k)));
            return -1;
        }
        TRY(general ? tune_evaluator_add_general(e, load, name) : tune_evaluator_add(e, load, name));
    }
    return 0;
}

/* Note the rows of a batch. With packing, a row has many positions, one after the other. */
static int note_rows(void *evaluated, const struct tune_batch *batch)
{
    struct tune_evaluated *of = evaluated;
    for (int b = 0; b < batch->B; b++)
        for (int t = 0; t < batch->T; t++) {
            int64_t row = tune_batch_row(batch, b, t);
            size_t room = (size_t)of->room;
            if (row < 0 || (of->count > 0 && of->rows[of->count - 1] == row))
                continue;
            TRY(tune_array_reserve(&of->rows, &room, (size_t)of->count + 1, sizeof *of->rows, "rows to evaluate on"));
            of->room = (int64_t)room;
            of->rows[of->count++] = row;
        }
    return 0;
}

/* The error is about these rows, unless a rank has ended. Returns -1. */
static int about_rows(const struct tune_flags *flags, enum tune_rows_of which)
{
    if (tune_comm_has_failed(flags->comm))
        return -1;
    return tune_error_prefix("%s: ", which == TUNE_ROWS_GENERAL ? "--general-dataset" : which == TUNE_ROWS_TRAINING ? "--train-split holds out" : "--eval-dataset");
}

/* Add rows of one kind, read them once, and have some of them answered if metrics ask for it. */
static int add_kind(struct tune_evaluator *e, const struct tune_flags *flags, struct tune_model *m, struct tune_dataset *train,
                    struct tune_tokenizer *tok, struct tune_evaluated *of)
{
    TRY(add_rows(e, flags, of));
    if (tune_evaluator_each_of(e, of->which == TUNE_ROWS_GENERAL, flags->eval.metrics ? note_rows : NULL, of) < 0)
        return about_rows(flags, of->which);
    if (!flags->eval.metrics)
        return 0;
    struct tune_answering *a = tune_get_answering(flags, m, train, tok, of);
    return a ? tune_evaluator_answer(e, a) : -1;
}

/* ---- --best-by ---- */
/* Names of numbers, and whether higher ones are better. */
struct number_names {
    char name[NUMBERS][64];
    int better[NUMBERS], count, of_answers;
};

static int find_name(const struct number_names *n, const char *name)
{
    int i = n->count - 1;
    while (i >= 0 && strcmp(n->name[i], name))
        i--;
    return i;
}

static int add_name(struct number_names *n, const char *set, const char *metric, int better)
{
    char name[64];
    snprintf(name, sizeof name, "%.24s%s%s", set, *set ? "_" : "", metric);
    if (find_name(n, name) >= 0)
        return tune_error_usage("two numbers of an evaluation would be called eval_%s, by the names of files; rename one of them", name);
    strcpy(n->name[n->count], name);
    n->better[n->count++] = better;
    return 0;
}

/* The numbers that rows of one kind give. */
static int add_names(struct number_names *n, const struct tune_evaluated *of, const struct tune_answering *a)
{
    int sets = tune_dataset_sets(of->data);
    if (sets > 1 && *of->name)
        TRY(add_name(n, of->name, "loss", -1));
    for (int k = 0; k < sets && (sets > 1 || *of->name); k++)
        TRY(add_name(n, sets > 1 ? of->names[k] : of->name, "loss", -1));
    for (int k = 0; a && k < a->set_count; k++)
        for (int m = 0; m < a->metrics && a->sets[k].rows > 0; m++) {
            if (n->of_answers++ == TUNE_EVAL_METRICS)
                return tune_error_usage("an evaluation has room for %d metrics, and these files have more, each of them and all "
                                        "together; name fewer files or metrics", TUNE_EVAL_METRICS);
            TRY(add_name(n, a->sets[k].name, a->metric[m]->name, a->metric[m]->better));
        }
    return 0;
}

/* The first metric of a group's name: exact_match stands for exact_match_raw. Names with commas between are no group. */
static const char *first_of_group(const char *name)
{
    const struct tune_score *found[TUNE_ANSWERING_METRICS];
    int count = strchr(name, ',') ? 0 : tune_score_list(name, found, TUNE_ANSWERING_METRICS);
    if (count < 0)
        tune_error_clear();
    return count > 0 ? found[0]->name : name;
}

static int settle_best(struct tune_evaluator *e, const struct tune_flags *flags, const struct number_names *n)
{
    const char *given = flags->eval.best_by, *name = given && !strncmp(given, "eval_", 5) ? given + 5 : given;
    char all[2048] = "";
    if (!given)
        return 0;
    int i = find_name(n, name);
    if (i < 0)
        i = find_name(n, first_of_group(name));
    if (i >= 0 && n->better[i] == 0)
        return tune_error_usage("--best-by %s: neither a higher nor a lower value of it is better", given);
    if (i >= 0)
        return tune_evaluator_best_by(e, n->name[i], n->better[i]);
    for (i = 0; i < n->count; i++)
        if (n->better[i] != 0)
            tune_append_item(all, sizeof all, "%s", n->name[i]);
    return tune_error_usage("--best-by %s: an evaluation of this run has no such number; it has %s%s", given, all,
                            tune_get_sequences(flags) ? "" : ". --eval-metrics adds others");
}

/* All numbers of an evaluation, and the one that the best goes by. */
static int settle_numbers(struct tune_evaluator *e, const struct tune_flags *flags, const struct tune_evaluated *own,
                          const struct tune_evaluated *general)
{
    struct number_names n = {.count = 0};
    TRY(add_name(&n, "", "loss", -1));
    TRY(tune_get_sequences(flags) ? 0 : add_name(&n, "", "perplexity", -1));
    TRY(add_names(&n, own, tune_evaluator_answers(e, 0)));
    if (general->data)
        TRY(add_names(&n, general, tune_evaluator_answers(e, 1)));
    if (tune_get_sequences(flags) == 2)
        TRY(add_name(&n, "", "rewards/accuracies", 1));
    if (tune_get_sequences(flags))
        TRY(add_name(&n, "", "rewards/margins", 1));
    return settle_best(e, flags, &n);
}

/* ---- the evaluator ---- */
/* Look for copies of rows to train on. A split by content has none. A resumed run told it at its
 * beginning. */
static int compare(struct tune_evaluator *e, const struct tune_flags *flags, struct tune_dataset *train)
{
    bool apart = !flags->eval.path && flags->loader.split_by == TUNE_SPLIT_BY_CONTENT;
    if (apart || flags->loader.max_steps == 0 || flags->resume_checkpoint || !tune_dataset_stamp(train))
        return 0;
    return tune_evaluator_compare(e, train);
}

/* Fill the evaluator with rows. Data sets besides data are in options of e. */
static int fill(struct tune_evaluator *e, const struct tune_flags *flags, const struct tune_evaluator_options *o, struct tune_model *m,
                struct tune_dataset *data, struct tune_tokenizer *tok)
{
    char names[TUNE_DATASET_SETS][NAME], general_names[TUNE_DATASET_SETS][NAME];
    struct tune_evaluated own = {o->data ? TUNE_ROWS_EVALUATION : TUNE_ROWS_TRAINING, o->data ? o->data : data, names, "", NULL, 0, 0};
    struct tune_evaluated general = {TUNE_ROWS_GENERAL, o->general_data, general_names, "general", NULL, 0, 0};
    int status = add_kind(e, flags, m, data, tok, &own);
    if (status == 0 && compare(e, flags, data) < 0)
        status = about_rows(flags, own.which);
    if (status == 0 && general.data)
        status = add_kind(e, flags, m, data, tok, &general);
    if (status == 0)
        status = settle_numbers(e, flags, &own, &general);
    free(own.rows);
    free(general.rows);
    return status;
}

struct tune_evaluator *tune_get_eval(const struct tune_flags *flags, struct tune_model *m, struct tune_loss *loss,
                                     struct tune_dataset *data, struct tune_tokenizer *tok)
{
    struct tune_evaluator_options options = flags->eval;
    options.comm = flags->comm;
    if (check(flags) < 0 || (options.path && !(options.data = tune_get_eval_dataset(flags, tok))))
        return NULL;
    if (options.general && !(options.general_data = tune_get_general_dataset(flags, tok))) {
        tune_dataset_free(options.data);
        return NULL;
    }
    struct tune_evaluator *e = tune_evaluator_new(m, loss, NULL, &options);
    if (!e) {
        tune_dataset_free(options.data);
        tune_dataset_free(options.general_data);
        return NULL;
    }
    if ((!options.path && flags->loader.train_split >= 1) || fill(e, flags, &options, m, data, tok) == 0)
        return e;
    tune_evaluator_free(e);
    return NULL;
}
