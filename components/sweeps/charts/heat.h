/* heat.h - values over two dimensions as a map of colours with the numbers in it, in a terminal or
 * as SVG.
 *
 *     struct tune_heat h = {.title = "throughput", .unit = "tokens/s", .x_title = "batch_size", .y_title = "model_max_length",
 *                           .x_names = sizes, .y_names = lengths, .columns = 4, .rows = 2, .values = means, .best = 1};
 *     tune_heat_terminal(&h, &(struct tune_terminal){.width = 80, .unicode = true, .color = true}, stdout);
 *     tune_heat_svg(&h, 1, file);
 *
 * Colours run from next to the paper to its opposite, in light and in dark, in steps of equal
 * distance to the eye. */
#ifndef TUNE_HEAT_H
#define TUNE_HEAT_H

#include "views/plot.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_heat {
    const char *title, *unit;      /* of the values; unit "": none */
    /* what columns and rows are, with their unit: "batch_size, rows" */
    const char *x_title, *y_title;
    const char *const *x_names, *const *y_names; /* [columns] from the left, [rows] from the top */
    int columns, rows;
    /* [rows,columns]; not finite, or beyond 1e300: missing, and marked so */
    const double *values;
    /* [rows,columns] how far the value is sure, in percent of it: said behind it where there is
     * room; not finite: nothing is known; or NULL */
    const double *spreads;
    /* [rows,columns] said behind the value when a pointer rests on it (a spread, why it is
     * missing), each may be NULL; or NULL */
    const char *const *hints;
    bool logarithmic;              /* the colours; values not above 0 are missing then */
    /* 1: the highest value is marked, -1: the lowest, and gets the strongest colour; 0: none */
    int best;
    const char *note;              /* a line below the title; NULL: none */
};

/* tune_heat_terminal - numbers in rows and columns, on their colours where there are any; where
 * numbers do not fit, colours (or the digits 0 to 9) alone; cells of more columns than there is
 * room for are joined to their mean, which is said. Lines, but for title and note, are at most
 * width - 1 columns, with a width of 40 or more. height is not asked.
 * tune_heat_svg - a document with the maps one above the other. Above 10,000 cells neighbours are
 * joined likewise. 0, or -1 with an error: not one value, no memory. */
int tune_heat_terminal(const struct tune_heat *heat, const struct tune_terminal *how, FILE *out);
int tune_heat_svg(const struct tune_heat *heats, int count, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
