/* prove.h - TAP for tests of kernels: numbered checks, kernels in every order, kernels that must
 * abort. nvcc compiles those that compare operations for a GPU too (tests/gpu.sh). A GPU has one
 * order of its own, and runs them several times in it.
 *
 *     int main()
 *     {
 *         check("the sum is right", sum == 3);
 *         in_every_order("a reduction", run);              run returns the bytes that it computed
 *         aborts("a mask that lacks its lane", "lacks it", [] { launch_it(); });
 *         return done();
 *     } */
#ifndef CUDA_ON_CPU_PROVE_H
#define CUDA_ON_CPU_PROVE_H

#include <cuda_runtime.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

static int checks, failures;

static inline bool check(const std::string &name, bool ok)
{
    printf("%sok %d - %s\n", ok ? "" : "not ", ++checks, name.c_str());
    fflush(stdout);
    failures += !ok;
    return ok;
}

static inline int done()
{
    printf("1..%d\n", checks);
    return failures > 0;
}

/* A call of the runtime that must succeed. */
static inline void must(cudaError_t error, const char *file = __builtin_FILE(),
                        int line = __builtin_LINE())
{
    if (error == cudaSuccess)
        return;
    printf("not ok %d - %s:%d: %s\n", ++checks, file, line, cudaGetErrorString(error));
    exit(1);
}

/* emulated - false on a GPU: there the variables CUDA_ON_CPU_... mean nothing, and nobody counts
 * what is queued. */
#ifdef __CUDACC__
namespace emu
{
struct order {
};
static inline void set_order(const order &) {}
static inline uint64_t queued() { return 0; }
} // namespace emu
constexpr bool emulated = false;
static inline std::vector<emu::order> all_orders() { return std::vector<emu::order>(5); }
#else
constexpr bool emulated = true;
/* The lanes forward, reversed and in two random orders, and the grid reversed. */
static inline std::vector<emu::order> all_orders()
{
    std::vector<emu::order> orders(5);
    orders[1].lanes = emu::order::REVERSED;
    orders[2].lanes = orders[3].lanes = emu::order::RANDOM;
    orders[2].seed = 1;
    orders[3].seed = 2;
    orders[3].grid_reversed = orders[4].grid_reversed = true;
    return orders;
}
#endif

typedef std::vector<unsigned char> bytes;

/* The results of run in every order; the first is forward. */
static inline std::vector<bytes> results(const std::function<bytes()> &run)
{
    std::vector<bytes> all;
    for (const emu::order &o : all_orders()) {
        emu::set_order(o);
        all.push_back(run());
    }
    emu::set_order(emu::order());
    return all;
}

/* in_every_order - the same bits in every order.
 * differs - the kernel has a race, and an order shows it. */
static inline bool in_every_order(const std::string &name, const std::function<bytes()> &run)
{
    std::vector<bytes> all = results(run);
    bool same = true;
    for (const bytes &b : all)
        same = same && b == all[0];
    return check(name + ": the same bits in every order", same);
}

static inline bool differs(const std::string &name, const std::function<bytes()> &run)
{
    std::vector<bytes> all = results(run);
    bool same = true;
    for (const bytes &b : all)
        same = same && b == all[0];
    return check(name + ": an order shows it", !same);
}

/* Run in a child; it must abort, and its message must hold the text. */
static inline bool aborts(const std::string &name, const std::string &text,
                          const std::function<void()> &run)
{
    int ends[2], status = 0;
    std::string said;
    char part[512];
    ssize_t n;
    fflush(nullptr);
    if (pipe(ends) < 0)
        exit(1);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        close(ends[1]);
        run();
        _exit(0);
    }
    close(ends[1]);
    while ((n = read(ends[0], part, sizeof part)) > 0)
        said.append(part, (size_t)n);
    close(ends[0]);
    waitpid(child, &status, 0);
    bool ok =
        WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && said.find(text) != std::string::npos;
    if (!check(name + ": aborts", ok))
        printf("# status %d, expected a message with \"%s\"; said: %s\n", status, text.c_str(),
               said.c_str());
    return ok;
}

/* Device memory for n elements, and a download of it after all work. */
template <class T> static inline T *device(size_t n)
{
    T *at;
    must(cudaMalloc(&at, n * sizeof(T)));
    return at;
}

/* Copy to the device. The bytes are there afterwards: cudaMemcpy may return before, and a stream
 * that does not block would not wait for them. */
static inline void send(void *to, const void *from, size_t n)
{
    must(cudaMemcpy(to, from, n, cudaMemcpyHostToDevice));
    must(cudaStreamSynchronize(nullptr));
}

template <class T> static inline T *upload(const std::vector<T> &from)
{
    T *at = device<T>(from.size());
    send(at, from.data(), from.size() * sizeof(T));
    return at;
}

template <class T> static inline std::vector<T> download(const T *from, size_t n)
{
    std::vector<T> to(n);
    must(cudaMemcpy(to.data(), from, n * sizeof(T), cudaMemcpyDeviceToHost));
    return to;
}

template <class T> static inline bytes raw(const std::vector<T> &from)
{
    const unsigned char *p = (const unsigned char *)from.data();
    return bytes(p, p + from.size() * sizeof(T));
}

#endif
