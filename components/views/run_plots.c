/* run_plots.c - the curves of runs as plots. */
#include "views/run_plots.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/nearest.h"
#include "core/try.h"

enum {
    MOST = 32, /* metrics of one drawing */
    UNITS = 4, /* most plots of one metric */
};

struct metric_names {
    char at[MOST][48];
    int count;
};

static int read_metrics(struct metric_names *names, const char *list)
{
    for (const char *at = list; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n == 0 || n >= sizeof *names->at || names->count == MOST)
            return tune_error_usage("`metric` %s: expected up to %d names separated by commas", list, MOST);
        char *metric = names->at[names->count];
        snprintf(metric, sizeof *names->at, "%.*s", (int)n, at);
        bool seen = false; /* a metric that is named twice is drawn once */
        for (int i = 0; i < names->count; i++)
            seen = seen || !strcmp(names->at[i], metric);
        names->count += !seen;
        at += n;
    }
    return names->count > 0 ? 0 : tune_error_usage("`metric`: expected the name of a metric");
}

/* A metric that no run has is an error that lists the known ones. Of the default metrics, only loss
 * must exist. */
static int check_metric(struct tune_run *const *runs, int count, const struct tune_run_drawing *d, const char *metric)
{
    char names[1024] = "";
    for (int i = 0; i < count; i++) {
        if (tune_run_series(runs[i], metric))
            return 0;
        for (int k = 0; k < runs[i]->series_count; k++) {
            size_t n = strlen(names);
            bool seen = false;
            for (int j = 0; j < i && !seen; j++)
                seen = tune_run_series(runs[j], runs[i]->series[k].name) != NULL;
            if (!seen)
                snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", runs[i]->series[k].name);
        }
    }
    if (!d->asked && !strncmp(metric, "eval_", 5))
        return 0;
    return tune_error_usage("no run has the metric \"%s\"; there are: %s", metric, *names ? names : "none");
}

/* The name of a run in the legend: that of its folder, or the whole path if another run has the
 * same name. */
static const char *label_of(struct tune_run *const *runs, int count, int i)
{
    for (int k = 0; k < count; k++)
        if (k != i && !strcmp(runs[k]->name, runs[i]->name))
            return runs[i]->folder;
    return runs[i]->name;
}

/* Leave out the points of a curve outside the range. x ascends. */
static void cut_to_range(struct tune_curve *c, double *x, const double *range)
{
    int64_t first = 0, end = c->count;
    while (first < end && x[first] < range[0])
        first++;
    while (end > first && x[end - 1] > range[1])
        end--;
    memmove(x, x + first, (size_t)(end - first) * sizeof *x);
    c->y += first;
    c->count = end - first;
}

/* The x values of a series, and its values in their order. Over another metric both are a copy,
 * which x owns. NULL with an error. */
static double *points_of(const struct tune_run *r, const struct tune_run_series *s, const char *what, const double **y, int64_t *count)
{
    struct tune_run_series over;
    double *x, *both;
    *y = s->value;
    *count = s->count;
    if (tune_run_is_axis(what))
        return tune_run_axis(r, s, what);
    if (tune_run_over(r, s, what, &over, &x) < 0)
        return NULL;
    both = realloc(x, (2 * (size_t)over.count + 1) * sizeof *x);
    x = both ? both : x;
    if (both) {
        memcpy(both + over.count, over.value, (size_t)over.count * sizeof *both);
        *y = both + over.count;
        *count = over.count;
    }
    tune_run_over_free(&over, both ? NULL : x);
    if (!both)
        tune_error_no_memory("a curve");
    return both;
}

/* Append the curves of one metric, of the runs that have it in this unit, to the last plot. */
static int add_curves(struct tune_run_plots *p, struct tune_run *const *runs, int count, const struct tune_run_drawing *d,
                      const char *metric, const char *unit, bool shared)
{
    for (int i = 0; i < count; i++) {
        const struct tune_run_series *s = tune_run_series(runs[i], metric);
        char text[TUNE_PATH_MAX + 64];
        if (!s || strcmp(d->unit(runs[i], metric), unit))
            continue;
        snprintf(text, sizeof text, "%s%s%s", label_of(runs, count, i), shared ? " " : "", shared ? metric : "");
        const double *y;
        int64_t points;
        double *x = points_of(runs[i], s, d->x, &y, &points);
        char *label = x ? strdup(text) : NULL;
        if (!label) {
            free(x);
            return x ? tune_error_no_memory("a curve") : -1;
        }
        struct tune_curve *c = &p->curves[p->curve_count++];
        *c = (struct tune_curve){
            .label = label,
            .x = x,
            .y = y,
            .count = points,
            .color = d->colors ? d->colors[i] : i,
            .dotted = !strncmp(metric, "eval_", 5) && points <= 200,
        };
        if (d->range)
            cut_to_range(c, x, d->range);
        p->plot[p->count - 1].count++;
    }
    return 0;
}

/* The units of a metric in these runs, at most `most`. Losses per token and per pair are two plots. */
static int find_units(struct tune_run *const *runs, int count, const struct tune_run_drawing *d, const char *metric, const char *other,
                      const char **units, int most)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        bool has = tune_run_series(runs[i], metric) || (other && tune_run_series(runs[i], other));
        const char *unit = d->unit(runs[i], metric);
        if (!has || tune_name_find(units, n, unit) >= 0)
            continue;
        if (n == most)
            return tune_error_usage("`metric` %s: these runs have it in more than %d units; plot fewer runs at a time", metric, most);
        units[n++] = unit;
    }
    return n;
}

/* True if the two metrics have the same unit in each run. */
static bool same_unit(struct tune_run *const *runs, int count, const struct tune_run_drawing *d, const char *a, const char *b)
{
    bool same = true;
    for (int i = 0; i < count && same; i++)
        same = !strcmp(d->unit(runs[i], a), d->unit(runs[i], b));
    return same;
}

/* The metric that shares the plot of metric m: X and eval_X of the same unit. -1: none. */
static int partner(struct tune_run *const *runs, int count, const struct tune_run_drawing *d, const struct metric_names *names,
                   const bool *done, int m)
{
    const char *metric = names->at[m];
    for (int k = 0; k < names->count; k++) {
        const char *other = names->at[k];
        bool pair = (!strncmp(other, "eval_", 5) && !strcmp(other + 5, metric)) || (!strncmp(metric, "eval_", 5) && !strcmp(metric + 5, other));
        if (pair && !done[k] && same_unit(runs, count, d, metric, other))
            return k;
    }
    return -1;
}

static int make_plots(struct tune_run_plots *p, struct tune_run *const *runs, int count, const struct tune_run_drawing *d,
                      const struct metric_names *names)
{
    bool done[MOST] = {false};
    for (int m = 0; m < names->count; m++) {
        char title[128];
        const char *units[UNITS], *metric = names->at[m];
        int with = partner(runs, count, d, names, done, m);
        const char *other = with >= 0 ? names->at[with] : NULL;
        if (done[m])
            continue;
        TRY(check_metric(runs, count, d, metric));
        if (!tune_run_is_axis(d->x)) {
            struct tune_run_drawing over = *d;
            over.asked = true; /* an x that no run has is an error, always */
            TRY(check_metric(runs, count, &over, d->x));
        }
        if (other)
            TRY(check_metric(runs, count, d, other));
        snprintf(title, sizeof title, "%s%s%s", metric, other ? " and " : "", other ? other : "");
        int n = find_units(runs, count, d, metric, other, units, UNITS);
        TRY(n);
        for (int u = 0; u < n; u++) {
            char *copy = strdup(title);
            if (!copy)
                return tune_error_no_memory("a plot");
            p->plot[p->count++] = (struct tune_plot){
                .title = copy, .x_title = !strcmp(d->x, "time") ? "seconds" : d->x, .y_title = units[u],
                .curves = p->curves + p->curve_count, .smooth = d->smooth, .logarithmic = d->logarithmic,
                .svg_width = d->svg_width, .no_legend = d->no_legend,
            };
            TRY(add_curves(p, runs, count, d, metric, units[u], other));
            if (other)
                TRY(add_curves(p, runs, count, d, other, units[u], other));
        }
        done[m] = done[other ? with : m] = true;
    }
    return 0;
}

struct tune_run_plots *tune_run_plots_new(struct tune_run *const *runs, int count, const struct tune_run_drawing *d)
{
    struct metric_names names = {.count = 0};
    if (read_metrics(&names, d->metrics) < 0)
        return NULL;
    struct tune_run_plots *p = calloc(1, sizeof *p);
    if (p) {
        p->plot = calloc(MOST * UNITS, sizeof *p->plot);
        p->curves = calloc((size_t)count * MOST + 1, sizeof *p->curves);
    }
    if (!p || !p->plot || !p->curves)
        tune_error_no_memory("the plots of runs");
    if (p && p->plot && p->curves && make_plots(p, runs, count, d, &names) == 0)
        return p;
    tune_run_plots_free(p);
    return NULL;
}

void tune_run_plots_free(struct tune_run_plots *p)
{
    if (!p)
        return;
    for (int i = 0; i < p->count; i++)
        free((char *)(uintptr_t)p->plot[i].title);
    for (int i = 0; i < p->curve_count; i++) {
        free((char *)(uintptr_t)p->curves[i].label);
        free((double *)(uintptr_t)p->curves[i].x);
    }
    free(p->plot);
    free(p->curves);
    free(p);
}
