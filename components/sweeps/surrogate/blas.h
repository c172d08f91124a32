/* blas.h - factors of symmetric matrices, by OpenBLAS. Matrices have n rows of n doubles, and only
 * their lower half is read and written. Private to this folder.
 *
 * OpenBLAS should have one thread here: programs see to that at their start (flags/program.c). */
#ifndef TUNE_SURROGATE_BLAS_H
#define TUNE_SURROGATE_BLAS_H

#include <stdbool.h>

/* tune_factor - factor a = L L^T in place. Time n^3 / 3. false: a is not positive definite.
 * tune_factor_invert - turn a factor into the inverse of a. Time 2 n^3 / 3.
 * tune_factor_forward - solve L x = b in place, for columns of b[count][n].
 * tune_factor_backward - solve L^T x = b in place, the same. */
bool tune_factor(double *a, int n);
void tune_factor_invert(double *a, int n);
void tune_factor_forward(const double *factor, int n, double *b, int count);
void tune_factor_backward(const double *factor, int n, double *b, int count);

#endif
