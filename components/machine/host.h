/* host.h - the machine and the program build, to record with a run's figures. */
#ifndef TUNE_CORE_HOST_H
#define TUNE_CORE_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "machine/build_id.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_host {
    char name[128];      /* host name */
    char system[192];    /* "Linux 6.1.0" */
    char machine[72];    /* "x86_64" */
    char cpu[128];       /* model name, single spaces */
    char class_name[256];/* "x86_64 <cpu> x<usable cpus>": speeds within a class are comparable */
    int cores;           /* physical cores; 0: unknown */
    int cpus;            /* hardware threads this process may use: affinity and quota */
    int64_t memory_bytes;/* bytes of the machine, or of the container if less */
    int gpus;            /* number of NVIDIA GPUs, from the driver */
    char gpu[128];       /* model of the last GPU */
    char driver[32];     /* version of the GPU driver; "": unknown */
    char build_id[TUNE_BUILD_ID_SIZE]; /* build id of the program file; "": unreadable */
};

/* tune_host_read - fill *host. Unknown values are left empty. */
void tune_host_read(struct tune_host *host);

/* tune_host_class - write "x86_64 <cpu> x<cpus>, <memory> GiB[, <GPU> x<n>, driver <version>]" to
 * text. Figures of one class are comparable. cpus: hardware threads of the measured program; 0:
 * those of this process. Returns text. */
const char *tune_host_class(const struct tune_host *host, int cpus, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
