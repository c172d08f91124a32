/* gpus.c - load NVML at run time. Source: its API reference, device queries, version 2 and
 * later. */
#include "profilers/gpus.h"

#include <dlfcn.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/error.h"
#include "core/try.h"

#define LIBRARY "libnvidia-ml.so.1"

struct utilization { unsigned gpu, memory; };              /* percent */
struct memory { unsigned long long total, free, used; };   /* bytes */

/* The functions return 0 or an error number. */
struct nvml {
    int (*init)(void);
    int (*shutdown)(void);
    const char *(*error_text)(int error);
    int (*by_bus_id)(const char *id, void **device);
    int (*utilization)(void *device, struct utilization *u);
    int (*memory)(void *device, struct memory *m);
    int (*power)(void *device, unsigned *milliwatts);
    int (*power_limit)(void *device, unsigned *milliwatts);
    int (*clock)(void *device, int which, unsigned *mhz);
    int (*number)(unsigned *count);
    int (*by_index)(unsigned i, void **device);
    int (*by_uuid)(const char *uuid, void **device);
    int (*uuid)(void *device, char *text, unsigned size);
    int (*index)(void *device, unsigned *i);
};

enum { CLOCK_SM = 1 }; /* which clock: of the multiprocessors */

struct tune_gpus {
    struct nvml nvml;
    void *library, **devices; /* [count] devices */
    int count;
    bool begun;
};

int tune_gpus_listed(const char *ids)
{
    int n = ids && *ids;
    for (; n && *ids; ids++)
        n += *ids == ',';
    return n;
}

static int find_function(struct tune_gpus *g, const char *name, void *to)
{
    void *at = dlsym(g->library, name);
    if (at) {
        memcpy(to, &at, sizeof at); /* C has no cast from an object pointer to a function pointer */
        return 0;
    }
    return tune_error_set("%s has no %s: it is another version than is known here", LIBRARY, name);
}

static int open_library(struct tune_gpus *g)
{
    struct nvml *n = &g->nvml;
    g->library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!g->library)
        return tune_error_set("%s, which says what a GPU does and comes with its driver, cannot be opened: %s", LIBRARY,
                              dlerror());
    TRY(find_function(g, "nvmlInit_v2", &n->init));
    TRY(find_function(g, "nvmlShutdown", &n->shutdown));
    TRY(find_function(g, "nvmlErrorString", &n->error_text));
    TRY(find_function(g, "nvmlDeviceGetHandleByPciBusId_v2", &n->by_bus_id));
    TRY(find_function(g, "nvmlDeviceGetUtilizationRates", &n->utilization));
    TRY(find_function(g, "nvmlDeviceGetMemoryInfo", &n->memory));
    TRY(find_function(g, "nvmlDeviceGetPowerUsage", &n->power));
    TRY(find_function(g, "nvmlDeviceGetEnforcedPowerLimit", &n->power_limit));
    TRY(find_function(g, "nvmlDeviceGetClockInfo", &n->clock));
    TRY(find_function(g, "nvmlDeviceGetCount_v2", &n->number));
    TRY(find_function(g, "nvmlDeviceGetHandleByIndex_v2", &n->by_index));
    TRY(find_function(g, "nvmlDeviceGetHandleByUUID", &n->by_uuid));
    TRY(find_function(g, "nvmlDeviceGetUUID", &n->uuid));
    TRY(find_function(g, "nvmlDeviceGetIndex", &n->index));
    int error = n->init();
    g->begun = error == 0;
    if (error)
        tune_error_set("%s does not begin: %s", LIBRARY, n->error_text(error));
    return error ? -1 : 0;
}

static int find_devices(struct tune_gpus *g, const char *ids)
{
    char id[64];
    int error = 0;
    for (; *ids && !error; ids += strcspn(ids, ","), ids += *ids == ',') {
        snprintf(id, sizeof id, "%.*s", (int)strcspn(ids, ","), ids);
        error = g->nvml.by_bus_id(id, &g->devices[g->count]);
        g->count += !error;
    }
    if (error)
        tune_error_set("%s knows no GPU %s: %s", LIBRARY, id, g->nvml.error_text(error));
    return error ? -1 : 0;
}

struct tune_gpus *tune_gpus_open(const char *ids)
{
    struct tune_gpus *g = tune_zeroed(1, sizeof *g, "looking at GPUs");
    if (g)
        g->devices = tune_zeroed((size_t)tune_gpus_listed(ids) + 1, sizeof *g->devices, "looking at GPUs");
    if (g && g->devices && open_library(g) == 0 && find_devices(g, ids) == 0)
        return g;
    tune_gpus_close(g);
    return NULL;
}

void tune_gpus_close(struct tune_gpus *g)
{
    if (!g)
        return;
    if (g->begun)
        g->nvml.shutdown();
    if (g->library)
        dlclose(g->library);
    free(g->devices);
    free(g);
}

int tune_gpus_count(const struct tune_gpus *g)
{
    return g->count;
}

void tune_gpus_read(struct tune_gpus *g, int i, struct tune_gpu_reading *now)
{
    struct utilization u;
    struct memory m;
    unsigned power, limit, mhz;
    void *device = g->devices[i];
    *now = (struct tune_gpu_reading){NAN, NAN, NAN, NAN, NAN};
    if (g->nvml.utilization(device, &u) == 0)
        now->compute = u.gpu;
    if (g->nvml.memory(device, &m) == 0 && m.total > 0)
        now->memory = 100 * (double)m.used / (double)m.total;
    if (g->nvml.power(device, &power) == 0)
        now->watts = power / 1e3;
    if (!isnan(now->watts) && g->nvml.power_limit(device, &limit) == 0 && limit > 0)
        now->power = 100 * now->watts / (limit / 1e3);
    if (g->nvml.clock(device, CLOCK_SM, &mhz) == 0)
        now->clock = mhz;
}

/* ---- which GPUs there are ---- */

/* One GPU, by what a list calls it. */
static int find_one(struct tune_gpus *g, const char *word, struct tune_gpu *gpu)
{
    struct nvml *n = &g->nvml;
    unsigned position = 0;
    void *device = NULL;
    char *end;
    unsigned long index = strtoul(word, &end, 10);
    int error = *word && !*end ? n->by_index((unsigned)index, &device)
                : strchr(word, ':') ? n->by_bus_id(word, &device) : n->by_uuid(word, &device);
    error = error ? error : n->uuid(device, gpu->name, sizeof gpu->name);
    error = error ? error : n->index(device, &position);
    gpu->index = (int)position;
    return error ? tune_error_usage("GPU %s: %s; look at nvidia-smi -L", word, n->error_text(error)) : 0;
}

/* g NULL: there is no library, and the word is its name. */
static int add_one(struct tune_gpus *g, const char *word, struct tune_gpu *gpus, int *count)
{
    struct tune_gpu *gpu = &gpus[*count];
    if (*count == TUNE_GPUS)
        return tune_error_usage("more than %d GPUs", TUNE_GPUS);
    gpu->index = *count;
    snprintf(gpu->name, sizeof gpu->name, "%s", word);
    TRY(g ? find_one(g, word, gpu) : 0);
    for (int i = 0; i < *count; i++)
        if (!strcmp(gpus[i].name, gpu->name))
            return tune_error_usage("GPU %s is named twice", word);
    ++*count;
    return 0;
}

static int find_all(struct tune_gpus *g, const char *list, struct tune_gpu *gpus, int *machine)
{
    int count = 0;
    unsigned all = 0;
    char word[TUNE_GPU_NAME];
    if (g && g->nvml.number(&all) != 0)
        return tune_error_set("%s does not say how many GPUs there are", LIBRARY);
    for (unsigned i = 0; g && !list && i < all; i++) {
        snprintf(word, sizeof word, "%u", i);
        TRY(add_one(g, word, gpus, &count));
    }
    for (; list && *list; list += strcspn(list, ","), list += *list == ',') {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(list, ","), list);
        TRY(add_one(g, word, gpus, &count));
    }
    *machine = g ? (int)all : count;
    return count;
}

int tune_gpus_find(const char *list, struct tune_gpu *gpus, int *machine)
{
    struct tune_gpus *g = tune_gpus_open("");
    if (!g)
        tune_error_clear(); /* no driver */
    int count = find_all(g, list, gpus, machine);
    tune_gpus_close(g);
    return count;
}
