/* checkpoint.h - what a run leaves behind: a folder that transformers loads, and the state that goes on from it.
 *
 *     <run>/checkpoint-120/
 *       config.json generation_config.json tokenizer.json ...   the source model's files
 *       model.safetensors                  the weights, in the dtype they were read in; of a model with adapters instead
 *       adapter_config.json adapter_model.safetensors     these, as PEFT has them, F32 or as asked; no config.json and
 *                                          no generation_config.json then, as in PEFT's folders
 *       state/progress.json                where the run stood, and hashes of the files with its weights and moments
 *       state/optimizer.safetensors        the moments, F32: "m.<name>", "v.<name>"
 *       state/extra.safetensors            tensors of the recipe's own (tune_model_extra), F32: "<their name>.<name>"
 *       state/weights.safetensors          the F32 weights, where the saved ones are narrower
 *       state/config.json                  of a model with adapters: its config.json
 *     <run>/checkpoint-best, checkpoint-final -> checkpoint-120
 *
 * A checkpoint appears under its name whole or not at all: it is written beside, fsynced file by file, and renamed; and it
 * disappears whole. Before it has its name, the lines of the metrics up to its step are on the disk. */
#ifndef TUNE_CHECKPOINT_H
#define TUNE_CHECKPOINT_H

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

struct tune_checkpoint_options {
    const char *run_folder;     /* where checkpoints go */
    const char *source;         /* the model folder whose config and tokenizer files are saved with the weights */
    enum tune_dtype save_dtype; /* of the saved weights: F32, BF16, F16, or TUNE_DTYPES: as they were read */
    int keep_last;              /* keep that many newest ones, and those the links point at; 0: all */
    int64_t save_every;         /* steps between the checkpoints that are wanted; one at another step that was the best so far is
                                   removed when a better one is there, unless checkpoint-final points at it. 0: none are */
    int64_t eval_every;         /* steps between evaluations, 0: none; for the forecast of disk */
    const char *resume;         /* the checkpoint to go on from; NULL: none */
    const char *adapter;        /* a PEFT folder whose adapter a run that is not gone on with begins from; NULL: none */
    bool overwrite;             /* going on from it may remove newer ones */
    bool unsaved;               /* where the run ends (at->finished, at->stopped) there is nothing to save; a checkpoint that step
                                   has already gets its links all the same */
    bool late;                  /* read the source's files when something is saved, which may never be */
    struct tune_logger *log;    /* whose metrics the checkpoints stand on; borrowed. NULL: none */
    struct tune_failure *failure; /* from tune_checkpoint_resume on, a program that fails saves its finished steps first, by
                                   tune_checkpoint_rescue; borrowed. NULL: it does not */
};

/* tune_checkpoint_new - the source's files are read now (and held: some megabytes) unless late, so that nothing of it is needed to
 * save.
 * NULL also where a save could not succeed: one of those files cannot be read, run_folder's path is too long for what goes
 * into it. Strings are copied. */
struct tune_checkpoint *tune_checkpoint_new(const struct tune_checkpoint_options *options);
void tune_checkpoint_free(struct tune_checkpoint *c);

/* tune_checkpoint_save - checkpoint-<at->step>; a second time at one step, progress.json alone, with what an evaluation
 * found meanwhile. Before the first step there is nothing to save. Links checkpoint-best if at->best, checkpoint-final if
 * at->finished; then removes what keep_last leaves out. Adapters are proved before they get the name (tune_adapter_prove), and the
 * log says how far they are from merged ones. opt NULL: no moments. -1 with an error: nothing appears under the
 * name; what was there stays. */
int tune_checkpoint_save(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt,
                         const struct tune_progress *at);

/* tune_checkpoint_step - save where at->step is due: each options.save_every steps (--save-every), and where the evaluation of
 * this step was the best so far.
 * tune_checkpoint_finish - behind the loop: save, evaluate, and note in that checkpoint what the evaluation found and whether it
 * is the best. It saves first: evaluating reads the data file again, which may have changed. After a signal it only saves.
 * eval NULL: nothing to evaluate. */
int tune_checkpoint_step(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt,
                         const struct tune_progress *at);
int tune_checkpoint_finish(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt,
                           struct tune_evaluator *eval, struct tune_progress *at);

/* tune_checkpoint_resume - once, before the first step. First says, through the log, what disk the checkpoints will take at
 * most. -1 with kind CANNOT: not even one fits. Then, without options.resume: the numbers of
 * options.adapter, if there is one, to m, which has such adapters. Where options.resume names a
 * checkpoint: its weights and moments to m and opt (NULL: none), load to its place, *at as it was;
 * the logger cut back to it (tune_logger_resume), the links as they were there, newer checkpoints
 * removed, and eval's evaluation of that step, if a signal cut it off (NULL: none). A data file that was changed is taken if
 * the rows consumed are what they were. -1, with
 * nothing in the folder changed: a file is missing, not of this model or not of this step,
 * config.json, tokenizer or the number of steps planned are others (tune_logger_changed), there
 * are newer checkpoints and overwrite is false, the metrics do not reach there.
 * All are borrowed as long as c where options.failure is not NULL: at a failure they are saved. */
int tune_checkpoint_resume(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt,
                           struct tune_loader *load, struct tune_evaluator *eval, struct tune_progress *at);

/* tune_checkpoint_rescue - after an error: the finished steps that were not logged go to the metrics, then the last finished
 * step is saved as after a signal. The work of the unfinished step is dropped, and the loader goes back to its beginning.
 * Nothing is saved before tune_checkpoint_resume, after a step that was not finite, when lines of the metrics are missing, or
 * when saving itself failed. text: what was saved and how to go on; "" if there is nothing to go on from. -1: that failed too. */
int tune_checkpoint_rescue(struct tune_checkpoint *c, char *text, size_t size);

/* tune_checkpoint_write_model - the model alone as a Hugging Face folder (config and tokenizer files from source).
 * folder is made; files there are replaced one by one. */
int tune_checkpoint_write_model(struct tune_model *m, const char *folder, const char *source, enum tune_dtype save_dtype);

/* tune_get_checkpoint - by --model, --adapter, --save, --save-every, --eval-every, --save-dtype, --keep-last, --resume and
 * --overwrite, in the logger's run folder. */
struct tune_checkpoint *tune_get_checkpoint(const struct tune_flags *flags, struct tune_logger *log);

#ifdef __cplusplus
}
#endif
#endif
