/* get_adapter.c - the model that the flags name, frozen, with adapters: to train, or to generate. */
#include <string.h>

#include "adapters/adapter.h"
#include "adapters/adapter_file.h"
#include "core/try.h"
#include "datasets/loader.h"
#include "files/file.h"
#include "flags/flags.h"
#include "flags/find.h"
#include "models/weights.h"
#include "tokenizers/tokenizer.h"

/* Refuse --lora-* options that --adapter already determines. */
static int check_adapter(const struct tune_flags *flags)
{
    static const char *const own[] = {"lora-r", "lora-alpha", "lora-rslora", "lora-dora", "lora-targets", "lora-rank-pattern",
                                      "lora-alpha-pattern", "lora-layers", "modules-to-save"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (tune_flags_given(flags, own[i]))
            return tune_error_usage("--%s beside --adapter %s: that adapter's adapter_config.json "
                                    "says it; leave one of them out", own[i], flags->adapter);
    return 0;
}

/* Check that the adapter fits this base, before anything large is read. */
static int check_base(const struct tune_flags *flags)
{
    char folder[TUNE_PATH_MAX];
    struct tune_model_config config;
    struct tune_parameters table;
    TRY(tune_get_model_config(flags, folder, &config));
    if (!tune_file_is_folder(flags->adapter))
        return tune_error_usage("--adapter %s: no such folder; give a folder with adapter_config.json", flags->adapter);
    TRY(tune_parameters_new(&table, &config));
    struct tune_adapter_file *f = tune_adapter_file_open(flags->adapter);
    if (f)
        tune_adapter_file_tie(f, config.tied);
    int status = f ? tune_adapter_file_check(f, &table, NULL) : -1;
    if (f && status < 0)
        tune_error_usage("--adapter: %s%s", tune_error_message(),
                         tune_adapter_file_vocabulary(f) > config.vocabulary
                             ? "; tokens were added to its tokenizer: give them with --add-tokens, in the same order" : "");
    tune_adapter_file_close(f);
    tune_parameters_free(&table);
    return status;
}

/* Tokens that are added need trained rows. Where there are new rows, PEFT has others in the base. */
static int check_tokens(const struct tune_flags *flags, const struct tune_lora_options *o)
{
    char folder[TUNE_PATH_MAX];
    struct tune_model_config grown, read;
    const char *first = tune_lora_saved(o, 0), *second = first ? tune_lora_saved(o, 1) : NULL;
    if (!flags->add_tokens || flags->lora.r == 0 || second)
        return 0;
    TRY(tune_get_model_config(flags, folder, &grown));
    TRY(tune_model_config_read(&read, folder));
    if (grown.vocabulary > read.vocabulary)
        return tune_error_usage("--add-tokens: the embedding and the output projection get %d new rows, which an adapter does not "
                                "train; add --modules-to-save embed_tokens,lm_head", grown.vocabulary - read.vocabulary);
    if (!first || strcmp(first, "model.embed_tokens"))
        return tune_error_usage("--add-tokens: an adapter does not train the embedding of the new tokens; add --modules-to-save "
                                "embed_tokens, or embed_tokens,lm_head for answers that have them");
    return 0;
}

static int read_options(const struct tune_flags *flags, struct tune_adapter_config *config)
{
    *config = (struct tune_adapter_config){.lora = flags->lora};
    if (!flags->adapter)
        return 0;
    TRY(check_adapter(flags));
    /* a resumed run uses its checkpoint's adapter */
    TRY(flags->resume_checkpoint ? 0 : check_base(flags));
    TRY(tune_adapter_config_read(config, flags->resume_checkpoint ? flags->resume_checkpoint : flags->adapter));
    if (tune_flags_given(flags, "lora-dropout"))
        config->lora.dropout = flags->lora.dropout;
    return 0;
}

int tune_get_lora_options(const struct tune_flags *flags, struct tune_adapter_config *config)
{
    TRY(read_options(flags, config));
    if (check_tokens(flags, &config->lora) == 0)
        return 0;
    tune_adapter_config_free(config);
    return -1;
}

struct tune_model *tune_get_lora(const struct tune_flags *flags, struct tune_device *dev, const struct tune_tokenizer *tok)
{
    char folder[TUNE_PATH_MAX];
    struct tune_adapter_config adapter;
    if (tune_get_model_folder(flags, tok, folder) < 0 || tune_get_lora_options(flags, &adapter) < 0)
        return NULL;
    int rows = flags->add_tokens ? tune_tokenizer_size(tok) : 0;
    struct tune_model *m = tune_model_load_shared(folder, dev, flags->dtype, flags->base_dtype, rows, flags->comm, flags->shard);
    int status = m ? tune_lora_add(m, &adapter.lora, (uint64_t)flags->seed) : -1;
    tune_adapter_config_free(&adapter);
    struct tune_loader_options loader = tune_get_loader_options(flags);
    if (status == 0 && tune_model_reserve(m, tune_loader_sequences(&loader), flags->data.max_length, tune_get_model_use(flags)) == 0) {
        tune_model_noise(m, flags->neftune_alpha, (uint64_t)flags->seed);
        return m;
    }
    tune_model_free(m);
    return NULL;
}

/* The format in which the adapter's training kept the base; TUNE_UNKNOWN_DTYPE: its file does not say. */
static int trained_on(const char *folder, enum tune_dtype *storage)
{
    static const struct {
        const char *name;
        enum tune_dtype dtype;
    } known[] = {{"float32", TUNE_F32}, {"bfloat16", TUNE_BF16}, {"nf4", TUNE_NF4}};
    struct tune_adapter_file *f = tune_adapter_file_open(folder);
    const char *said = f ? tune_adapter_file_base_dtype(f) : NULL;
    *storage = TUNE_UNKNOWN_DTYPE;
    for (size_t i = 0; i < sizeof known / sizeof *known && said; i++)
        if (!strcmp(said, known[i].name))
            *storage = known[i].dtype;
    tune_adapter_file_close(f);
    return f ? 0 : -1;
}

int tune_get_frozen_storage(const struct tune_flags *flags, const char *folder, enum tune_dtype *storage)
{
    enum tune_dtype kept;
    *storage = flags->base_dtype;
    if (*storage == TUNE_UNKNOWN_DTYPE && flags->adapter)
        TRY(trained_on(flags->adapter, storage));
    /* float32 in training may have been a bfloat16 file, whose numbers are the same */
    if (*storage != TUNE_UNKNOWN_DTYPE && !(*storage == TUNE_F32 && flags->base_dtype == TUNE_UNKNOWN_DTYPE))
        return 0;
    TRY(tune_weights_kept(folder, &kept));
    *storage = kept;
    return 0;
}

/* Have the embedding and the output projection as copies, where the adapter changes them. *rows: those of its vocabulary. */
static int set_whole(struct tune_adapter_config *c, const char *folder, bool tied, int *rows)
{
    struct tune_adapter_file *f = tune_adapter_file_open(folder);
    TRY(f ? 0 : -1);
    tune_adapter_file_tie(f, tied);
    c->lora.modules_to_save = tune_adapter_file_whole(f);
    *rows = (int)tune_adapter_file_vocabulary(f);
    tune_adapter_file_close(f);
    return 0;
}

struct tune_model *tune_get_frozen(const struct tune_flags *flags, struct tune_device *dev, int rows, int tokens)
{
    char folder[TUNE_PATH_MAX];
    enum tune_dtype storage;
    struct tune_adapter_config adapter = {0};
    struct tune_model_config config;
    if (tune_get_model_config(flags, folder, &config) < 0 || (flags->adapter && check_base(flags) < 0) ||
        tune_get_frozen_storage(flags, folder, &storage) < 0 ||
        (flags->adapter && tune_adapter_config_read(&adapter, flags->adapter) < 0))
        return NULL;
    int rows_of_adapter = 0, status = flags->adapter ? set_whole(&adapter, flags->adapter, config.tied, &rows_of_adapter) : 0;
    struct tune_model *m = status == 0 ? tune_model_load_grown(folder, dev, flags->dtype, storage, rows_of_adapter) : NULL;
    adapter.lora.dropout = 0;
    status = m && flags->adapter ? tune_lora_add(m, &adapter.lora, 0) : m ? 0 : -1;
    if (status == 0 && flags->adapter)
        status = tune_adapter_read(m, flags->adapter);
    tune_adapter_config_free(&adapter);
    if (status == 0 && tune_model_reserve(m, rows, tokens, 0) == 0)
        return m;
    tune_model_free(m);
    return NULL;
}
