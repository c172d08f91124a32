/* get_model.c - the model that the flags name, ready to train. */
#include <string.h>

#include "core/error.h"
#include "core/file.h"
#include "flags/flags.h"
#include "models/find.h"
#include "models/model.h"

struct tune_model *tune_get_model(const struct tune_flags *flags, struct tune_device *dev)
{
    char folder[TUNE_PATH_MAX];
    if (!flags->model) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "--model is missing: give a model folder, a known name (--list-models) or a Hub id");
        return NULL;
    }
    if (tune_model_find(flags->model, folder) < 0)
        return NULL;
    struct tune_model *m = tune_model_load(folder, dev, strcmp(flags->dtype, "bfloat16") == 0 ? TUNE_BF16 : TUNE_F32);
    bool checkpointing = strcmp(flags->activation_checkpointing, "full") == 0;
    if (m && tune_model_reserve(m, flags->batch_size, flags->max_length,
                                TUNE_FOR_TRAINING | (checkpointing ? TUNE_CHECKPOINTING : 0)) < 0) {
        tune_model_free(m);
        m = NULL;
    }
    return m;
}
