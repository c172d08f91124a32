/* plot.c - `runs plot`: curves in the terminal, and as a picture. */
#include <stdlib.h>
#include <string.h>

#include "../drawing.h"
#include "core/nearest.h"
#include "runs.h"

enum {
    MOST = 32, /* most metrics of one command */
    UNITS = 4, /* most plots of one metric */
};

struct drawing {
    struct tune_run **runs;
    int count, plots, curves;
    char metrics[MOST][48];
    int metric_count;
    struct tune_plot plot[MOST * UNITS];
    struct tune_curve *curve;
};

static void read_metrics(struct drawing *d)
{
    for (const char *at = my.metric; *at; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n == 0 || n >= sizeof *d->metrics || d->metric_count == MOST) {
            tune_error_set_kind(TUNE_ERROR_USAGE, "--metric %s: expected up to %d names separated by commas", my.metric, MOST);
            tune_program_fail();
        }
        char *metric = d->metrics[d->metric_count];
        snprintf(metric, sizeof *d->metrics, "%.*s", (int)n, at);
        bool seen = false; /* a metric that is named twice is drawn once */
        for (int i = 0; i < d->metric_count; i++)
            seen = seen || !strcmp(d->metrics[i], metric);
        d->metric_count += !seen;
        at += n;
    }
}

/* A metric that no run has is an error that lists the known ones. Of the default metrics, only loss
 * must exist. */
static void check_metric(const struct drawing *d, const char *metric)
{
    char names[1024] = "";
    for (int i = 0; i < d->count; i++) {
        if (tune_run_series(d->runs[i], metric))
            return;
        for (int k = 0; k < d->runs[i]->series_count; k++) {
            size_t n = strlen(names);
            if (!strstr(names, d->runs[i]->series[k].name))
                snprintf(names + n, sizeof names - n, "%s%s", n ? ", " : "", d->runs[i]->series[k].name);
        }
    }
    if (!tune_flags_given(&my.tune, "metric") && !strncmp(metric, "eval_", 5))
        return;
    tune_error_set_kind(TUNE_ERROR_USAGE, "no run has the metric \"%s\"; there are: %s", metric, *names ? names : "none");
    tune_program_fail();
}

/* Append the curves of one metric, of the runs that have it in this unit, to the last plot. */
static void add_curves(struct drawing *d, const char *metric, const char *unit, bool shared)
{
    struct tune_plot *p = &d->plot[d->plots - 1];
    for (int i = 0; i < d->count; i++) {
        const struct tune_run_series *s = tune_run_series(d->runs[i], metric);
        char text[TUNE_PATH_MAX + 64];
        if (!s || strcmp(runs_unit(d->runs[i], metric), unit))
            continue;
        snprintf(text, sizeof text, "%s%s%s", runs_label(d->runs, d->count, i), shared ? " " : "", shared ? metric : "");
        d->curve[d->curves++] = (struct tune_curve){
            .label = GET(strdup(text)),
            .x = GET(tune_run_axis(d->runs[i], s, my.x)),
            .y = s->value,
            .count = s->count,
            .color = i,
            .dotted = !strncmp(metric, "eval_", 5) && s->count <= 200,
        };
        p->count++;
    }
}

/* The units of a metric in these runs, at most `most`. Losses per token and per pair are two plots. */
static int find_units(const struct drawing *d, const char *metric, const char *other, const char **units, int most)
{
    int n = 0;
    for (int i = 0; i < d->count; i++) {
        bool has = tune_run_series(d->runs[i], metric) || (other && tune_run_series(d->runs[i], other));
        const char *unit = runs_unit(d->runs[i], metric);
        if (!has || tune_name_find(units, n, unit) >= 0)
            continue;
        if (n == most) {
            tune_error_usage("--metric %s: these runs have it in more than %d units; plot fewer runs at a time", metric, most);
            tune_program_fail();
        }
        units[n++] = unit;
    }
    return n;
}

/* Make a plot for each metric and unit. */
static void make_plots(struct drawing *d)
{
    bool done[MOST] = {false};
    for (int m = 0; m < d->metric_count; m++) {
        char other[64], title[128];
        const char *units[UNITS];
        int with = -1; /* draw eval_loss in the plot of loss */
        snprintf(other, sizeof other, "eval_%s", d->metrics[m]);
        for (int k = 0; k < d->metric_count; k++)
            if (!done[k] && (!strcmp(d->metrics[k], other) ||
                             (!strncmp(d->metrics[m], "eval_", 5) && !strcmp(d->metrics[m] + 5, d->metrics[k]))))
                with = k;
        if (done[m])
            continue;
        bool shared = with >= 0;
        check_metric(d, d->metrics[m]);
        if (shared)
            check_metric(d, d->metrics[with]);
        snprintf(title, sizeof title, "%s%s%s", d->metrics[m], shared ? " and " : "", shared ? d->metrics[with] : "");
        int n = find_units(d, d->metrics[m], shared ? d->metrics[with] : NULL, units, UNITS);
        for (int u = 0; u < n; u++) {
            d->plot[d->plots++] = (struct tune_plot){
                .title = GET(strdup(title)), .x_title = !strcmp(my.x, "time") ? "seconds" : my.x, .y_title = units[u],
                .curves = d->curve + d->curves, .smooth = my.smooth, .logarithmic = my.logarithmic,
            };
            add_curves(d, d->metrics[m], units[u], shared);
            if (shared)
                add_curves(d, d->metrics[with], units[u], shared);
        }
        done[m] = done[shared ? with : m] = true;
    }
}

static int draw_svg(const void *drawing, FILE *out)
{
    const struct drawing *d = drawing;
    return tune_plot_svg(d->plot, d->plots, out);
}

void runs_plot(struct tune_run **runs, int count)
{
    struct drawing d = {.runs = runs, .count = count};
    struct tune_terminal how = drawing_terminal(my.width, my.height, my.ascii, my.color);
    if (count == 0) {
        tune_error_set("no runs in runs/ to plot; name run folders");
        tune_program_fail();
    }
    read_metrics(&d);
    d.curve = GET(calloc((size_t)count * MOST, sizeof *d.curve));
    make_plots(&d);
    for (int i = 0; i < d.plots && !drawing_is_stdout(my.svg); i++) {
        if (i > 0)
            putchar('\n');
        MUST(tune_plot_terminal(&d.plot[i], &how, stdout));
    }
    if (my.svg)
        MUST(drawing_write(my.svg, draw_svg, &d));
    for (int i = 0; i < count; i++)
        if (runs[i]->state == TUNE_RUN_BROKEN)
            runs_put_reason(stderr, runs, count, i);
    for (int i = 0; i < d.plots; i++)
        free((char *)(uintptr_t)d.plot[i].title);
    for (int i = 0; i < d.curves; i++) {
        free((char *)(uintptr_t)d.curve[i].label);
        free((double *)(uintptr_t)d.curve[i].x);
    }
    free(d.curve);
}
