/* checkpoint.h - checkpoints of a run: a folder that transformers loads, and the state to resume
 * from.
 *
 *     <run>/checkpoint-120/
 *       config.json generation_config.json tokenizer.json ...   files of the source model
 *       model.safetensors                the weights, in the dtype they were read in
 *       state/progress.json              the run's progress, and hashes of weights and moments
 *       state/optimizer.safetensors      the moments, F32: "m.<name>", "v.<name>"
 *       state/extra.safetensors          tensors of tune_model_extra, F32: "<their name>.<name>"
 *       state/weights.safetensors        the F32 weights, if the saved ones are narrower
 *       state/config.json                config.json of a model with adapters
 *     <run>/checkpoint-best, checkpoint-final -> checkpoint-120
 *
 * A model with adapters saves adapter_config.json and adapter_model.safetensors instead of
 * model.safetensors. Like a folder of PEFT, it then has no config.json and no
 * generation_config.json.
 *
 * A checkpoint appears whole or not at all: it is written under a temporary name, each file is
 * synced, and it is renamed. It is also removed as a whole. Before the rename, the lines of
 * metrics.jsonl up to its step are on disk. */
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
    int64_t save_every; /* steps between checkpoints, 0: none. See also tune_checkpoint_step */
    int64_t eval_every;         /* steps between evaluations, 0: none; to estimate disk space */
    const char *resume;         /* checkpoint to resume from; NULL: none */
    const char *adapter;        /* a PEFT folder whose adapter a run that is not gone on with begins from; NULL: none */
    bool overwrite;             /* resuming may remove newer checkpoints */
    bool unsaved;               /* where the run ends (at->finished, at->stopped) there is nothing to save; a checkpoint that step
                                   has already gets its links all the same */
    bool late;                  /* read the source's files when something is saved, which may never be */
    struct tune_logger *log;    /* whose metrics.jsonl the checkpoints stand on; borrowed. NULL: none */
    struct tune_failure *failure; /* from tune_checkpoint_resume on, a program that fails saves its finished steps first, by
                                   tune_checkpoint_rescue; borrowed. NULL: it does not */
};

/* tune_checkpoint_new - make it. Strings are copied. Unless options.late, the source's files are
 * read now (a few megabytes), so that saving does not need the source folder.
 *
 * NULL with an error also if a save could not succeed: a source file cannot be read, or the path of
 * run_folder is too long. */
struct tune_checkpoint *tune_checkpoint_new(const struct tune_checkpoint_options *options);
void tune_checkpoint_free(struct tune_checkpoint *c);

/* tune_checkpoint_save - save checkpoint-<at->step>. A second save at one step rewrites only
 * progress.json, with the results of an evaluation. Before the first step nothing is saved. opt
 * NULL: no moments.
 *
 * It sets checkpoint-best if at->best and checkpoint-final if at->finished, then removes
 * checkpoints by keep_last. Adapters are verified before the rename (tune_adapter_prove), and the
 * log reports their distance from merged ones.
 *
 * -1 with an error: no new folder appears, and old ones stay. */
int tune_checkpoint_save(struct tune_checkpoint *c, struct tune_model *m,
                         struct tune_optimizer *opt, const struct tune_progress *at);

/* tune_checkpoint_step - save if at->step is due: every options.save_every steps (--save-every),
 * and if the evaluation of this step was the best so far.
 *
 * tune_checkpoint_finish - call it after the loop: save, evaluate, then record the evaluation in
 * that checkpoint. It saves first, because evaluating rereads the data file, which may have
 * changed. After a signal it only saves. eval NULL: nothing to evaluate. */
int tune_checkpoint_step(struct tune_checkpoint *c, struct tune_model *m,
                         struct tune_optimizer *opt, const struct tune_progress *at);
int tune_checkpoint_finish(struct tune_checkpoint *c, struct tune_model *m,
                           struct tune_optimizer *opt, struct tune_evaluator *eval,
                           struct tune_progress *at);

/* tune_checkpoint_resume - call it once, before the first step. It logs the disk space that
 * checkpoints will need. -1 with kind CANNOT: not even one fits.
 *
 * Without options.resume it loads the weights of options.adapter, if set, into the adapters of m.
 *
 * With options.resume it restores weights and moments to m and opt (NULL: none), load's position
 * and *at. It cuts the log back to that step (tune_logger_resume), restores the links and removes
 * newer checkpoints. It repeats that step's evaluation if a signal interrupted it (eval NULL:
 * none). A changed data file is accepted if the consumed rows are the same.
 *
 * -1 with an error, with the folder unchanged: a file is missing or belongs to another model or
 * step. config.json, tokenizer or number of planned steps differ (tune_logger_changed). There are
 * newer checkpoints and overwrite is false. metrics.jsonl does not reach that step.
 *
 * If options.failure is set, all arguments must live as long as c: at a failure they are saved. */
int tune_checkpoint_resume(struct tune_checkpoint *c, struct tune_model *m,
                           struct tune_optimizer *opt, struct tune_loader *load,
                           struct tune_evaluator *eval, struct tune_progress *at);

/* tune_checkpoint_rescue - save after an error. It writes finished steps to metrics.jsonl and saves
 * the last finished step, as after a signal. The unfinished step is dropped, and the loader goes
 * back to its beginning.
 *
 * Nothing is saved before tune_checkpoint_resume, after a step that was not finite, if lines of
 * metrics.jsonl are missing, or if saving itself failed. text: what was saved and how to resume; ""
 * if there is nothing to resume. -1 with an error: the rescue failed. */
int tune_checkpoint_rescue(struct tune_checkpoint *c, char *text, size_t size);

/* tune_checkpoint_write_model - write the model as a Hugging Face folder, with config and tokenizer
 * files from source. It makes folder; files in it are replaced one by one. 0, or -1 with an
 * error. */
int tune_checkpoint_write_model(struct tune_model *m, const char *folder, const char *source,
                                enum tune_dtype save_dtype);

/* tune_get_checkpoint - checkpoints in the logger's run folder. It reads --model, --adapter,
 * --save, --save-every, --eval-every, --save-dtype, --keep-last, --resume and --overwrite. */
struct tune_checkpoint *tune_get_checkpoint(const struct tune_flags *flags,
                                            struct tune_logger *log);

#ifdef __cplusplus
}
#endif
#endif
