/* get_optimizer.c - optimizer and schedule by the flags. */
#include "core/error.h"
#include "flags/flags.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedule.h"

/* Refuse options that the schedule does not read. */
static int check_schedule(const struct tune_flags *flags)
{
    if (flags->schedule.kind == TUNE_CONSTANT && flags->schedule.min_lr_ratio > 0)
        return tune_error_usage("--min-lr-ratio is where the learning rate ends, and --schedule constant has no end; leave it out, "
                                "or give --schedule cosine, linear or wsd");
    if (flags->schedule.kind != TUNE_WSD && tune_flags_differs(flags, "decay-ratio")) /* a sweep gives defaults, too */
        return tune_error_usage("--decay-ratio is the last part of --schedule wsd; leave it out, or give that schedule");
    return 0;
}

struct tune_optimizer *tune_get_optimizer(const struct tune_flags *flags, struct tune_model *m)
{
    if (check_schedule(flags) < 0)
        return NULL;
    return tune_optimizer_new(m, &flags->optimizer);
}

struct tune_schedule tune_get_schedule(const struct tune_flags *flags)
{
    return flags->schedule;
}
