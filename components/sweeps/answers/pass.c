/* pass.c - read the rows of one table, select by `where`, and add new columns. */
#include "sweeps/answers/pass.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Find the experiment with the table's name. Its domains turn texts into values. Without it, texts
 * remain texts. */
static const struct tune_experiment *find_experiment(struct tune_subject *s, const char *table)
{
    if (tune_subject_catalog(s) < 0) {
        tune_error_clear();
        return NULL;
    }
    return tune_catalog_known(&s->catalog, NULL, table);
}

/* Compile `where` and the new columns. They may use the table's columns and "build". */
static int compile(struct tune_pass *t)
{
    struct tune_subject *s = t->s;
    int measured = 0, names = t->stored;
    while (measured < t->stored && t->columns[measured].role != TUNE_COLUMN_TARGET)
        measured++;
    if (strcmp(t->name, TUNE_STORE_REQUESTS))
        t->names[names++] = tune_fact_name(0);
    t->looked_up = names;
    for (int k = 0; t->lookup && k < t->lookup->count; k++)
        t->names[names++] = t->lookup->names[k];
    if (!(t->select = tune_select_new(t->names, names, measured, s->q->where, s->derived, s->derived_count)))
        return -1;
    for (int d = -1; d < s->derived_count; d++)
        if (!tune_select_compiled(t->select, d)) { /* compile only up to the bad one, to get its error */
            tune_select_free(tune_select_new(t->names, names, measured, d < 0 ? s->q->where : NULL, s->derived, d < 0 ? s->derived_count : d + 1));
            return -1;
        }
    for (int d = 0; d < s->derived_count; d++) {
        t->columns[t->count] = (struct tune_column){s->derived[d].name, "", TUNE_CELL_NUMBER, TUNE_COLUMN_TARGET, false};
        t->count++;
    }
    return 0;
}

/* Read the question's lookup table for the columns of this pass. */
static int read_lookup(struct tune_pass *t, const struct tune_column *columns)
{
    const char **names;
    if (!t->s->q->table)
        return 0;
    TAKE(names, t->s->a, t->stored);
    for (int i = 0; i < t->stored; i++)
        names[i] = columns[i].role == TUNE_COLUMN_INPUT ? columns[i].name : "";
    bool fits;
    return (t->lookup = tune_lookup_read(t->s->q->table, names, t->stored, &fits)) ? 0 : -1;
}

int tune_pass_open(struct tune_pass *t, struct tune_subject *s, struct tune_store *store, const char *name, bool asked)
{
    *t = (struct tune_pass){.s = s, .name = name};
    const struct tune_column *columns = tune_store_columns(store, name, &t->stored);
    if (!columns)
        return -1;
    TRY(asked ? read_lookup(t, columns) : 0);
    int most = t->stored + s->derived_count + 1 + (t->lookup ? t->lookup->count : 0);
    TAKE(t->columns, s->a, most);
    TAKE(t->names, s->a, most);
    TAKE(t->values, s->a, most + s->derived_count);
    TAKE(t->cells, s->a, most);
    memcpy(t->columns, columns, (size_t)t->stored * sizeof *columns);
    for (; t->count < t->stored; t->count++)
        t->names[t->count] = t->columns[t->count].name;
    t->experiment = find_experiment(s, name);
    if (asked && (s->q->where || s->derived_count > 0))
        TRY(compile(t));
    return (t->scan = tune_scan_open(store, name, t->names, t->stored)) ? 0 : -1;
}

struct tune_value tune_pass_value(const struct tune_pass *t, int i, const struct tune_cell *cell)
{
    return tune_rows_read(t->experiment, &t->columns[i], cell);
}

/* The value of a column in expressions. Times are texts. */
static struct tune_value asked_value(struct tune_pass *t, int i, const struct tune_cell *cells)
{
    bool requests = !strcmp(t->name, TUNE_STORE_REQUESTS);
    if (i == t->stored && !requests)
        return tune_fact_value(0, &cells[TUNE_KEY_BUILD], t->time);
    if (i == (requests ? (int)TUNE_REQUEST_TIME : (int)TUNE_KEY_STARTED) && !cells[i].absent)
        return tune_value_text(tune_time_text(cells[i].number, t->time));
    return tune_pass_value(t, i, &cells[i]);
}

/* Fill t->cells with the row's cells and those of the new columns. */
static int derive(struct tune_pass *t, const struct tune_cell *cells)
{
    memcpy(t->cells, cells, (size_t)t->stored * sizeof *cells);
    for (int d = 0; d < t->s->derived_count; d++) {
        struct tune_value value;
        double number;
        TRY(tune_select_value(t->select, d, t->values, &value));
        t->cells[t->stored + d] = value.type == TUNE_VALUE_TEXT ? tune_cell_text(value.text)
                                                                : tune_cell_number(tune_value_number(&value, &number) ? number : NAN);
    }
    return 0;
}

/* Read the values of the row that the expressions need. */
static void read_values(struct tune_pass *t, const struct tune_cell *cells)
{
    for (int i = 0; t->select && i <= t->stored; i++)
        if (tune_select_uses(t->select, i))
            t->values[i] = asked_value(t, i, cells);
    if (t->lookup) {
        for (int i = 0; i < t->stored; i++)
            t->values[i] = asked_value(t, i, cells);
        tune_lookup_values(t->lookup, t->values, t->values + t->looked_up);
    }
}

int tune_pass_next(struct tune_pass *t, const struct tune_cell **cells)
{
    int more, wanted = 0;
    while (!wanted && (more = tune_scan_next(t->scan, cells)) == 1) {
        read_values(t, *cells);
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

int tune_pass_at(struct tune_pass *t, struct tune_row_position position, const struct tune_cell **cells)
{
    TRY(tune_scan_at(t->scan, position, cells));
    if (t->count > t->stored) {
        read_values(t, *cells);
        TRY(derive(t, *cells));
        *cells = t->cells;
    }
    return 0;
}

void tune_pass_free(struct tune_pass *t)
{
    char missed[512];
    if (t->lookup && *tune_lookup_missed(t->lookup, missed, sizeof missed))
        tune_answer_add_note(t->s->a, TUNE_NOTE_WARNING, "%s", missed);
    tune_scan_free(t->scan);
    tune_select_free(t->select);
    tune_lookup_free(t->lookup);
    *t = (struct tune_pass){0};
}

void tune_pass_cell(struct tune_answer_table *a, const struct tune_column *c, const struct tune_cell *cell, bool times)
{
    if (cell->absent)
        tune_answer_text(a, NULL);
    else if (cell->text)
        tune_answer_text(a, cell->text);
    else if (times && c->role == TUNE_COLUMN_KEY && !strcmp(c->unit, tune_key_column(TUNE_KEY_STARTED)->unit))
        tune_answer_time(a, cell->number);
    else if (c->type == TUNE_CELL_WHOLE)
        tune_answer_whole(a, cell->whole);
    else
        tune_answer_figure(a, cell->number, c->whole);
}

int tune_pass_meets(struct tune_select *select, const struct tune_cell *cells, int count)
{
    struct tune_value values[TUNE_PASS_CELLS];
    for (int i = 0; i < count; i++)
        values[i] = cells[i].absent ? tune_value_none() : cells[i].text ? tune_value_text(cells[i].text)
                                                                        : tune_value_float(cells[i].number);
    return tune_select_row(select, values);
}
