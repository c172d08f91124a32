/* heat.c - draw a heat map, in a terminal and as SVG.
 *
 *     throughput, tokens/s
 *                          batch_size
 *     model_max_length     1       2       4
 *                  512   2624    4355    5101       numbers on their colours; '*' the best, '-' a missing one
 *                 1024   3912    4353*      -
 *     2624 [colours] 5101 */
#include "sweeps/charts/heat.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "views/scale.h"
#include "views/shades.h"
#include "views/svg.h"
#include "views/text.h"

/* The map to draw. If it is too large, down x across neighbouring cells are merged into one. */
struct map {
    const struct tune_heat *heat;
    struct tune_scale scale;
    int columns, rows;
    int across, down;
    double *values; /* [rows,columns] */
    int best;       /* index of the best value; -1: none */
    int missing;
    bool whole;     /* all values are whole numbers */
};

static bool is_value(const struct tune_heat *h, double value)
{
    return tune_drawable(value) && (!h->logarithmic || value > 0);
}

static double mean_of(const struct map *m, int row, int column)
{
    const struct tune_heat *h = m->heat;
    double mean = 0;
    int n = 0;
    for (int r = row * m->down; r < (row + 1) * m->down && r < h->rows; r++)
        for (int c = column * m->across; c < (column + 1) * m->across && c < h->columns; c++) {
            double v = h->values[(int64_t)r * h->columns + c];
            if (is_value(h, v))
                mean += (v - mean) / ++n; /* running mean, because a sum may overflow */
        }
    return n ? mean : NAN;
}

/* Choose the number of digits. */
static void set_format(struct map *m)
{
    double step = (m->scale.high - m->scale.low) / 200;
    tune_scale_to_string(&m->scale, m->whole ? fmax(step, 1) : step);
}

/* Make a map with a maximum number of columns and rows. The caller frees m->values. */
static int make_map(struct map *m, const struct tune_heat *h, int most_columns, int most_rows)
{
    *m = (struct map){.heat = h, .best = -1};
    m->across = (h->columns + most_columns - 1) / most_columns;
    m->down = (h->rows + most_rows - 1) / most_rows;
    m->columns = m->across > 0 ? (h->columns + m->across - 1) / m->across : 0;
    m->rows = m->down > 0 ? (h->rows + m->down - 1) / m->down : 0;
    int64_t count = (int64_t)m->rows * m->columns;
    m->values = malloc((size_t)(count + 1) * sizeof *m->values);
    if (!m->values)
        return tune_error_cannot("no memory to draw \"%s\"", h->title);
    m->whole = true;
    for (int64_t i = 0; i < count; i++) {
        double v = m->values[i] = mean_of(m, (int)(i / m->columns), (int)(i % m->columns));
        m->missing += isnan(v);
        m->whole &= isnan(v) || v == rint(v);
        if (h->best && !isnan(v) && (m->best < 0 || h->best * v > h->best * m->values[m->best]))
            m->best = (int)i;
    }
    if (!tune_scale_over(&m->scale, m->values, count, h->logarithmic ? 10 : 0, 0)) {
        free(m->values);
        return tune_error_set("\"%s\": there is no value to draw%s", h->title,
                              h->logarithmic ? " (on a logarithmic scale)" : "");
    }
    tune_scale_hold(&m->scale, h->holds);
    set_format(m);
    return 0;
}

static const char *value_text(const struct map *m, double value, char text[32])
{
    if (!m->scale.logarithmic)
        return tune_scale_text(&m->scale, value, text);
    snprintf(text, 32, "%.3g", value);
    return text;
}

/* Write the uncertainty of cell i as "±3%"; "" if it is unknown. */
static const char *spread_text(const struct map *m, int64_t i, bool unicode, char text[16])
{
    double spread = m->heat->spreads && m->across == 1 && m->down == 1 ? m->heat->spreads[i] : NAN;
    *text = 0;
    if (isfinite(spread) && spread >= 0 && spread < 1e6)
        snprintf(text, 16, spread >= 0.05 && spread < 0.95 ? "%s%.1f%%" : "%s%.0f%%", unicode ? "\u00b1" : "+-", spread);
    return text;
}

/* The shade of a value. 0 is near the background; the best value has the strongest shade. */
static int shade_of(const struct map *m, double value)
{
    int i = tune_shade_at(tune_scale_position(&m->scale, value));
    return m->heat->best < 0 ? TUNE_SHADES - 1 - i : i;
}

/* Terminals are assumed to be dark. Text on a shade is readable in any case. */
static int shade_on_dark(const struct map *m, int shade)
{
    return m->heat->best < 0 ? shade : TUNE_SHADES - 1 - shade;
}

/* Write a note that cells are merged, or nothing. */
static const char *merged_text(const struct map *m, char text[160])
{
    *text = 0;
    if (m->across > 1 || m->down > 1)
        snprintf(text, 160, "each cell is the mean of up to %d x %d values, because %d rows and %d "
                            "columns do not fit here",
                 m->down, m->across, m->heat->rows, m->heat->columns);
    return text;
}

/* ---- SVG ---- */

/* Sizes in pixels. */
enum { LABELS = 200, SIDE = 30, GAP = 8, KEY = 120, WIDEST = 150, TALLEST = 44, AREA = 560, FACET = 26, NARROWEST = 250, MOST = 100 };
enum { NAMED = 40 /* maximum number of columns that all have names, which may be turned */ };

/* Maps that share a heading and a legend: facets, or a single map. */
struct layout {
    struct map *maps;
    int count, across;   /* count: number of maps; across: number side by side */
    bool missing;
    char merged[160];
    double labels, cell_width, cell_height;
    double panel, height; /* width and height of a map with its labels */
    double below;        /* height of turned labels */
    int each;            /* every each-th column has a name */
    bool turned, numbers;
    const struct map *map; /* the map to draw, and its upper left cell */
    double left, top;
};

static double heading(FILE *out, const struct layout *l, double top)
{
    const struct tune_heat *h = l->maps->heat;
    return tune_svg_heading(out, l->labels, top, TUNE_SVG_WIDTH - l->labels - SIDE, h->title, h->unit, h->note, l->merged);
}

/* Find the facets that begin at m, and give them a common scale. Returns the width of the widest
 * number. */
static double take_facets(struct layout *l, struct map *m, int count)
{
    char text[32];
    double number = 0;
    const struct tune_heat *h = m->heat;
    *l = (struct layout){.maps = m, .count = 1};
    while (l->count < count && h->facet && m[l->count].heat->facet && !strcmp(m[l->count].heat->title, h->title) &&
           m[l->count].rows == m->rows && m[l->count].columns == m->columns)
        l->count++;
    for (int k = 0; k < l->count; k++) {
        tune_scale_hold(&m->scale, (double[]){m[k].scale.low, m[k].scale.high});
        m->whole &= m[k].whole;
        l->missing |= m[k].missing > 0;
    }
    set_format(m);
    for (int k = 0; k < l->count; k++) {
        m[k].scale = m->scale;
        for (int64_t i = 0; i < (int64_t)m->rows * m->columns; i++)
            if (!isnan(m[k].values[i]))
                number = fmax(number, tune_svg_width(value_text(m, m[k].values[i], text)));
    }
    return number;
}

/* Lay out the next figure of these maps. */
static struct layout next_figure(struct map *m, int count)
{
    struct layout l;
    const struct tune_heat *h = m->heat;
    double number = take_facets(&l, m, count), label = tune_svg_widest(h->x_names, h->columns);
    merged_text(m, l.merged);
    l.labels = fmax(76, SIDE + fmin(tune_svg_widest(h->y_names, h->rows), LABELS) + GAP);
    l.across = tune_svg_across(l.count, TUNE_SVG_WIDTH - KEY, l.labels + fmin(m->columns * (number + 6), NARROWEST));
    l.cell_width = fmin(((TUNE_SVG_WIDTH - KEY) / (double)l.across - l.labels) / m->columns, WIDEST);
    l.panel = l.labels + m->columns * l.cell_width;
    l.cell_height = fmin((double)AREA / m->rows, m->rows < 3 ? 1.5 * TALLEST : TALLEST);
    l.numbers = number + 6 <= l.cell_width && l.cell_height >= 16;
    l.turned = label > l.cell_width - 6 && (m->columns <= NAMED || label > 80);
    l.each = l.turned ? (int)ceil(22 / l.cell_width) : label > l.cell_width - 6 ? (int)ceil((label + 10) / l.cell_width) : 1;
    l.below = l.turned ? tune_svg_below_height(label) : 0;
    l.height = (h->facet ? FACET : 4) + fmax(l.cell_height * m->rows, 150) + 56 + l.below;
    return l;
}

static double figure_height(const struct layout *l)
{
    return heading(NULL, l, 0) + l->height * ((l->count + l->across - 1) / l->across);
}

static void put_hint(const struct layout *l, int row, int column, FILE *out)
{
    char text[32];
    const struct map *m = l->map;
    const struct tune_heat *h = m->heat;
    double v = m->values[(int64_t)row * m->columns + column];
    const char *hint = h->hints && m->across == 1 && m->down == 1 ? h->hints[(int64_t)row * h->columns + column] : NULL;
    snprintf(text, sizeof text, ": %.6g ", v);
    const char *const parts[] = {h->y_title, " ", h->y_names[row * m->down], ", ", h->x_title, " ", h->x_names[column * m->across],
                                 isnan(v) ? ": missing" : text, isnan(v) ? "" : h->unit, !hint ? "" : isnan(v) ? ": " : ", ",
                                 hint ? hint : ""};
    fputs("<title>", out);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        tune_svg_text(out, parts[i]);
    fputs("</title>", out);
}

static void put_cells(const struct layout *l, FILE *out)
{
    char text[32], spread[16], class_name[32];
    const struct map *m = l->map;
    double gap = l->cell_width > 14 && l->cell_height > 14 ? 1 : 0, away = gap > 0 ? 1 : 4;
    fprintf(out, "<g class=\"cells\"%s data-left=\"%.2f\" data-top=\"%.2f\" data-width=\"%.2f\" data-height=\"%.2f\" data-columns=\"%d\" data-rows=\"%d\" data-x-title=\"",
            gap > 0 ? "" : " shape-rendering=\"crispEdges\"", l->left, l->top, m->columns * l->cell_width, m->rows * l->cell_height, m->columns, m->rows);
    tune_svg_text(out, m->heat->x_title);
    fputs("\" data-y-title=\"", out);
    tune_svg_text(out, m->heat->y_title);
    fputs("\">\n", out);
    for (int r = 0; r < m->rows; r++)
        for (int c = 0; c < m->columns; c++) {
            int64_t i = (int64_t)r * m->columns + c;
            double x = l->left + c * l->cell_width, y = l->top + r * l->cell_height, v = m->values[i];
            int64_t row = m->heat->table_rows && m->across == 1 && m->down == 1 ? m->heat->table_rows[i] : -1;
            fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" ", x, y, l->cell_width - gap,
                    l->cell_height - gap);
            if (row >= 0)
                fprintf(out, "data-row=\"%lld\" ", (long long)row);
            if (isnan(v))
                fputs("fill=\"url(#missing)\">", out);
            else
                fprintf(out, "class=\"q%d\">", shade_of(m, v));
            put_hint(l, r, c, out);
            fputs("</rect>\n", out);
            if (!l->numbers || isnan(v))
                continue;
            spread_text(m, i, true, spread);
            bool below = *spread && l->cell_height >= 32;
            double middle = x + l->cell_width / 2, line = y + l->cell_height / 2;
            snprintf(class_name, sizeof class_name, "t%d%s", shade_of(m, v), i == m->best ? " bold" : "");
            tune_svg_label(out, class_name, middle, line + (below ? -2.5 : 4.5), "middle", 0, 0, value_text(m, v, text));
            snprintf(class_name, sizeof class_name, "t%d small", shade_of(m, v));
            if (below)
                tune_svg_label(out, class_name, middle, line + 12, "middle", 0, 0, spread);
        }
    fputs("</g>\n", out);
    for (int k = 0; k < 2 && m->best >= 0; k++)
        fprintf(out, "<rect class=\"mark%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" pointer-events=\"none\"/>\n",
                k ? "" : " halo", l->left + m->best % m->columns * l->cell_width - away,
                l->top + m->best / m->columns * l->cell_height - away, l->cell_width - gap + 2 * away,
                l->cell_height - gap + 2 * away);
}

/* Draw labels of rows and columns. If there are too many, draw every second, third, ... */
static void put_labels(const struct layout *l, FILE *out)
{
    const struct map *m = l->map;
    double bottom = l->top + m->rows * l->cell_height, side = tune_svg_width(m->heat->y_title);
    int each = (int)ceil(15 / l->cell_height);
    for (int r = 0; r < m->rows; r += each)
        tune_svg_label(out, "note", l->left - GAP, l->top + (r + 0.5) * l->cell_height + 4.5, "end", 0, LABELS,
                       m->heat->y_names[r * m->down]);
    for (int c = 0; c < m->columns; c += l->each)
        tune_svg_below(out, l->left + (c + 0.5) * l->cell_width, bottom + 18, l->turned,
                       l->turned ? l->labels + (c + 0.5) * l->cell_width : l->cell_width * l->each, m->heat->x_names[c * m->across]);
    double width = m->columns * l->cell_width, title = tune_svg_width(m->heat->x_title);
    double center = fmax(l->left + width / 2, fmin(l->left + title / 2, TUNE_SVG_WIDTH / 2.0));
    tune_svg_label(out, "note", center, bottom + 40 + l->below, "middle", 0, l->across > 1 ? width : TUNE_SVG_WIDTH - 40,
                   m->heat->x_title);
    double along = l->height - 60, middle = l->top + fmax(m->rows * l->cell_height, fmin(side, along)) / 2;
    tune_svg_label(out, "note", l->left - l->labels + 18, middle, "middle", -90, along, m->heat->y_title);
}

/* Draw the legend: colours with values, and the meaning of hatching. */
static void put_key(const struct layout *l, double top, FILE *out)
{
    const struct map *m = l->maps;
    double x = l->across * l->panel + 24, height = fmax(m->rows * l->cell_height, 120) - (l->missing ? 30 : 0);
    tune_svg_key(out, x, top, height, &m->scale, 0, m->heat->best < 0);
    if (l->missing) {
        fprintf(out, "<rect fill=\"url(#missing)\" x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"14\"/>", x, top + height + 14);
        tune_svg_label(out, "note", x + 23, top + height + 25.5, "start", 0, 0, "missing");
    }
}

static void put_figure(struct layout *l, double top, FILE *out)
{
    const char *facet = l->maps->heat->facet;
    top += heading(out, l, top) + (facet ? FACET : 4);
    for (int k = 0; k < l->count; k++) {
        l->map = &l->maps[k];
        l->left = l->panel * (k % l->across) + l->labels;
        l->top = top + l->height * (k / l->across);
        if (facet)
            tune_svg_label(out, "ink", l->left, l->top - 10, "start", 0, l->panel - l->labels, l->map->heat->facet);
        put_cells(l, out);
        put_labels(l, out);
    }
    put_key(l, top, out);
}

/* Draw all maps. height: their total height. */
static void put_document(struct map *maps, int count, double height, FILE *out)
{
    struct layout l;
    double top = 0;
    tune_svg_begin(out, TUNE_SVG_WIDTH, height, true);
    fputs("<style>.cells text{pointer-events:none}.bold{font-weight:700}text.small{font-size:11px}</style>\n<defs><pattern id=\"missing\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
          "<path class=\"frame\" stroke-opacity=\"0.6\" d=\"M-1 7L7 -1M2 10L10 2M-4 4L4 -4\"/></pattern></defs>\n", out);
    for (int i = 0; i < count; i += l.count) {
        l = next_figure(maps + i, count - i);
        put_figure(&l, top, out);
        top += figure_height(&l);
    }
    tune_svg_end(out);
}

int tune_heat_svg(const struct tune_heat *heats, int count, FILE *out)
{
    struct map *maps = calloc((size_t)count + 1, sizeof *maps);
    struct layout l;
    double height = 0;
    int made = 0, status = maps ? 0 : tune_error_cannot("no memory to draw %d maps", count);
    for (; made < count && status == 0; made += status == 0)
        status = make_map(&maps[made], &heats[made], MOST, MOST);
    for (int i = 0; i < count && status == 0; i += l.count) {
        l = next_figure(maps + i, count - i);
        height += figure_height(&l);
    }
    if (status == 0)
        put_document(maps, count, height, out);
    while (made > 0)
        free(maps[--made].values);
    free(maps);
    return status;
}

/* ---- terminal ---- */

/* Layout of a map in characters. */
struct setting {
    struct map map;
    const struct tune_terminal *how;
    int labels;   /* width of the rows' names */
    int cell;     /* width of a cell */
    bool numbers, letters, spreads;
};

/* Maximum heights of a map with numbers, and with colours only. */
enum { MOST_DOWN = 200, MOST_DOWN_COLORS = 50 };

/* Write the number of cell i, marked if it is the best, and with its spread if it fits. */
static const char *number_text(const struct setting *s, int64_t i, char text[64])
{
    char number[32], spread[16] = "";
    if (s->spreads)
        spread_text(&s->map, i, s->how->unicode, spread);
    snprintf(text, 64, "%s%s%s%s", value_text(&s->map, s->map.values[i], number), i == s->map.best ? "*" : "",
             *spread ? " " : "", spread);
    return text;
}

static int widest_number(const struct setting *s)
{
    char text[64];
    int most = 1;
    for (int64_t i = 0; i < (int64_t)s->map.rows * s->map.columns; i++)
        if (!isnan(s->map.values[i]) && tune_width(number_text(s, i, text)) > most)
            most = tune_width(text);
    return most;
}

/* Choose the first layout that fits: numbers with spread and names, no spread, letters instead of
 * names, or only colours. */
static int set_map(struct setting *s, const struct tune_heat *h)
{
    int names = tune_plain_widest(h->x_names, h->columns), title = tune_plain_width(h->y_title), width = s->how->width - 1;
    s->labels = tune_plain_widest(h->y_names, h->rows);
    s->labels = s->labels > title ? s->labels : title;
    s->labels = s->labels < width / 3 ? s->labels : width / 3;
    int available = width - s->labels - 2 > 1 ? width - s->labels - 2 : 1, most = h->columns > 0 ? available / h->columns : 0;
    TRY(make_map(&s->map, h, available, MOST_DOWN));
    s->spreads = true;
    s->spreads = widest_number(s) + 2 <= most;
    int number = widest_number(s);
    s->letters = names + 2 > most;
    s->numbers = number + 1 <= most;
    s->cell = (s->letters || number > names ? number : names) + 2;
    s->cell = s->cell < most ? s->cell : most;
    if (s->numbers)
        return 0;
    s->cell = 2 * s->map.columns <= available ? 2 : 1;
    free(s->map.values);
    return make_map(&s->map, h, available, MOST_DOWN_COLORS);
}

static const char *missing_mark(const struct setting *s)
{
    return s->how->unicode ? "\u00b7" : s->numbers ? "-" : ".";
}

static void put_value(const struct setting *s, int64_t i, FILE *out)
{
    char text[64] = "";
    double v = s->map.values[i];
    int shade = tune_shade_at(tune_scale_position(&s->map.scale, v));
    if (isnan(v))
        snprintf(text, sizeof text, "%s", missing_mark(s));
    else if (s->numbers)
        number_text(s, i, text);
    else if (!s->how->color)
        snprintf(text, sizeof text, "%d", shade * 10 / TUNE_SHADES);
    if (!isnan(v))
        tune_shade_terminal(s->how, shade_on_dark(&s->map, shade), true, out);
    tune_put_in(out, text, s->cell, s->numbers ? '^' : '<', s->how->unicode);
    if (!isnan(v))
        tune_shade_end(s->how, out);
}

/* Print the title and the names of the columns, or letters. Without numbers, print only the first
 * and the last name. */
static void put_head(const struct setting *s, FILE *out)
{
    const struct tune_heat *h = s->map.heat;
    bool unicode = s->how->unicode;
    int title = tune_plain_width(h->x_title), area = s->map.columns * s->cell, available = s->how->width - 1 - s->labels - 2;
    fprintf(out, "%*s", s->labels + 2, "");
    tune_put_in(out, h->x_title, title <= area ? area : title < available ? title : available, title <= area ? '^' : '<', unicode);
    fputc('\n', out);
    tune_put_in(out, h->y_title, s->labels, '>', unicode);
    fputs("  ", out);
    for (int c = 0; c < s->map.columns && s->numbers; c++) {
        const char letter[2] = {tune_key_letter(c), 0};
        tune_put_in(out, s->letters ? letter : h->x_names[c], s->cell, '^', unicode);
    }
    if (!s->numbers) {
        tune_put_in(out, h->x_names[0], area / 2, '<', unicode);
        tune_put_in(out, h->x_names[h->columns - 1], area - area / 2, '>', unicode);
    }
    fputc('\n', out);
}

/* Print the meaning of colours, digits and marks. */
static void put_legend(const struct setting *s, FILE *out)
{
    char low[32], high[32], lead[32], text[128] = "";
    const struct map *m = &s->map;
    const struct tune_heat *h = m->heat;
    int width = s->how->width - 1;
    value_text(m, m->scale.low, low);
    value_text(m, m->scale.high, high);
    snprintf(lead, sizeof lead, "%*s", s->labels + 2 < 30 ? s->labels + 2 : 0, "");
    if (s->how->color) {
        int bar = width - (int)(strlen(lead) + strlen(low) + strlen(high)) - 2;
        bar = bar > TUNE_SHADES ? TUNE_SHADES : bar;
        fprintf(out, "%s%s ", lead, low);
        for (int i = 0; i < bar; i++) {
            tune_shade_terminal(s->how, shade_on_dark(m, i * TUNE_SHADES / bar), true, out);
            fputc(' ', out);
        }
        tune_shade_end(s->how, out);
        fprintf(out, " %s\n", high);
    } else if (!s->numbers) {
        snprintf(text, sizeof text, "0 is %s, 9 is %s   ", low, high);
    }
    size_t n = strlen(text);
    snprintf(text + n, sizeof text - n, "%s%s%s", m->best < 0 || !s->numbers ? "" : h->best > 0 ? "*: the highest   " : "*: the lowest   ",
             m->missing ? missing_mark(s) : "", m->missing ? ": missing" : "");
    for (n = strlen(text); n > 0 && text[n - 1] == ' ';)
        text[--n] = 0;
    if (*text)
        tune_put_folded(out, lead, text, width);
}

int tune_heat_terminal(const struct tune_heat *heat, const struct tune_terminal *how, FILE *out)
{
    struct setting s = {.how = how};
    TRY(set_map(&s, heat));
    struct map *m = &s.map;
    char merged[160];
    const char *const parts[] = {heat->title, *heat->unit ? ", " : "", heat->unit, heat->facet ? ", " : "", heat->facet ? heat->facet : ""};
    fprintf(out, "%*s", s.labels + 2, "");
    for (int i = 0; i < 5; i++)
        tune_put_plain(out, parts[i]);
    fputc('\n', out);
    tune_put_note(out, s.labels + 2, heat->note, merged_text(m, merged), how->width - 1);
    put_head(&s, out);
    for (int r = 0; r < m->rows; r++) {
        tune_put_in(out, heat->y_names[r * m->down], s.labels, '>', how->unicode);
        fputs("  ", out);
        for (int c = 0; c < m->columns; c++)
            put_value(&s, (int64_t)r * m->columns + c, out);
        fputc('\n', out);
    }
    if (s.numbers && s.letters)
        tune_put_key(out, heat->x_names, heat->columns, s.labels + 2, how->width - 1, how->unicode);
    put_legend(&s, out);
    free(m->values);
    return 0;
}
