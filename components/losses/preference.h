/* preference.h - losses of pairs: one prompt with a chosen and a rejected answer.
 *
 * Each loss is a function of log-probabilities: log p of an answer is the sum over its tokens. The
 * policy is the model that is trained. The reference is a frozen one (reference.h).
 *
 *     chosen score    = log p of the policy - log p of the reference, for the chosen answer
 *     rejected score  = the same for the rejected answer
 *     margin          = chosen score - rejected score
 *
 *     loss       of one pair; s is log sigmoid
 *     sigmoid    -s(beta margin)                                  DPO
 *     hinge      max(0, 1 - beta margin)                          SLiC
 *     ipo        (margin per token - 1 / (2 beta))^2
 *     simpo      -s(beta (chosen - rejected log p per token) - gamma)        without reference
 *     orpo       -(chosen log p per token) - beta s(log of the odds' ratio)  without reference
 *
 * With label_smoothing e, sigmoid and simpo become -(1 - e) s(x) - e s(-x). With length_normalize,
 * sigmoid and hinge take scores per token too. The other three always do.
 *
 *     double d[2];
 *     double loss = tune_preference_pair(&options, &pair, d);
 *
 * Sources: Rafailov et al. 2023, equation 7 (DPO). Mitchell 2023 (label smoothing). Zhao et al.
 * 2023, equation 6 (SLiC). Azar et al. 2023, equation 17 (IPO). Meng et al. 2024, equation 6
 * (SimPO). Hong et al. 2024, equations 4 to 7 (ORPO). */
#ifndef TUNE_PREFERENCE_H
#define TUNE_PREFERENCE_H

#include "core/batch.h"
#include "devices/record.h"
#include "losses/options.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A pair's log-probabilities in nats, and its numbers of answer tokens. */
struct tune_pair {
    double chosen, rejected;                     /* by the policy */
    double reference_chosen, reference_rejected; /* by the reference; not read without one */
    int64_t chosen_tokens, rejected_tokens;      /* at least 1 */
};

/* tune_preference_check - 0, or -1 with an error: options that this loss does not have.
 * tune_preference_needs_reference - whether the loss compares with a reference.
 * tune_preference_pair - the loss of one pair. d becomes its derivatives by chosen and rejected.
 * rewards becomes what is logged: beta times the scores; for simpo and orpo beta times log p per
 * token. NULL: not wanted. */
int tune_preference_check(const struct tune_preference_options *o);
bool tune_preference_needs_reference(const struct tune_preference_options *o);
double tune_preference_pair(const struct tune_preference_options *o, const struct tune_pair *pair,
                            double d[2], double rewards[2]);

/* Sums over pairs, for the log. Begin with {0}. */
struct tune_preference_sums {
    double pairs, loss;
    double chosen_reward, rejected_reward;     /* their difference is the margin */
    double accurate;                           /* pairs whose chosen reward is the higher one */
    double chosen_log_prob, rejected_log_prob; /* by the policy */
};

/* tune_preference_batch - the losses of a batch of pairs (batch->pairs). policy and reference are
 * [B] log-probabilities from tune_loss_row_log_probs; reference may be NULL if the loss needs none.
 * factors [B] becomes minus the derivatives, for tune_loss_row_weights; NULL: not wanted. The sums
 * are added to *sums. With a record, the step's loss is the sum over pairs, and its divisor their
 * number. -1 with an error: no batch of pairs, or a number that is not finite. */
int tune_preference_batch(const struct tune_preference_options *o, const struct tune_batch *batch,
                          const double *policy, const double *reference, double *factors,
                          struct tune_record *record, struct tune_preference_sums *sums);

#ifdef __cplusplus
}
#endif
#endif
