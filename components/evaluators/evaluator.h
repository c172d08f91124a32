/* evaluator.h - the loss on rows that are not trained on, weighted by tokens: sum of -log p over the number of labels. */
#ifndef TUNE_EVALUATOR_H
#define TUNE_EVALUATOR_H

#include "core/progress.h"
#include "datasets/loader.h"
#include "losses/loss.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_evaluator;
struct tune_flags;
struct tune_logger;

/* tune_evaluator_new - over what load gives in one pass; load becomes the evaluator's. NULL load: nothing to evaluate on,
 * every run does nothing. m and loss are borrowed. */
struct tune_evaluator *tune_evaluator_new(struct tune_model *m, struct tune_loss *loss, struct tune_loader *load);
void tune_evaluator_free(struct tune_evaluator *e);

/* tune_evaluator_loss - *loss: nats per label over one whole pass. -1: no label in any row, a bad row, a loss
 * that is not finite. */
int tune_evaluator_loss(struct tune_evaluator *e, double *loss);

/* tune_evaluator_run - evaluate, set at->eval_loss, eval_step, best and best_loss, and log it; not twice at one step and not
 * after a signal. log NULL: not logged. */
int tune_evaluator_run(struct tune_evaluator *e, struct tune_logger *log, struct tune_progress *at);

/* tune_get_eval - on the rows that --train-split holds out; with 1 there are none. */
struct tune_evaluator *tune_get_eval(const struct tune_flags *flags, struct tune_model *m, struct tune_loss *loss,
                                     struct tune_dataset *data);

#ifdef __cplusplus
}
#endif
#endif
