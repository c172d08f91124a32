/* evaluator.h - the loss on rows that are not trained on, weighted by tokens: sum of -log p over the number of labels.
 *
 * It also knows when more training does not help: of each loss it asks whether it is lower by
 * more than min_delta than the last one that was; `patience` in a row that are not end the run.
 * What it counts stands in struct tune_progress, so a resumed run counts on. */
#ifndef TUNE_EVALUATOR_H
#define TUNE_EVALUATOR_H

#include "core/progress.h"
#include "datasets/loader.h"
#include "losses/loss.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_evaluator;
struct tune_flags;
struct tune_logger;
struct tune_tokenizer;

/* Zeroed ones: never end a run. */
struct tune_evaluator_options {
    int patience;     /* evaluations without improvement that end the run; 0: never */
    double min_delta; /* nats per label that an improvement must be more than */
    int64_t every;    /* steps between evaluations, for tune_evaluator_step and _resume; 0: none of them */
    struct tune_dataset *data; /* the set that load reads, if nobody else frees it: it becomes the evaluator's; else NULL */
    const char *path; /* of data, for the log; borrowed */
};

/* tune_evaluator_new - over what load gives in one pass; load becomes the evaluator's. NULL load: nothing to evaluate on,
 * every run does nothing. m and loss are borrowed. options NULL: zeroed ones. */
struct tune_evaluator *tune_evaluator_new(struct tune_model *m, struct tune_loss *loss, struct tune_loader *load,
                                          const struct tune_evaluator_options *options);
void tune_evaluator_free(struct tune_evaluator *e);

/* tune_evaluator_check - one pass that only reads, so that a bad row, or rows without one label, are told before a run and not
 * at its first evaluation. -1 names the row. */
int tune_evaluator_check(struct tune_evaluator *e);

/* tune_evaluator_loss - *loss: nats per label over one whole pass. -1: no label in any row, a bad row, a loss
 * that is not finite. Above 0: the signal that load was told of; *loss is as it was. */
int tune_evaluator_loss(struct tune_evaluator *e, double *loss);

/* tune_evaluator_run - evaluate, set at's evaluation members (eval_loss to early_stop), and log it; not twice at one step and
 * not in a run that stops before its end. Also before the first step, where somebody wants to know. A signal cuts it off: only
 * at->signal and at->stopped are set. log NULL: not logged.
 * tune_evaluator_step - the same, each options.every steps (--eval-every). */
int tune_evaluator_step(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at);
int tune_evaluator_run(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at);

/* tune_evaluator_resume - tune_checkpoint_resume calls it: decides anew, by this patience, whether the run is at its early stop, and
 * makes the evaluation of the step it stands at, if that one was cut off. */
int tune_evaluator_resume(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at);

/* tune_evaluator_note - a line, and a member of the description, about the rows it evaluates on; nothing where there are none. */
int tune_evaluator_note(const struct tune_evaluator *e, struct tune_logger *log);

/* tune_get_eval - on the rows that --train-split holds out of data (with 1 there are none), or on those of --eval-dataset;
 * --eval-rows of them, the same ones each time, all read once now (tune_evaluator_check); --patience, --min-delta. NULL with
 * kind USAGE: both are given, or an option that has nothing to evaluate on; NULL too where a row is bad. */
struct tune_evaluator *tune_get_eval(const struct tune_flags *flags, struct tune_model *m, struct tune_loss *loss,
                                     struct tune_dataset *data, struct tune_tokenizer *tok);

#ifdef __cplusplus
}
#endif
#endif
