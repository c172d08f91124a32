/* checkpoint_names.h - find the checkpoints of a run folder by name: checkpoint-<step>. */
#ifndef TUNE_CORE_CHECKPOINT_NAMES_H
#define TUNE_CORE_CHECKPOINT_NAMES_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_checkpoint_named - the step of "checkpoint-<step>", 1 or more; 0: not such a name. */
int64_t tune_checkpoint_named(const char *name);

/* tune_checkpoint_steps - write the steps of the folder's checkpoints into *steps, ascending. The
 * caller frees it. Links and half-written checkpoints do not count. Returns their number, or -1
 * with an error. */
int tune_checkpoint_steps(const char *folder, int64_t **steps);

#ifdef __cplusplus
}
#endif
#endif
