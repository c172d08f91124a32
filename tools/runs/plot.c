/* plot.c - `runs plot`: curves in the terminal and as SVG. */
#include "../drawing.h"
#include "runs.h"
#include "views/run_plots.h"

static int draw_svg(const void *plots, FILE *out)
{
    const struct tune_run_plots *p = plots;
    return tune_plot_svg(p->plot, p->count, out);
}

void runs_plot(struct tune_run **runs, int count)
{
    struct tune_run_drawing d = {.metrics = my.metric, .asked = tune_flags_given(&my.tune, "metric"), .x = my.x, .smooth = my.smooth,
                                 .logarithmic = my.logarithmic, .unit = runs_unit};
    struct tune_terminal how = drawing_terminal(my.width, my.height, my.ascii, my.color);
    if (count == 0) {
        tune_error_set("no runs in runs/ to plot; name run folders");
        tune_program_fail();
    }
    struct tune_run_plots *p = GET(tune_run_plots_new(runs, count, &d));
    for (int i = 0; i < p->count && !drawing_is_stdout(my.svg); i++) {
        if (i > 0)
            putchar('\n');
        MUST(tune_plot_terminal(&p->plot[i], &how, stdout));
    }
    if (my.svg)
        MUST(drawing_write(my.svg, draw_svg, p));
    for (int i = 0; i < count; i++)
        if (runs[i]->state == TUNE_RUN_BROKEN)
            runs_put_reason(stderr, runs, count, i);
    tune_run_plots_free(p);
}
