/* disk.h - how much disk a run's checkpoints will take; for this folder only. */
#ifndef TUNE_CHECKPOINTS_DISK_H
#define TUNE_CHECKPOINTS_DISK_H

#include "optimizers/optimizer.h"

struct tune_logger;

struct tune_disk_plan {
    int64_t steps, from;  /* planned in all; done before */
    int64_t save_every;   /* steps; 0: never */
    /* steps; 0: never. Each evaluation may be the best so far, which is saved */
    int64_t eval_every;
    int keep_last;        /* checkpoints; 0: all */
    bool at_end;          /* one is saved where the run ends */
    int64_t bytes, free;  /* of one checkpoint; of the disk */
};

/* tune_disk_plan_count - how many checkpoints are on the disk at once, at most, of those that are
 * still to come. One that is written while the one it replaces is still there counts too. */
int64_t tune_disk_plan_count(const struct tune_disk_plan *plan);

/* tune_disk_checkpoint_bytes - of one checkpoint: weights as they are saved, the F32 ones beside
 * them where `wide`, moments, and the files from source. opt NULL: no moments. */
int64_t tune_disk_checkpoint_bytes(struct tune_model *m, struct tune_optimizer *opt,
                                   enum tune_dtype save_dtype, bool wide,
                                   const char *source);

/* tune_disk_plan_tell - a `#` line; a warning where the disk has less than all of them take. -1
 * with kind CANNOT where it has less than one takes. */
int tune_disk_plan_tell(const struct tune_disk_plan *plan, const char *folder,
                        struct tune_logger *log);

#endif
