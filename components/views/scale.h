/* scale.h - what both ways of drawing share: the ranges, where ticks stand and how they are
 * spelled, smoothing. For the files of this folder. */
#ifndef TUNE_VIEWS_SCALE_H
#define TUNE_VIEWS_SCALE_H

#include "views/plot.h"

enum { TUNE_TICKS = 64 };

/* One axis: values low..high onto 0..1; ticks at round values within, at the values themselves, or
 * at categories 0, 1, .. */
struct tune_scale {
    double low, high;
    bool logarithmic;
    int base;            /* where logarithmic: ticks at powers of 2, or (any other) of 10 */
    /* of categories, in place of numbers; they may hold anything: to be escaped */
    const char *const *names;
    int ticks;
    double tick[TUNE_TICKS];
    double unit;         /* what labels are divided by; 0: each is spelled by itself */
    const char *suffix;  /* "k", "M", ...; NULL: the exponent */
    char exponent[8];
    int decimals;
};

/* tune_scale_place - value's place on the axis, 0..1 for what lies on it.
 * tune_scale_label - tick i's text. tune_scale_ticks - choose at most `most` ticks, with their
 * spelling. */
double tune_scale_place(const struct tune_scale *s, double value);
const char *tune_scale_label(const struct tune_scale *s, int i, char text[32]);
void tune_scale_ticks(struct tune_scale *s, int most);

/* tune_scale_over - an axis over the finite values, with a share of margin on either side. base: as
 * in struct tune_plot. false: there is no value, and the axis ends at 1.
 * tune_scale_names - an axis over count categories.
 * tune_scale_at_levels - ticks at these values instead, if they can be told apart on an axis that
 * has room for `most` labels.
 * tune_scale_spell - the unit and decimals that tell values apart by step. tune_scale_text - a
 * value so. */
bool tune_scale_over(struct tune_scale *s, const double *values, int64_t count, int base,
                     double margin);
void tune_scale_names(struct tune_scale *s, const char *const *names, int count);
bool tune_scale_at_levels(struct tune_scale *s, const double *levels, int count, int most);
void tune_scale_spell(struct tune_scale *s, double step);
const char *tune_scale_text(const struct tune_scale *s, double value, char text[32]);

/* tune_levels - adds to the n levels the different values among these that can be drawn; levels
 * ascend. Their number, or -1 where there are more than TUNE_TICKS (and then ever -1).
 * tune_level_text - one by itself: "512", "0.0003". */
int tune_levels(const double *values, int64_t count, double level[TUNE_TICKS], int n);
const char *tune_level_text(double value, char text[32]);

/* tune_drawable - a number that an axis can have: finite, and so is the extent of the axis. */
bool tune_drawable(double value);

/* tune_plot_scales - both axes over all points that can be drawn. -1: there are none. */
int tune_plot_scales(const struct tune_plot *plot, struct tune_scale *x, struct tune_scale *y);

/* tune_plot_x_ticks - at most `most` (categories: all); of measured points alone, where those were
 * measured. */
void tune_plot_x_ticks(const struct tune_plot *plot, struct tune_scale *x, int most);

/* tune_plot_spread - the curve has a spread at point i, which then is *low..*high: what the axis
 * can hold of it. */
bool tune_plot_spread(const struct tune_plot *plot, const struct tune_curve *c, int64_t i,
                      double *low, double *high);

/* tune_plot_aside - how far the curve's points stand from their category, where others have points
 * there too. */
double tune_plot_aside(const struct tune_plot *plot, const struct tune_curve *c);

/* tune_plot_crowded - measured points are too many to stand one by one: drawn, and smoothed, as a
 * curve of noise is. */
bool tune_plot_crowded(const struct tune_plot *plot, const struct tune_curve *c);

/* tune_plot_drawn - the point can be drawn. */
bool tune_plot_drawn(const struct tune_plot *plot, double x, double y);

/* tune_plot_smooth - the curve's y smoothed into *smooth [count] (malloc'd), or NULL there where it
 * is drawn as it is. 0 or -1. */
int tune_plot_smooth(const struct tune_plot *plot, const struct tune_curve *c, double **smooth);

#endif
