/* view_select.c - evaluate the expressions of a view: select results, and compute new columns. */
#include "sweeps/discovery/view_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/nearest.h"
#include "core/try.h"

/* True if expressions can use this fact, because nothing else has its name. */
static bool has_fact(const struct tune_view *v, int p, int fact)
{
    const struct tune_experiment *e = v->bindings[p].experiment;
    const char *name = tune_fact_name(fact);
    return tune_experiment_target(e, name) < 0 && tune_experiment_input(e, name) < 0 && tune_name_find(v->space->names, v->space->count, name) < 0;
}

/* List the names that expressions may use under a binding. First are those of tune_binding_names.
 * From *measured on there are targets, and facts about the result. Returns their number. */
static int list_names(const struct tune_view *v, int p, const char **names, int *measured)
{
    const struct tune_experiment *e = v->bindings[p].experiment;
    int count = *measured = tune_binding_names(&v->bindings[p], v->space, names);
    for (int t = 0; t < e->target_count; t++)
        names[count++] = e->targets[t].name;
    for (int k = 0; k < TUNE_FACTS; k++)
        if (v->facts[p] >> k & 1)
            names[count++] = tune_fact_name(k);
    for (int k = 0; v->lookups[p] && k < v->lookups[p]->count; k++)
        names[count++] = v->lookups[p]->names[k];
    return count;
}

/* The store's column for a name in expressions. */
static const char *stored_name(const char *name)
{
    return strcmp(name, tune_fact_name(0)) ? name : tune_key_column(tune_fact_key(0))->name;
}

/* Add the columns of targets and facts that expressions use. */
static void add_columns(struct tune_view *v, int p, const char *const *names, int from, int count)
{
    for (int i = from; i < count; i++) {
        bool target = i - from < v->bindings[p].experiment->target_count;
        if (v->lookups[p] && i >= count - v->lookups[p]->count)
            break; /* a name of the lookup table */
        const char *name = target ? names[i] : stored_name(names[i]);
        if (tune_select_uses(v->select[p], i) && tune_name_find(v->columns, v->column_count, name) < 0)
            v->columns[v->column_count++] = name;
    }
}

/* Set the error of `where` (d = -1) or of new column d, under the first experiment. */
static int not_compiled(struct tune_view *v, int d, const char **names)
{
    int measured, count = list_names(v, 0, names, &measured);
    tune_select_free(v->select[0]);
    v->select[0] = tune_select_new(names, count, measured, d < 0 ? v->o.where : NULL, v->o.derived, d < 0 ? v->o.derived_count : d + 1);
    return -1;
}

/* Compile `where` and the new columns for each experiment. If an experiment lacks a name, none of
 * its rows match. It is an error if all lack it. */
static int compile(struct tune_view *v, const char **names)
{
    int bindings = v->space->reference_count, measured;
    if (!v->o.where && v->o.derived_count == 0)
        return 0;
    if (!(v->select = calloc((size_t)bindings + 1, sizeof *v->select)))
        return tune_view_no_memory();
    for (int p = 0; p < bindings; p++) {
        for (int k = 0; k < TUNE_FACTS; k++)
            v->facts[p] |= (unsigned)has_fact(v, p, k) << k;
        int count = list_names(v, p, names, &measured);
        v->select[p] = tune_select_new(names, count, measured, v->o.where, v->o.derived, v->o.derived_count);
        TRY(v->select[p] ? 0 : -1);
        add_columns(v, p, names, measured, count);
    }
    for (int k = 0; k <= v->o.derived_count && bindings > 0; k++) {
        int d = k < v->o.derived_count ? k : -1, p = 0;
        while (p < bindings && !tune_select_compiled(v->select[p], d))
            p++;
        if (p == bindings)
            return not_compiled(v, d, names);
    }
    tune_error_clear();
    return 0;
}

/* Choose the columns to read. compile adds those that expressions use. */
int tune_view_choose(struct tune_view *v, const char **names, int targets)
{
    v->columns = calloc((size_t)(v->o.column_count + targets) + 1, sizeof *v->columns);
    v->from = calloc((size_t)v->o.column_count + 1, sizeof *v->from);
    v->cells = calloc((size_t)v->o.column_count + 1, sizeof *v->cells);
    if (!v->columns || !v->from || !v->cells)
        return tune_view_no_memory();
    for (int i = 0; i < v->o.column_count; i++) {
        int d = 0;
        while (d < v->o.derived_count && strcmp(v->o.derived[d].name, v->o.columns[i]))
            d++;
        if (d == v->o.derived_count)
            v->columns[v->column_count] = v->o.columns[i];
        v->from[i] = d < v->o.derived_count ? -1 - d : v->column_count++;
    }
    return compile(v, names);
}

/* ---- values of rows ---- */

const struct tune_cell *tune_view_read(struct tune_view *v, const struct tune_matching_row *row)
{
    const struct tune_cell *cells;
    int p = row->binding; /* each binding has its own scan, even for the same experiment */
    if (!v->scans[p])
        v->scans[p] = tune_scan_open(v->store, v->bindings[p].experiment->name, v->columns, v->column_count);
    return v->scans[p] && tune_scan_at(v->scans[p], row->position, &cells) == 0 ? cells : NULL;
}

/* Fill v->inputs for the entity in v->values under binding p, in the order of list_names. cells:
 * those of the result, or NULL. */
static void fill_inputs(struct tune_view *v, int p, const struct tune_cell *cells)
{
    const struct tune_binding *binding = &v->bindings[p];
    int at = tune_binding_values(binding, v->space, v->values, v->inputs);
    for (int t = 0; t < binding->experiment->target_count; t++) {
        int c = cells ? tune_name_find(v->columns, v->column_count, binding->experiment->targets[t].name) : -1;
        struct tune_column plain = {.type = c >= 0 && cells[c].text ? TUNE_CELL_TEXT : TUNE_CELL_NUMBER};
        v->inputs[at++] = c < 0 ? tune_value_none() : tune_rows_value(&plain, NULL, NULL, &cells[c]);
    }
    for (int k = 0; k < TUNE_FACTS; k++) {
        if (!(v->facts[p] >> k & 1))
            continue;
        int c = cells ? tune_name_find(v->columns, v->column_count, tune_key_column(tune_fact_key(k))->name) : -1;
        v->inputs[at++] = c < 0 ? tune_value_none() : tune_fact_value(k, &cells[c], v->time);
    }
    if (v->lookups[p])
        tune_lookup_values(v->lookups[p], v->inputs, v->inputs + at);
}

/* Check if the entity in v->values, or its result with these cells, is wanted under binding p. */
int tune_view_meets(struct tune_view *v, int p, const struct tune_cell *cells)
{
    if (!v->select)
        return 1;
    fill_inputs(v, p, cells);
    return tune_select_row(v->select[p], v->inputs);
}

/* Read the requested columns of a row. Its entity is in v->values. */
const struct tune_cell *tune_view_row(struct tune_view *v, const struct tune_matching_row *row)
{
    const struct tune_cell *cells = tune_view_read(v, row);
    bool filled = false;
    if (!cells || v->o.derived_count == 0)
        return cells;
    for (int i = 0; i < v->o.column_count; i++) {
        struct tune_value value;
        double number = NAN;
        if (v->from[i] >= 0) {
            v->cells[i] = cells[v->from[i]];
            continue;
        }
        if (!filled)
            fill_inputs(v, row->binding, cells);
        filled = true;
        if (tune_select_value(v->select[row->binding], -1 - v->from[i], v->inputs, &value) < 0)
            return NULL;
        v->cells[i] = value.type == TUNE_VALUE_TEXT ? tune_cell_text(value.text)
                                                    : tune_cell_number(tune_value_number(&value, &number) ? number : NAN);
    }
    return v->cells;
}
