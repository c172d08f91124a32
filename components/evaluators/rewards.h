/* rewards.h - the numbers of a loss of pairs that are logged, under the names that TRL uses.
 *
 * | name                                     | mean over pairs                                     |
 * |------------------------------------------|-----------------------------------------------------|
 * | rewards/accuracies                       | 1 where the chosen answer has the higher reward     |
 * | rewards/margins                          | chosen minus rejected reward                        |
 * | rewards/chosen, rewards/rejected         | the rewards (losses/preference.h)                   |
 * | logps/chosen, logps/rejected             | log p of the answer by the policy, nats             | */
#ifndef TUNE_REWARDS_H
#define TUNE_REWARDS_H

#include "evaluators/evaluator.h"
#include "losses/preference.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tune_rewards_log - give the means to the current step's line of metrics.
 * tune_rewards_evaluated - add the pairs of a batch to an evaluation; eval_loss is per pair. */
int tune_rewards_log(const struct tune_preference_sums *pairs, struct tune_logger *log);
int tune_rewards_evaluated(const struct tune_preference_sums *pairs, struct tune_evaluation *sums);

#ifdef __cplusplus
}
#endif
#endif
