/* device.h - devices: where tensors live and where operations run.
 *
 * Models, losses and optimizers call the operations of ops.h. Each kind of device implements the
 * same table of operations. The CPU implements it with its own matrix products and OpenMP loops.
 *
 *     struct tune_device *dev = tune_device_open("cpu", 0);
 *     tune_address x = tune_device_alloc(dev, bytes, "activations");
 *     tune_device_upload(dev, x, numbers, bytes);            numbers may change after this call
 *     tune_gemm(dev, ...);                                   operations are queued in call order
 *     tune_device_download(dev, numbers, x, bytes);          queued too
 *     tune_device_sync(dev);                                 now numbers holds the result
 *
 * The CPU device and OpenBLAS. Builds for AVX2, AVX-512 or NEON use the device's own matrix
 * products and never touch OpenBLAS. Other builds use OpenBLAS. The environment variable
 * TUNE_MATMUL=openblas or TUNE_MATMUL=own overrides this choice.
 *
 * Where OpenBLAS is used, opening the device changes two of its settings:
 * 1. It sets OpenBLAS to one thread if that build has its own thread pool. The device already
 * splits products over OpenMP threads, and two thread pools together are several times slower.
 * 2. If OpenBLAS chose a kernel older than the CPU, it selects the right one. It does not do this
 * if OPENBLAS_CORETYPE is set.
 *
 * Open the device before other threads call BLAS, and in the thread that trains. Opening switches
 * off OpenMP's dynamic adjustment of the thread count in that thread. */
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

/* Settings of an attention. Its sizes are those of its tensors (ops.h). */
struct tune_attention {
    int window;  /* most keys a query sees, itself included; 0: no limit */
    float scale; /* factor on the scores, usually 1/sqrt(D) */
};

/* A dropout mask. Each element's mask is a function of seed, step, forward pass, layer, product,
 * row and column. The step's scalars (record.h) count the step and the forward pass. */
struct tune_dropout {
    uint64_t seed;
    int64_t past_steps; /* steps a resumed run did before the record's first step */
    int layer, which;   /* layer index; which product of the layer */
    /* probability of dropping an element, 0 <= p < 1; kept elements are divided by 1 - p */
    double p;
};

/* Settings of one AdamW or SGD step. */
struct tune_update {
    double lr_scale; /* factor on the step's learning rate */
    double beta1, beta2, eps, weight_decay, momentum;
};

/* Upper limits on the sizes of all later operations. The device reserves working memory for
 * them. */
struct tune_largest {
    int B, T, H, K, D; /* attention: batch, positions, query heads, key/value heads, head width */
    int64_t width;               /* elements in a row */
    int64_t depth;               /* inner dimension of a product whose result is an activation */
    enum tune_dtype activations;
    bool training;               /* whether backward will run */
};

/* Memory of a device, in bytes. */
struct tune_device_memory {
    int64_t free;  /* bytes that can still be allocated */
    int64_t total; /* all memory; 0: unknown (then free is 0 too) */
    bool shared;   /* the device uses host memory, so one limit applies to both (CPU) */
};

/* The measured peak performance of the device, with one thread and with all threads. */
struct tune_ceilings {
    double flops_one, flops_all; /* float32 multiply-adds, FLOP/s */
    double bytes_one, bytes_all; /* memory streaming, read and write, bytes/s */
};

/* The current phase of the training loop. Model, loss, optimizer and evaluator set it; the profiler
 * reads it. */
enum tune_phase {
    TUNE_DATA, TUNE_FORWARD, TUNE_LOSS, TUNE_BACKWARD, TUNE_CLIP, TUNE_UPDATE, TUNE_AFTER,
    TUNE_EVALUATION, TUNE_PHASES
};
struct tune_doing {
    enum tune_phase phase;
    int layer;        /* -1: no layer */
    const char *what; /* weight in use: "qkv", "o", ...; "": none. A string literal. */
};

struct tune_device {
    const struct tune_ops *ops; /* the table of operations (ops.h) */
    const char *name;         /* "cpu" */
    char description[192];    /* processor, threads and matrix kernel, for the run header */
    char warning[256];        /* a warning for the user, or "" */
    int threads;              /* threads that compute; every operation uses all of them */
    const char *gpus;         /* PCI bus ids of its GPUs, separated by commas; NULL: none */
    int64_t bytes, bytes_peak; /* tensor memory held now, and its peak */
    int64_t allocations;      /* allocations so far; a run makes none after its first step */
    struct tune_doing doing;
    void *state;              /* private data of the implementation */
};

/* tune_device_does - set the phase, layer and weight that dev's next operations belong to. what: a
 * string literal. */
static inline void tune_device_does(struct tune_device *dev, enum tune_phase phase, int layer,
                                    const char *what)
{
    struct tune_doing doing = {phase, layer, what};
    dev->doing = doing;
}

/* tune_device_open - open a device. name: "cpu".
 *
 * threads 0: the value of OMP_NUM_THREADS if set; otherwise all cores this process may use
 * (affinity, cgroup quota), at most 4096 (machine/cpus.h). dev->threads is the number OpenMP really
 * provides. If it provides fewer than asked for, dev->warning says so.
 *
 * NULL with an error: unknown device, invalid number of threads, backend not built, no memory. The
 * caller closes the device after freeing everything made on it. */
struct tune_device *tune_device_open(const char *name, int threads);
void tune_device_close(struct tune_device *dev);

/* tune_device_alloc - allocate zeroed device memory, aligned to 64 bytes and counted in dev->bytes.
 * what names the purpose in the error. Address 0 with an error of kind CANNOT: no memory.
 *
 * tune_device_free - free memory; bytes is the size given to alloc. Address 0 does nothing.
 * Operations queued before the call can still use the memory. */
tune_address tune_device_alloc(struct tune_device *dev, int64_t bytes, const char *what);
void tune_device_free(struct tune_device *dev, tune_address memory, int64_t bytes);

/* tune_device_upload - copy bytes from the host. from may change once the call returns.
 *
 * tune_device_download - queue a copy to the host. The data is there after the next
 * tune_device_sync.
 *
 * tune_device_sync - wait for all queued work. -1: an operation failed. */
int tune_device_upload(struct tune_device *dev, tune_address to, const void *from, int64_t bytes);
int tune_device_download(struct tune_device *dev, void *to, tune_address from, int64_t bytes);
int tune_device_sync(struct tune_device *dev);

/* tune_device_in_place - wait for the device, then set *host to the memory itself if the host can
 * read it (CPU). Otherwise *host is NULL, and tune_device_download gives a copy. The pointer is
 * valid until an operation that uses the memory is queued. 0, or -1 with an error. */
int tune_device_in_place(struct tune_device *dev, tune_address memory, void **host);

/* tune_to_host - copy all elements of t to out [elements] as float32. t is F32, BF16 or NF4, and
 * may have a stride. Waits for the device. 0, or -1 with an error. */
int tune_to_host(struct tune_device *dev, const struct tune_tensor *t, float *out);

/* tune_device_memory - get the memory that is free now. For the CPU this is the tightest limit of
 * machine/memory.h. -1 with an error: the device cannot tell, or its figures are impossible. */
int tune_device_memory(const struct tune_device *dev, struct tune_device_memory *memory);

/* tune_device_reserve - allocate working memory for operations up to these sizes. Later operations
 * then allocate nothing. 0, or -1 with an error.
 *
 * tune_device_reserve_bytes - bytes that tune_device_reserve would allocate; INT64_MAX if they
 * exceed 64 bits. *library: an estimate of host memory that libraries allocate for themselves, in
 * bytes. The device does not count it.
 *
 * tune_device_ceilings - measure peak performance, in under a second. memory: n zeros (F32) on the
 * device, more than its caches hold. They stay zero. All results are 0 if the device cannot
 * tell. */
int tune_device_reserve(struct tune_device *dev, const struct tune_largest *largest);
int64_t tune_device_reserve_bytes(const struct tune_device *dev, const struct tune_largest *largest,
                                  int64_t *library);
int tune_device_ceilings(struct tune_device *dev, struct tune_ceilings *ceilings,
                         tune_address memory, int64_t n);

/* tune_get_device - open the device of --device and --threads. */
struct tune_device *tune_get_device(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
