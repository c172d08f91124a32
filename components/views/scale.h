/* scale.h - ranges, ticks, labels and smoothing, for drawing in a terminal and as SVG. Private to
 * this folder. */
#ifndef TUNE_VIEWS_SCALE_H
#define TUNE_VIEWS_SCALE_H

#include "views/plot.h"

enum { TUNE_TICKS = 64 };

/* One axis: it maps low..high to 0..1. Ticks are at round values, at measured values, or at
 * categories 0, 1, .. */
struct tune_scale {
    double low, high;
    bool logarithmic;
    int base;            /* base of a logarithmic axis: ticks at powers of 2, or otherwise of 10 */
    /* names of categories, in place of numbers; untrusted text that must be escaped */
    const char *const *names;
    int ticks;
    double tick[TUNE_TICKS];
    double unit;         /* divisor of the labels; 0: each label has its own format */
    const char *suffix;  /* "k", "M", ...; NULL: written as an exponent */
    char exponent[8];
    int decimals;
};

/* tune_scale_position - the position of a value, 0..1 if it is on the axis.
 * tune_scale_label - the label of tick i.
 * tune_scale_ticks - choose at most `most` ticks and the format of their labels. */
double tune_scale_position(const struct tune_scale *s, double value);
const char *tune_scale_label(const struct tune_scale *s, int i, char text[32]);
void tune_scale_ticks(struct tune_scale *s, int most);

/* tune_scale_over - an axis over the finite values, with a share of margin on either side. base: as
 * in struct tune_plot. false: there is no value; the axis then ends at 1.
 * tune_scale_hold - let it also hold these two values, if it can; NULL: none.
 * tune_scale_names - an axis over count categories.
 * tune_scale_at_levels - put ticks at these values instead, if an axis with room for `most` labels
 * can show them apart.
 * tune_scale_to_string - choose unit and decimals that tell apart values that differ by step.
 * tune_scale_text - a value in that format. */
bool tune_scale_over(struct tune_scale *s, const double *values, int64_t count, int base,
                     double margin);
void tune_scale_hold(struct tune_scale *s, const double *values);
void tune_scale_names(struct tune_scale *s, const char *const *names, int count);
bool tune_scale_at_levels(struct tune_scale *s, const double *levels, int count, int most);
void tune_scale_to_string(struct tune_scale *s, double step);
const char *tune_scale_text(const struct tune_scale *s, double value, char text[32]);

/* tune_levels - add these values to n ascending levels, each once, if they can be drawn. Returns
 * the number of levels; -1 if there are more than TUNE_TICKS, or if n is -1.
 * tune_level_text - one level as text: "512", "0.0003". */
int tune_levels(const double *values, int64_t count, double level[TUNE_TICKS], int n);
const char *tune_level_text(double value, char text[32]);

/* tune_drawable - whether an axis can show this number: it and the axis's extent are finite. */
bool tune_drawable(double value);

/* tune_plot_scales - make both axes over all points that can be drawn. -1: there are none. */
int tune_plot_scales(const struct tune_plot *plot, struct tune_scale *x, struct tune_scale *y);

/* tune_plot_x_ticks - choose at most `most` ticks on the x axis; categories get all. With marked
 * points only, ticks are at their values. */
void tune_plot_x_ticks(const struct tune_plot *plot, struct tune_scale *x, int most);

/* tune_plot_spread - whether the curve has a spread at point i. *low..*high is the part of it that
 * fits on the axis. */
bool tune_plot_spread(const struct tune_plot *plot, const struct tune_curve *c, int64_t i,
                      double *low, double *high);

/* tune_plot_aside - the distance of the curve's points from their category's position, if other
 * curves have points there too. */
double tune_plot_aside(const struct tune_plot *plot, const struct tune_curve *c);

/* tune_plot_crowded - whether there are too many measured points to show one by one. They are then
 * drawn and smoothed like a noisy curve. */
bool tune_plot_crowded(const struct tune_plot *plot, const struct tune_curve *c);

/* tune_plot_pointed - whether each of its points is shown. */
bool tune_plot_pointed(const struct tune_plot *plot, const struct tune_curve *c);

/* tune_plot_above - whether the curve is a line above the points, because these are too many to see
 * it below. */
bool tune_plot_above(const struct tune_plot *plot, const struct tune_curve *c);

/* tune_plot_ringed - whether point i gets a ring. */
bool tune_plot_ringed(const struct tune_plot *plot, const struct tune_curve *c, int64_t i);

/* tune_plot_drawn - whether the point can be drawn. */
bool tune_plot_drawn(const struct tune_plot *plot, double x, double y);

/* tune_plot_smooth - write the smoothed y values to *smooth [count], which the caller frees; NULL:
 * the curve is drawn without smoothing. 0, or -1 with an error. */
int tune_plot_smooth(const struct tune_plot *plot, const struct tune_curve *c, double **smooth);

#endif
