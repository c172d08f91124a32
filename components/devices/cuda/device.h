/* device.h - opening the CUDA device. Private to components/devices. */
#ifndef TUNE_CUDA_DEVICE_H
#define TUNE_CUDA_DEVICE_H

#include "devices/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tune_cuda_open - fill dev with GPU number index of those that CUDA shows this process. round: the
 * first one follows the last. -1 with an error: no GPU or driver, no such number, a GPU without
 * bfloat16, one that others hold. */
int tune_cuda_open(struct tune_device *dev, int index, bool round);

/* tune_cuda_plan - fill dev with a GPU that is not there, for tune_device_plan. -1 with an
 * error: no memory. */
int tune_cuda_plan(struct tune_device *dev, int64_t memory);

#ifdef __cplusplus
}
#endif
#endif
