/* parallel.h - rows over many dimensions: see which values lead to the best rows, in a terminal or
 * as SVG.
 *
 *     struct tune_axis a[] = {{.title = "batch_size", .values = sizes, .base = -1},
 *                             {.title = "dtype", .values = which, .names = types, .name_count = 2},
 *                             {.title = "throughput", .unit = "tokens/s", .values = speeds}};
 *     struct tune_parallel p = {.title = "throughput", .axes = a, .count = 3, .rows = n,
 *                               .best = 1};
 *     tune_parallel_svg(&p, 1, file);
 *
 * SVG has parallel coordinates. Each dimension is an upright axis and each row a line, coloured by
 * the last axis, the target. The best rows lie on top, thick. Where many rows share a value, their
 * lines stand side by side, ordered by the target.
 *
 * A terminal cannot show crossing lines. So it shows, for each value of each dimension, the lowest,
 * mean and highest target, all on one scale. The more these marks move, the more the dimension
 * matters. The best rows follow below. */
#ifndef TUNE_PARALLEL_H
#define TUNE_PARALLEL_H

#include "views/plot.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_axis {
    const char *title, *unit; /* NULL or "": none */
    const double *values;     /* [rows]; not finite or above 1e300: missing */
    /* [name_count] categories for the values 0, 1, ...; NULL: numbers */
    const char *const *names;
    int name_count;
    int base;                 /* for numbers: as x_base of struct tune_plot */
    const double *holds;      /* [2] for numbers: values that are on the axis, too; NULL: none */
};

struct tune_parallel {
    const char *title;
    const struct tune_axis *axes; /* [count]; the last one is the target, with numbers */
    int count;
    int64_t rows;
    const char *const *names; /* [rows] text that shows on hover; NULL: none */
    int best;                 /* 1: the highest target is best, -1: the lowest, 0: none is */
    const char *note;         /* a line below the title; NULL: none */
};

/* tune_parallel_terminal - draw it. Lines other than title and note have at most width - 1 columns,
 * for a width of 40 or more. height is not used. -1 with an error: fewer than two axes, no row with
 * a target, or no memory.
 * tune_parallel_svg - write an SVG document with the drawings one above the other. Of more than
 * 10,000 rows, only 10,000 are drawn: chosen evenly over the target, the best ones included. A note
 * says so. */
int tune_parallel_terminal(const struct tune_parallel *parallel, const struct tune_terminal *how,
                           FILE *out);
int tune_parallel_svg(const struct tune_parallel *parallels, int count, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
