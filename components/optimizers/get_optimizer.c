/* get_optimizer.c - optimizer and schedule by the flags. */
#include "flags/flags.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedule.h"

struct tune_optimizer *tune_get_optimizer(const struct tune_flags *flags, struct tune_model *m)
{
    return tune_optimizer_new(m, &flags->optimizer);
}

struct tune_schedule tune_get_schedule(const struct tune_flags *flags)
{
    return flags->schedule;
}
