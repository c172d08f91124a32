/* device.h - the place where tensors live and operations run.
 *
 * Model code, losses and optimizers are written once, with the operations of ops.h. Each kind of
 * device fills the same table of operations. The CPU fills it with our own matrix products and
 * OpenMP loops.
 *
 *     struct tune_device *dev = tune_device_open("cpu", 0);
 *     tune_address x = tune_device_alloc(dev, bytes, "activations");
 *     tune_device_upload(dev, x, numbers, bytes);            numbers may change after this call
 *     tune_gemm(dev, ...);                                   operations are queued in call order
 *     tune_device_download(dev, numbers, x, bytes);          queued too
 *     tune_device_sync(dev);                                 now numbers holds the result
 *
 * The CPU's kernels are compiled once for each instruction set. Opening the device takes the best
 * set that the processor runs; TUNE_CPU in the environment names another.
 *
 * A program of your own should know what opening the CPU device does to OpenBLAS. With AVX2,
 * AVX-512 or NEON the device uses its own matrix products and leaves OpenBLAS alone.
 * TUNE_MATMUL=openblas or TUNE_MATMUL=own in the environment overrides that choice.
 *
 * With OpenBLAS, opening the device changes two things. An OpenBLAS with a thread pool of its own
 * is set to one thread. Our OpenMP threads split the products, and two pools are several times
 * slower. If OpenBLAS chose a kernel older than the CPU and OPENBLAS_CORETYPE is unset, it is made
 * to choose the right one. Open the device before other threads call BLAS.
 *
 * Open the device in the thread that trains. Opening switches off OpenMP's dynamic adjustment of
 * the thread count in that thread. */
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

/* The function of a gated linear unit (ops.h, glu). */
enum tune_gate { TUNE_GATE_SILU, TUNE_GATE_GELU };

/* Parameters of an attention; its tensors give the sizes (ops.h). */
struct tune_attention {
    int window;  /* keys that a query sees at most, itself included; 0: all up to it */
    float scale; /* factor on the scores, mostly 1/sqrt(D) */
};

/* Selects the numbers of a matrix that dropout zeroes. The choice is a function of these fields,
 * row, column, and the step and forward pass that the step's scalars count. */
struct tune_dropout {
    uint64_t seed;
    int64_t past_steps; /* steps done before the record's first one, in a resumed run */
    int layer, which;   /* layer, and the product in it */
    double p;           /* probability of zero, below 1; the others are divided by 1 - p */
};

/* Parameters of one AdamW or SGD step. */
struct tune_update {
    double lr_scale; /* factor on the step's learning rate */
    double beta1, beta2, eps, weight_decay, momentum;
};

/* The largest sizes of all operations to come. The device takes its working memory for them
 * once. */
struct tune_max_sizes {
    int B, T, H, K, D;           /* largest attention: see ops.h */
    int64_t width;               /* longest row */
    int64_t depth;               /* longest sum in a product whose result is an activation */
    enum tune_dtype activations;
    bool training;               /* backward will run too */
    int64_t copies;              /* bytes of the operands that a product converts: see below */
};

/* A matrix that a product reads or writes: how many numbers, and their dtype. */
struct tune_operand {
    int64_t count;
    enum tune_dtype dtype;
};

/* tune_copy_bytes - what a device that converts an operand first takes for it, in multiples of 256
 * bytes. 0: it has that dtype already.
 * tune_max_sizes_add_product - products c = a b with `operands` (tune_gemm) are to come. Raises
 * l->copies. */
static inline int64_t tune_copy_bytes(struct tune_operand from, enum tune_dtype to)
{
    int64_t size = to == TUNE_BF16 ? 2 : 4;
    return from.dtype == to ? 0 : (from.count * size + 255) / 256 * 256;
}
void tune_max_sizes_add_product(struct tune_max_sizes *l, struct tune_operand c,
                                struct tune_operand a, struct tune_operand b,
                                enum tune_dtype operands);

/* Memory of a device, in bytes. */
struct tune_device_memory {
    int64_t free;  /* bytes that can still be taken */
    int64_t total; /* 0: both are unknown, as of a GPU that is not there */
    bool shared;   /* the device uses host memory, as the CPU does; one limit bounds both */
};

/* Measured peak rates of the device, for one thread and for all. */
struct tune_peak_rates {
    double flops_one, flops_all; /* multiply-adds of the dtype of products, FLOP/s */
    double bytes_one, bytes_all; /* memory streamed through, bytes/s */
};

/* The part of the training loop that runs. Model, loss, optimizer and evaluator set it; the
 * profiler reads it. */
enum tune_phase {
    TUNE_DATA, TUNE_FORWARD, TUNE_LOSS, TUNE_BACKWARD, TUNE_RANKS, TUNE_CLIP, TUNE_UPDATE,
    TUNE_AFTER, TUNE_EVALUATION, TUNE_PHASES
};
struct tune_doing {
    enum tune_phase phase;
    int unit;         /* of the model, whose weights are taken (models/model.h); -1: none */
    const char *what; /* the weight in use: "qkv", "o", ...; "": none. A string literal */
};

struct tune_device {
    const struct tune_ops *ops; /* the table of operations (ops.h) */
    const char *name;         /* "cpu" or "cuda" */
    char description[192];    /* processor, threads and kernels, for the run header */
    char warning[256];        /* something the user should know, or "" */
    char met[384];            /* what happened while it computed, with its count so far, or "" */
    int threads;              /* threads; every operation uses all of them */
    const char *gpus;         /* PCI bus ids of its GPUs, separated by commas; NULL: none */
    int64_t bytes, bytes_peak; /* tensor memory held now, and the most so far */
    int64_t graph_bytes;      /* memory of the GPU that its driver took for CUDA graphs, so far */
    int64_t allocations;      /* allocations so far; none after a run's first step */
    /* bytes of the logits that exist at a time (models/model.h). It may be set before the model is
     * made. Another size rounds the loss and the gradients in another way. */
    int64_t logits_bytes;
    struct tune_doing doing;
    /* called first by tune_device_close, for what works on the device's memory; NULL: nothing */
    void (*closing)(void *closing_with);
    void *closing_with;
    void *state;              /* private to the backend */
};

/* tune_device_does - tell dev what the operations from here on belong to. */
static inline void tune_device_does(struct tune_device *dev, enum tune_phase phase, int unit,
                                    const char *what)
{
    struct tune_doing doing = {phase, unit, what};
    dev->doing = doing;
}

/* tune_device_open - open a device by name: "cpu", "cuda" or "cuda:N". threads 0: OMP_NUM_THREADS
 * if that is set, else one for each core that this process may use (machine/cpus.h), at most 4096.
 * dev->threads is what OpenMP really gives; dev->warning says if that is fewer. NULL with an error:
 * unknown device, bad thread count, or a device that is not there.
 * tune_device_open_place - the same, but "cuda" is the GPU number place of those that are here,
 * counted round. So ranks of one machine each take another one.
 * tune_device_close - close it, after everything made on it was freed. */
struct tune_device *tune_device_open(const char *name, int threads);
struct tune_device *tune_device_open_place(const char *name, int threads, int place);
void tune_device_close(struct tune_device *dev);

/* tune_device_plan - a device that only says what a run would take of it. It may be a GPU that is
 * not there. It answers tune_device_memory and tune_device_reserve_bytes;
 * nothing else may be called but close. "cpu" is opened. "cuda": the GPU if it can be opened, else
 * one of unknown memory. memory: bytes of a GPU to plan for instead, with what its driver takes
 * (TUNE_CUDA_CONTEXT); 0: none. NULL with an error, as above. */
#define TUNE_CPU_LOGITS ((int64_t)48 << 20) /* the CPU's logits_bytes */
#define TUNE_CUDA_GRAPHS ((int64_t)128 << 20) /* for CUDA graphs (cuda/graph.cu) */
/* For kernels, ours and cuBLASLt's. The driver loads each when it is first used: after the plan was
 * compared with what is free. An estimate, until a GPU was measured. */
#define TUNE_CUDA_KERNELS ((int64_t)256 << 20)
#define TUNE_CUDA_CONTEXT \
    (((int64_t)512 << 20) + TUNE_CUDA_GRAPHS + TUNE_CUDA_KERNELS) /* 512 MiB: not yet measured */
struct tune_device *tune_device_plan(const char *name, int threads, int64_t memory);

/* tune_device_alloc - zeroed, 64-byte aligned memory on the device. Address 0 with an error of kind
 * CANNOT that says what it was for.
 * tune_device_free - free it; bytes as allocated; address 0 is fine. Operations queued before still
 * find the memory. */
tune_address tune_device_alloc(struct tune_device *dev, int64_t bytes, const char *what);
void tune_device_free(struct tune_device *dev, tune_address memory, int64_t bytes);

/* tune_device_upload - copy bytes from the host. from has been read when it returns.
 * tune_device_download - copy bytes to the host. They are there after the next tune_device_sync,
 * not before.
 * tune_device_sync - wait until everything queued is done. -1: an operation failed. */
int tune_device_upload(struct tune_device *dev, tune_address to, const void *from, int64_t bytes);
int tune_device_download(struct tune_device *dev, void *to, tune_address from, int64_t bytes);
int tune_device_sync(struct tune_device *dev);

/* tune_device_group_begin - begin a group: operations that belong together, such as a layer's.
 * The device may collect them, and queue them at the end of the group. Order and results stay those
 * of the calls. CUDA queues a group that it saw before as one graph. Groups do not nest. A transfer
 * within a group ends the collecting.
 * tune_device_group_end - end it, also after an error. -1: an operation of the group failed. */
int tune_device_group_begin(struct tune_device *dev);
int tune_device_group_end(struct tune_device *dev);

/* tune_device_acquire - operations from here on may use this memory again.
 * tune_device_release - no operation from here on uses it until tune_device_acquire. It keeps its
 * contents. Both are queued. They do nothing on the CPU and on a GPU; the tests have a device that
 * makes released memory unreadable (tests/far). */
int tune_device_acquire(struct tune_device *dev, tune_address memory, int64_t bytes);
int tune_device_release(struct tune_device *dev, tune_address memory, int64_t bytes);

/* tune_device_in_place - if the host can read the memory (the CPU), wait, then point *host at it.
 * Valid until an operation that uses the memory is queued. Else *host is NULL; use a download. */
int tune_device_in_place(struct tune_device *dev, tune_address memory, void **host);

/* For libraries that work on a GPU's arrays from a thread of their own:
 * tune_device_beside - a second CUDA stream. What is queued there runs beside the operations, at
 * any time. The GPU becomes the calling thread's. The first call comes from the thread that opened
 * the device. NULL: it is no GPU, or, with an error, there is no such stream.
 * tune_device_done - 1: all that is in the second stream is done; 0: not yet; -1 with an error.
 * tune_device_mark - a mark behind all operations called so far. NULL with an error.
 * tune_device_reached - 1: the operations before the mark are done; 0: not yet; -1 with an error.
 * Unless it is 0, the mark is freed.
 * tune_device_unmark - free a mark that nobody asks for any more; NULL is fine.
 * Any thread may call done, reached and unmark, and none of them waits. */
void *tune_device_beside(struct tune_device *dev);
int tune_device_done(struct tune_device *dev);
void *tune_device_mark(struct tune_device *dev);
int tune_device_reached(struct tune_device *dev, void *mark);
void tune_device_unmark(struct tune_device *dev, void *mark);

/* tune_to_host - wait, then copy all numbers of t as float32 into out [elements]. t is F32, BF16 or
 * NF4, and may have rows that lie apart. For looking at numbers. */
int tune_to_host(struct tune_device *dev, const struct tune_tensor *t, float *out);

/* tune_device_memory - the memory that the device has now. The CPU reports the tightest limit of
 * machine/memory.h. -1 with an error: the device cannot say, or its answer is impossible. */
int tune_device_memory(const struct tune_device *dev, struct tune_device_memory *memory);

/* tune_device_reserve - take the device's working memory. No later operation up to these sizes asks
 * for more.
 * tune_device_reserve_bytes - the bytes that it would take; INT64_MAX if they do not fit 64 bits.
 * *library: an estimate of host memory that libraries such as OpenBLAS will hold besides.
 * tune_device_peak_rates - measure peak rates in under a second. memory: n float32 zeros on the
 * device, more than its caches hold; they stay zero. All rates are 0 if the device has no
 * measurement. */
int tune_device_reserve(struct tune_device *dev, const struct tune_max_sizes *sizes);
int64_t tune_device_reserve_bytes(const struct tune_device *dev,
                                  const struct tune_max_sizes *sizes, int64_t *library);
int tune_device_peak_rates(struct tune_device *dev, struct tune_peak_rates *peak_rates,
                           tune_address memory, int64_t n);

/* tune_get_device - the device that the options name.
 * tune_get_logits_bytes - set dev->logits_bytes if the options do. */
struct tune_device *tune_get_device(const struct tune_flags *flags);
void tune_get_logits_bytes(struct tune_device *dev, const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
