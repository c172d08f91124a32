/* rewards.h - evaluate a preference loss, and log its numbers under the names that TRL uses.
 *
 *     rewards/accuracies                 1 where the chosen answer has the higher reward
 *     rewards/margins                    chosen minus rejected reward
 *     rewards/chosen, rewards/rejected   the rewards (losses/preference.h)
 *     logps/chosen, logps/rejected       log p of the answer by the policy, nats
 *
 * Each is a mean over pairs. */
#ifndef TUNE_REWARDS_H
#define TUNE_REWARDS_H

#include "evaluators/evaluator.h"
#include "evaluators/reference.h"
#include "losses/preference.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What an evaluation of pairs needs; all borrowed. */
struct tune_rewards {
    const struct tune_preference_options *options;
    struct tune_model *model;
    struct tune_loss *loss;
    struct tune_reference *reference;
};

/* tune_rewards_evaluate - a tune_evaluate function for tune_evaluator_by: the loss of pairs and its
 * numbers. rewards: struct tune_rewards. eval_loss is per pair.
 * tune_rewards_log - give the means to the current step's line of metrics. */
int tune_rewards_evaluate(void *rewards, const struct tune_batch *batch,
                          struct tune_evaluation *sums);
int tune_rewards_log(const struct tune_preference_sums *pairs, struct tune_logger *log);

#ifdef __cplusplus
}
#endif
#endif
