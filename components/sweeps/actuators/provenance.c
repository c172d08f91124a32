/* provenance.c - compute current hashes of models and data. */
#include "sweeps/actuators/provenance.h"

#include <string.h>

#include "core/hash.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "files/folder.h"
#include "flags/find.h"

int tune_weights_hash(const char *model, char text[33])
{
    static const char *const others[] = {"config.json", "tokenizer.json"};
    char folder[TUNE_PATH_MAX];
    struct tune_model_identity identity;
    TRY(tune_model_find(model, folder));
    TRY(tune_model_identity(folder, &identity));
    uint64_t hash = identity.fingerprint;
    for (int i = 0; i < 2; i++)
        if (tune_folder_has(folder, others[i]))
            TRY(tune_folder_fingerprint(folder, others[i], &hash));
    snprintf(text, 33, "%016llx", (unsigned long long)hash);
    return 0;
}

/* Hash a file. The last results are cached by size and time of change. */
static int file_hash(struct tune_hashed *h, const char *path, char text[33])
{
    struct tune_file_stamp stamp = {0};
    uint64_t hash = 0;
    if (tune_dataset_file(path, &stamp, NULL) < 0)
        tune_error_clear();
    for (int i = 0; i < 16; i++)
        if (stamp.size > 0 && !strcmp(h->entries[i].path, path) && !memcmp(&h->entries[i].stamp, &stamp, sizeof stamp)) {
            memcpy(text, h->entries[i].text, 33);
            return 0;
        }
    TRY(tune_dataset_file(path, &stamp, &hash));
    snprintf(text, 33, "%016llx", (unsigned long long)hash);
    snprintf(h->entries[h->next].path, sizeof h->entries[0].path, "%s", path);
    memcpy(h->entries[h->next].text, text, 33);
    h->entries[h->next].stamp = stamp;
    h->next = (h->next + 1) % 16;
    return 0;
}

int tune_data_hash(struct tune_hashed *h, const char *paths, char text[33])
{
    char path[TUNE_PATH_MAX], one[33];
    int more = tune_path_listed(paths, 0, path);
    char found[TUNE_PATH_MAX];
    TRY(more);
    TRY(tune_dataset_find(path, found));
    TRY(file_hash(h, found, text));
    for (int k = 1; (more = tune_path_listed(paths, k, path)) == 1; k++) {
        TRY(tune_dataset_find(path, found));
        TRY(file_hash(h, found, one));
        snprintf(text, 33, "%016llx", (unsigned long long)tune_hash64(one, strlen(one), tune_hash64(text, strlen(text), 0)));
    }
    return more;
}
