/* preference.h - losses of preferences: of pairs of a chosen and a rejected answer to one prompt,
 * or of single answers that are desirable or undesirable.
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
 *     double loss = tune_preference_pair(&options, &pair, d, NULL);
 *
 * KTO is a loss of single answers with a label. Their score is as above. w are two weights:
 *
 *     desirable answer      w_d (1 - sigmoid(beta (score - kl)))
 *     undesirable answer    w_u (1 - sigmoid(beta (kl - score)))
 *
 * kl says how far the policy is from the reference. It is the mean score of the batch's prompts
 * with wrong answers (tune_batch_mismatched), at least 0. The gradient does not go through it.
 *
 * Sources: Rafailov et al. 2023, equation 7 (DPO). Mitchell 2023 (label smoothing). Zhao et al.
 * 2023, equation 6 (SLiC). Azar et al. 2023, equation 17 (IPO). Meng et al. 2024, equation 6
 * (SimPO). Hong et al. 2024, equations 4 to 7 (ORPO). Ethayarajh et al. 2024, equations 7 and 8,
 * and TRL's trainer for the wrong answers (KTO). */
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

struct tune_comm;
/* tune_preference_check - 0, or -1 with an error: options that this loss does not have. Also for
 * KTO with fewer than 2 rows in a micro-batch, since a single prompt has no wrong answer.
 * tune_preference_needs_reference - whether the loss compares with a reference.
 * tune_preference_needs_kl - whether it is KTO.
 * tune_preference_passes - forward passes over an answer besides training, on average: by the
 * reference, and on KTO's wrong answers. anew: the reference computes each batch when it comes.
 * Else it computes an answer once, and wrong answers in each of so many epochs.
 * tune_preference_pair - the loss of one pair. d becomes its derivatives by chosen and rejected.
 * rewards becomes what is logged: beta times the scores; for simpo and orpo beta times log p per
 * token. NULL: not wanted.
 * tune_preference_answer - KTO's loss of one answer with this score. d becomes its derivative. */
int tune_preference_check(const struct tune_preference_options *o, int batch_size);
bool tune_preference_needs_reference(const struct tune_preference_options *o);
bool tune_preference_needs_kl(const struct tune_preference_options *o);
double tune_preference_passes(const struct tune_preference_options *o, bool anew, double epochs);
double tune_preference_pair(const struct tune_preference_options *o, const struct tune_pair *pair,
                            double d[2], double rewards[2]);
double tune_preference_answer(const struct tune_preference_options *o, bool desirable,
                              double score, double kl, double *d);

/* A sum and how many numbers it is of; 0: there were none. */
struct tune_preference_mean {
    double sum, count;
};

/* Sums for the log. Begin with {0}. They are over pairs. Those of KTO are over micro-batches: each
 * adds the mean of its answers, as in TRL. Chosen ones are the desirable answers. */
struct tune_preference_sums {
    double loss, count; /* sum over pairs or answers, and their number */
    struct tune_preference_mean chosen_reward, rejected_reward, margin; /* their difference */
    struct tune_preference_mean accurate; /* 1 for a pair whose chosen reward is the higher one */
    struct tune_preference_mean chosen_log_prob, rejected_log_prob; /* by the policy */
    struct tune_preference_mean kl;
};

/* tune_preference_batch - the losses of a batch. A pair is two sequences of a row of the data set.
 * The one with the higher label (batch->label_of) is the chosen answer. KTO takes one sequence to
 * a row; a label above 0 is that of a desirable answer. policy and reference are [B] log p from
 * tune_loss_row_log_probs; reference may be NULL if the loss needs none. kl is that of
 * tune_reference_kl; only KTO reads it. factors [B] becomes minus the derivatives, for
 * tune_loss_row_weights; NULL: not wanted. The sums are added to *sums. With a record, the step's
 * loss is the sum over pairs or answers, and its divisor their number. An empty batch
 * (tune_batch.empty) adds nothing, and its factors are 0. -1 with an error: the batch has other
 * sequences, or a number is not finite.
 * tune_preference_reduce - the sums become those over the ranks. comm NULL: nothing to do. */
int tune_preference_batch(const struct tune_preference_options *o, const struct tune_batch *batch,
                          const double *policy, const double *reference, double kl, double *factors,
                          struct tune_record *record, struct tune_preference_sums *sums);
int tune_preference_reduce(struct tune_preference_sums *sums, struct tune_comm *comm);

#ifdef __cplusplus
}
#endif
#endif
