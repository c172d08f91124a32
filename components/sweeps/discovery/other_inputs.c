/* other_inputs.c - find results of a space's entities under other parameters. */
#include "sweeps/discovery/other_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "sweeps/discovery/dimensions.h"

enum { MOST = 16, TEXT = 512 };

/* A combination of other values, and its number of rows. */
struct other_values {
    char inputs[TEXT];
    bool settable;
    int64_t rows;
};

/* A set of inputs that differ from the space, with their values. */
struct other_names {
    char names[TEXT];
    int64_t rows;
    int count;                  /* number of combinations */
    struct other_values values[TUNE_OTHER_VALUES];
};

/* A pass over the rows of an experiment. */
struct pass {
    const struct tune_space *space;
    const struct tune_binding *bindings;
    const struct tune_experiment *e;
    struct tune_column *columns;
    struct tune_dimensions dimensions;
    struct other_names found[MOST];
    int count;
};

/* The inputs of a row that differ from those of a binding, as texts. */
struct difference {
    char names[TEXT], inputs[TEXT];
    bool settable;
    int count;
};

static bool same_cell(const struct tune_cell *a, const struct tune_cell *b)
{
    int64_t x, y;
    if (a->absent || b->absent)
        return a->absent == b->absent;
    if (a->text || b->text)
        return a->text && b->text && !strcmp(a->text, b->text);
    if (tune_rows_whole(a, &x) && tune_rows_whole(b, &y))
        return x == y;
    return a->number == b->number;
}

/* Write the value as in identifiers, or in quotes if --set needs them. False: --set cannot express
 * it. */
static bool setting_to_string(const struct tune_input *in, const struct tune_value *v, char *text, int size)
{
    if (tune_value_id(v, text, (size_t)size) < size && tune_space_settable(in, text, v))
        return true;
    if (v->type == TUNE_VALUE_TEXT && tune_value_json(v, text, (size_t)size) < size && tune_space_settable(in, text, v))
        return true;
    tune_value_id(v, text, (size_t)size);
    return false;
}

/* Find the inputs that differ from those of the binding. -1 with an error. */
static int find_difference(const struct pass *p, const struct tune_binding *binding, const struct tune_cell *inputs,
                           struct difference *d)
{
    char own_text[TUNE_STORE_TEXT_MAX + 1], spelled[256];
    *d = (struct difference){.settable = true};
    for (int i = 0; i < p->e->input_count; i++) {
        struct tune_cell own;
        if (binding->dimension[i] >= 0)
            continue;
        TRY(tune_rows_cell(&p->columns[i], &binding->fixed[i], &own, own_text, sizeof own_text));
        if (same_cell(&own, &inputs[i]))
            continue;
        struct tune_value v = tune_rows_value(&p->columns[i], &p->e->inputs[i].domain, NULL, &inputs[i]);
        if (inputs[i].absent && inputs[i].text)
            v = tune_value_none();
        d->settable = setting_to_string(&p->e->inputs[i], &v, spelled, sizeof spelled) && d->settable;
        tune_append(d->names, TEXT, "%s%s", d->count ? "," : "", p->e->names[i]);
        tune_append(d->inputs, TEXT, "%s%s=%s", d->count++ ? "," : "", p->e->names[i], spelled);
    }
    d->settable = d->settable && strlen(d->inputs) < TEXT - 1;
    return 0;
}

static void count_row(struct other_names *o, const struct difference *d)
{
    int i = 0;
    while (i < o->count && strcmp(o->values[i].inputs, d->inputs))
        i++;
    o->rows++;
    if (i == TUNE_OTHER_VALUES)
        return;
    if (i == o->count) {
        o->values[o->count] = (struct other_values){.settable = d->settable};
        memcpy(o->values[o->count++].inputs, d->inputs, TEXT);
    }
    o->values[i].rows++;
}

/* Count a row of an entity of the space, unless a binding has the same parameters. */
static int add_row(struct pass *p, const struct tune_cell *inputs)
{
    struct difference best = {.count = -1}, d;
    int i = 0;
    for (int k = 0; k < p->space->reference_count; k++) {
        if (p->bindings[k].experiment != p->e)
            continue;
        TRY(find_difference(p, &p->bindings[k], inputs, &d));
        if (d.count == 0)
            return 0;
        if (best.count < 0 || d.count < best.count)
            best = d;
    }
    while (i < p->count && strcmp(p->found[i].names, best.names))
        i++;
    if (i == MOST)
        return 0;
    if (i == p->count)
        memcpy(p->found[p->count++].names, best.names, TEXT);
    count_row(&p->found[i], &best);
    return 0;
}

/* Report the most frequent values; values that --set accepts are preferred. */
static void report_names(const struct tune_experiment *e, const struct other_names *o, tune_other_report *report, void *context)
{
    const struct other_values *best = &o->values[0];
    for (int i = 1; i < o->count; i++) {
        const struct other_values *v = &o->values[i];
        if (v->settable != best->settable ? v->settable : v->rows > best->rows)
            best = v;
    }
    report(context, &(struct tune_other){e, o->names, o->rows, o->count, best->inputs, best->settable, best->rows});
}

static int read_rows(struct pass *p, struct tune_store *s)
{
    static const enum tune_key keys[] = {TUNE_KEY_STATUS, TUNE_KEY_EXPERIMENT};
    const struct tune_cell *cells;
    struct tune_scan *scan = tune_rows_scan(s, p->e, keys, 2);
    int more;
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        if (tune_rows_status(&cells[0]) == TUNE_FAILED || !tune_rows_of(&cells[1], p->e))
            continue;
        int inside = tune_dimensions_read(&p->dimensions, cells + 2);
        if (inside < 0 || (inside && add_row(p, cells + 2) < 0)) {
            more = -1;
            break;
        }
    }
    tune_scan_free(scan);
    return more;
}

static int find_in_experiment(struct tune_store *s, struct pass *p, tune_other_report *report, void *context)
{
    if (!tune_store_has(s, p->e->name))
        return 0;
    TRY(tune_rows_columns(p->e, &p->columns));
    int code = tune_dimensions_new(&p->dimensions, p->space, p->e, p->columns);
    if (code == 0)
        code = read_rows(p, s);
    tune_dimensions_free(&p->dimensions);
    free(p->columns);
    for (int i = 0; i < p->count && code == 0; i++)
        report_names(p->e, &p->found[i], report, context);
    return code;
}

int tune_other_inputs(struct tune_store *s, const struct tune_space *space, const struct tune_binding *bindings,
                      tune_other_report *report, void *context)
{
    for (int k = 0; k < space->reference_count; k++) {
        struct pass *p = tune_zeroed(1, sizeof *p, "rows with other inputs");
        if (!p)
            return -1;
        p->space = space;
        p->bindings = bindings;
        p->e = bindings[k].experiment;
        int code = tune_binding_is_first(bindings, k) ? find_in_experiment(s, p, report, context) : 0;
        free(p);
        TRY(code);
    }
    return 0;
}
