/* float16.h - convert float32 to and from the two 16-bit float types. It rounds to nearest, ties to
 * even. NaN stays NaN. */
#ifndef TUNE_CORE_FLOAT16_H
#define TUNE_CORE_FLOAT16_H

#include <stdint.h>
#include <string.h>

static inline float tune_float_from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, 4);
    return f;
}

static inline uint32_t tune_float_bits(float f)
{
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

static inline float tune_bf16_to_float(uint16_t h)
{
    return tune_float_from_bits((uint32_t)h << 16);
}

static inline uint16_t tune_float_to_bf16(float f)
{
    uint32_t bits = tune_float_bits(f);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    uint32_t nan = (bits >> 16) | 0x40;
    return (uint16_t)((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded);
}

static inline float tune_f16_to_float(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31) /* infinity, NaN */
        return tune_float_from_bits(sign | 0x7f800000 | fraction << 13);
    if (exponent == 0) { /* zero, subnormal: fraction * 2^-24 is exact */
        float f = (float)fraction * 0x1p-24f;
        return sign ? -f : f;
    }
    return tune_float_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

static inline uint16_t tune_float_to_f16(float f)
{
    uint32_t bits = tune_float_bits(f), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 1023));
    if (magnitude >= 0x477ff000) /* rounds to more than the largest, 65504: infinity */
        return (uint16_t)(sign | 0x7c00);
    if (magnitude < 0x38800000) { /* subnormal: adding 0.5 rounds to a multiple of 2^-24 */
        float sum = tune_float_from_bits(magnitude) + 0.5f;
        return (uint16_t)(sign | (tune_float_bits(sum) - 0x3f000000));
    }
    uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - (112u << 23);
    return (uint16_t)(sign | rounded >> 13);
}

#endif
