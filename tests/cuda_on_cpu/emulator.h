/* emulator.h - the emulator's own interface: how kernels are launched, in which order lanes and
 * blocks run, and how a lane waits. cuda_runtime.h includes it; tests use the part for tests.
 *
 * A kernel runs block after block. In a block, each thread (lane) is a fiber. It runs until it
 * waits at a barrier or for other lanes of its warp. An error of the kernel prints where, and
 * aborts. */
#ifndef CUDA_ON_CPU_EMULATOR_H
#define CUDA_ON_CPU_EMULATOR_H

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>

#include "types.h"

/* Two last parameters of a function that tells where it was called. */
#define EMU_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

namespace emu
{

/* ---- for tests ---- */

/* The order in which things run that a GPU would run at once. */
struct order {
    enum { FORWARD, REVERSED, RANDOM } lanes = FORWARD;
    uint64_t seed = 0; /* RANDOM: drawn anew each time round; then a warp runs ahead of others */
    bool grid_reversed = false;
    uint64_t last_blocks = 0; /* above 0: only so many of a grid run, the last ones */
};
void set_order(const order &o);

/* set_architecture - 80, 86, 89, 90, 100 or 120: limits of shared memory. At first it is
 * $CUDA_ON_CPU_ARCH, or 90.
 * shared_limit - bytes of shared memory that a block may ask for there. */
void set_architecture(int sm);
int architecture();
size_t shared_limit();

/* queued - how many kernels, copies, events and graphs were queued so far. What a capture records
 * does not count. */
uint64_t queued();

/* count_only - from here on nothing runs. Each launch is given to seen; copies leave their targets
 * as they are; device memory is addresses alone, as many as CUDA_ON_CPU_MEMORY says. So work that
 * is too large to emulate can be counted.
 * counting - whether that is so. */
struct grid;
void count_only(const std::function<void(const void *kernel, const grid &g)> &seen);
bool counting();

/* ---- for the headers ---- */

enum { WARP = 32, MOST_LANES = 1024, STATIC_SHARED = 48 * 1024 };

/* fail - print the message and where the kernel is, and abort. */
[[noreturn]] void fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* barrier - wait until `expected` lanes wait at barrier `id`; 0: all lanes that have not returned.
 * Returns how many of them brought a value other than 0.
 * in_kernel - whether a lane runs.
 * lane_number - its number in the block. */
int barrier(int id, int expected, int value, const char *file, int line);
bool in_kernel();
int lane_number();

/* What a lane brings to a meeting of its warp, and what it takes away. */
struct alignas(16) slot {
    unsigned char in[64], out[64];
};

/* meet - wait for exactly the lanes of mask. The last one calls finish, which reads every `in` and
 * sets every `out`; slots are by lane, null outside mask. */
typedef void finish_meeting(unsigned mask, slot *const *slots);
void meet(const char *what, unsigned mask, finish_meeting *finish, const void *in, size_t in_bytes,
          void *out, size_t out_bytes, const char *file, int line);

/* static_shared - the block's array with this key, NaN at first.
 * dynamic_shared - the dynamic part.
 * is_shared - whether these bytes lie in one array of the block's shared memory. */
void *static_shared(const void *key, const char *name, size_t bytes, size_t alignment);
void *dynamic_shared();
bool is_shared(const void *at, size_t bytes);

/* clock_ns - a clock that never goes back. */
unsigned long long clock_ns();

/* A launch that waits in a stream. */
struct grid {
    std::string kernel;
    dim3 blocks, threads;
    size_t shared;
    size_t shared_allowed;
    std::function<void()> body;
};

/* queue_grid - check and queue it.
 * run_grid - run it now. */
cudaError_t queue_grid(const void *kernel, grid g, cudaStream_t stream);
void run_grid(const grid &g);

/* LAUNCH's function. Arguments are copied when it is called, as on a GPU. */
template <class... P, class... A> void launch(const char *name, void (*kernel)(P...), dim3 blocks,
                                              dim3 threads, size_t shared, cudaStream_t stream,
                                              A &&...arguments)
{
    std::tuple<P...> copy(arguments...);
    grid g = {name, blocks, threads, shared, 0, [kernel, copy] { std::apply(kernel, copy); }};
    queue_grid((const void *)kernel, g, stream);
}

} // namespace emu
#endif
