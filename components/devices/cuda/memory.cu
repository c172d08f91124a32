/* memory.cu - the working memory of the CUDA kernels. */
#include "core/error.h"
#include "devices/cuda/cuda.h"

float *tune_cuda_scratch(struct tune_device *dev, int64_t floats)
{
    struct tune_cuda *cuda = tune_cuda_of(dev);
    if (floats <= cuda->scratch_floats)
        return cuda->scratch;
    cudaFree(cuda->scratch); /* waits for the operations that use it */
    cuda->scratch = nullptr;
    cuda->scratch_floats = 0;
    cudaError_t error = cudaMalloc(&cuda->scratch, static_cast<size_t>(floats) * 4);
    if (error == cudaSuccess) {
        cuda->scratch_floats = floats;
        return cuda->scratch;
    }
    cudaGetLastError(); /* the error is reported here, not by the next launch */
    cuda->failed = error;
    tune_error_set_kind(TUNE_ERROR_CANNOT, "%s: no memory for %.1f MiB of working memory: %s",
                        dev->name, static_cast<double>(floats) * 4 / 1048576,
                        cudaGetErrorString(error));
    return nullptr;
}
