/* axes.h - entities of a space as points of the model (surrogate.h).
 *
 * Each dimension with more than one value is an axis. An entity has a coordinate on each: the index
 * of its value or, if the values cannot be counted, its place between 0 and 1. A coordinate becomes
 * a number of the model:
 *
 *     positive numbers that span a factor of 8 or more    their logarithm
 *     other numbers with steps of similar size            their value
 *     other numbers                                       their index
 *     anything else, and what the file calls categorical  a category
 *
 * Numbers are scaled to lie between 0 and 1. */
#ifndef TUNE_SURROGATE_AXES_H
#define TUNE_SURROGATE_AXES_H

#include "sweeps/spaces/space.h"

#ifdef __cplusplus
extern "C" {
#endif

enum tune_axis_scale { TUNE_AXIS_LINEAR, TUNE_AXIS_LOG, TUNE_AXIS_INDEX, TUNE_AXIS_CATEGORY };

struct tune_surrogate_axis {
    int dimension;                /* of the space */
    const struct tune_domain *domain;
    enum tune_axis_scale scale;
    double size;                  /* number of values; 0: they cannot be counted */
    double low, high;             /* the ends, as logarithms with LOG */
};

struct tune_axes {
    const struct tune_space *space;
    struct tune_surrogate_axis *axes; /* [count] */
    int count;
    int *categories;        /* [count] for tune_surrogate_options */
};

/* tune_axes_read - find the axes of a space, which is borrowed. -1 with an error: no axis, a domain
 * that is open or has no end, a category whose values cannot be counted, or no memory.
 * tune_axes_free - free them.
 * tune_axes_find - the coordinates[count] of an entity. -1 with an error: a value is not in its
 * domain.
 * tune_axes_entity - the entity of coordinates, as values[space->count].
 * tune_axes_point - the point[count] of coordinates. */
int tune_axes_read(struct tune_axes *a, const struct tune_space *space);
void tune_axes_free(struct tune_axes *a);
int tune_axes_find(const struct tune_axes *a, const struct tune_value *values, double *coordinates);
void tune_axes_entity(const struct tune_axes *a, const double *coordinates,
                      struct tune_value *values);
void tune_axes_point(const struct tune_axes *a, const double *coordinates, double *point);

#ifdef __cplusplus
}
#endif
#endif
