/* rows.c - print or export the rows of a table. No file of a space is needed. */
#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "samples.h"

/* Find a table by "name" or "actuator.name", or take the only one. NULL with an error. */
static const char *find_table(const char *name)
{
    int count;
    const char *const *names = tune_store_tables(samples.store, &count);
    const char *dot = name ? strchr(name, '.') : NULL;
    for (int i = 0; names && i < count; i++)
        if (!name ? count == 1 : !strcmp(names[i], name) || (dot && !strcmp(names[i], dot + 1)))
            return names[i];
    if (name && !strcmp(name, TUNE_STORE_REQUESTS))
        return TUNE_STORE_REQUESTS;
    if (names && count == 0)
        tune_error_set("%s has no rows yet", my.store);
    else if (names && !name)
        tune_error_usage("which experiment? %s has rows of %d: samples stats --store %s lists them", my.store, count,
                     my.store);
    else if (names)
        samples_no_such("experiment", name, names, count);
    return NULL;
}

/* Choose the columns and their order: shown[]. Returns their number, or -1. */
static int choose_columns(const struct samples_table *t, const char *wanted, int **shown)
{
    const char *parts[1024];
    int n = samples_split(wanted, parts, 1024), count = 0;
    TRY(n);
    if (!(*shown = calloc((size_t)(n + t->count) + 1, sizeof **shown)))
        return samples_no_memory();
    for (int i = 0; i < n; i++) {
        int c = tune_name_find(t->names, t->count, parts[i]);
        if (c < 0)
            return samples_no_such("column", parts[i], t->names, t->count);
        (*shown)[count++] = c;
    }
    for (int c = 0; n == 0 && c < t->count; c++)
        (*shown)[count++] = c;
    return count;
}

static int put_row(const struct samples_table *t, const struct tune_cell *cells, const int *shown, int count)
{
    for (int i = 0; i < count; i++) {
        const struct tune_column *c = &t->columns[shown[i]];
        const struct tune_cell *cell = &cells[shown[i]];
        struct tune_value whole = tune_value_int(cell->whole);
        if (c->type == TUNE_CELL_TEXT)
            samples_text(cell->text);
        else if (c->type == TUNE_CELL_WHOLE && !cell->absent)
            samples_value(&whole);
        else if (samples_people() && c->role == TUNE_COLUMN_KEY && !strcmp(c->name, tune_key_column(TUNE_KEY_STARTED)->name))
            samples_time(cell->number);
        else
            samples_number(cell->number, c->whole, 6);
    }
    return samples_end_row();
}

static int put_rows(struct samples_table *t, const int *shown, int count)
{
    const struct tune_cell *cells;
    int more;
    const char **headings = calloc((size_t)count + 1, sizeof *headings);
    if (!headings)
        return samples_no_memory();
    for (int i = 0; i < count; i++)
        headings[i] = t->names[shown[i]];
    int code = samples_begin(SAMPLES_TABLE, headings, count);
    free(headings);
    while (code == 0 && (my.limit == 0 || samples_rows() < my.limit) && (more = samples_table_next(t, &cells)) != 0)
        code = more < 0 ? -1 : put_row(t, cells, shown, count);
    return code < 0 ? -1 : samples_end();
}

static int run(const char *name, const char *where, const char *columns)
{
    struct samples_table t = {0};
    const char *table = find_table(name);
    int *shown = NULL, count;
    TRY(table ? 0 : -1);
    int code = samples_table_open(&t, samples.store, table, where);
    if (code == 0)
        code = (count = choose_columns(&t, columns, &shown)) < 0 ? -1 : put_rows(&t, shown, count);
    samples_table_free(&t);
    free(shown);
    return code;
}

int samples_list(void)
{
    return run(samples_word(0), my.where, my.columns);
}

int samples_export(void)
{
    if (samples_words() != 2 || strcmp(samples_word(0), "csv"))
        return tune_error_usage("expected: samples export csv EXPERIMENT [--where EXPRESSION] > FILE");
    my.output_format = "csv";
    my.limit = 0;
    return run(samples_word(1), my.where, NULL);
}
