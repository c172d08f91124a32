/* device.h - where tensors live and what computes on them: a table of kernels, filled by each kind of device.
 *
 * Model code, losses and optimizers are written once against this table; the CPU fills it
 * with matrix products of our own and OpenMP loops. The functions that check shapes and then
 * call the table are in kernels.h; call those. Work on a device may be asynchronous: download and sync wait.
 *
 *     struct tune_device *dev = tune_device_open("cpu", 0);
 *     float *x = tune_device_alloc(dev, bytes, "activations");
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
struct tune_scalars;

/* Sizes of an attention: B sequences of T positions, H query heads in groups that share one of K key/value heads, each D
 * wide. Key i is visible to query j of the same sequence when i <= j and, with a window > 0, j - window < i, and, with
 * starts, starts[j] <= i: several texts in one sequence, none of which sees another. */
struct tune_attention {
    int B, T, H, K, D;
    int window;  /* 0: none */
    float scale; /* on the scores; 1/sqrt(D) mostly */
    const int32_t *starts; /* device memory [B,T]; along a sequence never lower than before, 0 <= starts[j] <= j. NULL: 0 */
};

/* Which numbers of a matrix are dropped: a function of key, row and column. */
struct tune_dropout {
    uint64_t key;
    double p; /* of each to be dropped, below 1; what stays is divided by 1 - p */
};

/* One AdamW or SGD step over n parameters. */
struct tune_update {
    double lr, beta1, beta2, eps, weight_decay, momentum;
    const double *updates; /* device memory: t of the bias corrections 1 - beta^t, this update included; AdamW's */
};

/* What the device can do at best, measured, by one of its threads and by all. */
struct tune_ceilings {
    double flops_one, flops_all; /* multiply-adds in float32, FLOP/s */
    double bytes_one, bytes_all; /* streamed from and to memory, bytes/s */
};

/* The table. N rows, C width; tensors are contiguous, but gemm's (see tensor.h, stride). Arguments were checked by kernels.c. "set" or "add" says what happens
 * to an output. See kernels.h for shapes and formulas. */
struct tune_kernels {
    void (*close)(struct tune_device *dev);
    void *(*alloc)(struct tune_device *dev, int64_t bytes); /* 64-byte aligned, zeroed; NULL: no memory */
    void (*free)(struct tune_device *dev, void *memory, int64_t bytes);
    /* Working memory for every operation up to these sizes (rows up to width wide, products over up to depth numbers whose
     * result is an activation), so that none asks for more later. */
    int (*reserve)(struct tune_device *dev, const struct tune_attention *largest, int64_t width, int64_t depth,
                   enum tune_dtype activations);
    /* The bytes reserve would take, without taking them. *library: what libraries below will hold of their own beside it, not
     * counted in the device's bytes; an estimate. */
    int64_t (*reserve_bytes)(const struct tune_device *dev, const struct tune_attention *largest, int64_t width,
                             int64_t depth, enum tune_dtype activations, int64_t *library);
    /* Measure them in under a second; memory: n zeros of the device's, more than its caches hold; they stay zero. NULL: unknown. */
    int (*ceilings)(struct tune_device *dev, struct tune_ceilings *ceilings, float *memory, int64_t n);
    int (*upload)(struct tune_device *dev, void *to, const void *from, int64_t bytes);
    int (*download)(struct tune_device *dev, void *to, const void *from, int64_t bytes);
    int (*copy)(struct tune_device *dev, void *to, const void *from, int64_t bytes);
    int (*zero)(struct tune_device *dev, void *to, int64_t bytes);
    int (*sync)(struct tune_device *dev);

    int (*gemm)(struct tune_device *dev, struct tune_tensor *c, const struct tune_tensor *a, bool at,
                const struct tune_tensor *b, bool bt, float alpha, float beta);
    int (*bias_forward)(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *bias, float scale);
    int (*bias_backward)(struct tune_device *dev, struct tune_tensor *dbias, const struct tune_tensor *dy, float scale);
    int (*embed_forward)(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *w, const int32_t *ids,
                         float scale);
    int (*embed_backward)(struct tune_device *dev, struct tune_tensor *dw, const struct tune_tensor *dx,
                          const int32_t *ids, float scale);
    int (*rmsnorm_forward)(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *rstd,
                           const struct tune_tensor *x, const struct tune_tensor *w, float eps);
    int (*rmsnorm_backward)(struct tune_device *dev, struct tune_tensor *dx, struct tune_tensor *dw,
                            const struct tune_tensor *dy, const struct tune_tensor *x, const struct tune_tensor *w,
                            const struct tune_tensor *rstd);
    int (*headnorm_forward)(struct tune_device *dev, struct tune_tensor *y, struct tune_tensor *rstd,
                            const struct tune_tensor *x, const struct tune_tensor *w, int first, int heads, float eps);
    int (*headnorm_backward)(struct tune_device *dev, struct tune_tensor *dy, struct tune_tensor *dw,
                             const struct tune_tensor *x, const struct tune_tensor *w, const struct tune_tensor *rstd,
                             int first, int heads);
    int (*rope)(struct tune_device *dev, struct tune_tensor *x, const struct tune_tensor *table, const int32_t *positions,
                int T, int heads, int D, bool backward);
    int (*attention_forward)(struct tune_device *dev, struct tune_tensor *out, struct tune_tensor *lse,
                             const struct tune_tensor *qkv, const struct tune_attention *size);
    int (*attention_backward)(struct tune_device *dev, struct tune_tensor *dqkv, struct tune_tensor *work,
                              const struct tune_tensor *dout, const struct tune_tensor *qkv,
                              const struct tune_tensor *out, const struct tune_tensor *lse,
                              const struct tune_attention *size);
    int (*swiglu_forward)(struct tune_device *dev, struct tune_tensor *h, const struct tune_tensor *gate_up);
    int (*swiglu_backward)(struct tune_device *dev, struct tune_tensor *dgate_up, const struct tune_tensor *dh,
                           const struct tune_tensor *gate_up);
    int (*gather)(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const int32_t *rows);
    int (*scatter)(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const int32_t *rows);
    int (*cross_entropy)(struct tune_device *dev, struct tune_tensor *logits, double *loss_sum, float *log_probs,
                         const int32_t *labels, float scale, bool backward);
    int (*dropout)(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const struct tune_dropout *drop,
                   float beta, float plain, float masked);
    int (*scale_columns)(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x, const struct tune_tensor *g,
                         float plus, float scale, float beta);
    int (*dot_columns)(struct tune_device *dev, struct tune_tensor *dots, const struct tune_tensor *x, const struct tune_tensor *y,
                       const struct tune_tensor *g, int64_t first, float scale);
    int (*row_squares)(struct tune_device *dev, struct tune_tensor *squares, const struct tune_tensor *w);
    int (*dora_scale)(struct tune_device *dev, struct tune_tensor *g, struct tune_tensor *inverse,
                      const struct tune_tensor *magnitude, const struct tune_tensor *squares, const struct tune_tensor *b,
                      const struct tune_tensor *p, const struct tune_tensor *aa, float s);
    int (*sum_squares)(struct tune_device *dev, const float *x, int64_t n, double *sum);
    int (*add_scalar)(struct tune_device *dev, double *to, double value);
    int (*finish_step)(struct tune_device *dev, struct tune_scalars *scalars, double clip_norm);
    int (*adamw)(struct tune_device *dev, float *w, const float *g, float *m, float *v, int64_t n,
                 const struct tune_update *update, const double *gradient_scale);
    int (*sgd)(struct tune_device *dev, float *w, const float *g, float *m, int64_t n,
               const struct tune_update *update, const double *gradient_scale);
};

struct tune_device {
    const struct tune_kernels *kernels;
    const char *name;         /* "cpu" */
    char description[192];    /* processor, threads, kernel of the matrix library: for the run header */
    char warning[256];        /* something the user should know, or "" */
    int threads;              /* that compute, all of them in every operation */
    const char *gpus;         /* PCI bus ids of the GPUs it computes on, separated by commas; NULL: none */
    int64_t bytes, bytes_peak; /* tensor memory held now and at most */
    int64_t allocations;      /* made so far: none after a run's first step */
    void *state;              /* the backend's */
};

/* tune_device_open - "cpu"; threads 0: OMP_NUM_THREADS where that is set, else as many as this process may use
 * (affinity, cgroup quota), at most 4096 (core/cpus.h). dev->threads is what OpenMP really gives; a warning says if that is fewer.
 * NULL with an error: an unknown device, a number of threads that is none, no such backend built. Close it after everything made on it is freed. */
struct tune_device *tune_device_open(const char *name, int threads);
void tune_device_close(struct tune_device *dev);

/* tune_device_alloc - zeroed, 64-byte aligned, counted memory on the device. NULL with kind CANNOT, naming what for.
 * tune_device_free - bytes as allocated; NULL is fine. */
void *tune_device_alloc(struct tune_device *dev, int64_t bytes, const char *what);
void tune_device_free(struct tune_device *dev, void *memory, int64_t bytes);

/* tune_get_device - by --device and --threads. */
struct tune_device *tune_get_device(const struct tune_flags *flags);

#ifdef __cplusplus
}
#endif
#endif
