/* checkpoint.h - save a run: a folder that transformers loads, and the state to resume from.
 *
 *     <run>/checkpoint-120/
 *       config.json generation_config.json tokenizer.json ...   the source model's files
 *       README.md                          a model card (card.h)
 *       model.safetensors                  the weights, in the dtype they were read in
 *       state/progress.json                place in the run, and hashes of weights and moments
 *       state/optimizer.safetensors        the moments, F32: "m.<name>", "v.<name>"
 *       state/extra.safetensors            tune_model_extra's tensors, F32: "<their name>.<name>"
 *       state/weights.safetensors          F32 weights, if the saved ones are narrower
 *     <run>/checkpoint-best, checkpoint-final -> checkpoint-120
 *     <run>/weights-120/                   the model alone, of a save whose state failed
 *
 * A model with adapters has these instead of weights, config.json and generation_config.json:
 *
 *       adapter_config.json adapter_model.safetensors     as PEFT writes them; F32 or as asked
 *       state/config.json                                 the base's config.json
 *
 * A checkpoint appears under its name complete, or not at all. It is written beside, synced file by
 * file, and renamed. It also disappears whole. Before it gets its name, the metrics up to its step
 * are on the disk. */
#ifndef TUNE_CHECKPOINT_H
#define TUNE_CHECKPOINT_H

#include "checkpoints/options.h"
#include "core/progress.h"
#include "datasets/loader.h"
#include "optimizers/optimizer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_checkpoint;
struct tune_evaluator;
struct tune_failure;
struct tune_flags;
struct tune_logger;

/* tune_checkpoint_new - prepare to save. Unless late, the source's files are read now and held
 * (some megabytes), so saving does not need the source. Strings are copied. NULL with an error if
 * saving could not succeed: a source file cannot be read, or run_folder's path is too long.
 * tune_checkpoint_free - free it; NULL is fine. */
struct tune_checkpoint *tune_checkpoint_new(const struct tune_checkpoint_options *options);
void tune_checkpoint_free(struct tune_checkpoint *c);

/* tune_checkpoint_save - save checkpoint-<at->step>. A second call at one step only writes
 * progress.json again, with the evaluation since. Before the first step it does nothing. It links
 * checkpoint-best if at->best and checkpoint-final if at->finished, then removes what keep_last
 * leaves out. Before the folder gets its name, the weights (tune_model_compare) or the adapter's
 * files (tune_adapter_compare) are read again and compared with the model. opt NULL: no moments.
 * While a full disk has no room for the weights, it tries again for options.wait_for_disk. -1 with
 * an error: nothing appears under the name, and what was there stays. If the weights were written
 * and the rest failed, they are kept as weights-<step>, and the error names that folder. */
int tune_checkpoint_save(struct tune_checkpoint *c, struct tune_model *m,
                         struct tune_optimizer *opt,
                         const struct tune_progress *at);

/* tune_checkpoint_step - save if at->step is due: every options.save_every steps, and when this
 * step's evaluation is the best so far.
 * tune_checkpoint_finish - after the loop: save, evaluate, then note the evaluation in that
 * checkpoint. It saves first: evaluating reads the data file, which may have changed. After a
 * signal it only saves. eval NULL: nothing to evaluate. */
int tune_checkpoint_step(struct tune_checkpoint *c, struct tune_model *m,
                         struct tune_optimizer *opt,
                         const struct tune_progress *at);
int tune_checkpoint_finish(struct tune_checkpoint *c, struct tune_model *m,
                           struct tune_optimizer *opt,
                           struct tune_evaluator *eval, struct tune_progress *at);

/* tune_checkpoint_resume - call it once, before the first step. It does three things.
 * 1. It logs the disk space that the checkpoints will take at most. -1 with kind CANNOT: not even
 * one fits.
 * 2. Without options.resume, it reads the numbers of options.adapter, if there is one, into m.
 * 3. With options.resume, it restores weights and moments (opt NULL: none), load's place, and *at.
 * It cuts the log back (tune_logger_resume), restores the links, and removes newer checkpoints. It
 * repeats eval's evaluation of that step if a signal cut it off (NULL: none). A changed data file
 * is accepted if the rows consumed are unchanged. -1 with an error leaves the folder unchanged. A
 * file is missing, or belongs to another model or step. Or config.json, tokenizer or planned steps
 * differ (tune_logger_changed). Or newer checkpoints exist and overwrite is false. Or the metrics
 * end too early. With options.failure all arguments are borrowed as long as c: a failing program
 * saves them. */
int tune_checkpoint_resume(struct tune_checkpoint *c, struct tune_model *m,
                           struct tune_optimizer *opt,
                           struct tune_loader *load, struct tune_evaluator *eval,
                           struct tune_progress *at);

/* tune_checkpoint_rescue - after an error: complete the metrics, then save the last finished step
 * as after a signal. The unfinished step is dropped, and the loader goes back to its start. It
 * saves nothing before tune_checkpoint_resume, after a step that was not finite, if lines of the
 * metrics are missing, or if saving failed before. text: what was saved and how to continue; "" if
 * there is nothing to continue from. -1 with an error: saving failed. */
int tune_checkpoint_rescue(struct tune_checkpoint *c, char *text, size_t size);

/* tune_checkpoint_write_model - write the model alone as a Hugging Face folder, with config and
 * tokenizer files from source. folder is created if needed; files in it are replaced one by one. */
int tune_checkpoint_write_model(struct tune_model *m, const char *folder, const char *source,
                                enum tune_dtype save_dtype);

/* tune_get_checkpoint - the checkpoints that the options describe, in the logger's run folder. They
 * get a model card, unless flags->card is false. */
struct tune_checkpoint *tune_get_checkpoint(const struct tune_flags *flags,
                                            struct tune_logger *log);

#ifdef __cplusplus
}
#endif
#endif
