/* test_warps.cu - shuffles, votes, matches, sums and atomics of the emulator, against loops. Masks
 * that do not fit abort. */
#include "prove.h"

struct sixteen {
    double a, b;
};

enum { MODES = 4, FULL = -1 };

/* Which lane a shuffle reads, written down from CUDA's guide. */
static int expected(int mode, int lane, int by, int width)
{
    int first = lane / width * width;
    switch (mode) {
    case 0: return first + ((by % width) + width) % width;
    case 1: return lane - by >= first ? lane - by : lane;
    case 2: return lane + by < first + width ? lane + by : lane;
    default: return (lane ^ by) < first + width ? lane ^ by : lane;
    }
}

template <class T> __device__ T shuffled(int mode, T value, int by, int width)
{
    switch (mode) {
    case 0: return __shfl_sync((unsigned)FULL, value, by, width);
    case 1: return __shfl_up_sync((unsigned)FULL, value, by, width);
    case 2: return __shfl_down_sync((unsigned)FULL, value, by, width);
    default: return __shfl_xor_sync((unsigned)FULL, value, by, width);
    }
}

__global__ void shuffle_all(int *out, int mode, int by, int width)
{
    int lane = (int)threadIdx.x;
    double wide = shuffled(mode, lane + 0.5, by, width);
    sixteen most = shuffled(mode, sixteen{lane + 0.25, lane + 0.75}, by, width);
    short small = shuffled(mode, (short)(lane + 100), by, width);
    int got = shuffled(mode, lane, by, width);
    bool same =
        wide == got + 0.5 && most.a == got + 0.25 && most.b == got + 0.75 && small == got + 100;
    out[lane] = same ? got : -1;
}

static void shuffles()
{
    static const char *const names[MODES] = {"", "up", "down", "xor"};
    for (int mode = 0; mode < MODES; mode++) {
        bool right = true;
        in_every_order(std::string("shuffle ") + names[mode] + ", every width", [&] {
            bytes all;
            int *out = device<int>(64);
            for (int width = 1; width <= 32; width *= 2)
                for (int by = 0; by < (mode == 0 ? 40 : 32); by++) {
                    LAUNCH(shuffle_all, 1, 64, 0, nullptr, out, mode, by, width);
                    std::vector<int> got = download(out, 64);
                    for (int i = 0; i < 64; i++) /* lanes of warp 1 call themselves 32 to 63 */
                        right = right &&
                                got[(size_t)i] == i / 32 * 32 + expected(mode, i % 32, by, width);
                    bytes more = raw(got);
                    all.insert(all.end(), more.begin(), more.end());
                }
            must(cudaFree(out));
            return all;
        });
        check("... reads the right lanes, of 2 to 16 bytes", right);
    }
}

/* Even and odd lanes exchange apart from each other; lanes from 40 on do not take part. */
__global__ void parts(int *out)
{
    unsigned lane = threadIdx.x % 32, mine = lane % 2 ? 0xaaaaaaaa : 0x55555555;
    int sum = (int)threadIdx.x;
    if (threadIdx.x >= 40)
        return;
    if (threadIdx.x >= 32)
        mine &= 0xff;
    for (unsigned step = 2; step < (threadIdx.x >= 32 ? 8u : 32u); step *= 2)
        sum += __shfl_xor_sync(mine, sum, (int)step);
    out[threadIdx.x] = sum;
}

__global__ void vote(unsigned *out)
{
    unsigned full = 0xffffffff, lane = threadIdx.x, low = 0xffff;
    unsigned third = __ballot_sync(full, lane % 3 == 0);
    int any = __any_sync(full, lane == 31), none = __any_sync(full, 0);
    int every = __all_sync(full, 1), most = __all_sync(full, lane != 8);
    unsigned part = lane < 16 ? __ballot_sync(low, lane & 1) : 0;
    int all_same, all_differ;
    unsigned fours = __match_any_sync(full, lane % 4),
             wide = __match_any_sync(full, (lane % 8) * 1.5);
    unsigned same = __match_all_sync(full, 7, &all_same),
             differ = __match_all_sync(full, lane, &all_differ);
    bool right = third == 0x49249249 && any && !none && every && !most &&
                 part == (lane < 16 ? 0xaaaau : 0) && fours == 0x11111111u << lane % 4 &&
                 wide == 0x01010101u << lane % 8 && all_same && same == full && !all_differ &&
                 differ == 0;
    out[lane] = right;
}

__global__ void sums(unsigned *out)
{
    unsigned full = 0xffffffff, lane = threadIdx.x;
    int sign = (int)lane - 10;
    bool right = __reduce_add_sync(full, lane) == 496 && __reduce_min_sync(full, lane + 3) == 3 &&
                 __reduce_max_sync(full, lane) == 31 && __reduce_min_sync(full, sign) == -10 &&
                 __reduce_max_sync(full, sign) == 21 && __reduce_add_sync(full, sign) == 176 &&
                 __reduce_and_sync(full, lane | 64) == 64 && __reduce_or_sync(full, lane) == 31 &&
                 __reduce_xor_sync(full, 1u << lane) == full;
    if (lane < 3)
        right = right && __reduce_add_sync(7, lane) == 3;
    out[lane] = right && __activemask() >> lane == 1;
}

static bool all_ones(void (*kernel)(unsigned *))
{
    unsigned *out = device<unsigned>(32);
    LAUNCH(kernel, 1, 32, 0, nullptr, out);
    std::vector<unsigned> got = download(out, 32);
    must(cudaFree(out));
    for (unsigned g : got)
        if (g != 1)
            return false;
    return true;
}

__global__ void atomics(int *at, float *sum)
{
    atomicAdd(&at[0], 2);
    atomicSub(&at[1], 1);
    atomicMin(&at[2], 50 - (int)threadIdx.x);
    atomicMax(&at[3], (int)threadIdx.x);
    atomicAnd(&at[4], ~(1 << threadIdx.x % 32));
    atomicOr(&at[5], 1 << threadIdx.x % 32);
    atomicXor(&at[6], 3);
    if (threadIdx.x == 5)
        at[8] = atomicExch(&at[7], 9);
    while (atomicCAS(&at[9], (int)threadIdx.x, (int)threadIdx.x + 1) != (int)threadIdx.x)
        __syncthreads();
    atomicAdd(sum, 0.5f);
}

/* atomicCAS lets the lanes pass one after the other, so lane i must come before lane i + 1. */
static void atomic()
{
    int *at = upload(std::vector<int>(10, 0));
    float *sum = upload(std::vector<float>(1, 0));
    LAUNCH(atomics, 1, 40, 0, nullptr, at, sum);
    std::vector<int> got = download(at, 10);
    check("atomics", got == std::vector<int>({80, -40, 0, 39, 0, -1, 0, 9, 0, 40}) &&
                         download(sum, 1)[0] == 20);
}

__global__ void lacks_caller(int *out) { out[threadIdx.x] = __shfl_sync(0xfffffffe, 1, 1); }
__global__ void names_absent(int *out) { out[threadIdx.x] = __shfl_sync(0xffffffff, 1, 0); }
__global__ void names_returned(int *out)
{
    if (threadIdx.x == 0)
        return;
    out[threadIdx.x] = __shfl_sync(0xffffffff, 1, 0);
}
__global__ void names_busy(int *out)
{
    if (threadIdx.x < 16)
        __syncthreads();
    else
        out[threadIdx.x] = __ballot_sync(0xffffffff, 1);
    __syncthreads();
}
__global__ void two_masks(int *out)
{
    out[threadIdx.x] = __any_sync(threadIdx.x < 16 ? 0xffffffff : 0xffff0000, 1);
}
__global__ void two_places(int *out)
{
    if (threadIdx.x < 16)
        out[threadIdx.x] = __shfl_sync(0xffffffff, 1, 0);
    else
        out[threadIdx.x] = __shfl_sync(0xffffffff, 2, 0);
}
__global__ void reads_absent(int *out)
{
    if (threadIdx.x < 8)
        out[threadIdx.x] = __shfl_sync(0xff, 1, 9);
}
__global__ void odd_width(int *out) { out[threadIdx.x] = __shfl_sync(0xffffffff, 1, 0, 12); }

/* Lanes hand numbers on through shared memory, with and without a __syncwarp between. */
template <bool synced> __global__ void hand_on(int *out)
{
    SHARED(int, all, [32]);
    all[threadIdx.x] = (int)threadIdx.x;
    if (synced)
        __syncwarp();
    out[threadIdx.x] = all[31 - threadIdx.x];
}

static bytes run(void (*kernel)(int *), int threads)
{
    int *out = device<int>(64);
    must(cudaMemset(out, 0, 256));
    LAUNCH(kernel, 1, threads, 0, nullptr, out);
    std::vector<int> got = download(out, 64);
    must(cudaFree(out));
    return raw(got);
}

static void masks()
{
    for (const emu::order &o : all_orders()) {
        emu::set_order(o);
        std::string in =
            " (lanes " + std::to_string(o.lanes) + ", seed " + std::to_string(o.seed) + ")";
        aborts("a mask that lacks its caller" + in, "a mask that lacks it",
               [] { run(lacks_caller, 32); });
        aborts("a mask with a lane that is not there" + in, "the block has 20",
               [] { run(names_absent, 20); });
        aborts("a mask with a lane that returned" + in, "return", [] { run(names_returned, 32); });
        aborts("a mask with a lane at a barrier" + in, "waits at a barrier at",
               [] { run(names_busy, 32); });
        aborts("two masks" + in, "__any_sync", [] { run(two_masks, 32); });
        aborts("two places" + in, "which waits in __shfl_sync", [] { run(two_places, 32); });
        aborts("a shuffle that reads past its mask" + in, "reads lane 9",
               [] { run(reads_absent, 32); });
    }
    emu::set_order(emu::order());
    aborts("a width of 12", "no power of 2", [] { run(odd_width, 32); });
    differs("a missing __syncwarp", [] { return run(hand_on<false>, 32); });
    in_every_order("__syncwarp", [] { return run(hand_on<true>, 32); });
}

int main()
{
    shuffles();
    in_every_order("partial masks", [] { return run(parts, 50); });
    bytes b = run(parts, 50);
    const int *got = (const int *)b.data();
    check("... sum apart",
          got[0] == 240 && got[1] == 256 && got[32] == 32 + 34 + 36 + 38 && got[39] == 144);
    check("ballot, any, all, match", all_ones(vote));
    check("__reduce_*_sync and __activemask", all_ones(sums));
    atomic();
    masks();
    return done();
}
