/* get_model.c - the model that the flags name, ready to train. */
#include <string.h>

#include "core/file.h"
#include "core/try.h"
#include "flags/flags.h"
#include "flags/find.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

/* What the flags ask for fits what config.json says: told before gigabytes of weights are read. */
static int check(const struct tune_flags *flags, const char *folder, const struct tune_tokenizer *tok)
{
    struct tune_model_config config;
    TRY(tune_model_config_read(&config, folder));
    if (tune_tokenizer_size(tok) > config.vocabulary) {
        tune_error_set("%s: the tokenizer has ids up to %d, config.json a \"vocab_size\" of %d; they do not belong together",
                       folder, (int)tune_tokenizer_size(tok) - 1, config.vocabulary);
        return -1;
    }
    if (flags->max_length > config.max_positions) {
        tune_error_set_kind(TUNE_ERROR_USAGE,
                            "--max-length %d is above the model's context of %d (max_position_embeddings in %s/config.json)",
                            flags->max_length, config.max_positions, folder);
        return -1;
    }
    return 0;
}

struct tune_model *tune_get_model(const struct tune_flags *flags, struct tune_device *dev, const struct tune_tokenizer *tok)
{
    char folder[TUNE_PATH_MAX];
    if (!flags->model) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "--model is missing: give a model folder, a known name (--list-models) or a Hub id");
        return NULL;
    }
    if (tune_model_find(flags->model, folder) < 0 || check(flags, folder, tok) < 0)
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
