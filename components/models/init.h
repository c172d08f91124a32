/* init.h - write a model folder of exact shape with random weights, a piece at a time. */
#ifndef TUNE_INIT_H
#define TUNE_INIT_H

#include "models/config.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* tune_model_init - write config.json, weights in dtype, and tune_weights.json, which says that
 * they are random. As in transformers, matrices and embeddings are normal with the config's
 * initializer_range, norms are 1, biases 0. Weights are a function of (seed, place), the same on
 * every machine. name: what the config is like, for tune_weights.json. progress: called after each
 * tensor with elements done and in all; NULL is fine. */
int tune_model_init(const char *folder, const struct cJSON *config, const char *name,
                    uint64_t seed, enum tune_dtype dtype,
                    void (*progress)(void *context, int64_t done, int64_t total), void *context);

#ifdef __cplusplus
}
#endif
#endif
