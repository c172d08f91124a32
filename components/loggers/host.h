/* host.h - the machine and the build a run's figures belong to. */
#ifndef TUNE_LOGGERS_HOST_H
#define TUNE_LOGGERS_HOST_H

#include <stdint.h>

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
    char build_id[65];   /* of the program file (the linker's, hexadecimal); "": none */
};

/* tune_host_read - fill *host; what cannot be found stays empty. */
void tune_host_read(struct tune_host *host);

#ifdef __cplusplus
}
#endif
#endif
