/* sobol.c - compute scrambled direction numbers from the first ones in the table. */
#include "sweeps/spaces/sobol.h"

#include "core/random.h"

/* Axes 1..20: the polynomial's degree, its inner coefficients as bits, the first direction numbers
 * (odd, number k below 2^k). Axis 0 uses the mirrored binary digits of the point's number. */
static const struct {
    uint8_t degree, inner, first[7];
} table[TUNE_SOBOL_AXES - 1] = {
    {1, 0, {1}},
    {2, 1, {1, 3}},
    {3, 1, {1, 3, 1}},
    {3, 2, {1, 1, 1}},
    {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}},
    {5, 2, {1, 1, 5, 5, 17}},
    {5, 4, {1, 1, 5, 5, 5}},
    {5, 7, {1, 1, 7, 11, 19}},
    {5, 11, {1, 1, 5, 1, 1}},
    {5, 13, {1, 1, 1, 3, 11}},
    {5, 14, {1, 3, 5, 5, 31}},
    {6, 1, {1, 3, 3, 9, 7, 49}},
    {6, 13, {1, 1, 1, 15, 21, 21}},
    {6, 16, {1, 3, 1, 13, 27, 49}},
    {6, 19, {1, 1, 1, 15, 7, 5}},
    {6, 22, {1, 3, 1, 15, 13, 25}},
    {6, 25, {1, 1, 5, 5, 19, 61}},
    {7, 1, {1, 3, 7, 11, 23, 15, 103}},
    {7, 4, {1, 3, 7, 13, 13, 15, 69}},
};

static void make_directions(int axis, uint64_t direction[TUNE_SOBOL_BITS])
{
    for (int k = 0; k < TUNE_SOBOL_BITS; k++) {
        int degree = axis ? table[axis - 1].degree : 0;
        if (k < degree || axis == 0) {
            direction[k] = (uint64_t)(axis ? table[axis - 1].first[k] : 1) << (TUNE_SOBOL_BITS - 1 - k);
            continue;
        }
        direction[k] = direction[k - degree] ^ direction[k - degree] >> degree;
        for (int i = 1; i < degree; i++)
            if (table[axis - 1].inner >> (degree - 1 - i) & 1)
                direction[k] ^= direction[k - i];
    }
}

/* Add to each bit of a fraction a random selection of the bits before it: a random triangular
 * matrix with ones on its diagonal. */
static uint64_t mix(uint64_t fraction, uint64_t seed, int axis)
{
    uint64_t mixed = 0;
    for (int bit = 0; bit < TUNE_SOBOL_BITS; bit++) {
        uint64_t before = tune_random_u64(seed, (uint64_t)axis, (uint64_t)bit) << bit << 1;
        mixed |= (uint64_t)__builtin_parityll(fraction & (before | (uint64_t)1 << bit)) << bit;
    }
    return mixed;
}

void tune_sobol_start(struct tune_sobol *s, uint64_t seed)
{
    const uint64_t whole = ((uint64_t)1 << TUNE_SOBOL_BITS) - 1;
    for (int axis = 0; axis < TUNE_SOBOL_AXES; axis++) {
        make_directions(axis, s->direction[axis]);
        for (int k = 0; k < TUNE_SOBOL_BITS; k++)
            s->direction[axis][k] = mix(s->direction[axis][k], seed, axis);
        s->shift[axis] = tune_random_u64(seed, (uint64_t)axis, TUNE_SOBOL_BITS) & whole;
    }
}

double tune_sobol_at(const struct tune_sobol *s, uint64_t n, int axis)
{
    uint64_t x = s->shift[axis];
    for (int k = 0; k < TUNE_SOBOL_BITS && n >> k; k++)
        if (n >> k & 1)
            x ^= s->direction[axis][k];
    return ((double)x + 0.5) * 0x1p-52;
}
