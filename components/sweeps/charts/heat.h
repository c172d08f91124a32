/* heat.h - values over two dimensions as a map of colours and numbers, in a terminal or as SVG.
 *
 *     struct tune_heat h = {.title = "throughput", .unit = "tokens/s", .x_title = "batch_size",
 *                           .y_title = "model_max_length", .x_names = sizes, .y_names = lengths,
 *                           .columns = 4, .rows = 2, .values = means, .best = 1};
 *     struct tune_terminal how = {.width = 80, .unicode = true, .color = true};
 *     tune_heat_terminal(&h, &how, stdout);
 *     tune_heat_svg(&h, 1, file);
 *
 * Colours range from near the background to its opposite, in perceptually equal steps. */
#ifndef TUNE_HEAT_H
#define TUNE_HEAT_H

#include "views/plot.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_heat {
    const char *title, *unit;      /* unit of the values; "": none */
    /* dimension and unit: "batch_size, rows" */
    const char *x_title, *y_title;
    const char *const *x_names, *const *y_names; /* [columns] from the left, [rows] from the top */
    int columns, rows;
    /* [rows,columns]; values that are not finite or above 1e300 are marked as missing */
    const double *values;
    /* [rows,columns] uncertainty in percent, shown if they fit; not finite: unknown; NULL:
     * none */
    const double *spreads;
    /* [rows,columns] texts shown on hover, each may be NULL; NULL: none */
    const char *const *hints;
    /* [rows,columns] rows of a table, in SVG the data-row of the cells; below 0: none. NULL:
     * none */
    const int64_t *table_rows;
    bool logarithmic;              /* logarithmic colours; values of 0 and below are missing then */
    /* 1: mark the highest value, -1: the lowest; 0: none */
    int best;
    const char *note;              /* below the title, folded between words; NULL: none */
    /* [2] values that the colour scale includes, so that maps can be compared; NULL: none */
    const double *holds;
    /* The name of a facet: "dtype float32"; NULL: none. Consecutive facets with the same title and
     * size are one figure. In SVG they are drawn side by side, with the first one's note and one
     * colour scale. */
    const char *facet;
};

/* tune_heat_terminal - draw numbers in rows and columns, with background colours if possible. If
 * numbers do not fit, it draws only colours, or digits 0 to 9. If cells do not fit, neighbours are
 * replaced by their mean, and a note says so. Lines other than the title have at most width - 1
 * columns, for a width of 40 or more. height is not used. -1 with an error: no value, or no memory.
 * tune_heat_svg - write an SVG document with the figures one above the other. Above 100 rows or
 * columns, neighbours are also replaced by their mean. The group of a map's cells says for programs
 * where they are: data-left, data-top, data-width, data-height in pixels, data-columns, data-rows,
 * data-x-title and data-y-title. */
int tune_heat_terminal(const struct tune_heat *heat, const struct tune_terminal *how, FILE *out);
int tune_heat_svg(const struct tune_heat *heats, int count, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
