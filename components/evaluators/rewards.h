/* rewards.h - evaluate a preference loss, and log its numbers under the names that TRL uses.
 *
 *     rewards/accuracies                 1 where the chosen answer has the higher reward
 *     rewards/margins                    chosen minus rejected reward
 *     rewards/chosen, rewards/rejected   the rewards (losses/preference.h)
 *     logps/chosen, logps/rejected       log p of the answer by the policy, nats
 *     kl                                 KTO's estimate, for each micro-batch
 *
 * Each is a mean over pairs. KTO has no accuracies. Its others are means over micro-batches of the
 * mean in each (struct tune_preference_sums). One without any such answer is left out. In an
 * evaluation, KTO's margin is the difference of the two rewards: few micro-batches may have both
 * labels. */
#ifndef TUNE_REWARDS_H
#define TUNE_REWARDS_H

#include "evaluators/evaluator.h"
#include "evaluators/reference.h"
#include "losses/preference.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The parts of an evaluation of preferences; all borrowed. */
struct tune_rewards {
    const struct tune_preference_options *options;
    struct tune_model *model;
    struct tune_loss *loss;
    struct tune_reference *reference;
};

/* tune_rewards_evaluate - a tune_evaluate function for tune_evaluator_by: the loss and its numbers.
 * rewards: struct tune_rewards. eval_loss is per pair, of KTO per answer.
 * tune_rewards_log - give the means to the current step's line of metrics. */
int tune_rewards_evaluate(void *rewards, const struct tune_batch *batch,
                          struct tune_evaluation *sums);
int tune_rewards_log(const struct tune_preference_sums *sums, struct tune_logger *log);

#ifdef __cplusplus
}
#endif
#endif
