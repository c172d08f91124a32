/* memory.cc - device memory: a range of addresses that nobody can touch but queued work. Guard
 * pages lie between allocations. A fault says what the address was. */
#include "fibers.h"
#include "parts.h"
#include "runtime_api.h"

#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <vector>

namespace emu
{

/* Its bytes lie at the end of what is mapped, so that the next page, a guard, begins within 256
 * bytes of their end. */
struct allocation {
    size_t bytes, mapped;
    char *mapping;
};

/* Addresses: four times the memory, so that guard pages and gaps find a place. */
/* Over MOST_FILLED bytes are zeros, in pages that take memory once they are used. */
enum : size_t { PAGE = 64 * 1024, ALIGNMENT = 256, FILL = 0xff, MOST_FILLED = (size_t)1 << 30 };
static std::map<char *, allocation> allocations;
static std::map<const char *, size_t> pinned; /* host memory */
static char *base;
static size_t used;
static size_t held, peak, mallocs; /* as asked for */
static int opened;

size_t memory_total()
{
    static const char *wanted = getenv("CUDA_ON_CPU_MEMORY");
    static const size_t bytes = wanted ? (size_t)strtoull(wanted, nullptr, 10) : (size_t)1 << 30;
    return bytes;
}

bool memory_take(int64_t bytes)
{
    if (bytes > (int64_t)(memory_total() - used))
        return false;
    used += (size_t)bytes;
    return true;
}

/* A kernel is loaded when it is first launched. CUDA_ON_CPU_LOAD: the bytes that it takes then. */
bool memory_load(const void *kernel)
{
    static const char *wanted = getenv("CUDA_ON_CPU_LOAD");
    static std::set<const void *> loaded;
    return !wanted || !loaded.insert(kernel).second || memory_take(atoll(wanted));
}

static size_t range() { return 4 * memory_total() + 64 * PAGE; }

const char *memory_name(const void *at)
{
    const char *p = (const char *)at;
    if (fiber_owns_guard(at))
        return "behind the end of a lane's stack";
    if (!base || p < base || p >= base + range())
        return "no device memory";
    for (const auto &a : allocations)
        if (p >= a.second.mapping && p < a.second.mapping + a.second.mapped)
            return "device memory, which the host may not touch";
    return "device memory that is not allocated";
}

static void on_fault(int number, siginfo_t *info, void *)
{
    signal(number, SIG_DFL);
    fail("a fault at address %p: %s", info->si_addr, memory_name(info->si_addr));
}

/* With CUDA_ON_CPU_REPORT=FILE, FILE gets a line at the end of the process. */
static void report()
{
    FILE *f = fopen(getenv("CUDA_ON_CPU_REPORT"), "a");
    if (!f || fprintf(f, "%zu bytes at most, in %zu calls of cudaMalloc\n", peak, mallocs) < 0 ||
        fclose(f) != 0)
        fail("CUDA_ON_CPU_REPORT: it cannot be written");
}

/* Faults are handled on a stack of their own: a lane's may be full. */
static void begin()
{
    static char stack[64 * 1024];
    if (base)
        return;
    base = (char *)mmap(nullptr, range() + PAGE, PROT_NONE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        fail("no addresses for %zu bytes of device memory", range() + PAGE);
    base += PAGE - (uintptr_t)base % PAGE;
    stack_t alternate = {};
    alternate.ss_sp = stack;
    alternate.ss_size = sizeof stack;
    sigaltstack(&alternate, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
    if (getenv("CUDA_ON_CPU_REPORT"))
        atexit(report);
}

static void check_ends(const char *at, const allocation &a)
{
    const char *end = a.mapping + a.mapped;
    for (const char *p = at + a.bytes; p < end; p++)
        if ((unsigned char)*p != FILL)
            fail("something wrote behind the end of %zu bytes of device memory, at byte %td",
                 a.bytes, p - at);
    for (const char *p = a.mapping; p < at; p++)
        if ((unsigned char)*p != FILL)
            fail("something wrote before %zu bytes of device memory, at byte %td", a.bytes, p - at);
}

open_memory::open_memory()
{
    begin();
    if (opened++ == 0)
        for (auto &a : allocations)
            mprotect(a.second.mapping, a.second.mapped, PROT_READ | PROT_WRITE);
}

open_memory::~open_memory()
{
    for (auto &a : allocations)
        check_ends(a.first, a.second);
    if (--opened == 0)
        for (auto &a : allocations)
            mprotect(a.second.mapping, a.second.mapped, PROT_NONE);
}

bool memory_holds(const void *at, size_t bytes)
{
    auto next = allocations.upper_bound((char *)at);
    if (next == allocations.begin())
        return false;
    auto a = std::prev(next);
    return (const char *)at + bytes <= a->first + a->second.bytes;
}

} // namespace emu

using namespace emu;

cudaError_t cudaMalloc(void **at, size_t bytes)
{
    EMU_CALLED("cudaMalloc", true);
    begin();
    if (is_capturing())
        return returned(cudaErrorStreamCaptureUnsupported);
    size_t mapped = (bytes + PAGE - 1) / PAGE * PAGE;
    if (bytes > memory_total() || used + mapped > memory_total())
        return returned(cudaErrorMemoryAllocation);
    char *stretch = base + PAGE;
    for (auto &a : allocations) {
        if (stretch + mapped + PAGE <= a.second.mapping)
            break;
        stretch = a.second.mapping + a.second.mapped + PAGE;
    }
    if (mapped == 0 || stretch + mapped > base + range() - 2 * PAGE) {
        *at = nullptr;
        return returned(mapped ? cudaErrorMemoryAllocation : cudaSuccess);
    }
    char *first = stretch + mapped - (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (!counting()) {
        mprotect(stretch, mapped, PROT_READ | PROT_WRITE);
        if (mapped <= MOST_FILLED) {
            memset(stretch, FILL, mapped);
        } else {
            memset(stretch, FILL, (size_t)(first - stretch));
            memset(first + bytes, FILL, (size_t)(stretch + mapped - first) - bytes);
        }
        mprotect(stretch, mapped, PROT_NONE);
    }
    allocations[first] = {bytes, mapped, stretch};
    used += mapped;
    held += bytes;
    peak = held > peak ? held : peak;
    mallocs++;
    *at = first;
    return cudaSuccess;
}

cudaError_t cudaFree(void *at)
{
    EMU_CALLED("cudaFree", true);
    if (!at)
        return cudaSuccess;
    if (is_capturing())
        return returned(cudaErrorStreamCaptureUnsupported);
    auto a = allocations.find((char *)at);
    if (a == allocations.end())
        return returned(cudaErrorInvalidValue);
    finish_all();
    used -= a->second.mapped;
    held -= a->second.bytes;
    if (mmap(a->second.mapping, a->second.mapped, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        fail("cannot give back device memory");
    allocations.erase(a);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    EMU_CALLED("cudaMemGetInfo");
    *free_bytes = memory_total() - used;
    *total_bytes = memory_total();
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **at, size_t bytes)
{
    EMU_CALLED("cudaMallocHost", true);
    if (!(*at = malloc(bytes)))
        return returned(cudaErrorMemoryAllocation);
    pinned[(const char *)*at] = bytes;
    return cudaSuccess;
}

cudaError_t cudaFreeHost(void *at)
{
    EMU_CALLED("cudaFreeHost", true);
    finish_all();
    pinned.erase((const char *)at);
    free(at);
    return cudaSuccess;
}

static bool is_device(const void *at)
{
    return base && (const char *)at >= base && (const char *)at < base + range();
}

/* Whether a copy of that kind may go between these. */
static bool copy_fits(const void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    bool to_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    bool from_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    if (kind == cudaMemcpyDefault) {
        to_device = is_device(to);
        from_device = is_device(from);
    }
    return is_device(to) == to_device && is_device(from) == from_device &&
           (!to_device || memory_holds(to, bytes)) && (!from_device || memory_holds(from, bytes));
}

static bool is_pageable(const void *at)
{
    auto next = pinned.upper_bound((const char *)at);
    bool locked = next != pinned.begin() &&
                  (const char *)at < std::prev(next)->first + std::prev(next)->second;
    return !is_device(at) && !locked;
}

/* A copy waits if its host memory is not pinned. */
static bool copy_waits(const void *to, const void *from)
{
    return is_pageable(to) || is_pageable(from);
}

static cudaError_t copy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t stream)
{
    if (bytes == 0)
        return cudaSuccess;
    if (!copy_fits(to, from, bytes, kind))
        return returned(cudaErrorInvalidValue);
    return queue(stream, "cudaMemcpyAsync", [=] {
        open_memory open;
        memmove(to, from, bytes);
    });
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream)
{
    EMU_CALLED("cudaMemcpyAsync", copy_waits(to, from));
    return copy(to, from, bytes, kind, stream);
}

static cudaError_t set(void *at, int value, size_t bytes, cudaStream_t stream)
{
    if (bytes == 0)
        return cudaSuccess;
    if (!memory_holds(at, bytes))
        return returned(cudaErrorInvalidValue);
    static const char kernel = 0;
    if (!memory_load(&kernel))
        return returned(cudaErrorMemoryAllocation);
    return queue(stream, "cudaMemsetAsync", [=] {
        open_memory open;
        memset(at, value, bytes);
    });
}

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
    EMU_CALLED("cudaMemsetAsync");
    return set(at, value, bytes, stream);
}

/* From pageable memory: it returns once the source has been read. The bytes are on their way in the
 * null stream, and a stream that does not block need not find them. */
static cudaError_t copy_staged(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    if (!copy_fits(to, from, bytes, kind))
        return returned(cudaErrorInvalidValue);
    if (cudaError_t error = wait_for(nullptr))
        return error;
    const char *source = (const char *)from;
    auto staged = std::make_shared<std::vector<char>>(source, source + bytes);
    return queue(nullptr, "cudaMemcpy", [=] {
        open_memory open;
        memcpy(to, staged->data(), bytes);
    });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    EMU_CALLED("cudaMemcpy", true);
    if (is_device(to) && is_pageable(from) && !counting() && bytes > 0)
        return copy_staged(to, from, bytes, kind);
    cudaError_t error = copy(to, from, bytes, kind, nullptr);
    return error ? error : wait_for(nullptr);
}

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    EMU_CALLED("cudaMemset", true);
    cudaError_t error = set(at, value, bytes, nullptr);
    return error ? error : wait_for(nullptr);
}
