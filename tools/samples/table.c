/* table.c - a pass over all columns of one table, with the rows that --where selects. */
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

int samples_table_open(struct samples_table *t, struct tune_store *store, const char *name, const char *where)
{
    *t = (struct samples_table){.name = name};
    if (!(t->columns = tune_store_columns(store, name, &t->count)))
        return -1;
    t->names = calloc((size_t)t->count + 1, sizeof *t->names);
    t->values = calloc((size_t)t->count + 1, sizeof *t->values);
    if (!t->names || !t->values)
        return samples_no_memory();
    for (int i = 0; i < t->count; i++)
        t->names[i] = t->columns[i].name;
    if (where) {
        t->experiment = find_experiment(name);
        if (!(t->where = tune_expression_new(where, t->names, t->count, "--where")))
            return -1;
    }
    return (t->scan = tune_scan_open(store, name, t->names, t->count)) ? 0 : -1;
}

static const struct tune_domain *domain_of(const struct samples_table *t, const char *name)
{
    int i = t->experiment ? tune_experiment_input(t->experiment, name) : -1;
    return i < 0 ? NULL : &t->experiment->inputs[i].domain;
}

/* The cell's value. If an input can have any type, it is stored as text. Such a text becomes a
 * number here if it reads as one. */
static struct tune_value value_of(const struct samples_table *t, int i, const struct tune_cell *cell)
{
    const struct tune_domain *domain = domain_of(t, t->names[i]);
    char *end;
    if (cell->absent)
        return tune_value_none();
    if (domain && domain->type == TUNE_UNKNOWN && cell->text && strspn(cell->text, "+-.0123456789eE") == strlen(cell->text)) {
        double number = strtod(cell->text, &end);
        if (!*end)
            return tune_value_float(number);
    }
    return tune_rows_value(&t->columns[i], domain, NULL, cell);
}

int samples_table_next(struct samples_table *t, const struct tune_cell **cells)
{
    int more, wanted = 0;
    while (!wanted && (more = tune_scan_next(t->scan, cells)) == 1) {
        for (int i = 0; t->where && i < t->count; i++)
            if (tune_expression_uses(t->where, i))
                t->values[i] = value_of(t, i, &(*cells)[i]);
        TRY(wanted = t->where ? tune_expression_true(t->where, t->values) : 1);
    }
    return wanted ? 1 : more;
}

void samples_table_free(struct samples_table *t)
{
    tune_scan_free(t->scan);
    tune_expression_free(t->where);
    free(t->names);
    free(t->values);
    *t = (struct samples_table){0};
}
