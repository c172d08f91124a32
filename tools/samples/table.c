/* table.c - a pass over all columns of one table, with the rows that --where selects. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "samples.h"

/* Find an experiment with the table's name. Its domains turn texts into values; without it texts
 * stay texts. */
static const struct tune_experiment *find_experiment(const char *table)
{
    if (samples_read_catalog() < 0) {
        tune_error_clear();
        return NULL;
    }
    for (int i = 0; i < samples.catalog.count; i++)
        if (!strcmp(samples.catalog.experiments[i]->name, table))
            return samples.catalog.experiments[i];
    return NULL;
}

/* Set the error of a new column: compile those up to it alone. */
static int not_compiled(const struct samples_table *t, int d)
{
    tune_select_free(tune_select_new(t->names, t->stored, t->stored, NULL, samples.derived, d + 1));
    return -1;
}

/* Compile --where and --derive over the columns. */
static int compile(struct samples_table *t)
{
    int measured = 0;
    t->experiment = find_experiment(t->name);
    while (measured < t->stored && t->columns[measured].role != TUNE_COLUMN_TARGET)
        measured++;
    if (!(t->select = tune_select_new(t->names, t->stored, measured, my.where, samples.derived, samples.derived_count)))
        return -1;
    for (int d = 0; d < samples.derived_count; d++) {
        t->columns[t->count] = (struct tune_column){samples.derived[d].name, "", TUNE_CELL_NUMBER, TUNE_COLUMN_TARGET, false};
        t->names[t->count++] = samples.derived[d].name;
        if (!tune_select_compiled(t->select, d))
            return not_compiled(t, d);
    }
    return tune_select_compiled(t->select, -1) ? 0 : -1;
}

int samples_table_open(struct samples_table *t, struct tune_store *store, const char *name, bool by_flags)
{
    *t = (struct samples_table){.name = name};
    const struct tune_column *columns = tune_store_columns(store, name, &t->stored);
    int most = t->stored + samples.derived_count;
    if (!columns)
        return -1;
    t->columns = samples_take(most, sizeof *t->columns);
    t->names = samples_take(most, sizeof *t->names);
    t->values = samples_take(most, sizeof *t->values);
    t->cells = samples_take(most, sizeof *t->cells);
    memcpy(t->columns, columns, (size_t)t->stored * sizeof *columns);
    for (; t->count < t->stored; t->count++)
        t->names[t->count] = t->columns[t->count].name;
    if (by_flags && (my.where || samples.derived_count > 0))
        TRY(compile(t));
    return (t->scan = tune_scan_open(store, name, t->names, t->stored)) ? 0 : -1;
}

/* The cell's value. If an input can have any type, it is stored as text. Such a text becomes a
 * number here if it reads as one, and None if it says so and the input may be left out. */
static struct tune_value value_of(const struct samples_table *t, int i, const struct tune_cell *cell)
{
    int input = t->experiment ? tune_experiment_input(t->experiment, t->names[i]) : -1;
    const struct tune_input *in = input < 0 ? NULL : &t->experiment->inputs[input];
    const struct tune_domain *domain = in ? &in->domain : NULL;
    char *end;
    bool optional = in && !in->required && in->standard.type == TUNE_VALUE_NONE;
    if (cell->absent || (optional && cell->text && !strcmp(cell->text, "None")))
        return tune_value_none();
    if (domain && domain->type == TUNE_UNKNOWN && cell->text && strspn(cell->text, "+-.0123456789eE") == strlen(cell->text)) {
        double number = strtod(cell->text, &end);
        if (!*end)
            return tune_value_float(number);
    }
    return tune_rows_value(&t->columns[i], domain, NULL, cell);
}

/* Fill t->cells with the row's cells and the new columns. */
static int derive(struct samples_table *t, const struct tune_cell *cells)
{
    memcpy(t->cells, cells, (size_t)t->stored * sizeof *cells);
    for (int d = 0; d < samples.derived_count; d++) {
        struct tune_value value;
        double number;
        TRY(tune_select_value(t->select, d, t->values, &value));
        t->cells[t->stored + d] = value.type == TUNE_VALUE_TEXT ? tune_cell_text(value.text)
                                                                : tune_cell_number(tune_value_number(&value, &number) ? number : NAN);
    }
    return 0;
}

int samples_table_next(struct samples_table *t, const struct tune_cell **cells)
{
    int more, wanted = 0;
    while (!wanted && (more = tune_scan_next(t->scan, cells)) == 1) {
        for (int i = 0; t->select && i < t->stored; i++)
            if (tune_select_uses(t->select, i))
                t->values[i] = value_of(t, i, &(*cells)[i]);
        TRY(wanted = t->select ? tune_select_row(t->select, t->values) : 1);
    }
    if (!wanted)
        return more;
    if (t->count > t->stored) {
        TRY(derive(t, *cells));
        *cells = t->cells;
    }
    return 1;
}

void samples_table_free(struct samples_table *t)
{
    tune_scan_free(t->scan);
    tune_select_free(t->select);
    *t = (struct samples_table){0};
}

int samples_meets(struct tune_select *select, const struct tune_cell *cells, int count)
{
    struct tune_value values[SAMPLES_CELLS];
    for (int i = 0; i < count; i++)
        values[i] = cells[i].absent ? tune_value_none() : cells[i].text ? tune_value_text(cells[i].text)
                                                                        : tune_value_float(cells[i].number);
    return tune_select_row(select, values);
}
