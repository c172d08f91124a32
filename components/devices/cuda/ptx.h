/* ptx.h - all inline PTX. Each function has two bodies: assembly for nvcc, and C++ for the emulator
 * of tests/cuda_on_cpu. No other file has inline assembly, so every kernel can be emulated.
 *
 * Source: PTX ISA 9.0, sections "cp.async", "ldmatrix", "mma", "bar", "ex2". */
#ifndef TUNE_CUDA_PTX_H
#define TUNE_CUDA_PTX_H

#include "devices/cuda/language.h"

#ifdef __CUDACC__
#define PTX_SITE
#define PTX_ASM(...) asm volatile(__VA_ARGS__)
#define PTX_EMULATE(call)
#define PTX_SHARED(at) static_cast<unsigned>(__cvta_generic_to_shared(at))
#else
/* The place of the caller, for messages. */
#define PTX_SITE , const char *file = __builtin_FILE(), int line = __builtin_LINE()
#define PTX_ASM(...)
#define PTX_EMULATE(call) call
#endif

/* ptx_copy_async - start to copy 16 bytes from device memory to shared memory, past the L1 cache.
 * Only the first `read` bytes are read; the others become 0. Both addresses are aligned to 16.
 * ptx_copy_commit - close the group of copies started since the last call.
 * ptx_copy_wait - wait until at most NEWEST of this thread's groups are under way. Other threads
 * see the data after a barrier. */
__device__ __forceinline__ void ptx_copy_async(void *shared, const void *global, unsigned read = 16)
{
    PTX_ASM("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(PTX_SHARED(shared)), "l"(global),
            "r"(read)
            : "memory");
    PTX_EMULATE(emu::copy_async(shared, global, 16, read));
}

__device__ __forceinline__ void ptx_copy_commit()
{
    PTX_ASM("cp.async.commit_group;" ::: "memory");
    PTX_EMULATE(emu::copy_commit());
}

template <int NEWEST> __device__ __forceinline__ void ptx_copy_wait()
{
    PTX_ASM("cp.async.wait_group %0;" ::"n"(NEWEST) : "memory");
    PTX_EMULATE(emu::copy_wait(NEWEST));
}

/* ptx_clock_ns - the GPU's clock in nanoseconds; it goes on between kernels. */
__device__ __forceinline__ unsigned long long ptx_clock_ns()
{
    unsigned long long ns = 0;
    PTX_ASM("mov.u64 %0, %globaltimer;" : "=l"(ns));
    PTX_EMULATE(ns = emu::clock_ns());
    return ns;
}

/* ptx_barrier - wait at barrier id (1..15; __syncthreads is 0) for `threads` threads, whole warps.
 */
__device__ __forceinline__ void ptx_barrier(int id, int threads PTX_SITE)
{
    PTX_ASM("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
    PTX_EMULATE(emu::barrier(id, threads, 0, file, line));
}

/* ptx_ldmatrix - load four 8x8 matrices of 16-bit elements from shared memory. Lanes 8i..8i+7 bring
 * the rows of matrix i. Lane l gets row l/4, columns 2(l%4) and +1, of each.
 * ptx_ldmatrix_transposed - the same of the transposed matrices. */
__device__ __forceinline__ void ptx_ldmatrix(unsigned (&d)[4], const void *row PTX_SITE)
{
    PTX_ASM("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
            : "r"(PTX_SHARED(row))
            : "memory");
    PTX_EMULATE(emu::ldmatrix(d, 4, false, row, file, line));
}

__device__ __forceinline__ void ptx_ldmatrix_transposed(unsigned (&d)[4], const void *row PTX_SITE)
{
    PTX_ASM("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
            : "r"(PTX_SHARED(row))
            : "memory");
    PTX_EMULATE(emu::ldmatrix(d, 4, true, row, file, line));
}

/* ptx_mma_bf16 - D += A B for a warp: A [16,16] and B [16,8] bfloat16, D [16,8] float32. With
 * g = lane/4 and t = lane%4:
 *     a[i], half h: row g + 8 (i%2), column 2t + h + 8 (i/2)
 *     b[i], half h: row 2t + h + 8i, column g
 *     d[i]: row g + 8 (i/2), column 2t + i%2
 * ptx_mma_tf32 - the same with A [16,8] and B [8,8] tf32, float32 bits of which 19 count:
 *     a[i]: row g + 8 (i%2), column t + 4 (i/2)     b[i]: row t + 4i, column g */
__device__ __forceinline__ void ptx_mma_bf16(float (&d)[4], const unsigned (&a)[4],
                                             const unsigned (&b)[2] PTX_SITE)
{
    PTX_ASM("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    PTX_EMULATE(emu::mma_bf16(d, a, b, d, file, line));
}

__device__ __forceinline__ void ptx_mma_tf32(float (&d)[4], const unsigned (&a)[4],
                                             const unsigned (&b)[2] PTX_SITE)
{
    PTX_ASM("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    PTX_EMULATE(emu::mma_tf32(d, a, b, d, file, line));
}

/* ptx_exp2 - 2^x to about 22 bits; results below 2^-126 are 0. */
__device__ __forceinline__ float ptx_exp2(float x)
{
    float y;
    PTX_ASM("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    PTX_EMULATE(y = exp2f(x));
    return y;
}

#endif
