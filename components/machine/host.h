/* host.h - the machine and the build a run's figures belong to. */
#ifndef TUNE_CORE_HOST_H
#define TUNE_CORE_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "machine/build_id.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_host {
    char name[128];      /* of the machine */
    char system[192];    /* "Linux 6.1.0" */
    char machine[72];    /* "x86_64" */
    char cpu[128];       /* model name, single spaces */
    char class_name[256];/* "x86_64 <cpu> x<usable cpus>": speeds of one class may be compared */
    int cores;           /* cores of the machine; 0: unknown */
    int cpus;            /* hardware threads this process may use: affinity and quota */
    int64_t memory_bytes;/* of the machine, or of the container where that is less */
    int gpus;            /* NVIDIA's, as its driver counts them */
    char gpu[128];       /* model of the last one */
    char driver[32];     /* its version; "": unknown */
    char build_id[TUNE_BUILD_ID_SIZE]; /* of the program file; "": it cannot be read */
};

/* tune_host_read - fill *host; what cannot be found stays empty. */
void tune_host_read(struct tune_host *host);

/* tune_host_class - "x86_64 <cpu> x<cpus>, <memory> GiB[, <GPU> x<n>, driver <version>]" into text, which is returned:
 * what the figures of a program that may use that many hardware threads (0: as many as this one) may be compared with. */
const char *tune_host_class(const struct tune_host *host, int cpus, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
