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

static int put_row(const struct samples_table *t, const struct tune_cell *cells)
{
    for (int i = 0; i < t->count; i++) {
        const struct tune_column *c = &t->columns[i];
        struct tune_value whole = tune_value_int(cells[i].whole);
        if (cells[i].text)
            samples_text(cells[i].text);
        else if (c->type == TUNE_CELL_WHOLE && !cells[i].absent)
            samples_value(&whole);
        else if (samples_people() && c->role == TUNE_COLUMN_KEY && !strcmp(c->name, tune_key_column(TUNE_KEY_STARTED)->name))
            samples_time(cells[i].number);
        else
            samples_number(cells[i].number, c->whole, 5);
    }
    return samples_end_row();
}

/* People see the inputs and no identifiers, unless they ask. */
static int begin(const struct samples_table *t)
{
    struct samples_column *columns = calloc((size_t)t->count + 1, sizeof *columns);
    if (!columns)
        return samples_no_memory();
    for (int i = 0; i < t->count; i++) {
        columns[i].heading = t->names[i];
        columns[i].measured = t->columns[i].role == TUNE_COLUMN_TARGET;
        columns[i].hidden = samples_people() && (i == TUNE_KEY_UID || i == TUNE_KEY_ENTITY) && strcmp(t->name, TUNE_STORE_REQUESTS);
    }
    int code = samples_begin(SAMPLES_SHEET, columns, t->count);
    free(columns);
    return code;
}

static int put_rows(struct samples_table *t)
{
    const struct tune_cell *cells;
    int more, code = begin(t);
    while (code == 0 && !samples_full() && (more = samples_table_next(t, &cells)) != 0)
        code = more < 0 ? -1 : put_row(t, cells);
    return code < 0 ? -1 : samples_end();
}

static int run(const char *name)
{
    struct samples_table t = {0};
    const char *table = find_table(name);
    TRY(table ? 0 : -1);
    int code = samples_table_open(&t, samples.store, table, true);
    if (code == 0)
        code = put_rows(&t);
    samples_table_free(&t);
    return code;
}

int samples_list(void)
{
    return run(samples_word(0));
}

int samples_export(void)
{
    if (samples_words() != 2 || strcmp(samples_word(0), "csv"))
        return tune_error_usage("expected: samples export csv EXPERIMENT [--where EXPRESSION] > FILE");
    if (my.columns || my.sort || my.group_by || my.limit > 0)
        return tune_error_usage("export writes whole rows, which import reads; samples rows %s --output-format csv takes "
                                "--columns, --sort, --group-by and --limit", samples_word(1));
    my.output_format = "csv";
    return run(samples_word(1));
}
