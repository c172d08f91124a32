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

namespace emu
{

/* Its bytes lie at the end of what is mapped, so that the next page, a guard, begins within 256
 * bytes of their end. */
struct allocation {
    size_t bytes, mapped;
    char *mapping;
};

/* Addresses: four times the memory, so that guard pages and gaps find a place. */
enum : size_t { PAGE = 64 * 1024, ALIGNMENT = 256, FILL = 0xff };
static std::map<char *, allocation> allocations;
static char *base;
static size_t used;
static int opened;

static size_t total()
{
    static const char *wanted = getenv("CUDA_ON_CPU_MEMORY");
    static const size_t bytes = wanted ? (size_t)strtoull(wanted, nullptr, 10) : (size_t)1 << 30;
    return bytes;
}

static size_t range() { return 4 * total() + 64 * PAGE; }

const char *memory_place(const void *at)
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
    fail("a fault at address %p: %s", info->si_addr, memory_place(info->si_addr));
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
    stack_t place = {};
    place.ss_sp = stack;
    place.ss_size = sizeof stack;
    sigaltstack(&place, nullptr);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    sigaction(SIGBUS, &action, nullptr);
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
    if (opened > 1) {
        opened--;
        return;
    }
    for (auto &a : allocations)
        check_ends(a.first, a.second);
    for (auto &a : allocations)
        mprotect(a.second.mapping, a.second.mapped, PROT_NONE);
    opened = 0;
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
    begin();
    if (is_capturing())
        return returned(cudaErrorStreamCaptureUnsupported);
    size_t mapped = (bytes + PAGE - 1) / PAGE * PAGE;
    if (bytes > total() || used + mapped > total())
        return returned(cudaErrorMemoryAllocation);
    char *place = base + PAGE;
    for (auto &a : allocations) {
        if (place + mapped + PAGE <= a.second.mapping)
            break;
        place = a.second.mapping + a.second.mapped + PAGE;
    }
    if (mapped == 0 || place + mapped > base + range() - 2 * PAGE) {
        *at = nullptr;
        return returned(mapped ? cudaErrorMemoryAllocation : cudaSuccess);
    }
    if (!counting()) {
        mprotect(place, mapped, PROT_READ | PROT_WRITE);
        memset(place, FILL, mapped);
        mprotect(place, mapped, PROT_NONE);
    }
    char *first = place + mapped - (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    allocations[first] = {bytes, mapped, place};
    used += mapped;
    *at = first;
    return cudaSuccess;
}

cudaError_t cudaFree(void *at)
{
    if (!at)
        return cudaSuccess;
    if (is_capturing())
        return returned(cudaErrorStreamCaptureUnsupported);
    auto a = allocations.find((char *)at);
    if (a == allocations.end())
        return returned(cudaErrorInvalidValue);
    finish_all();
    used -= a->second.mapped;
    if (mmap(a->second.mapping, a->second.mapped, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        fail("cannot give back device memory");
    allocations.erase(a);
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    *free_bytes = total() - used;
    *total_bytes = total();
    return cudaSuccess;
}

cudaError_t cudaMallocHost(void **at, size_t bytes)
{
    return (*at = malloc(bytes)) ? cudaSuccess : returned(cudaErrorMemoryAllocation);
}

cudaError_t cudaFreeHost(void *at)
{
    finish_all();
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

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, cudaMemcpyKind kind,
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

cudaError_t cudaMemsetAsync(void *at, int value, size_t bytes, cudaStream_t stream)
{
    if (bytes == 0)
        return cudaSuccess;
    if (!memory_holds(at, bytes))
        return returned(cudaErrorInvalidValue);
    return queue(stream, "cudaMemsetAsync", [=] {
        open_memory open;
        memset(at, value, bytes);
    });
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, cudaMemcpyKind kind)
{
    cudaError_t error = cudaMemcpyAsync(to, from, bytes, kind, nullptr);
    return error ? error : cudaStreamSynchronize(nullptr);
}

cudaError_t cudaMemset(void *at, int value, size_t bytes)
{
    cudaError_t error = cudaMemsetAsync(at, value, bytes, nullptr);
    return error ? error : cudaStreamSynchronize(nullptr);
}
