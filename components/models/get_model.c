/* get_model.c - the model that the flags name, ready to train. */
#include <string.h>

#include "core/file.h"
#include "core/try.h"
#include "flags/flags.h"
#include "flags/find.h"
#include "models/lora.h"
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

/* The folder, when its config and tokenizer fit what the flags ask for: looked at before gigabytes of weights are read. */
static int find(const struct tune_flags *flags, const struct tune_tokenizer *tok, char *folder)
{
    struct tune_model_config config;
    TRY(tune_get_model_config(flags, folder, &config));
    if (tune_tokenizer_size(tok) > config.vocabulary) {
        tune_error_set("%s: the tokenizer has ids up to %d, config.json a \"vocab_size\" of %d; they do not belong together",
                       folder, (int)tune_tokenizer_size(tok) - 1, config.vocabulary);
        return -1;
    }
    return 0;
}

/* m with its buffers, or NULL. */
static struct tune_model *ready(const struct tune_flags *flags, struct tune_model *m, int status)
{
    if (m && status == 0 && tune_model_reserve(m, flags->batch_size, flags->max_length, tune_get_model_use(flags)) == 0)
        return m;
    tune_model_free(m);
    return NULL;
}

struct tune_model *tune_get_model(const struct tune_flags *flags, struct tune_device *dev, const struct tune_tokenizer *tok)
{
    char folder[TUNE_PATH_MAX];
    if (find(flags, tok, folder) < 0)
        return NULL;
    return ready(flags, tune_model_load(folder, dev, tune_get_model_dtype(flags)), 0);
}

struct tune_lora_options tune_get_lora_options(const struct tune_flags *flags)
{
    return (struct tune_lora_options){
        .r = flags->lora_r,
        .alpha = flags->lora_alpha,
        .dropout = flags->lora_dropout,
        .rslora = flags->lora_rslora,
        .dora = flags->lora_dora,
        .targets = flags->lora_targets,
        .rank_pattern = flags->lora_rank_pattern,
        .alpha_pattern = flags->lora_alpha_pattern,
        .layers = flags->lora_layers,
    };
}

enum tune_dtype tune_get_base_dtype(const struct tune_flags *flags)
{
    return (enum tune_dtype)tune_dtype_from(flags->base_dtype);
}

struct tune_model *tune_get_lora(const struct tune_flags *flags, struct tune_device *dev, const struct tune_tokenizer *tok)
{
    char folder[TUNE_PATH_MAX];
    struct tune_lora_options options = tune_get_lora_options(flags);
    if (find(flags, tok, folder) < 0)
        return NULL;
    struct tune_model *m = tune_model_load_frozen(folder, dev, tune_get_model_dtype(flags), tune_get_base_dtype(flags));
    return ready(flags, m, m ? tune_lora_add(m, &options, (uint64_t)flags->seed) : -1);
}
