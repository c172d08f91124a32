/* init.h - a model folder of exact shape with random weights, written without ever holding it. */
#ifndef TUNE_INIT_H
#define TUNE_INIT_H

#include "models/config.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* tune_model_init - into folder: config.json (config, with dtype), the weights in dtype and tune_weights.json, which says that
 * they are random. Matrices and embeddings are normal with the config's initializer_range, norms 1, biases 0, as
 * transformers initialises; a function of (seed, place), so the same on every machine. name: what config is like, for
 * tune_weights.json. progress NULL, or called after each tensor with elements done and in all. */
int tune_model_init(const char *folder, const struct cJSON *config, const char *name, uint64_t seed, enum tune_dtype dtype,
                    void (*progress)(void *context, int64_t done, int64_t total), void *context);

#ifdef __cplusplus
}
#endif
#endif
