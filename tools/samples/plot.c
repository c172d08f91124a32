/* plot.c - draw the points of tune_ask_plot in the terminal and as SVG. One dimension is drawn as
 * curves, two as a heat map, more as parallel coordinates. Points are drawn on true scales if x is
 * a property, or if dimensions were sampled instead of measured as a grid. */
#include <math.h>

#include "../drawing.h"
#include "core/array.h"
#include "core/nearest.h"
#include "core/pool.h"
#include "core/print.h"
#include "samples.h"
#include "sweeps/answers/print.h"
#include "sweeps/charts/heat.h"
#include "sweeps/charts/parallel.h"
#include "views/text.h"

enum { MOST_CURVES = 16, MOST_DRAWINGS = 64, MOST_DIMENSIONS = 256, NOTE = 1024, TITLE = 512 };

/* A dimension in the points: its column, and its values as texts and, if possible, as numbers. */
struct dimension {
    int column;
    const char *name;
    const char **texts; /* [count] */
    double *numbers;    /* [count] numbers; if values are not numbers, 0, 1, .. */
    bool numeric;
    int count;
};

/* One property under one experiment. */
struct drawing {
    int64_t *rows;               /* [count] */
    int64_t count;
    char title[TITLE], note[NOTE], facet[TITLE];
    const char *unit, *property;
    int x;                       /* dimension on the x axis; -1: a property */
    double range[2], x_range[2]; /* ranges over all facets */
};

struct plot {
    const struct samples_flags *my;
    const struct tune_answer_table *a;
    struct tune_pool *memory;
    struct dimension *dimensions;        /* [dimension_count] all dimensions of the space */
    int dimension_count;
    int *levels;                         /* [rows][dimension_count] indexes of the values */
    int varying[MOST_DIMENSIONS], varying_count; /* dimensions with more than one value */
    int property, unit, experiment, x_value, value, lowest, highest, results; /* columns */
    struct drawing drawings[MOST_DRAWINGS];
    int count;
    int x, y;                            /* dimensions on the axes; -1: none */
    int series[MOST_DIMENSIONS], series_count; /* dimensions with a curve for each value */
    int facet;                           /* dimension with a drawing for each value; -1: none */
    bool sparse;                         /* points are not a grid, and are not connected */
    bool repeated;                       /* at least one point has several results */
    int best;
    enum { CURVES, HEAT, PARALLEL } kind;
    struct tune_plot plots[MOST_DRAWINGS];
    struct tune_heat heats[MOST_DRAWINGS];
    struct tune_parallel parallels[MOST_DRAWINGS];
};

static int no_memory(void)
{
    return tune_error_cannot("out of memory for a drawing");
}

#define TAKE(to, p, n) TRY(((to) = tune_pool_take(&(p)->memory, (size_t)((n) > 0 ? (n) : 1) * sizeof *(to))) ? 0 : no_memory())

static double number(const struct plot *p, int64_t row, int column)
{
    return tune_answer_number(tune_answer_at(p->a, row, column));
}

static double value_of(const struct plot *p, int64_t row)
{
    return number(p, row, p->value);
}

static int level(const struct plot *p, int64_t row, int dimension)
{
    return p->levels[row * p->dimension_count + dimension];
}

static const char *text_of(const struct plot *p, int64_t row, int column)
{
    const struct tune_answer_cell *cell = tune_answer_at(p->a, row, column);
    return cell->type == TUNE_ANSWER_TEXT ? cell->text : "";
}

/* ---- the dimensions ---- */

static int cell_to_string(struct plot *p, const struct tune_answer_cell *cell, const char **text)
{
    int length = tune_answer_to_string(cell, NULL, 0);
    char *to = tune_pool_take(&p->memory, (size_t)length + 1);
    if (!to)
        return no_memory();
    tune_answer_to_string(cell, to, (size_t)length + 1);
    *text = cell->type == TUNE_ANSWER_NONE ? "None" : to;
    return 0;
}

static int read_dimension(struct plot *p, int column)
{
    const struct tune_answer_column *c = &p->a->columns[column];
    struct dimension *d = &p->dimensions[p->dimension_count];
    *d = (struct dimension){.column = column, .name = c->name, .count = c->level_count, .numeric = true};
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
static int find_levels(struct plot *p, int dimension)
{
    const struct dimension *d = &p->dimensions[dimension];
    int last = 0;
    for (int64_t row = 0; row < p->a->rows; row++) {
        const char *text = NULL;
        TRY(cell_to_string(p, tune_answer_at(p->a, row, d->column), &text));
        if (strcmp(d->texts[last], text))
            last = tune_name_find(d->texts, d->count, text);
        p->levels[row * p->dimension_count + dimension] = last;
    }
    return 0;
}

static int read_table(struct plot *p)
{
    const struct tune_answer_table *a = p->a;
    int *const columns[] = {&p->property, &p->unit, &p->experiment, &p->x_value, &p->value, &p->lowest, &p->highest, &p->results};
    static const char *const names[] = {"property", "unit", "experiment", "x", "value", "lowest", "highest", "results"};
    for (int i = 0; i < 8; i++)
        *columns[i] = tune_answer_find(a, names[i]);
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
        p->repeated = p->repeated || number(p, row, p->results) > 1;
    return 0;
}

static int find_dimension(const struct plot *p, const char *name)
{
    for (int d = 0; name && d < p->dimension_count; d++)
        if (!strcmp(p->dimensions[d].name, name))
            return d;
    const char *names[MOST_DIMENSIONS];
    for (int d = 0; d < p->dimension_count; d++)
        names[d] = p->dimensions[d].name;
    return name ? tune_answer_no_such("dimension", name, names, p->dimension_count) : -1;
}

/* ---- the choice of axes ---- */

/* True if the points are a small part of the grid of all values that occur. */
static bool is_sparse(const struct plot *p)
{
    const char *properties[64];
    int count = 0;
    double cells = 1;
    for (int i = 0; i < p->varying_count; i++)
        cells *= p->dimensions[p->varying[i]].count;
    for (int64_t row = 0; row < p->a->rows && count < 64; row++) {
        int k = 0;
        while (k < count && strcmp(text_of(p, row, p->property), properties[k]))
            k++;
        if (k == count)
            properties[count++] = text_of(p, row, p->property);
    }
    return cells * count > 2.0 * (double)p->a->rows;
}

/* Make a drawing for each value of --facet. The dimension is then constant within a drawing. */
static int choose_facet(struct plot *p)
{
    int n = 0;
    p->facet = -1;
    if (!p->my->facet)
        return 0;
    TRY(p->facet = find_dimension(p, p->my->facet));
    for (int i = 0; i < p->varying_count; i++)
        if (p->varying[i] != p->facet)
            p->varying[n++] = p->varying[i];
    p->varying_count = n;
    return 0;
}

/* Find the dimensions that vary and are neither x nor in --series. */
static void list_others(const struct plot *p, int x, int series, int *others, int *count)
{
    *count = 0;
    for (int i = 0; i < p->varying_count; i++)
        if (p->varying[i] != x && p->varying[i] != series)
            others[(*count)++] = p->varying[i];
}

/* Choose curves: with --x or --series, or if only one dimension varies. There is a curve for each
 * value of --series, else of the other varying dimensions. */
static int choose_curves(struct plot *p, int x, int series)
{
    int others[MOST_DIMENSIONS], count;
    p->kind = CURVES;
    if (x < 0) {
        list_others(p, -1, series, others, &count);
        if (count != 1)
            return tune_error_usage("`series` %s needs a dimension for the x axis: give one that "
                                    "varies with `x`", p->my->series);
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

static int choose_axes(struct plot *p)
{
    bool property = p->x_value >= 0;
    int x = property ? -1 : find_dimension(p, p->my->x), series = find_dimension(p, p->my->series);
    if ((p->my->x && !property && x < 0) || (p->my->series && series < 0))
        return -1;
    TRY(choose_facet(p));
    p->sparse = property || is_sparse(p);
    if (p->facet >= 0 && (p->facet == x || p->facet == series))
        return tune_error_usage("`facet` and `%s` are the same dimension", p->facet == x ? "x" : "series");
    if (property) {
        p->kind = CURVES;
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
    p->kind = p->varying_count > 2 ? PARALLEL : p->sparse ? CURVES : HEAT;
    p->y = p->varying[0];
    p->x = p->varying[1];
    return 0;
}

/* ---- drawings ---- */

/* Half the range of several results, in percent of their mean. NaN: fewer than two results. */
static double percent_of(const struct plot *p, int64_t row)
{
    bool several = number(p, row, p->results) > 1 && value_of(p, row) != 0;
    return several ? 50 * (number(p, row, p->highest) - number(p, row, p->lowest)) / fabs(value_of(p, row)) : NAN;
}

static bool is_same_kind(const struct plot *p, int64_t a, int64_t b)
{
    return !strcmp(text_of(p, a, p->property), text_of(p, b, p->property)) && !strcmp(text_of(p, a, p->experiment), text_of(p, b, p->experiment));
}

/* Write the note about all points: warnings, fixed dimensions and the kind of spread. */
static void make_note(const struct plot *p, struct drawing *d, int64_t first)
{
    const char *middle = p->my->aggregate && !strcmp(p->my->aggregate, "median") ? "median" : "mean";
    double most = 0;
    for (int64_t row = 0; row < p->a->rows; row++) /* rows of all facets, because they share this note */
        if (is_same_kind(p, first, row))
            most = fmax(most, percent_of(p, row));
    for (int i = 0; i < p->a->note_count; i++)
        if (p->a->notes[i].position == TUNE_NOTE_WARNING)
            tune_append(d->note, NOTE, "%s%s", *d->note ? "; " : "", p->a->notes[i].text);
    int fixed = 0;
    for (int i = 0; i < p->dimension_count; i++)
        if (p->dimensions[i].count == 1 && i != p->x && i != p->facet)
            tune_append(d->note, NOTE, "%s%s %s", fixed++ ? ", " : *d->note ? "; " : "", p->dimensions[i].name, p->dimensions[i].texts[0]);
    if (p->repeated && p->kind == CURVES)
        tune_append(d->note, NOTE, "%s%s of several results; the bars go from the lowest to the "
                                   "highest", *d->note ? "; " : "", middle);
    else if (p->repeated)
        tune_append(d->note, NOTE, "%s%s of several results; half their range is at most %.2g%% of "
                                   "this value", *d->note ? "; " : "", middle, most);
}

/* Find the ranges of the property and of the x axis over all facets. */
static void find_range(const struct plot *p, int64_t first, double range[2], double x_range[2])
{
    range[0] = x_range[0] = INFINITY;
    range[1] = x_range[1] = -INFINITY;
    for (int64_t row = 0; row < p->a->rows; row++) {
        if (!is_same_kind(p, first, row))
            continue;
        bool bars = p->kind == CURVES && number(p, row, p->results) > 1;
        range[0] = fmin(range[0], bars ? number(p, row, p->lowest) : value_of(p, row));
        range[1] = fmax(range[1], bars ? number(p, row, p->highest) : value_of(p, row));
        x_range[0] = fmin(x_range[0], number(p, row, p->x_value));
        x_range[1] = fmax(x_range[1], number(p, row, p->x_value));
    }
}

static bool is_in(const struct plot *p, int64_t first, int64_t row, int facet)
{
    return is_same_kind(p, first, row) && (p->facet < 0 || level(p, row, p->facet) == facet);
}

/* Make a drawing of the points with the same property and experiment as row `first`, in a facet. */
static int make_drawing(struct plot *p, int64_t first, int facet, int x)
{
    struct drawing *d = &p->drawings[p->count];
    int64_t count = 0;
    bool several = false; /* experiments */
    for (int64_t row = 0; row < p->a->rows; row++) {
        count += is_in(p, first, row, facet);
        several = several || strcmp(text_of(p, row, p->experiment), text_of(p, first, p->experiment));
    }
    if (count == 0)
        return 0;
    if (p->count == MOST_DRAWINGS)
        return tune_error_usage("more than %d drawings; choose fewer with `property`", MOST_DRAWINGS);
    TAKE(d->rows, p, count);
    for (int64_t row = 0; row < p->a->rows; row++)
        if (is_in(p, first, row, facet))
            d->rows[d->count++] = row;
    d->x = x;
    find_range(p, first, d->range, d->x_range);
    d->property = text_of(p, first, p->property);
    d->unit = text_of(p, first, p->unit);
    snprintf(d->title, TITLE, "%s%s%s", d->property, several ? " under " : "", several ? text_of(p, first, p->experiment) : "");
    if (p->facet >= 0)
        tune_append(d->facet, TITLE, "%s %s", p->dimensions[p->facet].name, p->dimensions[p->facet].texts[facet]);
    make_note(p, d, first);
    p->count++;
    return 0;
}

/* ---- curves ---- */

/* The point's position on the x axis. */
static double x_of(const struct plot *p, int64_t row)
{
    return p->x < 0 ? number(p, row, p->x_value) : p->dimensions[p->x].numbers[level(p, row, p->x)];
}

static int compare_series(const struct plot *p, int64_t a, int64_t b)
{
    for (int i = 0; i < p->series_count; i++)
        if (level(p, a, p->series[i]) != level(p, b, p->series[i]))
            return level(p, a, p->series[i]) - level(p, b, p->series[i]);
    return 0;
}

static int by_series_and_x(const void *a, const void *b, void *context)
{
    const struct plot *p = context;
    int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    int order = compare_series(p, i, k);
    double x = x_of(p, i), y = x_of(p, k);
    return order ? order : (x > y) - (x < y);
}

/* Write the point's values of some dimensions: "batch_size 4, torch_dtype float32". */
static int values_to_string(struct plot *p, int64_t row, const int *dimensions, int count, const char **to)
{
    char *text = tune_pool_take(&p->memory, TITLE);
    if (!text)
        return no_memory();
    for (int i = 0; i < count; i++)
        tune_append_item(text, TITLE, "%s %s", p->dimensions[dimensions[i]].name, p->dimensions[dimensions[i]].texts[level(p, row, dimensions[i])]);
    *to = text;
    return 0;
}

/* Find the Pareto front, if `maximize` and `minimize` give both axes a direction. Else *front is
 * NULL. */
static int find_front(struct plot *p, const struct drawing *d, bool **front)
{
    const char *most = p->my->maximize, *least = p->my->minimize;
    *front = NULL;
    if (p->x >= 0 || !most || !least || (strcmp(p->my->x, most) && strcmp(p->my->x, least)))
        return 0;
    double *x;
    TAKE(x, p, 2 * d->count);
    TAKE(*front, p, d->count);
    for (int64_t i = 0; i < d->count; i++) {
        x[i] = x_of(p, d->rows[i]);
        x[d->count + i] = value_of(p, d->rows[i]);
    }
    int x_best = strcmp(p->my->x, most) ? -1 : 1;
    return tune_plot_front(x, x + d->count, d->count, x_best, -x_best, *front);
}

/* Make the curve of rows[count] of one series. front: see find_front. */
static int make_curve(struct plot *p, struct tune_curve *c, const int64_t *rows, int64_t count, int color, const bool *front)
{
    double *values;
    const char *label = NULL;
    TAKE(values, p, 4 * count);
    TRY(values_to_string(p, rows[0], p->series, p->series_count, &label));
    for (int64_t i = 0; i < count; i++) {
        bool several = number(p, rows[i], p->results) > 1;
        values[i] = x_of(p, rows[i]);
        values[count + i] = value_of(p, rows[i]);
        values[2 * count + i] = several ? number(p, rows[i], p->lowest) : NAN;
        values[3 * count + i] = several ? number(p, rows[i], p->highest) : NAN;
    }
    *c = (struct tune_curve){.label = label, .x = values, .y = values + count, .low = values + 2 * count,
                             .high = values + 3 * count, .count = count, .color = color, .marked = true, .apart = p->sparse, .front = front};
    return 0;
}

static int make_plot(struct plot *p, struct drawing *d, struct tune_plot *to)
{
    p->x = d->x;
    const struct dimension *x = p->x < 0 ? NULL : &p->dimensions[p->x];
    bool numeric = !x || x->numeric, crowded = false;
    struct tune_curve *curves;
    int count = 0;
    TAKE(curves, p, MOST_CURVES);
    bool *front;
    qsort_r(d->rows, (size_t)d->count, sizeof *d->rows, by_series_and_x, p);
    TRY(find_front(p, d, &front));
    for (int64_t first = 0, n; first < d->count; first += n) {
        for (n = 1; first + n < d->count && !compare_series(p, d->rows[first], d->rows[first + n]);)
            n++;
        if (count == MOST_CURVES)
            return tune_error_usage("more than %d curves; choose among their entities with `where`", MOST_CURVES);
        /* a value has the same colour in each facet */
        int color = p->series_count == 1 ? level(p, d->rows[first], p->series[0]) : count;
        TRY(make_curve(p, &curves[count], d->rows + first, n, color, front ? front + first : NULL));
        crowded = crowded || n > TUNE_PLOT_MARKS;
        count++;
    }
    if (crowded && numeric && !p->sparse)
        tune_append(d->note, NOTE, "%s%lld points, smoothed where they are scattered",
                    *d->note ? "; " : "", (long long)d->count);
    char *title;
    TAKE(title, p, TITLE);
    const char *unit = x ? "" : p->a->columns[p->x_value].unit;
    snprintf(title, TITLE, "%s%s%s", x ? x->name : p->my->x, *unit ? ", " : "", unit);
    *to = (struct tune_plot){.title = d->title, .x_title = title, .y_title = d->unit, .curves = curves,
                             .count = count, .logarithmic = p->my->logarithmic, .smooth = -1, .x_base = -1,
                             .x_names = numeric ? NULL : x->texts, .x_count = numeric ? 0 : x->count,
                             .note = *d->note ? d->note : NULL, .y_holds = p->facet >= 0 ? d->range : NULL,
                             .x_holds = p->facet >= 0 && !x ? d->x_range : NULL, .facet = p->facet >= 0 ? d->facet : NULL,
                             .front = front ? "Pareto front" : NULL};
    return 0;
}

/* ---- heat maps ---- */

/* Make a heat map. Numbers on the y axis start with the highest at the top; names are in their
 * order. */
static int make_heat(struct plot *p, const struct drawing *d, struct tune_heat *h)
{
    const struct dimension *x = &p->dimensions[p->x], *y = &p->dimensions[p->y];
    int64_t cells = (int64_t)x->count * y->count;
    double *values, *spreads;
    const char **hints, **names;
    TAKE(values, p, cells);
    TAKE(spreads, p, cells);
    TAKE(hints, p, cells);
    TAKE(names, p, y->count);
    for (int64_t i = 0; i < cells; i++) {
        values[i] = spreads[i] = NAN;
        hints[i] = "not measured";
    }
    for (int i = 0; i < y->count; i++)
        names[y->numeric ? y->count - 1 - i : i] = y->texts[i];
    for (int64_t i = 0; i < d->count; i++) {
        int64_t row = d->rows[i];
        int at = y->numeric ? y->count - 1 - level(p, row, p->y) : level(p, row, p->y);
        size_t cell = (size_t)at * (size_t)x->count + (size_t)level(p, row, p->x);
        char *hint;
        TAKE(hint, p, 128);
        snprintf(hint, 128, "%.6g to %.6g in %.0f results", number(p, row, p->lowest), number(p, row, p->highest), number(p, row, p->results));
        values[cell] = value_of(p, row);
        spreads[cell] = percent_of(p, row);
        hints[cell] = number(p, row, p->results) > 1 ? hint : NULL;
    }
    *h = (struct tune_heat){.title = d->title, .unit = d->unit, .x_title = x->name, .y_title = y->name, .x_names = x->texts, .y_names = names,
                            .columns = x->count, .rows = y->count, .values = values, .spreads = spreads, .hints = hints,
                            .logarithmic = p->my->logarithmic, .best = p->best, .note = *d->note ? d->note : NULL,
                            .holds = p->facet >= 0 ? d->range : NULL, .facet = p->facet >= 0 ? d->facet : NULL};
    return 0;
}

/* ---- parallel coordinates ---- */

static int make_parallel(struct plot *p, struct drawing *d, struct tune_parallel *parallel)
{
    int count = p->varying_count + 1;
    struct tune_axis *axes;
    double *values;
    const char **names = NULL;
    TAKE(axes, p, count);
    TAKE(values, p, d->count * count);
    if (d->count <= 20000) /* with more lines, a mouse pointer cannot select one */
        TAKE(names, p, d->count);
    for (int k = 0; k < count; k++) {
        int at = k < count - 1 ? p->varying[k] : -1;
        const struct dimension *dimension = at >= 0 ? &p->dimensions[at] : NULL;
        double *column = values + (size_t)k * (size_t)d->count;
        for (int64_t i = 0; i < d->count; i++)
            column[i] = dimension ? dimension->numbers[level(p, d->rows[i], at)] : value_of(p, d->rows[i]);
        axes[k] = (struct tune_axis){.title = dimension ? dimension->name : d->property, .unit = dimension ? "" : d->unit, .values = column,
                                     .names = dimension && !dimension->numeric ? dimension->texts : NULL,
                                     .name_count = dimension && !dimension->numeric ? dimension->count : 0,
                                     .base = dimension ? -1 : p->my->logarithmic ? 10 : 0, .holds = p->facet >= 0 && !dimension ? d->range : NULL};
    }
    for (int64_t i = 0; names && i < d->count; i++)
        TRY(values_to_string(p, d->rows[i], p->varying, p->varying_count, &names[i]));
    if (*d->facet)
        tune_append(d->title, TITLE, ", %s", d->facet);
    *parallel = (struct tune_parallel){.title = d->title, .axes = axes, .count = count, .rows = d->count, .names = names,
                                       .best = p->best, .note = *d->note ? d->note : NULL};
    return 0;
}

/* ---- the entry point ---- */

static int draw_svg(const void *what, FILE *out)
{
    const struct plot *p = what;
    return p->kind == CURVES ? tune_plot_svg(p->plots, p->count, out)
           : p->kind == HEAT ? tune_heat_svg(p->heats, p->count, out)
                             : tune_parallel_svg(p->parallels, p->count, out);
}

/* True if the row is the first with its property and experiment. */
static bool is_first(const struct plot *p, int64_t row)
{
    for (int64_t i = 0; i < row; i++)
        if (is_same_kind(p, i, row))
            return false;
    return true;
}

static int make_all(struct plot *p)
{
    int facets = p->facet >= 0 ? p->dimensions[p->facet].count : 1;
    bool both = p->kind == CURVES && p->sparse && !p->my->x && !p->my->series && p->varying_count == 2;
    int x = p->x;
    for (int64_t row = 0; row < p->a->rows; row++)
        for (int facet = 0; facet < facets && is_first(p, row); facet++) {
            TRY(make_drawing(p, row, facet, x));
            TRY(both ? make_drawing(p, row, facet, p->y) : 0);
        }
    for (int i = 0; i < p->count; i++)
        TRY(p->kind == CURVES ? make_plot(p, &p->drawings[i], &p->plots[i])
            : p->kind == HEAT ? make_heat(p, &p->drawings[i], &p->heats[i])
                              : make_parallel(p, &p->drawings[i], &p->parallels[i]));
    return 0;
}

/* In a terminal, print the effect of each of many dimensions, all else equal. Plain means would be
 * misleading, because the measured points may be unbalanced. */
static int print_effects(const struct samples_flags *my, const struct tune_question *q, const struct tune_terminal *how, FILE *out)
{
    struct tune_question question = *q;
    question.x = NULL;
    question.maximize = q->properties ? NULL : q->maximize; /* for plot, they also mark the best */
    question.minimize = q->properties || q->maximize ? NULL : q->minimize;
    struct tune_answer_table *a = samples_write_flags(my, tune_ask_effect(&question));
    if (!a)
        return -1;
    int code = tune_answer_print(a, how->width, how->unicode, out);
    for (int i = 0; i < a->note_count; i++)
        if (a->notes[i].position == TUNE_NOTE_WARNING)
            tune_put_folded(out, "# ", a->notes[i].text, how->width);
    tune_answer_free(a);
    return code;
}

static int draw(struct plot *p, const struct tune_question *q, FILE *out)
{
    struct tune_terminal how = drawing_terminal(p->my->width, 16, false, p->my->color);
    how.color = how.color && (out == stdout || !strcmp(p->my->color, "always"));
    TRY(read_table(p));
    TRY(choose_axes(p));
    TRY(make_all(p));
    for (int i = 0; i < p->count && !drawing_is_stdout(p->my->svg) && p->kind != PARALLEL; i++) {
        fputs(i > 0 ? "\n" : "", out);
        TRY(p->kind == CURVES ? tune_plot_terminal(&p->plots[i], &how, out) : tune_heat_terminal(&p->heats[i], &how, out));
    }
    if (p->kind == PARALLEL && !drawing_is_stdout(p->my->svg))
        TRY(print_effects(p->my, q, &how, out));
    return p->my->svg ? drawing_write(p->my->svg, draw_svg, p) : 0;
}

int samples_draw(const struct samples_flags *my, const struct tune_question *q, FILE *out)
{
    struct tune_answer_table *a = samples_write_flags(my, tune_ask_plot(q));
    struct plot *p = a ? tune_zeroed(1, sizeof *p, "a drawing") : NULL;
    int code = -1;
    if (p) {
        *p = (struct plot){.my = my, .a = a, .best = my->maximize ? 1 : my->minimize ? -1 : 0};
        code = draw(p, q, out);
        tune_pool_free(p->memory);
    }
    for (int i = 0; a && i < a->note_count && code == 0; i++)
        if (a->notes[i].position == TUNE_NOTE_WARNING)
            fprintf(stderr, "samples: %s\n", a->notes[i].text);
    tune_answer_free(a);
    free(p);
    return code;
}
