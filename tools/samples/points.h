/* points.h - the figures of a space's entities, by the values of its dimensions, for plot. */
#ifndef TUNE_TOOLS_POINTS_H
#define TUNE_TOOLS_POINTS_H

#include "core/statistics.h"
#include "samples.h"

/* One entity with a value of the property, under one experiment. */
struct point {
    int property, protocol;
    struct tune_spread spread;
    double x;                    /* value of the property on the x axis; NAN: none */
    int *at;                     /* [space->count] index of its value in each dimension */
};

/* The values of one dimension that occur in points, in the order of its domain. */
struct levels {
    struct tune_value *values;   /* [count] */
    char **texts;                /* [count] texts as in ids */
    double *numbers;             /* [count] numbers if all are numbers; else 0, 1, .. */
    bool numeric;
    int count;
};

struct points {
    const char *properties[64];
    int property_count;
    int x;                       /* the property on the x axis, of properties[]; -1: a dimension */
    int64_t without_x;           /* number of points left out, because they lack it */
    struct point *all;
    int64_t count;
    struct levels *levels;       /* [space->count] */
    int *varying, varying_count; /* number of dimensions with more than one value */
    struct samples_figures figures; /* of the current group */
    bool repeated;               /* true: some point has several results */
    int host_classes, builds;
};

/* points_dimension - the place of the dimension of that name, or -1 with an error.
 * points_compare - two values of a dimension: numbers by size, others in the domain's order. */
int points_dimension(const char *name);
int points_compare(const struct tune_domain *domain, const struct tune_value *x,
                   const struct tune_value *y);

/* points_read - read the requested properties from the view of the flags.
 * points_value - the point's figure: by --aggregate, else the mean. points_unit - the unit of the
 * property under that protocol. */
int points_read(struct points *p);
double points_value(const struct point *p);
const char *points_unit(const struct points *p, const struct point *at);

#endif
