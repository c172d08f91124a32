/* parallel.c - draw rows over many dimensions, as parallel coordinates in SVG. */
#include "sweeps/charts/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "views/scale.h"
#include "views/shades.h"
#include "views/svg.h"

/* FEW_LEVELS: maximum number of distinct values that all have ticks. */
enum { MOST_BEST = 5, FEW_LEVELS = 12 };

struct axis {
    const struct tune_axis *of;
    struct tune_scale scale;
    double level[TUNE_TICKS];
    int levels; /* number of distinct values; -1: too many for ticks */
};

/* A row and its target. Rows without a target are the worst. */
struct ranked {
    double worth;
    int64_t row;
};

struct drawing {
    const struct tune_parallel *of;
    struct axis *axes;     /* [of->count] */
    const struct axis *target;
    struct ranked *order;  /* [of->rows] sorted, best last */
    int64_t best;          /* number of rows drawn as the best */
    /* For SVG: */
    double width;          /* width of the page */
    double left, apart;    /* x of the first axis, and the distance between two */
    double top;            /* top of the axes */
    bool stepped;          /* titles alternate between two levels */
    bool sampled;          /* not all rows are drawn */
    char note[160];        /* a note about sampling and the best rows */
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

/* Make the axes and the order. The caller must call free_drawing, even after a failure. */
static int make_drawing(struct drawing *d, const struct tune_parallel *p)
{
    int64_t with_target = 0;
    *d = (struct drawing){.of = p};
    if (p->count < 2)
        return tune_error_set("\"%s\": the drawing has %d axes; expected at least a dimension and "
                              "a target",
                              p->title, p->count);
    d->axes = calloc((size_t)p->count, sizeof *d->axes);
    d->order = calloc((size_t)p->rows + 1, sizeof *d->order);
    if (!d->axes || !d->order)
        return tune_error_cannot("no memory to draw \"%s\"", p->title);
    for (int i = 0; i < p->count; i++)
        make_axis(&d->axes[i], &p->axes[i], p->rows);
    d->target = &d->axes[p->count - 1];
    for (int64_t row = 0; row < p->rows; row++) {
        bool has = has_value(d->target, row);
        double value = d->target->of->values[row];
        d->order[row] = (struct ranked){!has ? -INFINITY : p->best < 0 ? -value : value, row};
        with_target += has;
    }
    if (with_target == 0)
        return tune_error_set("\"%s\": no row has a %s to draw", p->title, d->target->of->title);
    qsort(d->order, (size_t)p->rows, sizeof *d->order, by_worth);
    d->best = p->best == 0 ? 0 : with_target >= 25 ? MOST_BEST : with_target >= 10 ? 3 : 1;
    return 0;
}

/* ---- SVG ---- */

/* Sizes in pixels; numbers of lines; the palest visible shade for a line. */
enum { SIDE = 24, LABELS = 190, RIGHT = 110, AXIS = 340, TITLES = 40, BOTTOM = 24, LEAST_APART = 110, BAND = 16 };
enum { MOST_LINES = 10000, PALEST = 5 };

static double heading(FILE *out, const struct drawing *d, double top)
{
    return tune_svg_heading(out, SIDE, top, d->width - 2 * SIDE, d->of->title, NULL, d->of->note, d->note) + 10 +
           TITLES * (d->stepped ? 2 : 1);
}

static int lay_out(struct drawing *d, const struct tune_parallel *p)
{
    TRY(make_drawing(d, p));
    double labels = p->axes[0].names ? tune_svg_widest(p->axes[0].names, p->axes[0].name_count) : 0;
    d->left = SIDE + fmin(fmax(labels, 60), LABELS);
    d->width = fmax(TUNE_SVG_WIDTH, d->left + RIGHT + (double)LEAST_APART * (p->count - 1));
    d->apart = (d->width - d->left - RIGHT) / (p->count - 1);
    d->sampled = p->rows > MOST_LINES;
    if (d->sampled)
        snprintf(d->note, sizeof d->note, "only %d of %lld rows are drawn, chosen evenly along the "
                                          "last axis", MOST_LINES, (long long)p->rows);
    size_t n = strlen(d->note);
    if (d->best > 0)
        snprintf(d->note + n, sizeof d->note - n, d->best > 1 ? "%sthick: the best %lld" : "%sthick: the best", n ? "; " : "",
                 (long long)d->best);
    for (int i = 0; i < p->count; i++)
        d->stepped |= tune_svg_width(p->axes[i].title) > d->apart - 8;
    return 0;
}

/* The position of a row's target on its axis, 0..1, with the best last. */
static double goodness(const struct drawing *d, int64_t row)
{
    double position = tune_scale_position(&d->target->scale, d->target->of->values[row]);
    return d->of->best < 0 ? 1 - position : position;
}

static double y_of(const struct drawing *d, const struct axis *a, double value)
{
    return d->top + AXIS * (1 - tune_scale_position(&a->scale, value));
}

/* The offset of a row's line from its value on an axis. Rows with the same value are spread in the
 * order of their target. */
static double aside(const struct drawing *d, const struct axis *a, int64_t row)
{
    double least = 1;
    if (a == d->target || a->levels < 1 || !has_value(d->target, row))
        return 0;
    for (int i = 1; i < a->levels; i++)
        least = fmin(least, tune_scale_position(&a->scale, a->level[i]) - tune_scale_position(&a->scale, a->level[i - 1]));
    return (0.5 - goodness(d, row)) * fmin(BAND, 0.6 * AXIS * least);
}

static void put_hint(const struct drawing *d, int64_t row, FILE *out)
{
    char text[32];
    const struct tune_parallel *p = d->of;
    fputs("<title>", out);
    if (p->names && p->names[row]) {
        tune_svg_text(out, p->names[row]);
        fputc('\n', out);
    }
    for (int i = 0; i < p->count; i++) {
        const struct tune_axis *a = &p->axes[i];
        bool has = has_value(&d->axes[i], row), unit = a->unit && *a->unit;
        snprintf(text, sizeof text, "%.6g", a->values[row]);
        fputs(i ? "\n" : "", out);
        const char *const parts[] = {a->title, ": ", !has ? "missing" : a->names ? a->names[(int)a->values[row]] : text,
                                     unit ? " " : "", unit ? a->unit : ""};
        for (int k = 0; k < 5; k++)
            tune_svg_text(out, parts[k]);
    }
    fputs("</title>", out);
}

/* Draw a row's line, interrupted at missing values. A single value is drawn as a dot. */
static void put_row(const struct drawing *d, int64_t row, const char *more, FILE *out)
{
    if (has_value(d->target, row))
        fprintf(out, "<path class=\"row%s s%d\" d=\"", more, PALEST + (int)((TUNE_SHADES - 1 - PALEST) * goodness(d, row) + 0.5));
    else
        fputs("<path class=\"row grid\" d=\"", out);
    bool joined = false;
    for (int i = 0; i < d->of->count; i++) {
        const struct axis *a = &d->axes[i];
        bool has = has_value(a, row);
        if (has)
            fprintf(out, "%c%.1f %.1f%s", joined ? 'L' : 'M', d->left + i * d->apart,
                    y_of(d, a, a->of->values[row]) + aside(d, a, row), joined ? "" : "h0");
        joined = has;
    }
    fputc('"', out);
    if (d->of->table_rows)
        fprintf(out, " data-row=\"%lld\"", (long long)d->of->table_rows[row]);
    fputc('>', out);
    put_hint(d, row, out);
    fputs("</path>\n", out);
}

static void put_rows(const struct drawing *d, FILE *out)
{
    int64_t rows = d->of->rows, others = rows - d->best, drawn = d->sampled ? MOST_LINES - d->best : others;
    fprintf(out, "<g stroke-opacity=\"%s\">\n", rows <= 60 ? "0.8" : rows <= 600 ? "0.45" : "0.18");
    for (int64_t i = 0; i < drawn; i++)
        put_row(d, d->order[(int64_t)((double)i / (double)drawn * (double)others)].row, "", out);
    fputs("</g>\n", out);
    for (int64_t i = others; i < rows; i++)
        put_row(d, d->order[i].row, " best", out);
}

/* Write a title above its axis, inside the page. */
static void put_title(const struct drawing *d, int i, FILE *out)
{
    const struct tune_axis *a = &d->of->axes[i];
    double most = 2 * d->apart - 10, half = fmin(tune_svg_width(a->title), most) / 2 + 8;
    double middle = fmin(fmax(d->left + i * d->apart, half), d->width - half);
    double y = d->top - TITLES + 12 - (d->stepped && i % 2 == 0 ? TITLES : 0);
    tune_svg_label(out, a == d->target->of ? "ink strong" : "ink", middle, y, "middle", 0, most, a->title);
    if (a->unit && *a->unit)
        tune_svg_label(out, "note", middle, y + 16, "middle", 0, most, a->unit);
}

/* Draw an axis with its ticks. The target's axis has colours. */
static void put_axis(const struct drawing *d, int i, FILE *out)
{
    char text[32];
    struct axis a = d->axes[i];
    double x = d->left + i * d->apart;
    fprintf(out, "<path class=\"frame\" d=\"M%.1f %.1fv%d\"/>\n", x, d->top, AXIS);
    if (a.of == d->target->of) {
        tune_svg_key(out, x + 4, d->top, AXIS, &a.scale, PALEST, d->of->best < 0);
        return;
    }
    if (a.levels == 0)
        return; /* no value at all */
    if (a.levels < 0 || a.of->names || !tune_scale_at_levels(&a.scale, a.level, a.levels, 16))
        tune_scale_ticks(&a.scale, 8);
    for (int k = 0; k < a.scale.ticks; k += 1 + a.scale.ticks * 15 / AXIS) {
        double y = y_of(d, &a, a.scale.tick[k]);
        fprintf(out, "<path class=\"frame\" d=\"M%.1f %.1fh-4\"/>", x, y);
        /* the halo is a copy below, because not all renderers support paint-order */
        for (int below = 1; below >= 0; below--)
            tune_svg_label(out, below ? "paper halo" : "note", x - 8, y + 4.5, "end", 0, i == 0 ? d->left - 12 : d->apart - 30,
                           tune_scale_label(&a.scale, k, text));
    }
}

int tune_parallel_svg(const struct tune_parallel *parallels, int count, FILE *out)
{
    struct drawing *d = calloc((size_t)count + 1, sizeof *d);
    double height = 0, width = TUNE_SVG_WIDTH, top = 0;
    int made = 0, status = d ? 0 : tune_error_cannot("no memory for %d drawings", count);
    for (; made < count && status == 0; made++) {
        status = lay_out(&d[made], &parallels[made]);
        height += status == 0 ? heading(NULL, &d[made], 0) + AXIS + BOTTOM : 0;
        width = fmax(width, d[made].width);
    }
    if (status == 0) {
        tune_svg_begin(out, width, height, true);
        fputs("<style>.row{fill:none;stroke-width:1.5;stroke-linejoin:round;stroke-linecap:round}.best{stroke-width:3.5}"
              ".row:hover{stroke-width:5;stroke-opacity:1}.strong{font-weight:600}</style>\n", out);
    }
    for (int i = 0; i < made && status == 0; i++) {
        d[i].top = top += heading(out, &d[i], top);
        put_rows(&d[i], out);
        for (int k = 0; k < d[i].of->count; k++) {
            put_axis(&d[i], k, out);
            put_title(&d[i], k, out);
        }
        top += AXIS + BOTTOM;
    }
    if (status == 0)
        tune_svg_end(out);
    for (int i = 0; i < made; i++)
        free_drawing(&d[i]);
    free(d);
    return status;
}
