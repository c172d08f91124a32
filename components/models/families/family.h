/* family.h - what one family of models has of its own: a file each in this folder. Inside
 * components/models only.
 *
 * A new family is a file here and a line in config.c. It says what config.json means where the
 * family differs; sizes, rotary embedding and what all families share are read in config.c, and the
 * names of weights stand in models/parameters.c. */
#ifndef TUNE_MODELS_FAMILY_H
#define TUNE_MODELS_FAMILY_H

#include "models/config.h"

/* A config.json that is being read. */
struct tune_config_reader {
    const struct cJSON *json;
    const char *name; /* of the file, for messages */
};

/* tune_config_number - a number of object within [low, high]; where it is absent: missing, or an
 * error if missing is NaN.
 * tune_config_whole, _flag, _scalar - of the whole file: a whole number, true or false, any number.
 * -1 names file and key. */
int tune_config_number(const struct tune_config_reader *r, const struct cJSON *object,
                       const char *key, double low, double high,
                       double missing, double *value);
int tune_config_whole(const struct tune_config_reader *r, const char *key, int low, int high,
                      double missing, int *value);
int tune_config_flag(const struct tune_config_reader *r, const char *key, bool missing,
                     bool *value);
int tune_config_scalar(const struct tune_config_reader *r, const char *key, double missing,
                       float *value);

/* tune_config_window_read - "sliding_window", of the layers from `from` on, or by_layer: of those
 * that "layer_types" names. */
int tune_config_window_read(struct tune_model_config *c, const struct tune_config_reader *r,
                            int from, bool by_layer);

struct tune_family {
    const char *type, *class; /* "model_type"; the one of "architectures" that is supported */
    /* where config.json does not say; 0: as many as heads, hidden / heads */
    int kv_heads, head_dim;
    /* What is the family's own: biases, norms of heads, multipliers, windows. The rest of *c is
     * filled. */
    int (*read)(struct tune_model_config *c, const struct tune_config_reader *r);
};

/* tune_qwen_window - the window of the qwen families. */
int tune_qwen_window(struct tune_model_config *c, const struct tune_config_reader *r);

extern const struct tune_family tune_family_llama, tune_family_qwen2, tune_family_qwen3, tune_family_mistral, tune_family_granite;

#endif
