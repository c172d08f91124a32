/* sobol.h - points of a Sobol sequence, scrambled by a seed: any number of the first ones fills the
 * cube evenly.
 *
 * Each of 2^k equal parts of any one axis has exactly one of the first 2^k points. In two axes few
 * points lie in the wrong place. Scrambling keeps that, and makes each point by itself even over
 * the cube. Point n is computed from n: nothing to keep.
 *
 * Sources: Joe & Kuo 2008 (new-joe-kuo-6) for polynomials and first direction numbers, chosen so
 * that any two axes go well together. Matousek 1998 for random triangular matrices and a digital
 * shift. For order.c. */
#ifndef TUNE_SPACES_SOBOL_H
#define TUNE_SPACES_SOBOL_H

#include <stdint.h>

enum { TUNE_SOBOL_AXES = 21, TUNE_SOBOL_BITS = 52 };

struct tune_sobol {
    /* the first bit of a fraction is bit 51 */
    uint64_t direction[TUNE_SOBOL_AXES][TUNE_SOBOL_BITS];
    uint64_t shift[TUNE_SOBOL_AXES];
};

/* tune_sobol_start - all axes, scrambled by seed. tune_sobol_at - point n (< 2^52) on an axis, in
 * (0,1). */
void tune_sobol_start(struct tune_sobol *s, uint64_t seed);
double tune_sobol_at(const struct tune_sobol *s, uint64_t n, int axis);

#endif
