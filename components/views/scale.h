/* scale.h - what both ways of drawing share: the ranges, where ticks stand and how they are spelled, smoothing. For the files
 * of this folder. */
#ifndef TUNE_VIEWS_SCALE_H
#define TUNE_VIEWS_SCALE_H

#include "views/plot.h"

/* One axis: values low..high onto 0..1; ticks at round values within. */
struct tune_scale {
    double low, high;
    bool logarithmic;
    int ticks;
    double tick[16];
    double unit;         /* what labels are divided by */
    const char *suffix;  /* "k", "M", "e-5", ... */
    char exponent[8];
    int decimals;
};

/* tune_scale_place - value's place on the axis, 0..1 for what lies on it.
 * tune_scale_label - tick i's text. tune_scale_ticks - choose at most `most` ticks, with their spelling. */
double tune_scale_place(const struct tune_scale *s, double value);
const char *tune_scale_label(const struct tune_scale *s, int i, char text[32]);
void tune_scale_ticks(struct tune_scale *s, int most);

/* tune_plot_scales - both axes over all points that can be drawn. -1: there are none. */
int tune_plot_scales(const struct tune_plot *plot, struct tune_scale *x, struct tune_scale *y);

/* tune_plot_drawn - the point can be drawn. */
bool tune_plot_drawn(const struct tune_plot *plot, double x, double y);

/* tune_plot_smooth - the curve's y smoothed into *smooth [count] (malloc'd), or NULL there where it is drawn as it is. 0 or -1. */
int tune_plot_smooth(const struct tune_plot *plot, const struct tune_curve *c, double **smooth);

/* tune_width - columns that UTF-8 text takes, one each character. */
int tune_width(const char *text);

#endif
