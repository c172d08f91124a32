/* question.h - questions about a sample store. The answer to each is a table (answer.h).
 *
 *     struct tune_question q = {.store = store, .about = "space.yaml", .maximize = "speed"};
 *     struct tune_answer_table *best = tune_ask_best(&q);
 *     if (!best)
 *         return -1;      tune_error_message() says why
 *
 * Questions print nothing and measure nothing. They only read the store. */
#ifndef TUNE_ANSWERS_QUESTION_H
#define TUNE_ANSWERS_QUESTION_H

#include "sweeps/answers/answer.h"
#include "sweeps/answers/arrange.h"
#include "sweeps/stores/store.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A member that is zero asks for nothing special. Texts are borrowed. Lists are names separated by
 * commas. */
struct tune_question {
    struct tune_store *store;
    const char *experiments; /* files and folders of experiments, in addition to the store's */
    /* A space file, the id of a recorded space ("space-1a2b3c"), an experiment, an operation, or
     * the identifier of an entity. NULL: the store's only space, else its only experiment */
    const char *about;
    bool brief;              /* for people: leave out what only programs need */

    /* Which results are read */
    bool matching;           /* include results of operations on other spaces */
    const char *operation;   /* only this operation's; of halving, the last rung */
    /* "last" (default): for each experiment, the build that measured last. Else "previous", "all",
     * or the beginning of a build id */
    const char *build;
    const char *where;       /* an expression over inputs, targets, new columns and facts.h */
    /* a CSV file with more names for `where` and `derive`, such as a price for each model
     * (spaces/lookup.h) */
    const char *table;
    const char *derive;      /* new columns: "usd = 3.2 * seconds / 3600; cheap = usd < 1" */
    const char *entity;      /* points, results, command: identifier of an entity of the space */
    /* show: what measured this point, "batch_size=4,lr=0.1". predict: only this one */
    const char *point;
    const char *points;      /* predict: a CSV file of points, in place of those of the space */
    int entities;            /* predict: most points of the space; 0: 1000, for best 20000 */
    bool predicted;          /* best: those that were not measured, by a model */

    /* Which figures are shown */
    const char *properties;  /* list of targets and new columns */
    bool all_properties;     /* include those that the experiment hides */
    const char *aggregate;   /* how to aggregate several results, see tune_statistic */
    const char *maximize, *minimize; /* lists, for best, plot and compare */
    const char *per;         /* best: list of dimensions; the best for each value */
    int most;                /* best: how many; 0: 5, with `per` 1, a Pareto front: all */
    const char *x, *series, *facet;  /* effect and plot */
    const char *sides[2];    /* of compare */
    const char *regression;  /* compare: a share, "5%" */
    const char *labels;      /* status: list of "key=value", the labels of spaces */
    /* The store is a stranger's: open no program, model or data file that its experiments name.
     * Then `missing` does not say whether sweep would use the stored results. Of a space with more
     * than a million entities, it lists only those that somebody tried. Notes say so */
    bool confined;
    struct tune_arrangement arrange;
};

/* All return the answer, which the caller frees with tune_answer_free. NULL with an error; its kind
 * is USAGE for a bad question.
 *
 * tune_ask_show - list what was measured. The rows depend on the subject:
 * - a space: each entity under each experiment
 * - an experiment: its rows in the store
 * - an operation: its requests, in their order
 * - an entity: each of its figures
 * - with `point`: the experiments and operations that measured it
 * tune_ask_best - find the entities with the best figure, their margin, and whether it is
 * significant. Two or three figures give the Pareto front. With `predicted`, find the unmeasured
 * entities from which a model expects most.
 * tune_ask_effect - show the effect of a dimension, all else equal: ratios between entities that
 * differ only in it. A model of the results adds the share of the variance that it explains.
 * tune_ask_predict - ask a model of one property about each point. The answer has the mean, the
 * 95 % interval of a new measurement, and the nearest measured point. Or it says why nothing is
 * known there.
 * tune_ask_compare - compare two sides, entity by entity. A side is a configuration
 * ("batch_size=2"), a build, a host, an operation or a store.
 * tune_ask_plot - list the points of a plot: x, figure, spread, and the values of dimensions. Where
 * the points were sampled, further rows are a line by a model. `line_over` names its x axis, and
 * `line_by` says what it is. The spread is its 95 % interval.
 * tune_ask_missing - list the entities of a space that have no valid result, and why. If brief,
 * group them by reason.
 * tune_ask_status - count the contents of the store, a space or an operation.
 * tune_ask_points - list the entities of a space under each experiment, with state and figures. The
 * state is measured (a result is valid), failed, invalid, or missing (nobody tried). Results of all
 * operations count, unless one is named.
 * tune_ask_results - list all results of `entity`, by any operation: status, reason, operation,
 * request, time, host, build, and figures.
 * tune_ask_export - list all rows of all experiments in the store.
 * tune_ask_command - the command line that measures the best entity. With `entity`: the commands
 * that measure it, one for each experiment with a program. */
struct tune_answer_table *tune_ask_show(const struct tune_question *q);
struct tune_answer_table *tune_ask_best(const struct tune_question *q);
struct tune_answer_table *tune_ask_effect(const struct tune_question *q);
struct tune_answer_table *tune_ask_predict(const struct tune_question *q);
struct tune_answer_table *tune_ask_compare(const struct tune_question *q);
struct tune_answer_table *tune_ask_plot(const struct tune_question *q);
struct tune_answer_table *tune_ask_missing(const struct tune_question *q);
struct tune_answer_table *tune_ask_status(const struct tune_question *q);
struct tune_answer_table *tune_ask_points(const struct tune_question *q);
struct tune_answer_table *tune_ask_results(const struct tune_question *q);
struct tune_answer_table *tune_ask_export(const struct tune_question *q);
struct tune_answer_table *tune_ask_command(const struct tune_question *q);

/* The questions by name: "show", "best", "effect", "predict", "compare", "plot", "missing",
 * "status", "points", "results", "export", "command".
 *
 * options: what the question takes besides store, subject and sides, each between spaces:
 * " where derive group_by ". They are the options of tools/samples.c, with _ for -. */
struct tune_question_kind {
    const char *name;
    struct tune_answer_table *(*ask)(const struct tune_question *q);
    const char *options;
};

/* tune_question_find - the question of that name; NULL: there is none.
 * tune_question_takes - whether it takes the option; - and _ are the same.
 * tune_question_set - set an option of q from its text, which is borrowed. -1 with an error of kind
 * USAGE: the question does not take it, or the text is no value of it. */
const struct tune_question_kind *tune_question_find(const char *name);
bool tune_question_takes(const struct tune_question_kind *kind, const char *option);
int tune_question_set(struct tune_question *q, const struct tune_question_kind *kind,
                      const char *option, const char *text);

#ifdef __cplusplus
}
#endif
#endif
