/* draws.h - functions that fit the measurements: draws from what the model holds for possible.
 * Draws agree at points whose value the measurements settle. At other points they differ by as much
 * as the intervals of the predictions say.
 *
 *     struct tune_draws *d = tune_draws_new(model, 64, seed);
 *     tune_draws_at(d, x, count, values);      values[count][64]
 *     tune_draws_free(d);
 *
 * A draw of the prior is a sum of 96 waves of its own. What it differs by from the rows is then
 * predicted and subtracted. Waves: Rahimi and Recht 2007. Subtraction: Wilson et al., Efficiently
 * sampling functions from Gaussian process posteriors, 2020. */
#ifndef TUNE_SURROGATE_DRAWS_H
#define TUNE_SURROGATE_DRAWS_H

#include "sweeps/surrogate/surrogate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_draws;

/* tune_draws_new - make draws of a borrowed model. The same seed gives the same draws. NULL with an
 * error: no memory.
 * tune_draws_free - free them; NULL is fine.
 * tune_draws_count - how many.
 * tune_draws_at - write the values of all draws at x[n][dimensions] into values[n][count], without
 * noise; with a model of logarithms they are logarithms. -1 with an error: no memory. */
struct tune_draws *tune_draws_new(const struct tune_surrogate *s, int count, uint64_t seed);
void tune_draws_free(struct tune_draws *d);
int tune_draws_count(const struct tune_draws *d);
int tune_draws_at(const struct tune_draws *d, const double *x, int n, double *values);

#ifdef __cplusplus
}
#endif
#endif
