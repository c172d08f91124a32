/* dimensions.c - convert cells to values of a space's dimensions. */
#include "sweeps/discovery/dimensions.h"

#include <stdlib.h>
#include <string.h>


enum { SEEN = 256, SPELLED = 40 };

struct tune_seen_value {
    bool used, in, text;
    char spelled[SPELLED]; /* the cell, if it is a text */
    double number;         /* the cell as a number, and as an exact integer, because a double may
                            * round it */
    int64_t whole;
    struct tune_value value;
    tune_index at;
};

int tune_dimensions_new(struct tune_dimensions *d, const struct tune_space *space, const struct tune_experiment *e,
                        const struct tune_column *columns)
{
    size_t n = (size_t)space->count + 1;
    *d = (struct tune_dimensions){.count = space->count};
    d->axes = calloc(n, sizeof *d->axes);
    d->values = calloc(n, sizeof *d->values);
    d->at = calloc(n, sizeof *d->at);
    bool good = d->axes && d->values && d->at;
    tune_index weight = 1;
    for (int i = space->count - 1; i >= 0 && good; i--) {
        struct tune_axis_of_rows *a = &d->axes[i];
        a->wanted = &space->dimensions[i].domain;
        a->size = tune_domain_size(a->wanted);
        a->weight = weight;
        a->input = tune_experiment_input(e, space->names[i]);
        weight *= a->size;
        d->open += a->input < 0;
        if (a->input < 0)
            continue;
        a->own = &e->inputs[a->input].domain;
        a->column = columns[a->input];
        good = (a->seen = calloc(SEEN, sizeof *a->seen)) != NULL;
    }
    if (good)
        return 0;
    tune_dimensions_free(d);
    return tune_error_cannot("out of memory while the store's entities of the space are read");
}

void tune_dimensions_free(struct tune_dimensions *d)
{
    for (int i = 0; d->axes && i < d->count; i++)
        free(d->axes[i].seen);
    free(d->axes);
    free(d->values);
    free(d->at);
    *d = (struct tune_dimensions){0};
}

static bool is_it(const struct tune_seen_value *s, const struct tune_cell *cell)
{
    return s->used && s->text == (cell->text != NULL) &&
           (s->text ? !strcmp(s->spelled, cell->text) : s->number == cell->number && s->whole == cell->whole);
}

static struct tune_seen_value *place_of(const struct tune_axis_of_rows *a, const struct tune_cell *cell)
{
    uint64_t hash = cell->text ? tune_hash64(cell->text, strlen(cell->text), 3)
                               : tune_hash64(&cell->number, sizeof cell->number, 4);
    return &a->seen[hash % SEEN];
}

/* True if the value can be cached, because it does not point into the row. */
static bool is_lasting(const struct tune_cell *cell, const struct tune_value *value)
{
    return (!cell->text || strlen(cell->text) < SPELLED) &&
           !(value->type == TUNE_VALUE_TEXT && value->text == cell->text) && (cell->text || !cell->absent);
}

static bool read_cell(const struct tune_axis_of_rows *a, const struct tune_cell *cell, struct tune_value *value, tune_index *at)
{
    struct tune_seen_value *s = place_of(a, cell);
    if (is_it(s, cell)) {
        *value = s->value;
        *at = s->at;
        return s->in;
    }
    *at = 0;
    *value = tune_rows_value(&a->column, a->own, a->wanted, cell);
    bool in = a->size ? tune_domain_find(a->wanted, value, at) == 1 : tune_domain_has(a->wanted, value);
    if (is_lasting(cell, value)) {
        *s = (struct tune_seen_value){.used = true, .in = in, .text = cell->text != NULL, .number = cell->number,
                                      .whole = cell->whole, .value = *value, .at = *at};
        if (cell->text)
            strcpy(s->spelled, cell->text);
    }
    return in;
}

int tune_dimensions_read(struct tune_dimensions *d, const struct tune_cell *inputs)
{
    d->index = 0;
    for (int i = 0; i < d->count; i++) {
        const struct tune_axis_of_rows *a = &d->axes[i];
        if (a->input < 0)
            continue;
        if (!read_cell(a, &inputs[a->input], &d->values[i], &d->at[i]))
            return 0;
        d->index += d->at[i] * a->weight;
    }
    return 1;
}
