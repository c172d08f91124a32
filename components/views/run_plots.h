/* run_plots.h - the curves of runs as plots: one for each metric and unit, as `runs plot` draws
 * them in a terminal and the studio as SVG.
 *
 *     struct tune_run_drawing d = {.metrics = "loss,eval_loss", .x = "step", .smooth = -1,
 *                                  .unit = unit};
 *     struct tune_run_plots *p = tune_run_plots_new(runs, count, &d);
 *     tune_plot_svg(p->plot, p->count, file);
 *     tune_run_plots_free(p); */
#ifndef TUNE_VIEWS_RUN_PLOTS_H
#define TUNE_VIEWS_RUN_PLOTS_H

#include "runs/run.h"
#include "views/plot.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_run_drawing {
    const char *metrics;     /* names with commas, at most 32; X and eval_X share a plot */
    bool asked;              /* an eval_ metric that no run has is an error, too */
    const char *x;           /* as of tune_run_axis; or a metric, whose values are then the x of
                              * the points of the same steps, sorted */
    double smooth;           /* as of tune_plot */
    bool logarithmic;
    /* the unit of a metric in a run; runs with different units get a plot for each unit */
    const char *(*unit)(const struct tune_run *r, const char *name);
    const int *colors;       /* [count] colours of the runs; NULL: 0, 1, .. */
    const double *range;     /* [2] lowest and highest x of the points to draw; NULL: all */
    int svg_width;           /* as of tune_plot */
    bool no_legend;
};

struct tune_run_plots {
    struct tune_plot *plot;  /* [count] */
    int count;
    struct tune_curve *curves;
    int curve_count;
};

/* tune_run_plots_new - make the plots. They borrow the runs' values. NULL with an error: too many
 * metrics or units, no run has a metric, or no memory.
 * tune_run_plots_free - free them; NULL is fine. */
struct tune_run_plots *tune_run_plots_new(struct tune_run *const *runs, int count,
                                          const struct tune_run_drawing *d);
void tune_run_plots_free(struct tune_run_plots *p);

#ifdef __cplusplus
}
#endif
#endif
