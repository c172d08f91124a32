/* state.h - what training goes on from, in a checkpoint's folder state/: progress, moments, F32
 * weights; for this folder only. */
#ifndef TUNE_CHECKPOINTS_STATE_H
#define TUNE_CHECKPOINTS_STATE_H

#include "core/progress.h"
#include "optimizers/optimizer.h"

/* tune_state_write - the new folder <checkpoint>/state, when the checkpoint's weights are written;
 * opt NULL: no moments; weights: also the F32 weights. */
int tune_state_write(const char *checkpoint, struct tune_model *m, struct tune_optimizer *opt,
                     const struct tune_progress *at,
                     bool weights);

/* tune_state_write_progress - progress.json alone, replaced: *at, and hashes of the files with the
 * weights and the moments.
 * tune_state_read_progress - *at as it was saved; finished, stopped and signal are the process's,
 * and cleared. *finished: the run came to its planned end there. */
int tune_state_write_progress(const char *checkpoint, const struct tune_progress *at);
int tune_state_read_progress(const char *checkpoint, struct tune_progress *at, bool *finished);

/* tune_state_read - weights (from state/weights.safetensors, else from the F32 weights of the
 * checkpoint's own folder) and, where opt is not NULL, moments and the count of updates. -1 names
 * the file and the tensor, or the file that was not saved with progress.json: one of another step
 * or run. */
int tune_state_read(const char *checkpoint, struct tune_model *m, struct tune_optimizer *opt);

#endif
