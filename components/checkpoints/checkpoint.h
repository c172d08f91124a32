/* checkpoint.h - what a run leaves behind: a folder that transformers loads, and the state that goes on from it.
 *
 *     <run>/checkpoint-120/
 *       config.json generation_config.json tokenizer.json ...   the source model's files
 *       model.safetensors                  the weights, in the dtype they were read in
 *       state/progress.json                where the run stood
 *       state/optimizer.safetensors        the moments, F32: "m.<name>", "v.<name>"
 *       state/weights.safetensors          the F32 weights, where the saved ones are narrower
 *     <run>/checkpoint-best, checkpoint-final -> checkpoint-120
 *
 * A checkpoint appears under its name whole or not at all: it is written beside, fsynced file
 * by file, and renamed. */
#ifndef TUNE_CHECKPOINT_H
#define TUNE_CHECKPOINT_H

#include "core/progress.h"
#include "optimizers/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_checkpoint;
struct tune_flags;
struct tune_logger;

/* tune_checkpoint_new - checkpoints go into run_folder; source is the model folder whose config and tokenizer files are
 * copied along. save_dtype: TUNE_DTYPES for as-read, else F32, BF16 or F16. NULL also where a save could not succeed:
 * one of those files cannot be read, run_folder's path is too long for what goes into it. */
struct tune_checkpoint *tune_checkpoint_new(const char *run_folder, const char *source, enum tune_dtype save_dtype);
void tune_checkpoint_free(struct tune_checkpoint *c);

/* tune_checkpoint_save - checkpoint-<at->step>; a second time at one step, progress.json alone, with what an evaluation
 * found meanwhile. Before the first step there is nothing to save. Links checkpoint-best
 * if at->best, checkpoint-final if at->finished. opt NULL: no moments. -1 with an error: nothing appears under the name;
 * what was there stays. */
int tune_checkpoint_save(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt,
                         const struct tune_progress *at);

/* tune_checkpoint_write_model - the model alone as a Hugging Face folder (config and tokenizer files from source).
 * folder is made; files there are replaced one by one. */
int tune_checkpoint_write_model(struct tune_model *m, const char *folder, const char *source, enum tune_dtype save_dtype);

/* tune_get_checkpoint - by --model and --save-dtype, into the logger's run folder. */
struct tune_checkpoint *tune_get_checkpoint(const struct tune_flags *flags, const struct tune_logger *log);

#ifdef __cplusplus
}
#endif
#endif
