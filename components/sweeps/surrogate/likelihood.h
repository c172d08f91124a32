/* likelihood.h - the covariance of a Gaussian process, and the likelihood of its parameters.
 * Private to this folder.
 *
 * The covariance of two points is variance * M(r) * the product of exp(-1 / length) over the
 * categories in which they differ. M is Matern's function with smoothness 5/2,
 * (1 + sqrt(5) r + 5/3 r^2) exp(-sqrt(5) r), and r^2 the sum of (difference / length)^2 over the
 * numbers. Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006: (4.17)
 * the kernel, (5.8) the likelihood, (5.9) its gradient, (5.12) leaving one out. */
#ifndef TUNE_SURROGATE_LIKELIHOOD_H
#define TUNE_SURROGATE_LIKELIHOOD_H

#include <stdbool.h>

/* Rows, standardised targets, and memory. Parameters are logarithms: of the variance, of the
 * noise's variance, and of the length of each dimension. */
struct tune_likelihood {
    int dimensions, rows;
    const int *categories; /* [dimensions] 0: a number */
    const double *x, *y;   /* [rows][dimensions], [rows] */
    bool priors;           /* add the logarithms of the parameters' priors */
    double *inverse;       /* [dimensions] 1 / length */
    double variance, noise;
    double *matrix;        /* [rows][rows] */
    double *weights;       /* [rows] inverse covariance times y */
};

/* tune_likelihood_set - take these parameters, as logarithms.
 * tune_covariance - the covariance of two points, without noise.
 * tune_likelihood_factor - set, then make matrix the factor of the rows' covariance, and weights.
 * Returns the logarithm of the likelihood; -INFINITY: the covariance is not positive definite.
 * tune_likelihood_gradient - the same, but matrix is the inverse, and gradient[2 + dimensions] the
 * derivatives by the parameters. */
void tune_likelihood_set(struct tune_likelihood *l, const double *parameters);
double tune_covariance(const struct tune_likelihood *l, const double *a, const double *b);
double tune_likelihood_factor(struct tune_likelihood *l, const double *parameters);
double tune_likelihood_gradient(struct tune_likelihood *l, const double *parameters,
                                double *gradient);

#endif
