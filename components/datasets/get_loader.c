/* get_loader.c - the loader that the flags describe. */
#include <string.h>

#include "datasets/loader.h"
#include "flags/flags.h"

int tune_get_sequences(const struct tune_flags *flags)
{
    return flags->preference.kind == TUNE_PREFERENCE_KTO ? 1 : flags->data.sequences;
}

struct tune_loader_options tune_get_loader_options(const struct tune_flags *flags)
{
    struct tune_loader_options options = flags->loader;
    options.seed = (uint64_t)flags->seed;
    options.max_length = flags->data.max_length;
    /* A GPU has graphs for each length, so there are few lengths. */
    if (options.pad_to_multiple_of == 0)
        options.pad_to_multiple_of = flags->device && strncmp(flags->device, "cuda", 4) == 0 ? 64 : 1;
    options.sequences = tune_get_sequences(flags);
    options.comm = flags->comm;
    options.stop_signal = flags->stop_signal;
    options.starting = flags->starting;
    options.prefetch = true;
    return options;
}

struct tune_loader *tune_get_loader(const struct tune_flags *flags, struct tune_dataset *data)
{
    struct tune_loader_options options = tune_get_loader_options(flags);
    return tune_loader_new(data, &options);
}
