/* errors.cu - what an error of CUDA's runtime means to the user. */
#include <cstdarg>
#include <cstdio>

#include "core/error.h"
#include "devices/cuda/cuda.h"

/* The kind of an error: 3, this configuration cannot run here, or 1, something broke. And what the
 * user can do. */
static enum tune_error_kind kind_of(cudaError_t error, const char **advice)
{
    switch (error) {
    case cudaErrorMemoryAllocation:
        *advice = "Other processes may hold the GPU's memory; nvidia-smi shows them. Else lower "
                  "`batch_size` or `max_length`, use `activation_checkpointing` full, or take a "
                  "GPU with more memory";
        return TUNE_ERROR_CANNOT;
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
        *advice = "tune_cuda.so was not built for this GPU and driver; `make cuda` with CUDA_ARCH "
                  "set to the GPU's compute capability builds it";
        return TUNE_ERROR_CANNOT;
    case cudaErrorInitializationError:
    case cudaErrorSystemNotReady:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
        *advice = "The driver does not work; nvidia-smi says more. Load the kernel module that "
                  "fits it, or start the machine anew";
        return TUNE_ERROR_CANNOT;
    case cudaErrorECCUncorrectable:
        *advice = "The GPU's memory is faulty: reset the GPU or take another one. A resumed run "
                  "goes on from the last checkpoint";
        return TUNE_ERROR_FAILED;
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorLaunchFailure:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
        *advice = "This operation or one before it is the cause; run again with "
                  "CUDA_LAUNCH_BLOCKING=1 to learn which. A resumed run goes on from the last "
                  "checkpoint";
        return TUNE_ERROR_FAILED;
    default: *advice = nullptr; return TUNE_ERROR_FAILED;
    }
}

int tune_cuda_failed(cudaError_t error, const char *format, ...)
{
    char what[256];
    const char *advice;
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    cudaGetLastError(); /* it is reported here, and later launches did not fail */
    enum tune_error_kind kind = kind_of(error, &advice);
    return tune_error_set_kind(kind, "%s: %s (%s)%s%s", what, cudaGetErrorString(error),
                               cudaGetErrorName(error), advice ? ". " : "", advice ? advice : "");
}
