/* device.c - opening devices and counting their memory. */
#include "devices/device.h"

#include <stdlib.h>
#include <string.h>

#include "core/cpus.h"
#include "core/error.h"
#include "devices/cpu/cpu.h"

struct tune_device *tune_device_open(const char *name, int threads)
{
    if (strcmp(name, "cpu") != 0) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "device \"%s\": this build has \"cpu\" only", name);
        return NULL;
    }
    threads = tune_cpus_threads(threads);
    if (threads < 0)
        return NULL;
    struct tune_device *dev = calloc(1, sizeof *dev);
    if (!dev) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for a device");
        return NULL;
    }
    dev->threads = threads;
    if (tune_cpu_open(dev) < 0) {
        free(dev);
        return NULL;
    }
    return dev;
}

void tune_device_close(struct tune_device *dev)
{
    if (!dev)
        return;
    dev->kernels->close(dev);
    free(dev);
}

void *tune_device_alloc(struct tune_device *dev, int64_t bytes, const char *what)
{
    void *memory = dev->kernels->alloc(dev, bytes);
    if (!memory) {
        tune_error_set_kind(TUNE_ERROR_CANNOT,
                            "no memory on %s for %s: %.1f MiB asked, %.1f MiB held already; lower --batch-size or "
                            "--max-length, or use --activation-checkpointing full",
                            dev->name, what, (double)bytes / 1048576, (double)dev->bytes / 1048576);
        return NULL;
    }
    dev->allocations++;
    dev->bytes += bytes;
    if (dev->bytes > dev->bytes_peak)
        dev->bytes_peak = dev->bytes;
    return memory;
}

void tune_device_free(struct tune_device *dev, void *memory, int64_t bytes)
{
    if (!memory)
        return;
    dev->kernels->free(dev, memory, bytes);
    dev->bytes -= bytes;
}
