/* rows.c - print the rows of a table. No file of a space is needed. */
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
static void begin(const struct samples_table *t)
{
    for (int i = 0; i < t->count; i++) {
        struct samples_column *c = samples_column(t->names[i]);
        c->measured = t->columns[i].role == TUNE_COLUMN_TARGET;
        c->hidden = samples_people() && (i == TUNE_KEY_UID || i == TUNE_KEY_ENTITY) && strcmp(t->name, TUNE_STORE_REQUESTS);
    }
    samples_begin(false);
}

int samples_list(void)
{
    static struct samples_table t;
    const struct tune_cell *cells;
    const char *table = find_table(samples_word(0));
    int more = table ? samples_table_open(&t, samples.store, table, true) : -1;
    TRY(more);
    begin(&t);
    while (!samples_full() && (more = samples_table_next(&t, &cells)) == 1)
        TRY(put_row(&t, cells));
    samples_table_free(&t);
    TRY(more);
    return samples_end();
}
