/* known.h - the models that this distribution knows by name, one file each in defaults/models.
 *
 * A file is {"name", "hub_id", "parameters", "config": {config.json as on the Hub}}. This is part
 * of flags, because a known model has defaults for options. */
#ifndef TUNE_FLAGS_KNOWN_H
#define TUNE_FLAGS_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_known_model {
    char name[64];      /* "smollm2-135m" */
    char hub_id[128];   /* "HuggingFaceTB/SmolLM2-135M" */
    int64_t parameters; /* 0: unknown */
    int context;        /* context in positions; 0: unknown */
};

/* tune_known_models - all of them into *models, smallest first; the caller frees it. Returns their
 * number; 0: this distribution's defaults are not installed. -1 with an error: a bad file. */
int tune_known_models(struct tune_known_model **models);

/* tune_known_model - the known model that `model` means. It is a name, a Hub id, or a folder named
 * like the end of a Hub id. Folders below models--ORG--NAME count too. Case does not. 1 and *found;
 * 0: none; -1 with an error. */
int tune_known_model(const char *model, struct tune_known_model *found);

/* tune_hub_name - the last part of a Hub id: "SmolLM2-135M". */
const char *tune_hub_name(const char *hub_id);

#ifdef __cplusplus
}
#endif
#endif
