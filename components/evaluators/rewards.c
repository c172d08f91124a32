/* rewards.c - rewards, margins and accuracies, for a step and for an evaluation. */
#include "evaluators/rewards.h"

#include "core/try.h"
#include "loggers/logger.h"

enum { MARGIN = 1, NUMBERS = 7 };

struct number {
    const char *name;
    struct tune_preference_mean mean;
};

static void numbers_of(const struct tune_preference_sums *p, struct number n[NUMBERS])
{
    const struct number all[NUMBERS] = {
        {"rewards/accuracies", p->accurate},
        {"rewards/margins", p->margin},
        {"rewards/chosen", p->chosen_reward},
        {"rewards/rejected", p->rejected_reward},
        {"logps/chosen", p->chosen_log_prob},
        {"logps/rejected", p->rejected_log_prob},
        {"kl", p->kl},
    };
    for (int i = 0; i < NUMBERS; i++)
        n[i] = all[i];
}

int tune_rewards_log(const struct tune_preference_sums *sums, struct tune_logger *log)
{
    struct number n[NUMBERS];
    numbers_of(sums, n);
    for (int i = 0; i < NUMBERS; i++)
        TRY(n[i].mean.count > 0 ? tune_logger_metric(log, n[i].name, n[i].mean.sum / n[i].mean.count) : 0);
    return 0;
}

int tune_rewards_evaluate(void *rewards, const struct tune_batch *batch, struct tune_evaluation *sums)
{
    const struct tune_rewards *r = rewards;
    struct tune_tensor *hidden;
    struct tune_preference_sums own = {0};
    struct number n[NUMBERS];
    double theirs[batch->B], ours[batch->B], kl;
    TRY(tune_reference_log_probs(r->reference, batch, theirs));
    TRY(tune_reference_kl(r->reference, batch, &kl));
    TRY(tune_model_infer(r->model, batch, &hidden));
    TRY(tune_loss_row_log_probs(r->loss, hidden, batch, ours));
    TRY(tune_preference_batch(r->options, batch, ours, theirs, kl, NULL, NULL, &own));
    numbers_of(&own, n);
    sums->loss += own.loss;
    sums->count += own.count;
    bool single = tune_preference_needs_kl(r->options); /* a micro-batch may have answers of one label alone */
    for (int i = 0; i < NUMBERS; i++)
        TRY(n[i].mean.count > 0 && !(single && i == MARGIN) ? tune_evaluation_add(sums, n[i].name, n[i].mean.sum, n[i].mean.count) : 0);
    return single ? tune_evaluation_difference(sums, "rewards/margins", "rewards/chosen", "rewards/rejected") : 0;
}
