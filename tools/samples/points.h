/* points.h - what plot draws: the figures of a space's entities, by the values of its
 * dimensions. */
#ifndef TUNE_TOOLS_POINTS_H
#define TUNE_TOOLS_POINTS_H

#include "core/statistics.h"
#include "samples.h"

/* One entity under one experiment that has the property. */
struct point {
    int property, protocol;
    struct tune_spread spread;
    int *at;                     /* [space->count] which of the dimension's values it has */
};

/* The values of one dimension that points have, in the order of its domain. */
struct levels {
    struct tune_value *values;   /* [count] */
    char **texts;                /* [count] as ids spell them */
    double *numbers;             /* [count] where all are numbers; else 0, 1, .. */
    bool numeric;
    int count;
};

struct points {
    const char *properties[64];
    int property_count;
    struct point *all;
    int64_t count;
    struct levels *levels;       /* [space->count] */
    int *varying, varying_count; /* dimensions of more than one value */
    bool repeated;               /* some point is of several results */
    int host_classes, builds;
};

/* points_read - of the properties asked for, from the view that the flags ask for. points_free.
 * points_value - the point's figure: --aggregate, else the mean.
 * points_unit - of the property under that protocol. */
int points_read(struct points *p);
void points_free(struct points *p);
double points_value(const struct point *p);
const char *points_unit(const struct points *p, const struct point *at);

#endif
