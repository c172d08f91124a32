/* disk.h - the disk space that a run's checkpoints need. Private to this folder. */
#ifndef TUNE_CHECKPOINTS_DISK_H
#define TUNE_CHECKPOINTS_DISK_H

#include "optimizers/optimizer.h"

struct tune_logger;

struct tune_disk_plan {
    int64_t steps, from;  /* planned steps; steps done before */
    int64_t save_every;   /* steps; 0: never */
    int64_t eval_every; /* steps; 0: never. Any evaluation may be the best so far, which is saved */
    int keep_last;        /* checkpoints; 0: all */
    bool at_end;          /* a checkpoint is saved at the end */
    int64_t bytes, free;  /* size of a checkpoint; free disk space; bytes */
};

/* tune_disk_plan_count - the largest number of future checkpoints that are on disk at the same
 * time. While a checkpoint is written, it counts together with the one that it replaces. */
int64_t tune_disk_plan_count(const struct tune_disk_plan *plan);

/* tune_disk_checkpoint_bytes - size of a checkpoint in bytes: saved weights, moments, and the
 * source's files. wide: also the F32 weights. opt NULL: no moments. */
int64_t tune_disk_checkpoint_bytes(struct tune_model *m, struct tune_optimizer *opt,
                                   enum tune_dtype save_dtype, bool wide, const char *source);

/* tune_disk_plan_tell - log the space as a `#` line, with a warning if not all checkpoints fit. -1
 * with kind CANNOT: not even one fits. */
int tune_disk_plan_tell(const struct tune_disk_plan *plan, const char *folder,
                        struct tune_logger *log);

#endif
