/* plot.h - curves with axes, in a terminal or as SVG. A plot is described once and can be drawn
 * both ways. heat.h draws values over two dimensions, parallel.h over more.
 *
 *     struct tune_curve c = {.label = "first", .x = steps, .y = losses, .count = n};
 *     struct tune_plot p = {.title = "loss", .x_title = "step", .y_title = "nats/token",
 *                           .curves = &c, .count = 1};
 *     struct tune_terminal how = {.width = 80, .height = 20, .unicode = true};
 *     tune_plot_terminal(&p, &how, stdout);
 *     tune_plot_svg(&p, 1, file);
 *
 * A noisy curve is drawn twice: as it is, faintly, and smoothed. These are a few measured points
 * with their spread:
 *
 *     struct tune_curve c = {.label = "512", .x = sizes, .y = means, .low = least, .high = most,
 *                            .count = 4, .marked = true};
 *     struct tune_plot p = {.title = "throughput", .x_title = "batch_size", .y_title = "tokens/s",
 *                           .curves = &c, .count = 1, .x_base = -1,
 *                           .note = "bars: lowest, highest of 3"}; */
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
    const char *label;   /* name in the legend; "": no legend for a single curve */
    /* [count]; x ascending; a point that is not finite or above 1e300 is left out */
    const double *x, *y;
    /* [count] range of y, or NULL; not finite: none at that point. Few points get bars, many a
     * band. */
    const double *low, *high;
    int64_t count;
    int color;           /* 0, 1, ...; curves with the same number share a colour */
    bool dotted;         /* mark each point and never smooth */
    /* Mark each point and join them, without stress on the last one. Above TUNE_PLOT_MARKS points:
     * a line alone, smoothed as any other. */
    bool marked;
    /* Mark each point, however many, and join none. The order of x does not matter. */
    bool apart;
    /* A line through expected values, never smoothed, whose range is a band however few the points
     * are. With names of categories, a hollow mark and a bar at each. */
    bool band;
    const bool *front;   /* [count] points to draw a ring around; NULL: none */
    const int64_t *rows; /* [count] rows of a table, in SVG the data-row of the marks; NULL: none */
};

struct tune_plot {
    /* x_title: name and unit of the x axis: "memory, bytes"; y_title: the unit; "": none */
    const char *title, *x_title, *y_title;
    const struct tune_curve *curves;
    int count;
    /* points on either side to average for smoothing; 0: none; below 0: as suits a noisy curve */
    double smooth;
    bool logarithmic;    /* logarithmic y axis; values of 0 and below are left out */
    /* x axis: 2 or 10: logarithmic with ticks at its powers; -1: automatic; 0: linear */
    int x_base;
    /* names of categories for x = 0, 1, ...; points are not joined; NULL: numbers */
    const char *const *x_names;
    int x_count;
    const char *note;    /* below the title, folded between words; NULL: none */
    /* [2] two values that an axis holds, so that plots can be compared; NULL: none */
    const double *x_holds, *y_holds;
    /* The name of a facet: "dtype float32"; NULL: none. Facets one after the other with one title
     * are one figure. In SVG they stand side by side, under the first one's note, with one
     * legend. */
    const char *facet;
    const char *front;   /* the rings' name in the legend, such as "Pareto front"; NULL: no rings */
    int svg_width;       /* pixels of the SVG document, of the first plot; 0: 960 */
    bool no_legend;      /* SVG without a legend: the page that shows it has its own */
};

struct tune_terminal {
    int width, height;   /* columns in all; rows of the plot's area */
    bool unicode;        /* use braille and box characters; else ASCII */
    bool color;          /* use colours; else each curve has its own character */
    bool truecolor;      /* 24-bit colours; else the nearest of 256 */
};

/* tune_plot_terminal - draw title, area with axes, and legend. No line is wider than width - 1. -1
 * with an error: no curve has a point, or no memory. The caller checks ferror(stream). */
int tune_plot_terminal(const struct tune_plot *plot, const struct tune_terminal *how, FILE *out);

/* tune_plot_svg - write an SVG document with the figures one above the other. Its colours follow
 * the viewer's light or dark theme. Each panel is a g.plot. Its data-left, -top, -width and
 * -height are pixels. Its data-x-min, -x-max, -y-min, -y-max and -log say which values they stand
 * for; -x-title and -y-title are names. The lines of a curve have data-curve, its number, and
 * data-label. */
int tune_plot_svg(const struct tune_plot *plots, int count, FILE *out);

/* tune_plot_front - set front[i] if no other point beats point i: none is better in one direction
 * and at least as good in the other. Directions: 1: more is better, -1: less. Points that an axis
 * cannot show are not on the front. O(count log count). -1 with an error: no memory. */
int tune_plot_front(const double *x, const double *y, int64_t count, int x_best, int y_best,
                    bool *front);

#ifdef __cplusplus
}
#endif
#endif
