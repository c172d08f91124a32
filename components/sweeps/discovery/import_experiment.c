/* import_experiment.c - make an experiment from the columns of a file, if it is unknown. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/cjson.h"
#include "sweeps/discovery/import_parts.h"

enum { MOST_VALUES = 65536 };

/* Common properties of all values of an input or target in the file. */
struct kind {
    bool whole, number, truth; /* all are whole numbers; all are numbers; all are True or False */
    bool any, missing;  /* any: a cell has a value; missing: a cell has none */
};

struct inference {
    struct importing *m;
    struct kind *columns;   /* [count of columns] */
    const char **parameters; /* [parameter_count] */
    int parameter_count;
    int64_t rows;
    char other[256];        /* another experiment in the file; "": none */
    double *values;
};

static void infer_input(struct kind *k, const char *text)
{
    double number;
    if (tune_import_is_missing(text)) {
        k->missing = true;
        return;
    }
    bool is_number = tune_import_number(text, &number) && isfinite(number);
    k->any = true;
    k->number = k->number && is_number;
    k->truth = k->truth && (!strcmp(text, "True") || !strcmp(text, "False"));
    k->whole = k->whole && is_number && number == floor(number) && fabs(number) <= 9007199254740992.0;
}

static int add_parameters(struct inference *f, const char *text)
{
    struct import_part parts[TUNE_SPACE_DIMENSIONS];
    int count = tune_import_parameters(text, NULL, parts);
    for (int i = 0; i < count; i++)
        TRY(tune_import_add(f->m, &f->parameters, &f->parameter_count, parts[i].name, (size_t)parts[i].name_length));
    return 0;
}

/* Infer the kinds of a row's cells. Bad rows are reported in the second pass. */
static int infer_row(struct inference *f, const char *const *fields)
{
    struct importing *m = f->m;
    for (int i = 0; i < m->count; i++) {
        const char *suffix = m->fields[i].role == IMPORT_EXPERIMENT ? tune_import_suffix(m, fields[i]) : "";
        if (!suffix && !*f->other)
            snprintf(f->other, sizeof f->other, "%s", fields[i]);
        if (!suffix)
            return 0;
        TRY(add_parameters(f, suffix));
    }
    f->rows++;
    for (int i = 0; i < m->count; i++) {
        struct kind *k = &f->columns[i];
        if (m->fields[i].role == IMPORT_INPUT)
            infer_input(k, fields[i]);
        int n = m->fields[i].role == IMPORT_TARGET ? tune_import_values(fields[i], f->values, MOST_VALUES) : 0;
        for (int v = 0; v < n; v++)
            k->whole = k->whole && (isnan(f->values[v]) || f->values[v] == floor(f->values[v])) && !strpbrk(fields[i], ".eE");
    }
    return 0;
}

static int infer(struct inference *f)
{
    struct importing *m = f->m;
    const char *const *fields;
    int count, more;
    f->columns = calloc((size_t)m->count + 1, sizeof *f->columns);
    f->values = calloc(MOST_VALUES, sizeof *f->values);
    if (!f->columns || !f->values)
        return tune_error_no_memory("an experiment of a CSV file");
    for (int i = 0; i < m->count; i++)
        f->columns[i].whole = f->columns[i].number = f->columns[i].truth = true;
    for (int v = 0; v < m->variant_count; v++)
        TRY(add_parameters(f, m->variants[v]));
    TRY(tune_csv_rewind(m->csv));
    TRY(tune_csv_row(m->csv, &fields, &count));
    while ((more = tune_csv_row(m->csv, &fields, &count)) == 1)
        if (count == m->count)
            TRY(infer_row(f, fields));
    return more;
}

/* ---- the file ---- */

/* Write the domain: numbers, in steps of 1 if all are integers; booleans; or any text. If some rows
 * lack a number, the input is optional, with default None. */
static bool put_domain(cJSON *input, const struct kind *k)
{
    bool whole = k->any && k->whole, number = k->any && k->number, truth = k->any && k->truth && !k->missing;
    bool good = number && k->missing ? cJSON_AddNullToObject(input, "default") : cJSON_AddTrueToObject(input, "required");
    cJSON *domain = cJSON_AddObjectToObject(input, "domain");
    good = good && domain && tune_cjson_put_text(domain, "variableType", whole    ? "DISCRETE_VARIABLE_TYPE"
                                                                         : number ? "CONTINUOUS_VARIABLE_TYPE"
                                                                         : truth  ? "BINARY_VARIABLE_TYPE"
                                                                                  : "OPEN_CATEGORICAL_VARIABLE_TYPE");
    return good && (!whole || tune_cjson_put_whole(domain, "interval", 1));
}

/* Append an object with this identifier to the list; NULL: no memory. */
static cJSON *put_named(cJSON *all, const char *name)
{
    cJSON *object = cJSON_CreateObject();
    return cJSON_AddItemToArray(all, object) && tune_cjson_put_text(object, "identifier", name) ? object : NULL;
}

static bool put_inputs(cJSON *all, const struct inference *f)
{
    bool good = all != NULL;
    for (int i = 0; i < f->m->count && good; i++)
        if (f->m->fields[i].role == IMPORT_INPUT) {
            cJSON *input = put_named(all, f->m->fields[i].name);
            good = input && put_domain(input, &f->columns[i]);
        }
    for (int i = 0; i < f->parameter_count && good; i++) {
        cJSON *input = put_named(all, f->parameters[i]);
        good = input && cJSON_AddNullToObject(input, "default") && cJSON_AddObjectToObject(input, "domain");
    }
    return good;
}

static bool put_targets(cJSON *all, const struct inference *f)
{
    const struct import_field *fields = f->m->fields;
    bool good = all != NULL;
    for (int i = 0; i < f->m->count && good; i++) {
        bool again = fields[i].role != IMPORT_TARGET, whole = true;
        const char *unit = NULL;
        for (int k = 0; k < f->m->count && !again; k++) /* its other columns have other parameters */
            if (fields[k].role == IMPORT_TARGET && !strcmp(fields[k].name, fields[i].name)) {
                again = k < i;
                whole = whole && f->columns[k].whole;
                unit = unit ? unit : fields[k].unit;
            }
        if (again)
            continue;
        cJSON *target = put_named(all, fields[i].name);
        good = target && (!unit || tune_cjson_put_text(target, "unit", unit)) && cJSON_AddBoolToObject(target, "optional", true) &&
               (!whole || cJSON_AddBoolToObject(target, "whole", true));
    }
    return good;
}

static char *experiment_to_string(const struct inference *f)
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
        return tune_error_set("the file %s exists already, but describes another experiment than "
                              "%s.%s; import under another name", path, m->actuator, m->name);
    TRY(tune_store_record(m->i->store, "experiments", name, text, strlen(text)));
    m->i->made = true;
    if ((m->made = tune_experiment_read(path)))
        return 0;
    tune_import_forget(m);
    return -1;
}

int tune_import_make(struct importing *m)
{
    struct inference f = {.m = m};
    int code = infer(&f);
    if (code == 0 && f.rows == 0) {
        tune_error_set("%s: none of its rows is of experiment %s%s%s", m->i->path, m->name,
                       *f.other ? "; the first is of " : "", f.other);
        code = -1;
    }
    char *text = code == 0 ? experiment_to_string(&f) : NULL;
    if (code == 0)
        code = text ? write_and_read(m, text) : tune_error_no_memory("an experiment of a CSV file");
    cJSON_free(text);
    free(f.parameters);
    free(f.columns);
    free(f.values);
    return code;
}

void tune_import_forget(struct importing *m)
{
    char path[TUNE_PATH_MAX], name[256];
    struct tune_error why;
    tune_error_save(&why);
    if (m->i->made && experiment_path(m, path, name) == 0)
        unlink(path);
    m->i->made = false;
    tune_error_restore(&why);
}
