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
 * memory_name - "the host", a freed part, ...: what an address that faulted is.
 * memory_total - the bytes of device memory.
 * memory_take - the driver takes bytes for itself, or gives them back (< 0). False: there are not
 * so many.
 * memory_load - the driver takes memory for a kernel, at its first launch. False: there is none. */
bool memory_holds(const void *at, size_t bytes);
const char *memory_name(const void *at);
size_t memory_total();
bool memory_take(int64_t bytes);
bool memory_load(const void *kernel);

/* queue - append work to a stream; `what` is the call's name. ready: asked again and again, until
 * it says that the work can run; empty: it always can.
 * current_device - of the calling thread.
 * wait_for - run what waits in a stream.
 * finish_all - run everything that waits in every stream.
 * break_capture - if the stream is captured, the capture fails at its end. */
cudaError_t queue(cudaStream_t stream, const char *what, std::function<void()> work,
                  std::function<bool()> ready = {});
int current_device();
cudaError_t wait_for(cudaStream_t stream);
void finish_all();
bool is_capturing();
void break_capture(cudaStream_t stream);

/* pretend - let events see the work that runs now take so many milliseconds more. */
void pretend(double ms);

/* returned - store an error for cudaGetLastError, and return it.
 * called - count a call by its name; waits: the host waits in it. Returns the error that the call
 * has to return before it does anything.
 * is_lost - whether an error came after which the GPU does nothing. Queued work is dropped. */
cudaError_t returned(cudaError_t error);
cudaError_t called(const char *name, bool waits = false);
bool is_lost();

/* Threads take turns: one of them is in the emulator. Nests.
 * let_others - while one of these lives, others may come in. */
struct my_turn {
    my_turn();
    ~my_turn();
    my_turn(const my_turn &) = delete;
};
struct let_others {
    int depth;
    let_others();
    ~let_others();
};

/* Begins a call of the runtime. */
#define EMU_CALLED(...)                                                                            \
    emu::my_turn turn_;                                                                            \
    if (cudaError_t error_ = emu::called(__VA_ARGS__))                                             \
    return error_

} // namespace emu
#endif
