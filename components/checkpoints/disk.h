/* disk.h - the disk space that a run's checkpoints need. Private to this folder. */
#ifndef TUNE_CHECKPOINTS_DISK_H
#define TUNE_CHECKPOINTS_DISK_H

#include <stdbool.h>

#include "optimizers/optimizer.h"

struct tune_logger;

struct tune_disk_plan {
    int64_t steps, from;  /* planned steps; steps done before */
    double save_every;    /* steps, on the average; 0: never */
    double eval_every;  /* the same. Any evaluation may be the best so far, which is saved */
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

/* tune_disk_is_full - whether the last error is that of a full disk, or of a quota. */
bool tune_disk_is_full(void);

/* tune_disk_wait - wait until there may be room for a checkpoint, or for half a minute: quotas are
 * not seen from here. The first call notes in the log that it waits. 1: try again. 0: the time is
 * up, or a signal came, and the error before it stands. -1 with an error: the log cannot be
 * written. */
struct tune_disk_wait {
    const char *folder;
    double seconds;                  /* to wait in all; 0: not at all */
    const volatile int *stop_signal; /* NULL, or a signal that comes into it ends the wait */
    struct tune_logger *log;         /* NULL: none */
    int64_t bytes;                   /* size of a checkpoint */
    double began_s;                  /* when the first call began; 0: not yet */
};
int tune_disk_wait(struct tune_disk_wait *wait);

#endif
