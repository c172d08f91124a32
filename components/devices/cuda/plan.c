/* plan.c - a GPU that is not there: it says what a run would take of it, and computes nothing. */
#include <stdlib.h>

#include "core/error.h"
#include "devices/cuda/device.h"
#include "devices/cuda/sizes.h"
#include "devices/ops.h"

static void plan_close(struct tune_device *dev)
{
    free(dev->state);
}

/* The driver's part is never ours. */
static int plan_memory(const struct tune_device *dev, struct tune_device_memory *memory)
{
    const int64_t *total = dev->state;
    int64_t left = *total - TUNE_CUDA_CONTEXT;
    *memory = (struct tune_device_memory){.free = left > 0 ? left : 0, .total = *total};
    return 0;
}

static int64_t plan_reserve_bytes(const struct tune_device *dev, const struct tune_max_sizes *l,
                                  int64_t *library)
{
    (void)dev;
    *library = 0;
    return tune_cuda_reserve_bytes(l);
}

static const struct tune_ops plan_ops = {
    .close = plan_close, .memory = plan_memory, .reserve_bytes = plan_reserve_bytes};

int tune_cuda_plan(struct tune_device *dev, int64_t memory)
{
    int64_t *total = malloc(sizeof *total);
    if (!total)
        return tune_error_no_memory("a device");
    *total = memory;
    dev->state = total;
    dev->ops = &plan_ops;
    dev->name = "cuda";
    dev->logits_bytes = tune_cuda_logits_bytes(memory);
    return 0;
}
