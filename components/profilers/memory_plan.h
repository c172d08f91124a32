/* memory_plan.h - what a run will hold in memory, part by part, before any of it is taken.
 *
 * Every number on the device comes from the function that allocates it (tune_model_bytes, tune_loss_bytes, ...), so the sum
 * is what the device counts in the end (tune_device's bytes_peak), to the byte. Beside tensors there are the loader's buffers,
 * what libraries keep for each thread, and what this process holds already when the plan is made (program, libraries,
 * tokenizer, the index of the rows), which is measured. Pages of mapped files (weights while they are read, rows) are not in
 * it: the kernel takes those back when it needs them.
 *
 * There are two sums, the device's and the host's. A device with memory of its own
 * (tune_device_memory) bounds its sum, and the host's limits bound the host's. On the CPU both lie
 * in the same memory: the limits bound the total. Example:
 *
 *     struct tune_memory_plan plan;
 *     tune_get_memory_plan(&plan, flags, dev, data);        -1, kind CANNOT: too little, and what would help
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

/* What is going to run. */
struct tune_memory_request {
    const struct tune_model_config *config; /* borrowed */
    enum tune_dtype activations;
    const struct tune_model_adapted *adapted; /* borrowed; NULL: all is trained */
    int use;                           /* of the model: as for tune_model_reserve */
    struct tune_optimizer_options optimizer;
    struct tune_loader_options loader; /* its batch_size and max_length are the model's too */
    int64_t rows;                      /* of the data set */
    int64_t row_bytes;                 /* tune_dataset_row_bytes */
    bool evaluates;                    /* a second loader, for the held-out rows */
    int log_every;                     /* steps whose scalars wait on the device */
    int profile;                       /* steps to be profiled */
    int64_t files;                     /* bytes of files held as they are: what is saved with the weights */
    bool resumes;                      /* moments are read from a file */
    bool proves;                       /* saved adapters are read again and merged */
};

struct tune_memory_part {
    const char *name; /* "weights" */
    int64_t bytes;
    bool on_device;   /* else on the host */
};

enum { TUNE_MEMORY_PARTS = 15 };
struct tune_memory_plan {
    struct tune_memory_part parts[TUNE_MEMORY_PARTS]; /* none of 0 bytes */
    int count;
    int64_t device;  /* sum of the parts on the device, counted by it */
    int64_t host;    /* sum of the others */
    int64_t total;   /* of both; on the CPU the highest anonymous memory of the process */
    int64_t mapped;  /* of none: the weight files while they are read, which only take addresses */
    int64_t held;    /* of the host's: held already when the plan was made */
    struct tune_device_memory memory; /* what the device had when the plan was made */
};

/* tune_memory_plan_make - add it up. 0, or -1: no memory for the table of parameters, or the device
 * cannot say what it has. */
int tune_memory_plan_make(struct tune_memory_plan *plan, const struct tune_memory_request *request, struct tune_device *dev);

/* tune_memory_plan_check - what is still to be taken of the host against each of count limits (those
 * of tune_memory_limits), and of the device against what it has. -1 with kind CANNOT: it does not
 * fit. The message says which of the two is short (the device first), the parts, and which options
 * would save how much. */
int tune_memory_plan_check(const struct tune_memory_plan *plan, const struct tune_memory_request *request,
                           struct tune_device *dev, const struct tune_memory_limit *limits, int count);

/* tune_memory_plan_text - "2471.3 MiB: weights 513.1, gradients 513.1, ..." into text (cut to size);
 * returns text. Where the device has memory of its own: "2400.1 MiB on the device: weights 513.1,
 * ...; 71.2 MiB on the host: loader 1.5, ...". */
const char *tune_memory_plan_text(const struct tune_memory_plan *plan, char *text, size_t size);

/* tune_get_memory_plan - made and checked, by --model, --dtype, --activation-checkpointing, --batch-size, --accumulate,
 * --max-length, --optimizer, --momentum, --train-split, --eval-dataset, --log-every, --profile, --save, --resume, for this machine's
 * limits. Before the model is made. */
int tune_get_memory_plan(struct tune_memory_plan *plan, const struct tune_flags *flags, struct tune_device *dev,
                         const struct tune_dataset *data);

#ifdef __cplusplus
}
#endif
#endif
