/* other_inputs.c - find results of a space's entities under other parameters. */
#include "sweeps/discovery/other_inputs.h"

#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "sweeps/discovery/dimensions.h"

enum { MOST = 16, TEXT = 512 };

/* Other values, and how many rows have them. */
struct other_values {
    char inputs[TEXT];
    bool settable;
    int64_t rows;
};

/* Inputs that have other values. */
struct other_names {
    char names[TEXT];
    int64_t rows;
    int count;                  /* of values */
    struct other_values values[TUNE_OTHER_VALUES];
};

/* A pass over the rows of an experiment. */
struct pass {
    const struct tune_space *space;
    const struct tune_protocol *protocols;
    const struct tune_experiment *e;
    struct tune_column *columns;
    struct tune_dimensions dimensions;
    struct other_names found[MOST];
    int count;
};

/* Inputs of a row that differ from a protocol's own, as texts. */
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

/* Spell the value as in ids, or in quotes if `set` needs them. False: it takes the value in no way. */
static bool spell(const struct tune_input *in, const struct tune_value *v, char *text, int size)
{
    if (tune_value_id(v, text, (size_t)size) < size && tune_space_settable(in, text, v))
        return true;
    if (v->type == TUNE_VALUE_TEXT && tune_value_json(v, text, (size_t)size) < size && tune_space_settable(in, text, v))
        return true;
    tune_value_id(v, text, (size_t)size);
    return false;
}

/* Find the inputs that differ from the protocol's own. -1 with an error. */
static int find_difference(const struct pass *p, const struct tune_protocol *protocol, const struct tune_cell *inputs,
                           struct difference *d)
{
    char own_text[TUNE_STORE_TEXT_MAX + 1], spelled[256];
    *d = (struct difference){.settable = true};
    for (int i = 0; i < p->e->input_count; i++) {
        struct tune_cell own;
        if (protocol->dimension[i] >= 0)
            continue;
        TRY(tune_rows_cell(&p->columns[i], &protocol->fixed[i], &own, own_text, sizeof own_text));
        if (same_cell(&own, &inputs[i]))
            continue;
        struct tune_value v = tune_rows_value(&p->columns[i], &p->e->inputs[i].domain, NULL, &inputs[i]);
        if (inputs[i].absent && inputs[i].text)
            v = tune_value_none();
        d->settable = spell(&p->e->inputs[i], &v, spelled, sizeof spelled) && d->settable;
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

/* The row is of an entity of the space. Count it, unless a protocol has its parameters. */
static int take(struct pass *p, const struct tune_cell *inputs)
{
    struct difference best = {.count = -1}, d;
    int i = 0;
    for (int k = 0; k < p->space->reference_count; k++) {
        if (p->protocols[k].experiment != p->e)
            continue;
        TRY(find_difference(p, &p->protocols[k], inputs, &d));
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

/* The values of most rows, those first that can be set. */
static void tell_names(const struct tune_experiment *e, const struct other_names *o, tune_other_tell *tell)
{
    const struct other_values *best = &o->values[0];
    for (int i = 1; i < o->count; i++) {
        const struct other_values *v = &o->values[i];
        if (v->settable != best->settable ? v->settable : v->rows > best->rows)
            best = v;
    }
    tell(&(struct tune_other){e, o->names, o->rows, o->count, best->inputs, best->settable, best->rows});
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
        if (inside < 0 || (inside && take(p, cells + 2) < 0)) {
            more = -1;
            break;
        }
    }
    tune_scan_free(scan);
    return more;
}

static int look(struct tune_store *s, struct pass *p, tune_other_tell *tell)
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
        tell_names(p->e, &p->found[i], tell);
    return code;
}

int tune_other_inputs(struct tune_store *s, const struct tune_space *space, const struct tune_protocol *protocols,
                      tune_other_tell *tell)
{
    for (int k = 0; k < space->reference_count; k++) {
        struct pass *p = tune_zeroed(1, sizeof *p, "rows with other inputs");
        if (!p)
            return -1;
        p->space = space;
        p->protocols = protocols;
        p->e = protocols[k].experiment;
        int code = tune_protocol_is_first(protocols, k) ? look(s, p, tell) : 0;
        free(p);
        TRY(code);
    }
    return 0;
}
