/* plot_terminal.c - curves in characters.
 *
 *     loss, nats/token                            title
 *     6.0 ┤⡀                                      one braille character is 2 x 4 dots, one of ASCII is one
 *         │⠘⢄
 *     4.0 ┤  ⠑⠢⠤⣀⣀
 *         └┬─────────┬──
 *          0         100  step
 *     ● first 4.1032 */
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "views/scale.h"
#include "views/text.h"

/* One character cell of the area: its dots (or 1) and their curve. Strong dots replace faint
 * ones. */
struct cell {
    unsigned char dots;
    signed char curve;
    bool strong, marked; /* a marked point, alone in its cell */
    bool thin;           /* in ASCII: part of a line between marked points */
    bool bar;            /* in ASCII: part of a spread */
    bool ringed;
};

enum { FEW = 60 /* a curve with at most so many points gets a bar for each spread */ };

struct canvas {
    const struct tune_plot *plot;
    const struct tune_terminal *how;
    struct tune_scale x, y;
    int width, height;   /* size in cells */
    int across, down;    /* dots in one cell */
    int labels;          /* columns left of the axis */
    struct cell *cells;
    bool above;          /* what is drawn replaces points */
};

/* Colours out of 256 that are readable on black and on white, and characters for use without
 * colours. */
static const int colors[] = {33, 208, 71, 170, 203, 37, 136, 99};
static const char marks[] = "*o+x#@%&";
enum { COLORS = sizeof colors / sizeof *colors, MARKS = sizeof marks - 1 };

static struct cell *cell_at(const struct canvas *c, int x, int y)
{
    if (x < 0 || y < 0 || x >= c->width * c->across || y >= c->height * c->down)
        return NULL;
    return &c->cells[y / c->down * c->width + x / c->across];
}

static void dot(struct canvas *c, int x, int y, int curve, bool strong)
{
    static const unsigned char bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    struct cell *cell = cell_at(c, x, y);
    if (cell && c->above && (cell->marked || cell->bar))
        *cell = (struct cell){0};
    if (!cell || cell->marked || cell->bar || (cell->dots && cell->strong && !strong))
        return;
    if (cell->dots && (cell->curve != curve || cell->strong != strong))
        cell->dots = 0;
    cell->dots |= c->down == 4 ? bits[y % 4][x % 2] : 1;
    cell->curve = (signed char)curve;
    cell->strong = strong;
    cell->thin = c->plot->curves[curve].band ? !strong : c->plot->curves[curve].marked && !tune_plot_crowded(c->plot, &c->plot->curves[curve]);
}

static void mark(struct canvas *c, int x, int y, int curve, bool ringed)
{
    struct cell *cell = cell_at(c, x, y);
    if (!cell)
        return;
    if (cell->bar) /* a point replaces parts of spreads */
        cell->dots = 0, cell->bar = false;
    dot(c, x, y, curve, true);
    cell->marked = true;
    cell->ringed |= ringed;
}

static int dot_of(double place, int dots)
{
    double v = place * (dots - 1) + 0.5;
    return v < 0 ? -1 : v > dots ? dots : (int)v;
}

/* Draw a straight line from dot to dot. */
static void line(struct canvas *c, const int from[2], const int to[2], int curve, bool strong)
{
    int dx = abs(to[0] - from[0]), dy = abs(to[1] - from[1]), n = dx > dy ? dx : dy;
    for (int i = 0; i <= n; i++) {
        double t = n ? (double)i / n : 0;
        dot(c, (int)(from[0] + t * (to[0] - from[0]) + 0.5), (int)(from[1] + t * (to[1] - from[1]) + 0.5), curve, strong);
    }
}

/* Position of a point of curve k, in dots. */
static void locate_point(const struct canvas *c, int k, double x, double y, int at[2])
{
    double aside = tune_plot_aside(c->plot, &c->plot->curves[k]);
    at[0] = dot_of(tune_scale_position(&c->x, x + aside), c->width * c->across);
    at[1] = c->height * c->down - 1 - dot_of(tune_scale_position(&c->y, y), c->height * c->down);
}

static void draw(struct canvas *c, int k, const double *y, bool strong)
{
    const struct tune_curve *curve = &c->plot->curves[k];
    int at[2], before[2];
    bool first = true;
    for (int64_t i = 0; i < curve->count; i++) {
        if (!tune_plot_drawn(c->plot, curve->x[i], y[i]))
            continue;
        locate_point(c, k, curve->x[i], y[i], at);
        line(c, first ? at : before, at, k, strong);
        memcpy(before, at, sizeof at);
        first = false;
    }
}

static void draw_points(struct canvas *c, int k)
{
    const struct tune_curve *curve = &c->plot->curves[k];
    int at[2];
    for (int64_t i = 0; i < curve->count; i++)
        if (tune_plot_drawn(c->plot, curve->x[i], curve->y[i])) {
            locate_point(c, k, curve->x[i], curve->y[i], at);
            mark(c, at[0], at[1], k, tune_plot_ringed(c->plot, curve, i));
        }
}

/* Draw spreads: bars for few points, else faint lines along the lowest and highest values if there
 * are colours, or if it is a band. */
static void draw_spread(struct canvas *c, int k)
{
    const struct tune_curve *curve = &c->plot->curves[k];
    bool few = (curve->count <= FEW && !curve->band) || c->plot->x_names || curve->apart;
    int from[2], to[2], before[2][2];
    double low, high;
    bool joined = false;
    for (int64_t i = 0; i < curve->count && (few || curve->band || c->how->color); i++) {
        bool spread = tune_plot_drawn(c->plot, curve->x[i], curve->y[i]) && tune_plot_spread(c->plot, curve, i, &low, &high);
        if (spread) {
            locate_point(c, k, curve->x[i], low, from);
            locate_point(c, k, curve->x[i], high, to);
        }
        if (spread && few) {
            line(c, from, to, k, true);
            for (int y = to[1]; y <= from[1]; y++)
                cell_at(c, to[0], y)->bar = true;
        } else if (spread) {
            line(c, joined ? before[0] : from, from, k, false);
            line(c, joined ? before[1] : to, to, k, false);
            memcpy(before[0], from, sizeof from);
            memcpy(before[1], to, sizeof to);
        }
        joined = spread;
    }
}

/* Draw spreads, then points, then faint lines, then the other lines. Nothing hides a point, except the
 * line of a band over too many points. Without colours, noise under a smooth curve is left out. */
static int draw_all(struct canvas *c)
{
    for (int k = 0; k < c->plot->count; k++)
        if (c->plot->curves[k].low)
            draw_spread(c, k);
    for (int k = 0; k < c->plot->count; k++)
        if ((c->plot->curves[k].dotted && c->down == 4) || tune_plot_pointed(c->plot, &c->plot->curves[k]))
            draw_points(c, k);
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < c->plot->count; k++) {
            double *smooth;
            if (c->plot->x_names || c->plot->curves[k].apart || (c->plot->curves[k].dotted && c->down == 4))
                continue;
            TRY(tune_plot_smooth(c->plot, &c->plot->curves[k], &smooth));
            if (pass == 0 && smooth && c->how->color)
                draw(c, k, c->plot->curves[k].y, false);
            c->above = tune_plot_above(c->plot, &c->plot->curves[k]);
            if (pass == 1)
                draw(c, k, smooth ? smooth : c->plot->curves[k].y, true);
            c->above = false;
            free(smooth);
        }
    return 0;
}

/* ---- characters ---- */

static void put_braille(FILE *out, unsigned char dots)
{
    unsigned code = 0x2800u + dots;
    fputc((int)(0xE0 | code >> 12), out);
    fputc((int)(0x80 | (code >> 6 & 63)), out);
    fputc((int)(0x80 | (code & 63)), out);
}

static void put_color(const struct canvas *c, FILE *out, int curve, bool strong)
{
    if (c->how->color)
        fprintf(out, "\033[%s38;5;%dm", strong ? "" : "2;", colors[c->plot->curves[curve].color % COLORS]);
}

static void put_plain(const struct canvas *c, FILE *out)
{
    if (c->how->color)
        fputs("\033[0m", out);
}

/* A point with a ring, without colours a letter. */
static const char *ring(const struct canvas *c)
{
    return c->down == 4 ? "\u25c9" : "P";
}

static const char *point(const struct tune_curve *c)
{
    return c->band ? "\u25c7" : c->dotted ? "\u25cb" : "\u25cf";
}

static void put_cell(const struct canvas *c, const struct cell *cell, FILE *out)
{
    if (cell->ringed)
        fputs(ring(c), out);
    else if (c->down == 4 && cell->marked)
        fputs(point(&c->plot->curves[cell->curve]), out);
    else if (c->down == 4)
        put_braille(out, cell->dots);
    else
        fputc(cell->marked ? marks[cell->curve % MARKS] : cell->bar ? '|' : cell->thin ? '.' : marks[cell->curve % MARKS], out);
}

/* Print one row of the area, up to its last character that is not empty. */
static void put_row(const struct canvas *c, FILE *out, int row)
{
    int last = c->width - 1, shown = -1;
    bool strong = false;
    const struct cell *cells = c->cells + (size_t)row * (size_t)c->width;
    while (last >= 0 && !cells[last].dots)
        last--;
    for (int i = 0; i <= last; i++) {
        if (!cells[i].dots) {
            fputc(' ', out);
            continue;
        }
        if (shown != cells[i].curve || strong != cells[i].strong) {
            if (shown >= 0)
                put_plain(c, out);
            put_color(c, out, cells[i].curve, cells[i].strong);
        }
        shown = cells[i].curve;
        strong = cells[i].strong;
        put_cell(c, &cells[i], out);
    }
    if (shown >= 0)
        put_plain(c, out);
}

static void put_area(const struct canvas *c, FILE *out)
{
    char text[32];
    for (int row = 0; row < c->height; row++) {
        int tick = -1;
        for (int i = 0; i < c->y.ticks; i++)
            if ((c->height * c->down - 1 - dot_of(tune_scale_position(&c->y, c->y.tick[i]), c->height * c->down)) / c->down == row)
                tick = i;
        fprintf(out, "%*s %s", c->labels, tick >= 0 ? tune_scale_label(&c->y, tick, text) : "",
                c->how->unicode ? (tick >= 0 ? "\u2524" : "\u2502") : tick >= 0 ? "+" : "|");
        put_row(c, out, row);
        fputc('\n', out);
    }
}

static int column_of(const struct canvas *c, int tick)
{
    return dot_of(tune_scale_position(&c->x, c->x.tick[tick]), c->width * c->across) / c->across;
}

/* Print the names of categories under their ticks, or letters in place of them. */
static void put_names(const struct canvas *c, FILE *out)
{
    int at = 0, slot = c->width / (c->x.ticks > 0 ? c->x.ticks : 1) - 1, widest = 0;
    for (int i = 0; i < c->x.ticks; i++) {
        int n = tune_plain_width(c->x.names[(int)c->x.tick[i]]);
        widest = n > widest ? n : widest;
    }
    for (int i = 0; i < c->x.ticks; i++) {
        const char letter[2] = {tune_key_letter((int)c->x.tick[i]), 0};
        const char *text = widest <= slot ? c->x.names[(int)c->x.tick[i]] : letter;
        int size = tune_plain_width(text), from = column_of(c, i) - size / 2;
        from = from < 0 ? 0 : from;
        if (from < at || from + size > c->width)
            continue;
        fprintf(out, "%*s", from - at, "");
        tune_put_in(out, text, size, '<', c->how->unicode);
        at = from + size;
    }
    fputc('\n', out);
    if (widest > slot)
        tune_put_key(out, c->plot->x_names, c->plot->x_count, c->labels + 2, c->how->width - 1, c->how->unicode);
    if (*c->plot->x_title) {
        fprintf(out, "%*s", c->labels + 2, "");
        tune_put_in(out, c->plot->x_title, c->width, '>', c->how->unicode);
        fputc('\n', out);
    }
}

/* Print the x axis, the labels that fit under their ticks, and the title. */
static void put_x_axis(const struct canvas *c, FILE *out)
{
    char *tick = calloc(1, (size_t)c->width + 1), text[32];
    int at = 0;
    fprintf(out, "%*s %s", c->labels, "", c->how->unicode ? "\u2514" : "+");
    for (int i = 0; tick && i < c->x.ticks; i++)
        if (column_of(c, i) >= 0 && column_of(c, i) < c->width)
            tick[column_of(c, i)] = 1;
    for (int i = 0; i < c->width; i++)
        fputs(c->how->unicode ? (tick && tick[i] ? "\u252c" : "\u2500") : tick && tick[i] ? "+" : "-", out);
    free(tick);
    fprintf(out, "\n%*s", c->labels + 2, "");
    if (c->x.names) {
        put_names(c, out);
        return;
    }
    int title = tune_plain_width(c->plot->x_title);
    title = title < c->width ? title : c->width - 1;
    bool below = c->x.ticks > 0 && c->plot->curves[0].marked && title > 0; /* every measured value gets a
                                                                            * label */
    for (int i = 0; i < c->x.ticks; i++) {
        int size = (int)strlen(tune_scale_label(&c->x, i, text)), from = column_of(c, i) - size / 2;
        from = from < 0 ? 0 : from;
        if ((i > 0 && from <= at) || from + size > c->width - (below ? 0 : title + 2))
            continue;
        at += fprintf(out, "%*s%s", from - at, "", text);
    }
    if (below)
        at = fprintf(out, "\n%*s", c->labels + 2, "") - (c->labels + 3);
    fprintf(out, "%*s", c->width - title - at > 0 ? c->width - title - at : 1, "");
    tune_put_in(out, c->plot->x_title, title, '<', c->how->unicode);
    fputc('\n', out);
}

/* Print the legend, names and last values, wrapped at the width. */
static void put_legend(const struct canvas *c, FILE *out)
{
    const struct tune_plot *p = c->plot;
    int column = 0, first = p->count == 1 && !*p->curves[0].label;
    for (int k = first; k < p->count + (p->front != NULL); k++) { /* the rings are the last entry */
        const struct tune_curve *curve = k < p->count ? &p->curves[k] : NULL;
        const char *name = curve ? curve->label : p->front;
        char value[32] = "";
        if (curve && curve->count > 0 && !curve->marked && !curve->band && !p->x_names)
            snprintf(value, sizeof value, " %.5g", curve->y[curve->count - 1]);
        int label = tune_plain_width(name), most = c->how->width - 1 - (c->labels + 2) - 2 - (int)strlen(value);
        label = label <= most ? label : most > 8 ? most : 8;
        int size = 2 + label + (int)strlen(value);
        if (column > 0 && column + 3 + size > c->how->width - 1) {
            fputc('\n', out);
            column = 0;
        }
        fprintf(out, "%*s", column ? 3 : c->labels + 2, "");
        column += (column ? 3 : c->labels + 2) + size;
        if (curve)
            put_color(c, out, k, true);
        if (!curve)
            fputs(ring(c), out);
        else if (c->down == 4)
            fputs(curve->band && !p->x_names ? "\u2500" : point(curve), out);
        else
            fputc(marks[k % MARKS], out);
        if (curve)
            put_plain(c, out);
        fputc(' ', out);
        tune_put_in(out, name, label, '<', c->how->unicode);
        fputs(value, out);
    }
    if (column > 0)
        fputc('\n', out);
}

int tune_plot_terminal(const struct tune_plot *plot, const struct tune_terminal *how, FILE *out)
{
    struct canvas c = {.plot = plot, .how = how, .height = how->height < 3 ? 3 : how->height};
    char text[32];
    bool dots = how->unicode && (how->color || plot->count == 1); /* without colours, dots of two
                                                                   * curves look alike */
    c.across = dots ? 2 : 1;
    c.down = dots ? 4 : 1;
    TRY(tune_plot_scales(plot, &c.x, &c.y));
    tune_scale_ticks(&c.y, c.height / 2 < 7 ? c.height / 2 : 7);
    for (int i = 0; i < c.y.ticks; i++) {
        int n = (int)strlen(tune_scale_label(&c.y, i, text));
        c.labels = n > c.labels ? n : c.labels;
    }
    c.width = how->width - 1 - c.labels - 2;
    c.width = c.width < 8 ? 8 : c.width > 4096 ? 4096 : c.width;
    tune_plot_x_ticks(plot, &c.x, c.width / 12 < 2 ? 2 : c.width / 12 > 10 ? 10 : c.width / 12);
    c.cells = calloc((size_t)c.width * (size_t)c.height, sizeof *c.cells);
    if (!c.cells)
        return tune_error_cannot("no memory for a plot of %d x %d characters", c.width, c.height);
    int status = draw_all(&c);
    if (status == 0) {
        fprintf(out, "%*s", c.labels + 2, "");
        tune_put_plain(out, plot->title);
        fputs(*plot->y_title ? ", " : "", out);
        tune_put_plain(out, plot->y_title);
        fputs(plot->facet ? ", " : "", out);
        tune_put_plain(out, plot->facet ? plot->facet : "");
        fputc('\n', out);
        tune_put_note(out, c.labels + 2, plot->note, NULL, how->width - 1);
        put_area(&c, out);
        put_x_axis(&c, out);
        put_legend(&c, out);
    }
    free(c.cells);
    return status;
}
