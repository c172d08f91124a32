/* memory.cu - the working memory that operations share. */
#include "core/error.h"
#include "devices/cuda/cuda.h"

void tune_cuda_scratch_free(struct tune_device *dev)
{
    struct tune_cuda *cuda = tune_cuda_of(dev);
    cudaStreamSynchronize(cuda->stream); /* queued kernels may use it */
    tune_cuda_graphs_drop(cuda);         /* and so do they */
    cudaFree(cuda->scratch);
    tune_cuda_count(dev, -cuda->scratch_floats * 4);
    cuda->scratch = nullptr;
    cuda->scratch_floats = 0;
}

float *tune_cuda_scratch(struct tune_device *dev, int64_t floats)
{
    struct tune_cuda *cuda = tune_cuda_of(dev);
    if (floats <= cuda->scratch_floats)
        return cuda->scratch;
    cudaStreamCaptureStatus capture = cudaStreamCaptureStatusNone;
    cudaError_t error = cudaStreamIsCapturing(cuda->stream, &capture);
    if (capture != cudaStreamCaptureStatusNone) {
        tune_error_cannot("a captured operation needs %lld bytes of working memory; %lld are "
                          "reserved. Reserve the largest size first.",
                          static_cast<long long>(floats * 4),
                          static_cast<long long>(cuda->scratch_floats * 4));
        return nullptr;
    }
    tune_cuda_scratch_free(dev);
    void *memory = nullptr;
    if (error == cudaSuccess)
        error = cudaMalloc(&memory, static_cast<size_t>(floats) * 4);
    if (error != cudaSuccess) {
        tune_cuda_failed(error, "%.1f MiB of working memory",
                         static_cast<double>(floats) * 4 / 1048576);
        return nullptr;
    }
    cuda->scratch = static_cast<float *>(memory);
    cuda->scratch_floats = floats;
    tune_cuda_count(dev, floats * 4);
    return cuda->scratch;
}
