/* blas.c - dpotrf and its relatives. They store matrices by columns, so that our lower half is their
 * upper one. */
#include "sweeps/surrogate/blas.h"

#include <cblas.h>

/* LAPACK's part of OpenBLAS. It has no header for it that all its builds install. */
extern void dpotrf_(const char *half, const blasint *n, double *a, const blasint *stride,
                    blasint *info);
extern void dpotri_(const char *half, const blasint *n, double *a, const blasint *stride,
                    blasint *info);

bool tune_factor(double *a, int n)
{
    blasint size = n, info = 0;
    dpotrf_("U", &size, a, &size, &info);
    return info == 0;
}

void tune_factor_invert(double *a, int n)
{
    blasint size = n, info = 0;
    dpotri_("U", &size, a, &size, &info);
}

void tune_factor_forward(const double *factor, int n, double *b, int count)
{
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasUpper, CblasTrans, CblasNonUnit, n, count, 1,
                factor, n, b, n);
}

void tune_factor_backward(const double *factor, int n, double *b, int count)
{
    cblas_dtrsm(CblasColMajor, CblasLeft, CblasUpper, CblasNoTrans, CblasNonUnit, n, count, 1,
                factor, n, b, n);
}
