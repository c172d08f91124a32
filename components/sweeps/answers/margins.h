/* margins.h - lines through the points of a plot that were sampled: the mean over the other
 * dimensions, by a model of the results. Private to answers/. */
#ifndef TUNE_ANSWERS_MARGINS_H
#define TUNE_ANSWERS_MARGINS_H

#include "sweeps/answers/entity_figures.h"

/* tune_margins_wanted - whether the plot has lines: its x axis is a dimension, and the points are
 * less than half of the grid of their values.
 * tune_margins_add - add their rows to the answer: for each property, experiment, dimension of an x
 * axis, and value of `series` and `facet`. Dimensions over which the mean is taken have no value.
 * A warning says where there are too few results for a model. -1 with an error. */
bool tune_margins_wanted(const struct points *p);
int tune_margins_add(struct points *p);

#endif
