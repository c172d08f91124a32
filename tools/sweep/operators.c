/* operators.c - from the parameters of an operator of ado to a command of ours. */
#include "sweep.h"

#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "core/print.h"
#include "core/try.h"

/* A command that is being written. */
struct command {
    struct tune_document *d;
    const struct operator_words *words;
    FILE *out;
    char left[512];     /* parameters that it leaves out, with commas */
    char rules[256];    /* of --stop-when */
    const char *order;
    int64_t entities;
};

/* ---- parameters without a counterpart ---- */

static void leave(struct command *c, const char *prefix, const char *name)
{
    tune_append_item(c->left, sizeof c->left, "%s%s", prefix, name);
}

/* Leave out all keys of a map but the known ones, "metric|mode". */
static void leave_others(struct command *c, const struct tune_node *map, const char *prefix, const char *known)
{
    char names[256], *text = names;
    for (int i = 0; map && map->type == TUNE_NODE_MAP && i < map->count; i++) {
        const char *key = map->keys[i]->value.text;
        bool found = false;
        snprintf(names, sizeof names, "%s", known);
        text = names;
        for (char *name; (name = strsep(&text, "|"));)
            found = found || !strcmp(name, key);
        if (!found)
            leave(c, prefix, key);
    }
}

/* ---- options ---- */

static void write_option(struct command *c, const char *option, const char *word)
{
    fprintf(c->out, " %s ", option);
    tune_print_word(c->out, word);
}

/* Write the option with the number under a key of a map, if there is one. */
static int write_whole(struct command *c, const struct tune_node *map, const char *key, const char *option)
{
    char text[24];
    int64_t value = 0;
    TRY(tune_document_whole(c->d, map, key, false, &value));
    if (value <= 0)
        return 0;
    snprintf(text, sizeof text, "%lld", (long long)value);
    write_option(c, option, text);
    return 0;
}

static void write_begin(struct command *c, const char *order)
{
    c->order = order;
    fprintf(c->out, "%s --order %s", c->words->sweep, order);
}

static void write_entities(struct command *c)
{
    if (c->entities > 0)
        fprintf(c->out, " --entities %lld", (long long)c->entities);
}

static void write_answer(struct command *c, const char *question, const char *property)
{
    fprintf(c->out, "samples %s %s", question, c->words->subject);
    if (property)
        write_option(c, "--property", property);
}

/* ---- Ray Tune ---- */

static const struct {
    const char *name, *order;
} searchers[] = {
    {"variant_generator", "random"}, {"random", "random"}, {"lhu_sampler", "sobol"}, {"optuna", "model"}, {"hyperopt", "model"},
    {"bayesopt", "model"}, {"hebo", "model"}, {"bohb", "model"}, {"nevergrad", "model"}, {"zoopt", "model"}, {"ax", "model"},
    {"vizier", "model"},
};
enum { SEARCHERS = sizeof searchers / sizeof *searchers };

static int find_searcher(const struct tune_document *d, const struct tune_node *searcher, const char *name)
{
    const char *names[SEARCHERS];
    char hint[TUNE_HINT];
    for (int i = 0; i < SEARCHERS; i++)
        names[i] = searchers[i].name;
    int i = tune_name_find(names, SEARCHERS, name);
    return i >= 0 ? i : tune_document_fail(d, tune_node_get(searcher, "name"), "ray_tune has no searcher %s%s", name,
                                           tune_nearest_hint(name, names, SEARCHERS, hint));
}

/* A property's name without its experiment, which comes first in the format `observed`. */
static const char *target_of(const char *metric, bool observed)
{
    const char *dash = observed ? strrchr(metric, '-') : NULL;
    return dash ? dash + 1 : metric;
}

static int texts_of(struct tune_document *d, const struct tune_node *map, const char *key, const char ***texts, int *count)
{
    const struct tune_node *node = tune_node_get(map, key);
    if (tune_node_none(node) || node->type == TUNE_NODE_LIST)
        return tune_document_texts(d, map, key, false, texts, count);
    if (!(*texts = tune_document_take(d, sizeof **texts)))
        return -1;
    *count = 1;
    return tune_document_text(d, map, key, true, *texts);
}

/* Write --minimize and --maximize. Returns the number of properties. */
static int write_metrics(struct command *c, const struct tune_node *tune, bool observed)
{
    const char **metrics = NULL, **modes = NULL;
    int count = 0, mode_count = 0;
    TRY(texts_of(c->d, tune, "metric", &metrics, &count));
    TRY(texts_of(c->d, tune, "mode", &modes, &mode_count));
    if (count == 0)
        return tune_document_fail(c->d, tune, "tuneConfig needs a metric, the property to search for");
    for (int i = 0; i < count; i++) {
        const char *mode = mode_count == 0 ? "min" : modes[i < mode_count ? i : mode_count - 1];
        if (strcmp(mode, "min") && strcmp(mode, "max"))
            return tune_document_fail(c->d, tune_node_get(tune, "mode"), "mode must be min or max, not %s", mode);
        write_option(c, strcmp(mode, "max") ? "--minimize" : "--maximize", target_of(metrics[i], observed));
    }
    return count;
}

/* The stoppers that have a counterpart, and the parameters that are read of each. */
static const struct {
    const char *name, *known;
} stoppers[] = {
    {"MaxSamplesStopper", "max_samples"}, {"SimpleStopper", "metric|mode|min_trials|buffer_states"},
    {"GrowthStopper", "metric|mode|grace_trials"}, {"InformationGainStopper", ""},
};
enum { MOST, SIMPLE, GROWTH, INFORMATION, STOPPERS }; /* in that order */

static int whole_of(struct command *c, const struct tune_node *map, const char *key, int64_t *value)
{
    return tune_node_none(map) ? 0 : tune_document_whole(c->d, map, key, false, value);
}

/* MaxSamplesStopper: its number may be the only positional parameter. */
static int read_most(struct command *c, const struct tune_node *stopper, const struct tune_node *words)
{
    const struct tune_node *list = tune_node_get(stopper, "positionalParams");
    int64_t most = 0;
    TRY(whole_of(c, words, "max_samples", &most));
    if (list && list->type == TUNE_NODE_LIST && list->count == 1 && list->items[0]->value.type == TUNE_VALUE_INT)
        most = list->items[0]->value.integer;
    if (most > 0 && (c->entities <= 0 || most < c->entities))
        c->entities = most;
    return 0;
}

static int read_stopper(struct command *c, const struct tune_node *stopper, int targets)
{
    const struct tune_node *words = tune_node_get(stopper, "keywordParams"), *list = tune_node_get(stopper, "positionalParams");
    int64_t trials = 5, states = 2;
    const char *name = NULL;
    char prefix[64];
    TRY(tune_document_text(c->d, stopper, "name", true, &name));
    int kind = 0;
    while (kind < STOPPERS && strcmp(name, stoppers[kind].name))
        kind++;
    if (kind == STOPPERS || (kind != MOST && targets > 1) || (kind == INFORMATION && strcmp(c->order, "model"))) {
        leave(c, "stopper ", name);
        return 0;
    }
    snprintf(prefix, sizeof prefix, "%s.", name);
    leave_others(c, words, prefix, stoppers[kind].known);
    if (kind == MOST)
        return read_most(c, stopper, words);
    if (list && list->count > 0)
        leave(c, prefix, "positionalParams");
    if (kind == SIMPLE)
        TRY(whole_of(c, words, "min_trials", &trials));
    TRY(whole_of(c, words, kind == SIMPLE ? "buffer_states" : "grace_trials", &states));
    int64_t count = kind == SIMPLE && trials > states ? trials : states;
    if (kind == INFORMATION)
        tune_append_item(c->rules, sizeof c->rules, "chance of 1 %% below 5 %%");
    else
        tune_append_item(c->rules, sizeof c->rules, "no gain of 1 %% in %lld", (long long)(count > 0 ? count : 1));
    return 0;
}

static int read_stoppers(struct command *c, const struct tune_node *runtime, int targets)
{
    const struct tune_node *list;
    int count;
    if (!runtime)
        return 0;
    TRY(count = tune_document_list(c->d, runtime, "stop", &list));
    for (int i = 0; i < count; i++)
        TRY(read_stopper(c, list->items[i], targets));
    return 0;
}

/* Write --seed from the searcher's parameters. */
static int write_seed(struct command *c, const struct tune_node *parameters)
{
    static const char *const names[] = {"seed", "random_state", "random_state_seed"};
    leave_others(c, parameters, "params.", "seed|random_state|random_state_seed");
    for (int i = 0; i < 3 && !tune_node_none(parameters); i++)
        TRY(write_whole(c, parameters, names[i], "--seed"));
    return 0;
}

/* Write the command up to the options that say when the search ends. */
static int write_search(struct command *c, const struct tune_node *tune, const struct tune_node *orchestrator,
                        const struct tune_node *runtime)
{
    const struct tune_node *searcher = tune_node_get(tune, "search_alg");
    const char *name = "variant_generator", *format = "target";
    bool model;
    if (!tune_node_none(searcher))
        TRY(tune_document_text(c->d, searcher, "name", true, &name));
    int found = find_searcher(c->d, searcher, name), targets = 1;
    TRY(found);
    model = !strcmp(searchers[found].order, "model");
    write_begin(c, searchers[found].order);
    if (!tune_node_none(orchestrator))
        TRY(tune_document_text(c->d, orchestrator, "metric_format", false, &format));
    const struct tune_node *metric = tune_node_get(tune, "metric");
    if (metric && metric->type == TUNE_NODE_LIST)
        targets = metric->count;
    c->entities = 1; /* Ray's default of num_samples */
    TRY(tune_document_whole(c->d, tune, "num_samples", false, &c->entities));
    TRY(read_stoppers(c, runtime, targets));
    if (model || c->rules[0])
        TRY(write_metrics(c, tune, !strcmp(format, "observed")));
    else
        leave(c, "", "metric");
    write_entities(c);
    if (c->rules[0])
        write_option(c, "--stop-when", c->rules);
    return tune_node_none(searcher) ? 0 : write_seed(c, tune_node_get(searcher, "params"));
}

static int write_ray_tune(struct command *c, const struct tune_node *p)
{
    const struct tune_node *tune = tune_node_get(p, "tuneConfig"), *orchestrator = tune_node_get(p, "orchestratorConfig"),
                           *runtime = tune_node_get(p, "runtimeConfig");
    double seconds = 0;
    bool memoize = true;
    char text[TUNE_DECIMAL_SIZE];
    if (tune_node_none(tune))
        return tune_document_fail(c->d, p, "ray_tune needs tuneConfig: {metric: ..., num_samples: ...}");
    leave_others(c, p, "", "tuneConfig|orchestratorConfig|runtimeConfig");
    leave_others(c, tune, "tuneConfig.", "metric|mode|num_samples|max_concurrent_trials|time_budget_s|search_alg");
    leave_others(c, runtime, "runtimeConfig.", "stop");
    leave_others(c, orchestrator, "orchestratorConfig.", "metric_format|single_measurement_per_property");
    TRY(write_search(c, tune, orchestrator, tune_node_none(runtime) ? NULL : runtime));
    TRY(write_whole(c, tune, "max_concurrent_trials", "--in-flight"));
    TRY(tune_document_number(c->d, tune, "time_budget_s", false, &seconds));
    if (seconds > 0)
        write_option(c, "--time-limit", tune_number_text(text, seconds));
    if (!tune_node_none(orchestrator))
        TRY(tune_document_bool(c->d, orchestrator, "single_measurement_per_property", false, &memoize));
    if (!memoize)
        fputs(" --remeasure", c->out);
    return 0;
}

/* ---- the other operators ---- */

static void write_then_predict(struct command *c, const char *target)
{
    fputs(" && ", c->out);
    write_answer(c, "predict", target);
}

static int write_trim(struct command *c, const struct tune_node *p)
{
    const struct tune_node *budget = tune_node_get(p, "samplingBudget");
    const char *target = NULL;
    TRY(tune_document_text(c->d, p, "targetOutput", true, &target));
    c->entities = 40; /* ado's default of maxPoints */
    TRY(whole_of(c, budget, "maxPoints", &c->entities));
    leave_others(c, p, "", "targetOutput|samplingBudget");
    leave_others(c, budget, "samplingBudget.", "maxPoints");
    write_begin(c, "sobol");
    write_entities(c);
    write_then_predict(c, target);
    return 0;
}

/* Operators that choose points without a model, or by a model of their own. */
static int write_sample(struct command *c, const struct tune_node *p)
{
    const char *target = NULL, *strategy = "sobol";
    TRY(tune_document_text(c->d, p, "targetOutput", true, &target));
    TRY(tune_document_text(c->d, p, "sampling_strategy", false, &strategy));
    TRY(whole_of(c, p, "numberEntities", &c->entities));
    TRY(whole_of(c, p, "samples", &c->entities));
    leave_others(c, p, "", "targetOutput|sampling_strategy|numberEntities|samples|batchSize");
    write_begin(c, strcmp(strategy, "random") ? "sobol" : "random");
    write_entities(c);
    TRY(write_whole(c, p, "batchSize", "--in-flight"));
    write_then_predict(c, target);
    return 0;
}

static int write_effect(struct command *c, const struct tune_node *p)
{
    const char *metric = NULL;
    TRY(tune_document_text(c->d, p, "metric", true, &metric));
    leave_others(c, p, "", "metric|mode");
    write_answer(c, "effect", metric);
    return 0;
}

static int write_show(struct command *c, const struct tune_node *p)
{
    leave_others(c, p, "", "");
    write_answer(c, "show", NULL);
    return 0;
}

static const struct {
    const char *name;
    int (*write)(struct command *c, const struct tune_node *parameters);
    const char *what; /* what the operator is */
} operators[] = {
    {"ray_tune", write_ray_tune, "a search by Ray Tune"},
    {"raytune", write_ray_tune, "a search by Ray Tune"},
    {"trim", write_trim, "a model by AutoGluon"},
    {"no_priors_characterization", write_sample, "a sample of the space"},
    {"pkh", write_sample, "a sample of the space"},
    {"flora", write_sample, "a sample of the space"},
    {"rifferla", write_effect, "a choice of dimensions"},
    {"profile", write_show, "a report about the rows"},
    {"detect_anomalous_series", write_show, "a report about the rows"},
};
enum { OPERATORS = sizeof operators / sizeof *operators };

static int find_operator(const char *name)
{
    int i = 0; /* the class of a module is written in another way: RayTune */
    while (i < OPERATORS && strcasecmp(name, operators[i].name))
        i++;
    return i;
}

int operator_refuse(void *words, struct tune_document *d, const struct tune_node *operation, const char *name)
{
    static const struct tune_node empty = {.type = TUNE_NODE_MAP};
    const struct tune_node *p = tune_node_get(operation, "parameters"), *module = tune_node_get(operation, "module");
    int kind = find_operator(name);
    struct command c = {.d = d, .words = words};
    char *text = NULL;
    size_t size;
    if (kind == OPERATORS)
        return 0;
    if (!(c.out = open_memstream(&text, &size)))
        return tune_error_cannot("out of memory");
    int code = operators[kind].write(&c, tune_node_none(p) ? &empty : p);
    if (fclose(c.out) != 0 && code == 0)
        code = tune_error_cannot("out of memory");
    if (code == 0)
        tune_document_fail(d, tune_node_get(module, tune_node_get(module, "operatorName") ? "operatorName" : "moduleClass"),
                           "the operator %s, %s, is not part of tune.c, and nothing else runs under its name%s%s; what comes "
                           "closest, type: %s", name, operators[kind].what, c.left[0] ? "; without " : "", c.left, text);
    free(text);
    return -1;
}
