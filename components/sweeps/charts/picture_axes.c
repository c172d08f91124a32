/* picture_axes.c - which dimensions vary, and which are on the axes of a picture. */
#include <math.h>
#include <string.h>

#include "core/array.h"
#include "core/nearest.h"
#include "sweeps/charts/picture_parts.h"

int tune_picture_no_memory(void)
{
    return tune_error_cannot("out of memory for a drawing");
}

double tune_picture_number(const struct tune_picture *p, int64_t row, int column)
{
    return tune_answer_number(tune_answer_at(p->a, row, column));
}

int tune_picture_level(const struct tune_picture *p, int64_t row, int dimension)
{
    return p->levels[row * p->dimension_count + dimension];
}

const char *tune_picture_text(const struct tune_picture *p, int64_t row, int column)
{
    const struct tune_answer_cell *cell = tune_answer_at(p->a, row, column);
    return cell->type == TUNE_ANSWER_TEXT ? cell->text : "";
}

bool tune_picture_modelled(const struct tune_picture *p, int64_t row)
{
    return *tune_picture_text(p, row, p->line_over);
}

/* ---- the dimensions ---- */

static int cell_to_string(struct tune_picture *p, const struct tune_answer_cell *cell, const char **text)
{
    int length = tune_answer_to_string(cell, NULL, 0);
    char *to = tune_pool_take(&p->memory, (size_t)length + 1);
    if (!to)
        return tune_picture_no_memory();
    tune_answer_to_string(cell, to, (size_t)length + 1);
    *text = cell->type == TUNE_ANSWER_NONE ? "None" : to;
    return 0;
}

static int read_dimension(struct tune_picture *p, int column)
{
    const struct tune_answer_column *c = &p->a->columns[column];
    struct tune_picture_dimension *d = &p->dimensions[p->dimension_count];
    *d = (struct tune_picture_dimension){.column = column, .name = c->name, .count = c->level_count, .numeric = true};
    TAKE(d->texts, p, d->count);
    TAKE(d->numbers, p, d->count);
    for (int i = 0; i < d->count; i++) {
        TRY(cell_to_string(p, &c->levels[i], &d->texts[i]));
        d->numbers[i] = tune_answer_number(&c->levels[i]);
        d->numeric = d->numeric && c->levels[i].type != TUNE_ANSWER_BOOL && isfinite(d->numbers[i]);
    }
    for (int i = 0; i < d->count && !d->numeric; i++)
        d->numbers[i] = i;
    if (d->count > 1)
        p->varying[p->varying_count++] = p->dimension_count;
    p->dimension_count++;
    return 0;
}

/* Find the index of each row's value in the dimension. */
static int find_levels(struct tune_picture *p, int dimension)
{
    const struct tune_picture_dimension *d = &p->dimensions[dimension];
    int last = 0;
    for (int64_t row = 0; row < p->a->rows; row++) {
        const char *text = NULL;
        TRY(cell_to_string(p, tune_answer_at(p->a, row, d->column), &text));
        if (last < 0 || strcmp(d->texts[last], text))
            last = tune_name_find(d->texts, d->count, text);
        p->levels[row * p->dimension_count + dimension] = last;
    }
    return 0;
}

/* The last column of a name that is no dimension, or -1. */
static int find_last(const struct tune_answer_table *a, const char *name)
{
    int c = a->count - 1;
    while (c >= 0 && (a->columns[c].dimension || strcmp(a->columns[c].name, name)))
        c--;
    return c;
}

int tune_picture_read(struct tune_picture *p)
{
    const struct tune_answer_table *a = p->a;
    int *const columns[] = {&p->property, &p->unit, &p->experiment, &p->x_value, &p->value, &p->lowest, &p->highest, &p->results};
    static const char *const names[] = {"property", "unit", "experiment", "x", "value", "lowest", "highest", "results"};
    for (int i = 0; i < 8; i++)
        *columns[i] = tune_answer_find(a, names[i]);
    p->line_over = find_last(a, "line_over");
    p->line_by = find_last(a, "line_by");
    if (p->x_value >= 0 && a->columns[p->x_value].dimension)
        p->x_value = -1;
    TAKE(p->dimensions, p, a->count);
    for (int c = 0; c < a->count; c++)
        if (a->columns[c].dimension)
            TRY(read_dimension(p, c));
    TAKE(p->levels, p, a->rows * p->dimension_count);
    for (int d = 0; d < p->dimension_count; d++)
        TRY(find_levels(p, d));
    for (int64_t row = 0; row < a->rows; row++)
        p->repeated = p->repeated || (!tune_picture_modelled(p, row) && tune_picture_number(p, row, p->results) > 1);
    return 0;
}

static int find_dimension(const struct tune_picture *p, const char *name)
{
    for (int d = 0; name && d < p->dimension_count; d++)
        if (!strcmp(p->dimensions[d].name, name))
            return d;
    const char *names[TUNE_PICTURE_DIMENSIONS];
    for (int d = 0; d < p->dimension_count; d++)
        names[d] = p->dimensions[d].name;
    return name ? tune_answer_no_such("dimension", name, names, p->dimension_count) : -1;
}

/* ---- the choice of axes ---- */

/* True if the points are a small part of the grid of all values that occur. */
static bool is_sparse(const struct tune_picture *p)
{
    const char *properties[64];
    int count = 0;
    double cells = 1;
    for (int i = 0; i < p->varying_count; i++)
        cells *= p->dimensions[p->varying[i]].count;
    for (int64_t row = 0; row < p->a->rows && count < 64; row++) {
        int k = 0;
        if (tune_picture_modelled(p, row))
            return true; /* lines are for points that were sampled */
        while (k < count && strcmp(tune_picture_text(p, row, p->property), properties[k]))
            k++;
        if (k == count)
            properties[count++] = tune_picture_text(p, row, p->property);
    }
    return cells * count > 2.0 * (double)p->a->rows;
}

/* Make a drawing for each value of --facet. The dimension is then constant within a drawing. */
static int choose_facet(struct tune_picture *p)
{
    int n = 0;
    p->facet = -1;
    if (!p->q->facet)
        return 0;
    TRY(p->facet = find_dimension(p, p->q->facet));
    for (int i = 0; i < p->varying_count; i++)
        if (p->varying[i] != p->facet)
            p->varying[n++] = p->varying[i];
    p->varying_count = n;
    return 0;
}

/* Find the dimensions that vary and are neither x nor in --series. */
static void list_others(const struct tune_picture *p, int x, int series, int *others, int *count)
{
    *count = 0;
    for (int i = 0; i < p->varying_count; i++)
        if (p->varying[i] != x && p->varying[i] != series)
            others[(*count)++] = p->varying[i];
}

/* Choose curves: with --x or --series, or if only one dimension varies. There is a curve for each
 * value of --series, else of the other varying dimensions. */
static int choose_curves(struct tune_picture *p, int x, int series)
{
    int others[TUNE_PICTURE_DIMENSIONS], count;
    p->kind = TUNE_PICTURE_CURVES;
    if (x < 0) {
        list_others(p, -1, series, others, &count);
        if (count != 1)
            return tune_error_usage("`series` %s needs a dimension for the x axis: give one that "
                                    "varies with `x`", p->q->series);
        x = others[0];
    }
    p->x = x;
    list_others(p, x, series, others, &count);
    if (p->sparse) {
        p->series_count = series >= 0;
        p->series[0] = series;
        return 0;
    }
    if (series >= 0 && count > 0)
        return tune_error_usage("dimension %s also varies: choose one value with `where` '%s == "
                                "...', or leave `series` out",
                                p->dimensions[others[0]].name, p->dimensions[others[0]].name);
    p->series_count = series >= 0 ? 1 : count;
    for (int i = 0; i < p->series_count; i++)
        p->series[i] = series >= 0 ? series : others[i];
    return 0;
}

int tune_picture_choose(struct tune_picture *p)
{
    bool property = p->x_value >= 0;
    int x = property ? -1 : find_dimension(p, p->q->x), series = find_dimension(p, p->q->series);
    if ((p->q->x && !property && x < 0) || (p->q->series && series < 0))
        return -1;
    TRY(choose_facet(p));
    p->sparse = property || is_sparse(p);
    if (p->facet >= 0 && (p->facet == x || p->facet == series))
        return tune_error_usage("`facet` and `%s` are the same dimension", p->facet == x ? "x" : "series");
    if (property) {
        p->kind = TUNE_PICTURE_CURVES;
        p->x = -1;
        p->series_count = series >= 0;
        p->series[0] = series;
        return 0;
    }
    if (x >= 0 && x == series)
        return tune_error_usage("`x` and `series` are the same dimension");
    p->x = p->y = -1;
    if (x < 0 && series < 0 && p->varying_count <= 1)
        x = p->varying_count == 1 ? p->varying[0] : 0;
    if (x >= 0 || series >= 0)
        return choose_curves(p, x, series);
    p->kind = p->varying_count > 2 ? TUNE_PICTURE_PARALLEL : p->sparse ? TUNE_PICTURE_CURVES : TUNE_PICTURE_HEAT;
    p->y = p->varying[0];
    p->x = p->varying[1];
    return 0;
}
