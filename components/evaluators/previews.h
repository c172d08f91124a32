/* previews.h - what the model says to some prompts while it trains.
 *
 *     struct tune_previews *previews = tune_get_previews(flags, model, data, tok);
 *     tune_previews_note(previews, log);              what it answers, in the header
 *     while (...) {
 *         ... a step ...
 *         tune_previews_step(previews, log, &at);     every --preview-every steps, and at the end
 *     }
 *     tune_previews_free(previews);
 *
 * Answers are greedy, so they change only with the weights. The rules and stop texts of the model's
 * generation_config.json hold, and its repetition penalty. They use no random draws of the run, so
 * training computes the same with and without them. */
#ifndef TUNE_PREVIEWS_H
#define TUNE_PREVIEWS_H

#include "core/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_flags;
struct tune_logger;
struct tune_model;
struct tune_previews;
struct tune_tokenizer;

/* tune_get_previews - the answers that the options ask for, of m as it then is. data: the rows that
 * are trained on; their answers may end with a token of their own. Without --preview-every it does
 * nothing in each step. NULL with an error: no prompts, a prompt that is too long, no memory.
 * tune_previews_free - free it before m; NULL is fine.
 * tune_previews_note - log how many prompts are answered, and how many are left out
 * (preview_rows). The first tune_previews_step does it where nobody did.
 * tune_previews_step - answer all prompts, if at->step is due, and log it (tune_logger_preview). A
 * line says how far it is where ten seconds pass without one. With moving averages of the weights,
 * these answer. A signal leaves out the rest. */
struct tune_previews *tune_get_previews(const struct tune_flags *flags, struct tune_model *m,
                                      struct tune_dataset *data, struct tune_tokenizer *tok);
void tune_previews_free(struct tune_previews *s);
int tune_previews_note(struct tune_previews *s, struct tune_logger *log);
int tune_previews_step(struct tune_previews *s, struct tune_logger *log,
                      const struct tune_progress *at);

#ifdef __cplusplus
}
#endif
#endif
