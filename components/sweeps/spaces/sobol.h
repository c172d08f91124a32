/* sobol.h - points of a Sobol sequence, scrambled by a seed. The first points fill the cube evenly,
 * for any number of them.
 *
 * If an axis is divided into 2^k equal parts, each part has exactly one of the first 2^k points.
 * Pairs of axes are filled almost as evenly. Scrambling keeps this property, and gives each single
 * point a uniform distribution. Point n is computed from n, without state. Sources: Joe & Kuo 2008
 * (new-joe-kuo-6: polynomials and first direction numbers, chosen for good pairs of axes); Matousek
 * 1998 (random triangular matrices and a digital shift). Used by order.c. */
#ifndef TUNE_SPACES_SOBOL_H
#define TUNE_SPACES_SOBOL_H

#include <stdint.h>

enum { TUNE_SOBOL_AXES = 21, TUNE_SOBOL_BITS = 52 };

struct tune_sobol {
    /* the first bit of a fraction is bit 51 */
    uint64_t direction[TUNE_SOBOL_AXES][TUNE_SOBOL_BITS];
    uint64_t shift[TUNE_SOBOL_AXES];
};

/* tune_sobol_start - begin all axes, scrambled by seed.
 * tune_sobol_at - the coordinate of point n (< 2^52) on an axis, in (0,1). */
void tune_sobol_start(struct tune_sobol *s, uint64_t seed);
double tune_sobol_at(const struct tune_sobol *s, uint64_t n, int axis);

#endif
