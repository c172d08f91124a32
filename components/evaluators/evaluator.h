/* evaluator.h - the loss on held-out rows, per label: the sum of -log p divided by the number of
 * labels.
 *
 * It also decides early stopping. An improvement is a loss that is more than min_delta below the
 * last improvement. `patience` evaluations in a row without improvement end the run. The counts are
 * in struct tune_progress, so a resumed run continues them. */
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

/* Options. With all members zero, evaluations never end a run. */
struct tune_evaluator_options {
    int patience;     /* evaluations without improvement that end the run; 0: never */
    double min_delta; /* smallest improvement, in nats per label */
    int64_t every;    /* steps between evaluations, for tune_evaluator_step and _resume; 0: none */
    struct tune_dataset *data; /* dataset to free with the evaluator, or NULL */
    const char *path; /* path of data, for the log; borrowed */
};

/* tune_evaluator_new - evaluate on one pass of load. The evaluator frees load. load NULL: there is
 * nothing to evaluate, and all calls do nothing. m and loss must outlive it. options NULL: all
 * zero. NULL with an error. */
struct tune_evaluator *tune_evaluator_new(struct tune_model *m, struct tune_loss *loss,
                                          struct tune_loader *load,
                                          const struct tune_evaluator_options *options);
void tune_evaluator_free(struct tune_evaluator *e);

/* tune_evaluator_check - read all rows once. It reports a bad row, or rows without any label,
 * before training starts. -1 with an error that names the row. */
int tune_evaluator_check(struct tune_evaluator *e);

/* tune_evaluator_loss - set *loss to nats per label over one whole pass. -1: no row has a label, a
 * bad row, or a non-finite loss. Above 0: the number of a signal that interrupted load; *loss is
 * unchanged. */
int tune_evaluator_loss(struct tune_evaluator *e, double *loss);

/* tune_evaluator_run - evaluate, set at's evaluation members (eval_loss to early_stop), and log the
 * result. It does nothing twice at one step, or in a run that was stopped. It may be called before
 * the first step. A signal interrupts it; then only at->signal and at->stopped are set. log may be
 * NULL.
 *
 * tune_evaluator_step - the same, every options.every steps (--eval-every). */
int tune_evaluator_step(struct tune_evaluator *e, struct tune_logger *log,
                        struct tune_progress *at);
int tune_evaluator_run(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at);

/* tune_evaluator_resume - called by tune_checkpoint_resume. It decides again, with the present
 * patience, whether the run stops early. It repeats the evaluation of the current step if that was
 * interrupted. */
int tune_evaluator_resume(struct tune_evaluator *e, struct tune_logger *log,
                          struct tune_progress *at);

/* tune_evaluator_note - log a line and a member of run.json about the evaluation rows, if there are
 * any. */
int tune_evaluator_note(const struct tune_evaluator *e, struct tune_logger *log);

/* tune_get_eval - the evaluator on the rows that --train-split holds out of data (1: none), or on
 * those of --eval-dataset. --eval-rows limits them to a fixed subset. All rows are read once now
 * (tune_evaluator_check). It also reads --patience and --min-delta.
 *
 * NULL with kind USAGE: both sets are given, or an option needs a set and there is none. NULL with
 * an error also for a bad row. */
struct tune_evaluator *tune_get_eval(const struct tune_flags *flags, struct tune_model *m,
                                     struct tune_loss *loss, struct tune_dataset *data,
                                     struct tune_tokenizer *tok);

#ifdef __cplusplus
}
#endif
#endif
