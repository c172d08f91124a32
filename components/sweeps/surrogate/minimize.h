/* minimize.h - the least value of a smooth function in a box, by L-BFGS. Private to this folder. */
#ifndef TUNE_SURROGATE_MINIMIZE_H
#define TUNE_SURROGATE_MINIMIZE_H

enum { TUNE_MINIMIZE_MOST = 600 }; /* dimensions */

/* tune_minimize - improve x[n] within low and high. value: returns the function at x, and its
 * gradient; a value that is not finite is a point to stay away from. steps: maximum number of
 * iterations. Returns the least value that was found, at x. The same arguments give the same
 * result. n is at most TUNE_MINIMIZE_MOST.
 * Source: Nocedal and Wright, Numerical Optimization, 2006: algorithms 7.4, 16.5 (projection). */
double tune_minimize(double (*value)(void *context, const double *x, double *gradient),
                     void *context, double *x, const double *low, const double *high, int n,
                     int steps);

#endif
