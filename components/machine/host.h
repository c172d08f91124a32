/* host.h - the machine and the build that a run's figures belong to. */
#ifndef TUNE_CORE_HOST_H
#define TUNE_CORE_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "machine/build_id.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_host {
    char name[128];      /* name of the machine */
    char system[192];    /* "Linux 6.1.0" */
    char machine[72];    /* "x86_64" */
    char cpu[128];       /* model name, single spaces */
    char class_name[256];/* "x86_64 <cpu> x<usable cpus>": figures of one class are comparable */
    int cores;           /* cores; 0: unknown */
    int cpus;            /* hardware threads that this process may use (affinity, quota) */
    int64_t memory_bytes;/* bytes of the machine, or of the container if that is less */
    int gpus;            /* NVIDIA GPUs, as their driver counts them */
    char gpu[128];       /* model of the last one */
    char driver[32];     /* version of the driver; "": unknown */
    char build_id[TUNE_BUILD_ID_SIZE]; /* build id of the program file; "": it cannot be read */
};

/* tune_host_read - fill *host. What cannot be found stays empty. */
void tune_host_read(struct tune_host *host);

/* tune_host_class - "x86_64 <cpu> x<cpus>, <memory> GiB[, <GPU> x<n>, driver <version>]" into text;
 * returns text. Figures of one class are comparable. cpus: hardware threads that the program may
 * use; 0: ours. */
const char *tune_host_class(const struct tune_host *host, int cpus, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
