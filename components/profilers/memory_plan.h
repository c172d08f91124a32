/* memory_plan.h - the memory that a run will hold, part by part, before any of it is taken.
 *
 * Each number for the device comes from the function that allocates it (tune_model_bytes,
 * tune_loss_bytes, ...). So the sum equals the device's own count (bytes_peak), to the byte. The
 * host's parts are the loader's buffers, what libraries keep per thread, and what the process holds
 * already, which is measured. Pages of mapped files do not count: the kernel takes those back when
 * it needs them.
 *
 * There is a sum for the device and one for the host. A device with its own memory
 * (tune_device_memory) bounds its sum; the host's limits bound the other. On the CPU, the limits
 * bound the total. Example:
 *
 *     struct tune_memory_plan plan;
 *     tune_get_memory_plan(&plan, flags, dev, data);        -1, kind CANNOT: too little, and advice
 *     plan.total                                            estimated_memory_bytes */
#ifndef TUNE_MEMORY_PLAN_H
#define TUNE_MEMORY_PLAN_H

#include "machine/memory.h"
#include "datasets/loader.h"
#include "models/model.h"
#include "optimizers/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_flags;

/* The run to plan for. */
struct tune_memory_request {
    const struct tune_model_config *config; /* borrowed */
    enum tune_dtype activations;
    /* borrowed; NULL: no adapters, everything is trained */
    const struct tune_model_adapted *adapted;
    int use;                           /* flags of tune_model_reserve */
    struct tune_optimizer_options optimizer;
    struct tune_loader_options loader; /* the model is made with its batch_size and max_length */
    int64_t rows;                      /* rows of the data set */
    int64_t row_bytes;                 /* tune_dataset_row_bytes */
    int evaluation_sets;               /* further loaders, one for each data set to evaluate */
    int log_every;                     /* finished steps that wait on the device */
    int profile;                       /* steps to profile */
    int64_t files;                     /* bytes of files that are held to be saved */
    int preview_rows, preview_tokens;    /* rows and tokens of the cache for previews; 0: none */
    int answer_rows, answer_tokens;    /* the same of each cache for the answers of evaluations */
    int answer_caches;
    bool saves_between;       /* checkpoints are saved before the end, too */
    bool resumes;                      /* moments will be read from a file */
    int ranks_here;                    /* ranks that share this machine's memory; 0: one */
    enum tune_shard shard;             /* what the ranks share out */
    int rank, ranks;                   /* our number, and how many ranks train; 0: one */
    int64_t reference;                 /* log-probabilities that a reference will keep; 0: none */
};

struct tune_memory_part {
    const char *name; /* "weights" */
    int64_t bytes;
    bool on_device;   /* false: it is on the host */
};

enum { TUNE_MEMORY_PARTS = 18 };
struct tune_memory_plan {
    struct tune_memory_part parts[TUNE_MEMORY_PARTS]; /* without parts of 0 bytes */
    int count;
    int64_t device;  /* sum of the device's parts, as the device counts */
    int64_t host;    /* sum of the host's parts */
    int64_t total;   /* sum of both; on the CPU the process's peak anonymous memory */
    int64_t mapped;  /* mapped weight files; they take addresses only */
    int64_t held;    /* host memory held when the plan was made */
    struct tune_device_memory memory; /* memory of the device when the plan was made */
};

/* tune_memory_plan_make - add the parts up. -1 with an error: no memory for the parameter table, or
 * the device cannot say what it has. */
int tune_memory_plan_make(struct tune_memory_plan *plan, const struct tune_memory_request *request,
                          struct tune_device *dev);

/* tune_memory_plan_check - compare what the run will still take with count limits of the host
 * (tune_memory_limits) and with the device's memory. -1 with kind CANNOT: it does not fit. The
 * message says which of the two is short, the parts, and which options would save how much. */
int tune_memory_plan_check(const struct tune_memory_plan *plan,
                           const struct tune_memory_request *request,
                           struct tune_device *dev, const struct tune_memory_limit *limits,
                           int count);

/* tune_memory_plan_text - the plan as text, cut to size; returns text. Example: "2471.3 MiB:
 * weights 513.1, gradients 513.1, ...". For a device with its own memory: "2400.1 MiB on the
 * device: weights 513.1, ...; 71.2 MiB on the host: loader 1.5, ...". */
const char *tune_memory_plan_text(const struct tune_memory_plan *plan, char *text, size_t size);

/* tune_get_memory_parts - the plan of the run that the options describe, for a model of this shape.
 * Data are not read, and the plan is compared with nothing.
 * tune_get_model_shape - the shape of the model that the options name. 0: from its folder, *folder;
 * 1: a known model that is not here; -1. */
int tune_get_memory_parts(struct tune_memory_plan *plan, const struct tune_flags *flags,
                          struct tune_device *dev, const struct tune_model_config *config);
int tune_get_model_shape(const struct tune_flags *flags, char *folder,
                         struct tune_model_config *config);

/* tune_get_memory_plan - make and check the plan of the run that the options describe, for this
 * machine's limits. Call it before the model is made. */
int tune_get_memory_plan(struct tune_memory_plan *plan, const struct tune_flags *flags,
                         struct tune_device *dev,
                         const struct tune_dataset *data);

#ifdef __cplusplus
}
#endif
#endif
