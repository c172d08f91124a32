/* get_model.c - the model that the flags name, ready to train. */
#include "files/file.h"
#include "core/try.h"
#include "flags/flags.h"
#include "flags/find.h"
#include "datasets/loader.h"
#include "models/model.h"
#include "tokenizers/tokenizer.h"

/* A vocabulary that has rows for the tokens that are added. */
static int grow(const struct tune_flags *flags, struct tune_model_config *config)
{
    struct tune_tokenizer *tok = tune_get_tokenizer(flags);
    if (!tok)
        return -1;
    int32_t ids = tune_tokenizer_size(tok);
    config->vocabulary = ids > config->vocabulary ? ids : config->vocabulary;
    tune_tokenizer_free(tok);
    return 0;
}

int tune_get_model_config(const struct tune_flags *flags, char *folder, struct tune_model_config *config)
{
    if (!flags->model)
        return tune_error_usage("--model is missing: give a model folder, a known name "
                                "(--list-models) or a Hub id");
    TRY(tune_model_find(flags->model, folder));
    TRY(tune_model_config_read(config, folder));
    TRY(flags->add_tokens ? grow(flags, config) : 0);
    if (flags->data.max_length > config->max_positions)
        return tune_error_usage("--max-length %d%s is above the model's context of %d (max_position_embeddings in "
                                "%s/config.json); give --max-length %d or less",
                                flags->data.max_length, tune_flags_given(flags, "max-length") ? "" : ", the default,",
                                config->max_positions, folder, config->max_positions);
    return 0;
}

int tune_get_model_use(const struct tune_flags *flags)
{
    return TUNE_FOR_TRAINING | (flags->activation_checkpointing ? TUNE_CHECKPOINTING : 0);
}

int tune_get_model_folder(const struct tune_flags *flags, const struct tune_tokenizer *tok, char *folder)
{
    struct tune_model_config config;
    int32_t ids = tune_tokenizer_size(tok);
    TRY(tune_get_model_config(flags, folder, &config));
    while (ids > config.vocabulary && tune_tokenizer_is_added(tok, ids - 1))
        ids--; /* a row with such a token is an error when it is encoded */
    if (ids > config.vocabulary)
        return tune_error_set("%s: the tokenizer has ids up to %d, config.json a \"vocab_size\" "
                              "of %d; they do not belong together", folder,
                              (int)tune_tokenizer_size(tok) - 1, config.vocabulary);
    return 0;
}

/* Allocate m's buffers. NULL: m is NULL, or there is no memory; m is then freed. */
static struct tune_model *reserved(const struct tune_flags *flags, struct tune_model *m, int use)
{
    struct tune_loader_options loader = tune_get_loader_options(flags);
    if (m && tune_model_reserve(m, tune_loader_sequences(&loader), flags->data.max_length, use) == 0)
        return m;
    tune_model_free(m);
    return NULL;
}

struct tune_model *tune_get_model(const struct tune_flags *flags, struct tune_device *dev, const struct tune_tokenizer *tok)
{
    char folder[TUNE_PATH_MAX];
    if (tune_get_model_folder(flags, tok, folder) < 0)
        return NULL;
    int rows = flags->add_tokens ? tune_tokenizer_size(tok) : 0;
    struct tune_model *m = reserved(flags, tune_model_load_shared(folder, dev, flags->dtype, TUNE_TRAINED, rows, flags->comm, flags->shard),
                                    tune_get_model_use(flags));
    if (m)
        tune_model_noise(m, flags->neftune_alpha, (uint64_t)flags->seed);
    return m;
}

struct tune_model *tune_get_second_model(const struct tune_flags *flags, const char *model, struct tune_device *dev,
                                         const struct tune_tokenizer *tok)
{
    char folder[TUNE_PATH_MAX];
    struct tune_flags other = *flags;
    other.model = model;
    other.add_tokens = NULL; /* they are the first model's; this one has no rows that know them */
    if (!model)
        tune_error_usage("the second model is missing: give a model folder, a known name or a Hub "
                         "id");
    if (!model || tune_get_model_folder(&other, tok, folder) < 0)
        return NULL;
    return reserved(flags, tune_model_load_frozen(folder, dev, flags->dtype, TUNE_F32), 0);
}
