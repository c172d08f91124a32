/* checkpoint_names.h - the checkpoints of a run folder, by their names: checkpoint-<step>. */
#ifndef TUNE_CORE_CHECKPOINT_NAMES_H
#define TUNE_CORE_CHECKPOINT_NAMES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_checkpoint_named - the step of "checkpoint-<step>", 1 or more; 0: not such a name. */
int64_t tune_checkpoint_named(const char *name);

/* tune_checkpoint_steps - the steps of the folder's checkpoints into *steps, ascending, the
 * caller's to free; links and what is half-written do not count. Their number, or -1. */
int tune_checkpoint_steps(const char *folder, int64_t **steps);

#ifdef __cplusplus
}
#endif
#endif
