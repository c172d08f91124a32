/* get_optimizer.c - the optimizer and the schedule that the flags describe. */
#include <string.h>

#include "flags/flags.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedule.h"

struct tune_optimizer_options tune_get_optimizer_options(const struct tune_flags *flags)
{
    return (struct tune_optimizer_options){
        .kind = strcmp(flags->optimizer, "sgd") == 0 ? TUNE_SGD : TUNE_ADAMW,
        .beta1 = flags->beta1,
        .beta2 = flags->beta2,
        .eps = flags->eps,
        .weight_decay = flags->weight_decay,
        .momentum = flags->momentum,
        .decay_all = strcmp(flags->decay, "all") == 0,
    };
}

struct tune_optimizer *tune_get_optimizer(const struct tune_flags *flags, struct tune_model *m)
{
    struct tune_optimizer_options options = tune_get_optimizer_options(flags);
    return tune_optimizer_new(m, &options);
}

struct tune_schedule tune_get_schedule(const struct tune_flags *flags)
{
    enum tune_schedule_kind kind = TUNE_CONSTANT;
    if (strcmp(flags->schedule, "linear") == 0)
        kind = TUNE_LINEAR;
    else if (strcmp(flags->schedule, "cosine") == 0)
        kind = TUNE_COSINE;
    return (struct tune_schedule){kind, flags->lr, flags->warmup_ratio, flags->warmup_steps};
}
