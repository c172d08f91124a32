/* get_model.c - the model that the flags name, ready to train. */
#include <string.h>

#include "core/file.h"
#include "core/try.h"
#include "flags/flags.h"
#include "flags/find.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

int tune_get_model_config(const struct tune_flags *flags, char *folder, struct tune_model_config *config)
{
    if (!flags->model) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "--model is missing: give a model folder, a known name (--list-models) or a Hub id");
        return -1;
    }
    TRY(tune_model_find(flags->model, folder));
    TRY(tune_model_config_read(config, folder));
    if (flags->max_length > config->max_positions) {
        tune_error_set_kind(TUNE_ERROR_USAGE,
                            "--max-length %d is above the model's context of %d (max_position_embeddings in %s/config.json)",
                            flags->max_length, config->max_positions, folder);
        return -1;
    }
    return 0;
}

enum tune_dtype tune_get_model_dtype(const struct tune_flags *flags)
{
    return (enum tune_dtype)tune_dtype_from(flags->dtype);
}

int tune_get_model_use(const struct tune_flags *flags)
{
    return TUNE_FOR_TRAINING | (strcmp(flags->activation_checkpointing, "full") == 0 ? TUNE_CHECKPOINTING : 0);
}

struct tune_model *tune_get_model(const struct tune_flags *flags, struct tune_device *dev, const struct tune_tokenizer *tok)
{
    char folder[TUNE_PATH_MAX];
    struct tune_model_config config; /* looked at before gigabytes of weights are read */
    if (tune_get_model_config(flags, folder, &config) < 0)
        return NULL;
    if (tune_tokenizer_size(tok) > config.vocabulary) {
        tune_error_set("%s: the tokenizer has ids up to %d, config.json a \"vocab_size\" of %d; they do not belong together",
                       folder, (int)tune_tokenizer_size(tok) - 1, config.vocabulary);
        return NULL;
    }
    struct tune_model *m = tune_model_load(folder, dev, tune_get_model_dtype(flags));
    if (m && tune_model_reserve(m, flags->batch_size, flags->max_length, tune_get_model_use(flags)) < 0) {
        tune_model_free(m);
        m = NULL;
    }
    return m;
}
