/* known.h - the models this distribution knows by name: one file each in defaults/models.
 *
 * A file is {"name", "hub_id", "parameters", "config": {config.json as on the Hub}}. It stands
 * with the flags because a known model's own defaults are part of parsing them; finding the
 * model's files is flags/find.h's. */
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
    int64_t parameters; /* 0: the file does not say */
    int context;        /* positions; 0: its config does not say */
};

/* tune_known_models - all of them into *models, smallest first; the caller frees it. Their count, 0 where this
 * distribution's defaults are not installed, or -1: a file cannot be read, is no JSON or lacks name or hub_id. */
int tune_known_models(struct tune_known_model **models);

/* tune_known_model - the one that `model` means, as --model takes it: its name, its Hub id, or a folder whose last part
 * is the Hub id's last part, also below models--ORG--NAME; letters' case does not count. 1 and *found, 0: none, or -1. */
int tune_known_model(const char *model, struct tune_known_model *found);

/* tune_hub_name - the last part of a Hub id: "SmolLM2-135M". */
const char *tune_hub_name(const char *hub_id);

#ifdef __cplusplus
}
#endif
#endif
