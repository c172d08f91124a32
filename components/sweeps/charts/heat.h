/* heat.h - values over two dimensions as a map of colours and numbers, in a terminal or as SVG.
 *
 *     struct tune_heat h = {.title = "throughput", .unit = "tokens/s", .x_title = "batch_size",
 *                           .y_title = "model_max_length", .x_names = sizes, .y_names = lengths,
 *                           .columns = 4, .rows = 2, .values = means, .best = 1};
 *     struct tune_terminal how = {.width = 80, .unicode = true, .color = true};
 *     tune_heat_terminal(&h, &how, stdout);
 *     tune_heat_svg(&h, 1, file);
 *
 * Colours run from near the background to its opposite, in steps of equal distance to the eye. */
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
    /* [rows,columns]; not finite or above 1e300: missing, and marked */
    const double *values;
    /* [rows,columns] uncertainty in percent, shown if there is room; not finite: unknown; NULL:
     * none */
    const double *spreads;
    /* [rows,columns] text that shows on hover, each may be NULL; NULL: none */
    const char *const *hints;
    bool logarithmic;              /* logarithmic colours; values of 0 and below are missing then */
    /* 1: mark the highest value, -1: the lowest; 0: none */
    int best;
    const char *note;              /* a line below the title; NULL: none */
    /* [2] two values that the scale of colours holds, so that maps can be compared; NULL: none */
    const double *holds;
};

/* tune_heat_terminal - draw numbers in rows and columns, on colours if there are any. Where numbers
 * do not fit, it draws colours alone, or digits 0 to 9. Where cells do not fit, neighbours are
 * joined to their mean, and a note says so. Lines other than title and note have at most width - 1
 * columns, for a width of 40 or more. height is not used. -1 with an error: no value, or no memory.
 * tune_heat_svg - write an SVG document with the maps one above the other. Above 10,000 cells,
 * neighbours are joined too. */
int tune_heat_terminal(const struct tune_heat *heat, const struct tune_terminal *how, FILE *out);
int tune_heat_svg(const struct tune_heat *heats, int count, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
