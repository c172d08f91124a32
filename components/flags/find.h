/* find.h - from what --model says to a folder of files, and which weights lie in it.
 *
 * A model is named by a folder, by a known name (defaults/models, see flags/known.h) or by its
 * Hub id. Nothing is downloaded here: a model that is not on this machine is an error that
 * says the commands which put it there. Example:
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

/* tune_model_find - the folder `name` means, into folder. A folder with a config.json is taken as it is. A known name
 * stands for its Hub id; a Hub id ORG/NAME for models/NAME below the current directory, else for its snapshot (that of
 * refs/main, or the only one) in the Hub client's cache ($HF_HUB_CACHE, $HF_HOME/hub, ~/.cache/huggingface/hub).
 * -1: absent (says how to get it), a folder without config.json, a name that is none (names the nearest; kind USAGE). */
int tune_model_find(const char *name, char folder[TUNE_PATH_MAX]);

/* tune_model_locate - the same for a Hub id alone: 1 and folder, 0 it is not on this machine (no error text). */
int tune_model_locate(const char *hub_id, char folder[TUNE_PATH_MAX]);

/* Which weights a folder holds. */
struct tune_model_identity {
    bool random;          /* made by init_model, never trained: its tune_weights.json says so */
    int64_t seed;         /* of random ones */
    char revision[65];    /* commit of the Hub's repository; "": unknown, or not from the Hub */
    uint64_t fingerprint; /* of the weight files' names and content, see tune_file_fingerprint */
};

/* tune_model_identity - read it. -1: no weight file (*.safetensors) in the folder, or one cannot be read. */
int tune_model_identity(const char *folder, struct tune_model_identity *identity);

#ifdef __cplusplus
}
#endif
#endif
