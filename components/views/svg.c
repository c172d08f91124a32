/* svg.c - plots as one SVG document: plain elements and a style sheet, nothing that has to be fetched or run.
 *
 * Colours stand in classes, for light first and for dark in a media query, which programs that
 * know none leave out. A curve of more points than the picture has columns is drawn by the
 * lowest and the highest of each column, which looks the same. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/json.h"
#include "core/try.h"
#include "views/scale.h"

/* Pixels. */
enum { WIDTH = 960, PANEL = 440, LEFT = 76, RIGHT = 24, TITLE = 40, LEGEND = 22, BOTTOM = 52, COLORS = 8 };

static const char *const light[COLORS] = {"#1c6fd6", "#d9560b", "#2a8a3e", "#9a36ac", "#d02f3f", "#0b7f8c", "#8a6100", "#5b57c9"};
static const char *const dark[COLORS] = {"#6cb0ff", "#ff9a4d", "#6fd080", "#e08cf0", "#ff7f86", "#4fd0dc", "#e0b54a", "#a9a5ff"};

struct panel {
    const struct tune_plot *plot;
    FILE *out;
    struct tune_scale x, y;
    double top, left, width, height; /* of the area */
};

/* Text between tags; what XML does not allow becomes a question mark. */
static void put_text(FILE *out, const char *text)
{
    size_t bad = strlen(text);
    while (*text) {
        bool valid = tune_utf8_valid(text, strlen(text), &bad);
        for (size_t n = valid ? strlen(text) : bad; n > 0; n--, text++) {
            unsigned char c = (unsigned char)*text;
            if (c == '<' || c == '>' || c == '&' || c == '"')
                fprintf(out, "&#%d;", c);
            else
                fputc(c < 32 || c == 127 ? '?' : c, out);
        }
        if (!valid) {
            fputc('?', out);
            text++;
        }
    }
}

static void put_style(FILE *out)
{
    static const char *const rules[2][5] = {{"#ffffff", "#22272e", "#e3e6ea", "#59636e", "0.36"},
                                            {"#14171b", "#e6e9ed", "#2c323a", "#9aa4af", "0.42"}};
    fputs("<style>\ntext{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:13px}\n"
          ".title{font-size:16px;font-weight:600}\n.curve{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
          ".raw{stroke-width:1}\n.dotted{stroke-width:1.5;stroke-dasharray:5 4}\n", out);
    for (int d = 0; d < 2; d++) {
        if (d == 1)
            fputs("@media (prefers-color-scheme:dark){\n", out);
        fprintf(out, ".paper{fill:%s}\n.ink{fill:%s}\n.grid{stroke:%s;stroke-width:1}\n.note{fill:%s}\n.raw{stroke-opacity:%s}\n",
                rules[d][0], rules[d][1], rules[d][2], rules[d][3], rules[d][4]);
        for (int i = 0; i < COLORS; i++)
            fprintf(out, ".c%d{stroke:%s}.f%d{fill:%s}\n", i, (d ? dark : light)[i], i, (d ? dark : light)[i]);
    }
    fputs("}\n</style>\n", out);
}

static double x_of(const struct panel *p, double value)
{
    return p->left + p->width * tune_scale_place(&p->x, value);
}

static double y_of(const struct panel *p, double value)
{
    return p->top + p->height * (1 - tune_scale_place(&p->y, value));
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
        fprintf(p->out, "<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>"
                "<text class=\"note\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n",
                x, p->top, x, bottom + 5, x, bottom + 20, tune_scale_label(&p->x, i, text));
    }
    fprintf(p->out, "<text class=\"note\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">", p->left + p->width / 2, bottom + 40);
    put_text(p->out, p->plot->x_title);
    fputs("</text>\n", p->out);
}

/* One column's lowest and highest point, in the order they stand. */
struct column {
    int64_t low, high;
    int x;
};

static void put_point(const struct panel *p, const double *x, const double *y, int64_t i, bool first)
{
    fprintf(p->out, "%s%.1f %.2f", first ? "M" : "L", x_of(p, x[i]), y_of(p, y[i]));
}

static void put_column(const struct panel *p, const double *x, const double *y, const struct column *c, bool first)
{
    int64_t one = c->low < c->high ? c->low : c->high, other = c->low < c->high ? c->high : c->low;
    put_point(p, x, y, one, first);
    if (other != one)
        put_point(p, x, y, other, false);
}

static void put_path(const struct panel *p, const struct tune_curve *c, const double *y, const char *class_name)
{
    struct column column = {.x = -1};
    bool dense = c->count > 2 * (int64_t)p->width, first = true;
    fprintf(p->out, "<path class=\"%s c%d\" d=\"", class_name, c->color % COLORS);
    for (int64_t i = 0; i < c->count; i++) {
        if (!tune_plot_drawn(p->plot, c->x[i], y[i]))
            continue;
        int x = (int)x_of(p, c->x[i]);
        if (!dense) {
            put_point(p, c->x, y, i, first);
            first = false;
        } else if (x != column.x) {
            if (column.x >= 0) {
                put_column(p, c->x, y, &column, first);
                first = false;
            }
            column = (struct column){i, i, x};
        } else {
            column.low = y[i] < y[column.low] ? i : column.low;
            column.high = y[i] > y[column.high] ? i : column.high;
        }
    }
    if (dense && column.x >= 0)
        put_column(p, c->x, y, &column, first);
    fputs("\"><title>", p->out);
    put_text(p->out, c->label);
    fputs("</title></path>\n", p->out);
}

static void put_dots(const struct panel *p, const struct tune_curve *c)
{
    for (int64_t i = 0; i < c->count; i++)
        if (tune_plot_drawn(p->plot, c->x[i], c->y[i]))
            fprintf(p->out, "<circle class=\"f%d\" cx=\"%.1f\" cy=\"%.2f\" r=\"3\"><title>%.6g at %.6g</title></circle>\n",
                    c->color % COLORS, x_of(p, c->x[i]), y_of(p, c->y[i]), c->y[i], c->x[i]);
}

/* The noise of all curves lies below every smooth one. */
static int put_curves(const struct panel *p)
{
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < p->plot->count; k++) {
            const struct tune_curve *c = &p->plot->curves[k];
            double *smooth;
            TRY(tune_plot_smooth(p->plot, c, &smooth));
            if (pass == 0 && smooth)
                put_path(p, c, c->y, "curve raw");
            if (pass == 1)
                put_path(p, c, smooth ? smooth : c->y, c->dotted ? "curve dotted" : "curve");
            if (pass == 1 && (c->dotted || c->count == 1))
                put_dots(p, c);
            free(smooth);
        }
    return 0;
}

/* Pixels of a legend's entry, near enough: letters of 13 pixels are some 7 wide. */
static double entry_width(const struct tune_curve *c)
{
    return 28 + 7.4 * (tune_width(c->label) + 8) + 20;
}

/* Rows that the legend takes; drawn from top on, or only counted where out is NULL. */
static int legend(FILE *out, const struct tune_plot *plot, double top)
{
    double x = LEFT;
    int rows = 1;
    for (int k = 0; k < plot->count; k++) {
        const struct tune_curve *c = &plot->curves[k];
        if (x > LEFT && x + entry_width(c) > WIDTH - RIGHT) {
            rows++;
            x = LEFT;
        }
        double y = top + LEGEND * (rows - 1) + 10;
        if (out) {
            fprintf(out, "<line class=\"curve%s c%d\" x1=\"%.0f\" y1=\"%.0f\" x2=\"%.0f\" y2=\"%.0f\"/>",
                    c->dotted ? " dotted" : "", c->color % COLORS, x, y, x + 20, y);
            fprintf(out, "<text class=\"ink\" x=\"%.0f\" y=\"%.1f\">", x + 27, y + 4.5);
            put_text(out, c->label);
            if (c->count > 0)
                fprintf(out, " <tspan class=\"note\">%.5g</tspan>", c->y[c->count - 1]);
            fputs("</text>\n", out);
        }
        x += entry_width(c);
    }
    return rows;
}

static double panel_height(const struct tune_plot *plot)
{
    return PANEL + LEGEND * (legend(NULL, plot, 0) - 1);
}

static int put_panel(FILE *out, const struct tune_plot *plot, double top)
{
    double height = panel_height(plot);
    int rows = legend(NULL, plot, 0);
    struct panel p = {.plot = plot, .out = out, .left = LEFT, .width = WIDTH - LEFT - RIGHT};
    p.top = top + TITLE + LEGEND * rows + 8;
    p.height = top + height - BOTTOM - p.top;
    TRY(tune_plot_scales(plot, &p.x, &p.y));
    tune_scale_ticks(&p.x, 10);
    tune_scale_ticks(&p.y, 8);
    fprintf(out, "<text class=\"ink title\" x=\"%d\" y=\"%.0f\">", LEFT, top + 28);
    put_text(out, plot->title);
    if (*plot->y_title) {
        fputs("<tspan class=\"note\" font-weight=\"400\">, ", out);
        put_text(out, plot->y_title);
        fputs("</tspan>", out);
    }
    fputs("</text>\n", out);
    legend(out, plot, top + TITLE);
    put_axes(&p);
    return put_curves(&p);
}

int tune_plot_svg(const struct tune_plot *plots, int count, FILE *out)
{
    double height = 0, top = 0;
    for (int i = 0; i < count; i++)
        height += panel_height(&plots[i]);
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\" viewBox=\"0 0 %d %.0f\" role=\"img\">\n",
            WIDTH, height, WIDTH, height);
    put_style(out);
    fprintf(out, "<rect class=\"paper\" width=\"%d\" height=\"%.0f\"/>\n", WIDTH, height);
    for (int i = 0; i < count; i++) {
        TRY(put_panel(out, &plots[i], top));
        top += panel_height(&plots[i]);
    }
    fputs("</svg>\n", out);
    return 0;
}
