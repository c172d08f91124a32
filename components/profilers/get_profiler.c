/* get_profiler.c - the profiler of --profile. */
#include "flags/flags.h"
#include "profilers/profiler.h"

struct tune_profiler *tune_get_profiler(const struct tune_flags *flags, struct tune_device *dev, struct tune_model *model,
                                        const struct tune_loader *load)
{
    return tune_profiler_new(dev, model, load, flags->profile);
}
