/* picture_parts.h - a picture while it is made. Private to charts/. */
#ifndef TUNE_PICTURE_PARTS_H
#define TUNE_PICTURE_PARTS_H

#include "core/error.h"
#include "core/pool.h"
#include "core/try.h"
#include "sweeps/charts/heat.h"
#include "sweeps/charts/parallel.h"
#include "sweeps/charts/picture.h"

enum {
    TUNE_PICTURE_DRAWINGS = 64, TUNE_PICTURE_DIMENSIONS = 256, TUNE_PICTURE_NOTE = 1024,
    TUNE_PICTURE_TITLE = 512
};

/* A dimension in the points: its column, and its values as texts and, if possible, as numbers. */
struct tune_picture_dimension {
    int column;
    const char *name;
    const char **texts; /* [count] */
    double *numbers;    /* [count] numbers; if values are not numbers, 0, 1, .. */
    bool numeric;
    int count;
};

/* One property under one experiment. */
struct tune_picture_drawing {
    int64_t *rows;               /* [count] */
    int64_t count;
    char title[TUNE_PICTURE_TITLE], note[TUNE_PICTURE_NOTE], facet[TUNE_PICTURE_TITLE];
    const char *unit, *property;
    int x;                       /* dimension on the x axis; -1: a property */
    double range[2], x_range[2]; /* ranges over all facets */
};

struct tune_picture {
    const struct tune_question *q;
    bool logarithmic;
    const struct tune_answer_table *a;
    struct tune_pool *memory;
    struct tune_picture_dimension *dimensions; /* [dimension_count] all of the space */
    int dimension_count;
    int *levels;                         /* [rows][dimension_count] indexes of the values */
    int varying[TUNE_PICTURE_DIMENSIONS], varying_count; /* dimensions with more than one value */
    int property, unit, experiment, x_value, value, lowest, highest, results; /* columns */
    int line_over, line_by;              /* columns of lines by a model; -1: none */
    struct tune_picture_drawing drawings[TUNE_PICTURE_DRAWINGS];
    int count;
    int x, y;                            /* dimensions on the axes; -1: none */
    int series[TUNE_PICTURE_DIMENSIONS], series_count; /* dimensions with a curve for each value */
    int facet;                           /* dimension with a drawing for each value; -1: none */
    bool sparse;                         /* points are not a grid, and are not connected */
    bool repeated;                       /* at least one point has several results */
    int best;
    enum { TUNE_PICTURE_CURVES, TUNE_PICTURE_HEAT, TUNE_PICTURE_PARALLEL } kind;
    struct tune_plot plots[TUNE_PICTURE_DRAWINGS];
    struct tune_heat heats[TUNE_PICTURE_DRAWINGS];
    struct tune_parallel parallels[TUNE_PICTURE_DRAWINGS];
};

/* TAKE - point `to` at n zeroed elements that live as long as the picture. If memory runs out, the
 * calling function returns -1. */
#define TAKE(to, p, n)                                                                           \
    TRY(((to) = tune_pool_take(&(p)->memory, (size_t)((n) > 0 ? (n) : 1) * sizeof *(to))) ? 0    \
        : tune_picture_no_memory())

/* tune_picture_read - read the table: its columns, dimensions and the level of each point.
 * tune_picture_choose - choose the kind of the picture, and its axes, series and facet.
 * Both: 0, or -1 with an error.
 * tune_picture_number - the number of a cell; NaN: it has none.
 * tune_picture_level - the index of the point's value in a dimension; -1: it has none.
 * tune_picture_modelled - whether the row is a point of a line by a model, not measured.
 * tune_picture_text - the text of a cell; "": it has none.
 * tune_picture_no_memory - set the error, and return -1. */
int tune_picture_read(struct tune_picture *p);
int tune_picture_choose(struct tune_picture *p);
double tune_picture_number(const struct tune_picture *p, int64_t row, int column);
int tune_picture_level(const struct tune_picture *p, int64_t row, int dimension);
bool tune_picture_modelled(const struct tune_picture *p, int64_t row);
const char *tune_picture_text(const struct tune_picture *p, int64_t row, int column);
int tune_picture_no_memory(void);

#endif
