/* test_calls.cu - calls that fail as CUDA_ON_CPU_FAIL says, and the list of CUDA_ON_CPU_CALLS. Each
 * check runs in a child, because a process has one such fault. */
#include "prove.h"

#include <cublasLt.h>

#include <cstring>

__global__ void set_one(int *x) { *x = 1; }

/* Whether the child returns 0, where the variable is set. */
static bool in_child(const char *variable, const char *value, const std::function<int()> &run)
{
    int status = 0;
    fflush(nullptr);
    pid_t pid = fork();
    if (pid == 0) {
        setenv(variable, value, 1);
        int code = run();
        fflush(nullptr);
        _exit(code);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool fails(const char *value, const std::function<int()> &run)
{
    return in_child("CUDA_ON_CPU_FAIL", value, run);
}

static void faults()
{
    check("the third call fails, once", fails("3:cudaErrorMemoryAllocation", [] {
              int *x = nullptr, *y = nullptr, *z = nullptr;
              bool good = cudaMalloc(&x, 4) == cudaSuccess && cudaMalloc(&y, 4) == cudaSuccess;
              good = good && cudaMalloc(&z, 4) == cudaErrorMemoryAllocation && !z;
              good = good && cudaGetLastError() == cudaErrorMemoryAllocation;
              good = good && cudaGetLastError() == cudaSuccess;
              return good && cudaMalloc(&z, 4) == cudaSuccess ? 0 : 1;
          }));
    check("a call by its name", fails("cudaMemsetAsync:cudaErrorInvalidValue", [] {
              int *x;
              must(cudaMalloc(&x, 4));
              bool good = cudaMemsetAsync(x, 0, 4) == cudaErrorInvalidValue;
              return good && cudaMemsetAsync(x, 0, 4) == cudaSuccess ? 0 : 1;
          }));
    check("the second of that name", fails("cudaMalloc#2:cudaErrorMemoryAllocation", [] {
              int *x;
              bool good = cudaMalloc(&x, 4) == cudaSuccess;
              return good && cudaMalloc(&x, 4) == cudaErrorMemoryAllocation ? 0 : 1;
          }));
    check("the second after that one", fails("cudaMalloc#1+2:cudaErrorInvalidValue", [] {
              int *x;
              bool good = cudaMalloc(&x, 4) == cudaSuccess;
              good = good && cudaMemsetAsync(x, 0, 4) == cudaSuccess;
              return good && cudaMemsetAsync(x, 0, 4) == cudaErrorInvalidValue ? 0 : 1;
          }));
    check("a launch tells by cudaGetLastError", fails("launch set_one:cudaErrorInvalidValue", [] {
              int *x;
              must(cudaMalloc(&x, 4));
              LAUNCH(set_one, 1, 1, 0, nullptr, x);
              bool good = cudaGetLastError() == cudaErrorInvalidValue;
              return good && download(x, 1)[0] == -1 ? 0 : 1; /* it did not run */
          }));
    check("after an illegal address nothing works", fails("2:cudaErrorIllegalAddress", [] {
              int *x, free_calls = 0;
              must(cudaMalloc(&x, 4));
              bool good = cudaDeviceSynchronize() == cudaErrorIllegalAddress;
              for (int i = 0; i < 3; i++)
                  free_calls += cudaGetLastError() == cudaErrorIllegalAddress;
              good = good && free_calls == 3 && cudaFree(x) == cudaErrorIllegalAddress;
              good = good && cudaMemsetAsync(x, 0, 4) == cudaErrorIllegalAddress;
              cublasLtHandle_t handle;
              good = good && cublasLtCreate(&handle) == CUBLAS_STATUS_EXECUTION_FAILED;
              cudaDeviceProp p;
              return good && cudaGetDeviceProperties(&p, 0) == cudaErrorIllegalAddress ? 0 : 1;
          }));
    check("... and queued work is dropped", fails("3:cudaErrorLaunchFailure", [] {
              static int to = 7;
              int *x;
              must(cudaMalloc(&x, 4));
              must(cudaMemcpyAsync(&to, x, 4, cudaMemcpyDeviceToHost));
              return cudaDeviceSynchronize() == cudaErrorLaunchFailure && to == 7 ? 0 : 1;
          }));
    check("cuBLASLt has no memory", fails("cublasLtCreate:cudaErrorMemoryAllocation", [] {
              cublasLtHandle_t handle;
              return cublasLtCreate(&handle) == CUBLAS_STATUS_ALLOC_FAILED ? 0 : 1;
          }));
    for (const char *bad : {"3", "3:cudaErrorOfMine", "cudaMalloc"})
        aborts(std::string("CUDA_ON_CPU_FAIL=") + bad, "expected CALL:ERROR", [&] {
            setenv("CUDA_ON_CPU_FAIL", bad, 1);
            cudaDeviceSynchronize();
        });
}

static void list()
{
    char path[] = "/tmp/cuda-calls-XXXXXX";
    int fd = mkstemp(path);
    check("calls are listed", in_child("CUDA_ON_CPU_CALLS", path, [] {
              int *x, host = 0;
              void *pinned;
              cudaEvent_t event;
              must(cudaMalloc(&x, 4));
              must(cudaMallocHost(&pinned, 4));
              must(cudaMemcpyAsync(pinned, x, 4, cudaMemcpyDeviceToHost));
              must(cudaMemcpyAsync(&host, x, 4, cudaMemcpyDeviceToHost));
              LAUNCH(set_one, 1, 1, 0, nullptr, x);
              must(cudaEventCreate(&event));
              must(cudaEventRecord(event));
              must(cudaEventSynchronize(event));
              must(cudaEventSynchronize(event));
              return 0;
          }));
    static const char want[] = "1 cudaMalloc waits\n"
                               "2 cudaMallocHost waits\n"
                               "3 cudaMemcpyAsync\n"
                               "4 cudaMemcpyAsync waits\n" /* its host memory is not pinned */
                               "5 launch set_one\n"
                               "6 cudaEventCreateWithFlags\n"
                               "7 cudaEventRecord\n"
                               "8 cudaEventSynchronize waits\n"
                               "9 cudaEventSynchronize\n"; /* it is done */
    char text[1024] = "";
    ssize_t n = read(fd, text, sizeof text - 1);
    if (!check("... with those in which the host waits", n > 0 && strcmp(text, want) == 0))
        printf("# %s\n", text);
    close(fd);
    unlink(path);
}

/* A kernel takes memory when it is first launched; without it, the launch fails. */
static void loading()
{
    check("a kernel takes memory once", in_child("CUDA_ON_CPU_LOAD", "1000000", [] {
              int *x;
              size_t before, after, again, total;
              must(cudaMalloc(&x, 4));
              must(cudaMemGetInfo(&before, &total));
              LAUNCH(set_one, 1, 1, 0, nullptr, x);
              must(cudaMemGetInfo(&after, &total));
              LAUNCH(set_one, 1, 1, 0, nullptr, x);
              must(cudaMemGetInfo(&again, &total));
              bool good = before - after == 1000000 && again == after;
              must(cudaMemset(x, 0, 4)); /* a kernel of the runtime's own */
              must(cudaMemGetInfo(&after, &total));
              return good && again - after == 1000000 ? 0 : 1;
          }));
    check("... or is not launched", in_child("CUDA_ON_CPU_LOAD", "2000000000", [] {
              int *x;
              must(cudaMalloc(&x, 4));
              LAUNCH(set_one, 1, 1, 0, nullptr, x);
              bool good = cudaGetLastError() == cudaErrorMemoryAllocation;
              return good && download(x, 1)[0] == -1 ? 0 : 1;
          }));
}

int main()
{
    faults();
    list();
    loading();
    return done();
}
