/* known_gpus.h - GPUs by name: what their data sheets say, and the memory that a program sees.
 *
 *     const struct tune_known_gpu *g = tune_known_gpu("NVIDIA H100 80GB HBM3");
 *     g->name                    "h100-80gb"
 *     tune_known_gpu_bytes(g)    the memory that CUDA shows */
#ifndef TUNE_DEVICES_KNOWN_GPUS_H
#define TUNE_DEVICES_KNOWN_GPUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_GPU_LEAST_MAJOR = 8 }; /* the least compute capability, major number, for our kernels */

struct tune_known_gpu {
    const char *name;       /* "h100-80gb" */
    const char *title;      /* "H100 SXM 80 GB" */
    const char *others;     /* further names, lower case letters and digits, a space between */
    double gib;             /* memory that CUDA shows, in GiB. A driver's own may differ a little */
    double bandwidth;       /* bytes/s of its memory */
    double tensor_flops;    /* FLOP/s, dense: bfloat16 products, float32 sums; 0: it has none */
    int major, minor;       /* compute capability */
    double link;            /* bytes/s to other GPUs of its machine, in one direction: data sheet */
};

/* tune_known_gpus - all of them, by memory, then by speed. Returns a table of *count rows.
 *
 * tune_known_gpu - the GPU of that name; NULL: there is none. Case, the words NVIDIA, GeForce and
 * Tesla, and what is neither letter nor digit do not count. So the names that NVIDIA's driver gives
 * and those of ado's gpu_model are found too.
 *
 * tune_known_gpu_bytes - the memory that CUDA shows, in bytes.
 *
 * tune_known_gpu_old - why our kernels do not run on it, into text; "": they do. Returns text. */
const struct tune_known_gpu *tune_known_gpus(int *count);
const struct tune_known_gpu *tune_known_gpu(const char *name);
int64_t tune_known_gpu_bytes(const struct tune_known_gpu *g);
const char *tune_known_gpu_old(const struct tune_known_gpu *g, char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
