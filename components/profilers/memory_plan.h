/* memory_plan.h - the memory that a run will need, part by part, computed before anything is
 * allocated.
 *
 * The figures for the device come from the functions that allocate (tune_model_bytes,
 * tune_loss_bytes, ...). Their sum equals the device's bytes_peak at the end, to the byte.
 *
 * The host also has the loader's buffers and the memory of libraries for each thread. What this
 * process already holds (program, libraries, tokenizer, row index) is measured. Pages of mapped
 * files (weights while they are read, rows) do not count, because the kernel can take them back.
 *
 * There are two sums: device and host. A device with its own memory (tune_device_memory) limits its
 * sum, and the host's limits apply to the host's sum. On the CPU both share one memory, so the
 * limits apply to the total.
 *
 *     struct tune_memory_plan plan;
 *     tune_get_memory_plan(&plan, flags, dev, data);        -1, kind CANNOT: not enough memory
 *     plan.total                                            estimated_memory_bytes */
#ifndef TUNE_MEMORY_PLAN_H
#define TUNE_MEMORY_PLAN_H

#include "machine/memory.h"
#include "datasets/loader.h"
#include "models/lora.h"
#include "models/model.h"
#include "optimizers/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_flags;

/* A description of the run. */
struct tune_memory_request {
    const struct tune_model_config *config; /* borrowed */
    enum tune_dtype activations;
    const struct tune_model_adapted *adapted; /* borrowed; NULL: full fine-tuning */
    int use;                           /* `what` of tune_model_reserve */
    struct tune_optimizer_options optimizer;
    struct tune_loader_options loader; /* the model uses the same batch_size and max_length */
    int64_t rows;                      /* rows of the dataset */
    int64_t row_bytes;                 /* tune_dataset_row_bytes */
    bool evaluates;                    /* there is a second loader, for held-out rows */
    int log_every;                     /* steps whose scalars wait on the device */
    int profile;                       /* steps to profile */
    int64_t files; /* bytes of files kept in memory, to save them with the weights */
    bool resumes;                      /* moments are read from a file */
    bool proves;                       /* saved adapters are read again and merged */
};

struct tune_memory_part {
    const char *name; /* "weights" */
    int64_t bytes;
    bool on_device;   /* false: on the host */
};

enum { TUNE_MEMORY_PARTS = 15 };
struct tune_memory_plan {
    struct tune_memory_part parts[TUNE_MEMORY_PARTS]; /* parts of more than 0 bytes */
    int count;
    int64_t device;  /* bytes of the parts on the device, as it counts them */
    int64_t host;    /* bytes of the parts on the host */
    int64_t total;   /* both; on the CPU the peak anonymous memory of the process */
    int64_t mapped;  /* not in the sums: weight files while they are mapped */
    int64_t held;    /* part of host: memory held when the plan was made */
    struct tune_device_memory memory; /* memory of the device when the plan was made */
};

/* tune_memory_plan_make - compute the plan. 0, or -1 with an error: no memory for the parameter
 * table, or the device cannot tell its memory. */
int tune_memory_plan_make(struct tune_memory_plan *plan, const struct tune_memory_request *request,
                          struct tune_device *dev);

/* tune_memory_plan_check - check that the memory still to be allocated fits. The host has `count`
 * limits (see tune_memory_limits); the device has its own memory. -1 with kind CANNOT: it does not
 * fit. The message names what is short (the device first), the parts, and the options that would
 * save memory. */
int tune_memory_plan_check(const struct tune_memory_plan *plan,
                           const struct tune_memory_request *request, struct tune_device *dev,
                           const struct tune_memory_limit *limits, int count);

/* tune_memory_plan_text - write "2471.3 MiB: weights 513.1, gradients 513.1, ..." to text, cut to
 * size. Returns text. If the device has its own memory, the text is "2400.1 MiB on the device:
 * weights 513.1, ...; 71.2 MiB on the host: loader 1.5, ...". */
const char *tune_memory_plan_text(const struct tune_memory_plan *plan, char *text, size_t size);

/* tune_get_memory_plan - make and check the plan for this machine's limits, before the model is
 * made. It reads --model, --dtype, --activation-checkpointing, --batch-size, --accumulate,
 * --max-length, --optimizer and --momentum. It also reads --train-split, --eval-dataset,
 * --log-every, --profile, --save and --resume. */
int tune_get_memory_plan(struct tune_memory_plan *plan, const struct tune_flags *flags,
                         struct tune_device *dev, const struct tune_dataset *data);

#ifdef __cplusplus
}
#endif
#endif
