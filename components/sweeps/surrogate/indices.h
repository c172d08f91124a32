/* indices.h - which dimension matters: Sobol's indices of the function that a model stands for.
 *
 * The variance of a target over all points has parts: what each dimension changes alone, and what
 * several change together. The first-order index of a dimension is the share that it explains
 * alone. The total index is the share of all parts that it belongs to. Dimensions are independent,
 * and each is spread as the caller says.
 *
 * The indices are those of draws from the model (draws.h), so that they have intervals. These hold
 * 95 % of the draws, widened by the error of the sum over 1024 points. They are right if the fitted
 * lengths are: with few rows a model may miss a dimension altogether.
 * Sources: Sobol' 2001; Saltelli et al. 2010, table 2 (b) and (f). */
#ifndef TUNE_SURROGATE_INDICES_H
#define TUNE_SURROGATE_INDICES_H

#include "sweeps/surrogate/surrogate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_index_share {
    double value, low, high; /* 0 to 1; low, high: 95 % interval */
};

struct tune_indices {
    struct tune_index_share first, total;
};

/* The mean of a target over all other dimensions, at one place of a dimension. With a model of
 * logarithms it is the mean of the logarithms. */
struct tune_margin {
    double place;           /* set by the caller */
    double mean, low, high; /* 95 % interval of the mean */
};

/* place: the place on an axis of the model for share u of its spread, 0 to 1. */
struct tune_spread_of_axes {
    double (*place)(const void *context, int axis, double u);
    const void *context;
};

/* tune_indices_find - write the indices of each dimension into indices[dimensions]. The same seed
 * gives the same. -1 with an error: no memory, or the target does not vary.
 * tune_margins_find - set the margins[count] of an axis at their places. -1 with an error. */
int tune_indices_find(const struct tune_surrogate *s, const struct tune_spread_of_axes *spread,
                      uint64_t seed, struct tune_indices *indices);
int tune_margins_find(const struct tune_surrogate *s, const struct tune_spread_of_axes *spread,
                      uint64_t seed, int axis, struct tune_margin *margins, int count);

#ifdef __cplusplus
}
#endif
#endif
