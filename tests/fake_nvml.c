/* fake_nvml.c - a libnvidia-ml.so.1 of two GPUs that do what a test says (fake_nvml.h builds and loads it). */
#include <stdio.h>
#include <string.h>

unsigned fake_compute[2] = {30, 50}, fake_milliwatts[2] = {100000, 300000}, fake_mhz[2] = {1200, 1800};
unsigned long long fake_used[2] = {20, 60}; /* of 80 */
int fake_begun, fake_broken, fake_calls;

struct utilization { unsigned gpu, memory; };
struct memory { unsigned long long total, free, used; };

static int gpu(const void *device)
{
    fake_calls++;
    return (const char *)device - (const char *)fake_compute == 0 ? 0 : 1;
}

int nvmlInit_v2(void)
{
    fake_begun++;
    return 0;
}

int nvmlShutdown(void)
{
    fake_begun--;
    return 0;
}

const char *nvmlErrorString(int error)
{
    return error == 6 ? "Not Found" : "Not Supported";
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device)
{
    int i = !strcmp(id, "0000:01:00.0") ? 0 : !strcmp(id, "0000:02:00.0") ? 1 : -1;
    if (i < 0)
        return 6;
    *device = &fake_compute[i];
    return 0;
}

int nvmlDeviceGetUtilizationRates(void *device, struct utilization *u)
{
    *u = (struct utilization){fake_compute[gpu(device)], 99};
    return fake_broken ? 3 : 0;
}

int nvmlDeviceGetMemoryInfo(void *device, struct memory *m)
{
    *m = (struct memory){80, 80 - fake_used[gpu(device)], fake_used[gpu(device)]};
    return 0;
}

int nvmlDeviceGetPowerUsage(void *device, unsigned *milliwatts)
{
    *milliwatts = fake_milliwatts[gpu(device)];
    return fake_broken ? 3 : 0;
}

int nvmlDeviceGetEnforcedPowerLimit(void *device, unsigned *milliwatts)
{
    (void)device;
    *milliwatts = 400000;
    return 0;
}

int nvmlDeviceGetClockInfo(void *device, int which, unsigned *mhz)
{
    *mhz = which == 1 ? fake_mhz[gpu(device)] : 7; /* 1: of the multiprocessors */
    return fake_broken ? 3 : 0;
}

static const char *const uuids[2] = {"GPU-aaaa", "GPU-bbbb"};

int nvmlDeviceGetCount_v2(unsigned *count)
{
    *count = 2;
    return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **device)
{
    *device = &fake_compute[i & 1];
    return i < 2 ? 0 : 6;
}

int nvmlDeviceGetHandleByUUID(const char *uuid, void **device)
{
    int i = !strcmp(uuid, uuids[0]) ? 0 : !strcmp(uuid, uuids[1]) ? 1 : -1;
    if (i < 0)
        return 6;
    *device = &fake_compute[i];
    return 0;
}

int nvmlDeviceGetUUID(void *device, char *text, unsigned size)
{
    snprintf(text, size, "%s", uuids[gpu(device)]);
    return 0;
}

int nvmlDeviceGetIndex(void *device, unsigned *i)
{
    *i = (unsigned)gpu(device);
    return 0;
}
