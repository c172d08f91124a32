/* import.c - import rows of CSV into a store. All rows are read and checked before any is
 * written. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sweeps/discovery/import_parts.h"
#include "sweeps/discovery/uids.h"

enum { MOST_RESULTS = 65536, TEXT = TUNE_STORE_TEXT_MAX + 1 };

/* State of one line while it is parsed. */
struct line {
    struct importing *m;
    struct tune_cell *cells;  /* [TUNE_KEYS + inputs + targets] cells of the row being made */
    char *texts;              /* [inputs][TEXT] the inputs' texts */
    bool *given;              /* [inputs] true: given in the file; false: the default */
    double *values;           /* [targets][MOST_RESULTS] */
    int *counts;              /* [targets] */
    char entity[TEXT], experiment[TEXT], operation[TEXT], uid[33];
    struct tune_uids there;   /* uids in the store */
    struct tune_uids seen;    /* uids in the file, with the number of the result; the first pass
                               * collects them */
    bool writing;
};

/* Report a bad row in the current line. Returns 0, because reading continues. */
static int bad(struct importing *m, const char *format, ...) TUNE_PRINTF(2, 3);
static int bad(struct importing *m, const char *format, ...)
{
    char what[1024];
    FORMAT(what, format);
    m->i->bad++;
    if (m->i->problem)
        m->i->problem(m->i->context, m->i->path, tune_csv_line(m->csv), what);
    return 0;
}

static char *input_text(const struct line *n, int input)
{
    return n->texts + (size_t)input * TEXT;
}

/* ---- one result ---- */

static uint64_t mix_cell(const struct tune_cell *cell, uint64_t hash)
{
    double number = cell->number == 0 ? 0 : cell->number;
    return cell->absent ? hash
           : cell->text ? tune_hash64(cell->text, strlen(cell->text), hash)
                        : tune_hash64(&number, sizeof number, ~hash);
}

/* Make a uid from the contents of a row, for files without uids. Importing the row again gives the
 * same uid. It does not depend on the identifier or the order of columns, because hashes of cells
 * are added. Inputs with defaults and absent targets are left out, so an experiment may get more of
 * them later. */
static void make_uid(struct line *n, int result)
{
    const struct importing *m = n->m;
    uint64_t hash[2];
    for (int k = 0; k < 2; k++) {
        hash[k] = tune_hash64(&result, sizeof result, tune_hash64(m->name, strlen(m->name), 11 + (uint64_t)k));
        for (int i = 0; i < m->e->input_count; i++)
            if (n->given[i])
                hash[k] += mix_cell(&n->cells[TUNE_KEYS + i], tune_hash64(m->e->names[i], strlen(m->e->names[i]), (uint64_t)k));
        for (int i = 0; i < m->e->target_count; i++) {
            const struct tune_cell *cell = &n->cells[TUNE_KEYS + m->e->input_count + i];
            const char *name = m->e->targets[i].name;
            if (!cell->absent)
                hash[k] += mix_cell(cell, tune_hash64(name, strlen(name), 2 + (uint64_t)k));
        }
    }
    snprintf(n->uid, sizeof n->uid, "%016llx%016llx", (unsigned long long)hash[0], (unsigned long long)hash[1]);
}

/* Count the complete row in n->cells. In the second pass, write it, unless the store or an earlier
 * line has it. */
static int add_row(struct line *n)
{
    struct tune_import *i = n->m->i;
    uint8_t uid[16];
    uint64_t number = (uint64_t)i->results++, first;
    tune_uid_read(uid, n->uid);
    if (!n->writing)
        return tune_uids_add(&n->seen, uid, number);
    if (tune_uids_first(&n->seen, uid, &first) && first != number) {
        i->again++;
        return 0;
    }
    if (tune_uids_has(&n->there, uid))
        return 0;
    i->added++;
    return tune_store_append(i->store, n->m->e->name, n->cells, NULL);
}

/* Make the row of result k of the current line. 0 also if there is no result k. */
static int take_result(struct line *n, int k, int row)
{
    const struct importing *m = n->m;
    struct tune_cell *targets = n->cells + TUNE_KEYS + m->e->input_count;
    bool any = false, invalid = false;
    for (int i = 0; i < m->e->target_count; i++) {
        targets[i] = tune_cell_number(k < n->counts[i] ? n->values[(size_t)i * MOST_RESULTS + (size_t)k] : NAN);
        any = any || !targets[i].absent;
        invalid = invalid || (!strcmp(m->e->targets[i].name, "is_valid") && !targets[i].absent && targets[i].number == 0);
    }
    if (!any)
        return 0;
    make_uid(n, k);
    n->cells[TUNE_KEY_UID] = tune_cell_text(n->uid);
    n->cells[TUNE_KEY_REQUEST] = tune_cell_whole(row);
    n->cells[TUNE_KEY_REPEAT] = tune_cell_whole(k);
    n->cells[TUNE_KEY_STATUS] = tune_cell_text(invalid ? "invalid" : "valid");
    return add_row(n);
}

/* ---- ado's rows ---- */

/* Read the figures of one variant into values and counts. Returns the number of results; -1: the
 * row is bad. */
static int read_figures(struct line *n, const char *const *fields, int variant)
{
    struct importing *m = n->m;
    const struct tune_experiment *e = m->e;
    int results = 0;
    memset(n->counts, 0, (size_t)e->target_count * sizeof *n->counts);
    for (int i = 0; i < m->count; i++) {
        const struct import_field *f = &m->fields[i];
        if (f->role != IMPORT_TARGET || f->which < 0 || f->variant != variant)
            continue;
        int count = tune_import_values(fields[i], n->values + (size_t)f->which * MOST_RESULTS, MOST_RESULTS);
        if (count < 0) {
            bad(m, "%s: \"%.60s\" is neither a number nor a list of numbers; to import only some "
                   "columns, give `property`", f->heading, fields[i]);
            return -1;
        }
        m->i->missing += count == 0 && *fields[i];
        n->counts[f->which] = count;
        results = count > results ? count : results;
    }
    for (int i = 0; i < e->target_count; i++)
        if (n->counts[i] != 0 && n->counts[i] != results) {
            bad(m, "other columns of this row have %d results, but %s has %d, so they cannot be "
                   "matched", results, e->targets[i].name, n->counts[i]);
            return -1;
        }
    return results;
}

/* Read the text as a value of the input, and convert it to a cell. false: it is not in the
 * domain. */
static bool read_input(const struct tune_input *in, const struct tune_column *column, const char *spelled, struct tune_cell *cell,
                       char *text)
{
    struct tune_value value;
    bool missing = column->type == TUNE_CELL_NUMBER && tune_import_is_missing(spelled);
    if (missing && !in->required && in->standard.type == TUNE_VALUE_NONE) {
        *cell = tune_cell_number(NAN);
        return true;
    }
    if (tune_domain_parse(&in->domain, spelled, &value) && tune_rows_cell(column, &value, cell, text, TEXT) == 0)
        return true;
    tune_error_clear();
    return false;
}

static bool set_input(struct line *n, int input, const char *spelled)
{
    struct importing *m = n->m;
    const struct tune_input *in = &m->e->inputs[input];
    struct tune_cell *cell = &n->cells[TUNE_KEYS + input];
    n->given[input] = true;
    if (read_input(in, &m->columns[input], spelled, cell, input_text(n, input))) {
        m->i->missing += cell->absent && !cell->text;
        return true;
    }
    bad(m, "input %s of experiment %s cannot be \"%.60s\"%s", in->name, m->e->name, spelled,
        tune_import_is_missing(spelled) ? "; an empty cell is None, which is neither among its "
                                          "values nor its default" : "");
    return false;
}

/* Set the defaults of inputs. false: the row is bad, and was reported. */
static bool set_defaults(struct line *n)
{
    struct importing *m = n->m;
    for (int i = 0; i < m->e->input_count; i++) {
        n->given[i] = false;
        if (!m->e->inputs[i].required &&
            tune_rows_cell(&m->columns[i], &m->e->inputs[i].standard, &n->cells[TUNE_KEYS + i], input_text(n, i), TEXT) < 0) {
            bad(m, "%s", tune_error_message());
            return false;
        }
    }
    return true;
}

/* Set defaults, then inputs from columns, then parameters. false: the row is bad, and was
 * reported. */
static bool set_inputs(struct line *n, const char *const *fields, const char *parameters)
{
    const struct importing *m = n->m;
    struct import_part parts[TUNE_SPACE_DIMENSIONS];
    char text[TEXT];
    if (!set_defaults(n))
        return false;
    for (int i = 0; i < m->count; i++)
        if (m->fields[i].role == IMPORT_INPUT && !set_input(n, m->fields[i].which, fields[i]))
            return false;
    int count = tune_import_parameters(parameters, m->e, parts);
    for (int i = 0; i < count; i++) {
        snprintf(text, sizeof text, "%.*s", parts[i].name_length, parts[i].name);
        int input = tune_experiment_input(m->e, text);
        snprintf(text, sizeof text, "%.*s", parts[i].value_length, parts[i].value);
        if (!set_input(n, input, text))
            return false;
    }
    return true;
}

/* Take the identifier from the file, or make it from the inputs. false: it is too long. */
static bool name_entity(struct line *n, const char *const *fields)
{
    const struct importing *m = n->m;
    const char *identifier = tune_import_field(m, fields, IMPORT_IDENTIFIER);
    size_t length = (size_t)snprintf(n->entity, sizeof n->entity, "%s", identifier);
    for (int i = 0; !*identifier && i < m->count && length < sizeof n->entity; i++) {
        const struct import_field *f = &m->fields[i];
        if (f->role != IMPORT_INPUT)
            continue;
        const char *value = fields[i];
        bool none = m->columns[f->which].type == TUNE_CELL_TEXT ? !strcmp(value, "None") : tune_import_is_missing(value);
        value = none ? "None" : !strcmp(value, "True") ? "1" : !strcmp(value, "False") ? "0" : value;
        length += (size_t)snprintf(n->entity + length, sizeof n->entity - length, "%s%s.%s", length ? "-" : "", f->heading, value);
    }
    return length < sizeof n->entity;
}

static bool set_keys(struct line *n, const char *const *fields, const char *parameters)
{
    struct importing *m = n->m;
    int length = snprintf(n->experiment, sizeof n->experiment, "%s.%s%s", m->actuator, m->name, parameters);
    if (!name_entity(n, fields) || length >= (int)sizeof n->experiment) {
        bad(n->m, "the identifier has more than %d bytes", TUNE_STORE_TEXT_MAX);
        return false;
    }
    for (int k = 0; k < TUNE_KEYS; k++)
        n->cells[k] = tune_key_column((enum tune_key)k)->type == TUNE_CELL_TEXT ? tune_cell_text("") : tune_cell_number(NAN);
    n->cells[TUNE_KEY_OPERATION] = tune_cell_text(n->operation);
    n->cells[TUNE_KEY_EXPERIMENT] = tune_cell_text(n->experiment);
    n->cells[TUNE_KEY_ENTITY] = tune_cell_text(n->entity);
    n->cells[TUNE_KEY_GENERATOR] = tune_cell_text(tune_import_field(m, fields, IMPORT_GENERATOR));
    return true;
}

/* Import all results of one variant of a line. -1: an error that is not about the row. */
static int take_variant(struct line *n, const char *const *fields, int variant, const char *parameters, int row)
{
    int results = read_figures(n, fields, variant);
    if (results <= 0 || !set_keys(n, fields, parameters) || !set_inputs(n, fields, parameters))
        return 0;
    for (int k = 0; k < results; k++)
        TRY(take_result(n, k, row));
    return 0;
}

static int take_ado(struct line *n, const char *const *fields, int row)
{
    const struct importing *m = n->m;
    if (m->variant_count == 0) { /* the row names its experiment */
        const char *parameters = tune_import_suffix(m, tune_import_field(m, fields, IMPORT_EXPERIMENT));
        m->i->others += !parameters;
        m->i->rows += parameters != NULL;
        return parameters ? take_variant(n, fields, 0, parameters, row) : 0;
    }
    m->i->rows++;
    for (int v = 0; v < m->variant_count; v++)
        TRY(take_variant(n, fields, v, m->variants[v], row));
    return 0;
}

/* ---- our own rows ---- */

static const struct tune_column *column_of(const struct importing *m, int cell)
{
    return cell < TUNE_KEYS ? tune_key_column((enum tune_key)cell) : &m->columns[cell - TUNE_KEYS];
}

/* Convert a field to its column's type. */
static bool read_cell(const struct tune_column *c, const char *text, struct tune_cell *cell)
{
    char *end;
    *cell = c->type == TUNE_CELL_TEXT ? tune_cell_text(text) : tune_cell_number(NAN);
    if (c->type == TUNE_CELL_TEXT || (c->type == TUNE_CELL_NUMBER && tune_import_is_missing(text)))
        return true;
    bool good = tune_import_number(text, &cell->number);
    cell->absent = false;
    if (c->type == TUNE_CELL_NUMBER)
        return good;
    errno = 0;
    cell->whole = strtoll(text, &end, 10);
    bool exact = !*end && errno == 0;
    if (!exact && good && cell->number == floor(cell->number) && fabs(cell->number) <= 9007199254740992.0)
        cell->whole = (int64_t)cell->number;
    else
        good = good && exact;
    cell->number = (double)cell->whole;
    return good;
}

static bool read_own(struct line *n, const char *const *fields)
{
    struct importing *m = n->m;
    int all = TUNE_KEYS + m->e->input_count + m->e->target_count;
    for (int c = 0; c < all; c++)
        n->cells[c] = column_of(m, c)->type == TUNE_CELL_TEXT ? tune_cell_text("") : tune_cell_number(NAN);
    n->cells[TUNE_KEY_REQUEST] = n->cells[TUNE_KEY_REPEAT] = (struct tune_cell){0};
    if (!set_defaults(n))
        return false;
    for (int i = 0; i < m->count; i++) {
        const struct import_field *f = &m->fields[i];
        int c = f->which + (f->role == IMPORT_KEY ? 0 : f->role == IMPORT_INPUT ? TUNE_KEYS : TUNE_KEYS + m->e->input_count);
        if (f->role == IMPORT_IGNORED || f->which < 0)
            continue;
        if (!read_cell(column_of(m, c), fields[i], &n->cells[c])) {
            bad(m, "%s: \"%.60s\" is not a %s", f->heading, fields[i],
                column_of(m, c)->type == TUNE_CELL_WHOLE ? "whole number" : "number");
            return false;
        }
        if (n->cells[c].text && strlen(n->cells[c].text) > TUNE_STORE_TEXT_MAX) {
            bad(m, "%s: the text has more than %d bytes", f->heading, TUNE_STORE_TEXT_MAX);
            return false;
        }
    }
    return true;
}

static int take_own(struct line *n, const char *const *fields)
{
    struct importing *m = n->m;
    const struct tune_cell *keys = n->cells;
    if (!read_own(n, fields))
        return 0;
    if (!tune_import_suffix(m, keys[TUNE_KEY_EXPERIMENT].text)) {
        m->i->others++;
        return 0;
    }
    m->i->rows++;
    const char *uid = keys[TUNE_KEY_UID].text, *status = keys[TUNE_KEY_STATUS].text;
    if (strlen(uid) != 32 || strspn(uid, "0123456789abcdef") != 32)
        return bad(m, "uid: \"%.60s\" is not a uid; expected 32 hexadecimal digits", uid);
    if (strcmp(status, "valid") && strcmp(status, "invalid") && strcmp(status, "failed"))
        return bad(m, "status: found \"%.60s\", expected valid, invalid or failed", status);
    if (keys[TUNE_KEY_ENTITY].absent)
        return bad(m, "the row names no entity");
    strcpy(n->uid, uid);
    return add_row(n);
}

/* ---- passes ---- */

static int pass(struct line *n)
{
    struct importing *m = n->m;
    const char *const *fields;
    int count, more, row = 0;
    m->i->rows = m->i->results = m->i->again = m->i->added = m->i->others = m->i->missing = 0;
    TRY(tune_csv_rewind(m->csv));
    TRY(tune_csv_row(m->csv, &fields, &count));
    for (; (more = tune_csv_row(m->csv, &fields, &count)) == 1; row++) {
        if (count != m->count)
            bad(m, "the row has %d fields, but the heading has %d", count, m->count);
        else
            TRY(m->own ? take_own(n, fields) : take_ado(n, fields, row));
    }
    m->i->others += m->others;
    return more;
}

static int read_uids(struct line *n)
{
    int tables, more = 0;
    const char *const *names = tune_store_tables(n->m->i->store, &tables);
    TRY(names ? 0 : -1);
    for (int t = 0; t < tables && more == 0; t++) {
        const struct tune_cell *cells;
        struct tune_scan *scan = TUNE_SCAN(n->m->i->store, names[t], TUNE_KEY_UID);
        tune_scan_everything(scan); /* include forgotten rows */
        while ((more = tune_scan_next(scan, &cells)) == 1)
            if ((more = tune_uids_add_text(&n->there, cells[0].text)) < 0)
                break;
        tune_scan_free(scan);
    }
    tune_uids_sort(&n->there);
    return more;
}

static int write_rows(struct line *n)
{
    struct tune_store *s = n->m->i->store;
    const struct tune_experiment *e = n->m->e;
    TRY(read_uids(n));
    tune_uids_sort(&n->seen);
    TRY(tune_store_table(s, e->name, n->m->columns, e->input_count + e->target_count));
    tune_store_begin(s);
    n->writing = true;
    int code = pass(n);
    struct tune_error why;
    tune_error_save(&why);
    int committed = tune_store_commit(s);
    if (code < 0)
        tune_error_restore(&why);
    return code < 0 ? -1 : committed;
}

static int read_lines(struct importing *m)
{
    struct line n = {.m = m};
    const struct tune_experiment *e = m->e;
    const char *slash = strrchr(m->i->path, '/');
    snprintf(n.operation, sizeof n.operation, "import %s", slash ? slash + 1 : m->i->path);
    n.cells = tune_pool_take(&m->memory, (size_t)(TUNE_KEYS + e->input_count + e->target_count) * sizeof *n.cells);
    n.texts = tune_pool_take(&m->memory, (size_t)e->input_count * TEXT);
    n.values = tune_pool_take(&m->memory, (size_t)e->target_count * MOST_RESULTS * sizeof *n.values);
    n.counts = tune_pool_take(&m->memory, (size_t)e->target_count * sizeof *n.counts);
    n.given = tune_pool_take(&m->memory, (size_t)e->input_count * sizeof *n.given);
    int code = n.cells && n.texts && n.values && n.counts && n.given ? pass(&n) : tune_error_no_memory("the rows of a CSV file");
    if (code == 0 && m->i->bad > 0) {
        tune_error_set("%s: %lld bad row%s; nothing was imported", m->i->path, (long long)m->i->bad, m->i->bad == 1 ? "" : "s");
        code = -1;
    } else if (code == 0 && m->i->results == 0) {
        tune_error_set("%s: none of its rows is a result of experiment %s.%s", m->i->path,
                       m->actuator, m->name);
        code = -1;
    }
    if (code == 0)
        code = write_rows(&n);
    tune_uids_free(&n.there);
    tune_uids_free(&n.seen);
    return code;
}

/* ---- the entry point ---- */

static int name_it(struct importing *m, const char *actuator, size_t length, const char *name)
{
    char *copy = tune_pool_text(&m->memory, name, strlen(name));
    m->actuator = tune_pool_text(&m->memory, actuator, length);
    m->name = copy;
    return copy && m->actuator ? 0 : tune_error_no_memory("a name");
}

/* Find the experiment: a known one, or the name of a new one. */
static int find_experiment(struct importing *m)
{
    const char *wanted = m->i->experiment, *actuator = m->i->actuator;
    m->e = tune_catalog_known(m->i->catalog, actuator, wanted);
    const char *of = m->e ? m->e->actuator : actuator ? actuator : "replay";
    size_t n = strlen(of);
    bool full = !m->e && !strncmp(wanted, of, n) && wanted[n] == '.';
    const char *name = m->e ? m->e->name : full ? wanted + n + 1 : wanted;
    return name_it(m, of, n, name);
}

/* Take the actuator of an unknown experiment from the file's experiment_id, "actuator.name...". */
static int find_actuator(struct importing *m)
{
    const char *const *fields;
    size_t length = strlen(m->name);
    int count, more;
    if (m->e || m->i->actuator || m->own || m->variant_count > 0)
        return 0;
    TRY(tune_csv_rewind(m->csv));
    TRY(tune_csv_row(m->csv, &fields, &count));
    while ((more = tune_csv_row(m->csv, &fields, &count)) == 1) {
        const char *id = count == m->count ? tune_import_field(m, fields, IMPORT_EXPERIMENT) : "";
        size_t n = strcspn(id, ".");
        bool full = !strncmp(id, m->name, length) && n > 0 && n < length;
        if (id[n] && (full || tune_import_suffix(m, id)))
            return name_it(m, id, n, full ? m->name + n + 1 : m->name);
    }
    return more;
}

static int import(struct importing *m)
{
    TRY(find_experiment(m));
    if (!(m->csv = tune_csv_open(m->i->path)))
        return -1;
    TRY(tune_import_layout(m));
    TRY(find_actuator(m));
    if (!m->e) {
        TRY(tune_import_make(m));
        m->e = m->made;
    }
    TRY(tune_import_bind(m));
    TRY(tune_rows_columns(m->e, &m->columns));
    return read_lines(m);
}

int tune_import_csv(struct tune_import *i)
{
    struct importing m = {.i = i};
    i->rows = i->others = i->results = i->added = i->bad = i->missing = 0;
    i->made = false;
    *i->left_out = 0;
    int code = import(&m);
    if (code < 0 && i->added == 0)
        tune_import_forget(&m);
    free(m.variants);
    tune_csv_free(m.csv);
    tune_experiment_free(m.made);
    free(m.columns);
    tune_pool_free(m.memory);
    return code;
}
