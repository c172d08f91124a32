/* evaluator.c - one pass over the held-out rows, and early stopping. */
#include "evaluators/evaluator.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/comm.h"
#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "datasets/copies.h"
#include "datasets/dataset.h"
#include "evaluators/answering.h"
#include "loggers/logger.h"

struct tune_evaluator {
    struct tune_model *m;
    struct tune_loss *loss;
    struct rows {
        struct tune_loader *load;
        char name[48]; /* ""; or <set>_loss */
        bool general;  /* its loss does not count in that of all */
        double loss;   /* of the last evaluation */
    } rows[TUNE_DATASET_SETS];
    int count;
    struct tune_answering *answers[TUNE_EVAL_ANSWERS]; /* NULL: none */
    struct tune_evaluation general; /* sums of the last evaluation, over all general rows */
    char by[48]; /* the number that the best goes by */
    int better;  /* 1: higher values are; -1: lower ones */
    struct tune_evaluator_options options;
    bool compared; /* copies is known */
    struct tune_copies copies;
    tune_evaluate *evaluate;
    void *context;
};

/* The loss of one batch: cross entropy. */
static int cross_entropy(void *evaluator, const struct tune_batch *batch, struct tune_evaluation *sums)
{
    struct tune_evaluator *e = evaluator;
    struct tune_tensor *hidden;
    TRY(tune_model_infer(e->m, batch, &hidden));
    sums->count += (double)batch->label_count;
    return tune_loss_forward(e->loss, hidden, batch, &sums->loss);
}

void tune_evaluator_by(struct tune_evaluator *e, tune_evaluate *evaluate, void *context)
{
    e->evaluate = evaluate;
    e->context = context;
}

struct tune_evaluator *tune_evaluator_new(struct tune_model *m, struct tune_loss *loss, struct tune_loader *load,
                                          const struct tune_evaluator_options *options)
{
    struct tune_evaluator *e = tune_zeroed(1, sizeof *e, "the evaluator");
    if (!e)
        return NULL;
    e->m = m;
    e->loss = loss;
    e->rows[0].load = load;
    e->count = load != NULL;
    if (options)
        e->options = *options;
    tune_evaluator_by(e, cross_entropy, e);
    strcpy(e->by, "loss");
    e->better = -1;
    return e;
}

void tune_evaluator_free(struct tune_evaluator *e)
{
    if (!e)
        return;
    for (int k = 0; k < e->count; k++)
        tune_loader_free(e->rows[k].load);
    for (int i = 0; i < TUNE_EVAL_ANSWERS; i++)
        tune_answering_free(e->answers[i]);
    tune_dataset_free(e->options.data);
    tune_dataset_free(e->options.general_data);
    free(e);
}

static int add_rows(struct tune_evaluator *e, struct tune_loader *load, const char *name, bool general)
{
    struct rows *r = &e->rows[e->count];
    if (e->count == TUNE_DATASET_SETS || strlen(name) + sizeof "_loss" > sizeof r->name) {
        tune_loader_free(load);
        return tune_error_set("the evaluation of \"%.60s\": the name is too long, or it is one more than %d sets", name,
                              TUNE_DATASET_SETS);
    }
    r->load = load;
    snprintf(r->name, sizeof r->name, "%.42s%s", name, *name ? "_loss" : "");
    r->general = general;
    e->count++;
    return 0;
}

int tune_evaluator_add(struct tune_evaluator *e, struct tune_loader *load, const char *name)
{
    return add_rows(e, load, name, false);
}

int tune_evaluator_add_general(struct tune_evaluator *e, struct tune_loader *load, const char *name)
{
    return add_rows(e, load, name, true);
}

int tune_evaluator_answer(struct tune_evaluator *e, struct tune_answering *a)
{
    int i = 0;
    while (i < TUNE_EVAL_ANSWERS && e->answers[i])
        i++;
    if (i == TUNE_EVAL_ANSWERS) {
        tune_answering_free(a);
        return tune_error_set("an evaluation answers rows of at most %d kinds", TUNE_EVAL_ANSWERS);
    }
    e->answers[i] = a;
    return 0;
}

const struct tune_answering *tune_evaluator_answers(const struct tune_evaluator *e, int i)
{
    return e->answers[i];
}

int tune_evaluator_best_by(struct tune_evaluator *e, const char *name, int better)
{
    if (!*name || strlen(name) >= sizeof e->by)
        return tune_error_set("the best by \"%.60s\": expected a name of 1 to %zu characters", name, sizeof e->by - 1);
    strcpy(e->by, name);
    e->better = better < 0 ? -1 : 1;
    return 0;
}

/* The number of a metric; that of all: there is none with this name. */
static int find(const struct tune_evaluation *sums, const char *name)
{
    int i = 0;
    while (i < sums->metrics && strcmp(sums->metric[i].name, name))
        i++;
    return i;
}

int tune_evaluation_add(struct tune_evaluation *sums, const char *name, double more, double count)
{
    int i = find(sums, name);
    if (i == TUNE_EVAL_METRICS || strlen(name) >= sizeof sums->metric->name)
        return tune_error_set("evaluation: \"%.60s\" is too long, or one name more than the %d there is room for", name,
                              TUNE_EVAL_METRICS);
    if (i == sums->metrics)
        strcpy(sums->metric[sums->metrics++].name, name);
    sums->metric[i].sum += more;
    sums->metric[i].count += count;
    return 0;
}

int tune_evaluation_value(struct tune_evaluation *sums, const char *name, double value)
{
    TRY(tune_evaluation_add(sums, name, value, 1));
    sums->metric[find(sums, name)].of_answers = true;
    return 0;
}

int tune_evaluation_difference(struct tune_evaluation *sums, const char *name, const char *more, const char *less)
{
    int a = find(sums, more), b = find(sums, less);
    if (a == sums->metrics || b == sums->metrics)
        return 0;
    TRY(tune_evaluation_add(sums, name, 0, 0));
    int i = find(sums, name);
    sums->metric[i].more = a + 1;
    sums->metric[i].less = b + 1;
    return 0;
}

static double mean_of(const struct tune_evaluation *sums, int i)
{
    int more = sums->metric[i].more, less = sums->metric[i].less;
    return more ? mean_of(sums, more - 1) - mean_of(sums, less - 1) : sums->metric[i].sum / sums->metric[i].count;
}

/* Add the sums of one set of rows to those of all. */
static int add_metrics(struct tune_evaluation *sums, const struct tune_evaluation *own)
{
    for (int i = 0; i < own->metrics; i++)
        TRY(own->metric[i].more ? 0 : tune_evaluation_add(sums, own->metric[i].name, own->metric[i].sum, own->metric[i].count));
    for (int i = 0; i < own->metrics; i++)
        if (own->metric[i].more)
            TRY(tune_evaluation_difference(sums, own->metric[i].name, own->metric[own->metric[i].more - 1].name,
                                           own->metric[own->metric[i].less - 1].name));
    return 0;
}

/* One pass over rows. *at counts this pass only; at->signal: a signal interrupted it. each NULL: only
 * read the rows. */
static int pass(struct tune_loader *load, struct tune_progress *at, int (*each)(void *context, const struct tune_batch *batch),
                void *context)
{
    int micros;
    *at = (struct tune_progress){0};
    TRY(tune_loader_rewind(load));
    while ((micros = tune_loader_more(load, at)) > 0) {
        while (micros-- > 0) {
            struct tune_batch batch;
            TRY(tune_loader_next(load, &batch));
            TRY(each ? each(context, &batch) : 0);
        }
        tune_progress_step(at, load);
    }
    return micros;
}

static int unchanged(const struct tune_evaluator *e)
{
    TRY(e->options.data ? tune_dataset_unchanged(e->options.data) : 0);
    return e->options.general_data ? tune_dataset_unchanged(e->options.general_data) : 0;
}

int tune_evaluator_each_of(struct tune_evaluator *e, bool general, int (*each)(void *context, const struct tune_batch *batch), void *context)
{
    struct tune_progress at = {0};
    TRY(unchanged(e));
    for (int k = 0; k < e->count && !at.signal; k++)
        TRY(e->rows[k].general == general ? pass(e->rows[k].load, &at, each, context) : 0);
    return 0;
}

int tune_evaluator_each(struct tune_evaluator *e, int (*each)(void *context, const struct tune_batch *batch), void *context)
{
    TRY(tune_evaluator_each_of(e, false, each, context));
    return tune_evaluator_each_of(e, true, each, context);
}

int tune_evaluator_check(struct tune_evaluator *e)
{
    return tune_evaluator_each(e, NULL, NULL);
}

/* The evaluator and the sums of its evaluation. */
struct adding {
    struct tune_evaluator *e;
    struct tune_evaluation *sums;
};

static int add(void *adding, const struct tune_batch *batch)
{
    const struct adding *a = adding;
    return a->e->evaluate(a->e->context, batch, a->sums);
}

/* The sums of all ranks, added in their order. */
static int add_ranks(struct tune_evaluator *e, struct tune_evaluation *own)
{
    if (!e->options.comm || tune_comm_size(e->options.comm) == 1)
        return 0;
    struct tune_evaluation *all = tune_comm_gather(e->options.comm, "sums of an evaluation", own, sizeof *own);
    int status = all ? 0 : -1;
    *own = (struct tune_evaluation){0};
    for (int r = 0; status == 0 && r < tune_comm_size(e->options.comm); r++) {
        own->loss += all[r].loss;
        own->count += all[r].count;
        status = add_metrics(own, &all[r]);
    }
    free(all);
    return status;
}

static int add_all(struct tune_evaluator *e, struct tune_progress *at, struct tune_evaluation *sums)
{
    *sums = e->general = (struct tune_evaluation){0};
    TRY(unchanged(e));
    for (int k = 0; k < e->count; k++) {
        struct tune_evaluation own = {0};
        TRY(pass(e->rows[k].load, at, add, &(struct adding){e, &own}));
        if (at->signal)
            return 0;
        TRY(add_ranks(e, &own));
        e->rows[k].loss = own.loss / own.count;
        if (!isfinite(own.loss))
            return tune_error_set("the loss on the rows held out is not finite; lower `lr`, or look "
                                  "for NaN in the model's weights");
        struct tune_evaluation *to = e->rows[k].general ? &e->general : sums;
        to->loss += own.loss;
        to->count += own.count;
        TRY(add_metrics(to, &own));
    }
    return 0;
}

/* Rank 0 has answered: the others get its sums, and whether a signal came. */
static int share_answers(struct tune_model *m, struct tune_comm *c, struct tune_evaluation *sums, int *stopped)
{
    struct {
        struct tune_evaluation sums;
        int stopped;
    } of = {*sums, *stopped};
    TRY(tune_model_together(m, c, "answers of rank 0"));
    TRY(tune_comm_do(c, &(struct tune_collective){.kind = TUNE_BROADCAST, .what = "sums of answers", .to = &of, .count = 1, .element = sizeof of}));
    *sums = of.sums;
    *stopped = of.stopped;
    return 0;
}

/* The model answers rows, and their metrics are added. */
static int answer_all(struct tune_evaluator *e, struct tune_logger *log, int64_t step, struct tune_progress *at, struct tune_evaluation *sums)
{
    struct tune_comm *c = e->options.comm;
    int stopped = 0;
    if (!e->answers[0])
        return 0;
    if (!tune_comm_follows(c))
        tune_model_alone(e->m);
    for (int i = 0; i < TUNE_EVAL_ANSWERS && e->answers[i] && !stopped && (!c || tune_comm_rank(c) == 0); i++) {
        stopped = tune_answering_add(e->answers[i], log, step, sums);
        TRY(stopped);
    }
    if (c && tune_comm_size(c) > 1)
        TRY(share_answers(e->m, c, sums, &stopped));
    return stopped ? pass(e->rows[0].load, at, NULL, NULL) : 0; /* it ends at once, and says what the signal was */
}

/* Evaluate the averages of the weights, if the model keeps them. */
static int evaluate(struct tune_evaluator *e, struct tune_logger *log, int64_t step, struct tune_progress *at, struct tune_evaluation *sums)
{
    TRY(tune_model_exchange(e->m));
    int status = add_all(e, at, sums);
    if (status == 0)
        status = answer_all(e, log, step, at, sums);
    return tune_model_exchange(e->m) < 0 ? -1 : status;
}

int tune_evaluator_loss(struct tune_evaluator *e, double *loss)
{
    struct tune_progress at = {0};
    struct tune_evaluation sums;
    TRY(tune_model_exchange(e->m));
    int status = add_all(e, &at, &sums);
    TRY(tune_model_exchange(e->m));
    TRY(status);
    if (!at.signal)
        *loss = sums.loss / sums.count;
    return at.signal;
}

/* True if the last evaluation used up the patience. */
static bool spent(const struct tune_evaluator *e, const struct tune_progress *at)
{
    return e->options.patience > 0 && at->stale >= e->options.patience;
}

/* The numbers of an evaluation besides its loss. Returns how many. */
static int numbers_of(const struct tune_evaluator *e, double loss, const struct tune_evaluation *sums, struct tune_eval_metric *metrics)
{
    int n = 0, general = 0;
    for (int k = 0; k < e->count; k++)
        general += e->rows[k].general;
    if (general > 1)
        metrics[n++] = (struct tune_eval_metric){"general_loss", e->general.loss / e->general.count, true};
    for (int k = 0; k < e->count; k++)
        if (*e->rows[k].name)
            metrics[n++] = (struct tune_eval_metric){e->rows[k].name, e->rows[k].loss, e->rows[k].general};
    if (e->evaluate == cross_entropy)
        metrics[n++] = (struct tune_eval_metric){"perplexity", exp(loss), false};
    for (int i = 0; i < sums->metrics; i++)
        metrics[n++] = (struct tune_eval_metric){sums->metric[i].name, mean_of(sums, i), sums->metric[i].of_answers};
    for (int i = 0; i < n && i < 2; i++)
        metrics[i].shown = true;
    return n;
}

/* Find the number that the best goes by. One beyond all others, such as the perplexity of a large loss, is the worst. */
static int find_best(const struct tune_evaluator *e, const struct tune_progress *at, const struct tune_eval_metric *metrics, int n,
                     double *value)
{
    *value = at->eval_loss;
    if (!strcmp(e->by, "loss"))
        return 0;
    for (int i = 0; i < n; i++)
        if (!strcmp(metrics[i].name, e->by) && !isnan(metrics[i].value)) {
            *value = isinf(metrics[i].value) ? -e->better * DBL_MAX : metrics[i].value;
            return 0;
        }
    return tune_error_set("`best_by`: the evaluation of step %" PRId64 " gave no number eval_%s", at->eval_step, e->by);
}

/* True if the best so far went by another number. */
static bool begins_anew(const struct tune_evaluator *e, const struct tune_progress *at)
{
    return strcmp(*at->best_by ? at->best_by : "loss", e->by) != 0;
}

/* Set what an evaluation says of the best, and of the patience. The loss of a best by the loss is that of its step. */
static void judge(const struct tune_evaluator *e, struct tune_progress *at, double value)
{
    bool first = !at->evaluated || begins_anew(e, at);
    double more = e->better * value; /* of more, higher is better */
    if (!at->evaluated || (first && !strcmp(e->by, "loss")) || at->eval_loss < at->best_loss)
        at->best_loss = at->eval_loss;
    at->evaluated = true;
    strcpy(at->best_by, e->by);
    at->best = first || more > e->better * at->best_value;
    if (at->best) {
        at->best_value = value;
        at->best_step = at->step;
    }
    bool better = first || more > e->better * at->patience_loss + e->options.min_delta;
    at->stale = better ? 0 : at->stale + 1;
    if (better)
        at->patience_loss = value;
    at->early_stop = spent(e, at) && !at->finished;
}

/* Evaluate and log. only_log: it is no best, and *at stays. */
static int run(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at, bool only_log)
{
    struct tune_eval_metric metrics[TUNE_EVAL_METRICS + 2 + TUNE_DATASET_SETS];
    struct tune_progress own = {0}, now = *at;
    struct tune_evaluation sums;
    double value;
    TRY(log ? tune_logger_catch_up(log, at) : 0); /* the step's line comes before its evaluation */
    TRY(evaluate(e, log, at->step, &own, &sums));
    if (own.signal) { /* a resumed run evaluates again */
        at->signal = own.signal;
        at->stopped = own.stopped;
        return 0;
    }
    now.eval_loss = sums.loss / sums.count;
    now.eval_step = at->step;
    int n = numbers_of(e, now.eval_loss, &sums, metrics);
    TRY(find_best(e, &now, metrics, n, &value));
    judge(e, &now, value);
    TRY(log ? tune_logger_evaluation(log, &now, metrics, n) : 0); /* one that is not in the metrics does not count */
    if (!only_log)
        *at = now;
    return 0;
}

int tune_evaluator_run(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at)
{
    if (e->count == 0 || at->signal || at->stopped || (at->evaluated && at->eval_step == at->step))
        return 0;
    return run(e, log, at, false);
}

int tune_evaluator_step(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at)
{
    return tune_due(at, e->options.every) ? tune_evaluator_run(e, log, at) : 0;
}

int tune_evaluator_resume(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at)
{
    if (begins_anew(e, at))
        at->stale = 0;
    at->early_stop = spent(e, at);
    if (e->options.first && at->step == 0 && e->count > 0)
        return run(e, log, at, true);
    return tune_evaluator_step(e, log, at);
}

int tune_evaluator_compare(struct tune_evaluator *e, struct tune_dataset *train)
{
    const struct tune_loader *loads[TUNE_DATASET_SETS];
    int count = 0;
    for (int k = 0; k < e->count; k++)
        if (!e->rows[k].general)
            loads[count++] = e->rows[k].load;
    e->compared = count > 0;
    return e->compared ? tune_copies_count(&e->copies, train, loads, count) : 0;
}

/* Tell which rows to evaluate on are also trained on, and what was not looked at. */
static int note_copies(const struct tune_evaluator *e, struct tune_logger *log)
{
    const struct tune_copies *c = &e->copies;
    char text[TUNE_DATASET_SOURCE_SIZE + 400], where[TUNE_DATASET_SOURCE_SIZE];
    if (c->uncounted) {
        snprintf(text, sizeof text, "not looked for among %" PRId64 " rows to evaluate on, since there are more than %" PRId64
                 "; `eval_rows` takes fewer", c->rows, TUNE_COPIES_ROWS);
        return tune_logger_note(log, "copies", text);
    }
    if (c->unlike > 0) {
        snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " rows to evaluate on are of another kind of file than the rows to "
                 "train on, so copies among them are not seen", c->unlike, c->rows);
        TRY(tune_logger_note(log, "copies", text));
    }
    if (c->copies == 0)
        return 0;
    snprintf(text, sizeof text, "%" PRId64 " of %" PRId64 " rows to evaluate on are copies of rows to train on, the first is %s; "
             "take them out of one of the files, or hold rows out by `train_split`, which keeps copies together%s", c->copies,
             c->rows, tune_dataset_source(tune_loader_dataset(e->rows[0].load), c->first, where, sizeof where),
             e->options.data ? "" : " with `split_by` content");
    return tune_logger_note(log, "warning: copies", text);
}

int tune_evaluator_note(const struct tune_evaluator *e, struct tune_logger *log)
{
    char text[256];
    int64_t rows = 0, general = 0;
    for (int k = 0; k < e->count; k++)
        *(e->rows[k].general ? &general : &rows) += tune_loader_planned_rows(e->rows[k].load);
    if (e->count == 0)
        return 0;
    if (e->options.data)
        TRY(tune_logger_eval_data(log, e->options.path, e->options.data));
    if (e->options.general_data)
        TRY(tune_logger_general_data(log, e->options.general, e->options.general_data));
    snprintf(text, sizeof text, "on %" PRId64 " rows", rows);
    if (general > 0)
        tune_append(text, sizeof text, ", and apart on %" PRId64 " general ones", general);
    if (strcmp(e->by, "loss") != 0)
        tune_append(text, sizeof text, "; the best has the %s %s", e->better > 0 ? "highest" : "lowest", e->by);
    if (e->options.patience > 0)
        tune_append(text, sizeof text, "; the run ends after %d without a %s %s by more than %g", e->options.patience, e->by,
                    e->better > 0 ? "higher" : "lower", e->options.min_delta);
    TRY(tune_logger_note(log, "evaluation", text));
    for (int i = 0; i < TUNE_EVAL_ANSWERS && e->answers[i]; i++)
        TRY(tune_answering_note(e->answers[i], log));
    return e->compared ? note_copies(e, log) : 0;
}
