/* get_checkpoint.c - checkpoints in the run's folder, from the flags. */
#include <string.h>

#include "checkpoints/checkpoint.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "loggers/logger.h"

struct tune_checkpoint *tune_get_checkpoint(const struct tune_flags *flags, struct tune_logger *log)
{
    char folder[TUNE_PATH_MAX];
    if (tune_model_find(flags->model, folder) < 0)
        return NULL;
    bool as_read = strcmp(flags->save_dtype, "as-read") == 0;
    return tune_checkpoint_new(&(struct tune_checkpoint_options){
        .run_folder = tune_logger_folder(log),
        .source = folder,
        .save_dtype = as_read ? TUNE_DTYPES : (enum tune_dtype)tune_dtype_from(flags->save_dtype),
        .keep_last = flags->keep_last,
        .save_every = flags->save_every,
        .eval_every = flags->eval_every,
        .resume = flags->resume_checkpoint,
        .adapter = flags->adapter,
        .overwrite = flags->overwrite,
        .unsaved = !flags->save,
        .late = !tune_flags_saves(flags),
        .log = log,
        .failure = flags->failure,
    });
}
