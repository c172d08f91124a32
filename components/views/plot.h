/* plot.h - curves with axes, in a terminal or as SVG: what is drawn is said once, how is the caller's choice.
 *
 *     struct tune_curve c = {.label = "first", .x = steps, .y = losses, .count = n};
 *     struct tune_plot p = {.title = "loss", .x_title = "step", .y_title = "nats/token", .curves = &c, .count = 1};
 *     tune_plot_terminal(&p, &(struct tune_terminal){.width = 80, .height = 20, .unicode = true}, stdout);
 *     tune_plot_svg(&p, 1, file);
 *
 * A curve of noise is drawn twice: as it is, faintly, and smoothed. Knows nothing of runs. */
#ifndef TUNE_PLOT_H
#define TUNE_PLOT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_curve {
    const char *label;
    const double *x, *y; /* [count]; x ascending; a point that is not finite, or beyond 1e300, is left out */
    int64_t count;
    int color;           /* 0, 1, ...: curves of one colour belong together */
    bool dotted;         /* few points worth seeing one by one: marked, and never smoothed */
};

struct tune_plot {
    const char *title, *x_title, *y_title; /* y_title: the unit; "": none */
    const struct tune_curve *curves;
    int count;
    double smooth;       /* points on either side that a smoothed value is an average of; 0: none, below 0: as many as
                            suit a curve, where it is noisy */
    bool logarithmic;    /* the y axis; values not above 0 are left out */
};

struct tune_terminal {
    int width, height;   /* columns, and rows of the plot's area */
    bool unicode;        /* braille dots and drawn lines; else ASCII */
    bool color;          /* else each curve has a character of its own */
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
