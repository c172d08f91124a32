/* state.h - the folder state/ of a checkpoint: progress, moments, F32 weights. Private to this
 * folder. */
#ifndef TUNE_CHECKPOINTS_STATE_H
#define TUNE_CHECKPOINTS_STATE_H

#include "core/progress.h"
#include "optimizers/optimizer.h"

/* tune_state_write - write the new folder <checkpoint>/state, after the checkpoint's weights. opt
 * NULL: no moments. weights: also write the F32 weights. 0, or -1 with an error. */
int tune_state_write(const char *checkpoint, struct tune_model *m, struct tune_optimizer *opt,
                     const struct tune_progress *at, bool weights);

/* tune_state_write_progress - replace progress.json: *at, and hashes of the files with weights and
 * moments.
 *
 * tune_state_read_progress - read it. finished, stopped and signal of *at are cleared, because they
 * belong to a process. *finished: the run reached its planned end there. Both: 0, or -1 with an
 * error. */
int tune_state_write_progress(const char *checkpoint, const struct tune_progress *at);
int tune_state_read_progress(const char *checkpoint, struct tune_progress *at, bool *finished);

/* tune_state_read - read the weights: state/weights.safetensors, else the checkpoint's own F32
 * weights. opt not NULL: also read moments and the count of updates. Returns 0, or -1 with an error
 * that names file and tensor. A file of another step or run does not match progress.json and is an
 * error. */
int tune_state_read(const char *checkpoint, struct tune_model *m, struct tune_optimizer *opt);

#endif
