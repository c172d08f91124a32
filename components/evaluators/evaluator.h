/* evaluator.h - the loss on rows that are not trained on: the sum of -log p over all labels,
 * divided by their number. A recipe may evaluate another loss (tune_evaluator_by). If the options
 * of tune_get_eval name metrics, the model also answers some of the rows, and they judge its
 * answers.
 *
 * It also does early stopping. A loss counts as an improvement if it is lower than the last
 * improvement by more than min_delta. `patience` evaluations in a row without one end the run. Both
 * may go by another number (tune_evaluator_best_by). The counts are in struct tune_progress, so a
 * resumed run counts on. */
#ifndef TUNE_EVALUATOR_H
#define TUNE_EVALUATOR_H

#include "core/progress.h"
#include "datasets/loader.h"
#include "evaluators/options.h"
#include "losses/loss.h"

enum { TUNE_EVAL_METRICS = 56 };

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_evaluator;
struct tune_flags;
struct tune_logger;
struct tune_tokenizer;

/* tune_evaluator_new - an evaluator over one pass of load. The evaluator frees load. load NULL:
 * there is nothing to evaluate, and every call does nothing. m and loss must outlive it. options
 * NULL: zeroed ones.
 * tune_evaluator_add - evaluate these rows too. eval_loss is over all rows; the loss of these alone
 * is logged as eval_<name>_loss, unless name is "". The evaluator frees load, also on an error: too
 * many, or a long name.
 * tune_evaluator_add_general - the same for general rows. They count only in eval_<name>_loss, and
 * if there are several, in eval_general_loss.
 * tune_evaluator_best_by - let the best, and early stopping, go by the number that is logged as
 * eval_<name>. better: 1, higher values are; -1, lower ones. An infinite value is the worst.
 * Without this call they go by the loss. -1 with an error: the name is empty or too long.
 * tune_evaluator_free - free it; NULL is fine. */
struct tune_evaluator *tune_evaluator_new(struct tune_model *m, struct tune_loss *loss,
                                          struct tune_loader *load,
                                          const struct tune_evaluator_options *options);
int tune_evaluator_add(struct tune_evaluator *e, struct tune_loader *load, const char *name);
int tune_evaluator_add_general(struct tune_evaluator *e, struct tune_loader *load,
                               const char *name);
int tune_evaluator_best_by(struct tune_evaluator *e, const char *name, int better);
void tune_evaluator_free(struct tune_evaluator *e);

/* Sums over the rows of one evaluation. */
struct tune_evaluation {
    double loss, count; /* eval_loss is loss / count */
    int metrics;
    struct {
        char name[48];  /* logged as eval_<name>: the sum / its own count */
        double sum, count;
        bool of_answers; /* the log line shows it */
        int more, less; /* numbers of two others, from 1: it is their difference; 0: a sum */
    } metric[TUNE_EVAL_METRICS];
};

/* tune_evaluate - a function of your own that adds one batch to the sums. It returns 0, or -1 after
 * tune_error_set.
 * tune_evaluator_by - evaluate with that function; context is passed to it.
 * tune_evaluation_add - add to the sum of that name, and to the number of things that it is a sum
 * of. -1 with an error: more than TUNE_EVAL_METRICS names.
 * tune_evaluation_value - the same for a number that is no mean over batches, in the line of the
 * evaluation, too. Once for each name.
 * tune_evaluation_difference - log under that name the mean of `more` minus the mean of `less`. It
 * does nothing before both have sums, so call it with each batch.
 * tune_evaluator_each - call each for every batch of the rows, until a signal arrives. Nothing is
 * evaluated. each NULL: only read the rows.
 * tune_evaluator_each_of - the same for general rows, or for the others. */
typedef int tune_evaluate(void *context, const struct tune_batch *batch,
                          struct tune_evaluation *sums);
void tune_evaluator_by(struct tune_evaluator *e, tune_evaluate *evaluate, void *context);
int tune_evaluation_add(struct tune_evaluation *sums, const char *name, double more,
                        double count);
int tune_evaluation_value(struct tune_evaluation *sums, const char *name, double value);
int tune_evaluation_difference(struct tune_evaluation *sums, const char *name, const char *more,
                               const char *less);
int tune_evaluator_each(struct tune_evaluator *e,
                        int (*each)(void *context, const struct tune_batch *batch), void *context);
int tune_evaluator_each_of(struct tune_evaluator *e, bool general,
                           int (*each)(void *context, const struct tune_batch *batch),
                           void *context);

/* tune_evaluator_check - read all rows once. So a bad row, or rows without a label, are errors
 * before the run. -1 with an error that names the row. */
int tune_evaluator_check(struct tune_evaluator *e);

/* tune_evaluator_loss - evaluate; *loss is in nats per label, or the loss of tune_evaluator_by. -1
 * with an error: no label in any row, a bad row, or a loss that is not finite. Above 0: a signal
 * arrived, and *loss is unchanged. */
int tune_evaluator_loss(struct tune_evaluator *e, double *loss);

/* tune_evaluator_run - evaluate, set the evaluation fields of at (eval_loss to early_stop), and log
 * it. It does nothing if this step was evaluated, or if the run stops before its end. You may call
 * it before the first step. A signal cuts it off: then only at->signal and at->stopped are set. log
 * NULL: do not log.
 * tune_evaluator_step - the same, every options.every steps. Both: -1 with an error, also if the
 * best goes by a number that the evaluation did not give. */
int tune_evaluator_step(struct tune_evaluator *e, struct tune_logger *log,
                        struct tune_progress *at);
int tune_evaluator_run(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at);

/* tune_evaluator_resume - for tune_checkpoint_resume. Decides again, with this patience, whether
 * the run stops early. Repeats the evaluation of the current step if it was cut off. If the best
 * went by another number, it and the patience begin anew. At step 0 with options.first, it
 * evaluates and logs: that is no best, and *at stays, but for a signal. */
int tune_evaluator_resume(struct tune_evaluator *e, struct tune_logger *log,
                          struct tune_progress *at);

/* tune_evaluator_compare - count the rows to evaluate on that are copies of rows of train
 * (datasets/copies.h). tune_evaluator_note tells it. -1 with an error.
 * tune_evaluator_note - write header lines and members of the description about the evaluated rows,
 * if there are any. */
int tune_evaluator_compare(struct tune_evaluator *e, struct tune_dataset *train);
int tune_evaluator_note(const struct tune_evaluator *e, struct tune_logger *log);

/* tune_get_eval - the evaluator that the options describe: on the rows held out of data, or on a
 * file of its own; and on general rows. A limited number of rows is drawn once, and so are the rows
 * to answer. All rows are read now. NULL with kind USAGE: both sources are given, or an option has
 * nothing to evaluate on, or a name is unknown. NULL also if a row is bad. */
struct tune_evaluator *tune_get_eval(const struct tune_flags *flags, struct tune_model *m,
                                     struct tune_loss *loss,
                                     struct tune_dataset *data, struct tune_tokenizer *tok);

#ifdef __cplusplus
}
#endif
#endif
