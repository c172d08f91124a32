/* dimensions.h - rows of a table seen as points of a space: each dimension's cell as a value, and
 * as its number in the domain.
 *
 * Sweeps write the same few values over and over, so what a cell turned out to be is remembered.
 * For matching.c only. */
#ifndef TUNE_DISCOVERY_DIMENSIONS_H
#define TUNE_DISCOVERY_DIMENSIONS_H

#include "sweeps/discovery/rows.h"

struct tune_seen_value;

struct tune_axis_of_rows {
    const struct tune_domain *wanted, *own; /* the space's dimension, the experiment's input */
    struct tune_column column;
    /* which of the experiment's; -1: none, the dimension stays open */
    int input;
    /* values of the dimension, 0: it cannot be counted; how far its next value is in the grid */
    tune_index size, weight;
    struct tune_seen_value *seen; /* a table of what was met last */
};

struct tune_dimensions {
    int count, open;                /* open: dimensions that the experiment does not have */
    struct tune_axis_of_rows *axes; /* [count] */
    /* [count] of the present row; those of open dimensions are the caller's to set */
    struct tune_value *values;
    tune_index *at;                 /* [count] their numbers, where they can be counted */
    tune_index index;               /* of the present row, open dimensions at their first value */
};

/* tune_dimensions_new - how an experiment's rows lie in the space; columns: as tune_rows_columns
 * has them. -1: no memory.
 * tune_dimensions_read - a row's inputs[] as the values: 1, 0: one is outside its dimension. Texts
 * may be the cells'. */
int tune_dimensions_new(struct tune_dimensions *d, const struct tune_space *space,
                        const struct tune_experiment *e,
                        const struct tune_column *columns);
int tune_dimensions_read(struct tune_dimensions *d, const struct tune_cell *inputs);
void tune_dimensions_free(struct tune_dimensions *d);

#endif
