/* adapter_config_parts.h - shared by the files that read adapter_config.json. Private. */
#ifndef TUNE_ADAPTER_CONFIG_PARTS_H
#define TUNE_ADAPTER_CONFIG_PARTS_H

#include "adapters/adapter_config.h"
#include "files/file.h"

struct cJSON;

/* An adapter_config.json that is being read. */
struct tune_adapter_reader {
    const struct cJSON *json;
    const char *folder;
    char path[TUNE_PATH_MAX]; /* the file's, for messages */
};

/* tune_adapter_key - a member that exists and is not null; else NULL.
 * tune_adapter_is_empty - true if a value says nothing: null, false, an empty list or text.
 * tune_adapter_flag - read a member that is true or false; false if it is absent.
 * tune_adapter_refuse - report an error: the key, its value (shortened), the reason. Returns -1. */
const struct cJSON *tune_adapter_key(const struct tune_adapter_reader *r, const char *key);
bool tune_adapter_is_empty(const struct cJSON *v);
int tune_adapter_flag(const struct tune_adapter_reader *r, const char *key, bool *value);
int tune_adapter_refuse(const struct tune_adapter_reader *r, const char *key, const char *why);

/* tune_adapter_modules_read - read which modules have adapters, with which ranks and scales, and
 * which are trained whole. The other members of c->lora are set. */
int tune_adapter_modules_read(const struct tune_adapter_reader *r, struct tune_adapter_config *c);

#endif
