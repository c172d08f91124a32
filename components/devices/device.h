/* device.h - where tensors live and what computes on them.
 *
 * Model code, losses and optimizers are written once against the operations of ops.h; each kind of device fills the same
 * table. The CPU fills it with matrix products of our own and OpenMP loops.
 *
 *     struct tune_device *dev = tune_device_open("cpu", 0);
 *     tune_address x = tune_device_alloc(dev, bytes, "activations");
 *     tune_device_upload(dev, x, numbers, bytes);            numbers may change now
 *     tune_gemm(dev, ...);                                   queued, in order
 *     tune_device_download(dev, numbers, x, bytes);          queued too
 *     tune_device_sync(dev);                                 now numbers are there
 *
 * The CPU device and OpenBLAS (for those who link this into a program of their own): matrix
 * products are our own where this was compiled for AVX2, AVX-512 or NEON, and OpenBLAS is then
 * left alone. Elsewhere, and with TUNE_MATMUL=openblas in the environment (own: the opposite),
 * opening the device sets OpenBLAS to one thread where that build has a thread pool of its own
 * (products are split over our OpenMP threads; two pools side by side are several times
 * slower), and, where OpenBLAS took a kernel older than the CPU and OPENBLAS_CORETYPE is
 * unset, makes it take the right one. Open the device before other threads call BLAS, and in the
 * thread that trains: OpenMP's dynamic adjustment of the number of threads is switched off for it. */
#ifndef TUNE_DEVICE_H
#define TUNE_DEVICE_H

#include <stdbool.h>

#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_device;
struct tune_flags;
struct tune_ops;

/* How an attention looks: sizes are its tensors' (ops.h). */
struct tune_attention {
    int window;  /* keys a query sees at most, itself among them; 0: all before it */
    float scale; /* on the scores; 1/sqrt(D) mostly */
};

/* Which numbers of a matrix are dropped: a function of seed, the step and the forward pass in it (the step's scalars count
 * both), layer, product, row and column. */
struct tune_dropout {
    uint64_t seed;
    int64_t past_steps; /* done before the record's first one, of a run that goes on */
    int layer, which;   /* which product of the layer */
    double p;           /* of each to be dropped, below 1; what stays is divided by 1 - p */
};

/* How one AdamW or SGD step changes its parameters. */
struct tune_update {
    double lr_scale; /* times the step's learning rate */
    double beta1, beta2, eps, weight_decay, momentum;
};

/* The largest of all operations to come, so that the device takes its working memory once. */
struct tune_largest {
    int B, T, H, K, D;           /* of an attention */
    int64_t width;               /* of rows */
    int64_t depth;               /* numbers that a product sums over, where its result is an activation */
    enum tune_dtype activations;
    bool training;               /* backward is wanted, too */
};

/* The memory of a device, bytes. */
struct tune_device_memory {
    int64_t free;  /* may still be taken */
    int64_t total; /* 0: unknown, and free too */
    bool shared;   /* it is the host's own memory: one limit bounds both (the CPU) */
};

/* What the device can do at best, measured, by one of its threads and by all. */
struct tune_ceilings {
    double flops_one, flops_all; /* multiply-adds in float32, FLOP/s */
    double bytes_one, bytes_all; /* streamed from and to memory, bytes/s */
};

/* What the training loop is doing: model, loss, optimizer and evaluator say it, the profiler reads it. */
enum tune_phase {
    TUNE_DATA, TUNE_FORWARD, TUNE_LOSS, TUNE_BACKWARD, TUNE_CLIP, TUNE_UPDATE, TUNE_AFTER, TUNE_EVALUATION, TUNE_PHASES
};
struct tune_doing {
    enum tune_phase phase;
    int layer;        /* -1: none */
    const char *what; /* the weight an operation works on: "qkv", "o", ...; "": none. A literal. */
};

struct tune_device {
    const struct tune_ops *ops; /* ops.h */
    const char *name;         /* "cpu" */
    char description[192];    /* processor, threads, kernel of the matrix library: for the run header */
    char warning[256];        /* something the user should know, or "" */
    int threads;              /* that compute, all of them in every operation */
    const char *gpus;         /* PCI bus ids of the GPUs it computes on, separated by commas; NULL: none */
    int64_t bytes, bytes_peak; /* tensor memory held now and at most */
    int64_t allocations;      /* made so far: none after a run's first step */
    struct tune_doing doing;
    void *state;              /* the backend's */
};

/* tune_device_does - from here on dev's operations belong to that. */
static inline void tune_device_does(struct tune_device *dev, enum tune_phase phase, int layer, const char *what)
{
    struct tune_doing doing = {phase, layer, what};
    dev->doing = doing;
}

/* tune_device_open - "cpu"; threads 0: OMP_NUM_THREADS where that is set, else as many as this process may use
 * (affinity, cgroup quota), at most 4096 (machine/cpus.h). dev->threads is what OpenMP really gives; a warning says if that is fewer.
 * NULL with an error: an unknown device, a number of threads that is none, no such backend built. Close it after everything made on it is freed. */
struct tune_device *tune_device_open(const char *name, int threads);
void tune_device_close(struct tune_device *dev);

/* tune_device_alloc - zeroed, 64-byte aligned, counted memory on the device. Address 0 with kind CANNOT, naming what for.
 * tune_device_free - bytes as allocated; address 0 is fine. Operations queued before it still find the memory. */
tune_address tune_device_alloc(struct tune_device *dev, int64_t bytes, const char *what);
void tune_device_free(struct tune_device *dev, tune_address memory, int64_t bytes);

/* tune_device_upload - bytes from the host; from has been read when it returns.
 * tune_device_download - bytes to the host; they are there after the next tune_device_sync, not before.
 * tune_device_sync - wait until all that is queued is done. -1: an operation failed. */
int tune_device_upload(struct tune_device *dev, tune_address to, const void *from, int64_t bytes);
int tune_device_download(struct tune_device *dev, void *to, tune_address from, int64_t bytes);
int tune_device_sync(struct tune_device *dev);

/* tune_device_in_place - waits; *host: the memory itself where it is the host's, too (the CPU);
 * else NULL, and a download brings a copy. Good until something is queued that uses the memory. */
int tune_device_in_place(struct tune_device *dev, tune_address memory, void **host);

/* tune_to_host - all numbers of t, F32, BF16 or NF4, rows that lie apart among them, as float32 into out [elements]. For
 * whoever wants to look; waits. */
int tune_to_host(struct tune_device *dev, const struct tune_tensor *t, float *out);

/* tune_device_memory - what memory there is now. The CPU takes the tightest limit of machine/memory.h.
 * -1 with an error: the device cannot say, or what it says cannot be. */
int tune_device_memory(const struct tune_device *dev, struct tune_device_memory *memory);

/* tune_device_reserve - take the device's working memory, so that no later operation up to these sizes asks for more.
 * tune_device_reserve_bytes - what it would take; INT64_MAX where that does not fit 64 bits. *library:
 * host memory that libraries below will hold of their own, not in the device's bytes; an estimate.
 * tune_device_ceilings - measure them in under a second; memory: n zeros (F32) on the device, more than its caches hold; they
 * stay zero. All 0 where the device does not say. */
int tune_device_reserve(struct tune_device *dev, const struct tune_largest *largest);
int64_t tune_device_reserve_bytes(const struct tune_device *dev, const struct tune_largest *largest, int64_t *library);
int tune_device_ceilings(struct tune_device *dev, struct tune_ceilings *ceilings, tune_address memory, int64_t n);

/* tune_get_device - by --device and --threads. */
struct tune_device *tune_get_device(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
