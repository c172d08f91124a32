/* plot_svg.c - curves as one SVG document. If a curve has more points than the picture has columns,
 * only the lowest and highest point of each column are drawn. It looks the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "views/scale.h"
#include "views/svg.h"

/* Sizes in pixels: height of the area at most, margins, a row of the legend, a facet's name, and
 * the least width of a panel. FEW: a curve with at most so many points gets a bar for each
 * spread. */
enum { AREA = 318, LEFT = 76, RIGHT = 24, LEGEND = 22, BOTTOM = 52, NAMED = 26, NARROWEST = 300, FEW = 60 };

struct panel {
    const struct tune_plot *plot;
    FILE *out;
    double side;     /* left end of the panel */
    double x_labels; /* height of the labels below */
    struct tune_scale x, y;
    double top, left, width, height; /* height of the area */
};

static double x_of(const struct panel *p, double value)
{
    return p->left + p->width * tune_scale_position(&p->x, value);
}

static double y_of(const struct panel *p, double value)
{
    return p->top + p->height * (1 - tune_scale_position(&p->y, value));
}

static void put_axes(const struct panel *p)
{
    char text[32];
    double bottom = p->top + p->height;
    for (int i = 0; i < p->y.ticks; i++) {
        double y = y_of(p, p->y.tick[i]);
        fprintf(p->out, "<line class=\"grid\" x1=\"%.0f\" y1=\"%.1f\" x2=\"%.0f\" y2=\"%.1f\"/>"
                "<text class=\"note\" x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                p->left, y, p->left + p->width, y, p->left - 8, y + 4.5, tune_scale_label(&p->y, i, text));
    }
    for (int i = 0; i < p->x.ticks; i++) {
        double x = x_of(p, p->x.tick[i]);
        fprintf(p->out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", x, p->top, x, bottom + 5);
        bool turned = p->x_labels > 0;
        tune_svg_below(p->out, x, bottom + 20, turned, turned ? x - p->side : p->width / p->x.ticks, tune_scale_label(&p->x, i, text));
    }
    tune_svg_label(p->out, "note", p->left + p->width / 2, bottom + 40 + p->x_labels, "middle", 0, p->width, p->plot->x_title);
}

/* The lowest and highest point of one column, in their order along x. */
struct column {
    int64_t low, high;
    int x;
};

static void put_point(const struct panel *p, const double *x, const double *y, int64_t i, bool first)
{
    fprintf(p->out, "%s%.1f %.2f", first ? "M" : "L", x_of(p, x[i]), y_of(p, y[i]));
}

/* Its line is vertical, which takes few letters. */
static void put_column(const struct panel *p, const double *y, const struct column *c, bool first)
{
    int64_t one = c->low < c->high ? c->low : c->high, other = c->low < c->high ? c->high : c->low;
    fprintf(p->out, "%s%d %.1f", first ? "M" : "L", c->x, y_of(p, y[one]));
    if (other != one)
        fprintf(p->out, "V%.1f", y_of(p, y[other]));
}

/* Say which curve an element belongs to, for pages that show or hide curves. */
static void put_curve_data(const struct panel *p, const struct tune_curve *c)
{
    fprintf(p->out, " data-curve=\"%d\" data-label=\"", (int)(c - p->plot->curves));
    tune_svg_text(p->out, c->label);
    fputc('"', p->out);
}

/* class_name: of the path. bare: without the curve's colour. */
static void put_path(const struct panel *p, const struct tune_curve *c, const double *y, const char *class_name, bool bare)
{
    struct column column = {.x = -1};
    bool dense = c->count > 2 * (int64_t)p->width, first = true;
    fprintf(p->out, bare ? "<path class=\"%s\"" : "<path class=\"%s c%d\"", class_name, c->color % TUNE_SVG_COLORS);
    put_curve_data(p, c);
    fputs(" d=\"", p->out);
    for (int64_t i = 0; i < c->count; i++) {
        if (!tune_plot_drawn(p->plot, c->x[i], y[i]))
            continue;
        int x = (int)x_of(p, c->x[i]);
        if (!dense) {
            put_point(p, c->x, y, i, first);
            first = false;
        } else if (x != column.x) {
            if (column.x >= 0) {
                put_column(p, y, &column, first);
                first = false;
            }
            column = (struct column){i, i, x};
        } else {
            column.low = y[i] < y[column.low] ? i : column.low;
            column.high = y[i] > y[column.high] ? i : column.high;
        }
    }
    if (dense && column.x >= 0)
        put_column(p, y, &column, first);
    fputs("\"><title>", p->out);
    tune_svg_text(p->out, c->label);
    fputs("</title></path>\n", p->out);
}

/* Begin a mark at a place: a circle, or the hollow diamond of an expected value. */
static const char *begin_mark(FILE *out, const struct tune_curve *c, double x, double y, const char *radius)
{
    if (c->band)
        fprintf(out, "<path class=\"curve c%d\" d=\"M%.1f %.2fl7 -7 7 7-7 7z\"", c->color % TUNE_SVG_COLORS, x - 7, y);
    else
        fprintf(out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.2f\" r=\"%s\"", c->color % TUNE_SVG_COLORS, x, y, radius);
    return c->band ? "path" : "circle";
}

static void put_dots(const struct panel *p, const struct tune_curve *c)
{
    double low, high;
    for (int64_t i = 0; i < c->count; i++) {
        if (!tune_plot_drawn(p->plot, c->x[i], c->y[i]))
            continue;
        const char *mark = begin_mark(p->out, c, x_of(p, c->x[i] + tune_plot_aside(p->plot, c)), y_of(p, c->y[i]), c->marked ? "4" : "3");
        if (c->apart && c->count > TUNE_PLOT_MARKS)
            fputs(" fill-opacity=\"0.4\"", p->out);
        put_curve_data(p, c);
        if (c->rows)
            fprintf(p->out, " data-row=\"%lld\"", (long long)c->rows[i]);
        fprintf(p->out, "><title>%.6g at ", c->y[i]);
        if (p->plot->x_names)
            tune_svg_text(p->out, p->plot->x_names[(int)c->x[i]]);
        else
            fprintf(p->out, "%.6g", c->x[i]);
        if (tune_plot_spread(p->plot, c, i, &low, &high))
            fprintf(p->out, ", %.6g to %.6g", low, high);
        if (tune_plot_ringed(p->plot, c, i)) {
            fputs(", ", p->out);
            tune_svg_text(p->out, p->plot->front);
        }
        fprintf(p->out, "</title></%s>\n", mark);
    }
}

static void put_ring(FILE *out, double x, double y)
{
    fprintf(out, "<circle class=\"mark\" cx=\"%.1f\" cy=\"%.2f\" r=\"6.5\" pointer-events=\"none\"/>\n", x, y);
}

static void put_rings(const struct panel *p)
{
    for (int k = 0; k < p->plot->count; k++) {
        const struct tune_curve *c = &p->plot->curves[k];
        for (int64_t i = 0; i < c->count; i++)
            if (tune_plot_ringed(p->plot, c, i) && tune_plot_drawn(p->plot, c->x[i], c->y[i]))
                put_ring(p->out, x_of(p, c->x[i] + tune_plot_aside(p->plot, c)), y_of(p, c->y[i]));
    }
}

/* Draw the spread: bars with feet for few points, otherwise an area that is interrupted where there
 * is no spread. */
static void put_bars(const struct panel *p, const struct tune_curve *c)
{
    double low, high;
    for (int64_t i = 0; i < c->count; i++) {
        if (!tune_plot_drawn(p->plot, c->x[i], c->y[i]) || !tune_plot_spread(p->plot, c, i, &low, &high))
            continue;
        double x = x_of(p, c->x[i] + tune_plot_aside(p->plot, c)), y = y_of(p, low), top = y_of(p, high);
        fprintf(p->out, "<path class=\"bar c%d\" d=\"M%.1f %.2fh8m-4 0V%.2fm-4 0h8\"/>\n", c->color % TUNE_SVG_COLORS,
                x - 4, y, top);
    }
}

/* The lowest and highest value of the spreads of points [from, to). */
static void widest(const struct tune_plot *plot, const struct tune_curve *c, int64_t from, int64_t to, double *low, double *high)
{
    double a, b;
    *low = INFINITY, *high = -INFINITY;
    for (int64_t i = from; i < to; i++)
        if (tune_plot_spread(plot, c, i, &a, &b))
            *low = fmin(*low, a), *high = fmax(*high, b);
}

static void put_band(const struct panel *p, const struct tune_curve *c)
{
    double low, high;
    for (int64_t from = 0, to; from < c->count; from = to + 1) {
        for (to = from; to < c->count && tune_plot_drawn(p->plot, c->x[to], c->y[to]) &&
                        tune_plot_spread(p->plot, c, to, &low, &high); to++)
            ;
        if (to == from)
            continue;
        int64_t each = 1 + (to - from) / (int64_t)p->width;
        fprintf(p->out, "<path class=\"band f%d\" d=\"", c->color % TUNE_SVG_COLORS);
        for (int64_t i = from; i < to; i += each) {
            widest(p->plot, c, i, i + each < to ? i + each : to, &low, &high);
            fprintf(p->out, "%c%.1f %.2f", i > from ? 'L' : 'M', x_of(p, c->x[i]), y_of(p, high));
        }
        for (int64_t i = from + (to - 1 - from) / each * each; i >= from; i -= each) {
            widest(p->plot, c, i, i + each < to ? i + each : to, &low, &high);
            fprintf(p->out, "L%.1f %.2f", x_of(p, c->x[i]), y_of(p, low));
        }
        fputs("Z\"/>\n", p->out);
    }
}

/* Draw spreads first, then the noise of all curves, then the smooth curves on top. Over many points,
 * the line of a band is last, with a rim. */
static int put_curves(const struct panel *p)
{
    for (int pass = 0; pass < 3; pass++)
        for (int k = 0; k < p->plot->count; k++) {
            const struct tune_curve *c = &p->plot->curves[k];
            double *smooth;
            if (pass == 0 && c->low) {
                (!p->plot->x_names && !c->apart && (c->band || c->count > FEW) ? put_band : put_bars)(p, c);
                continue;
            }
            TRY(tune_plot_smooth(p->plot, c, &smooth));
            if (pass == 1 && smooth)
                put_path(p, c, c->y, "curve raw", false);
            if (pass == 2 && !p->plot->x_names && !c->apart && !tune_plot_above(p->plot, c))
                put_path(p, c, smooth ? smooth : c->y, c->dotted ? "curve dotted" : "curve", false);
            if (pass == 2 && (c->dotted || tune_plot_pointed(p->plot, c) || c->count == 1))
                put_dots(p, c);
            free(smooth);
        }
    for (int k = 0; k < p->plot->count; k++)
        if (tune_plot_above(p->plot, &p->plot->curves[k])) {
            put_path(p, &p->plot->curves[k], p->plot->curves[k].y, "curve halo", true);
            put_path(p, &p->plot->curves[k], p->plot->curves[k].y, "curve", false);
        }
    put_rings(p);
    return 0;
}

/* The legend while it grows: the place of its next entry. */
struct legend {
    FILE *out; /* NULL: only count its rows */
    double x, y, width; /* width: of the document */
    int rows;
};

/* Go on by an entry of so many pixels. Returns its x; l->y is its middle. */
static double next_entry(struct legend *l, double width)
{
    if (l->rows == 0 || l->x + width > l->width - RIGHT) {
        l->y += l->rows++ > 0 ? LEGEND : 10;
        l->x = LEFT;
    }
    l->x += width;
    return l->x - width;
}

static void put_entry(struct legend *l, const struct tune_plot *plot, const struct tune_curve *c)
{
    bool last = !c->marked && !c->band && !plot->x_names; /* the last value follows the curve's name */
    double x = next_entry(l, 48 + tune_svg_width(c->label) + (last ? tune_svg_width("12345678") : 0));
    if (!l->out)
        return;
    if (!plot->x_names && !c->apart)
        fprintf(l->out, "<line class=\"curve%s c%d\" x1=\"%.0f\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\"/>",
                c->dotted ? " dotted" : "", c->color % TUNE_SVG_COLORS, x, l->y, x + 20, l->y);
    if (tune_plot_pointed(plot, c))
        begin_mark(l->out, c, x + 10, l->y, "4"), fputs("/>", l->out);
    fprintf(l->out, "<text class=\"ink\" x=\"%.0f\" y=\"%.1f\">", x + 27, l->y + 4.5);
    tune_svg_text(l->out, c->label);
    if (c->count > 0 && last)
        fprintf(l->out, " <tspan class=\"note\">%.5g</tspan>", c->y[c->count - 1]);
    fputs("</text>\n", l->out);
}

static double document_width(const struct tune_plot *first)
{
    return first->svg_width > 0 ? first->svg_width : TUNE_SVG_WIDTH;
}

/* Plots that share a heading and a legend: facets, or one plot alone. */
struct figure {
    const struct tune_plot *plots;
    int count, across;        /* number of panels, and of those side by side */
    double width, area;       /* of a panel, and the height of its area */
    double named, x_labels;   /* height of a facet's name, and of the labels below */
};

/* True if an earlier facet has a curve of that name. */
static bool is_listed(const struct figure *f, int facet, const char *label)
{
    for (int i = 0; i < facet; i++)
        for (int k = 0; k < f->plots[i].count; k++)
            if (!strcmp(f->plots[i].curves[k].label, label))
                return true;
    return false;
}

/* Draw the legend from top on, and return its height; out NULL: only measure it. */
static double legend(FILE *out, const struct figure *f, double top)
{
    struct legend l = {.out = out, .y = top, .width = document_width(f->plots)};
    if (f->plots->no_legend)
        return LEGEND / 2;
    for (int i = 0; i < f->count; i++)
        for (int k = 0; k < f->plots[i].count; k++)
            if (*f->plots[i].curves[k].label && !is_listed(f, i, f->plots[i].curves[k].label))
                put_entry(&l, &f->plots[i], &f->plots[i].curves[k]);
    const char *front = f->plots[0].front;
    double x = front ? next_entry(&l, 48 + tune_svg_width(front)) : 0;
    if (front && out) {
        put_ring(out, x + 10, l.y);
        tune_svg_label(out, "ink", x + 27, l.y + 4.5, "start", 0, 0, front);
    }
    return LEGEND * l.rows + 8;
}

static double heading(FILE *out, const struct figure *f, double top)
{
    const struct tune_plot *p = f->plots;
    return tune_svg_heading(out, LEFT, top, document_width(p) - LEFT - RIGHT, p->title, p->y_title, p->note, NULL);
}

/* Make the next figure of these plots. */
static struct figure next_figure(const struct tune_plot *plots, int count)
{
    struct figure f = {.plots = plots, .count = 1, .named = plots->facet ? NAMED : 0};
    while (f.count < count && plots->facet && plots[f.count].facet && !strcmp(plots[f.count].title, plots->title))
        f.count++;
    f.across = tune_svg_across(f.count, document_width(plots), NARROWEST);
    f.width = document_width(plots) / f.across;
    f.area = fmin(AREA, 0.75 * (f.width - LEFT - RIGHT));
    for (int i = 0; i < f.count; i++) { /* names of categories that do not fit side by side are turned */
        double most = plots[i].x_names ? tune_svg_widest(plots[i].x_names, plots[i].x_count) : 0;
        if (most > (f.width - LEFT - RIGHT) / fmax(plots[i].x_count, 1) - 8)
            f.x_labels = fmax(f.x_labels, tune_svg_below_height(most));
    }
    return f;
}

static double panel_height(const struct figure *f)
{
    return f->named + f->area + BOTTOM + f->x_labels;
}

static double figure_height(const struct figure *f)
{
    return heading(NULL, f, 0) + legend(NULL, f, 0) + panel_height(f) * ((f->count + f->across - 1) / f->across);
}

/* Begin a panel: say how pixels map to values. */
static void begin_panel(const struct panel *p)
{
    fprintf(p->out, "<g class=\"plot\" data-left=\"%.1f\" data-top=\"%.1f\" data-width=\"%.1f\" data-height=\"%.1f\" data-x-min=\"%.17g\" "
            "data-x-max=\"%.17g\" data-y-min=\"%.17g\" data-y-max=\"%.17g\" data-log=\"%d\" data-x-title=\"",
            p->left, p->top, p->width, p->height, p->x.low, p->x.high, p->y.low, p->y.high, p->y.logarithmic);
    tune_svg_text(p->out, p->plot->x_title);
    fputs("\" data-y-title=\"", p->out);
    tune_svg_text(p->out, p->plot->y_title);
    fputs("\">\n", p->out);
}

static int put_panel(FILE *out, const struct figure *f, int i, double top)
{
    const struct tune_plot *plot = &f->plots[i];
    struct panel p = {.plot = plot, .out = out, .side = f->width * (i % f->across), .top = top + f->named,
                      .height = f->area, .x_labels = f->x_labels};
    p.left = p.side + LEFT;
    p.width = f->width - LEFT - RIGHT;
    TRY(tune_plot_scales(plot, &p.x, &p.y));
    tune_plot_x_ticks(plot, &p.x, (int)fmax(plot->svg_width > 0 ? 4 : 2, p.width / 86));
    tune_scale_ticks(&p.y, f->area > 250 ? 8 : 5);
    if (plot->facet)
        tune_svg_label(out, "ink", p.left, top + NAMED - 10, "start", 0, p.width, plot->facet);
    begin_panel(&p);
    put_axes(&p);
    TRY(put_curves(&p));
    fputs("</g>\n", out);
    return 0;
}

int tune_plot_svg(const struct tune_plot *plots, int count, FILE *out)
{
    double height = 0, top = 0;
    struct figure f;
    for (int i = 0; i < count; i += f.count) {
        f = next_figure(plots + i, count - i);
        height += figure_height(&f);
    }
    tune_svg_begin(out, count > 0 ? document_width(plots) : TUNE_SVG_WIDTH, height, false);
    for (int i = 0; i < count; i += f.count) {
        f = next_figure(plots + i, count - i);
        double panels = top + heading(out, &f, top);
        panels += legend(out, &f, panels);
        for (int k = 0; k < f.count; k++)
            TRY(put_panel(out, &f, k, panels + panel_height(&f) * (k / f.across)));
        top += figure_height(&f);
    }
    tune_svg_end(out);
    return 0;
}
