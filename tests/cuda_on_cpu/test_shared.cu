/* test_shared.cu - shared memory and asynchronous copies of the emulator: NaN at first, red zones,
 * limits, and a copy that is there after its wait. */
#include "prove.h"

#include "devices/cuda/ptx.h"

__global__ void untouched(int *out)
{
    SHARED(float, fixed, [64]);
    DYNAMIC_SHARED(float, more);
    out[threadIdx.x] = std::isnan(fixed[threadIdx.x]) && std::isnan(more[threadIdx.x]);
    __syncthreads();
    fixed[threadIdx.x] = more[threadIdx.x] = 1; /* the next block finds NaN all the same */
}

__device__ float *helper()
{
    SHARED(float, kept, [32]);
    return kept;
}

__global__ void one_array(int *out)
{
    SHARED(float, mine, [32]);
    SHARED(double, scalar, [1]);
    float *a = helper();
    a[threadIdx.x] = (float)threadIdx.x;
    mine[threadIdx.x] = -1;
    if (threadIdx.x == 0)
        scalar[0] = 7;
    __syncthreads();
    out[threadIdx.x] = helper()[threadIdx.x ^ 1] == (float)(threadIdx.x ^ 1) && scalar[0] == 7;
}

__global__ void writes_static(int *, int at)
{
    SHARED(float, narrow, [8]);
    narrow[at] = 0;
}

__global__ void writes_dynamic(int *, int at)
{
    DYNAMIC_SHARED(float, buffer);
    buffer[at] = 0;
}

__global__ void fills_static(int *)
{
    SHARED(char, large, [48 * 1024]);
    large[0] = 1;
}

__global__ void much_static(int *)
{
    SHARED(char, large, [40 * 1024]);
    SHARED(char, more, [9 * 1024]);
    large[0] = more[0] = 1;
}

__global__ void reaches_end(int *, int last)
{
    DYNAMIC_SHARED(char, buffer);
    buffer[last] = 1;
}

static bool all_ones(void (*kernel)(int *), int blocks, int threads, size_t shared)
{
    int *out = upload(std::vector<int>((size_t)threads, 0));
    LAUNCH(kernel, blocks, threads, shared, nullptr, out);
    std::vector<int> got = download(out, (size_t)threads);
    must(cudaFree(out));
    return got == std::vector<int>((size_t)threads, 1);
}

static cudaError_t start(void (*kernel)(int *, int), int value, size_t shared)
{
    LAUNCH(kernel, 1, 1, shared, nullptr, (int *)nullptr, value);
    cudaError_t error = cudaGetLastError();
    return error ? error : cudaDeviceSynchronize();
}

static void start_static(void (*kernel)(int *), size_t shared)
{
    LAUNCH(kernel, 1, 1, shared, nullptr, (int *)nullptr);
    must(cudaDeviceSynchronize());
}

static void limits()
{
    static const struct {
        int sm;
        size_t most;
    } known[] = {{80, 163}, {86, 99}, {89, 99}, {90, 227}, {100, 227}, {120, 99}};
    check("48 KiB need no leave", start(reaches_end, 48 * 1024 - 1, 48 * 1024) == cudaSuccess);
    check("more without leave is refused",
          start(reaches_end, 0, 48 * 1024 + 4) == cudaErrorInvalidValue);
    for (auto &k : known) {
        size_t most = k.most * 1024;
        emu::set_architecture(k.sm);
        std::string name = "sm_" + std::to_string(k.sm) + " has " + std::to_string(k.most) + " KiB";
        bool one_more =
            cudaFuncSetAttribute(reaches_end, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 (int)most + 1) == cudaSuccess;
        must(cudaFuncSetAttribute(reaches_end, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  (int)most));
        cudaDeviceProp p;
        must(cudaGetDeviceProperties(&p, 0));
        cudaGetLastError();
        check(name, !one_more && start(reaches_end, (int)most - 1, most) == cudaSuccess &&
                        start(reaches_end, 0, most + 1) == cudaErrorInvalidValue &&
                        p.sharedMemPerBlockOptin == most && p.major * 10 + p.minor == k.sm);
        cudaGetLastError();
    }
    emu::set_architecture(90);
    start_static(fills_static, 0);
    check("48 KiB of static memory", true);
    aborts("more than 48 KiB of static memory", "50176 bytes of static shared memory",
           [] { start_static(much_static, 0); });
    aborts("static and dynamic memory together", "without cudaFuncSetAttribute",
           [] { start_static(fills_static, 16); });
}

/* ---- cp.async ---- */

/* Two stages: while one tile is used, the next comes. wait: the groups that may be under way. */
template <int WAIT> __global__ void pipeline(const float *in, float *out, int tiles)
{
    SHARED(float, stage, [2][128]);
    float sum = 0;
    ptx_copy_async(&stage[0][4 * threadIdx.x], in + 4 * threadIdx.x);
    ptx_copy_commit();
    for (int t = 0; t < tiles; t++) {
        if (t + 1 < tiles)
            ptx_copy_async(&stage[(t + 1) % 2][4 * threadIdx.x],
                           in + (t + 1) * 128 + 4 * threadIdx.x);
        ptx_copy_commit();
        ptx_copy_wait<WAIT>();
        __syncthreads();
        for (int i = 0; i < 4; i++)
            sum += stage[t % 2][threadIdx.x + 32 * (unsigned)i];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}

__global__ void no_wait(const float *in, float *out)
{
    SHARED(float, stage, [128]);
    ptx_copy_async(&stage[4 * threadIdx.x], in + 4 * threadIdx.x);
    ptx_copy_commit();
    __syncthreads();
    out[threadIdx.x] = stage[threadIdx.x];
}

/* The array holds numbers before, as in the second round of a loop. */
__global__ void no_wait_again(const float *in, float *out)
{
    SHARED(float, stage, [128]);
    for (unsigned i = 0; i < 4; i++)
        stage[4 * threadIdx.x + i] = 1;
    ptx_copy_async(&stage[4 * threadIdx.x], in + 4 * threadIdx.x);
    ptx_copy_commit();
    out[threadIdx.x] = stage[4 * threadIdx.x];
    ptx_copy_wait<0>();
}

__global__ void no_commit(const float *in, float *out)
{
    SHARED(float, stage, [128]);
    ptx_copy_async(&stage[4 * threadIdx.x], in + 4 * threadIdx.x);
    ptx_copy_wait<0>();
    __syncthreads();
    out[threadIdx.x] = stage[threadIdx.x];
}

__global__ void wait_without_barrier(const float *in, float *out)
{
    SHARED(float, stage, [128]);
    ptx_copy_async(&stage[4 * threadIdx.x], in + 4 * threadIdx.x);
    ptx_copy_commit();
    ptx_copy_wait<0>();
    out[threadIdx.x] = stage[(4 * threadIdx.x + 64) % 128];
}

__global__ void part(const float *in, float *out)
{
    SHARED(float, stage, [128]);
    ptx_copy_async(&stage[4 * threadIdx.x], in + 4 * threadIdx.x, threadIdx.x % 5 * 4);
    ptx_copy_commit();
    ptx_copy_wait<0>();
    for (int i = 0; i < 4; i++)
        out[4 * threadIdx.x + (unsigned)i] = stage[4 * threadIdx.x + (unsigned)i];
}

__global__ void unaligned(const float *in, float *out)
{
    SHARED(float, stage, [128]);
    ptx_copy_async(&stage[1], in);
    out[0] = stage[0];
}

__global__ void past_array(const float *in, float *out)
{
    SHARED(float, stage, [128]);
    ptx_copy_async(&stage[124 + 4 * threadIdx.x], in);
    out[0] = stage[0];
}

__global__ void past_source(const float *in, float *out)
{
    SHARED(float, stage, [128]);
    ptx_copy_async(&stage[0], in + 1024);
    out[0] = stage[0];
}

struct numbers {
    float *in, *out;
    numbers()
    {
        std::vector<float> v(1024);
        for (size_t i = 0; i < v.size(); i++)
            v[i] = (float)(i % 37);
        in = upload(v);
        out = upload(std::vector<float>(128, -1));
    }
    ~numbers()
    {
        must(cudaFree(in));
        must(cudaFree(out));
    }
};

static std::vector<float> run(void (*kernel)(const float *, float *), int threads = 32)
{
    numbers n;
    LAUNCH(kernel, 1, threads, 0, nullptr, (const float *)n.in, n.out);
    return download(n.out, 128);
}

template <int WAIT> static std::vector<float> run_pipeline()
{
    numbers n;
    LAUNCH(pipeline<WAIT>, 1, 32, 0, nullptr, (const float *)n.in, n.out, 8);
    return download(n.out, 32);
}

static void copies()
{
    std::vector<float> want(32, 0), got = run_pipeline<1>();
    for (size_t t = 0; t < 8; t++)
        for (size_t i = 0; i < 128; i++)
            want[i % 32] += (float)((t * 128 + i) % 37);
    check("a pipeline of two stages", got == want);
    in_every_order("a pipeline of two stages", [] { return raw(run_pipeline<1>()); });
    check("a wait that leaves one group too many is NaN", std::isnan(run_pipeline<2>()[0]));
    check("no wait is NaN", std::isnan(run(no_wait)[3]));
    check("no wait is NaN where numbers stood before", std::isnan(run(no_wait_again)[3]));
    check("no commit is NaN", std::isnan(run(no_commit)[3]));
    differs("a wait without a barrier", [] { return raw(run(wait_without_barrier)); });
    got = run(part);
    bool right = true;
    for (size_t i = 0; i < 128; i++)
        right = right && got[i] == (i % 4 < i / 4 % 5 ? (float)(i % 37) : 0);
    check("the part that is not read is zero", right);
    aborts("a copy to an address that is not aligned", "not aligned", [] { run(unaligned); });
    aborts("a copy past the shared array", "no shared memory", [] { run(past_array, 2); });
    aborts("a copy from past the allocation", "cp.async from", [] { run(past_source); });
}

int main()
{
    check("shared memory is NaN at first, in each block", all_ones(untouched, 3, 64, 256));
    check("an array of a function is one array", all_ones(one_array, 2, 32, 0));
    aborts("a write behind a static array", "array narrow of 32 bytes, at its byte 32",
           [] { start(writes_static, 8, 0); });
    aborts("a write before a static array", "array narrow of 32 bytes, at its byte -4",
           [] { start(writes_static, -1, 0); });
    aborts("a write behind the dynamic part", "the dynamic part of 64 bytes, at its byte 64",
           [] { start(writes_dynamic, 16, 64); });
    limits();
    copies();
    return done();
}
