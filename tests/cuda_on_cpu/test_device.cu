/* test_device.cu - the CUDA device as programs open it: memory, transfers, order, what it refuses.
 */
#include "prove.h"

#include <cstring>

#include "core/clock.h"
#include "core/error.h"
#include "devices/cuda/sizes.h"
#include "devices/ops.h"

static struct tune_device *dev;

static bool says(const char *text)
{
    bool found = strstr(tune_error_message(), text) != nullptr;
    if (!found)
        printf("# expected \"%s\" in: %s\n", text, tune_error_message());
    return found;
}

static void names()
{
    static const char *const bad[] = {"cuda:",   "cuda:x", "cuda:1x", "cuda:-1",
                                      "cudagpu", "gpu",    ""};
    for (const char *name : bad)
        check(std::string("device \"") + name + "\" is refused",
              !tune_device_open(name, 1) && says("expected cpu, cuda or cuda:N"));
    check("a GPU that is not there",
          !tune_device_open("cuda:1023", 1) &&
              says("cuda:1023: there is no such GPU; this process sees"));
    dev = tune_device_open("cuda:0", 1);
    check("cuda:0 opens", dev != nullptr);
    if (!dev) {
        printf("# %s\n", tune_error_message());
        exit(1);
    }
    check("it says what it is", strcmp(dev->name, "cuda") == 0 &&
                                    strstr(dev->description, "sm_") &&
                                    strstr(dev->description, "driver for CUDA") && dev->gpus);
}

static std::vector<float> read(tune_address at, size_t n)
{
    std::vector<float> v(n);
    if (tune_device_download(dev, v.data(), at, (int64_t)n * 4) < 0 || tune_device_sync(dev) < 0)
        printf("# %s\n", tune_error_message());
    return v;
}

static void memory()
{
    struct tune_device_memory before, after;
    /* the kernel that zeroes takes memory when it is first used */
    tune_device_free(dev, tune_device_alloc(dev, 64, "a test"), 64);
    check("memory is known",
          tune_device_memory(dev, &before) == 0 && before.free > 0 && !before.shared);
    const int64_t much = 64 << 20; /* a GPU gives out pages of 2 MiB */
    tune_address x = tune_device_alloc(dev, much, "a test");
    check("an allocation is zeroed", read(x, 1000) == std::vector<float>(1000, 0.0f));
    tune_device_memory(dev, &after);
    check("it is counted", after.free < before.free);
    tune_device_free(dev, x, much);
    tune_device_memory(dev, &after);
    check("and free again", after.free == before.free);
    tune_address none = tune_device_alloc(dev, before.total + 1, "too much");
    check("too much is refused", none.at == 0 && says("no memory on cuda for too much"));
    check("and the device goes on", read(tune_device_alloc(dev, 64, "a test"), 16)[0] == 0);
}

/* The logits that a GPU holds at a time go by its memory. */
static void logits()
{
    static const int64_t gpus[][2] = {
        {0, 1024},          {1, 64},            {(int64_t)2 << 30, 64}, {8000000000, 128},
        {16900000000, 256}, {25300000000, 512}, {85000000000, 1024},    {150000000000, 1024}};
    bool good = true;
    for (auto &g : gpus)
        good = good && tune_cuda_logits_bytes(g[0]) == g[1] << 20;
    struct tune_device_memory memory;
    tune_device_memory(dev, &memory);
    check("logits by the GPU's memory",
          good && dev->logits_bytes == tune_cuda_logits_bytes(memory.total));
    struct tune_device *plan = tune_device_plan("cuda", 1, memory.total);
    check("... the plan has as many", plan && plan->logits_bytes == dev->logits_bytes);
    tune_device_close(plan);
}

static void transfers()
{
    /* the pinned memory holds 8 MiB; sizes around its halves */
    for (size_t n : {1ul, 100ul, 1ul << 20, (1ul << 20) + 1, 5000000ul}) {
        std::vector<float> from(n);
        for (size_t i = 0; i < n; i++)
            from[i] = (float)(i % 8191);
        std::vector<float> sent = from;
        tune_address x = tune_device_alloc(dev, (int64_t)n * 4, "a test");
        bool good = tune_device_upload(dev, x, sent.data(), (int64_t)n * 4) == 0;
        sent.assign(n, -1); /* it was read */
        check("upload and download of " + std::to_string(n), good && read(x, n) == from);
        tune_device_free(dev, x, (int64_t)n * 4);
    }
    /* many small ones before one sync */
    tune_address x = tune_device_alloc(dev, 4 * 2000, "a test");
    std::vector<float> to(2000, -1), want(2000);
    bool good = true, late = true;
    for (int i = 0; i < 2000; i++) {
        float v = want[(size_t)i] = (float)i;
        tune_address at = tune_address_plus(x, 4 * i);
        good = good && tune_device_upload(dev, at, &v, 4) == 0;
        good = good && tune_device_download(dev, &to[(size_t)i], at, 4) == 0;
        late = late && (i > 1000 || to[(size_t)i] == -1);
    }
    check("2000 small ones", good && tune_device_sync(dev) == 0 && to == want);
    check("a download comes with the sync", late);
    tune_device_free(dev, x, 4 * 2000);
}

static void order()
{
    float one = 1, two = 2;
    tune_address x = tune_device_alloc(dev, 4, "a test"), y = tune_device_alloc(dev, 4, "a test");
    tune_tensor tx = tune_tensor_1d(x, TUNE_F32, 1), ty = tune_tensor_1d(y, TUNE_F32, 1);
    float got = 0;
    tune_device_upload(dev, x, &one, 4);
    tune_axpby(dev, &ty, &tx, 3, 0);
    tune_device_upload(dev, x, &two, 4);
    tune_axpby(dev, &ty, &tx, 1, 1);
    tune_device_free(dev, x, 4); /* takes effect in order */
    tune_device_download(dev, &got, y, 4);
    check("work is done in the order of the calls", tune_device_sync(dev) == 0 && got == 5);
    tune_device_free(dev, y, 4);
    void *host = &got;
    tune_address z = tune_device_alloc(dev, 4, "a test");
    check("the host has no way in", tune_device_in_place(dev, z, &host) == 0 && !host);
    tune_device_free(dev, z, 4);
}

static void clocks()
{
    tune_address step = tune_device_alloc(dev, sizeof(tune_scalars), "a test");
    tune_scalars s;
    double before = tune_clock_s();
    tune_begin_step(dev, step);
    tune_device_download(dev, &s, step, sizeof s);
    tune_device_sync(dev);
    double after = tune_clock_s();
    check("the step's times are ours", before - 0.01 <= s.begin_s && s.begin_s <= after + 0.01);
    tune_device_free(dev, step, sizeof s);
}

/* A download that was queued before a call that failed: its target may be gone. In a child, because
 * a process has one fault. */
static void abandoned()
{
    static const char *const faults[] = {"cudaMemcpyAsync#2:cudaErrorMemoryAllocation",
                                         "launch exchange:cudaErrorMemoryAllocation",
                                         "cudaMemcpyAsync#2:cudaErrorIllegalAddress"};
    for (const char *fault : faults) {
        int status = 0;
        fflush(nullptr);
        pid_t pid = fork();
        if (pid == 0) {
            float target[4] = {-1, -1, -1, -1}, other[4], mine[4] = {5, 5, 5, 5};
            setenv("CUDA_ON_CPU_FAIL", fault, 1);
            dev = tune_device_open("cuda", 1);
            tune_address x = tune_device_alloc(dev, 16, "a test");
            tune_tensor t = tune_tensor_1d(x, TUNE_F32, 4);
            bool good = tune_device_download(dev, target, x, 16) == 0;
            bool failed = strncmp(fault, "launch", 6) == 0
                              ? tune_exchange(dev, &t, &t) < 0
                              : tune_device_download(dev, other, x, 16) < 0;
            memcpy(target, mine, sizeof mine);
            tune_device_sync(dev);
            _exit(good && failed && memcmp(target, mine, sizeof mine) == 0 ? 0 : 1);
        }
        waitpid(pid, &status, 0);
        check(std::string("after ") + fault + " no download comes late",
              WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* Whether an opening writes the step's scalars before a kernel reads them. In a child, because a
 * process has one list of calls. */
static void unread()
{
    char path[] = "/tmp/cuda-calls-XXXXXX", text[8192] = "";
    int fd = mkstemp(path), status = 0;
    fflush(nullptr);
    pid_t pid = fork();
    if (pid == 0) {
        setenv("CUDA_ON_CPU_CALLS", path, 1);
        dev = tune_device_open("cuda", 1);
        fflush(nullptr);
        _exit(dev ? 0 : 1);
    }
    waitpid(pid, &status, 0);
    ssize_t n = read(fd, text, sizeof text - 1);
    const char *set = strstr(text, " cudaMemsetAsync\n");
    const char *run = strstr(text, " launch begin_step\n");
    check("opening: no kernel reads what nobody wrote",
          status == 0 && n > 0 && set && run && set < run);
    close(fd);
    unlink(path);
}

int main()
{
    setenv("TUNE_CUDA_ALGORITHMS", "off", 1); /* the user's cache is not ours */
    setenv("CUDA_ON_CPU_LOAD", "3000000", 1); /* kernels take memory when they are first launched */
    if (emulated) {
        abandoned();
        unread();
    }
    names();
    memory();
    logits();
    transfers();
    order();
    clocks();
    tune_device_close(dev);
    return done();
}
