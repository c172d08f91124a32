/* plot.c - figures over the dimensions of a space, in the terminal and as SVG. One dimension gives
 * curves, two a heat map, more parallel coordinates. A property against another, and dimensions
 * that were sampled rather than measured as a grid, give points on true scales. */
#include <math.h>

#include "../drawing.h"
#include "core/nearest.h"
#include "points.h"
#include "sweeps/charts/heat.h"
#include "sweeps/charts/parallel.h"

enum { MOST_CURVES = 16, MOST_DRAWINGS = 64, NOTE = 1024, TITLE = 512 };

/* One property under one experiment. */
struct drawing {
    const struct point **points; /* [count] */
    int64_t count;
    char title[TITLE], note[NOTE];
    const char *unit;
    int x;                       /* dimension on its x axis; -1: a property */
    double range[2], x_range[2]; /* of all its facets */
};

static struct {
    struct points p;
    struct drawing drawings[MOST_DRAWINGS];
    int count;
    int x, y;                    /* dimensions on the axes; -1: none */
    int series[TUNE_SPACE_DIMENSIONS], series_count; /* dimension whose values make curves */
    int facet;                   /* dimension with a drawing for each value; -1: none */
    bool sparse;                 /* points are not a grid, and are not joined */
    int best;
    enum { CURVES, HEAT, PARALLEL } kind;
    struct tune_plot plots[MOST_DRAWINGS];
    struct tune_heat heats[MOST_DRAWINGS];
    struct tune_parallel parallels[MOST_DRAWINGS];
} plot;

/* ---- the choice of axes ---- */

/* True if the points are a small part of the grid of the values that occur. */
static bool is_sparse(void)
{
    double cells = 1;
    for (int i = 0; i < plot.p.varying_count; i++)
        cells *= plot.p.levels[plot.p.varying[i]].count;
    return cells * plot.p.property_count > 2.0 * (double)plot.p.count;
}

/* Give the values of --facet a drawing each. They then vary no more within one. */
static int choose_facet(void)
{
    int n = 0;
    plot.facet = -1;
    if (!my.facet)
        return 0;
    TRY(plot.facet = points_dimension(my.facet));
    for (int i = 0; i < plot.p.varying_count; i++)
        if (plot.p.varying[i] != plot.facet)
            plot.p.varying[n++] = plot.p.varying[i];
    plot.p.varying_count = n;
    return 0;
}

/* Find the dimensions that vary and are neither x nor in --series. */
static void list_others(int x, int series, int *others, int *count)
{
    *count = 0;
    for (int i = 0; i < plot.p.varying_count; i++)
        if (plot.p.varying[i] != x && plot.p.varying[i] != series)
            others[(*count)++] = plot.p.varying[i];
}

/* Choose curves: with --x or --series, or if only one dimension varies. There is a curve for each
 * value of --series, else of the other varying dimensions. */
static int choose_curves(int x, int series)
{
    int others[TUNE_SPACE_DIMENSIONS], count;
    plot.kind = CURVES;
    if (x < 0) {
        list_others(-1, series, others, &count);
        if (count != 1)
            return tune_error_usage("--series %s: over which dimension? --x one of those that vary", my.series);
        x = others[0];
    }
    plot.x = x;
    list_others(x, series, others, &count);
    if (plot.sparse) {
        plot.series_count = series >= 0;
        plot.series[0] = series;
        return 0;
    }
    if (series >= 0 && count > 0)
        return tune_error_usage("%s varies, too: hold it with --where '%s == ...', or leave --series out",
                            samples.space->names[others[0]], samples.space->names[others[0]]);
    plot.series_count = series >= 0 ? 1 : count;
    for (int i = 0; i < plot.series_count; i++)
        plot.series[i] = series >= 0 ? series : others[i];
    return 0;
}

static int choose_axes(void)
{
    int x = my.x && plot.p.x < 0 ? points_dimension(my.x) : -1, series = my.series ? points_dimension(my.series) : -1;
    if ((my.x && plot.p.x < 0 && x < 0) || (my.series && series < 0))
        return -1;
    TRY(choose_facet());
    plot.sparse = plot.p.x >= 0 || is_sparse();
    if (plot.facet >= 0 && (plot.facet == x || plot.facet == series))
        return tune_error_usage("--facet and --%s are the same dimension", plot.facet == x ? "x" : "series");
    if (plot.p.x >= 0) {
        plot.kind = CURVES;
        plot.x = -1;
        plot.series_count = series >= 0;
        plot.series[0] = series;
        return 0;
    }
    if (x >= 0 && x == series)
        return tune_error_usage("--x and --series are the same dimension");
    plot.x = plot.y = -1;
    if (x < 0 && series < 0 && plot.p.varying_count <= 1)
        x = plot.p.varying_count == 1 ? plot.p.varying[0] : 0;
    if (x >= 0 || series >= 0)
        return choose_curves(x, series);
    plot.kind = plot.p.varying_count > 2 ? PARALLEL : plot.sparse ? CURVES : HEAT;
    plot.y = plot.p.varying[0];
    plot.x = plot.p.varying[1];
    return 0;
}

/* ---- drawings ---- */

static void append(char *text, size_t size, const char *format, ...) TUNE_PRINTF(3, 4);
static void append(char *text, size_t size, const char *format, ...)
{
    size_t n = strlen(text);
    va_list args;
    va_start(args, format);
    vsnprintf(text + n, size - n, format, args);
    va_end(args);
}

/* Half of the range of several results, in percent of their mean; NaN: fewer than two results. */
static double percent_of(const struct point *p)
{
    return p->spread.count > 1 && points_value(p) != 0 ? 50 * (p->spread.high - p->spread.low) / fabs(points_value(p)) : NAN;
}

/* Print what all points have in common: fixed dimensions, origin of the figures, kind of spread. */
static void make_note(struct drawing *d)
{
    const char *middle = samples_median() ? "median" : "mean";
    double most = 0;
    for (int64_t i = 0; i < d->count; i++)
        most = fmax(most, percent_of(d->points[i]));
    for (int i = 0; i < samples.space->count; i++)
        if (plot.p.levels[i].count == 1 && i != plot.x && i != plot.facet)
            append(d->note, NOTE, "%s%s %s", *d->note ? ", " : "", samples.space->names[i], plot.p.levels[i].texts[0]);
    if (plot.p.host_classes > 1 || plot.p.builds > 1)
        append(d->note, NOTE, "%sfigures of %d host class%s and %d build%s", *d->note ? "; " : "", plot.p.host_classes,
               plot.p.host_classes == 1 ? "" : "es", plot.p.builds, plot.p.builds == 1 ? "" : "s");
    if (plot.p.repeated && plot.kind == CURVES)
        append(d->note, NOTE, "%s%s of several results, bars from the lowest to the highest", *d->note ? "; " : "", middle);
    else if (plot.p.repeated)
        append(d->note, NOTE, "%s%s of several results and half their range, at most %.2g%% of it", *d->note ? "; " : "", middle,
               most);
}

/* The ranges of the property, and of that on the x axis, in all facets. */
static void find_range(int property, int protocol, double range[2], double x_range[2])
{
    range[0] = x_range[0] = INFINITY;
    range[1] = x_range[1] = -INFINITY;
    for (int64_t i = 0; i < plot.p.count; i++) {
        const struct point *p = &plot.p.all[i];
        if (p->property != property || p->protocol != protocol)
            continue;
        bool bars = plot.kind == CURVES && p->spread.count > 1;
        range[0] = fmin(range[0], bars ? p->spread.low : points_value(p));
        range[1] = fmax(range[1], bars ? p->spread.high : points_value(p));
        x_range[0] = fmin(x_range[0], p->x);
        x_range[1] = fmax(x_range[1], p->x);
    }
}

static bool is_in(const struct point *p, int property, int protocol, int facet)
{
    return p->property == property && p->protocol == protocol && (plot.facet < 0 || p->at[plot.facet] == facet);
}

static int make_drawing(int property, int protocol, int facet, int x)
{
    struct drawing *d = &plot.drawings[plot.count];
    int64_t count = 0;
    for (int64_t i = 0; i < plot.p.count; i++)
        count += is_in(&plot.p.all[i], property, protocol, facet);
    if (count == 0)
        return 0;
    if (plot.count == MOST_DRAWINGS)
        return tune_error_usage("more than %d drawings; choose fewer with --property", MOST_DRAWINGS);
    d->points = samples_take(count, sizeof *d->points);
    for (int64_t i = 0; i < plot.p.count; i++)
        if (is_in(&plot.p.all[i], property, protocol, facet))
            d->points[d->count++] = &plot.p.all[i];
    d->x = x;
    find_range(property, protocol, d->range, d->x_range);
    d->unit = points_unit(&plot.p, d->points[0]);
    snprintf(d->title, TITLE, "%s", plot.p.properties[property]);
    if (samples.space->reference_count > 1)
        append(d->title, TITLE, " under %s", samples.protocols[protocol].identifier);
    if (plot.facet >= 0)
        append(d->title, TITLE, ", %s %s", samples.space->names[plot.facet], plot.p.levels[plot.facet].texts[facet]);
    make_note(d);
    plot.count++;
    return 0;
}

/* ---- curves ---- */

/* The point's place on the x axis. */
static double x_value(const struct point *p)
{
    return plot.x < 0 ? p->x : plot.p.levels[plot.x].numbers[p->at[plot.x]];
}

static bool same_series(const struct point *a, const struct point *b)
{
    for (int i = 0; i < plot.series_count; i++)
        if (a->at[plot.series[i]] != b->at[plot.series[i]])
            return false;
    return true;
}

static int by_series_and_x(const void *a, const void *b)
{
    const struct point *x = *(const struct point *const *)a, *y = *(const struct point *const *)b;
    for (int i = 0; i < plot.series_count; i++)
        if (x->at[plot.series[i]] != y->at[plot.series[i]])
            return x->at[plot.series[i]] - y->at[plot.series[i]];
    return (x_value(x) > x_value(y)) - (x_value(x) < x_value(y));
}

/* The point's values of these dimensions: "batch_size 4, torch_dtype float32". */
static char *values_of(const struct point *p, const int *dimensions, int count)
{
    char *text = samples_take(1, TITLE);
    for (int i = 0; i < count; i++)
        append(text, TITLE, "%s%s %s", i ? ", " : "", samples.space->names[dimensions[i]],
               plot.p.levels[dimensions[i]].texts[p->at[dimensions[i]]]);
    return text;
}

/* Make the curve of points[count] of one series. */
static void make_curve(struct tune_curve *c, const struct point *const *points, int64_t count, int color)
{
    double *values = samples_take(4 * count, sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        values[i] = x_value(points[i]);
        values[count + i] = points_value(points[i]);
        values[2 * count + i] = points[i]->spread.count > 1 ? points[i]->spread.low : NAN;
        values[3 * count + i] = points[i]->spread.count > 1 ? points[i]->spread.high : NAN;
    }
    *c = (struct tune_curve){.label = values_of(points[0], plot.series, plot.series_count), .x = values, .y = values + count, .low = values + 2 * count,
                             .high = values + 3 * count, .count = count, .color = color, .marked = true, .apart = plot.sparse};
}

static int make_plot(struct drawing *d, struct tune_plot *p)
{
    plot.x = d->x;
    const struct levels *l = plot.x < 0 ? NULL : &plot.p.levels[plot.x];
    bool numeric = !l || l->numeric;
    struct tune_curve *curves = samples_take(MOST_CURVES, sizeof *curves);
    int count = 0;
    bool crowded = false;
    qsort(d->points, (size_t)d->count, sizeof *d->points, by_series_and_x);
    for (int64_t first = 0, n; first < d->count; first += n) {
        for (n = 1; first + n < d->count && same_series(d->points[first], d->points[first + n]);)
            n++;
        if (count == MOST_CURVES)
            return tune_error_usage("more than %d curves; choose among their entities with --where", MOST_CURVES);
        /* a value has the same colour in each facet */
        int color = plot.series_count == 1 ? d->points[first]->at[plot.series[0]] : count;
        make_curve(&curves[count], d->points + first, n, color);
        crowded = crowded || n > TUNE_PLOT_MARKS;
        count++;
    }
    if (plot.p.without_x > 0)
        append(d->note, NOTE, "%s%lld points have no %s", *d->note ? "; " : "", (long long)plot.p.without_x, my.x);
    if (crowded && numeric && !plot.sparse)
        append(d->note, NOTE, "%s%lld points, smoothed where they scatter", *d->note ? "; " : "", (long long)d->count);
    *p = (struct tune_plot){.title = d->title, .x_title = l ? samples.space->names[plot.x] : my.x, .y_title = d->unit, .curves = curves,
                            .count = count, .logarithmic = my.logarithmic, .smooth = -1, .x_base = -1,
                            .x_names = numeric ? NULL : (const char *const *)l->texts, .x_count = numeric ? 0 : l->count,
                            .note = *d->note ? d->note : NULL, .y_holds = plot.facet >= 0 ? d->range : NULL,
                            .x_holds = plot.facet >= 0 && !l ? d->x_range : NULL};
    return 0;
}

/* ---- heat maps ---- */

static char *hint_of(const struct point *p)
{
    char *text = samples_take(1, 128);
    snprintf(text, 128, "%.6g to %.6g in %d results", p->spread.low, p->spread.high, p->spread.count);
    return text;
}

/* Order of rows from the top: numbers from the highest, so that both axes rise; names in their
 * order. */
static void make_heat(const struct drawing *d, struct tune_heat *h)
{
    const struct levels *x = &plot.p.levels[plot.x], *y = &plot.p.levels[plot.y];
    int64_t cells = (int64_t)x->count * y->count;
    double *values = samples_take(cells, sizeof *values), *spreads = samples_take(cells, sizeof *spreads);
    const char **hints = samples_take(cells, sizeof *hints), **names = samples_take(y->count, sizeof *names);
    for (int64_t i = 0; i < cells; i++) {
        values[i] = spreads[i] = NAN;
        hints[i] = "not measured";
    }
    for (int i = 0; i < y->count; i++)
        names[y->numeric ? y->count - 1 - i : i] = y->texts[i];
    for (int64_t i = 0; i < d->count; i++) {
        const struct point *p = d->points[i];
        int row = y->numeric ? y->count - 1 - p->at[plot.y] : p->at[plot.y];
        size_t cell = (size_t)row * (size_t)x->count + (size_t)p->at[plot.x];
        values[cell] = points_value(p);
        spreads[cell] = percent_of(p);
        hints[cell] = p->spread.count > 1 ? hint_of(p) : NULL;
    }
    *h = (struct tune_heat){.title = d->title, .unit = d->unit, .x_title = samples.space->names[plot.x],
                            .y_title = samples.space->names[plot.y], .x_names = (const char *const *)x->texts, .y_names = names,
                            .columns = x->count, .rows = y->count, .values = values, .spreads = spreads, .hints = hints,
                            .logarithmic = my.logarithmic, .best = plot.best, .note = *d->note ? d->note : NULL,
                            .holds = plot.facet >= 0 ? d->range : NULL};
}

/* ---- parallel coordinates ---- */

static void make_parallel(const struct drawing *d, struct tune_parallel *parallel)
{
    int count = plot.p.varying_count + 1;
    struct tune_axis *axes = samples_take(count, sizeof *axes);
    double *values = samples_take(d->count * count, sizeof *values);
    /* with more lines, a mouse pointer cannot hit one */
    const char **names = d->count <= 20000 ? samples_take(d->count, sizeof *names) : NULL;
    for (int a = 0; a < count; a++) {
        int dimension = a < count - 1 ? plot.p.varying[a] : -1;
        const struct levels *l = dimension >= 0 ? &plot.p.levels[dimension] : NULL;
        double *column = values + (size_t)a * (size_t)d->count;
        for (int64_t i = 0; i < d->count; i++)
            column[i] = l ? l->numbers[d->points[i]->at[dimension]] : points_value(d->points[i]);
        axes[a] = (struct tune_axis){.title = l ? samples.space->names[dimension] : plot.p.properties[d->points[0]->property],
                                     .unit = l ? "" : d->unit, .values = column,
                                     .names = l && !l->numeric ? (const char *const *)l->texts : NULL,
                                     .name_count = l && !l->numeric ? l->count : 0, .base = l ? -1 : my.logarithmic ? 10 : 0,
                                     .holds = plot.facet >= 0 && !l ? d->range : NULL};
    }
    for (int64_t i = 0; names && i < d->count; i++)
        names[i] = values_of(d->points[i], plot.p.varying, plot.p.varying_count);
    *parallel = (struct tune_parallel){.title = d->title, .axes = axes, .count = count, .rows = d->count, .names = names,
                                       .best = plot.best, .note = *d->note ? d->note : NULL};
}

/* ---- the whole ---- */

static int draw_svg(const void *what, FILE *out)
{
    (void)what;
    return plot.kind == CURVES ? tune_plot_svg(plot.plots, plot.count, out)
           : plot.kind == HEAT ? tune_heat_svg(plot.heats, plot.count, out)
                               : tune_parallel_svg(plot.parallels, plot.count, out);
}

static int draw_terminal(int i, const struct tune_terminal *how)
{
    if (i > 0)
        fputc('\n', samples.out);
    return plot.kind == CURVES ? tune_plot_terminal(&plot.plots[i], how, samples.out)
           : plot.kind == HEAT ? tune_heat_terminal(&plot.heats[i], how, samples.out)
                               : tune_parallel_terminal(&plot.parallels[i], how, samples.out);
}

static int make_all(void)
{
    int facets = plot.facet >= 0 ? plot.p.levels[plot.facet].count : 1;
    bool both = plot.kind == CURVES && plot.sparse && !my.x && !my.series && plot.p.varying_count == 2;
    for (int property = 0; property < plot.p.property_count; property++)
        for (int protocol = 0; protocol < samples.space->reference_count; protocol++)
            for (int facet = 0; facet < facets; facet++) {
                TRY(make_drawing(property, protocol, facet, plot.x));
                TRY(both ? make_drawing(property, protocol, facet, plot.y) : 0);
            }
    for (int i = 0; i < plot.count; i++) {
        struct drawing *d = &plot.drawings[i];
        if (plot.kind == CURVES)
            TRY(make_plot(d, &plot.plots[i]));
        else if (plot.kind == HEAT)
            make_heat(d, &plot.heats[i]);
        else
            make_parallel(d, &plot.parallels[i]);
    }
    return 0;
}

static int draw(void)
{
    struct tune_terminal how = drawing_terminal(my.width, my.height, my.ascii, my.color);
    how.color = how.color && (samples.out == stdout || !strcmp(my.color, "always"));
    TRY(points_read(&plot.p));
    TRY(choose_axes());
    TRY(make_all());
    for (int i = 0; i < plot.count && !drawing_is_stdout(my.svg); i++)
        TRY(draw_terminal(i, &how));
    return my.svg ? drawing_write(my.svg, draw_svg, NULL) : 0;
}

int samples_plot(void)
{
    TRY(samples_check_aggregate());
    plot.best = my.maximize ? 1 : my.minimize ? -1 : 0;
    TRY(samples_open_space(samples_word(0)));
    return draw();
}
