/* picture.c - the points of tune_ask_plot as a picture. One dimension is drawn as curves, two as a
 * heat map, more as parallel coordinates. Points are drawn on true scales if x is a property, or if
 * dimensions were sampled instead of measured as a grid. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/print.h"
#include "sweeps/charts/picture_parts.h"

enum { MOST_CURVES = 16 };

static double value_of(const struct tune_picture *p, int64_t row)
{
    return tune_picture_number(p, row, p->value);
}

/* ---- drawings ---- */

/* Half the range of several results, in percent of their mean. NaN: fewer than two results. */
static double percent_of(const struct tune_picture *p, int64_t row)
{
    bool several = tune_picture_number(p, row, p->results) > 1 && value_of(p, row) != 0;
    return several ? 50 * (tune_picture_number(p, row, p->highest) - tune_picture_number(p, row, p->lowest)) / fabs(value_of(p, row)) : NAN;
}

static bool is_same_kind(const struct tune_picture *p, int64_t a, int64_t b)
{
    return !strcmp(tune_picture_text(p, a, p->property), tune_picture_text(p, b, p->property)) && !strcmp(tune_picture_text(p, a, p->experiment), tune_picture_text(p, b, p->experiment));
}

/* The text about the lines of a drawing; NULL: it has none. */
static const char *line_of(const struct tune_picture *p, const struct tune_picture_drawing *d)
{
    for (int64_t i = 0; i < d->count; i++)
        if (tune_picture_modelled(p, d->rows[i]))
            return tune_picture_text(p, d->rows[i], p->line_by);
    return NULL;
}

/* Write the note about all points: warnings, lines, fixed dimensions and the kind of spread. */
static void make_note(const struct tune_picture *p, struct tune_picture_drawing *d, int64_t first)
{
    const char *middle = p->q->aggregate && !strcmp(p->q->aggregate, "median") ? "median" : "mean";
    double most = 0;
    for (int64_t row = 0; row < p->a->rows; row++) /* rows of all facets, because they share this note */
        if (is_same_kind(p, first, row) && !tune_picture_modelled(p, row))
            most = fmax(most, percent_of(p, row));
    for (int i = 0; i < p->a->note_count; i++)
        if (p->a->notes[i].position == TUNE_NOTE_WARNING)
            tune_append(d->note, TUNE_PICTURE_NOTE, "%s%s", *d->note ? "; " : "", p->a->notes[i].text);
    const char *line = line_of(p, d);
    bool names = line && !p->dimensions[d->x].numeric;
    if (line)
        tune_append(d->note, TUNE_PICTURE_NOTE, "%s%s: %s; %s: its 95 %% interval", *d->note ? "; " : "", names ? "hollow marks" : "line", line,
                    names ? "bar" : "band");
    int fixed = 0;
    for (int i = 0; i < p->dimension_count; i++)
        if (p->dimensions[i].count == 1 && i != p->x && i != p->facet)
            tune_append(d->note, TUNE_PICTURE_NOTE, "%s%s %s", fixed++ ? ", " : *d->note ? "; " : "", p->dimensions[i].name, p->dimensions[i].texts[0]);
    if (p->repeated && p->kind == TUNE_PICTURE_CURVES)
        tune_append(d->note, TUNE_PICTURE_NOTE, "%s%s of several results; the bars go from the lowest to the "
                                   "highest", *d->note ? "; " : "", middle);
    else if (p->repeated)
        tune_append(d->note, TUNE_PICTURE_NOTE, "%s%s of several results; half their range is at most %.2g%% of "
                                   "this value", *d->note ? "; " : "", middle, most);
}

/* Find the ranges of the property and of the x axis over all facets. */
static void find_range(const struct tune_picture *p, int64_t first, double range[2], double x_range[2])
{
    range[0] = x_range[0] = INFINITY;
    range[1] = x_range[1] = -INFINITY;
    for (int64_t row = 0; row < p->a->rows; row++) {
        if (!is_same_kind(p, first, row))
            continue;
        bool bars = tune_picture_modelled(p, row) || (p->kind == TUNE_PICTURE_CURVES && tune_picture_number(p, row, p->results) > 1);
        range[0] = fmin(range[0], bars ? tune_picture_number(p, row, p->lowest) : value_of(p, row));
        range[1] = fmax(range[1], bars ? tune_picture_number(p, row, p->highest) : value_of(p, row));
        x_range[0] = fmin(x_range[0], tune_picture_number(p, row, p->x_value));
        x_range[1] = fmax(x_range[1], tune_picture_number(p, row, p->x_value));
    }
}

/* True if a row belongs into the drawing with this x axis. A line belongs into that of its own. */
static bool is_in(const struct tune_picture *p, int64_t first, int64_t row, int facet, int x)
{
    if (tune_picture_modelled(p, row) && (x < 0 || strcmp(tune_picture_text(p, row, p->line_over), p->dimensions[x].name)))
        return false;
    return is_same_kind(p, first, row) && (p->facet < 0 || tune_picture_level(p, row, p->facet) == facet);
}

/* Make a drawing of the points with the same property and experiment as row `first`, in a facet. */
static int make_drawing(struct tune_picture *p, int64_t first, int facet, int x)
{
    struct tune_picture_drawing *d = &p->drawings[p->count];
    int64_t count = 0;
    bool several = false; /* experiments */
    for (int64_t row = 0; row < p->a->rows; row++) {
        count += is_in(p, first, row, facet, x);
        several = several || strcmp(tune_picture_text(p, row, p->experiment), tune_picture_text(p, first, p->experiment));
    }
    if (count == 0)
        return 0;
    if (p->count == TUNE_PICTURE_DRAWINGS)
        return tune_error_usage("more than %d drawings; choose fewer with `property`", TUNE_PICTURE_DRAWINGS);
    TAKE(d->rows, p, count);
    for (int64_t row = 0; row < p->a->rows; row++)
        if (is_in(p, first, row, facet, x))
            d->rows[d->count++] = row;
    d->x = x;
    find_range(p, first, d->range, d->x_range);
    d->property = tune_picture_text(p, first, p->property);
    d->unit = tune_picture_text(p, first, p->unit);
    snprintf(d->title, TUNE_PICTURE_TITLE, "%s%s%s", d->property, several ? " under " : "", several ? tune_picture_text(p, first, p->experiment) : "");
    if (p->facet >= 0)
        tune_append(d->facet, TUNE_PICTURE_TITLE, "%s %s", p->dimensions[p->facet].name, p->dimensions[p->facet].texts[facet]);
    make_note(p, d, first);
    p->count++;
    return 0;
}

/* ---- curves ---- */

/* The point's position on the x axis. A line also goes through numbers that were not measured. */
static double x_of(const struct tune_picture *p, int64_t row)
{
    if (p->x < 0)
        return tune_picture_number(p, row, p->x_value);
    int level = tune_picture_level(p, row, p->x);
    const struct tune_picture_dimension *x = &p->dimensions[p->x];
    return level >= 0 ? x->numbers[level] : x->numeric ? tune_picture_number(p, row, x->column) : NAN;
}

static int compare_series(const struct tune_picture *p, int64_t a, int64_t b)
{
    if (tune_picture_modelled(p, a) != tune_picture_modelled(p, b))
        return tune_picture_modelled(p, a) ? -1 : 1; /* lines come first, below the points */
    for (int i = 0; i < p->series_count; i++)
        if (tune_picture_level(p, a, p->series[i]) != tune_picture_level(p, b, p->series[i]))
            return tune_picture_level(p, a, p->series[i]) - tune_picture_level(p, b, p->series[i]);
    return 0;
}

static int by_series_and_x(const void *a, const void *b, void *context)
{
    const struct tune_picture *p = context;
    int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    int order = compare_series(p, i, k);
    double x = x_of(p, i), y = x_of(p, k);
    return order ? order : (x > y) - (x < y);
}

/* Write the point's values of some dimensions: "batch_size 4, torch_dtype float32". */
static int values_to_string(struct tune_picture *p, int64_t row, const int *dimensions, int count, const char **to)
{
    char *text = tune_pool_take(&p->memory, TUNE_PICTURE_TITLE);
    if (!text)
        return tune_picture_no_memory();
    for (int i = 0; i < count; i++)
        tune_append_item(text, TUNE_PICTURE_TITLE, "%s %s", p->dimensions[dimensions[i]].name, p->dimensions[dimensions[i]].texts[tune_picture_level(p, row, dimensions[i])]);
    *to = text;
    return 0;
}

/* Find the Pareto front, if `maximize` and `minimize` give both axes a direction. Else *front is
 * NULL. */
static int find_front(struct tune_picture *p, const struct tune_picture_drawing *d, bool **front)
{
    const char *most = p->q->maximize, *least = p->q->minimize;
    *front = NULL;
    if (p->x >= 0 || !most || !least || (strcmp(p->q->x, most) && strcmp(p->q->x, least)))
        return 0;
    double *x;
    TAKE(x, p, 2 * d->count);
    TAKE(*front, p, d->count);
    for (int64_t i = 0; i < d->count; i++) {
        x[i] = x_of(p, d->rows[i]);
        x[d->count + i] = value_of(p, d->rows[i]);
    }
    int x_best = strcmp(p->q->x, most) ? -1 : 1;
    return tune_plot_front(x, x + d->count, d->count, x_best, -x_best, *front);
}

/* Write the name of a curve. lines: some curves are lines by a model. */
static int make_label(struct tune_picture *p, int64_t row, bool lines, const char **label)
{
    const char *series = "", *kind = !lines ? "" : tune_picture_modelled(p, row) ? "model" : "measured";
    char *text;
    TRY(values_to_string(p, row, p->series, p->series_count, &series));
    TAKE(text, p, TUNE_PICTURE_TITLE);
    snprintf(text, TUNE_PICTURE_TITLE, "%s%s%s", series, *series && *kind ? ", " : "", kind);
    *label = text;
    return 0;
}

/* Make the curve of rows[count] of one series. front: see find_front. */
static int make_curve(struct tune_picture *p, struct tune_curve *c, const int64_t *rows, int64_t count, int color, const bool *front)
{
    double *values;
    bool line = tune_picture_modelled(p, rows[0]);
    TAKE(values, p, 4 * count);
    for (int64_t i = 0; i < count; i++) {
        bool several = line || tune_picture_number(p, rows[i], p->results) > 1;
        values[i] = x_of(p, rows[i]);
        values[count + i] = value_of(p, rows[i]);
        values[2 * count + i] = several ? tune_picture_number(p, rows[i], p->lowest) : NAN;
        values[3 * count + i] = several ? tune_picture_number(p, rows[i], p->highest) : NAN;
    }
    *c = (struct tune_curve){.x = values, .y = values + count, .low = values + 2 * count, .high = values + 3 * count, .count = count,
                             .color = color, .marked = !line, .apart = p->sparse && !line, .band = line, .front = front,
                             .rows = line ? NULL : rows};
    return 0;
}

static int make_plot(struct tune_picture *p, struct tune_picture_drawing *d, struct tune_plot *to)
{
    p->x = d->x;
    const struct tune_picture_dimension *x = p->x < 0 ? NULL : &p->dimensions[p->x];
    bool numeric = !x || x->numeric, crowded = false, lines = line_of(p, d);
    struct tune_curve *curves;
    int count = 0, measured = 0;
    TAKE(curves, p, 2 * MOST_CURVES);
    bool *front;
    qsort_r(d->rows, (size_t)d->count, sizeof *d->rows, by_series_and_x, p);
    TRY(find_front(p, d, &front));
    for (int64_t first = 0, n; first < d->count; first += n) {
        for (n = 1; first + n < d->count && !compare_series(p, d->rows[first], d->rows[first + n]);)
            n++;
        bool line = tune_picture_modelled(p, d->rows[first]);
        if (measured == MOST_CURVES || count == 2 * MOST_CURVES)
            return tune_error_usage("more than %d curves; choose among their entities with `where`", MOST_CURVES);
        /* a value has the same colour in each facet */
        int color = p->series_count == 1 ? tune_picture_level(p, d->rows[first], p->series[0]) : measured;
        TRY(make_curve(p, &curves[count], d->rows + first, n, color, front ? front + first : NULL));
        TRY(make_label(p, d->rows[first], lines, &curves[count].label));
        crowded = crowded || n > TUNE_PLOT_MARKS;
        count++;
        measured += !line;
    }
    if (crowded && numeric && !p->sparse)
        tune_append(d->note, TUNE_PICTURE_NOTE, "%s%lld points, smoothed where they are scattered",
                    *d->note ? "; " : "", (long long)d->count);
    char *title;
    TAKE(title, p, TUNE_PICTURE_TITLE);
    const char *unit = x ? "" : p->a->columns[p->x_value].unit;
    snprintf(title, TUNE_PICTURE_TITLE, "%s%s%s", x ? x->name : p->q->x, *unit ? ", " : "", unit);
    *to = (struct tune_plot){.title = d->title, .x_title = title, .y_title = d->unit, .curves = curves,
                             .count = count, .logarithmic = p->logarithmic, .smooth = -1, .x_base = -1,
                             .x_names = numeric ? NULL : x->texts, .x_count = numeric ? 0 : x->count,
                             .note = *d->note ? d->note : NULL, .y_holds = p->facet >= 0 ? d->range : NULL,
                             .x_holds = p->facet >= 0 && !x ? d->x_range : NULL, .facet = p->facet >= 0 ? d->facet : NULL,
                             .front = front ? "Pareto front" : NULL};
    return 0;
}

/* ---- heat maps ---- */

/* Make a heat map. Numbers on the y axis start with the highest at the top; names are in their
 * order. */
static int make_heat(struct tune_picture *p, const struct tune_picture_drawing *d, struct tune_heat *h)
{
    const struct tune_picture_dimension *x = &p->dimensions[p->x], *y = &p->dimensions[p->y];
    int64_t cells = (int64_t)x->count * y->count;
    double *values, *spreads;
    const char **hints, **names;
    int64_t *rows;
    TAKE(values, p, cells);
    TAKE(spreads, p, cells);
    TAKE(hints, p, cells);
    TAKE(rows, p, cells);
    TAKE(names, p, y->count);
    for (int64_t i = 0; i < cells; i++) {
        values[i] = spreads[i] = NAN;
        rows[i] = -1;
        hints[i] = "not measured";
    }
    for (int i = 0; i < y->count; i++)
        names[y->numeric ? y->count - 1 - i : i] = y->texts[i];
    for (int64_t i = 0; i < d->count; i++) {
        int64_t row = d->rows[i];
        int at = y->numeric ? y->count - 1 - tune_picture_level(p, row, p->y) : tune_picture_level(p, row, p->y);
        size_t cell = (size_t)at * (size_t)x->count + (size_t)tune_picture_level(p, row, p->x);
        char *hint;
        TAKE(hint, p, 128);
        snprintf(hint, 128, "%.6g to %.6g in %.0f results", tune_picture_number(p, row, p->lowest), tune_picture_number(p, row, p->highest), tune_picture_number(p, row, p->results));
        values[cell] = value_of(p, row);
        rows[cell] = row;
        spreads[cell] = percent_of(p, row);
        hints[cell] = tune_picture_number(p, row, p->results) > 1 ? hint : NULL;
    }
    *h = (struct tune_heat){.title = d->title, .unit = d->unit, .x_title = x->name, .y_title = y->name, .x_names = x->texts, .y_names = names,
                            .columns = x->count, .rows = y->count, .values = values, .spreads = spreads, .hints = hints, .table_rows = rows,
                            .logarithmic = p->logarithmic, .best = p->best, .note = *d->note ? d->note : NULL,
                            .holds = p->facet >= 0 ? d->range : NULL, .facet = p->facet >= 0 ? d->facet : NULL};
    return 0;
}

/* ---- parallel coordinates ---- */

static int make_parallel(struct tune_picture *p, struct tune_picture_drawing *d, struct tune_parallel *parallel)
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
        const struct tune_picture_dimension *dimension = at >= 0 ? &p->dimensions[at] : NULL;
        double *column = values + (size_t)k * (size_t)d->count;
        for (int64_t i = 0; i < d->count; i++)
            column[i] = dimension ? dimension->numbers[tune_picture_level(p, d->rows[i], at)] : value_of(p, d->rows[i]);
        axes[k] = (struct tune_axis){.title = dimension ? dimension->name : d->property, .unit = dimension ? "" : d->unit, .values = column,
                                     .names = dimension && !dimension->numeric ? dimension->texts : NULL,
                                     .name_count = dimension && !dimension->numeric ? dimension->count : 0,
                                     .base = dimension ? -1 : p->logarithmic ? 10 : 0, .holds = p->facet >= 0 && !dimension ? d->range : NULL};
    }
    for (int64_t i = 0; names && i < d->count; i++)
        TRY(values_to_string(p, d->rows[i], p->varying, p->varying_count, &names[i]));
    if (*d->facet)
        tune_append(d->title, TUNE_PICTURE_TITLE, ", %s", d->facet);
    *parallel = (struct tune_parallel){.title = d->title, .axes = axes, .count = count, .rows = d->count, .names = names, .table_rows = d->rows,
                                       .best = p->best, .note = *d->note ? d->note : NULL};
    return 0;
}

/* ---- the picture ---- */

/* True if the row is the first with its property and experiment. */
static bool is_first(const struct tune_picture *p, int64_t row)
{
    for (int64_t i = 0; i < row; i++)
        if (is_same_kind(p, i, row))
            return false;
    return true;
}

static int make_all(struct tune_picture *p)
{
    int facets = p->facet >= 0 ? p->dimensions[p->facet].count : 1;
    bool both = p->kind == TUNE_PICTURE_CURVES && p->sparse && !p->q->x && !p->q->series && p->varying_count == 2;
    int x = p->x;
    for (int64_t row = 0; row < p->a->rows; row++)
        for (int facet = 0; facet < facets && is_first(p, row); facet++) {
            TRY(make_drawing(p, row, facet, x));
            TRY(both ? make_drawing(p, row, facet, p->y) : 0);
        }
    for (int i = 0; i < p->count; i++)
        TRY(p->kind == TUNE_PICTURE_CURVES ? make_plot(p, &p->drawings[i], &p->plots[i])
            : p->kind == TUNE_PICTURE_HEAT ? make_heat(p, &p->drawings[i], &p->heats[i])
                              : make_parallel(p, &p->drawings[i], &p->parallels[i]));
    return 0;
}

struct tune_picture *tune_picture_new(const struct tune_answer_table *a, const struct tune_question *q, bool logarithmic)
{
    struct tune_picture *p = calloc(1, sizeof *p);
    if (!p) {
        tune_picture_no_memory();
        return NULL;
    }
    *p = (struct tune_picture){.q = q, .a = a, .logarithmic = logarithmic, .best = q->maximize ? 1 : q->minimize ? -1 : 0};
    if (tune_picture_read(p) == 0 && tune_picture_choose(p) == 0 && make_all(p) == 0)
        return p;
    tune_picture_free(p);
    return NULL;
}

void tune_picture_free(struct tune_picture *p)
{
    if (p)
        tune_pool_free(p->memory);
    free(p);
}

bool tune_picture_fits_terminal(const struct tune_picture *p)
{
    return p->kind != TUNE_PICTURE_PARALLEL;
}

int tune_picture_terminal(const struct tune_picture *p, const struct tune_terminal *how, FILE *out)
{
    for (int i = 0; i < p->count && tune_picture_fits_terminal(p); i++) {
        fputs(i > 0 ? "\n" : "", out);
        TRY(p->kind == TUNE_PICTURE_CURVES ? tune_plot_terminal(&p->plots[i], how, out) : tune_heat_terminal(&p->heats[i], how, out));
    }
    return 0;
}

int tune_picture_svg(const struct tune_picture *p, FILE *out)
{
    return p->kind == TUNE_PICTURE_CURVES ? tune_plot_svg(p->plots, p->count, out)
           : p->kind == TUNE_PICTURE_HEAT ? tune_heat_svg(p->heats, p->count, out)
                                          : tune_parallel_svg(p->parallels, p->count, out);
}
