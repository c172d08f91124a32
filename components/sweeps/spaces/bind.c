/* bind.c - find a space's experiments in the catalogue and bind them to its dimensions. Every
 * mistake is reported before anything runs. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/nearest.h"
#include "core/try.h"
#include "sweeps/spaces/experiment.h"

/* ---- the catalogue ---- */

/* spare: where another has this name already, it is left out without an error. */
static int add(struct tune_catalog *c, const char *path, bool spare)
{
    struct tune_experiment *e = tune_experiment_read(path);
    if (!e)
        return -1;
    for (int i = 0; i < c->count; i++)
        if (!strcmp(c->experiments[i]->name, e->name) && !strcmp(c->experiments[i]->actuator, e->actuator)) {
            if (!spare)
                tune_error_usage("%s: experiment %s.%s is in %s already; give one of them another "
                                 "identifier", path, e->actuator, e->name,
                                 c->experiments[i]->document->path);
            tune_experiment_free(e);
            return spare ? 0 : -1;
        }
    if (!tune_array_fit(&c->experiments, (size_t)c->count, sizeof *c->experiments)) {
        tune_experiment_free(e);
        return tune_error_cannot("out of memory with %d experiments", c->count);
    }
    c->experiments[c->count++] = e;
    return 0;
}

static int no_memory(void)
{
    return tune_error_cannot("out of memory while experiments are fitted to the space");
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
        if (code == 0 && (tune_path(path, "%s/%s", folder, entries[i]->d_name) < 0 || add(c, path, spare) < 0))
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
        if ((tune_file_is_folder(paths[i]) ? add_folder(c, paths[i], false) : add(c, paths[i], false)) < 0) {
            tune_catalog_free(c);
            return -1;
        }
    return 0;
}

int tune_catalog_gather(struct tune_catalog *c, const char *store, const char *more)
{
    char own[TUNE_PATH_MAX], kept[TUNE_PATH_MAX], *list = strdup(more ? more : ""), *rest = NULL;
    const char **paths = list ? calloc(strlen(list) + 3, sizeof *paths) : NULL;
    int count = 0, code = paths ? tune_path(kept, "%s/experiments", store ? store : "") : no_memory();
    *c = (struct tune_catalog){0};
    if (code == 0 && tune_defaults_path(own, "experiments") == 0)
        paths[count++] = own;
    for (char *at = code == 0 ? strtok_r(list, ",", &rest) : NULL; at; at = strtok_r(NULL, ",", &rest))
        paths[count++] = at;
    if (code == 0)
        code = tune_catalog_read(c, paths, count);
    free(paths);
    free(list);
    if (code == 0 && store && tune_file_is_folder(kept) && (code = add_folder(c, kept, true)) < 0)
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

static const struct tune_experiment *find(const struct tune_catalog *c, const char *actuator, const char *name)
{
    for (int i = 0; i < c->count; i++) {
        const struct tune_experiment *e = c->experiments[i];
        size_t length = strlen(e->actuator);
        if (actuator ? !strcmp(e->actuator, actuator) && !strcmp(e->name, name)
                     : !strcmp(e->name, name) ||
                           (!strncmp(e->actuator, name, length) && name[length] == '.' && !strcmp(e->name, name + length + 1)))
            return e;
    }
    return NULL;
}

const struct tune_experiment *tune_catalog_find(const struct tune_catalog *c, const char *actuator, const char *name)
{
    const struct tune_experiment *e = find(c, actuator, name);
    if (e)
        return e;
    char others[1024] = "";
    size_t at = 0;
    const char **names = calloc((size_t)c->count + 1, sizeof *names);
    for (int i = 0; names && i < c->count; i++) {
        names[i] = c->experiments[i]->name;
        int n = snprintf(others + at, sizeof others - at, "%s%s.%s", at ? ", " : "", c->experiments[i]->actuator, names[i]);
        at = at + (size_t)n < sizeof others ? at + (size_t)n : at;
    }
    char hint[TUNE_HINT];
    tune_error_usage("there is no experiment %s%s%s%s; there are: %s; `experiments` names folders and files of more",
                     actuator ? actuator : "", actuator ? "." : "", name,
                     tune_nearest_hint(name, names, names ? c->count : 0, hint), at ? others : "none");
    free(names);
    return NULL;
}

/* ---- one experiment of a space ---- */

static int bind_dimension(const struct tune_space *s, struct tune_protocol *p, int dimension, int input)
{
    const struct tune_dimension *d = &s->dimensions[dimension];
    char why[512];
    if (!tune_domain_within(&d->domain, &p->experiment->inputs[input].domain, why, sizeof why))
        return tune_document_fail(s->document, d->at, "dimension %s does not fit what %s takes: %s", d->name, p->experiment->name,
                                  why);
    p->dimension[input] = dimension;
    return 0;
}

static int bind_parameter(const struct tune_space *s, struct tune_protocol *p, const struct tune_parameter *parameter)
{
    const struct tune_experiment *e = p->experiment;
    const struct tune_document *d = s->document;
    int i = tune_experiment_input(e, parameter->name);
    char text[256];
    if (i < 0) {
        char hint[TUNE_HINT];
        return tune_document_fail(d, parameter->at, "%s has no input %s%s", e->name, parameter->name,
                                  tune_nearest_hint(parameter->name, e->names, e->input_count, hint));
    }
    tune_value_repr(&parameter->value, text, sizeof text);
    if (e->inputs[i].required)
        return tune_document_fail(d, parameter->at,
                                  "%s is a required input of %s: make it a dimension of entitySpace (values: [%s])",
                                  parameter->name, e->name, text);
    if (p->dimension[i] >= 0)
        return tune_document_fail(d, parameter->at, "%s is a dimension of entitySpace and a parameter; leave one of them out",
                                  parameter->name);
    if (tune_value_equal(&parameter->value, &e->inputs[i].standard))
        return tune_document_fail(d, parameter->at, "%s is %s by default; leave it out, so that ids stay one for one measurement",
                                  parameter->name, text);
    if (!tune_domain_has(&e->inputs[i].domain, &parameter->value))
        return tune_document_fail(d, parameter->at, "%s of %s cannot be %s (space experiments %s shows its domain)",
                                  parameter->name, e->name, text, e->name);
    p->fixed[i] = parameter->value;
    p->parameterized[i] = true;
    return 0;
}

static int spell_identifier(const struct tune_space *s, struct tune_protocol *p)
{
    const struct tune_reference *r = p->reference;
    const char **names = calloc((size_t)r->count + 1, sizeof *names);
    struct tune_value *values = calloc((size_t)r->count + 1, sizeof *values);
    int length = snprintf(p->identifier, sizeof p->identifier, "%s%s", p->experiment->name, r->count ? "-" : "");
    size_t room = sizeof p->identifier - (size_t)length;
    bool fits = names && values;
    for (int i = 0; fits && i < r->count; i++) {
        names[i] = r->parameters[i].name;
        values[i] = r->parameters[i].value;
    }
    if (fits && r->count)
        fits = tune_entity_identifier(names, values, r->count, p->identifier + length, room) < (int)room;
    free(names);
    free(values);
    snprintf(p->full_identifier, sizeof p->full_identifier, "%s.%s", p->experiment->actuator, p->identifier);
    return fits ? 0 : tune_document_fail(s->document, r->at, "the identifier of this experiment with its parameters is longer than "
                                         "%d bytes", (int)sizeof p->identifier - 1);
}

static int bind(const struct tune_space *s, const struct tune_catalog *c, const struct tune_reference *r, struct tune_protocol *p)
{
    const struct tune_experiment *e = p->experiment = tune_catalog_find(c, r->actuator, r->experiment);
    p->reference = r;
    p->budget = -1;
    if (!e)
        return tune_document_fail(s->document, r->at, "%s", tune_error_message());
    if (r->version) /* a reference by name and version finds none of our experiments, which have a
                     * name only */
        return tune_document_fail(s->document, tune_node_get(r->at, "experimentVersion"),
                                  "there is no version %s of %s: experiments here have no version but what their identifier says; "
                                  "leave experimentVersion out", r->version, e->name);
    size_t count = (size_t)e->input_count + 1;
    if (!(p->dimension = malloc(count * sizeof *p->dimension)) || !(p->fixed = calloc(count, sizeof *p->fixed)) ||
        !(p->parameterized = calloc(count, sizeof *p->parameterized)))
        return no_memory();
    for (int i = 0; i < e->input_count; i++) {
        int dimension = tune_name_find(s->names, s->count, e->names[i]);
        p->dimension[i] = -1;
        p->fixed[i] = e->inputs[i].standard;
        if (dimension >= 0)
            TRY(bind_dimension(s, p, dimension, i));
        else if (e->inputs[i].required)
            return tune_document_fail(s->document, r->at, "%s needs %s, which is no dimension of entitySpace", e->name,
                                      e->names[i]);
    }
    for (int i = 0; i < r->count; i++)
        TRY(bind_parameter(s, p, &r->parameters[i]));
    p->supported = e->program != NULL;
    return spell_identifier(s, p);
}

static int all_used(const struct tune_space *s, const struct tune_protocol *protocols)
{
    for (int k = 0; k < s->count; k++) {
        bool used = false;
        for (int i = 0; i < s->reference_count; i++)
            used = used || tune_experiment_input(protocols[i].experiment, s->names[k]) >= 0;
        if (used)
            continue;
        const struct tune_experiment *e = protocols[0].experiment;
        char hint[TUNE_HINT];
        return tune_document_fail(s->document, s->dimensions[k].at, "dimension %s is no input of any experiment of this space%s",
                                  s->names[k], tune_nearest_hint(s->names[k], e->names, e->input_count, hint));
    }
    return 0;
}

/* Refuse two references to the same measurement, which would be measured twice. */
static int no_twins(const struct tune_space *s, const struct tune_protocol *protocols)
{
    for (int i = 0; i < s->reference_count; i++)
        for (int k = 0; k < i; k++) {
            const struct tune_protocol *a = &protocols[i], *b = &protocols[k];
            bool same = a->experiment == b->experiment;
            for (int n = 0; same && n < a->experiment->input_count; n++)
                same = a->dimension[n] == b->dimension[n] && tune_value_equal(&a->fixed[n], &b->fixed[n]);
            if (same)
                return tune_document_fail(s->document, a->reference->at, "%s is here a second time with the same parameters",
                                          a->experiment->name);
        }
    return 0;
}

int tune_space_bind(const struct tune_space *s, const struct tune_catalog *c, struct tune_protocol **protocols)
{
    int code = 0;
    *protocols = calloc((size_t)s->reference_count + 1, sizeof **protocols);
    if (!*protocols)
        return no_memory();
    for (int i = 0; i < s->reference_count && code == 0; i++)
        code = bind(s, c, &s->references[i], &(*protocols)[i]);
    if (code == 0 && s->reference_count > 0 && (code = all_used(s, *protocols)) == 0)
        code = no_twins(s, *protocols);
    if (code == 0)
        return 0;
    tune_protocols_free(*protocols, s->reference_count);
    *protocols = NULL;
    return -1;
}

static int set(struct tune_protocol *p, int i, const char *input, const struct tune_value *value)
{
    char text[256];
    size_t length = strlen(p->identifier), room = sizeof p->identifier - length - 1;
    tune_value_repr(value, text, sizeof text);
    if (!tune_domain_has(&p->experiment->inputs[i].domain, value))
        return tune_error_usage("%s of %s cannot be %s (space experiments %s shows its domain)",
                                input, p->experiment->name, text, p->experiment->name);
    p->fixed[i] = *value;
    p->parameterized[i] = true;
    p->identifier[length++] = '-';
    if (room == 0 ||
        tune_entity_identifier(&input, value, 1, p->identifier + length, room) >= (int)room)
        return tune_error_usage("the identifier of %s with %s %s is longer than %d bytes",
                                p->experiment->name, input, text, (int)sizeof p->identifier - 1);
    snprintf(p->full_identifier, sizeof p->full_identifier, "%s.%s", p->experiment->actuator, p->identifier);
    return 1;
}

int tune_protocols_set(struct tune_protocol *protocols, int count, const char *input, const struct tune_value *value)
{
    int done = 0;
    for (int k = 0; k < count; k++) {
        struct tune_protocol *p = &protocols[k];
        int i = tune_experiment_input(p->experiment, input);
        if (i < 0 || p->experiment->inputs[i].inert || p->dimension[i] >= 0 || p->parameterized[i])
            continue;
        TRY(set(p, i, input, value));
        done++;
    }
    return done;
}

void tune_protocols_free(struct tune_protocol *protocols, int count)
{
    for (int i = 0; protocols && i < count; i++) {
        free(protocols[i].dimension);
        free(protocols[i].fixed);
        free(protocols[i].parameterized);
    }
    free(protocols);
}

bool tune_protocol_is_first(const struct tune_protocol *protocols, int p)
{
    int first = 0;
    while (protocols[first].experiment != protocols[p].experiment)
        first++;
    return first == p;
}

void tune_protocol_inputs(const struct tune_protocol *p, const struct tune_value *entity, struct tune_value *inputs)
{
    for (int i = 0; i < p->experiment->input_count; i++)
        inputs[i] = p->dimension[i] >= 0 ? entity[p->dimension[i]] : p->fixed[i];
}

static bool is_input(const struct tune_protocol *p, int dimension)
{
    for (int i = 0; i < p->experiment->input_count; i++)
        if (p->dimension[i] == dimension)
            return true;
    return false;
}

int tune_protocol_names(const struct tune_protocol *p, const struct tune_space *s,
                        const char **names)
{
    int count = p->experiment->input_count;
    memcpy(names, p->experiment->names, (size_t)count * sizeof *names);
    for (int d = 0; d < s->count; d++)
        if (!is_input(p, d))
            names[count++] = s->names[d];
    return count;
}

int tune_protocol_values(const struct tune_protocol *p, const struct tune_space *s,
                         const struct tune_value *entity, struct tune_value *values)
{
    int count = p->experiment->input_count;
    tune_protocol_inputs(p, entity, values);
    for (int d = 0; d < s->count; d++)
        if (!is_input(p, d))
            values[count++] = entity[d];
    return count;
}

bool tune_protocol_shows(const struct tune_protocol *p, const struct tune_target *t)
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
