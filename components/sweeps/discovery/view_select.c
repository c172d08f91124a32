/* view_select.c - the expressions of a view: which results are wanted, and new columns. */
#include "sweeps/discovery/view_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/nearest.h"
#include "core/try.h"

/* Two columns say how good a row's figures are. */
static const char *quality(int k)
{
    return tune_key_column(k ? TUNE_KEY_STABLE : TUNE_KEY_CORE_SHARE)->name;
}

/* True if nothing else has that name. */
static bool has_quality(const struct tune_view *v, int p, int k)
{
    const struct tune_experiment *e = v->protocols[p].experiment;
    const char *name = quality(k);
    return tune_experiment_target(e, name) < 0 && tune_experiment_input(e, name) < 0 && tune_name_find(v->space->names, v->space->count, name) < 0;
}

bool tune_view_of_entities(const struct tune_view *v)
{
    return v->o.include == TUNE_VIEW_MISSING || v->o.include == TUNE_VIEW_UNMEASURED;
}

/* Names that expressions may use under a protocol: those of tune_protocol_names. From *measured on:
 * its targets, and how good its figures are. Returns their number. */
static int list_names(const struct tune_view *v, int p, const char **names, int *measured)
{
    const struct tune_experiment *e = v->protocols[p].experiment;
    int count = *measured = tune_protocol_names(&v->protocols[p], v->space, names);
    for (int t = 0; t < e->target_count && !tune_view_of_entities(v); t++)
        names[count++] = e->targets[t].name;
    for (int k = 0; k < 2 && !tune_view_of_entities(v); k++)
        if (has_quality(v, p, k))
            names[count++] = quality(k);
    return count;
}

/* Read the targets that expressions use, too. */
static void add_columns(struct tune_view *v, int p, const char *const *names, int from, int count)
{
    for (int i = from; i < count; i++)
        if (tune_select_uses(v->select[p], i) && tune_name_find(v->columns, v->column_count, names[i]) < 0)
            v->columns[v->column_count++] = names[i];
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
 * its rows match. If all lack it, that is an error. */
static int compile(struct tune_view *v, const char **names)
{
    int protocols = v->space->reference_count, measured;
    if (!v->o.where && v->o.derived_count == 0)
        return 0;
    if (!(v->select = calloc((size_t)protocols + 1, sizeof *v->select)))
        return tune_view_no_memory();
    for (int p = 0; p < protocols; p++) {
        int count = list_names(v, p, names, &measured);
        v->select[p] = tune_select_new(names, count, measured, v->o.where, v->o.derived, v->o.derived_count);
        TRY(v->select[p] ? 0 : -1);
        add_columns(v, p, names, measured, count);
    }
    for (int k = 0; k <= v->o.derived_count && protocols > 0; k++) {
        int d = k < v->o.derived_count ? k : -1, p = 0;
        while (p < protocols && !tune_select_compiled(v->select[p], d))
            p++;
        if (p == protocols)
            return not_compiled(v, d, names);
    }
    tune_error_clear();
    return 0;
}

/* The columns to read: the wanted ones that are stored; compile adds those of expressions. */
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
    int p = row->protocol; /* each protocol has its own scan, also of the same experiment */
    if (!v->scans[p])
        v->scans[p] = tune_scan_open(v->store, v->protocols[p].experiment->name, v->columns, v->column_count);
    return v->scans[p] && tune_scan_at(v->scans[p], row->place, &cells) == 0 ? cells : NULL;
}

/* Fill v->inputs for the entity in v->values under protocol p, in the order of list_names. cells:
 * of the result; NULL: there is none. */
static void fill(struct tune_view *v, int p, const struct tune_cell *cells)
{
    const struct tune_protocol *protocol = &v->protocols[p];
    int at = tune_protocol_values(protocol, v->space, v->values, v->inputs);
    for (int t = 0; t < protocol->experiment->target_count + 2; t++) {
        int k = t - protocol->experiment->target_count;
        if (k >= 0 && !has_quality(v, p, k))
            continue;
        const char *name = k < 0 ? protocol->experiment->targets[t].name : quality(k);
        int c = cells ? tune_name_find(v->columns, v->column_count, name) : -1;
        struct tune_column plain = {.type = TUNE_CELL_NUMBER};
        v->inputs[at++] = c < 0 ? tune_value_none() : tune_rows_value(&plain, NULL, NULL, &cells[c]);
    }
}

/* Check if v->values, or its result with these cells, is wanted under protocol p. */
int tune_view_meets(struct tune_view *v, int p, const struct tune_cell *cells)
{
    if (!v->select)
        return 1;
    fill(v, p, cells);
    return tune_select_row(v->select[p], v->inputs);
}

/* The options' columns of a row of the entity in v->values. */
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
            fill(v, row->protocol, cells);
        filled = true;
        if (tune_select_value(v->select[row->protocol], -1 - v->from[i], v->inputs, &value) < 0)
            return NULL;
        v->cells[i] = value.type == TUNE_VALUE_TEXT ? tune_cell_text(value.text)
                                                    : tune_cell_number(tune_value_number(&value, &number) ? number : NAN);
    }
    return v->cells;
}
