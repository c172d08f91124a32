/* plot.h - curves with axes, in a terminal or as SVG: what is drawn is said once, how is the caller's choice.
 * Values over two dimensions are heat.h's, over more parallel.h's.
 *
 *     struct tune_curve c = {.label = "first", .x = steps, .y = losses, .count = n};
 *     struct tune_plot p = {.title = "loss", .x_title = "step", .y_title = "nats/token", .curves = &c, .count = 1};
 *     tune_plot_terminal(&p, &(struct tune_terminal){.width = 80, .height = 20, .unicode = true}, stdout);
 *     tune_plot_svg(&p, 1, file);
 *
 * A curve of noise is drawn twice: as it is, faintly, and smoothed. A few measured points with their spread:
 *
 *     struct tune_curve c = {.label = "512", .x = sizes, .y = means, .low = least, .high = most, .count = 4, .marked = true};
 *     struct tune_plot p = {.title = "throughput", .x_title = "batch_size", .y_title = "tokens/s", .curves = &c, .count = 1,
 *                           .x_base = -1, .note = "bars: lowest and highest of 3"};
 *
 * Knows nothing of runs. */
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
    const char *label;   /* in the legend; "" of a curve that is alone: there is none */
    const double *x, *y; /* [count]; x ascending; a point that is not finite, or beyond 1e300, is left out */
    /* [count] the spread about y, or NULL; not finite: none at that point. Bars where the points
     * are few, else a band */
    const double *low, *high;
    int64_t count;
    int color;           /* 0, 1, ...: curves of one colour belong together */
    bool dotted;         /* few points worth seeing one by one: marked, and never smoothed */
    /* likewise, with a drawn line: measured points, whose last one is no more than the others; of
     * more than TUNE_PLOT_MARKS the line alone, and smoothed as any other */
    bool marked;
};

struct tune_plot {
    const char *title, *x_title, *y_title; /* y_title: the unit; "": none */
    const struct tune_curve *curves;
    int count;
    /* points on either side that a smoothed value is an average of; 0: none, below 0: as many as
     * suit a curve, where it is noisy */
    double smooth;
    bool logarithmic;    /* the y axis; values not above 0 are left out */
    int x_base;          /* 2, 10: the x axis is logarithmic, with ticks at powers of that; -1: as suits the values; 0: linear */
    const char *const *x_names; /* the x axis has categories instead: [x_count] names for x = 0, 1, ..; points are not joined */
    int x_count;
    const char *note;    /* a line below the title; NULL: none */
};

struct tune_terminal {
    int width, height;   /* columns, and rows of the plot's area */
    bool unicode;        /* braille dots and drawn lines; else ASCII */
    bool color;          /* else each curve has a character of its own */
    bool truecolor;      /* shades in 24 bits (COLORTERM says so), not the nearest of 256 */
};

/* tune_plot_terminal - title, area with axes, legend, each line with a newline, none wider than width - 1. 0, or -1 with an
 * error: no curve has a point, no memory. What the stream says is the caller's to ask (ferror). */
int tune_plot_terminal(const struct tune_plot *plot, const struct tune_terminal *how, FILE *out);

/* tune_plot_svg - an SVG document with the plots one above the other; colours for light and dark follow the viewer's. */
int tune_plot_svg(const struct tune_plot *plots, int count, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
