/* rewards.c - rewards, margins and accuracies, for a step and for an evaluation. */
#include "evaluators/rewards.h"

#include "core/try.h"
#include "loggers/logger.h"

enum { NUMBERS = 6 };

struct number {
    const char *name;
    double sum;
};

static void numbers_of(const struct tune_preference_sums *p, struct number n[NUMBERS])
{
    const struct number all[NUMBERS] = {
        {"rewards/accuracies", p->accurate},
        {"rewards/margins", p->chosen_reward - p->rejected_reward},
        {"rewards/chosen", p->chosen_reward},
        {"rewards/rejected", p->rejected_reward},
        {"logps/chosen", p->chosen_log_prob},
        {"logps/rejected", p->rejected_log_prob},
    };
    for (int i = 0; i < NUMBERS; i++)
        n[i] = all[i];
}

int tune_rewards_log(const struct tune_preference_sums *pairs, struct tune_logger *log)
{
    struct number n[NUMBERS];
    numbers_of(pairs, n);
    for (int i = 0; i < NUMBERS; i++)
        TRY(tune_logger_metric(log, n[i].name, n[i].sum / pairs->pairs));
    return 0;
}

int tune_rewards_evaluate(void *rewards, const struct tune_batch *batch, struct tune_evaluation *sums)
{
    const struct tune_rewards *r = rewards;
    struct tune_tensor *hidden;
    struct tune_preference_sums pairs = {0};
    struct number n[NUMBERS];
    double theirs[batch->B], ours[batch->B];
    TRY(tune_reference_log_probs(r->reference, batch, theirs));
    TRY(tune_model_infer(r->model, batch, &hidden));
    TRY(tune_loss_row_log_probs(r->loss, hidden, batch, ours));
    TRY(tune_preference_batch(r->options, batch, ours, theirs, NULL, NULL, &pairs));
    numbers_of(&pairs, n);
    sums->loss += pairs.loss;
    sums->count += pairs.pairs;
    for (int i = 0; i < NUMBERS; i++)
        TRY(tune_evaluation_add(sums, n[i].name, n[i].sum));
    return 0;
}
