/* points.h - a list of points: a CSV file whose heading names the dimensions of a space.
 *
 *     batch_size,model_max_length
 *     1,512
 *     8,1024
 *
 * Columns may be in any order. A dimension with one value needs no column. A column "identifier",
 * as `space list` writes it, is ignored. A cell is written as by Python's str(), or as in an
 * identifier. An empty cell means "" if the dimension has this value, else None. */
#ifndef TUNE_SPACES_POINTS_H
#define TUNE_SPACES_POINTS_H

#include "sweeps/spaces/space.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_points {
    struct tune_value *values;       /* [count][dimensions], in the space's memory */
    int64_t count;
    int64_t repeated;                /* number of duplicate points, which are left out */
    int64_t line;                    /* line of the first duplicate */
};

/* tune_points_read - read the points of a file. -1 with an error (file:line): no points, an unknown
 * column, or a dimension without a column. Also a value outside its domain, or a point that
 * violates a constraint. */
int tune_points_read(const struct tune_space *s, const char *path, struct tune_points *points);

/* tune_points_restrict - make the points of the file the only entities of a space. Each dimension
 * gets the values in the file, in their order; they must be in its domain. If it has no domain, a
 * column of only numbers or only booleans has such values; other columns have texts. -1 with an
 * error (file:line).
 * tune_points_index - compute the space's list of points again, after its domains changed. Points
 * that became equal are merged. */
int tune_points_restrict(struct tune_space *s, const char *path);
int tune_points_index(struct tune_space *s);

#ifdef __cplusplus
}
#endif
#endif
