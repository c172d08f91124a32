/* cuda_runtime.h - the language and the functions of a kernel, for a C++ compiler; runtime_api.h
 * has the host's calls. The same .cu files include nvcc's header of this name. Each name does what
 * CUDA's of that name does; docs/cuda-on-cpu.md says where it differs. */
#ifndef CUDA_ON_CPU_CUDA_RUNTIME_H
#define CUDA_ON_CPU_CUDA_RUNTIME_H

#include <cmath>
#include <cstring>

#include "async_copy.h"
#include "emulator.h"
#include "runtime_api.h"
#include "tensor_core.h"
#include "warp.h"

#define __global__
#define __device__
#define __host__
#define __constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

/* A kernel with commas in its template arguments stands in parentheses. */
#define LAUNCH(kernel, grid, block, shared, stream, ...) \
    emu::launch(#kernel, kernel, grid, block, shared, stream, ##__VA_ARGS__)
/* SHARED(float, tile, [64][72]); DYNAMIC_SHARED(float, buffer); */
#define SHARED(type, name, dimensions)                      \
    static const char name##_key = 0;                       \
    typedef type name##_type dimensions;                    \
    name##_type &name = *(name##_type *)emu::static_shared( \
        &name##_key, #name, sizeof(name##_type), alignof(name##_type))
#define DYNAMIC_SHARED(type, name) type *name = (type *)emu::dynamic_shared()

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
enum { warpSize = 32 };

/* ---- barriers and fences ---- */

static inline void __syncthreads(EMU_SITE) { emu::barrier(0, 0, 0, file, line); }
static inline int __syncthreads_count(int value, EMU_SITE)
{
    return emu::barrier(0, 0, value, file, line);
}
static inline int __syncthreads_or(int value, EMU_SITE)
{
    return emu::barrier(0, 0, value, file, line) > 0;
}
static inline int __syncthreads_and(int value, EMU_SITE)
{
    return emu::barrier(0, 0, !value, file, line) == 0;
}
static inline void __syncwarp(unsigned mask = 0xffffffff, EMU_SITE)
{
    emu::sync_warp(mask, file, line);
}
static inline void __threadfence_block() {}
static inline void __threadfence() {}
static inline void __threadfence_system() {}

/* ---- warps ---- */

#define EMU_SHUFFLE(name, kind)                                                         \
    template <class T>                                                                  \
    static inline T name(unsigned mask, T value, int by, int width = 32, EMU_SITE)      \
    {                                                                                   \
        static_assert(sizeof(T) <= 16, "a shuffle moves at most 16 bytes");             \
        T result;                                                                       \
        emu::shuffle(kind, mask, &value, &result, sizeof value, by, width, file, line); \
        return result;                                                                  \
    }
EMU_SHUFFLE(__shfl_sync, emu::SHUFFLE)
EMU_SHUFFLE(__shfl_up_sync, emu::SHUFFLE_UP)
EMU_SHUFFLE(__shfl_down_sync, emu::SHUFFLE_DOWN)
EMU_SHUFFLE(__shfl_xor_sync, emu::SHUFFLE_XOR)
#undef EMU_SHUFFLE

static inline unsigned __ballot_sync(unsigned mask, int vote, EMU_SITE)
{
    return emu::ballot("__ballot_sync", mask, vote, file, line);
}
static inline int __any_sync(unsigned mask, int vote, EMU_SITE)
{
    return emu::ballot("__any_sync", mask, vote, file, line) != 0;
}
static inline int __all_sync(unsigned mask, int vote, EMU_SITE)
{
    return emu::ballot("__all_sync", mask, !vote, file, line) == 0;
}
template <class T> static inline unsigned __match_any_sync(unsigned mask, T value, EMU_SITE)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a match compares 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return emu::match("__match_any_sync", mask, bits, file, line);
}
template <class T>
static inline unsigned __match_all_sync(unsigned mask, T value, int *all, EMU_SITE)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "a match compares 4 or 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    unsigned same = emu::match("__match_all_sync", mask, bits, file, line);
    *all = same == mask;
    return *all ? mask : 0;
}
#define EMU_REDUCE(name, T, kind)                                              \
    static inline T name(unsigned mask, T value, EMU_SITE)                     \
    {                                                                          \
        return (T)emu::reduce(kind, #name, mask, (uint32_t)value, file, line); \
    }
EMU_REDUCE(__reduce_add_sync, unsigned, emu::REDUCE_ADD)
EMU_REDUCE(__reduce_min_sync, unsigned, emu::REDUCE_MIN)
EMU_REDUCE(__reduce_max_sync, unsigned, emu::REDUCE_MAX)
EMU_REDUCE(__reduce_add_sync, int, emu::REDUCE_ADD)
EMU_REDUCE(__reduce_min_sync, int, emu::REDUCE_MIN_SIGNED)
EMU_REDUCE(__reduce_max_sync, int, emu::REDUCE_MAX_SIGNED)
EMU_REDUCE(__reduce_and_sync, unsigned, emu::REDUCE_AND)
EMU_REDUCE(__reduce_or_sync, unsigned, emu::REDUCE_OR)
EMU_REDUCE(__reduce_xor_sync, unsigned, emu::REDUCE_XOR)
#undef EMU_REDUCE
/* Hardware may converge any lanes here; this is the least that it may answer. */
static inline unsigned __activemask() { return 1u << (emu::lane_number() % 32); }

/* ---- atomics: one lane runs at a time ---- */

template <class T> struct emu_same {
    typedef T type;
};
#define EMU_ATOMIC(name, result)                                                     \
    template <class T> static inline T name(T *at, typename emu_same<T>::type value) \
    {                                                                                \
        T old = *at;                                                                 \
        *at = result;                                                                \
        return old;                                                                  \
    }
EMU_ATOMIC(atomicAdd, old + value)
EMU_ATOMIC(atomicSub, old - value)
EMU_ATOMIC(atomicMin, value < old ? value : old)
EMU_ATOMIC(atomicMax, value > old ? value : old)
EMU_ATOMIC(atomicAnd, old &value)
EMU_ATOMIC(atomicOr, old | value)
EMU_ATOMIC(atomicXor, old ^ value)
EMU_ATOMIC(atomicExch, value)
#undef EMU_ATOMIC
template <class T> static inline T atomicCAS(T *at, typename emu_same<T>::type expected,
                                             typename emu_same<T>::type value)
{
    T old = *at;
    if (old == expected)
        *at = value;
    return old;
}

/* ---- numbers ---- */

using std::isfinite;
using std::isinf;
using std::isnan;
static inline float rsqrtf(float x) { return 1.0f / sqrtf(x); }
/* The C library has functions of these names. */
#define __expf(x) expf(x)
#define __logf(x) logf(x)
static inline float __fdividef(float x, float y) { return x / y; }
static inline float __frcp_rn(float x) { return 1.0f / x; }
static inline float __fmul_rn(float x, float y) { return x * y; }
static inline float __fadd_rn(float x, float y) { return x + y; }
static inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
static inline unsigned __float_as_uint(float x)
{
    unsigned u;
    memcpy(&u, &x, 4);
    return u;
}
static inline int __float_as_int(float x)
{
    int i;
    memcpy(&i, &x, 4);
    return i;
}
static inline float __uint_as_float(unsigned u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}
static inline float __int_as_float(int i)
{
    float x;
    memcpy(&x, &i, 4);
    return x;
}
static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline unsigned __umulhi(unsigned x, unsigned y)
{
    return (unsigned)((uint64_t)x * y >> 32);
}
static inline unsigned long long __umul64hi(unsigned long long x, unsigned long long y)
{
    return (unsigned long long)((unsigned __int128)x * y >> 64);
}
template <class T> static inline T __ldg(const T *at) { return *at; }
static inline int min(int a, int b) { return a < b ? a : b; }
static inline int max(int a, int b) { return a > b ? a : b; }
static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static inline long long min(long long a, long long b) { return a < b ? a : b; }
static inline long long max(long long a, long long b) { return a > b ? a : b; }
static inline int64_t min(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

#endif
