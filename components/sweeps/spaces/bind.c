/* bind.c - find a space's experiments in the catalogue, and bind them to its dimensions. Mistakes
 * are reported before anything runs. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/nearest.h"
#include "core/print.h"
#include "core/try.h"
#include "sweeps/spaces/experiment.h"

/* ---- the catalogue ---- */

/* Add an experiment. spare: if the name is taken, it is left out without an error. */
static int add_experiment(struct tune_catalog *c, const char *path, bool spare)
{
    struct tune_experiment *e = tune_experiment_read(path);
    if (!e)
        return -1;
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->experiments[i]->name, e->name) && !strcmp(c->experiments[i]->actuator, e->actuator)) {
            if (!spare)
                tune_error_usage("%s: experiment %s.%s is also in %s; give one of them another "
                                 "identifier", path, e->actuator, e->name,
                                 c->experiments[i]->document->path);
            tune_experiment_free(e);
            return spare ? 0 : -1;
        }
    if (!tune_array_fit(&c->experiments, (size_t)c->count, sizeof *c->experiments)) {
        tune_experiment_free(e);
        return tune_error_no_memory("%d experiments", c->count);
    }
    c->experiments[c->count++] = e;
    return 0;
}

static int is_experiment(const struct dirent *entry)
{
    const char *dot = strrchr(entry->d_name, '.');
    return entry->d_name[0] != '.' && dot && (!strcmp(dot, ".json") || !strcmp(dot, ".yaml") || !strcmp(dot, ".yml"));
}

static int add_folder(struct tune_catalog *c, const char *folder, bool spare)
{
    struct dirent **entries;
    int code = 0, count = scandir(folder, &entries, is_experiment, alphasort);
    if (count < 0)
        return tune_error_set("%s: cannot read this folder of experiments: %s", folder,
                              strerror(errno));
    for (int i = 0; i < count; i++) {
        char path[TUNE_PATH_MAX];
        if (code == 0 && (tune_path(path, "%s/%s", folder, entries[i]->d_name) < 0 || add_experiment(c, path, spare) < 0))
            code = -1;
        free(entries[i]);
    }
    free(entries);
    return code;
}

int tune_catalog_read(struct tune_catalog *c, const char *const *paths, int count)
{
    *c = (struct tune_catalog){0};
    for (int i = 0; i < count; i++)
        if ((tune_file_is_folder(paths[i]) ? add_folder(c, paths[i], false) : add_experiment(c, paths[i], false)) < 0) {
            tune_catalog_free(c);
            return -1;
        }
    return 0;
}

int tune_catalog_gather(struct tune_catalog *c, const char *store, const char *more)
{
    char own[TUNE_PATH_MAX], stored[TUNE_PATH_MAX], *list = strdup(more ? more : ""), *rest = NULL;
    const char **paths = list ? calloc(strlen(list) + 3, sizeof *paths) : NULL;
    int count = 0, code = paths ? tune_path(stored, "%s/experiments", store ? store : "") : tune_error_no_memory("the experiments of a space");
    *c = (struct tune_catalog){0};
    if (code == 0 && tune_defaults_path(own, "experiments") == 0)
        paths[count++] = own;
    for (char *at = code == 0 ? strtok_r(list, ",", &rest) : NULL; at; at = strtok_r(NULL, ",", &rest))
        paths[count++] = at;
    if (code == 0)
        code = tune_catalog_read(c, paths, count);
    free(paths);
    free(list);
    if (code == 0 && store && tune_file_is_folder(stored) && (code = add_folder(c, stored, true)) < 0)
        tune_catalog_free(c);
    return code;
}

void tune_catalog_free(struct tune_catalog *c)
{
    for (int i = 0; i < c->count; i++)
        tune_experiment_free(c->experiments[i]);
    free(c->experiments);
    *c = (struct tune_catalog){0};
}

const struct tune_experiment *tune_catalog_known(const struct tune_catalog *c, const char *actuator, const char *name)
{
    for (int i = 0; i < c->count; i++) {
        const struct tune_experiment *e = c->experiments[i];
        size_t length = strlen(e->actuator);
        bool full = !strncmp(e->actuator, name, length) && name[length] == '.' && !strcmp(e->name, name + length + 1);
        if ((full || !strcmp(e->name, name)) && (!actuator || !strcmp(e->actuator, actuator)))
            return e;
    }
    return NULL;
}

const struct tune_experiment *tune_catalog_find(const struct tune_catalog *c, const char *actuator, const char *name)
{
    const struct tune_experiment *e = tune_catalog_known(c, actuator, name);
    if (e)
        return e;
    char others[1024] = "";
    const char **names = calloc((size_t)c->count + 1, sizeof *names);
    for (int i = 0; names && i < c->count; i++) {
        names[i] = c->experiments[i]->name;
        tune_append_item(others, sizeof others, "%s.%s", c->experiments[i]->actuator, names[i]);
    }
    char hint[TUNE_HINT];
    tune_error_usage("there is no experiment %s%s%s%s; there are: %s; to add folders or files of "
                     "experiments, give `experiments`",
                     actuator ? actuator : "", actuator ? "." : "", name,
                     tune_nearest_hint(name, names, names ? c->count : 0, hint), *others ? others : "none");
    free(names);
    return NULL;
}

/* ---- one experiment of a space ---- */

static int bind_dimension(const struct tune_space *s, struct tune_binding *p, int dimension, int input)
{
    const struct tune_dimension *d = &s->dimensions[dimension];
    const struct tune_domain *takes = &p->experiment->inputs[input].domain;
    bool any = d->domain.type == TUNE_UNKNOWN && takes->type == TUNE_OPEN_CATEGORICAL; /* both accept any text */
    const struct tune_node *values = tune_node_get(tune_node_get(d->at, "propertyDomain"), "values");
    char why[512], hint[256];
    if (!any && !tune_domain_within(&d->domain, takes, why, sizeof why))
        return tune_document_fail(s->document, d->at, "the values of dimension %s are not all "
                                                      "allowed by experiment %s: %s%s", d->name,
                                  p->experiment->name,
                                  why, tune_domain_number_hint(values, hint));
    p->dimension[input] = dimension;
    return 0;
}

static int bind_parameter(const struct tune_space *s, struct tune_binding *p, const struct tune_space_parameter *parameter)
{
    const struct tune_experiment *e = p->experiment;
    const struct tune_document *d = s->document;
    int i = tune_experiment_input(e, parameter->name);
    char text[256], hint[TUNE_HINT];
    if (i < 0) {
        return tune_document_fail(d, parameter->at, "experiment %s has no input %s%s", e->name,
                                  parameter->name,
                                  tune_nearest_hint(parameter->name, e->names, e->input_count, hint));
    }
    tune_value_repr(&parameter->value, text, sizeof text);
    if (e->inputs[i].required)
        return tune_document_fail(d, parameter->at,
                                  "%s is a required input of %s: make it a dimension of entitySpace (values: [%s])",
                                  parameter->name, e->name, text);
    if (p->dimension[i] >= 0)
        return tune_document_fail(d, parameter->at, "%s is both a dimension of entitySpace and a "
                                                    "parameter; leave one of them out",
                                  parameter->name);
    if (tune_value_equal(&parameter->value, &e->inputs[i].standard))
        return tune_document_fail(d, parameter->at, "parameter %s has its default value %s; leave "
                                                    "it out, so that a measurement has only one id",
                                  parameter->name, text);
    if (!tune_domain_has(&e->inputs[i].domain, &parameter->value))
        return tune_document_fail(d, parameter->at, "%s of %s cannot be %s (space experiments %s shows its domain)%s",
                                  parameter->name, e->name, text, e->name,
                                  tune_domain_number_hint(tune_node_get(parameter->at, "value"), hint));
    p->fixed[i] = parameter->value;
    p->parameterized[i] = true;
    return 0;
}

static int write_identifier(const struct tune_space *s, struct tune_binding *p)
{
    const struct tune_experiment_reference *r = p->reference;
    const char **names = calloc((size_t)r->count + 1, sizeof *names);
    struct tune_value *values = calloc((size_t)r->count + 1, sizeof *values);
    int length = snprintf(p->identifier, sizeof p->identifier, "%s%s", p->experiment->name, r->count ? "-" : "");
    size_t left = sizeof p->identifier - (size_t)length;
    bool fits = names && values;
    for (int i = 0; fits && i < r->count; i++) {
        names[i] = r->parameters[i].name;
        values[i] = r->parameters[i].value;
    }
    if (fits && r->count)
        fits = tune_entity_identifier(names, values, r->count, p->identifier + length, left) < (int)left;
    free(names);
    free(values);
    snprintf(p->full_identifier, sizeof p->full_identifier, "%s.%s", p->experiment->actuator, p->identifier);
    return fits ? 0 : tune_document_fail(s->document, r->at, "the identifier of this experiment with its parameters is longer than "
                                         "%d bytes", (int)sizeof p->identifier - 1);
}

static int bind(const struct tune_space *s, const struct tune_catalog *c, const struct tune_experiment_reference *r, struct tune_binding *p)
{
    const struct tune_experiment *e = p->experiment = tune_catalog_find(c, r->actuator, r->experiment);
    p->reference = r;
    p->budget = -1;
    if (!e)
        return tune_document_fail(s->document, r->at, "%s", tune_error_message());
    if (r->version) /* our experiments have only a name, so a reference with a version finds none */
        return tune_document_fail(s->document, tune_node_get(r->at, "experimentVersion"),
                                  "there is no version %s of experiment %s, because the only "
                                  "version of an experiment is the one in its identifier; leave "
                                  "experimentVersion out", r->version, e->name);
    size_t count = (size_t)e->input_count + 1;
    if (!(p->dimension = malloc(count * sizeof *p->dimension)) || !(p->fixed = calloc(count, sizeof *p->fixed)) ||
        !(p->parameterized = calloc(count, sizeof *p->parameterized)))
        return tune_error_no_memory("the experiments of a space");
    for (int i = 0; i < e->input_count; i++) {
        int dimension = tune_name_find(s->names, s->count, e->names[i]);
        p->dimension[i] = -1;
        p->fixed[i] = e->inputs[i].standard;
        if (dimension >= 0)
            TRY(bind_dimension(s, p, dimension, i));
        else if (e->inputs[i].required)
            return tune_document_fail(s->document, r->at, "experiment %s needs the input %s, which "
                                                          "is not a dimension of entitySpace",
                                      e->name,
                                      e->names[i]);
    }
    for (int i = 0; i < r->count; i++)
        TRY(bind_parameter(s, p, &r->parameters[i]));
    p->supported = e->program != NULL;
    return write_identifier(s, p);
}

static int all_used(const struct tune_space *s, const struct tune_binding *bindings)
{
    for (int k = 0; k < s->count; k++) {
        bool used = false;
        for (int i = 0; i < s->reference_count; i++)
            used = used || tune_experiment_input(bindings[i].experiment, s->names[k]) >= 0;
        if (used)
            continue;
        const struct tune_experiment *e = bindings[0].experiment;
        char hint[TUNE_HINT];
        return tune_document_fail(s->document, s->dimensions[k].at,
                                  "dimension %s is not an input of any experiment of this space%s",
                                  s->names[k], tune_nearest_hint(s->names[k], e->names, e->input_count, hint));
    }
    return 0;
}

/* Refuse two references to the same measurement, because it would run twice. */
static int no_twins(const struct tune_space *s, const struct tune_binding *bindings)
{
    for (int i = 0; i < s->reference_count; i++)
        for (int k = 0; k < i; k++) {
            const struct tune_binding *a = &bindings[i], *b = &bindings[k];
            bool same = a->experiment == b->experiment;
            for (int n = 0; same && n < a->experiment->input_count; n++)
                same = a->dimension[n] == b->dimension[n] && tune_value_equal(&a->fixed[n], &b->fixed[n]);
            if (same)
                return tune_document_fail(s->document, a->reference->at,
                                          "experiment %s is listed twice with the same parameters",
                                          a->experiment->name);
        }
    return 0;
}

int tune_space_bind(const struct tune_space *s, const struct tune_catalog *c, struct tune_binding **bindings)
{
    int code = 0;
    *bindings = calloc((size_t)s->reference_count + 1, sizeof **bindings);
    if (!*bindings)
        return tune_error_no_memory("the experiments of a space");
    for (int i = 0; i < s->reference_count && code == 0; i++)
        code = bind(s, c, &s->references[i], &(*bindings)[i]);
    if (code == 0 && s->reference_count > 0 && (code = all_used(s, *bindings)) == 0)
        code = no_twins(s, *bindings);
    if (code == 0)
        return 0;
    tune_bindings_free(*bindings, s->reference_count);
    *bindings = NULL;
    return -1;
}

static int set_parameter(struct tune_binding *p, int i, const char *input, const struct tune_value *value)
{
    char text[256];
    size_t length = strlen(p->identifier), left = sizeof p->identifier - length - 1;
    tune_value_repr(value, text, sizeof text);
    if (!tune_domain_has(&p->experiment->inputs[i].domain, value))
        return tune_error_usage("%s of %s cannot be %s (space experiments %s shows its domain)",
                                input, p->experiment->name, text, p->experiment->name);
    p->fixed[i] = *value;
    p->parameterized[i] = true;
    p->identifier[length++] = '-';
    if (left == 0 ||
        tune_entity_identifier(&input, value, 1, p->identifier + length, left) >= (int)left)
        return tune_error_usage("the identifier of %s with %s %s is longer than %d bytes",
                                p->experiment->name, input, text, (int)sizeof p->identifier - 1);
    snprintf(p->full_identifier, sizeof p->full_identifier, "%s.%s", p->experiment->actuator, p->identifier);
    return 1;
}

int tune_bindings_set(struct tune_binding *bindings, int count, const char *input, const struct tune_value *value)
{
    int done = 0;
    for (int k = 0; k < count; k++) {
        struct tune_binding *p = &bindings[k];
        int i = tune_experiment_input(p->experiment, input);
        if (i < 0 || p->experiment->inputs[i].inert || p->dimension[i] >= 0 || p->parameterized[i])
            continue;
        TRY(set_parameter(p, i, input, value));
        done++;
    }
    return done;
}

void tune_bindings_free(struct tune_binding *bindings, int count)
{
    for (int i = 0; bindings && i < count; i++) {
        free(bindings[i].dimension);
        free(bindings[i].fixed);
        free(bindings[i].parameterized);
    }
    free(bindings);
}

bool tune_binding_is_first(const struct tune_binding *bindings, int p)
{
    int first = 0;
    while (bindings[first].experiment != bindings[p].experiment)
        first++;
    return first == p;
}

void tune_binding_inputs(const struct tune_binding *p, const struct tune_value *entity, struct tune_value *inputs)
{
    for (int i = 0; i < p->experiment->input_count; i++)
        inputs[i] = p->dimension[i] >= 0 ? entity[p->dimension[i]] : p->fixed[i];
}

static bool is_input(const struct tune_binding *p, int dimension)
{
    for (int i = 0; i < p->experiment->input_count; i++)
        if (p->dimension[i] == dimension)
            return true;
    return false;
}

int tune_binding_names(const struct tune_binding *p, const struct tune_space *s,
                        const char **names)
{
    int count = p->experiment->input_count;
    memcpy(names, p->experiment->names, (size_t)count * sizeof *names);
    for (int d = 0; d < s->count; d++)
        if (!is_input(p, d))
            names[count++] = s->names[d];
    return count;
}

int tune_binding_values(const struct tune_binding *p, const struct tune_space *s,
                         const struct tune_value *entity, struct tune_value *values)
{
    int count = p->experiment->input_count;
    tune_binding_inputs(p, entity, values);
    for (int d = 0; d < s->count; d++)
        if (!is_input(p, d))
            values[count++] = entity[d];
    return count;
}

bool tune_binding_shows(const struct tune_binding *p, const struct tune_target *t)
{
    struct tune_value *inputs = t->shown ? calloc((size_t)p->experiment->input_count + 1, sizeof *inputs) : NULL;
    if (!inputs)
        return true;
    for (int i = 0; i < p->experiment->input_count; i++)
        inputs[i] = p->dimension[i] >= 0 ? tune_value_none() : p->fixed[i];
    int shown = tune_expression_true(t->shown, inputs);
    if (shown < 0)
        tune_error_clear();
    free(inputs);
    return shown != 0;
}
