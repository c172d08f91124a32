/* scorecard.h - what metrics (metrics/scores.h) say of a model's answers to the rows of a file.
 *
 *     struct tune_scorecard *card = tune_get_scorecard(flags, tok, prompts, stderr);
 *     while (tune_prompts_next(prompts, &batch) > 0) {
 *         tune_scorecard_texts(card, &batch, &texts);         the rows with their references
 *         ... log_probs = log p of each label of texts, tune_loss_log_probs_host ...
 *         tune_scorecard_log_probs(card, 0, log_probs);
 *         tune_generate(generator, &batch, tune_choose_token, NULL);
 *     }
 *     tune_scorecard_finish(card, generator->answers, stdout);
 *     tune_scorecard_free(card);
 *
 * It adds members to the lines of answers (answers.h). A line of rows.jsonl then is:
 *
 *     {"row": 0, "prompt": "Name a colour.", "answer": "Red.", "expected": "Red.", ...,
 *      "loss_sum": 0.71, "text_loss_sum": 0.7, "loss_tokens": 3, "loss_bytes": 4,
 *      "exact_match_raw": 1, "loss": 0.237}
 *
 * Metrics see answer and reference without white space at their ends: tokenizers differ in whether
 * an answer begins with a space. Members of the model to compare with begin with "base_". A file
 * that is continued is read again, so other metrics may be asked of the same answers. loss_tokens
 * counts the end token; loss_bytes has none for it, and text_loss_sum leaves out special tokens.
 *
 * If some row has several references, lines have all as "references". Lines of pairs have chosen,
 * rejected, and numbers of both in place of an answer; lines of plain texts have text. The numbers
 * of a program (metric_program.h) stand at the end, behind a list of their names.
 *
 * The report has a member for each metric: its value, and with _low, _high and _error behind the
 * name its interval and standard error (metrics/estimates.h). Compared ones begin with base_ and
 * difference_. Then there are wins_, losses_, ties_ and p_; better_rows and worse_rows list the
 * rows on which only one model is right. */
#ifndef TUNE_SCORECARD_H
#define TUNE_SCORECARD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/batch.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_answers;
struct tune_flags;
struct tune_prompt_batch;
struct tune_prompts;
struct tune_scorecard;
struct tune_tokenizer;

/* tune_get_scorecard - a card for the rows of prompts, which must outlive it. Call it before the
 * model and the answers are made. Copies of rows that the model was trained on are left out, by the
 * hash of their content, if a run made the model. notes: how many. NULL with an error: an unknown
 * metric, a row without an answer to compare with, labels that do not fit, no row left, no memory.
 * tune_scorecard_free - free it; NULL is fine. */
struct tune_scorecard *tune_get_scorecard(const struct tune_flags *flags,
                                          struct tune_tokenizer *tok, struct tune_prompts *prompts,
                                          FILE *notes);
void tune_scorecard_free(struct tune_scorecard *card);

/* tune_scorecard_texts - the rows of batch with their references: labels are on the answers. Of a
 * pair it is two texts, the chosen answer first. *texts is valid until the next call.
 * tune_scorecard_log_probs - log p [B,T] of those labels, 0 where there is none. side 1: by the
 * model to compare with. Call it before the rows are answered. */
int tune_scorecard_texts(struct tune_scorecard *card, const struct tune_prompt_batch *batch,
                         struct tune_batch *texts);
void tune_scorecard_log_probs(struct tune_scorecard *card, int side, const float *log_probs);

/* tune_scorecard_finish - after the last batch: print the table, and write the report if there is
 * a folder. If a signal left rows out, it only says so. */
int tune_scorecard_finish(struct tune_scorecard *card, const struct tune_answers *answers,
                          FILE *out);

#ifdef __cplusplus
}
#endif
#endif
