/* parts.h - what the emulator's files share, and nobody else includes. */
#ifndef CUDA_ON_CPU_PARTS_H
#define CUDA_ON_CPU_PARTS_H

#include "emulator.h"

extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;

namespace emu
{

/* where - "kernel k, block (0,0,0), thread (3,0,0)", or "" outside kernels. */
std::string where();

/* shared_begin - shared memory of a block: NaN. dynamic: bytes; allowed: what cudaFuncSetAttribute
 * allowed, or 0.
 * shared_end - look at the red zones; drop it. */
void shared_begin(size_t dynamic, size_t allowed);
void shared_end();

/* copies_begin - no asynchronous copies are under way in this block. */
void copies_begin();

/* Device memory can be touched while one of these lives. Nests. */
struct open_memory {
    open_memory();
    ~open_memory();
};

/* memory_holds - whether these bytes lie in one allocation.
 * memory_place - "the host", a freed part, ...: what an address that faulted is. */
bool memory_holds(const void *at, size_t bytes);
const char *memory_place(const void *at);

/* queue - append work to a stream; `what` is the call's name.
 * finish_all - run everything that waits in every stream. */
cudaError_t queue(cudaStream_t stream, const char *what, std::function<void()> work);
void finish_all();
bool is_capturing();

/* returned - store an error for cudaGetLastError, and return it. */
cudaError_t returned(cudaError_t error);

} // namespace emu
#endif
