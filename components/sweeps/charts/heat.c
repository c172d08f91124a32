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

/* The map to draw: the heat itself, or one with down x across neighbouring cells joined into
 * one. */
struct map {
    const struct tune_heat *heat;
    struct tune_scale scale;
    int columns, rows;
    int across, down;
    double *values; /* [rows,columns] */
    int best;       /* index of the best value; -1: none */
    int missing;
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
                mean += (v - mean) / ++n; /* a sum may overflow */
        }
    return n ? mean : NAN;
}

/* Make a map with at most that many columns and rows. The caller frees m->values. */
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
    bool whole = true;
    for (int64_t i = 0; i < count; i++) {
        double v = m->values[i] = mean_of(m, (int)(i / m->columns), (int)(i % m->columns));
        m->missing += isnan(v);
        whole &= isnan(v) || v == rint(v);
        if (h->best && !isnan(v) && (m->best < 0 || h->best * v > h->best * m->values[m->best]))
            m->best = (int)i;
    }
    if (!tune_scale_over(&m->scale, m->values, count, h->logarithmic ? 10 : 0, 0)) {
        free(m->values);
        return tune_error_set("\"%s\": there is not one value to draw%s", h->title,
                              h->logarithmic ? " (on a logarithmic scale)" : "");
    }
    tune_scale_hold(&m->scale, h->holds);
    double step = (m->scale.high - m->scale.low) / 200;
    tune_scale_spell(&m->scale, whole ? fmax(step, 1) : step);
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

/* The shade of a value, 0 near the background. The best value has the strongest shade. */
static int shade_of(const struct map *m, double value)
{
    int i = tune_shade_at(tune_scale_place(&m->scale, value));
    return m->heat->best < 0 ? TUNE_SHADES - 1 - i : i;
}

/* Terminals are assumed to be dark. Text on a shade is readable in any case. */
static int shade_on_dark(const struct map *m, int shade)
{
    return m->heat->best < 0 ? shade : TUNE_SHADES - 1 - shade;
}

/* Write a note that cells are joined, or nothing. */
static const char *joined_text(const struct map *m, char text[160])
{
    *text = 0;
    if (m->across > 1 || m->down > 1)
        snprintf(text, 160, "each cell is the mean of up to %d x %d: %d rows and %d columns are more than fit here",
                 m->down, m->across, m->heat->rows, m->heat->columns);
    return text;
}

/* ---- SVG ---- */

/* Sizes in pixels. */
enum { LABELS = 200, SIDE = 30, GAP = 8, KEY = 120, WIDEST = 150, TALLEST = 44, AREA = 560, MOST_CELLS = 10000, MOST_ACROSS = 200 };
enum { NAMED = 40 /* with up to this many columns each gets its name, turned if needed */ };

/* The position of a map in its document. */
struct layout {
    struct map map;
    char joined[160];
    double left, top, height, cell_width, cell_height;
    double below;       /* height of turned labels */
    int each;           /* one column out of this many gets its name */
    bool turned, numbers;
};

/* Compute the layout, without its origin. */
static int lay_out(struct layout *l, const struct tune_heat *h)
{
    char text[32];
    double number = 0;
    int columns = h->columns < MOST_ACROSS ? h->columns : MOST_ACROSS;
    TRY(make_map(&l->map, h, MOST_ACROSS, MOST_CELLS / (columns > 0 ? columns : 1)));
    struct map *m = &l->map;
    joined_text(m, l->joined);
    for (int64_t i = 0; i < (int64_t)m->rows * m->columns; i++)
        if (!isnan(m->values[i]))
            number = fmax(number, tune_svg_width(value_text(m, m->values[i], text)));
    l->left = SIDE + fmin(tune_svg_widest(h->y_names, h->rows), LABELS) + GAP;
    l->left = fmax(l->left, 76);
    l->cell_width = fmin((TUNE_SVG_WIDTH - KEY - l->left) / m->columns, WIDEST);
    l->cell_height = fmin((double)AREA / m->rows, m->rows < 3 ? 1.5 * TALLEST : TALLEST);
    l->numbers = number + 6 <= l->cell_width && l->cell_height >= 16;
    double label = tune_svg_widest(h->x_names, h->columns);
    l->turned = label > l->cell_width - 6 && (m->columns <= NAMED || label > 80);
    l->each = l->turned ? (int)ceil(22 / l->cell_width) : label > l->cell_width - 6 ? (int)ceil((label + 10) / l->cell_width) : 1;
    l->below = l->turned ? tune_svg_below_height(label) : 0;
    l->height = tune_svg_heading_height(h->note, l->joined) + fmax(l->cell_height * m->rows, 150) + 60 + l->below;
    return 0;
}

static void put_hint(const struct layout *l, int row, int column, FILE *out)
{
    const struct map *m = &l->map;
    const struct tune_heat *h = m->heat;
    double v = m->values[(int64_t)row * m->columns + column];
    const char *hint = h->hints && m->across == 1 && m->down == 1 ? h->hints[(int64_t)row * h->columns + column] : NULL;
    fputs("<title>", out);
    tune_svg_text(out, h->y_title);
    fputc(' ', out);
    tune_svg_text(out, h->y_names[row * m->down]);
    fputs(", ", out);
    tune_svg_text(out, h->x_title);
    fputc(' ', out);
    tune_svg_text(out, h->x_names[column * m->across]);
    if (isnan(v))
        fputs(": missing", out);
    else
        fprintf(out, ": %.6g ", v);
    tune_svg_text(out, isnan(v) ? "" : h->unit);
    if (hint) {
        fputs(isnan(v) ? ": " : ", ", out);
        tune_svg_text(out, hint);
    }
    fputs("</title>", out);
}

static void put_cells(const struct layout *l, FILE *out)
{
    char text[32], spread[16];
    const struct map *m = &l->map;
    double gap = l->cell_width > 14 && l->cell_height > 14 ? 1 : 0, away = gap > 0 ? 1 : 4;
    fputs(gap > 0 ? "<g>\n" : "<g shape-rendering=\"crispEdges\">\n", out);
    for (int r = 0; r < m->rows; r++)
        for (int c = 0; c < m->columns; c++) {
            int64_t i = (int64_t)r * m->columns + c;
            double x = l->left + c * l->cell_width, y = l->top + r * l->cell_height, v = m->values[i];
            fprintf(out, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" ", x, y, l->cell_width - gap,
                    l->cell_height - gap);
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
            fprintf(out, "<text class=\"t%d\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" pointer-events=\"none\"%s>%s</text>\n",
                    shade_of(m, v), x + l->cell_width / 2, y + l->cell_height / 2 + (below ? -2.5 : 4.5),
                    i == m->best ? " font-weight=\"700\"" : "", value_text(m, v, text));
            if (below)
                fprintf(out, "<text class=\"t%d\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" pointer-events=\"none\" "
                        "style=\"font-size:11px\">%s</text>\n",
                        shade_of(m, v), x + l->cell_width / 2, y + l->cell_height / 2 + 12, spread);
        }
    fputs("</g>\n", out);
    for (int k = 0; k < 2 && m->best >= 0; k++)
        fprintf(out, "<rect class=\"mark%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" pointer-events=\"none\"/>\n",
                k ? "" : " halo", l->left + m->best % m->columns * l->cell_width - away,
                l->top + m->best / m->columns * l->cell_height - away, l->cell_width - gap + 2 * away,
                l->cell_height - gap + 2 * away);
}

/* Draw labels of rows and columns; with too many, of every second, third, ... */
static void put_labels(const struct layout *l, FILE *out)
{
    const struct map *m = &l->map;
    double bottom = l->top + m->rows * l->cell_height, side = tune_svg_width(m->heat->y_title);
    int each = (int)ceil(15 / l->cell_height);
    for (int r = 0; r < m->rows; r += each)
        tune_svg_label(out, "note", l->left - GAP, l->top + (r + 0.5) * l->cell_height + 4.5, "end", 0, LABELS,
                       m->heat->y_names[r * m->down]);
    for (int c = 0; c < m->columns; c += l->each)
        tune_svg_below(out, l->left + (c + 0.5) * l->cell_width, bottom + 18, l->turned, l->cell_width * l->each,
                       m->heat->x_names[c * m->across]);
    double width = m->columns * l->cell_width, title = tune_svg_width(m->heat->x_title);
    double center = fmax(l->left + width / 2, fmin(l->left + title / 2, TUNE_SVG_WIDTH / 2.0));
    tune_svg_label(out, "note", center, bottom + 40 + l->below, "middle", 0, TUNE_SVG_WIDTH - 40, m->heat->x_title);
    double along = l->height - 60, middle = l->top + fmax(m->rows * l->cell_height, fmin(side, along)) / 2;
    tune_svg_label(out, "note", 18, middle, "middle", -90, along, m->heat->y_title);
}

/* Draw the legend: colours with values, and the meaning of hatching. */
static void put_key(struct layout *l, FILE *out)
{
    char text[32];
    struct map *m = &l->map;
    struct tune_scale ticks = m->scale;
    double x = l->left + m->columns * l->cell_width + 24, height = fmax(m->rows * l->cell_height, 120) - (m->missing ? 30 : 0);
    double each = height / TUNE_SHADES;
    for (int i = 0; i < TUNE_SHADES; i++)
        fprintf(out, "<rect class=\"q%d\" x=\"%.1f\" y=\"%.2f\" width=\"14\" height=\"%.2f\"/>",
                m->heat->best < 0 ? TUNE_SHADES - 1 - i : i, x, l->top + height - (i + 1) * each, each + 0.3);
    fputc('\n', out);
    tune_scale_ticks(&ticks, height > 200 ? 8 : 5);
    for (int i = 0; i < ticks.ticks; i++) {
        double y = l->top + height * (1 - tune_scale_place(&ticks, ticks.tick[i]));
        fprintf(out, "<path class=\"frame\" d=\"M%.1f %.1fh4\"/>", x + 14, y);
        tune_svg_label(out, "note", x + 23, y + 4.5, "start", 0, 0, tune_scale_label(&ticks, i, text));
    }
    if (m->missing) {
        fprintf(out, "<rect fill=\"url(#missing)\" x=\"%.1f\" y=\"%.1f\" width=\"14\" height=\"14\"/>", x, l->top + height + 14);
        tune_svg_label(out, "note", x + 23, l->top + height + 25.5, "start", 0, 0, "missing");
    }
}

static void put_map(struct layout *l, double top, FILE *out)
{
    const struct tune_heat *h = l->map.heat;
    tune_svg_heading(out, l->left, top, h->title, h->unit, h->note, l->joined);
    l->top = top + tune_svg_heading_height(h->note, l->joined) + 4;
    put_cells(l, out);
    put_labels(l, out);
    put_key(l, out);
}

int tune_heat_svg(const struct tune_heat *heats, int count, FILE *out)
{
    struct layout *l = calloc((size_t)count + 1, sizeof *l);
    double height = 0, top = 0;
    int made = 0;
    for (; l && made < count && lay_out(&l[made], &heats[made]) == 0; made++)
        height += l[made].height;
    int status = l && made == count ? 0 : -1;
    if (!l)
        tune_error_cannot("no memory to draw %d maps", count);
    if (status == 0) {
        tune_svg_begin(out, TUNE_SVG_WIDTH, height, true);
        fputs("<defs><pattern id=\"missing\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">"
              "<path class=\"frame\" stroke-opacity=\"0.6\" d=\"M-1 7L7 -1M2 10L10 2M-4 4L4 -4\"/></pattern></defs>\n", out);
    }
    for (int i = 0; i < made && status == 0; i++) {
        put_map(&l[i], top, out);
        top += l[i].height;
    }
    if (status == 0)
        tune_svg_end(out);
    for (int i = 0; i < made; i++)
        free(l[i].map.values);
    free(l);
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

enum { MOST_DOWN = 200, MOST_DOWN_COLORS = 50 /* height of a row with numbers, and with colours
                                               * alone */, LEAST_LABELS = 10 };

/* Width of the widest number, with or without its spread. */
static int widest_number(const struct setting *s, bool spreads)
{
    char text[32], spread[16];
    int most = 1;
    for (int64_t i = 0; i < (int64_t)s->map.rows * s->map.columns; i++) {
        if (isnan(s->map.values[i]))
            continue;
        int n = (int)strlen(value_text(&s->map, s->map.values[i], text)) + (i == s->map.best);
        if (spreads && *spread_text(&s->map, i, s->how->unicode, spread))
            n += 1 + tune_width(spread);
        most = n > most ? n : most;
    }
    return most;
}

/* Choose the layout that fits: numbers with spread and names; without spread; letters in place of
 * names; narrow cells; colours alone. */
static int set_map(struct setting *s, const struct tune_heat *h)
{
    int number, names = tune_plain_widest(h->x_names, h->columns), title = tune_plain_width(h->y_title), width = s->how->width - 1;
    s->labels = tune_plain_widest(h->y_names, h->rows);
    s->labels = s->labels > title ? s->labels : title;
    int wanted = s->labels;
    s->labels = wanted < width / 3 ? wanted : width / 3;
    int room = width - s->labels - 2;
    room = room < 1 ? 1 : room;
    TRY(make_map(&s->map, h, room, MOST_DOWN));
    number = widest_number(s, true);
    s->spreads = (int64_t)(number + 2) * h->columns <= room;
    number = s->spreads ? number : widest_number(s, false);
    s->cell = (number > names ? number : names) + 2;
    s->letters = (int64_t)s->cell * h->columns > room;
    s->cell = s->letters ? number + 2 : s->cell;
    s->numbers = (int64_t)s->cell * h->columns <= room;
    if (!s->numbers && width - 2 - (int64_t)(number + 1) * h->columns >= LEAST_LABELS) {
        s->cell = number + 1; /* numbers are more important than full names */
        s->labels = wanted < width - 2 - s->cell * h->columns ? wanted : width - 2 - s->cell * h->columns;
        s->letters = names > number;
        s->numbers = true;
    }
    if (s->numbers)
        return 0;
    s->cell = 2 * s->map.columns <= room ? 2 : 1;
    free(s->map.values);
    return make_map(&s->map, h, room, MOST_DOWN_COLORS);
}

static const char *missing_mark(const struct setting *s)
{
    return s->how->unicode ? "\u00b7" : s->numbers ? "-" : ".";
}

static void put_value(const struct setting *s, int64_t i, FILE *out)
{
    char text[64] = "", number[32], spread[16];
    const struct map *m = &s->map;
    double v = m->values[i];
    int shade = tune_shade_at(tune_scale_place(&m->scale, v));
    if (isnan(v))
        snprintf(text, sizeof text, "%s", missing_mark(s));
    else if (s->numbers)
        snprintf(text, sizeof text, "%s%s%s%s", value_text(m, v, number), i == m->best ? "*" : "",
                 s->spreads && *spread_text(m, i, s->how->unicode, spread) ? " " : "", s->spreads ? spread : "");
    else if (!s->how->color)
        snprintf(text, sizeof text, "%d", shade * 10 / TUNE_SHADES);
    if (!isnan(v))
        tune_shade_terminal(s->how, shade_on_dark(m, shade), true, out);
    tune_put_in(out, text, s->cell, s->numbers ? '^' : '<', s->how->unicode);
    if (!isnan(v))
        tune_shade_end(s->how, out);
}

/* Print the columns' meaning and their names, or letters for them. */
static void put_head(const struct setting *s, FILE *out)
{
    const struct map *m = &s->map;
    int title = tune_plain_width(m->heat->x_title), area = m->columns * s->cell, room = s->how->width - 1 - s->labels - 2;
    tune_put_in(out, "", s->labels + 2, '<', true);
    tune_put_in(out, m->heat->x_title, title <= area ? area : title < room ? title : room, title <= area ? '^' : '<',
                s->how->unicode);
    fputc('\n', out);
    tune_put_in(out, m->heat->y_title, s->labels, '>', s->how->unicode);
    fputs("  ", out);
    for (int c = 0; c < m->columns && s->numbers; c++) {
        const char letter[2] = {tune_key_letter(c), 0};
        tune_put_in(out, s->letters ? letter : m->heat->x_names[c], s->cell, '^', s->how->unicode);
    }
    fputc('\n', out);
}

/* Begin a piece of the legend with this width: on the same line if it fits, else on a new one. */
static void next_piece(const struct setting *s, int *column, int size, FILE *out)
{
    int width = s->how->width - 1, indent = s->labels + 2 + size <= width ? s->labels + 2 : 0;
    bool first = *column == 0, fits = *column + 3 + size <= width;
    if (!first && !fits)
        fputc('\n', out);
    fprintf(out, "%*s", first || !fits ? indent : 3, "");
    *column = (first || !fits ? indent : *column + 3) + size;
}

/* Print the colours, or digits, from the lowest to the highest value. */
static void put_colors(const struct setting *s, int *column, FILE *out)
{
    char low[32], high[32];
    const struct map *m = &s->map;
    const char *unit = m->heat->unit, *space = *unit ? " " : "";
    int size = tune_plain_width(unit) + (int)strlen(space);
    size += (int)strlen(value_text(m, m->scale.low, low)) + (int)strlen(value_text(m, m->scale.high, high));
    next_piece(s, column, size + (s->how->color ? TUNE_SHADES + 2 : 12), out);
    if (s->how->color) {
        fprintf(out, "%s ", low);
        for (int i = 0; i < TUNE_SHADES; i++) {
            tune_shade_terminal(s->how, shade_on_dark(m, i), true, out);
            fputc(' ', out);
            tune_shade_end(s->how, out);
        }
        fprintf(out, " %s%s", high, space);
    } else {
        fprintf(out, "0 is %s, 9 is %s%s", low, high, space);
    }
    tune_put_plain(out, unit);
}

/* Print the meaning of colours, digits and marks. */
static void put_legend(const struct setting *s, FILE *out)
{
    const struct map *m = &s->map;
    int column = 0;
    if (s->how->color || !s->numbers)
        put_colors(s, &column, out);
    if (m->best >= 0 && s->numbers) {
        next_piece(s, &column, 13, out);
        fprintf(out, "*: the %s", m->heat->best > 0 ? "highest" : "lowest");
    }
    if (m->missing) {
        next_piece(s, &column, 10, out);
        fprintf(out, "%s: missing", missing_mark(s));
    }
    if (column > 0)
        fputc('\n', out);
}

/* Print the names that the letters above the columns stand for; without letters, the first and last
 * name. */
static void put_names(const struct setting *s, FILE *out)
{
    const struct tune_heat *h = s->map.heat;
    if (s->numbers && s->letters)
        tune_put_key(out, h->x_names, h->columns, s->labels + 2, s->how->width - 1, s->how->unicode);
    if (s->numbers)
        return;
    int column = 0, room = s->how->width - 1 - 12, first = tune_plain_width(h->x_names[0]);
    int last = tune_plain_width(h->x_names[h->columns - 1]);
    first = first + last <= room ? first : room / 2;
    last = first + last <= room ? last : room / 2;
    next_piece(s, &column, 12 + first + last, out);
    fputs("columns: ", out);
    tune_put_in(out, h->x_names[0], first, '<', s->how->unicode);
    fputs("..", out);
    tune_put_in(out, h->x_names[h->columns - 1], last, '<', s->how->unicode);
    fputc('\n', out);
}

int tune_heat_terminal(const struct tune_heat *heat, const struct tune_terminal *how, FILE *out)
{
    struct setting s = {.how = how};
    TRY(set_map(&s, heat));
    struct map *m = &s.map;
    char joined[160];
    fprintf(out, "%*s", s.labels + 2, "");
    tune_put_plain(out, heat->title);
    fputs(*heat->unit ? ", " : "", out);
    tune_put_plain(out, heat->unit);
    fputc('\n', out);
    tune_put_note(out, s.labels + 2, heat->note, joined_text(m, joined));
    put_head(&s, out);
    for (int r = 0; r < m->rows; r++) {
        tune_put_in(out, heat->y_names[r * m->down], s.labels, '>', how->unicode);
        fputs("  ", out);
        for (int c = 0; c < m->columns; c++)
            put_value(&s, (int64_t)r * m->columns + c, out);
        fputc('\n', out);
    }
    put_names(&s, out);
    put_legend(&s, out);
    free(m->values);
    return 0;
}
