/* calls.cc - errors, devices, and the count of calls. Every call of the runtime and of cuBLASLt
 * goes through called(). The environment names one that fails, and a file that lists them. */
#include "parts.h"
#include "runtime_api.h"

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

/* Errors after which a GPU does nothing more for the process are LAST. */
enum { GOES_ON, LAST };
static const struct {
    cudaError_t error;
    int after;
    const char *name, *text;
} errors[] = {
    {cudaSuccess, GOES_ON, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, GOES_ON, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, GOES_ON, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, GOES_ON, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, GOES_ON, "cudaErrorInvalidConfiguration",
     "invalid configuration argument"},
    {cudaErrorInsufficientDriver, GOES_ON, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {cudaErrorDevicesUnavailable, GOES_ON, "cudaErrorDevicesUnavailable",
     "CUDA-capable device(s) is/are busy or unavailable"},
    {cudaErrorNoDevice, GOES_ON, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, GOES_ON, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorNoKernelImageForDevice, GOES_ON, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {cudaErrorECCUncorrectable, LAST, "cudaErrorECCUncorrectable",
     "uncorrectable ECC error encountered"},
    {cudaErrorInvalidResourceHandle, GOES_ON, "cudaErrorInvalidResourceHandle",
     "invalid resource handle"},
    {cudaErrorNotReady, GOES_ON, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, LAST, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {cudaErrorMisalignedAddress, LAST, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, LAST, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorSystemDriverMismatch, GOES_ON, "cudaErrorSystemDriverMismatch",
     "system has unsupported display driver / cuda driver combination"},
    {cudaErrorStreamCaptureUnsupported, GOES_ON, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {cudaErrorStreamCaptureInvalidated, GOES_ON, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {cudaErrorStreamCaptureIsolation, GOES_ON, "cudaErrorStreamCaptureIsolation",
     "dependency created on uncaptured work in another stream"},
};

static thread_local cudaError_t last_error;
static cudaError_t lost; /* the error after which nothing works */

/* ---- threads ---- */

static std::mutex turn;
static thread_local int turn_depth; /* of this thread */

emu::my_turn::my_turn()
{
    if (turn_depth++ == 0)
        turn.lock();
}

emu::my_turn::~my_turn()
{
    if (--turn_depth == 0)
        turn.unlock();
}

emu::let_others::let_others() : depth(turn_depth)
{
    if (depth > 0)
        turn.unlock();
    turn_depth = 0;
}

emu::let_others::~let_others()
{
    turn_depth = depth;
    if (depth > 0)
        turn.lock();
}

/* ---- errors ---- */

const char *cudaGetErrorName(cudaError_t error)
{
    for (auto &e : errors)
        if (e.error == error)
            return e.name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (auto &e : errors)
        if (e.error == error)
            return e.text;
    return "unrecognized error code";
}

cudaError_t cudaGetLastError()
{
    cudaError_t error = lost ? lost : last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError() { return lost ? lost : last_error; }

/* ---- the count ---- */

namespace emu
{

/* CUDA_ON_CPU_FAIL: the call that returns ERROR, one of
 *     NUMBER:ERROR          the NUMBER-th call, counted from 1
 *     NAME:ERROR            the first call of that name, as CUDA_ON_CPU_CALLS lists it
 *     NAME#K:ERROR          its K-th call
 *     NAME#K+NUMBER:ERROR   the NUMBER-th call after that one */
struct fault {
    std::string name;        /* "": any */
    unsigned long left = 0;  /* calls of that name until the one that counts; 0: no fault */
    unsigned long after = 0; /* calls after it */
    cudaError_t error = cudaSuccess;
    bool last = false;
};

static fault wanted_fault()
{
    const char *text = getenv("CUDA_ON_CPU_FAIL"), *colon = text ? strrchr(text, ':') : nullptr;
    fault f;
    if (!text)
        return f;
    for (auto &e : errors)
        if (colon && strcmp(e.name, colon + 1) == 0) {
            f.error = e.error;
            f.last = e.after == LAST;
        }
    if (!f.error)
        fail("CUDA_ON_CPU_FAIL=%s: expected CALL:ERROR, with CUDA's name of an error that the "
             "emulator knows",
             text);
    f.name.assign(text, colon);
    size_t number = f.name.find('#'), plus = f.name.find('+');
    f.left = 1;
    if (isdigit((unsigned char)*text)) {
        f.left = strtoul(text, nullptr, 10);
        f.name = "";
    }
    if (number != std::string::npos)
        f.left = strtoul(f.name.c_str() + number + 1, nullptr, 10);
    if (plus != std::string::npos)
        f.after = strtoul(f.name.c_str() + plus + 1, nullptr, 10);
    f.name = f.name.substr(0, number < plus ? number : plus);
    return f;
}

/* Whether this call is the one. */
static bool comes_now(fault *f, const char *name)
{
    if (f->left > 0 && (f->name.empty() || f->name == name) && --f->left == 0) {
        f->name = "";
        f->left = f->after;
        f->after = 0;
        return f->left == 0;
    }
    return false;
}

/* CUDA_ON_CPU_CALLS: the file that gets a line for each call. */
static FILE *opened_list()
{
    const char *path = getenv("CUDA_ON_CPU_CALLS");
    FILE *list = path ? fopen(path, "w") : nullptr;
    if (path && !list)
        fail("CUDA_ON_CPU_CALLS: cannot write %s", path);
    return list;
}

cudaError_t called(const char *name, bool waits)
{
    static fault f = wanted_fault();
    static FILE *list = opened_list(); /* flushed when the program exits */
    static unsigned long number;
    number++;
    if (list)
        fprintf(list, "%lu %s%s\n", number, name, waits ? " waits" : "");
    if (lost || !comes_now(&f, name))
        return returned(lost);
    if (f.last)
        lost = f.error;
    return returned(f.error);
}

bool is_lost() { return lost != cudaSuccess; }

cudaError_t returned(cudaError_t error)
{
    if (error != cudaSuccess && error != cudaErrorNotReady)
        last_error = error;
    return error;
}

} // namespace emu

using namespace emu;

/* ---- devices ---- */

/* CUDA_ON_CPU_GPUS: how many there are. A process should use one of them: all have one memory. */
static int device_count()
{
    const char *text = getenv("CUDA_ON_CPU_GPUS");
    return text ? atoi(text) : 1;
}

static thread_local int device_of_thread;

int emu::current_device() { return device_of_thread; }

cudaError_t cudaGetDeviceCount(int *count)
{
    EMU_CALLED("cudaGetDeviceCount");
    *count = device_count();
    return cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
    EMU_CALLED("cudaGetDevice");
    *device = device_of_thread;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    EMU_CALLED("cudaSetDevice");
    if (device < 0 || device >= device_count())
        return returned(cudaErrorInvalidDevice);
    device_of_thread = device;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *p, int device)
{
    EMU_CALLED("cudaGetDeviceProperties");
    if (device < 0 || device >= device_count())
        return returned(cudaErrorInvalidDevice);
    *p = cudaDeviceProp();
    p->pciBusID = device;
    snprintf(p->name, sizeof p->name, "CUDA on the CPU, as sm_%d", architecture());
    p->totalGlobalMem = memory_total();
    p->sharedMemPerBlock = STATIC_SHARED;
    p->sharedMemPerBlockOptin = shared_limit();
    p->major = architecture() / 10;
    p->minor = architecture() % 10;
    p->multiProcessorCount = 4;
    p->maxThreadsPerBlock = MOST_LANES;
    p->warpSize = WARP;
    return cudaSuccess;
}

/* CUDA_ON_CPU_DRIVER: the driver's version, 0 if there is none. */
cudaError_t cudaDriverGetVersion(int *version)
{
    const char *text = getenv("CUDA_ON_CPU_DRIVER");
    EMU_CALLED("cudaDriverGetVersion");
    *version = text ? atoi(text) : 13000;
    return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    EMU_CALLED("cudaRuntimeGetVersion");
    *version = 13000;
    return cudaSuccess;
}
