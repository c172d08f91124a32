/* generation_keys.h - the keys of generation_config.json beside sampling. Private to this
 * folder. */
#ifndef TUNE_GENERATION_KEYS_H
#define TUNE_GENERATION_KEYS_H

#include "generators/generation_config.h"

struct cJSON;

/* tune_generation_keys_read - read rules, limits and stop texts into *c, and what is not obeyed. -1
 * with an error that names file and key. */
int tune_generation_keys_read(struct tune_generation_config *c, const char *folder,
                              const struct cJSON *json);

#endif
