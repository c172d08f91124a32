/* device.c - opening devices and counting their memory. */
#include "devices/device.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/try.h"
#include "devices/cpu/cpu.h"

/* CPUs by the cgroup's quota (version 2, then 1), 0 where there is none. */
static int quota_cpus(void)
{
    double quota = 0, period = 0;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (f) {
        if (fscanf(f, "%lf %lf", &quota, &period) != 2)
            quota = 0; /* "max" */
        fclose(f);
    } else {
        FILE *q = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re"), *p = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re");
        if (!q || !p || fscanf(q, "%lf", &quota) != 1 || fscanf(p, "%lf", &period) != 1)
            quota = 0;
        if (q)
            fclose(q);
        if (p)
            fclose(p);
    }
    if (quota <= 0 || period <= 0)
        return 0;
    int n = (int)(quota / period + 0.5);
    return n < 1 ? 1 : n;
}

int tune_device_threads(void)
{
    cpu_set_t set;
    int n = 1, quota = quota_cpus();
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        n = CPU_COUNT(&set);
    if (quota > 0 && quota < n)
        n = quota;
    return n < 1 ? 1 : n;
}

struct tune_device *tune_device_open(const char *name, int threads)
{
    if (strcmp(name, "cpu") != 0) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "device \"%s\": this build has \"cpu\" only", name);
        return NULL;
    }
    struct tune_device *dev = calloc(1, sizeof *dev);
    if (!dev) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for a device");
        return NULL;
    }
    dev->threads = threads > 0 ? threads : tune_device_threads();
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
