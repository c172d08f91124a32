/* dimensions.h - convert rows of a table to points of a space: the value of each dimension, and its
 * index in the domain.
 *
 * Sweeps repeat a few values, so the result for a cell is cached. Private to matching.c and
 * other_inputs.c. */
#ifndef TUNE_DISCOVERY_DIMENSIONS_H
#define TUNE_DISCOVERY_DIMENSIONS_H

#include "sweeps/discovery/rows.h"

struct tune_seen_value;

struct tune_axis_of_rows {
    const struct tune_domain *wanted, *own; /* wanted: of the space's dimension; own: of the
                                             * experiment's input */
    struct tune_column column;
    /* index of the input; -1: none, which makes the dimension open */
    int input;
    /* size: number of values, 0 if it cannot be counted. weight: step of the grid's index for the
     * next value */
    tune_index size, weight;
    struct tune_seen_value *seen; /* cache of recent cells */
};

struct tune_dimensions {
    int count, open;                /* open: dimensions without an input of the experiment */
    struct tune_axis_of_rows *axes; /* [count] */
    /* [count] values of the current row; the caller sets those of open dimensions */
    struct tune_value *values;
    tune_index *at;                 /* [count] indexes of the values, if they can be counted */
    tune_index index;               /* index of the current row, with open dimensions at their first
                                     * value */
};

/* tune_dimensions_new - prepare for the rows of an experiment; columns: from tune_rows_columns. -1:
 * no memory.
 * tune_dimensions_read - convert a row's inputs[]. 1; 0: one is outside its dimension. Texts may
 * point into the cells. */
int tune_dimensions_new(struct tune_dimensions *d, const struct tune_space *space,
                        const struct tune_experiment *e,
                        const struct tune_column *columns);
int tune_dimensions_read(struct tune_dimensions *d, const struct tune_cell *inputs);
void tune_dimensions_free(struct tune_dimensions *d);

#endif
