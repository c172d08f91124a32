/* parallel.h - rows over many dimensions: what leads to the best ones, in a terminal or as SVG.
 *
 *     struct tune_axis a[] = {{.title = "batch_size", .values = sizes, .base = -1},
 *                             {.title = "dtype", .values = which, .names = types, .name_count = 2},
 *                             {.title = "throughput", .unit = "tokens/s", .values = speeds}};
 *     struct tune_parallel p = {.title = "throughput", .axes = a, .count = 3, .rows = n, .best = 1};
 *     tune_parallel_svg(&p, 1, file);
 *
 * SVG: parallel coordinates, an upright axis for each dimension and a line for each row, coloured
 * by the last axis, the target; the best rows lie on top, thick. Where many rows share a value
 * their lines stand beside each other there, in order of the target.
 *
 * Crossing lines are not to be told apart in characters. So a terminal has what one looks for in
 * them: for each value of each dimension the target's lowest, mean and highest, all on one scale,
 * so that what matters shows by how far its marks move; and the best rows as they are. */
#ifndef TUNE_PARALLEL_H
#define TUNE_PARALLEL_H

#include "views/plot.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_axis {
    const char *title, *unit; /* unit NULL or "": none */
    const double *values;     /* [rows]; not finite, or beyond 1e300: missing */
    /* [name_count] of categories, which the values 0, 1, .. stand for; NULL: they are numbers */
    const char *const *names;
    int name_count;
    int base;                 /* of numbers: as x_base of struct tune_plot */
};

struct tune_parallel {
    const char *title;
    const struct tune_axis *axes; /* [count]; the last one is the target, numbers */
    int count;
    int64_t rows;
    const char *const *names; /* [rows] or NULL: what a row is called when a pointer rests on it */
    int best;                 /* 1: the highest target is the best, -1: the lowest, 0: none is */
    const char *note;         /* a line below the title; NULL: none */
};

/* tune_parallel_terminal - lines, but for title and note, of at most width - 1 columns, with a
 * width of 40 or more; height is not asked.
 * tune_parallel_svg - a document with the drawings one above the other. Of more than 10,000 rows
 * that many are drawn, evenly over the target, the best among them, which is said. 0, or -1 with an
 * error: less than two axes, no row has a target, no memory. */
int tune_parallel_terminal(const struct tune_parallel *parallel, const struct tune_terminal *how,
                           FILE *out);
int tune_parallel_svg(const struct tune_parallel *parallels, int count, FILE *out);

#ifdef __cplusplus
}
#endif
#endif
