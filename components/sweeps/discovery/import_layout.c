/* import_layout.c - find the roles of the columns of a CSV file from their names. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/nearest.h"
#include "core/print.h"
#include "sweeps/discovery/import_parts.h"

static int fail_at(const struct importing *m, const char *what, const char *name)
{
    return tune_error_set("%s:%lld: %s%s", m->i->path, (long long)tune_csv_line(m->csv), what, name);
}

const char *tune_import_field(const struct importing *m, const char *const *fields, enum import_role role)
{
    for (int i = 0; i < m->count; i++)
        if (m->fields[i].role == role)
            return fields[i];
    return "";
}

int tune_import_add(struct importing *m, const char ***texts, int *count, const char *text, size_t length)
{
    const char *copy = tune_pool_text(&m->memory, text, length);
    int known = copy ? tune_name_find(*texts, *count, copy) : -1;
    if (known >= 0)
        return known;
    if (!copy || !tune_array_fit(texts, (size_t)*count, sizeof **texts))
        return tune_error_no_memory("a CSV file's names");
    (*texts)[*count] = copy;
    return (*count)++;
}

/* ---- identifiers of experiments ---- */

/* The length of an input's name at the start of "-name.value"; 0: there is none. */
static int parameter_at(const char *text, const struct tune_experiment *e)
{
    if (*text != '-')
        return 0;
    for (int i = 0; e && i < e->input_count; i++) {
        size_t n = strlen(e->names[i]);
        if (!strncmp(text + 1, e->names[i], n) && text[1 + n] == '.')
            return (int)n;
    }
    int n = 0;
    while (!e && (isalpha((unsigned char)text[1 + n]) || text[1 + n] == '_' || (n > 0 && isdigit((unsigned char)text[1 + n]))))
        n++;
    return text[1 + n] == '.' ? n : 0;
}

int tune_import_parameters(const char *text, const struct tune_experiment *e, struct import_part parts[TUNE_SPACE_DIMENSIONS])
{
    int count = 0;
    for (const char *at = text, *end; *at; at = end) {
        int name = parameter_at(at, e);
        if (name == 0 || count == TUNE_SPACE_DIMENSIONS)
            return -1;
        end = at + 1 + name + 1;
        while (*end && !parameter_at(end, e))
            end++;
        parts[count++] = (struct import_part){at + 1, at + 1 + name + 1, name, (int)(end - at) - name - 2};
    }
    return count;
}

const char *tune_import_suffix(const struct importing *m, const char *identifier)
{
    struct import_part parts[TUNE_SPACE_DIMENSIONS];
    size_t length = strlen(m->name);
    const char *at = strchr(identifier, '.');
    if (!at || strncmp(at + 1, m->name, length))
        return NULL;
    at += 1 + length;
    if (!strncmp(at, "@v", 2)) /* newer versions of ado add a version after the name */
        at += 2 + strspn(at + 2, "0123456789.");
    return tune_import_parameters(at, m->e, parts) < 0 ? NULL : at;
}

/* ---- headings ---- */

/* Split "name [unit]", unless the whole text is the name of an input or target. */
static int read_heading(struct importing *m, int i, const char *text)
{
    struct import_field *f = &m->fields[i];
    size_t length = strlen(text);
    const char *open = length > 3 && text[length - 1] == ']' ? strstr(text, " [") : NULL;
    bool known = m->e && (tune_experiment_input(m->e, text) >= 0 || tune_experiment_target(m->e, text) >= 0);
    bool unit = open && open > text && !known;
    f->heading = f->name = tune_pool_text(&m->memory, text, unit ? (size_t)(open - text) : length);
    f->unit = unit ? tune_pool_text(&m->memory, open + 2, length - (size_t)(open - text) - 3) : NULL;
    if (!f->heading || (unit && !f->unit))
        return tune_error_no_memory("a CSV file's columns");
    for (int k = 0; k < i && *f->heading; k++)
        if (!strcmp(f->heading, m->fields[k].heading))
            return fail_at(m, "two columns have the name ", f->heading);
    return 0;
}

/* Find a column by its name. targets: among targets, else among inputs; -1: there is none. */
static int find_column(const struct importing *m, const char *name, bool targets)
{
    for (int i = 0; i < m->count; i++)
        if ((targets ? m->fields[i].role == IMPORT_TARGET : m->fields[i].role >= IMPORT_INPUT) &&
            !strcmp(targets ? m->fields[i].name : m->fields[i].heading, name))
            return i;
    return -1;
}

static int no_column(const struct importing *m, const char *name, bool target)
{
    char hint[TUNE_HINT];
    const char **headings = tune_zeroed((size_t)m->count, sizeof *headings, "names of columns");
    for (int i = 0; headings && i < m->count; i++)
        headings[i] = m->fields[i].heading;
    tune_error_usage("%s:%lld: there is no column %s, but the command names it as %s%s", m->i->path,
                     (long long)tune_csv_line(m->csv), name, target ? "a target" : "an input",
                     tune_nearest_hint(name, headings, headings ? m->count : 0, hint));
    free(headings);
    return -1;
}

static int key_named(const char *name)
{
    int key = TUNE_KEYS - 1;
    while (key >= 0 && strcmp(name, tune_key_column((enum tune_key)key)->name))
        key--;
    return key;
}

/* True if the identifier contains "name." at its start or after a '-'. */
static bool has_name(const char *identifier, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = identifier; n > 0 && (at = strstr(at, name)); at++)
        if ((at == identifier || at[-1] == '-') && at[n] == '.')
            return true;
    return false;
}

/* The role of a fixed column of ado's files, such as identifier. IMPORT_KEY: it is not a fixed
 * column. */
static enum import_role fixed_role(const struct importing *m, const char *heading)
{
    static const struct { const char *name; enum import_role role; } fixed[] = {
        {"", IMPORT_IGNORED}, {"identifier", IMPORT_IDENTIFIER}, {"generatorid", IMPORT_GENERATOR},
        {"experiment_id", IMPORT_EXPERIMENT}, {"request_index", IMPORT_IGNORED}, {"result_index", IMPORT_IGNORED},
        {"valid", IMPORT_IGNORED}};
    bool own = m->e && (tune_experiment_input(m->e, heading) >= 0 || tune_experiment_target(m->e, heading) >= 0);
    for (int k = 0; k < 7 && !own; k++)
        if (!strcmp(heading, fixed[k].name))
            return fixed[k].role;
    return IMPORT_KEY;
}

/* Decide which columns are inputs. The caller may name them. Else they are the experiment's inputs,
 * and the names in the first row's identifier. */
static int find_inputs(struct importing *m, const char *const *first)
{
    int inputs = 0;
    for (int i = 0; i < m->count; i++)
        m->fields[i].role = fixed_role(m, m->fields[i].heading);
    const char *identifier = tune_import_field(m, first, IMPORT_IDENTIFIER);
    for (int k = 0; k < m->i->input_count; k++)
        if (find_column(m, m->i->inputs[k], false) < 0)
            return no_column(m, m->i->inputs[k], false);
    for (int i = 0; i < m->count; i++) {
        struct import_field *f = &m->fields[i];
        if (f->role != IMPORT_KEY)
            continue;
        bool asked = tune_name_find(m->i->inputs, m->i->input_count, f->heading) >= 0;
        bool input = m->i->input_count > 0 ? asked
                                           : (m->e && tune_experiment_input(m->e, f->heading) >= 0) || has_name(identifier, f->heading);
        f->role = input ? IMPORT_INPUT : IMPORT_TARGET;
        inputs += input;
    }
    if (inputs > 0)
        return 0;
    return fail_at(m, m->e ? "no column is an input of the experiment; if some are, name these "
                             "columns (`inputs`); the first identifier is: "
                           : "unknown which columns are inputs: the experiment is unknown, and no "
                             "identifier (\"name.value-name.value\") names them; name these "
                             "columns (`inputs`), or give the experiment's file (`experiments`); "
                             "the first identifier is: ", identifier);
}

/* ---- observed format: "<experiment>[<parameters>]-<target>" ---- */

/* Find the target at the end of the heading, and its parameters. NULL: the column belongs to
 * another experiment. */
static const char *target_of(const struct importing *m, const char *heading, char *parameters, size_t size)
{
    struct import_part parts[TUNE_SPACE_DIMENSIONS];
    size_t name = strlen(m->name), all = strlen(heading);
    const char *best = NULL, *last = strncmp(heading, m->name, name) ? NULL : strrchr(heading + name, '-');
    if (!last)
        return NULL;
    for (int i = 0; m->e && i < m->e->target_count; i++) {
        size_t n = strlen(m->e->targets[i].name);
        if (all > n + name && heading[all - n - 1] == '-' && !strcmp(heading + all - n, m->e->targets[i].name) &&
            (!best || n > strlen(best)))
            best = heading + all - n;
    }
    best = best ? best : last + 1; /* names of ado's targets have no '-' */
    snprintf(parameters, size, "%.*s", (int)(best - 1 - heading - (ptrdiff_t)name), heading + name);
    return !*best || tune_import_parameters(parameters, m->e, parts) < 0 ? NULL : best;
}

static int read_prefixed(struct importing *m)
{
    m->others = 0;
    for (int i = 0; i < m->count; i++) {
        struct import_field *f = &m->fields[i];
        char parameters[4096];
        if (f->role != IMPORT_TARGET)
            continue;
        const char *target = target_of(m, f->heading, parameters, sizeof parameters);
        if (target) {
            f->name = target;
            TRY(f->variant = tune_import_add(m, &m->variants, &m->variant_count, parameters, strlen(parameters)));
        }
        m->others += !target;
    }
    return 0;
}

/* Read columns with the prefix of an experiment. If there are none, columns may have plain names of
 * targets. This requires that the caller named the inputs, or that the experiment has the
 * target. */
static int read_observed(struct importing *m)
{
    bool plain = m->i->input_count > 0;
    TRY(read_prefixed(m));
    char *dot = m->e || m->i->actuator ? NULL : strchr(m->name, '.');
    /* for "actuator.name", columns begin with the name only */
    if (m->variant_count == 0 && dot && dot > m->name && dot[1]) {
        char *name = m->name, *actuator = m->actuator;
        m->actuator = tune_pool_text(&m->memory, name, (size_t)(dot - name));
        m->name = dot + 1;
        TRY(m->actuator ? read_prefixed(m) : tune_error_no_memory("a name"));
        if (m->variant_count == 0) {
            m->actuator = actuator;
            m->name = name;
        }
    }
    for (int i = 0; i < m->count; i++) {
        struct import_field *f = &m->fields[i];
        plain = plain || (f->role == IMPORT_TARGET && m->e && tune_experiment_target(m->e, f->heading) >= 0);
        if (m->variant_count > 0 && f->role == IMPORT_TARGET && f->name == f->heading)
            f->role = IMPORT_IGNORED; /* column of another experiment */
    }
    if (m->variant_count > 0)
        return 0;
    if (!plain)
        return fail_at(m, "no column belongs to experiment ", m->name);
    m->others = 0;
    return tune_import_add(m, &m->variants, &m->variant_count, "", 0) < 0 ? -1 : 0;
}

static int read_own(struct importing *m)
{
    static const enum tune_key needed[] = {TUNE_KEY_UID, TUNE_KEY_EXPERIMENT, TUNE_KEY_ENTITY, TUNE_KEY_STATUS};
    bool there[TUNE_KEYS] = {false};
    if (!m->e)
        return fail_at(m, "unknown which columns are inputs; give the experiment's file with "
                          "`experiments`; the experiment is ", m->name);
    for (int i = 0; i < m->count; i++) {
        struct import_field *f = &m->fields[i];
        f->which = key_named(f->heading);
        f->role = f->which >= 0 ? IMPORT_KEY : tune_experiment_input(m->e, f->heading) >= 0 ? IMPORT_INPUT : IMPORT_TARGET;
        if (f->which >= 0)
            there[f->which] = true;
    }
    for (int n = 0; n < 4; n++)
        if (!there[needed[n]])
            return fail_at(m, "there is no column ", tune_key_column(needed[n])->name);
    return 0;
}

/* Set the unit of a column from "target=unit". */
static int set_unit(struct importing *m, const char *text)
{
    const char *is = strchr(text, '=');
    if (!is || is == text)
        return tune_error_usage("`units` %s: expected target=unit, such as score=tokens/s, with commas between them", text);
    char *name = tune_pool_text(&m->memory, text, (size_t)(is - text));
    if (!name)
        return tune_error_no_memory("a unit");
    if (find_column(m, name, true) < 0)
        return no_column(m, name, true);
    for (int i = 0; i < m->count; i++)
        if (m->fields[i].role == IMPORT_TARGET && !strcmp(m->fields[i].name, name))
            m->fields[i].unit = is + 1;
    return 0;
}

/* Keep only the caller's targets, if it named any, and set the units that it gave. */
static int choose_targets(struct importing *m)
{
    const char *const *wanted = m->i->targets;
    for (int k = 0; k < m->i->target_count; k++)
        if (find_column(m, wanted[k], true) < 0)
            return no_column(m, wanted[k], true);
    for (int k = 0; k < m->i->unit_count; k++)
        TRY(set_unit(m, m->i->units[k]));
    for (int i = 0; i < m->count && m->i->target_count > 0; i++)
        if (m->fields[i].role == IMPORT_TARGET && tune_name_find(wanted, m->i->target_count, m->fields[i].name) < 0)
            m->fields[i].role = IMPORT_IGNORED;
    return 0;
}

int tune_import_layout(struct importing *m)
{
    const char *const *fields;
    int count, more = tune_csv_row(m->csv, &fields, &m->count);
    TRY(more);
    if (more == 0)
        return tune_error_set("%s: the file is empty; expected a heading and rows", m->i->path);
    if (!(m->fields = tune_pool_take(&m->memory, ((size_t)m->count + 1) * sizeof *m->fields)))
        return tune_error_no_memory("a CSV file's columns");
    m->own = m->i->input_count == 0 && !strcmp(fields[0], tune_key_column(TUNE_KEY_UID)->name);
    for (int i = 0; i < m->count; i++)
        TRY(read_heading(m, i, fields[i]));
    TRY(more = tune_csv_row(m->csv, &fields, &count));
    if (more == 0)
        return tune_error_set("%s: the file has a heading but no rows", m->i->path);
    if (count != m->count)
        return fail_at(m, "this row has not as many fields as the heading", "");
    TRY(m->own ? read_own(m) : find_inputs(m, fields));
    bool by_rows = false; /* a column names the experiment of each row */
    for (int i = 0; i < m->count; i++)
        by_rows = by_rows || m->fields[i].role == IMPORT_EXPERIMENT;
    if (!m->own && !by_rows)
        TRY(read_observed(m));
    return choose_targets(m);
}

/* ---- the experiment ---- */

static void leave_out(struct importing *m, const char *name)
{
    if (strcmp(name, "model_load_time")) /* in old files of ado, always -1 */
        tune_append_item(m->i->left_out, sizeof m->i->left_out, "%s", name);
}

static int bind(struct importing *m, struct import_field *f)
{
    const struct tune_experiment *e = m->e;
    char hint[TUNE_HINT];
    if (f->role == IMPORT_INPUT && (f->which = tune_experiment_input(e, f->name)) < 0)
        return tune_error_set("%s: experiment %s has no input %s%s; to make a new experiment from "
                              "this file, give `experiment` another name",
                              m->i->path, e->name, f->name, tune_nearest_hint(f->name, e->names, e->input_count, hint));
    if (f->role != IMPORT_TARGET)
        return 0;
    if ((f->which = tune_experiment_target(e, f->name)) < 0)
        leave_out(m, f->name);
    else if (e->targets[f->which].text)
        return tune_error_usage("%s: target %s of experiment %s is a text, but import reads only "
                                "numbers: leave this column out", m->i->path, f->name, e->name);
    else if (f->unit && strcmp(f->unit, e->targets[f->which].unit))
        return tune_error_set("%s: the unit of %s is \"%s\" in this file, but in the experiment %s "
                              "it is \"%s\"; convert the column, or give `experiment` another name",
                              m->i->path, f->name, f->unit, e->name,
                              e->targets[f->which].unit);
    return f->which >= 0;
}

int tune_import_bind(struct importing *m)
{
    int targets = 0, is_target;
    for (int i = 0; i < m->count; i++) {
        TRY(is_target = bind(m, &m->fields[i]));
        targets += is_target;
    }
    if (targets == 0)
        return tune_error_set("%s: none of its columns is a target of experiment %s", m->i->path,
                              m->e->name);
    for (int k = 0; k < m->e->input_count; k++) {
        bool there = !m->e->inputs[k].required;
        for (int i = 0; i < m->count && !there; i++)
            there = m->fields[i].role == IMPORT_INPUT && m->fields[i].which == k;
        if (!there)
            return tune_error_set("%s: experiment %s needs the input %s, but the file has no such "
                                  "column", m->i->path, m->e->name, m->e->names[k]);
    }
    return 0;
}
