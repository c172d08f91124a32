/* cuda_bf16.h - bfloat16, as far as our kernels use it. Conversions round to nearest, ties to even.
 * NaN becomes 0x7fff, as on the GPU. */
#ifndef CUDA_ON_CPU_CUDA_BF16_H
#define CUDA_ON_CPU_CUDA_BF16_H

#include "cuda_runtime.h"

struct __nv_bfloat16 {
    unsigned short bits;
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};

static inline float __bfloat162float(__nv_bfloat16 h)
{
    return __uint_as_float((unsigned)h.bits << 16);
}

static inline __nv_bfloat16 __float2bfloat16_rn(float f)
{
    unsigned u = __float_as_uint(f);
    if (std::isnan(f))
        return {0x7fff};
    return {(unsigned short)((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}

static inline __nv_bfloat16 __float2bfloat16(float f) { return __float2bfloat16_rn(f); }
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
static inline float2 __bfloat1622float2(__nv_bfloat162 h)
{
    return {__bfloat162float(h.x), __bfloat162float(h.y)};
}
static inline float __low2float(__nv_bfloat162 h) { return __bfloat162float(h.x); }
static inline float __high2float(__nv_bfloat162 h) { return __bfloat162float(h.y); }
static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 h) { return h.bits; }
static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) { return {bits}; }

#endif
