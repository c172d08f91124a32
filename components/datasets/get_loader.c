/* get_loader.c - the loader that the flags describe. */
#include "core/error.h"
#include "datasets/loader.h"
#include "flags/flags.h"

struct tune_loader_options tune_get_loader_options(const struct tune_flags *flags)
{
    return (struct tune_loader_options){
        .part = TUNE_TRAIN,
        .train_split = flags->train_split,
        .seed = (uint64_t)flags->seed,
        .shuffle = flags->shuffle,
        .packing = flags->packing,
        .batch_size = flags->batch_size,
        .accumulate = flags->accumulate,
        .max_length = flags->max_length,
        .epochs = flags->epochs,
        .max_steps = flags->max_steps,
        .stop_after_seconds = flags->stop_after_seconds,
        .stable = flags->stable,
        .stop_at_step = flags->stop_at_step,
        .stop_signal = flags->stop_signal,
        .starting = flags->starting,
        .ahead = true,
    };
}

struct tune_loader *tune_get_loader(const struct tune_flags *flags, struct tune_dataset *data)
{
    struct tune_loader_options options = tune_get_loader_options(flags);
    return tune_loader_new(data, &options);
}
