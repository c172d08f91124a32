/* get_checkpoint.c - checkpoints by the flags, in the run's folder. */
#include "checkpoints/checkpoint.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "loggers/logger.h"

struct tune_checkpoint *tune_get_checkpoint(const struct tune_flags *flags, struct tune_logger *log)
{
    char folder[TUNE_PATH_MAX];
    struct tune_checkpoint_options options = flags->checkpoint;
    if (tune_model_find(flags->model, folder) < 0)
        return NULL;
    options.run_folder = tune_logger_folder(log);
    options.source = folder;
    options.eval_every = flags->eval.every;
    options.resume = flags->resume_checkpoint;
    options.adapter = flags->adapter;
    options.add_tokens = flags->add_tokens;
    options.overwrite = flags->log.overwrite;
    options.unsaved = !flags->save;
    if (!flags->log.stop_on_divergence)
        options.diverged = NULL;
    options.late = !tune_flags_saves(flags);
    options.log = log;
    options.failure = flags->failure;
    return tune_checkpoint_new(&options);
}
