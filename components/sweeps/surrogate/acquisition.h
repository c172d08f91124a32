/* acquisition.h - how much a measurement of a point is expected to improve what is known. Private
 * to this folder.
 *
 * One target: the expected improvement of the best value. That is the model's at the rows, so that
 * noise is not taken for a gain. Two targets: the expected growth of the area that the
 * Pareto front dominates, with independent models. It is an integral over the front's steps:
 * the probability that the first target passes x, times the expected gain of the second there.
 * Either is multiplied by the probability that the point is valid, and by the share of draws from
 * the models that meet the condition. Everything is a logarithm, so that points far from any gain
 * can be compared, too. */
#ifndef TUNE_SURROGATE_ACQUISITION_H
#define TUNE_SURROGATE_ACQUISITION_H

#include <stdbool.h>

#include "sweeps/surrogate/search.h"
#include "sweeps/surrogate/surrogate.h"

/* The rows of a search. */
struct tune_search_rows {
    int count, dimensions;
    const int *categories;               /* [dimensions] */
    const double *points;                /* [count][dimensions] */
    const double *values;                /* [count][TUNE_SEARCH_VALUES] */
    const enum tune_search_state *states;
    bool measured_only;                  /* pending rows are not imagined */
};

struct tune_acquisition {
    const struct tune_search_options *options;
    struct tune_surrogate *targets[TUNE_SEARCH_VALUES]; /* the others behind them */
    bool logarithm[TUNE_SEARCH_VALUES];
    struct tune_surrogate *valid;        /* NULL: all rows are */
    double best;                         /* one target: larger is better */
    double *front;                       /* [front_count][2] first ascending, second descending */
    int front_count;
    double worst[TUNE_SEARCH_TARGETS];   /* the corner that the area is measured from */
};

/* tune_acquisition_make - fit the models. -1 with an error. Free it in any case.
 * tune_acquisition_free - free them.
 * tune_acquisition_score - write the scores of points[count][dimensions] into scores[count].
 * tune_acquisition_chance - the chance that one of the points is better than each valid row by more
 * than this share. One target only. It is the share of draws from the models, at all these points
 * together, in which that holds. Drawn are the 256 points with the highest scores, and the 64 valid
 * rows with the best means. A point counts in a draw if it is valid there and meets the
 * condition. */
int tune_acquisition_make(struct tune_acquisition *a, const struct tune_search_options *options,
                          const struct tune_search_rows *rows);
void tune_acquisition_free(struct tune_acquisition *a);
int tune_acquisition_score(const struct tune_acquisition *a, const double *points, int count,
                           double *scores);
int tune_acquisition_chance(const struct tune_acquisition *a, const struct tune_search_rows *rows,
                            const double *points, const double *scores, int count, double share,
                            double *chance);

#endif
