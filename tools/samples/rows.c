/* rows.c - the rows of a table as the store has them, without a space: looked at, or exported whole. */
#include <stdlib.h>
#include <string.h>

#include "samples.h"

struct rows {
    const char *table;
    const struct tune_column *columns; /* [count] of the table */
    int count;
    const char **names;                /* [count] */
    int *shown, shown_count;           /* columns that are put out */
    int *read_at;                      /* [count] where a column is among those read; -1: it is not read */
    const char **read;
    int read_count;
    struct tune_expression *where;
    const struct tune_experiment *experiment; /* whose domains give texts their values; NULL: not known */
    struct tune_value *values;         /* [count] */
};

/* "name", "actuator.name", or the only table there is. */
static int find_table(struct rows *r, const char *name)
{
    int count;
    const char *const *names = tune_store_tables(samples.store, &count);
    TRY(names ? 0 : -1);
    const char *dot = name ? strchr(name, '.') : NULL;
    for (int i = 0; i < count && !r->table; i++)
        if (!name ? count == 1 : !strcmp(names[i], name) || (dot && !strcmp(names[i], dot + 1)))
            r->table = names[i];
    if (name && !strcmp(name, TUNE_STORE_REQUESTS))
        r->table = TUNE_STORE_REQUESTS;
    if (r->table)
        return 0;
    if (count == 0)
        return samples_fail(TUNE_ERROR_FAILED, "%s has no rows yet", my.store);
    if (!name)
        return samples_fail(TUNE_ERROR_USAGE, "which experiment? %s has rows of %d: samples stats lists them", my.store, count);
    return samples_no_such("experiment", name, names, count);
}

static int find_column(const struct rows *r, const char *name)
{
    for (int i = 0; i < r->count; i++)
        if (!strcmp(r->names[i], name))
            return i;
    return -1;
}

static int choose_columns(struct rows *r, const char *wanted)
{
    const char *parts[1024];
    int n = samples_split(wanted, parts, 1024);
    for (int i = 0; i < n; i++) {
        int c = find_column(r, parts[i]);
        if (c < 0)
            return samples_no_such("column", parts[i], r->names, r->count);
        r->shown[r->shown_count++] = c;
    }
    for (int i = 0; n == 0 && i < r->count; i++)
        r->shown[r->shown_count++] = i;
    return 0;
}

static void find_experiment(struct rows *r)
{
    for (int i = 0; i < samples.catalog.count && !r->experiment; i++)
        if (!strcmp(samples.catalog.experiments[i]->name, r->table))
            r->experiment = samples.catalog.experiments[i];
}

static void read_column(struct rows *r, int c)
{
    if (r->read_at[c] >= 0)
        return;
    r->read_at[c] = r->read_count;
    r->read[r->read_count++] = r->names[c];
}

/* The columns to read, and by what to choose rows. */
static int prepare(struct rows *r, const char *where, const char *columns)
{
    if (!(r->columns = tune_store_columns(samples.store, r->table, &r->count)))
        return -1;
    size_t n = (size_t)r->count + 1;
    r->names = calloc(n, sizeof *r->names);
    r->shown = calloc(n + 1024, sizeof *r->shown);
    r->read_at = malloc(n * sizeof *r->read_at);
    r->read = calloc(n, sizeof *r->read);
    r->values = calloc(n, sizeof *r->values);
    if (!r->names || !r->shown || !r->read_at || !r->read || !r->values)
        return samples_no_memory();
    for (int i = 0; i < r->count; i++) {
        r->names[i] = r->columns[i].name;
        r->read_at[i] = -1;
    }
    TRY(choose_columns(r, columns));
    for (int i = 0; i < r->shown_count; i++)
        read_column(r, r->shown[i]);
    if (!where)
        return 0;
    TRY(samples_read_catalog());
    find_experiment(r);
    if (!(r->where = tune_expression_new(where, r->names, r->count, "--where")))
        return -1;
    for (int i = 0; i < r->count; i++)
        if (tune_expression_uses(r->where, i))
            read_column(r, i);
    return 0;
}

static const struct tune_domain *domain_of(const struct rows *r, const char *name)
{
    for (int i = 0; r->experiment && i < r->experiment->input_count; i++)
        if (!strcmp(r->experiment->names[i], name))
            return &r->experiment->inputs[i].domain;
    return NULL;
}

/* What the cell says. An input that takes anything is stored as a text: one that reads as a number is that here. */
static struct tune_value value_of(const struct rows *r, int i, const struct tune_cell *cell)
{
    const struct tune_domain *domain = domain_of(r, r->names[i]);
    char *end;
    if (cell->absent)
        return tune_value_none();
    if (domain && domain->type == TUNE_UNKNOWN && cell->text && strspn(cell->text, "+-.0123456789eE") == strlen(cell->text)) {
        double number = strtod(cell->text, &end);
        if (!*end)
            return tune_value_float(number);
    }
    return tune_rows_value(&r->columns[i], domain, NULL, cell, NULL);
}

static int is_wanted(struct rows *r, const struct tune_cell *cells)
{
    if (!r->where)
        return 1;
    for (int i = 0; i < r->count; i++)
        if (tune_expression_uses(r->where, i))
            r->values[i] = value_of(r, i, &cells[r->read_at[i]]);
    return tune_expression_true(r->where, r->values);
}

static int put_row(const struct rows *r, const struct tune_cell *cells)
{
    for (int i = 0; i < r->shown_count; i++) {
        const struct tune_column *c = &r->columns[r->shown[i]];
        const struct tune_cell *cell = &cells[r->read_at[r->shown[i]]];
        struct tune_value whole = tune_value_int(cell->whole);
        if (c->type == TUNE_CELL_TEXT)
            samples_text(cell->text);
        else if (c->type == TUNE_CELL_WHOLE && !cell->absent)
            samples_value(&whole);
        else
            samples_number(cell->number, c->whole, 6);
    }
    return samples_end_row();
}

static int put_rows(struct rows *r)
{
    const struct tune_cell *cells;
    int more;
    const char **headings = calloc((size_t)r->shown_count + 1, sizeof *headings);
    if (!headings)
        return samples_no_memory();
    for (int i = 0; i < r->shown_count; i++)
        headings[i] = r->names[r->shown[i]];
    int code = samples_begin(SAMPLES_TABLE, headings, r->shown_count);
    free(headings);
    TRY(code);
    struct tune_scan *scan = tune_scan_open(samples.store, r->table, r->read, r->read_count);
    if (!scan)
        return -1;
    while ((my.limit == 0 || samples_rows() < my.limit) && (more = tune_scan_next(scan, &cells)) != 0) {
        int wanted = more < 0 ? -1 : is_wanted(r, cells);
        code = wanted > 0 ? put_row(r, cells) : wanted;
        if (code < 0)
            break;
    }
    tune_scan_free(scan);
    TRY(code);
    return samples_end();
}

static int run(const char *name, const char *where, const char *columns)
{
    struct rows r = {0};
    int code = find_table(&r, name);
    if (code == 0)
        code = prepare(&r, where, columns);
    if (code == 0)
        code = put_rows(&r);
    tune_expression_free(r.where);
    free(r.names);
    free(r.shown);
    free(r.read_at);
    free(r.read);
    free(r.values);
    return code;
}

int samples_list(void)
{
    return run(samples_word(0), my.where, my.columns);
}

int samples_export(void)
{
    if (samples_words() != 2 || strcmp(samples_word(0), "csv"))
        return samples_fail(TUNE_ERROR_USAGE, "expected: samples export csv EXPERIMENT > FILE");
    my.output_format = "csv";
    my.limit = 0;
    return run(samples_word(1), NULL, NULL);
}
