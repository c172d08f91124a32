/* svg.c - the head, style and texts of our SVG documents. They have plain elements and a style
 * sheet, no scripts and nothing to fetch.
 *
 * Colours are classes: first those for light pages, then those for dark pages in a media query.
 * Programs without media queries ignore the second part. */
#include "views/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "files/json.h"
#include "views/shades.h"
#include "views/text.h"

enum { HEADING = 40, NOTE = 20 /* pixels */ };

static const char *const light[TUNE_SVG_COLORS] = {"#1c6fd6", "#d9560b", "#2a8a3e", "#9a36ac",
                                                    "#d02f3f", "#0b7f8c", "#8a6100", "#5b57c9"};
static const char *const dark[TUNE_SVG_COLORS] = {"#6cb0ff", "#ff9a4d", "#6fd080", "#e08cf0",
                                                   "#ff7f86", "#4fd0dc", "#e0b54a", "#a9a5ff"};

static void put_bytes(FILE *out, const char *text, size_t size)
{
    for (; size > 0; size--, text++) {
        unsigned char c = (unsigned char)*text;
        bool no_character = c == 0xef && size >= 3 && (unsigned char)text[1] == 0xbf && (unsigned char)text[2] >= 0xbe; /* U+FFFE */
        if (no_character) {
            fputc('?', out);
            text += 2, size -= 2;
        } else if (c == '<' || c == '>' || c == '&' || c == '"')
            fprintf(out, "&#%d;", c);
        else
            fputc(c < 32 || c == 127 ? '?' : c, out);
    }
}

static void put_text(FILE *out, const char *text, size_t size)
{
    size_t bad = 0;
    while (size > 0) {
        bool valid = tune_utf8_valid(text, size, &bad);
        size_t n = valid ? size : bad;
        put_bytes(out, text, n);
        if (!valid) {
            fputc('?', out);
            n++;
        }
        text += n;
        size -= n;
    }
}

void tune_svg_text(FILE *out, const char *text)
{
    put_text(out, text, strlen(text));
}

static void put_shades(FILE *out, bool on_dark)
{
    for (int i = 0; i < TUNE_SHADES; i++) {
        int k = on_dark ? TUNE_SHADES - 1 - i : i;
        struct tune_shade c = tune_shade(k);
        fprintf(out, ".s%d{stroke:#%02x%02x%02x}.q%d{fill:#%02x%02x%02x}.t%d{fill:%s}\n", i, c.red, c.green, c.blue,
                i, c.red, c.green, c.blue, i, tune_shade_takes_black(k) ? "#000" : "#fff");
    }
}

void tune_svg_style(FILE *out, bool shades)
{
    static const char *const rules[2][5] = {{"#ffffff", "#22272e", "#e3e6ea", "#59636e", "0.36"},
                                            {"#14171b", "#e6e9ed", "#2c323a", "#9aa4af", "0.42"}};
    fputs("text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;font-size:13px}\n"
          ".title{font-size:16px;font-weight:600}\n.curve{fill:none;stroke-width:2;stroke-linejoin:round;stroke-linecap:round}\n"
          ".raw{stroke-width:1}\n.dotted{stroke-width:1.5;stroke-dasharray:5 4}\n.bar{fill:none;stroke-width:1.5}\n"
          ".band{stroke:none;fill-opacity:0.2}\n", out);
    for (int d = 0; d < 2; d++) {
        if (d == 1)
            fputs("@media (prefers-color-scheme:dark){\n", out);
        fprintf(out, ".paper{fill:%s}\n.ink{fill:%s}\n.grid{stroke:%s;stroke-width:1}\n.note{fill:%s}\n.raw{stroke-opacity:%s}\n",
                rules[d][0], rules[d][1], rules[d][2], rules[d][3], rules[d][4]);
        fprintf(out, ".frame{fill:none;stroke:%s;stroke-width:1}\n", rules[d][3]);
        fprintf(out, ".mark{fill:none;stroke:%s;stroke-width:2}\n", rules[d][1]);
        fprintf(out, ".halo{stroke:%s;stroke-width:4;stroke-linejoin:round}\n", rules[d][0]);
        for (int i = 0; i < TUNE_SVG_COLORS; i++)
            fprintf(out, ".c%d{stroke:%s}.f%d{fill:%s}\n", i, (d ? dark : light)[i], i, (d ? dark : light)[i]);
        if (shades)
            put_shades(out, d == 1);
    }
    fputs("}\n", out);
}

void tune_svg_begin(FILE *out, double width, double height, bool shades)
{
    fprintf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
            "role=\"img\">\n", width, height, width, height);
    fputs("<style>\n", out);
    tune_svg_style(out, shades);
    fputs("</style>\n", out);
    fprintf(out, "<rect class=\"paper\" width=\"%.0f\" height=\"%.0f\"/>\n", width, height);
}

void tune_svg_end(FILE *out)
{
    fputs("</svg>\n", out);
}

double tune_svg_width(const char *text)
{
    return 7.7 * tune_width(text);
}

double tune_svg_widest(const char *const *texts, int count)
{
    double most = 0;
    for (int i = 0; i < count; i++)
        most = fmax(most, tune_svg_width(texts[i]));
    return most;
}

void tune_svg_label(FILE *out, const char *class_name, double x, double y, const char *anchor, double degrees, double width,
                    const char *text)
{
    size_t size = strlen(text);
    bool cut = width > 0 && tune_svg_width(text) > width;
    fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"", class_name, x, y, anchor);
    if (degrees != 0)
        fprintf(out, " transform=\"rotate(%.0f %.1f %.1f)\"", degrees, x, y);
    fputc('>', out);
    if (cut)
        size = tune_bytes_of(text, (int)(width / tune_svg_width("x")) - 1);
    put_text(out, text, size);
    if (cut) {
        fputs("\u2026<title>", out);
        tune_svg_text(out, text);
        fputs("</title>", out);
    }
    fputs("</text>\n", out);
}

int tune_svg_across(int count, double width, double least)
{
    int most = (int)fmax(1, width / least), rows = (count + most - 1) / most;
    return (count + rows - 1) / rows;
}

double tune_svg_below_height(double width)
{
    return fmin(width, TUNE_SVG_BELOW) * 0.643 + 4; /* sin 40 degrees */
}

void tune_svg_below(FILE *out, double x, double y, bool turned, double width, const char *text)
{
    if (turned)
        tune_svg_label(out, "note", x + 6, y - 4, "end", -40, fmin(TUNE_SVG_BELOW, width / 0.766), text); /* cos 40 degrees */
    else
        tune_svg_label(out, "note", x, y, "middle", 0, width, text);
}

/* Write a note in lines of at most width pixels, from y on. Returns the number of lines; out NULL:
 * only count them. */
static int put_note(FILE *out, double x, double y, double width, const char *note)
{
    int lines = 0, columns = (int)(width / tune_svg_width("x"));
    for (size_t size; *note; note += size + strspn(note + size, " "), lines++) {
        size = tune_bytes_of(note, columns);
        size_t word = size; /* the line ends before the word that does not fit */
        while (note[size] && word > 0 && note[word] != ' ')
            word--;
        size = word > 0 ? word : size > 0 ? size : strlen(note);
        if (!out)
            continue;
        fprintf(out, "<text class=\"note\" x=\"%.1f\" y=\"%.1f\">", x, y + NOTE * lines);
        put_text(out, note, size);
        fputs("</text>\n", out);
    }
    return lines;
}

double tune_svg_heading(FILE *out, double x, double top, double width, const char *title, const char *unit, const char *note,
                        const char *more)
{
    int lines = put_note(out, x, top + 48, width, note ? note : "");
    lines += put_note(out, x, top + 48 + NOTE * lines, width, more ? more : "");
    if (out) {
        fprintf(out, "<text class=\"ink title\" x=\"%.0f\" y=\"%.0f\">", x, top + 28);
        tune_svg_text(out, title);
        if (unit && *unit) {
            fputs("<tspan class=\"note\" font-weight=\"400\">, ", out);
            tune_svg_text(out, unit);
            fputs("</tspan>", out);
        }
        fputs("</text>\n", out);
    }
    return HEADING + NOTE * lines;
}

void tune_svg_key(FILE *out, double x, double top, double height, const struct tune_scale *scale, int first, bool falling)
{
    char text[32];
    struct tune_scale ticks = *scale;
    double each = height / (TUNE_SHADES - first);
    for (int i = first; i < TUNE_SHADES; i++)
        fprintf(out, "<rect class=\"q%d\" x=\"%.1f\" y=\"%.2f\" width=\"14\" height=\"%.2f\"/>",
                falling ? TUNE_SHADES - 1 + first - i : i, x, top + height - (i - first + 1) * each, each + 0.3);
    fputc('\n', out);
    tune_scale_ticks(&ticks, height > 200 ? 8 : 5);
    for (int i = 0; i < ticks.ticks; i++) {
        double y = top + height * (1 - tune_scale_position(&ticks, ticks.tick[i]));
        fprintf(out, "<path class=\"frame\" d=\"M%.1f %.1fh4\"/>", x + 14, y);
        tune_svg_label(out, "note", x + 20, y + 4.5, "start", 0, 0, tune_scale_label(&ticks, i, text));
    }
}
