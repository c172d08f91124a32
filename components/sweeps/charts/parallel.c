/* parallel.c - rows over many dimensions: parallel coordinates as SVG, means and the best rows in a terminal. */
#include "sweeps/charts/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "views/scale.h"
#include "views/shades.h"
#include "views/svg.h"
#include "views/text.h"

enum { MOST_BEST = 5, FEW_LEVELS = 12 /* an axis with at most this many different values has a tick
                                       * and a mean for each */ };

struct axis {
    const struct tune_axis *of;
    struct tune_scale scale;
    double level[TUNE_TICKS];
    int levels; /* -1: too many for a tick each */
};

/* A row and its rank; a row without a target is the worst. */
struct ranked {
    double worth;
    int64_t row;
};

struct drawing {
    const struct tune_parallel *of;
    struct axis *axes;     /* [of->count] */
    struct ranked *order;  /* [of->rows] sorted, best last */
    int64_t with_target;
    int64_t best;          /* number of rows that are shown as the best */
};

static bool has_value(const struct axis *a, int64_t row)
{
    double v = a->of->values[row];
    return a->of->names ? v >= 0 && v <= a->of->name_count - 1 : tune_drawable(v) && (!a->scale.logarithmic || v > 0);
}

static int by_worth(const void *left, const void *right)
{
    const struct ranked *a = left, *b = right;
    return a->worth != b->worth ? (a->worth > b->worth) - (a->worth < b->worth) : (a->row < b->row) - (a->row > b->row);
}

static void free_drawing(struct drawing *d)
{
    free(d->axes);
    free(d->order);
}

static void make_axis(struct axis *a, const struct tune_axis *of, int64_t rows)
{
    a->of = of;
    if (of->names) {
        tune_scale_names(&a->scale, of->names, of->name_count);
        a->levels = of->name_count <= TUNE_TICKS ? of->name_count : -1;
        for (int i = 0; i < a->levels; i++)
            a->level[i] = i;
        return;
    }
    a->levels = tune_levels(of->values, rows, a->level, 0);
    a->levels = a->levels > FEW_LEVELS ? -1 : a->levels;
    tune_scale_over(&a->scale, of->values, rows, of->base, a->levels > 0 ? 0.06 : 0.02);
    tune_scale_hold(&a->scale, of->holds);
}

/* Make the axes and the order. The caller calls free_drawing, also after a failure. */
static int make_drawing(struct drawing *d, const struct tune_parallel *p)
{
    *d = (struct drawing){.of = p};
    if (p->count < 2)
        return tune_error_set("\"%s\": %d axes; expected a dimension and a target at least",
                              p->title, p->count);
    d->axes = calloc((size_t)p->count, sizeof *d->axes);
    d->order = calloc((size_t)p->rows + 1, sizeof *d->order);
    if (!d->axes || !d->order)
        return tune_error_cannot("no memory to draw \"%s\"", p->title);
    for (int i = 0; i < p->count; i++)
        make_axis(&d->axes[i], &p->axes[i], p->rows);
    const struct axis *target = &d->axes[p->count - 1];
    for (int64_t row = 0; row < p->rows; row++) {
        bool has = has_value(target, row);
        d->order[row] = (struct ranked){!has ? -INFINITY : p->best < 0 ? -target->of->values[row] : target->of->values[row], row};
        d->with_target += has;
    }
    if (d->with_target == 0)
        return tune_error_set("\"%s\": no row has a %s to draw", p->title, target->of->title);
    qsort(d->order, (size_t)p->rows, sizeof *d->order, by_worth);
    d->best = p->best == 0 ? 0 : d->with_target >= 25 ? MOST_BEST : d->with_target >= 10 ? 3 : 1;
    return 0;
}

/* The rank among the drawn rows, 0..1. */
static double goodness(const struct drawing *d, int64_t row)
{
    const struct axis *target = &d->axes[d->of->count - 1];
    double place = tune_scale_place(&target->scale, target->of->values[row]);
    return d->of->best < 0 ? 1 - place : place;
}

/* A value as text: a number, or a category's name, which is untrusted. */
static const char *value_text(const struct axis *a, double value, char text[32])
{
    if (a->of->names)
        return a->of->names[(int)value];
    snprintf(text, 32, "%.6g", value);
    return text;
}

/* ---- SVG ---- */

/* Sizes in pixels; numbers of lines; the palest visible shade for a line. */
enum { SIDE = 24, LABELS = 190, RIGHT = 110, AXIS = 340, TITLES = 40, BOTTOM = 24, LEAST_APART = 110, BAND = 16 };
enum { MOST_LINES = 10000, PALEST = 5 };

struct layout {
    struct drawing d;
    double left;   /* x of the first axis */
    double apart;  /* distance between two axes */
    double top;    /* top and bottom of the axes */
    bool stepped;  /* titles on two levels */
    bool sampled;  /* not all rows are drawn */
    char said[160]; /* a note about that, and about the best rows */
};

static double page_width(const struct layout *l)
{
    return fmax(TUNE_SVG_WIDTH, l->left + RIGHT + (double)LEAST_APART * (l->d.of->count - 1));
}

/* The position of axis i's title: centred on the axis, inside the page. */
static void title_extent(const struct layout *l, int i, double *from, double *to)
{
    double x = l->left + i * l->apart, width = fmin(tune_svg_width(l->d.of->axes[i].title), 2 * l->apart - 10);
    *from = fmin(fmax(x - width / 2, 8), page_width(l) - 8 - width);
    *to = *from + width;
}

static double head_height(const struct layout *l)
{
    return tune_svg_heading_height(l->d.of->note, l->said) + 10 + TITLES * (l->stepped ? 2 : 1);
}

static double full_height(const struct layout *l)
{
    return head_height(l) + AXIS + BOTTOM;
}

static int lay_out(struct layout *l, const struct tune_parallel *p)
{
    double from, to, before = 0, labels = p->axes[0].names ? tune_svg_widest(p->axes[0].names, p->axes[0].name_count) : 0;
    TRY(make_drawing(&l->d, p));
    l->left = SIDE + fmin(fmax(labels, 60), LABELS);
    l->apart = (page_width(l) - l->left - RIGHT) / (p->count - 1);
    l->sampled = p->rows > MOST_LINES;
    if (l->sampled)
        snprintf(l->said, sizeof l->said, "%d of %lld rows are drawn, evenly over the last axis", MOST_LINES, (long long)p->rows);
    if (l->d.best > 0)
        snprintf(l->said + strlen(l->said), sizeof l->said - strlen(l->said),
                 l->d.best > 1 ? "%sthick: the best %lld" : "%sthick: the best", *l->said ? "; " : "", (long long)l->d.best);
    for (int i = 0; i < p->count; i++, before = to + 8) {
        title_extent(l, i, &from, &to);
        l->stepped |= from < before;
    }
    return 0;
}

static double y_of(const struct layout *l, const struct axis *a, double value)
{
    return l->top + AXIS * (1 - tune_scale_place(&a->scale, value));
}

/* The distance of a row's line from its level. Rows of one level are spread in order of their
 * target. */
static double aside(const struct layout *l, const struct axis *a, int64_t row)
{
    double least = 1;
    if (a->levels < 1 || !has_value(&l->d.axes[l->d.of->count - 1], row))
        return 0;
    for (int i = 1; i < a->levels; i++)
        least = fmin(least, tune_scale_place(&a->scale, a->level[i]) - tune_scale_place(&a->scale, a->level[i - 1]));
    return (0.5 - goodness(&l->d, row)) * fmin(BAND, 0.6 * AXIS * least);
}

static void put_hint(const struct layout *l, int64_t row, FILE *out)
{
    char text[32];
    const struct tune_parallel *p = l->d.of;
    fputs("<title>", out);
    if (p->names && p->names[row]) {
        tune_svg_text(out, p->names[row]);
        fputc('\n', out);
    }
    for (int i = 0; i < p->count; i++) {
        const struct axis *a = &l->d.axes[i];
        fputs(i ? "\n" : "", out);
        tune_svg_text(out, a->of->title);
        fputs(": ", out);
        tune_svg_text(out, has_value(a, row) ? value_text(a, a->of->values[row], text) : "missing");
        if (a->of->unit && *a->of->unit) {
            fputc(' ', out);
            tune_svg_text(out, a->of->unit);
        }
    }
    fputs("</title>", out);
}

/* Draw a row's line. It is interrupted at missing values; a single value is a dot. */
static void put_row(const struct layout *l, int64_t row, const char *more, FILE *out)
{
    const struct tune_parallel *p = l->d.of;
    const struct axis *target = &l->d.axes[p->count - 1];
    int shade = PALEST + (int)((TUNE_SHADES - 1 - PALEST) * (has_value(target, row) ? goodness(&l->d, row) : 0) + 0.5);
    if (has_value(target, row))
        fprintf(out, "<path class=\"row%s s%d\" d=\"", more, shade);
    else
        fputs("<path class=\"row grid\" d=\"", out);
    bool joined = false;
    for (int i = 0; i < p->count; i++) {
        const struct axis *a = &l->d.axes[i];
        if (!has_value(a, row)) {
            joined = false;
            continue;
        }
        double x = l->left + i * l->apart, y = y_of(l, a, a->of->values[row]) + (a == target ? 0 : aside(l, a, row));
        fprintf(out, "%c%.1f %.1f%s", joined ? 'L' : 'M', x, y, joined ? "" : "h0");
        joined = true;
    }
    fputs("\">", out);
    put_hint(l, row, out);
    fputs("</path>\n", out);
}

static void put_rows(const struct layout *l, FILE *out)
{
    const struct drawing *d = &l->d;
    int64_t rows = d->of->rows, others = rows - d->best, drawn = l->sampled ? MOST_LINES - d->best : others;
    fprintf(out, "<g stroke-opacity=\"%s\">\n", rows <= 60 ? "0.8" : rows <= 600 ? "0.45" : "0.18");
    for (int64_t i = 0; i < drawn; i++)
        put_row(l, d->order[(int64_t)((double)i / (double)drawn * (double)others)].row, "", out);
    fputs("</g>\n", out);
    for (int64_t i = others; i < rows; i++)
        put_row(l, d->order[i].row, " best", out);
}

static void put_title(const struct layout *l, int i, FILE *out)
{
    const struct tune_axis *a = &l->d.of->axes[i];
    double from, to, y = l->top - TITLES + 12 - (l->stepped && i % 2 == 0 ? TITLES : 0);
    title_extent(l, i, &from, &to);
    double middle = (from + to) / 2, room = 2 * l->apart - 10;
    tune_svg_label(out, i == l->d.of->count - 1 ? "ink strong" : "ink", middle, y, "middle", 0, room, a->title);
    if (a->unit && *a->unit)
        tune_svg_label(out, "note", middle, y + 16, "middle", 0, room, a->unit);
}

/* Draw an axis with its ticks; beside the target's axis, its colours. */
static void put_axis(const struct layout *l, int i, FILE *out)
{
    char text[32];
    struct axis a = l->d.axes[i];
    bool target = i == l->d.of->count - 1;
    double x = l->left + i * l->apart;
    fprintf(out, "<path class=\"frame\" d=\"M%.1f %.1fv%d\"/>\n", x, l->top, AXIS);
    if (a.levels == 0)
        a.scale.ticks = 0; /* no value at all */
    else if (target || a.levels < 0 || a.of->names || !tune_scale_at_levels(&a.scale, a.level, a.levels, 16))
        tune_scale_ticks(&a.scale, 8);
    for (int k = 0; k < TUNE_SHADES - PALEST && target; k++) {
        double each = (double)AXIS / (TUNE_SHADES - PALEST);
        fprintf(out, "<rect class=\"q%d\" x=\"%.1f\" y=\"%.2f\" width=\"10\" height=\"%.2f\"/>", PALEST + k, x + 4,
                l->d.of->best < 0 ? l->top + k * each : l->top + AXIS - (k + 1) * each, each + 0.3);
    }
    int each = 1 + (int)(a.scale.ticks * 15 / AXIS);
    for (int k = 0; k < a.scale.ticks; k += each) {
        double y = y_of(l, &a, a.scale.tick[k]);
        fprintf(out, "<path class=\"frame\" d=\"M%.1f %.1fh%d\"/>", x, y, target ? 18 : -4);
        tune_svg_label(out, "note halo", x + (target ? 23 : -8), y + 4.5, target ? "start" : "end", 0,
                       i == 0 ? l->left - 12 : l->apart - 30, tune_scale_label(&a.scale, k, text));
    }
}

static void put_drawing(struct layout *l, double top, FILE *out)
{
    const struct tune_parallel *p = l->d.of;
    l->top = top + head_height(l);
    tune_svg_heading(out, SIDE, top, p->title, NULL, p->note, l->said);
    put_rows(l, out);
    for (int i = 0; i < p->count; i++) {
        put_axis(l, i, out);
        put_title(l, i, out);
    }
}

int tune_parallel_svg(const struct tune_parallel *parallels, int count, FILE *out)
{
    struct layout *l = calloc((size_t)count + 1, sizeof *l);
    double height = 0, width = TUNE_SVG_WIDTH, top = 0;
    int made = 0, status = l ? 0 : -1;
    if (!l)
        tune_error_cannot("no memory for %d drawings", count);
    for (; made < count && status == 0; made++) {
        status = lay_out(&l[made], &parallels[made]);
        height += status == 0 ? full_height(&l[made]) : 0;
        width = status == 0 ? fmax(width, page_width(&l[made])) : width;
    }
    if (status == 0) {
        tune_svg_begin(out, width, height, true);
        fputs("<style>.row{fill:none;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}.best{stroke-width:3.5}"
              ".row:hover{stroke-width:5;stroke-opacity:1}.strong{font-weight:600}</style>\n", out);
    }
    for (int i = 0; i < made && status == 0; i++) {
        put_drawing(&l[i], top, out);
        top += full_height(&l[i]);
    }
    if (status == 0)
        tune_svg_end(out);
    for (int i = 0; i < made; i++)
        free_drawing(&l[i].d);
    free(l);
    return status;
}

/* ---- terminal ---- */

/* The rows with one value of a dimension, or a range of values, and their targets. */
struct group {
    double from, to; /* both the value itself, or start and end of the range */
    int64_t rows;
    double mean, low, high;
};

enum { RANGES = 6, GROUPS = TUNE_TICKS };

struct setting {
    struct drawing d;
    const struct tune_terminal *how;
    struct tune_scale target;
    int labels, chart, number, rows; /* widths: names, marks, means, counts */
};

/* Make the groups of a dimension: its levels, or if these are too many, ranges of equal width.
 * Returns their number. */
static int make_groups(const struct setting *s, const struct axis *a, struct group group[GROUPS])
{
    const struct axis *target = &s->d.axes[s->d.of->count - 1];
    int count = a->levels > 0 ? a->levels : RANGES;
    for (int i = 0; i < count; i++)
        group[i] = (struct group){.low = INFINITY, .high = -INFINITY, .from = a->levels > 0 ? a->level[i] : INFINITY,
                                  .to = a->levels > 0 ? a->level[i] : -INFINITY};
    for (int64_t row = 0; row < s->d.of->rows; row++) {
        double v = a->of->values[row], t = target->of->values[row];
        int i = 0;
        if (!has_value(a, row) || !has_value(target, row))
            continue;
        if (a->levels > 0)
            while (i < count - 1 && a->level[i] < v)
                i++;
        else
            i = (int)fmin(RANGES - 1, fmax(0, tune_scale_place(&a->scale, v) * RANGES));
        struct group *g = &group[i];
        g->mean += (t - g->mean) / (double)++g->rows;
        g->low = fmin(g->low, t), g->high = fmax(g->high, t);
        g->from = fmin(g->from, v), g->to = fmax(g->to, v);
    }
    return count;
}

/* A group's name, which the caller frees; NULL for a range without rows. */
static char *group_name(const struct axis *a, const struct group *g)
{
    char from[32], to[32], *text = NULL, *plain;
    if (g->rows == 0 && a->levels < 1)
        return NULL;
    if (g->from == g->to)
        return tune_plain(value_text(a, g->from, from));
    snprintf(from, sizeof from, "%.4g", g->from);
    snprintf(to, sizeof to, "%.4g", g->to);
    bool names = a->of->names != NULL;
    if (asprintf(&text, "%s to %s", names ? value_text(a, g->from, from) : from, names ? value_text(a, g->to, to) : to) < 0)
        return NULL;
    plain = tune_plain(text);
    free(text);
    return plain;
}

/* Draw |----o---| on the target's axis. */
static void put_marks(const struct setting *s, const struct group *g, FILE *out)
{
    static const char *const glyphs[2][5] = {{"|", "-", "o", "|", "|"}, {"\u251c", "\u2500", "\u25cf", "\u2524", "\u2502"}};
    const char *const *glyph = glyphs[s->how->unicode];
    double last = s->chart - 1, mean = tune_scale_place(&s->target, g->mean);
    int from = (int)(tune_scale_place(&s->target, g->low) * last + 0.5), at = (int)(mean * last + 0.5);
    int to = (int)(tune_scale_place(&s->target, g->high) * last + 0.5);
    int shade = (int)(16 * (s->d.of->best < 0 ? mean : 1 - mean)) + 6; /* never too pale or too dark
                                                                        * for a line */
    fprintf(out, "%*s", from, "");
    tune_shade_terminal(s->how, shade, false, out);
    for (int i = from; i <= to; i++)
        fputs(i == at ? glyph[2] : i == from ? glyph[0] : i == to ? glyph[3] : glyph[1], out);
    tune_shade_end(s->how, out);
    fprintf(out, "%*s", s->chart - 1 - to, "");
}

/* Print "title, unit", and a remark if there is room. */
static void put_axis_title(const struct setting *s, const struct tune_axis *a, const char *said, FILE *out)
{
    const char *unit = a->unit && *a->unit ? a->unit : NULL;
    int room = s->how->width - 1, title = tune_plain_width(a->title), after = unit ? 2 + tune_plain_width(unit) : 0;
    after = title + after <= room ? after : 0;
    title = title < room ? title : room;
    tune_put_in(out, a->title, title, '<', s->how->unicode);
    fputs(after ? ", " : "", out);
    tune_put_plain(out, after ? unit : "");
    fputs(title + after + (int)strlen(said) <= room ? said : "", out);
    fputc('\n', out);
}

static void put_groups(const struct setting *s, int axis, FILE *out)
{
    char text[32];
    struct group group[GROUPS];
    const struct axis *a = &s->d.axes[axis];
    int count = make_groups(s, a, group);
    put_axis_title(s, a->of, "", out);
    for (int i = 0; i < count; i++) {
        char *name = group_name(a, &group[i]);
        if (!name)
            continue;
        fputs("  ", out);
        tune_put_in(out, name, s->labels, '>', s->how->unicode);
        fputs("  ", out);
        if (group[i].rows > 0) {
            put_marks(s, &group[i], out);
            fprintf(out, "  %*s  %*lld", s->number, tune_scale_text(&s->target, group[i].mean, text), s->rows,
                    (long long)group[i].rows);
        }
        fputc('\n', out);
        free(name);
    }
}

/* Compute the widths of names and numbers, and the rest for the marks. */
static void set_columns(struct setting *s)
{
    struct group group[GROUPS];
    char text[32];
    int width = s->how->width - 1;
    for (int k = 0; k < s->d.of->count - 1; k++) {
        const struct axis *a = &s->d.axes[k];
        int count = make_groups(s, a, group);
        for (int i = 0; i < count; i++) {
            char *name = group_name(a, &group[i]);
            int n = name ? tune_width(name) : 0;
            s->labels = n > s->labels ? n : s->labels;
            n = group[i].rows > 0 ? (int)strlen(tune_scale_text(&s->target, group[i].mean, text)) : 0;
            s->number = n > s->number ? n : s->number;
            free(name);
        }
    }
    s->number = s->number > 4 ? s->number : 4; /* widths of "mean" and "rows" */
    s->rows = snprintf(text, sizeof text, "%lld", (long long)s->d.with_target);
    s->rows = s->rows > 4 ? s->rows : 4;
    s->labels = s->labels < width / 3 ? s->labels : width / 3;
    int room = width - 2 - 2 - 2 - s->number - 2 - s->rows; /* width for names and marks */
    s->labels = s->labels > room - 8 ? (room - 8 > 4 ? room - 8 : 4) : s->labels;
    s->chart = room - s->labels;
    s->chart = s->chart < 8 ? 8 : s->chart > 200 ? 200 : s->chart;
}

/* Print the ends of the target's axis above the marks, and the headings of the numbers. */
static void put_scale(const struct setting *s, FILE *out)
{
    char low[32], high[32];
    tune_scale_text(&s->target, s->target.low, low);
    tune_scale_text(&s->target, s->target.high, high);
    fprintf(out, "  %*s  ", s->labels, "");
    tune_put_in(out, low, s->chart / 2, '<', s->how->unicode);
    tune_put_in(out, high, s->chart - s->chart / 2, '>', s->how->unicode);
    fprintf(out, "  %*s  %*s\n", s->number, "mean", s->rows, "rows");
}

static const char *row_text(const struct setting *s, int axis, int64_t row, char text[32])
{
    const struct axis *a = &s->d.axes[axis];
    return has_value(a, row) ? value_text(a, a->of->values[row], text) : "-";
}

/* Print the best rows side by side, best first, as many as fit: the target, then every
 * dimension. */
static void put_best(const struct setting *s, FILE *out)
{
    char text[32];
    const struct tune_parallel *p = s->d.of;
    int titles = 0, widths[MOST_BEST], used, shown = 0;
    for (int i = 0; i < p->count; i++)
        titles = tune_plain_width(p->axes[i].title) > titles ? tune_plain_width(p->axes[i].title) : titles;
    titles = titles < s->how->width / 2 ? titles : s->how->width / 2;
    used = titles;
    for (; shown < s->d.best; shown++) {
        widths[shown] = 1;
        for (int i = 0; i < p->count; i++) {
            int n = tune_plain_width(row_text(s, i, s->d.order[p->rows - 1 - shown].row, text));
            widths[shown] = n > widths[shown] ? n : widths[shown];
        }
        if (shown > 0 && used + 2 + widths[shown] > s->how->width - 1)
            break;
        used += 2 + widths[shown];
    }
    if (used > s->how->width - 1)
        widths[0] -= used - (s->how->width - 1);
    fprintf(out, "\nthe best ");
    if (shown > 1)
        fprintf(out, "%d ", shown);
    fprintf(out, "of %lld\n", (long long)s->d.with_target);
    for (int k = 0; k < p->count; k++) {
        int i = k == 0 ? p->count - 1 : k - 1;
        tune_put_in(out, p->axes[i].title, titles, '<', s->how->unicode);
        for (int j = 0; j < shown; j++) {
            fputs("  ", out);
            tune_put_in(out, row_text(s, i, s->d.order[p->rows - 1 - j].row, text), widths[j], '>', s->how->unicode);
        }
        fputc('\n', out);
    }
}

static void put_all(struct setting *s, FILE *out)
{
    const struct tune_parallel *p = s->d.of;
    const struct tune_axis *target = &p->axes[p->count - 1];
    tune_scale_over(&s->target, target->values, p->rows, target->base, 0);
    tune_scale_hold(&s->target, target->holds);
    tune_scale_spell(&s->target, (s->target.high - s->target.low) / 200);
    set_columns(s);
    bool same = !strcmp(p->title, target->title);
    if (same)
        put_axis_title(s, target, "", out);
    else
        tune_put_plain(out, p->title);
    fputs(same ? "" : "\n", out);
    tune_put_note(out, 0, p->note, NULL);
    if (same)
        fputs("lowest, mean and highest for each value\n", out);
    else
        put_axis_title(s, target, ": lowest, mean and highest for each value", out);
    put_scale(s, out);
    for (int i = 0; i < p->count - 1; i++)
        put_groups(s, i, out);
    if (s->d.best > 0)
        put_best(s, out);
}

int tune_parallel_terminal(const struct tune_parallel *parallel, const struct tune_terminal *how, FILE *out)
{
    struct setting s = {.how = how};
    int status = make_drawing(&s.d, parallel);
    if (status == 0)
        put_all(&s, out);
    free_drawing(&s.d);
    return status;
}
