/* import_layout.c - find the roles of the columns of a CSV file, and parse identifiers of entities
 * and experiments. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/nearest.h"
#include "sweeps/discovery/import_parts.h"

static int no_memory(void)
{
    return tune_error_cannot("out of memory while a CSV file is read");
}

/* ---- identifiers ---- */

/* True if cell and identifier agree: the same text, the same number, or an empty cell for None. */
static bool agrees(const char *cell, const char *text, size_t length)
{
    char copy[TUNE_STORE_TEXT_MAX + 1];
    double a, b;
    if (strlen(cell) == length && !strncmp(cell, text, length))
        return true;
    if (length >= sizeof copy)
        return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    return (tune_import_is_none(copy) && tune_import_is_none(cell)) ||
           (!strcmp(cell, "True") && !strcmp(copy, "1")) || (!strcmp(cell, "False") && !strcmp(copy, "0")) ||
           (tune_import_number(cell, &a) && tune_import_number(copy, &b) && a == b);
}

/* The end of "name.value" at the start of `at`, with the cell as value. It is at a '-', or, of the
 * last part, at the end of the text. NULL: it does not match. */
static const char *part_end(const char *at, const char *name, const char *cell, bool last)
{
    size_t length = strlen(name);
    if (strncmp(at, name, length) || at[length] != '.')
        return NULL;
    const char *value = at + length + 1;
    if (last)
        return agrees(cell, value, strlen(value)) ? value + strlen(value) : NULL;
    for (const char *end = strchr(value, '-'); end; end = strchr(end + 1, '-'))
        if (agrees(cell, value, (size_t)(end - value)))
            return end;
    return NULL;
}

/* True if the identifier is made of these fields, in any order. Newer files of ado sort them. */
static bool is_made_of(const struct import_layout *l, const char *const *fields, const char *identifier, struct import_part *parts)
{
    bool used[TUNE_SPACE_DIMENSIONS] = {false};
    const char *at = identifier;
    for (int n = 0; n < l->inputs; n++) {
        const char *end = NULL;
        int i = 0;
        for (; i < l->inputs; i++)
            if (!used[i] && (end = part_end(at, l->headings[l->input[i]], fields[l->input[i]], n + 1 == l->inputs)))
                break;
        if (!end)
            return false;
        size_t name = strlen(l->headings[l->input[i]]);
        used[i] = true;
        parts[i] = (struct import_part){l->headings[l->input[i]], at + name + 1, (int)name, (int)(end - at - (ptrdiff_t)name - 1)};
        at = end + 1;
    }
    return true;
}

const char *tune_import_field(const struct import_layout *l, const char *const *fields, enum import_role role)
{
    for (int i = 0; i < l->count; i++)
        if (l->fields[i].role == role)
            return fields[i];
    return "";
}

bool tune_import_identifier(const struct import_layout *l, const char *const *fields, struct import_part *parts)
{
    if (l->spelled)
        return is_made_of(l, fields, tune_import_field(l, fields, IMPORT_IDENTIFIER), parts);
    for (int i = 0; i < l->inputs; i++) {
        const char *name = l->headings[l->input[i]], *value = fields[l->input[i]];
        parts[i] = (struct import_part){name, value, (int)strlen(name), (int)strlen(value)};
    }
    return true;
}

/* The length of the input's name at the start of "-name.value"; 0: none. */
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

int tune_import_parameters(const char *text, const struct tune_experiment *e, struct import_part *parts, int most)
{
    int count = 0;
    for (const char *at = text, *end; *at; at = end) {
        int name = parameter_at(at, e);
        if (name == 0 || count == most)
            return -1;
        end = at + 1 + name + 1;
        while (*end && !parameter_at(end, e))
            end++;
        parts[count++] = (struct import_part){at + 1, at + 1 + name + 1, name, (int)(end - at) - name - 2};
    }
    return count;
}

const char *tune_import_own_experiment(const struct importing *m, const char *identifier)
{
    struct import_part parts[TUNE_SPACE_DIMENSIONS];
    size_t length = strlen(m->name);
    const char *at = strchr(identifier, '.');
    if (!at || strncmp(at + 1, m->name, length))
        return NULL;
    at += 1 + length;
    if (!strncmp(at, "@v", 2)) /* newer versions of ado add a version after the name */
        at += 2 + strspn(at + 2, "0123456789.");
    return tune_import_parameters(at, m->e, parts, TUNE_SPACE_DIMENSIONS) < 0 ? NULL : at;
}

/* ---- headings ---- */

static int fail_at(const struct importing *m, const char *what, const char *name)
{
    return tune_error_set("%s:%lld: %s%s", m->i->path, (long long)tune_csv_line(m->csv), what,
                          name);
}

static int copy_headings(struct importing *m, const char *const *fields, int count)
{
    struct import_layout *l = &m->layout;
    l->fields = tune_pool_take(&m->memory, ((size_t)count + 1) * sizeof *l->fields);
    l->headings = tune_pool_take(&m->memory, ((size_t)count + 1) * sizeof *l->headings);
    if (!l->fields || !l->headings)
        return no_memory();
    for (l->count = 0; l->count < count; l->count++)
        if (!(l->headings[l->count] = tune_pool_text(&m->memory, fields[l->count], strlen(fields[l->count]))))
            return no_memory();
        else
            l->fields[l->count].role = IMPORT_FREE;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < i && *fields[i]; k++)
            if (!strcmp(fields[i], fields[k]))
                return fail_at(m, "a second column ", fields[i]);
    return 0;
}

/* Find the target in "[<parameters>]-<target>" after the experiment's name. NULL: the column
 * belongs to another experiment. */
static const char *target_of(const struct importing *m, const char *heading, char *parameters, size_t size)
{
    const char *best = NULL;
    size_t name = strlen(m->name), all = strlen(heading);
    if (strncmp(heading, m->name, name))
        return NULL;
    for (int i = 0; m->e && i < m->e->target_count; i++) {
        size_t n = strlen(m->e->targets[i].name);
        if (all > n + name && heading[all - n - 1] == '-' && !strcmp(heading + all - n, m->e->targets[i].name) &&
            (!best || n > strlen(best)))
            best = heading + all - n;
    }
    const char *last = strrchr(heading + name, '-');
    if (!best && last)
        best = last + 1; /* names of ado's targets have no '-' */
    if (!best || !*best)
        return NULL;
    snprintf(parameters, size, "%.*s", (int)(best - 1 - heading - (ptrdiff_t)name), heading + name);
    struct import_part parts[TUNE_SPACE_DIMENSIONS];
    return tune_import_parameters(parameters, m->e, parts, TUNE_SPACE_DIMENSIONS) < 0 ? NULL : best;
}

static int add_variant(struct importing *m, const char *parameters)
{
    struct import_layout *l = &m->layout;
    int known = tune_name_find((const char *const *)l->variants, l->variant_count, parameters);
    if (known >= 0)
        return known;
    if (!tune_array_fit(&l->variants, (size_t)l->variant_count, sizeof *l->variants))
        return no_memory();
    return (l->variants[l->variant_count] = tune_pool_text(&m->memory, parameters, strlen(parameters))) ? l->variant_count++ : no_memory();
}

static int read_observed_target(struct importing *m, int i)
{
    struct import_layout *l = &m->layout;
    char parameters[4096];
    const char *target = target_of(m, l->headings[i], parameters, sizeof parameters);
    if (!target) {
        l->others++;
        return 0;
    }
    int variant = add_variant(m, parameters);
    TRY(variant);
    l->fields[i] = (struct import_field){.role = IMPORT_TARGET, .name = target, .variant = variant};
    return 0;
}

static int usage_at(const struct importing *m, const char *what, const char *name)
{
    const struct import_layout *l = &m->layout;
    char hint[TUNE_HINT];
    return tune_error_usage("%s:%lld: there is no column %s, which is asked for as %s%s", m->i->path,
                            (long long)tune_csv_line(m->csv), name, what,
                            tune_nearest_hint(name, (const char *const *)l->headings, l->count, hint));
}

static bool is_free(const struct import_layout *l, int i)
{
    return l->fields[i].role == IMPORT_FREE;
}

/* Index of the column with that name that is not one of the fixed ones; -1: none. */
static int find_column(const struct import_layout *l, const char *name)
{
    for (int i = 0; i < l->count; i++)
        if (is_free(l, i) && !strcmp(l->headings[i], name))
            return i;
    return -1;
}

/* Take the dimensions that the caller named. */
static int name_inputs(struct importing *m)
{
    struct import_layout *l = &m->layout;
    for (l->inputs = 0; l->inputs < m->i->input_count && l->inputs < TUNE_SPACE_DIMENSIONS; l->inputs++)
        if ((l->input[l->inputs] = find_column(l, m->i->inputs[l->inputs])) < 0)
            return usage_at(m, "an input", m->i->inputs[l->inputs]);
    return 0;
}

/* True if the identifier has the name before a '.', at its start or after a '-'. */
static bool has_name(const char *identifier, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = identifier; n > 0 && (at = strstr(at, name)); at++)
        if ((at == identifier || at[-1] == '-') && at[n] == '.')
            return true;
    return false;
}

/* Take the columns that the first row's identifier is made of: those that it names, or the first
 * ones. */
static bool find_spelled(struct import_layout *l, const char *const *first)
{
    struct import_part parts[TUNE_SPACE_DIMENSIONS];
    const char *identifier = tune_import_field(l, first, IMPORT_IDENTIFIER);
    l->inputs = 0;
    for (int i = 0; i < l->count && l->inputs < TUNE_SPACE_DIMENSIONS; i++)
        if (is_free(l, i) && has_name(identifier, l->headings[i]))
            l->input[l->inputs++] = i;
    if (l->inputs > 0 && is_made_of(l, first, identifier, parts))
        return true;
    l->inputs = 0;
    for (int i = 0; i < l->count && l->inputs < TUNE_SPACE_DIMENSIONS; i++) {
        if (!is_free(l, i))
            continue;
        l->input[l->inputs++] = i;
        if (is_made_of(l, first, identifier, parts))
            return true;
    }
    return false;
}

/* Take the columns in the first row's identifier; else those of the experiment's inputs. */
static int find_inputs(struct importing *m, const char *const *first)
{
    struct import_layout *l = &m->layout;
    if (find_spelled(l, first))
        return 0;
    l->inputs = 0;
    for (int k = 0; m->e && k < m->e->input_count; k++)
        if ((l->input[l->inputs] = find_column(l, m->e->names[k])) >= 0 && ++l->inputs == TUNE_SPACE_DIMENSIONS)
            break;
    if (l->inputs > 0)
        return 0;
    return fail_at(m, m->e ? "no column is an input of the experiment, and no identifier (\"name.value-name.value\") names one; say "
                             "which are (`inputs`); the first identifier is: "
                           : "which columns are inputs cannot be told: the experiment is unknown, and no identifier "
                             "(\"name.value-name.value\") names them; say which are (`inputs`), or give the experiment's file "
                             "(`experiments`); the first identifier is: ", tune_import_field(l, first, IMPORT_IDENTIFIER));
}

/* Keep only the targets that the caller named. */
static int choose_targets(struct importing *m)
{
    struct import_layout *l = &m->layout;
    const char *const *wanted = m->i->targets;
    for (int k = 0; k < m->i->target_count; k++) {
        bool there = false;
        for (int i = 0; i < l->count; i++)
            there = there || (l->fields[i].role == IMPORT_TARGET && !strcmp(l->fields[i].name, wanted[k]));
        if (!there)
            return usage_at(m, "a target", wanted[k]);
    }
    for (int i = 0; i < l->count && m->i->target_count > 0; i++)
        if (l->fields[i].role == IMPORT_TARGET && tune_name_find(wanted, m->i->target_count, l->fields[i].name) < 0)
            l->fields[i].role = IMPORT_IGNORED;
    return 0;
}

static int read_observed_targets(struct importing *m)
{
    struct import_layout *l = &m->layout;
    l->others = 0;
    for (int i = 0; i < l->count; i++)
        if (l->fields[i].role == IMPORT_TARGET)
            TRY(read_observed_target(m, i));
    return 0;
}

/* In observed format, columns are named "<experiment>-<target>". Where none is, and the caller named
 * the inputs or some columns are the experiment's targets, the names are those of targets. */
static int read_observed(struct importing *m)
{
    struct import_layout *l = &m->layout;
    bool plain = m->i->input_count > 0;
    for (int i = 0; i < l->count; i++)
        plain = plain || (l->fields[i].role == IMPORT_TARGET && m->e && tune_experiment_target(m->e, l->headings[i]) >= 0);
    TRY(read_observed_targets(m));
    char *name = m->name, *actuator = m->actuator, *dot = m->e || m->i->actuator ? NULL : strchr(name, '.');
    if (l->variant_count == 0 && dot && dot > name && dot[1]) { /* "actuator.name": columns have the name alone */
        *dot = 0;
        m->actuator = name;
        m->name = dot + 1;
        TRY(read_observed_targets(m));
        if (l->variant_count == 0) {
            *dot = '.';
            m->actuator = actuator;
            m->name = name;
        }
    }
    if (l->variant_count > 0) {
        for (int i = 0; i < l->count; i++)
            if (l->fields[i].role == IMPORT_TARGET && l->fields[i].name == l->headings[i])
                l->fields[i].role = IMPORT_IGNORED; /* another experiment's */
        return 0;
    }
    if (!plain)
        return fail_at(m, "no column is of this experiment: ", m->name);
    l->format = IMPORT_PLAIN;
    l->others = 0;
    return 0;
}

/* Find the roles of the columns that are not fixed: dimensions and targets. */
static int read_ado(struct importing *m, const char *const *first)
{
    struct import_layout *l = &m->layout;
    struct import_part parts[TUNE_SPACE_DIMENSIONS];
    TRY(m->i->input_count > 0 ? name_inputs(m) : find_inputs(m, first));
    l->spelled = is_made_of(l, first, tune_import_field(l, first, IMPORT_IDENTIFIER), parts);
    for (int i = 0; i < l->count; i++)
        if (is_free(l, i))
            l->fields[i] = (struct import_field){.role = *l->headings[i] ? IMPORT_TARGET : IMPORT_IGNORED, .name = l->headings[i]};
    for (int i = 0; i < l->inputs; i++)
        l->fields[l->input[i]].role = IMPORT_INPUT;
    if (l->format == IMPORT_OBSERVED)
        TRY(read_observed(m));
    return choose_targets(m);
}

static int read_own(struct importing *m)
{
    struct import_layout *l = &m->layout;
    if (!m->e)
        return fail_at(m, "which of these columns are inputs cannot be told without the experiment's file; name it with "
                       "`experiments`: ", m->name);
    for (int i = 0; i < l->count; i++) {
        int key = 0;
        while (key < TUNE_KEYS && strcmp(l->headings[i], tune_key_column((enum tune_key)key)->name))
            key++;
        l->fields[i] = (struct import_field){.role = key < TUNE_KEYS ? IMPORT_KEY : IMPORT_TARGET, .name = l->headings[i],
                                             .which = key};
        if (key == TUNE_KEYS && tune_experiment_input(m->e, l->headings[i]) >= 0)
            l->fields[i].role = IMPORT_INPUT;
    }
    static const enum tune_key needed[] = {TUNE_KEY_UID, TUNE_KEY_EXPERIMENT, TUNE_KEY_ENTITY, TUNE_KEY_STATUS};
    for (int n = 0; n < 4; n++) {
        bool there = false;
        for (int i = 0; i < l->count; i++)
            there = there || (l->fields[i].role == IMPORT_KEY && l->fields[i].which == (int)needed[n]);
        if (!there)
            return fail_at(m, "there is no column ", tune_key_column(needed[n])->name);
    }
    return choose_targets(m);
}

/* Find the columns of ado's files that are neither dimensions nor figures, wherever they stand. */
static void read_fixed(struct importing *m)
{
    struct import_layout *l = &m->layout;
    static const struct { const char *name; enum import_role role; } fixed[] = {
        {"", IMPORT_IGNORED}, {"identifier", IMPORT_IDENTIFIER}, {"generatorid", IMPORT_GENERATOR},
        {"experiment_id", IMPORT_EXPERIMENT}, {"request_index", IMPORT_IGNORED}, {"result_index", IMPORT_IGNORED},
        {"valid", IMPORT_IGNORED}};
    l->format = IMPORT_OBSERVED;
    for (int i = 0; i < l->count; i++)
        for (int k = 0; k < 7; k++) {
            bool own = m->e && (tune_experiment_input(m->e, fixed[k].name) >= 0 || tune_experiment_target(m->e, fixed[k].name) >= 0);
            if (own || strcmp(l->headings[i], fixed[k].name))
                continue;
            l->fields[i].role = fixed[k].role;
            if (fixed[k].role == IMPORT_EXPERIMENT)
                l->format = IMPORT_TARGETS;
        }
}

int tune_import_layout_read(struct importing *m)
{
    const char *const *fields;
    int count, more = tune_csv_row(m->csv, &fields, &count);
    TRY(more);
    if (more == 0)
        return tune_error_set("%s: it is empty; expected a heading and rows", m->i->path);
    TRY(copy_headings(m, fields, count));
    bool own = m->i->input_count == 0 && !strcmp(m->layout.headings[0], tune_key_column(TUNE_KEY_UID)->name);
    if (!own)
        read_fixed(m);
    TRY(more = tune_csv_row(m->csv, &fields, &count));
    if (more == 0)
        return tune_error_set("%s: it has a heading and no rows", m->i->path);
    if (count != m->layout.count)
        return fail_at(m, "a row with another number of fields than the heading", "");
    TRY(own ? read_own(m) : read_ado(m, fields));
    return tune_csv_rewind(m->csv);
}

/* ---- the experiment ---- */

static int leave_out(struct importing *m, const char *name)
{
    size_t n = strlen(m->i->left_out);
    if (strcmp(name, "model_load_time")) /* in old files of ado, always -1 */
        snprintf(m->i->left_out + n, sizeof m->i->left_out - n, "%s%s", n ? ", " : "", name);
    return -1;
}

/* Check that every input without a default has a column. */
static int check_required(const struct importing *m)
{
    for (int k = 0; k < m->e->input_count; k++) {
        bool there = !m->e->inputs[k].required;
        for (int i = 0; i < m->layout.count && !there; i++)
            there = m->layout.fields[i].role == IMPORT_INPUT && m->layout.fields[i].which == k;
        if (!there)
            return tune_error_set("%s: %s needs %s, and the file has no column of it", m->i->path,
                                  m->e->name, m->e->names[k]);
    }
    return 0;
}

int tune_import_layout_bind(struct importing *m)
{
    bool any = false;
    for (int i = 0; i < m->layout.count; i++) {
        struct import_field *f = &m->layout.fields[i];
        if (f->role == IMPORT_INPUT && (f->which = tune_experiment_input(m->e, f->name)) < 0) {
            char hint[TUNE_HINT];
            return tune_error_set("%s: %s has no input %s%s; under another name of `experiment` one is made of what is in the "
                                  "file", m->i->path, m->e->name, f->name,
                                  tune_nearest_hint(f->name, m->e->names, m->e->input_count, hint));
        }
        if (f->role == IMPORT_TARGET && (f->which = tune_experiment_target(m->e, f->name)) < 0)
            leave_out(m, f->name);
        any = any || (f->role == IMPORT_TARGET && f->which >= 0);
    }
    if (!any)
        return tune_error_set("%s: none of its columns is a target of %s", m->i->path, m->e->name);
    return check_required(m);
}
