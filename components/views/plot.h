/* plot.h - line charts, in a terminal or as SVG. heat.h draws values over two dimensions,
 * parallel.h over more.
 *
 *     struct tune_curve c = {.label = "first", .x = steps, .y = losses, .count = n};
 *     struct tune_plot p = {.title = "loss", .x_title = "step", .y_title = "nats/token",
 *                           .curves = &c, .count = 1};
 *     struct tune_terminal how = {.width = 80, .height = 20, .unicode = true};
 *     tune_plot_terminal(&p, &how, stdout);
 *     tune_plot_svg(&p, 1, file);
 *
 * A noisy curve is drawn twice: as it is, faintly, and smoothed. Measured points with their spread:
 *
 *     struct tune_curve c = {.label = "512", .x = sizes, .y = means, .low = least, .high = most,
 *                            .count = 4, .marked = true};
 *     struct tune_plot p = {.title = "throughput", .x_title = "batch_size", .y_title = "tokens/s",
 *                           .curves = &c, .count = 1, .x_base = -1,
 *                           .note = "bars: lowest and highest of 3"}; */
#ifndef TUNE_PLOT_H
#define TUNE_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_PLOT_MARKS = 200 };

struct tune_curve {
    const char *label;   /* for the legend; "" for a single curve without legend */
    /* [count]; x ascending; points that are not finite or beyond 1e300 are left out */
    const double *x, *y;
    /* [count] spread around y, drawn as bars or a band; NULL or not finite: none */
    const double *low, *high;
    int64_t count;
    int color;           /* 0, 1, ...: curves that belong together share a color */
    bool dotted;         /* draw marked points and no line; never smoothed */
    /* draw marks and a line, for measured points; above TUNE_PLOT_MARKS points the line only,
     * smoothed like any other */
    bool marked;
};

struct tune_plot {
    const char *title, *x_title, *y_title; /* y_title: the unit; "": none */
    const struct tune_curve *curves;
    int count;
    double smooth;       /* points on each side to average; 0: no smoothing; below 0: automatic */
    bool logarithmic;    /* logarithmic y axis; values not above 0 are left out */
    int x_base;          /* 2, 10: logarithmic x axis with this base; -1: automatic; 0: linear */
    /* [x_count] names of categories x = 0, 1, ...; points are not joined; NULL: numbers */
    const char *const *x_names;
    int x_count;
    const char *note;    /* a line below the title; NULL: none */
};

struct tune_terminal {
    int width, height;   /* columns of the terminal; rows of the plot area */
    bool unicode;        /* draw with braille dots and lines; false: ASCII */
    bool color;          /* false: each curve has its own character */
    bool truecolor;      /* 24-bit colors (see COLORTERM); false: the nearest of 256 */
};

/* tune_plot_terminal - print title, plot area with axes, and legend. Each line ends in a newline
 * and has at most width - 1 columns. 0, or -1 with an error: no curve has a point, no memory. The
 * caller checks ferror(out). */
int tune_plot_terminal(const struct tune_plot *plot, const struct tune_terminal *how, FILE *out);

/* tune_plot_svg - write an SVG document with the plots below each other. Its colors follow the
 * viewer's light or dark mode. 0, or -1 with an error. */
int tune_plot_svg(const struct tune_plot *plots, int count, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
