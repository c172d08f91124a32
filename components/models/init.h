/* init.h - write a model folder with random weights. Only a piece of the weights is in memory at a
 * time. */
#ifndef TUNE_INIT_H
#define TUNE_INIT_H

#include "models/config.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* tune_model_init - write to folder: config.json (config, with dtype), the weights in dtype, and
 * tune_weights.json, which marks the weights as random.
 *
 * Matrices and embeddings are normal with the config's initializer_range, norms are 1 and biases 0,
 * as in transformers. Each value depends only on the seed, the tensor's name and the position in
 * it, so all machines write the same.
 *
 * name: the model that config resembles, for tune_weights.json. progress: called after each tensor
 * with the elements written and their total; may be NULL. 0, or -1 with an error. */
int tune_model_init(const char *folder, const struct cJSON *config, const char *name, uint64_t seed,
    enum tune_dtype dtype, void (*progress)(void *context, int64_t done, int64_t total),
    void *context);

#ifdef __cplusplus
}
#endif
#endif
