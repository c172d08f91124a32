/* surrogate_parts.h - the inside of a model. Private to this folder. */
#ifndef TUNE_SURROGATE_PARTS_H
#define TUNE_SURROGATE_PARTS_H

#include "sweeps/surrogate/likelihood.h"
#include "sweeps/surrogate/surrogate.h"

struct tune_surrogate {
    struct tune_surrogate_options o;
    int rows;                 /* in predictions */
    int *categories;          /* [dimensions] */
    double *x, *y;            /* [rows][dimensions], [rows] standardised */
    double mean, deviation;   /* of the targets before that */
    double *parameters;       /* [2 + dimensions] */
    double likelihood, scale;
    struct tune_likelihood model; /* with the factor and the weights of all rows */
};

#endif
