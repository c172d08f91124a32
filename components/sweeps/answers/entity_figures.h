/* entity_figures.h - measured figures of a space's entities, for effect and plot. Private to
 * answers/. */
#ifndef TUNE_ANSWERS_ENTITY_FIGURES_H
#define TUNE_ANSWERS_ENTITY_FIGURES_H

#include "core/statistics.h"
#include "sweeps/answers/subject.h"

/* The value of one property for one entity, under one experiment. */
struct point {
    int property, binding;
    struct tune_spread spread;
    double value;                /* mean or median of the results */
    double x;                    /* value of the x axis property; NAN: none */
    int *at;                     /* [space->count] index in levels, for each dimension */
};

/* The values of one dimension that occur in the points, in domain order. */
struct levels {
    struct tune_value *values;   /* [count] */
    int count;
};

struct points {
    struct tune_subject *s;
    const char *properties[64];
    int property_count;
    int x;                       /* index of the x axis property in properties; -1: x is a
                                  * dimension */
    bool median;
    int64_t without_x;           /* number of points left out, because they lack x */
    struct point *all;
    int64_t count;
    struct levels *levels;       /* [space->count] */
    int *varying, varying_count; /* dimensions with more than one value */
    struct tune_figures figures; /* of the current group */
    bool repeated;               /* at least one point has several results */
};

/* tune_level_compare - compare two values of a dimension. Numbers are compared by size, others by
 * their position in the domain.
 * tune_entity_figures_read - read the properties that the question asks for. x: the question's x
 * may name a property.
 * tune_entity_figures_free - free p. Call it even if tune_entity_figures_read failed. */
int tune_level_compare(const struct tune_domain *domain, const struct tune_value *x,
                   const struct tune_value *y);
int tune_entity_figures_read(struct points *p, struct tune_subject *s, bool x);
void tune_entity_figures_free(struct points *p);

#endif
