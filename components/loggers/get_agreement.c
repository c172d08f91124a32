/* get_agreement.c - what ranks must have in common before they train. They may run on machines with files of their own. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "comm/comm.h"
#include "core/error.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "devices/device.h"
#include "files/folder.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "loggers/state.h"
#include "machine/host.h"

static int agree_on_hash(struct tune_comm *c, const char *what, uint64_t hash)
{
    char text[20];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return tune_comm_agree(c, what, text);
}

/* Add the files beside the weights: settings, tokenizer, chat template. */
static int hash_beside(const char *folder, uint64_t *hash)
{
    static const char *const names[] = {"tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "chat_template.jinja",
                                        "chat_template.json", "tokenizer.model", "vocab.json", "vocab.txt", "merges.txt"};
    TRY(tune_model_hash_settings(folder, hash));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tune_folder_has(folder, names[i]))
            TRY(tune_folder_fingerprint(folder, names[i], hash));
    return 0;
}

static int agree_on_adapter(struct tune_comm *c, const char *folder)
{
    struct tune_model_identity identity;
    TRY(tune_model_identity(folder, &identity));
    TRY(hash_beside(folder, &identity.fingerprint));
    return agree_on_hash(c, "the files of `adapter`", identity.fingerprint);
}

/* Add the rows that a path means. */
static int hash_path(const char *path, uint64_t *hash)
{
    char found[TUNE_PATH_MAX];
    struct tune_file_stamp stamp;
    uint64_t one = 0;
    TRY(tune_dataset_find(path, found));
    TRY(tune_dataset_file(found, &stamp, &one));
    *hash = tune_hash64(&one, sizeof one, *hash);
    return 0;
}

/* Add the files of an option, with commas between several. */
static int hash_option(const char *value, uint64_t *hash)
{
    char path[TUNE_PATH_MAX];
    if (tune_file_exists(value))
        return hash_path(value, hash);
    for (size_t n; *value; value += n + (value[n] == ',')) {
        n = strcspn(value, ",");
        snprintf(path, sizeof path, "%.*s", (int)(n < sizeof path ? n : sizeof path - 1), value);
        TRY(hash_path(path, hash));
    }
    return 0;
}

static int agree_on_files(struct tune_comm *c, const char *what, const char *value)
{
    uint64_t hash = 0;
    TRY(value ? hash_option(value, &hash) : 0);
    return agree_on_hash(c, what, hash);
}

int tune_ranks_agree(const struct tune_flags *flags, const struct tune_device *dev, const char *folder,
                     const struct tune_model_identity *weights, struct tune_dataset *data)
{
    struct tune_comm *c = flags->comm;
    struct tune_host host;
    uint64_t beside = 0;
    char text[64];
    if (!c || tune_comm_size(c) == 1)
        return 0;
    tune_host_read(&host);
    TRY(tune_comm_agree(c, "the build of the program", host.build_id));
    TRY(tune_comm_agree(c, "the device: its processor, threads and kernels", dev->description));
    TRY(agree_on_hash(c, "the weights of `model`", weights->fingerprint));
    TRY(hash_beside(folder, &beside));
    TRY(agree_on_hash(c, "the files of `model` beside its weights, such as config.json and tokenizer.json", beside));
    if (flags->adapter && !flags->resume)
        TRY(agree_on_adapter(c, flags->adapter));
    snprintf(text, sizeof text, "%016" PRIx64 " %" PRId64, tune_dataset_fingerprint(data), tune_dataset_rows(data));
    TRY(tune_comm_agree(c, "the rows of `dataset`", text));
    TRY(agree_on_hash(c, "the templates of `dataset`", tune_dataset_hash(data)));
    TRY(agree_on_files(c, "the files of `eval_dataset`", flags->eval.path));
    return agree_on_files(c, "the files of `general_dataset`", flags->eval.general);
}
