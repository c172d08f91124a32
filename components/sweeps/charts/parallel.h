/* parallel.h - draw rows over many dimensions as SVG, to see which values lead to the best rows.
 *
 *     struct tune_axis a[] = {{.title = "batch_size", .values = sizes, .base = -1},
 *                             {.title = "dtype", .values = which, .names = types, .name_count = 2},
 *                             {.title = "throughput", .unit = "tokens/s", .values = speeds}};
 *     struct tune_parallel p = {.title = "throughput", .axes = a, .count = 3, .rows = n,
 *                               .best = 1};
 *     tune_parallel_svg(&p, 1, file);
 *
 * These are parallel coordinates. Each dimension is a vertical axis, and each row a line, coloured
 * by the last axis, the target. The best rows are drawn on top with thick lines. If many rows share
 * a value, their lines are drawn side by side, in the order of the target. */
#ifndef TUNE_PARALLEL_H
#define TUNE_PARALLEL_H

#include "views/plot.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_axis {
    const char *title, *unit; /* NULL or "": none */
    const double *values;     /* [rows]; values that are not finite or above 1e300 are missing */
    /* [name_count] categories for the values 0, 1, ...; NULL: numbers */
    const char *const *names;
    int name_count;
    int base;                 /* for numbers: as x_base of struct tune_plot */
    const double *holds;      /* [2] for numbers: values that the axis includes; NULL: none */
};

struct tune_parallel {
    const char *title;
    const struct tune_axis *axes; /* [count]; the last one is the target, with numbers */
    int count;
    int64_t rows;
    const char *const *names; /* [rows] texts shown on hover; NULL: none */
    const int64_t *table_rows; /* [rows] rows of a table, the data-row of the lines; NULL: none */
    int best;                 /* 1: the highest target is best; -1: the lowest; 0: none */
    const char *note;         /* below the title, folded between words; NULL: none */
};

/* tune_parallel_svg - write an SVG document with the drawings one above the other. At most 10,000
 * rows are drawn, chosen evenly over the target, including the best ones. A note says so. */
int tune_parallel_svg(const struct tune_parallel *parallels, int count, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
