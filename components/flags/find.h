/* find.h - find the folder of a model by name, or a data set, and identify a model's weights.
 *
 * A model is named by a folder, a known name (defaults/models, see flags/known.h) or its Hub id.
 * Nothing is downloaded. If a model is not on this machine, the error gives the commands to get it.
 * Example:
 *
 *     char folder[TUNE_PATH_MAX];
 *     if (tune_model_find("smollm2-135m", folder) < 0) ...      models/SmolLM2-135M */
#ifndef TUNE_FLAGS_FIND_H
#define TUNE_FLAGS_FIND_H

#include <stdbool.h>
#include <stdint.h>

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tune_model_find - the folder that a name means. A folder with a config.json is taken as it is. A
 * known name stands for its Hub id. A Hub id ORG/NAME means models/NAME below the current folder,
 * else its snapshot in the Hub client's cache ($HF_HUB_CACHE, $HF_HOME/hub,
 * ~/.cache/huggingface/hub). The snapshot is that of refs/main, or the only one. -1 with an error:
 * absent (with how to get it), or a folder without config.json. -1 with kind USAGE: an unknown
 * name; it names the nearest. */
int tune_model_find(const char *name, char folder[TUNE_PATH_MAX]);

/* tune_model_locate - the same for a Hub id: 1 and folder; 0, without an error text: it is not on
 * this machine. */
int tune_model_locate(const char *hub_id, char folder[TUNE_PATH_MAX]);

/* tune_model_hub_id - the Hub id of a model, into id. name: how it was named; folder: where it was
 * found. true: name is a known name or a Hub id, or folder is a snapshot in the Hub client's cache.
 * tune_dataset_hub_id - OWNER/NAME into id. true: the name of a data set begins with it, and is no
 * path here. */
bool tune_model_hub_id(const char *name, const char *folder, char id[128]);
bool tune_dataset_hub_id(const char *name, char id[128]);

/* tune_dataset_find - the path that the name of a data set means. A file or folder is taken as it
 * is, and so is FOLDER/SPLIT. OWNER/NAME and OWNER/NAME/SPLIT mean data/NAME below the current
 * folder, else the snapshot in the Hub client's cache, with /SPLIT behind it. -1 with kind USAGE:
 * absent; for a Hub id with how to get it. */
int tune_dataset_find(const char *name, char path[TUNE_PATH_MAX]);

/* The weights in a folder. */
struct tune_model_identity {
    bool random;          /* random weights of init_model, as tune_weights.json says */
    int64_t seed;         /* seed of random ones */
    char revision[65];    /* commit of the Hub's repository; "": unknown */
    uint64_t fingerprint; /* hash of the weight files' names and contents (tune_file_fingerprint) */
};

/* tune_model_identity - identify the weights in a folder. -1 with an error: there is no
 * *.safetensors file, or one cannot be read. */
int tune_model_identity(const char *folder, struct tune_model_identity *identity);

/* tune_model_hash_settings - add to *hash the small files of a model's or adapter's folder that
 * outputs depend on besides the weights: config.json, adapter_config.json, tokenizer.json. -1 with
 * an error: one cannot be read. */
int tune_model_hash_settings(const char *folder, uint64_t *hash);

#ifdef __cplusplus
}
#endif
#endif
