/* surrogate.h - a model of measurements: a Gaussian process over the points of a space. It predicts
 * a target at points that were not measured, and says how sure it is.
 *
 * A point is a row of doubles, one for each dimension. Numbers should lie between 0 and 1; points.h
 * converts entities of a space. A category is its index: 0, 1, ... Targets are standardised: their
 * mean becomes 0 and their standard deviation 1. All parameters are in these units. Example:
 *
 *     struct tune_surrogate_options o = {.dimensions = 2, .categories = (const int[]){0, 3}};
 *     struct tune_surrogate *s = tune_surrogate_fit(&o, x, y, rows);
 *     tune_surrogate_predict(s, points, count, predictions);
 *     ... predictions[i].mean, .low, .high
 *     tune_surrogate_free(s);
 *
 * The covariance is Matern's with smoothness 5/2. Each number has a length, the distance over which
 * the target changes. Two values of a category are related by the factor exp(-1 / length). The
 * variance of the noise is fitted with the lengths; repeated points determine it best. The
 * parameters are those with the highest likelihood that L-BFGS finds from several starts. The same
 * rows give the same model.
 *
 * Cost: a factor of n rows takes n^3 / 3 multiplications, and a fit some hundred of them. So at
 * most fit_rows rows take part in the fit, and at most most_rows in predictions. They are drawn by
 * the seed. A fit of 100 rows takes about a second on one core, one of 300 rows ten. */
#ifndef TUNE_SURROGATE_SURROGATE_H
#define TUNE_SURROGATE_SURROGATE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_SURROGATE_DIMENSIONS = 256 };

struct tune_surrogate_options {
    int dimensions;
    const int *categories; /* [dimensions] 0: a number. Else the number of its values */
    bool logarithm;        /* model the logarithm of the target */
    bool priors;           /* prefer moderate lengths and little noise: better with few rows */
    int starts;            /* of the fit; 0: 16 */
    int steps;             /* most iterations from each start; 0: 100 */
    int fit_rows;          /* 0: 300 */
    int most_rows;         /* 0: 2000 */
    uint64_t seed;         /* chooses among too many rows */
    /* [2 + dimensions] variance, variance of the noise, lengths: no fit. NULL: fit */
    const double *parameters;
};

struct tune_prediction {
    double mean, deviation; /* of the target, or of its logarithm, without noise */
    /* The 95 % interval of a new measurement, in the target's own unit. Its width is scaled by the
     * errors at the rows, each predicted from all others. */
    double low, high;
};

struct tune_surrogate;

/* tune_surrogate_fit - fit a model to x[rows][dimensions] and y[rows], which are copied. A constant
 * target is fine, and so are repeated points. One row gives a model that knows nothing else. NULL
 * with an error: no rows, no memory, or a value that is not finite. Or a category is not among its
 * values, or a target is 0 or less with logarithm.
 * tune_surrogate_free - free it; NULL is fine.
 * tune_surrogate_predict - predict at x[count][dimensions]. -1 with an error: as above.
 * tune_surrogate_draw - draw values[draws][count] at x[count][dimensions]. Each draw is a possible
 * course of the target, or of its logarithm, at all points together, without noise. The deviations
 * are scaled as those of low and high. Time count^2 (rows + draws). The same seed and stream give
 * the same draws. -1 with an error: as above. */
struct tune_surrogate *tune_surrogate_fit(const struct tune_surrogate_options *options,
                                          const double *x, const double *y, int rows);
void tune_surrogate_free(struct tune_surrogate *s);
int tune_surrogate_predict(const struct tune_surrogate *s, const double *x, int count,
                           struct tune_prediction *predictions);
int tune_surrogate_draw(const struct tune_surrogate *s, const double *x, int count,
                        uint64_t seed, uint64_t stream, int draws, double *values);

/* tune_surrogate_parameters - [2 + dimensions] variance, variance of the noise, lengths.
 * tune_surrogate_likelihood - logarithm of the likelihood of the rows of the fit, with the priors'
 * if they were asked for.
 * tune_surrogate_noise - standard deviation of the noise, of the target or its logarithm.
 * tune_surrogate_prior - the deviation far from all rows.
 * tune_surrogate_scale - what the deviations are multiplied by for low and high.
 * tune_surrogate_rows - number of rows in predictions. */
const double *tune_surrogate_parameters(const struct tune_surrogate *s);
double tune_surrogate_likelihood(const struct tune_surrogate *s);
double tune_surrogate_noise(const struct tune_surrogate *s);
double tune_surrogate_prior(const struct tune_surrogate *s);
double tune_surrogate_scale(const struct tune_surrogate *s);
int tune_surrogate_rows(const struct tune_surrogate *s);

#ifdef __cplusplus
}
#endif
#endif
