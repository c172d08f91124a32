/* matrix.c - counts in rows and columns as SVG. */
#include "views/matrix.h"

#include <math.h>

#include "views/shades.h"
#include "views/svg.h"

enum { MARGIN = 24, GAP = 8, TITLES = 26, WIDEST_NAME = 220, CELL = 64, CELL_HEIGHT = 34, LEAST = 5 /* pixels */ };

/* Sizes of a matrix. */
struct frame {
    double left, head, names; /* of the cells; height above them, and that of the columns' names */
    double cell, cell_height;
    bool turned;              /* the columns' names slant */
};

static double heading(FILE *out, const struct tune_matrix *m, double top)
{
    return tune_svg_heading(out, MARGIN, top, TUNE_SVG_WIDTH - 2 * MARGIN, m->title, NULL, m->note, NULL);
}

static struct frame frame_of(const struct tune_matrix *m)
{
    struct frame f;
    double widest = tune_svg_widest(m->column_names, m->columns);
    f.left = MARGIN + fmin(WIDEST_NAME, fmax(tune_svg_widest(m->row_names, m->rows), tune_svg_width(m->row_title))) + GAP;
    f.cell = fmax(LEAST, fmin(fmax(CELL, widest + GAP), (TUNE_SVG_WIDTH - f.left - MARGIN) / m->columns));
    f.cell_height = fmin(CELL_HEIGHT, fmax(LEAST, f.cell));
    f.turned = widest + GAP > f.cell;
    f.names = f.turned ? tune_svg_below_height(widest) + 13 : 20;
    f.head = heading(NULL, m, 0) + TITLES;
    return f;
}

static double height_of(const struct tune_matrix *m)
{
    struct frame f = frame_of(m);
    return f.head + f.cell_height * m->rows + f.names + GAP;
}

/* Every which row or column is named, so that names are at least so many pixels apart. */
static int every(double size, double apart)
{
    return (int)fmax(1, ceil(apart / size));
}

static void put_cell(const struct tune_matrix *m, const struct frame *f, int i, int k, double top, double all, FILE *out)
{
    double count = m->counts[i * m->columns + k], share = all > 0 ? count / all : 0, x = f->left + k * f->cell;
    int shade = tune_shade_at(share);
    char text[32];
    snprintf(text, sizeof text, "%.0f", count);
    fprintf(out, "<rect class=\"q%d\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"><title>%s ", shade, x, top, f->cell, f->cell_height, text);
    tune_svg_text(out, m->row_names[i]);
    fputs(" as ", out);
    tune_svg_text(out, m->column_names[k]);
    fprintf(out, ", %.1f %%</title></rect>", 100 * share);
    if (tune_svg_width(text) < f->cell - 2 && f->cell_height > 14)
        fprintf(out, "<text class=\"t%d\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\" pointer-events=\"none\">%s</text>", shade,
                x + f->cell / 2, top + f->cell_height / 2 + 4.5, text);
    fputc('\n', out);
}

static void put_matrix(const struct tune_matrix *m, double top, FILE *out)
{
    struct frame f = frame_of(m);
    double cells = top + f.head, bottom = cells + f.cell_height * m->rows;
    heading(out, m, top);
    tune_svg_label(out, "note", f.left - GAP, cells - GAP, "end", 0, 0, m->row_title);
    tune_svg_label(out, "note", f.left, cells - GAP, "start", 0, 0, m->column_title);
    for (int i = 0; i < m->rows; i++) {
        double all = 0;
        for (int k = 0; k < m->columns; k++)
            all += m->counts[i * m->columns + k];
        if (i % every(f.cell_height, 13) == 0)
            tune_svg_label(out, "ink", f.left - GAP, cells + (i + 0.5) * f.cell_height + 4.5, "end", 0, WIDEST_NAME, m->row_names[i]);
        for (int k = 0; k < m->columns; k++)
            put_cell(m, &f, i, k, cells + i * f.cell_height, all, out);
    }
    for (int k = 0; k < m->columns; k += every(f.cell, f.turned ? 20 : 1))
        tune_svg_below(out, f.left + (k + 0.5) * f.cell, bottom + 16, f.turned, f.turned ? f.left + k * f.cell : f.cell, m->column_names[k]);
    fprintf(out, "<rect class=\"frame\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"/>\n", f.left, cells, f.cell * m->columns,
            f.cell_height * m->rows);
}

void tune_matrix_svg(const struct tune_matrix *m, int count, FILE *out)
{
    double height = 0, top = 0;
    for (int i = 0; i < count; i++)
        height += height_of(&m[i]);
    tune_svg_begin(out, TUNE_SVG_WIDTH, height, true);
    for (int i = 0; i < count; i++) {
        put_matrix(&m[i], top, out);
        top += height_of(&m[i]);
    }
    tune_svg_end(out);
}
