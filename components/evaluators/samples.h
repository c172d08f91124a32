/* samples.h - what the model says to some prompts while it trains.
 *
 *     struct tune_samples *samples = tune_get_samples(flags, model, data, tok);
 *     tune_samples_note(samples, log);                what it answers, in the header
 *     while (...) {
 *         ... a step ...
 *         tune_samples_step(samples, log, &at);       every --sample-every steps, and at the end
 *     }
 *     tune_samples_free(samples);
 *
 * Answers are greedy, so they change only with the weights. The rules and stop texts of the model's
 * generation_config.json hold, and its repetition penalty. They use no random draws of the run, so
 * training computes the same with and without them. */
#ifndef TUNE_SAMPLES_H
#define TUNE_SAMPLES_H

#include "core/progress.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_dataset;
struct tune_flags;
struct tune_logger;
struct tune_model;
struct tune_samples;
struct tune_tokenizer;

/* tune_get_samples - the answers that the options ask for, of m as it then is. data: the rows that
 * are trained on; their answers may end with a token of their own. Without --sample-every it does
 * nothing in each step. NULL with an error: no prompts, a prompt that is too long, no memory.
 * tune_samples_free - free it before m; NULL is fine.
 * tune_samples_note - log how many prompts are answered, and how many are left out
 * (sample_rows). The first tune_samples_step does it where nobody did.
 * tune_samples_step - answer all prompts, if at->step is due, and log it (tune_logger_sample). A
 * line says how far it is where ten seconds pass without one. With moving averages of the weights,
 * these answer. A signal leaves out the rest. */
struct tune_samples *tune_get_samples(const struct tune_flags *flags, struct tune_model *m,
                                      struct tune_dataset *data, struct tune_tokenizer *tok);
void tune_samples_free(struct tune_samples *s);
int tune_samples_note(struct tune_samples *s, struct tune_logger *log);
int tune_samples_step(struct tune_samples *s, struct tune_logger *log,
                      const struct tune_progress *at);

#ifdef __cplusplus
}
#endif
#endif
