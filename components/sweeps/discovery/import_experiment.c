/* import_experiment.c - make an experiment from the columns of a file, if it is unknown. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "files/cjson.h"
#include "sweeps/discovery/import_parts.h"

enum { MOST_VALUES = 65536 };

/* Common properties of all values of an input or target in the file. */
struct kind {
    char *name;
    bool whole, number; /* all of them */
    bool any, missing;  /* some cell has a value; some cell has none */
};

struct inference {
    struct importing *m;
    struct kind *inputs;    /* [layout.inputs] */
    struct kind *targets;   /* [layout.count], by field */
    struct kind *parameters; /* [parameter_count] */
    int parameter_count;
    int64_t rows;
    char other[256];        /* first other experiment in the file; "": none */
    double *values;
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory while an experiment is made of a CSV file");
}

static void note(struct kind *k, const char *text, int length)
{
    char copy[64];
    double number;
    snprintf(copy, sizeof copy, "%.*s", length, text);
    if (length < (int)sizeof copy && tune_import_is_missing(copy)) {
        k->missing = true;
        return;
    }
    k->any = true;
    bool is_number = length < (int)sizeof copy && tune_import_number(copy, &number) && isfinite(number);
    k->number = k->number && is_number;
    k->whole = k->whole && is_number && number == floor(number) && fabs(number) <= 9007199254740992.0;
}

static int note_parameters(struct inference *f, const char *text)
{
    struct import_part parts[TUNE_SPACE_DIMENSIONS];
    int count = tune_import_parameters(text, NULL, parts, TUNE_SPACE_DIMENSIONS);
    for (int i = 0; i < count; i++) {
        int k = 0;
        while (k < f->parameter_count && (strncmp(f->parameters[k].name, parts[i].name, (size_t)parts[i].name_length) ||
                                          f->parameters[k].name[parts[i].name_length]))
            k++;
        if (k < f->parameter_count)
            continue;
        if (!tune_array_fit(&f->parameters, (size_t)k, sizeof *f->parameters) ||
            !(f->parameters[k].name = strndup(parts[i].name, (size_t)parts[i].name_length)))
            return no_memory();
        f->parameter_count++;
    }
    return 0;
}

/* Bad rows are reported later, when all rows are read again. */
static int note_row(struct inference *f, const char *const *fields)
{
    const struct import_layout *l = &f->m->layout;
    struct import_part parts[TUNE_SPACE_DIMENSIONS];
    const char *suffix = NULL;
    for (int i = 0; i < l->count; i++)
        if (l->fields[i].role == IMPORT_EXPERIMENT && !(suffix = tune_import_own_experiment(f->m, fields[i]))) {
            if (!*f->other)
                snprintf(f->other, sizeof f->other, "%s", fields[i]);
            return 0;
        }
    if (suffix)
        TRY(note_parameters(f, suffix));
    if (!tune_import_identifier(l, fields, parts))
        return 0;
    f->rows++;
    for (int i = 0; i < l->inputs; i++)
        note(&f->inputs[i], parts[i].value, parts[i].value_length);
    for (int i = 0; i < l->count; i++) {
        int n = l->fields[i].role == IMPORT_TARGET ? tune_import_values(fields[i], f->values, MOST_VALUES) : 0;
        for (int k = 0; k < n; k++)
            f->targets[i].whole = f->targets[i].whole && (isnan(f->values[k]) || f->values[k] == floor(f->values[k])) &&
                                  !strpbrk(fields[i], ".eE");
    }
    return 0;
}

static int infer(struct inference *f)
{
    struct importing *m = f->m;
    const char *const *fields;
    int count, more;
    f->inputs = calloc((size_t)m->layout.inputs + 1, sizeof *f->inputs);
    f->targets = calloc((size_t)m->layout.count + 1, sizeof *f->targets);
    f->values = calloc(MOST_VALUES, sizeof *f->values);
    if (!f->inputs || !f->targets || !f->values)
        return no_memory();
    for (int i = 0; i < m->layout.inputs; i++)
        f->inputs[i].whole = f->inputs[i].number = true;
    for (int i = 0; i < m->layout.count; i++)
        f->targets[i].whole = true;
    for (int v = 0; v < m->layout.variant_count; v++)
        TRY(note_parameters(f, m->layout.variants[v]));
    TRY(tune_csv_rewind(m->csv));
    TRY(tune_csv_row(m->csv, &fields, &count));
    while ((more = tune_csv_row(m->csv, &fields, &count)) == 1)
        if (count == m->layout.count)
            TRY(note_row(f, fields));
    return more;
}

/* ---- the file ---- */

/* Make the domain: numbers of any size, in steps of 1 if all are integers; or any text. Numbers that
 * some rows lack are optional: the default is None. */
static bool put_domain(cJSON *input, const struct kind *k)
{
    bool whole = k->any && k->whole, number = k->any && k->number;
    bool good = number && k->missing ? cJSON_AddNullToObject(input, "default") : cJSON_AddTrueToObject(input, "required");
    cJSON *domain = cJSON_AddObjectToObject(input, "domain");
    good = good && domain && tune_cjson_put_text(domain, "variableType", whole    ? "DISCRETE_VARIABLE_TYPE"
                                                                         : number ? "CONTINUOUS_VARIABLE_TYPE"
                                                                                  : "OPEN_CATEGORICAL_VARIABLE_TYPE");
    return good && (!whole || tune_cjson_put_whole(domain, "interval", 1));
}

static bool put_inputs(cJSON *all, const struct inference *f)
{
    bool good = all != NULL;
    for (int i = 0; i < f->m->layout.inputs && good; i++) {
        cJSON *input = cJSON_CreateObject();
        good = cJSON_AddItemToArray(all, input) &&
               tune_cjson_put_text(input, "identifier", f->m->layout.headings[f->m->layout.input[i]]) && put_domain(input, &f->inputs[i]);
    }
    for (int i = 0; i < f->parameter_count && good; i++) {
        cJSON *input = cJSON_CreateObject();
        good = cJSON_AddItemToArray(all, input) && tune_cjson_put_text(input, "identifier", f->parameters[i].name) &&
               cJSON_AddNullToObject(input, "default") && cJSON_AddObjectToObject(input, "domain");
    }
    return good;
}

static bool put_targets(cJSON *all, const struct inference *f)
{
    const struct import_layout *l = &f->m->layout;
    bool good = all != NULL;
    for (int i = 0; i < l->count && good; i++) {
        bool again = l->fields[i].role != IMPORT_TARGET, whole = true;
        for (int k = 0; k < l->count && !again; k++) /* the same target has other columns under
                                                      * other parameters */
            if (l->fields[k].role == IMPORT_TARGET && !strcmp(l->fields[k].name, l->fields[i].name)) {
                again = k < i;
                whole = whole && f->targets[k].whole;
            }
        if (again)
            continue;
        cJSON *target = cJSON_CreateObject();
        good = cJSON_AddItemToArray(all, target) && tune_cjson_put_text(target, "identifier", l->fields[i].name) &&
               cJSON_AddBoolToObject(target, "optional", true) &&
               (!whole || cJSON_AddBoolToObject(target, "whole", true));
    }
    return good;
}

static char *spell(const struct inference *f)
{
    char what[TUNE_PATH_MAX + 64];
    const char *slash = strrchr(f->m->i->path, '/');
    snprintf(what, sizeof what, "Imported from %s.", slash ? slash + 1 : f->m->i->path);
    cJSON *json = cJSON_CreateObject();
    bool good = tune_cjson_put_text(json, "identifier", f->m->name) && tune_cjson_put_text(json, "actuator", f->m->actuator) &&
                tune_cjson_put_text(json, "description", what) && cJSON_AddNullToObject(json, "program") && put_inputs(cJSON_AddArrayToObject(json, "inputs"), f) &&
                put_targets(cJSON_AddArrayToObject(json, "targets"), f);
    char *text = good ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    return text;
}

static int experiment_path(const struct importing *m, char path[TUNE_PATH_MAX], char name[256])
{
    snprintf(name, 256, "%.240s.json", m->name);
    return tune_path(path, "%s/experiments/%s", tune_store_folder(m->i->store), name);
}

static int write_and_read(struct importing *m, const char *text)
{
    char path[TUNE_PATH_MAX], name[256];
    TRY(experiment_path(m, path, name));
    if (tune_file_exists(path))
        return tune_error_set("%s is there already, of another experiment than %s.%s; import "
                              "under another name", path, m->actuator, m->name);
    TRY(tune_store_record(m->i->store, "experiments", name, text, strlen(text)));
    m->i->made = true;
    if ((m->made = tune_experiment_read(path)))
        return 0;
    tune_import_experiment_forget(m);
    return -1;
}

int tune_import_experiment_make(struct importing *m)
{
    struct inference f = {.m = m};
    int code = infer(&f);
    if (code == 0 && f.rows == 0) {
        tune_error_set("%s: no row of it is of an experiment %s%s%s", m->i->path, m->name,
                       *f.other ? "; the first is of " : "", f.other);
        code = -1;
    }
    char *text = code == 0 ? spell(&f) : NULL;
    if (code == 0)
        code = text ? write_and_read(m, text) : no_memory();
    cJSON_free(text);
    for (int i = 0; i < f.parameter_count; i++)
        free(f.parameters[i].name);
    free(f.parameters);
    free(f.inputs);
    free(f.targets);
    free(f.values);
    return code;
}

void tune_import_experiment_forget(struct importing *m)
{
    char path[TUNE_PATH_MAX], name[256];
    struct tune_error why;
    tune_error_save(&why);
    if (m->i->made && experiment_path(m, path, name) == 0)
        unlink(path);
    m->i->made = false;
    tune_error_restore(&why);
}
