/* test_blocks.cu - grids, blocks, barriers and launches of the emulator. Cases that must abort run
 * in a child. */
#include "prove.h"
#include "fibers.h"

#include "devices/cuda/ptx.h"

static const int sizes[] = {1, 2, 31, 32, 33, 63, 64, 65, 255, 256, 1024};

/* Each lane sums all numbers of its block through shared memory, in its own order. */
__global__ void sum_all(const int *in, int *out)
{
    SHARED(int, all, [1024]);
    int before = (int)threadIdx.x * 3 + 1; /* lives across the barrier */
    all[threadIdx.x] = in[blockIdx.x * blockDim.x + threadIdx.x];
    __syncthreads();
    int sum = 0;
    for (unsigned i = 0; i < blockDim.x; i++)
        sum += all[(threadIdx.x + i) % blockDim.x];
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum + before;
}

static bytes run_sum(int threads, int blocks, bool *right)
{
    std::vector<int> in((size_t)(threads * blocks));
    for (size_t i = 0; i < in.size(); i++)
        in[i] = (int)(i * i % 101);
    int *from = upload(in), *to = device<int>(in.size());
    LAUNCH(sum_all, blocks, threads, 0, nullptr, from, to);
    std::vector<int> out = download(to, in.size());
    for (int b = 0; b < blocks; b++) {
        int want = 0;
        for (int i = 0; i < threads; i++)
            want += in[(size_t)(b * threads + i)];
        for (int i = 0; i < threads; i++)
            *right = *right && out[(size_t)(b * threads + i)] == want + 3 * i + 1;
    }
    must(cudaFree(from));
    must(cudaFree(to));
    return raw(out);
}

__global__ void barrier_in_loop(int *out, int trips)
{
    SHARED(int, turn, [1]);
    int mine = 0;
    if (threadIdx.x == 0)
        turn[0] = 0;
    __syncthreads();
    for (int i = 0; i < trips; i++) {
        if ((int)threadIdx.x == i % (int)blockDim.x)
            turn[0] += i;
        __syncthreads();
        mine = mine * 7 + turn[0];
        __syncthreads();
    }
    out[threadIdx.x] = mine;
}

/* Some lanes return before the first barrier, some between the two. */
__global__ void early_exit(int *out)
{
    SHARED(int, seen, [64]);
    seen[threadIdx.x] = (int)threadIdx.x;
    if (threadIdx.x < 5)
        return;
    __syncthreads();
    if (threadIdx.x < 20)
        return;
    seen[threadIdx.x] += seen[threadIdx.x % 20]; /* of a lane that has returned */
    __syncthreads();
    out[threadIdx.x] = seen[20 + (threadIdx.x - 19) % 44];
}

__global__ void uneven_trips(int *out)
{
    for (unsigned i = 0; i <= threadIdx.x; i++)
        __syncthreads();
    __syncthreads();
    out[threadIdx.x] = 1;
}

__global__ void two_barriers(int *out)
{
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
    out[threadIdx.x] = 1;
}

__global__ void votes(int *out)
{
    int odd = __syncthreads_count(threadIdx.x & 1);
    int some = __syncthreads_or(threadIdx.x == 3);
    int none = __syncthreads_or(0);
    int every = __syncthreads_and(1);
    int not_every = __syncthreads_and(threadIdx.x != 7);
    out[threadIdx.x] = odd + 1000 * some + 2000 * none + 4000 * every + 8000 * not_every;
}

/* Warps 0 and 1 meet at barrier 1, warps 2 and 3 at barrier 2, more often. */
__global__ void named(int *out)
{
    SHARED(int, slot, [128]);
    unsigned pair = threadIdx.x / 64, other = threadIdx.x ^ 32;
    int mine = (int)threadIdx.x;
    for (unsigned i = 0; i < 1 + pair; i++) {
        slot[threadIdx.x] = mine;
        ptx_barrier(1 + (int)pair, 64);
        mine += slot[other];
        ptx_barrier(1 + (int)pair, 64);
    }
    out[threadIdx.x] = mine;
}

__global__ void named_alone(int *out)
{
    if (threadIdx.x < 32)
        ptx_barrier(1, 64);
    out[threadIdx.x] = 1;
}

__global__ void named_half_a_warp() { ptx_barrier(1, 48); }
__global__ void named_too_many() { ptx_barrier(16, 64); }

/* No barrier between the write and the read of a neighbour. */
__global__ void no_barrier(int *out)
{
    SHARED(int, all, [64]);
    all[threadIdx.x] = (int)threadIdx.x;
    out[threadIdx.x] = all[(threadIdx.x + 1) % 64];
}

__global__ void place(unsigned *out)
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
        ((((blockIdx.x * 8 + blockIdx.y) * 8 + blockIdx.z) * 8 + threadIdx.x) * 8 + threadIdx.y) *
            8 +
        threadIdx.z;
}

static bool places_right()
{
    dim3 blocks(3, 4, 2), threads(5, 2, 3);
    unsigned *out = device<unsigned>(24 * 30), at = 0;
    bool right = true;
    LAUNCH(place, blocks, threads, 0, nullptr, out);
    std::vector<unsigned> got = download(out, 24 * 30);
    for (unsigned z = 0; z < 2; z++)
        for (unsigned y = 0; y < 4; y++)
            for (unsigned x = 0; x < 3; x++)
                for (unsigned c = 0; c < 3; c++)
                    for (unsigned b = 0; b < 2; b++)
                        for (unsigned a = 0; a < 5; a++)
                            right = right &&
                                    got[at++] == ((((x * 8 + y) * 8 + z) * 8 + a) * 8 + b) * 8 + c;
    must(cudaFree(out));
    return right;
}

struct big {
    int numbers[100];
};

__global__ void copy_argument(big b, int *out) { out[threadIdx.x] = b.numbers[threadIdx.x]; }

/* The host changes the argument after the launch and before the kernel runs. */
static bool arguments_are_copied()
{
    int *out = device<int>(100);
    big b;
    for (int i = 0; i < 100; i++)
        b.numbers[i] = i;
    LAUNCH(copy_argument, 1, 100, 0, nullptr, b, out);
    for (int i = 0; i < 100; i++)
        b.numbers[i] = -1;
    std::vector<int> got = download(out, 100);
    bool right = true;
    for (int i = 0; i < 100; i++)
        right = right && got[(size_t)i] == i;
    must(cudaFree(out));
    return right;
}

/* Not tail recursion: each level needs its array. */
static __attribute__((noinline)) int deep(int n)
{
    volatile int large[1000];
    large[n % 1000] = n;
    return n > 0 ? deep(n - 1) + large[n % 1000] : 0;
}

__global__ void too_deep(int *out) { out[threadIdx.x] = deep(1000000); }

__global__ void last_block(int *order, int *next) { order[blockIdx.x] = atomicAdd(next, 1); }

__global__ void lane_order(int *order, int *next) { order[threadIdx.x] = atomicAdd(next, 1); }

/* When each of 64 lanes runs, in the i-th order. */
static std::vector<int> lanes_in(size_t i)
{
    int *out = device<int>(64), *next = upload(std::vector<int>(1, 0));
    emu::set_order(all_orders()[i]);
    LAUNCH(lane_order, 1, 64, 0, nullptr, out, next);
    std::vector<int> got = download(out, 64);
    emu::set_order(emu::order());
    must(cudaFree(out));
    must(cudaFree(next));
    return got;
}

static void orders()
{
    std::vector<int> forward = lanes_in(0), reversed = lanes_in(1), one = lanes_in(2),
                     two = lanes_in(3);
    check("lanes run forward and reversed",
          forward[0] == 0 && forward[63] == 63 && reversed[0] == 63 && reversed[63] == 0);
    check("random orders differ",
          one != two && one != forward && one != reversed && two != forward);
    check("a seed gives one order", one == lanes_in(2));
}

template <class... P> static void start(void (*kernel)(P...), int threads)
{
    int *out = device<int>(1024);
    if constexpr (sizeof...(P) == 0)
        LAUNCH(kernel, 1, threads, 0, nullptr);
    else
        LAUNCH(kernel, 1, threads, 0, nullptr, out);
    must(cudaDeviceSynchronize());
    must(cudaFree(out));
}

static bytes run(void (*kernel)(int *), int threads)
{
    int *out = device<int>((size_t)threads);
    LAUNCH(kernel, 1, threads, 0, nullptr, out);
    std::vector<int> got = download(out, (size_t)threads);
    must(cudaFree(out));
    return raw(got);
}

static void barriers()
{
    for (int threads : sizes) {
        bool right = true;
        in_every_order("blocks of " + std::to_string(threads),
                       [&] { return run_sum(threads, 3, &right); });
        check("... and the sums are right", right);
    }
    size_t stacks = emu::fiber_count();
    bool right = true;
    run_sum(1024, 3, &right);
    check("stacks are pooled", emu::fiber_count() == stacks && stacks <= 1024);
    in_every_order("a barrier in a loop", [] {
        int *out = device<int>(96);
        LAUNCH(barrier_in_loop, 1, 96, 0, nullptr, out, 200);
        bytes got = raw(download(out, 96));
        must(cudaFree(out));
        return got;
    });
    in_every_order("lanes that return early", [] { return run(early_exit, 64); });
    bytes b = run(early_exit, 64);
    const int *got = (const int *)b.data();
    check("... and the others meet", got[25] == 26 + 6 && got[45] == 46 + 6 && got[63] == 20);
    in_every_order("votes of a block", [] { return run(votes, 50); });
    b = run(votes, 50);
    check("... count, or, and", ((const int *)b.data())[9] == 25 + 1000 + 4000);
    in_every_order("named barriers", [] { return run(named, 128); });
    b = run(named, 128);
    got = (const int *)b.data();
    check("... of two pairs of warps",
          got[1] == 1 + 33 && got[33] == 34 && got[65] == 2 * (65 + 97));
}

static void mistakes()
{
    aborts("a loop with a barrier and as many trips as the lane says", "in different places",
           [] { start(uneven_trips, 8); });
    aborts("two branches with a barrier each", "in different places",
           [] { start(two_barriers, 64); });
    aborts("a named barrier where half the lanes come", "lanes 0 to 31 wait at barrier 1",
           [] { start(named_alone, 64); });
    aborts("a named barrier for half a warp", "whole warps", [] { start(named_half_a_warp, 64); });
    aborts("a barrier that there is not", "barriers 0 to 15", [] { start(named_too_many, 64); });
    differs("a missing __syncthreads", [] { return run(no_barrier, 64); });
    aborts("a stack that is too small", "behind the end of a lane's stack",
           [] { start(too_deep, 2); });
}

static void launches()
{
    check("grids and blocks of three dimensions", places_right());
    check("arguments are copied at the launch", arguments_are_copied());
    int *out = device<int>(8), *next = upload(std::vector<int>(1, 0));
    emu::order reversed;
    reversed.grid_reversed = true;
    emu::set_order(reversed);
    LAUNCH(last_block, 8, 1, 0, nullptr, out, next);
    std::vector<int> got = download(out, 8);
    emu::set_order(emu::order());
    check("the grid runs reversed", got[0] == 7 && got[7] == 0);
    LAUNCH(named, 1, 1025, 0, nullptr, out);
    check("a block of 1025 is refused", cudaGetLastError() == cudaErrorInvalidConfiguration);
    LAUNCH(named, dim3(1, 65536), 1, 0, nullptr, out);
    check("a grid of 65536 rows is refused", cudaGetLastError() == cudaErrorInvalidConfiguration);
    LAUNCH(named, 0, 1, 0, nullptr, out);
    check("an empty grid is refused", cudaGetLastError() == cudaErrorInvalidConfiguration);
    check("an error is told once", cudaGetLastError() == cudaSuccess);
}

int main()
{
    barriers();
    mistakes();
    launches();
    orders();
    return done();
}
