/* family.h - the settings that are specific to a family of models. Private to components/models.
 *
 * A new family is a file in this folder and a line in config.c. The file reads the keys of
 * config.json that differ in this family, and makes its layers (models/layer.h). config.c reads
 * sizes, rotary embedding and all shared keys. */
#ifndef TUNE_MODELS_FAMILY_H
#define TUNE_MODELS_FAMILY_H

#include "models/layer.h"

/* A config.json that is being read. */
struct tune_config_reader {
    const struct cJSON *json;
    const char *name; /* the file's name, for messages */
};

/* tune_config_number - read a number of object within [low, high]. If absent, the result is
 * `missing`; a missing of NaN makes absence an error.
 *
 * tune_config_whole, _flag, _scalar - read an integer, a boolean or a number at the top level. All:
 * 0, or -1 with an error that names file and key. */
int tune_config_number(const struct tune_config_reader *r, const struct cJSON *object,
                       const char *key, double low, double high, double missing, double *value);
int tune_config_whole(const struct tune_config_reader *r, const char *key, int low, int high,
                      double missing, int *value);
int tune_config_flag(const struct tune_config_reader *r, const char *key, bool missing,
                     bool *value);
int tune_config_scalar(const struct tune_config_reader *r, const char *key, double missing,
                       float *value);

/* tune_config_get - the value of a key; NULL: absent or null. If it occurs twice, the last counts.
 * tune_config_text - read a string of object. *value NULL: absent or null. */
const struct cJSON *tune_config_get(const struct cJSON *object, const char *key);
int tune_config_text(const struct tune_config_reader *r, const struct cJSON *object,
                     const char *key, const char **value);

/* tune_config_window_read - read "sliding_window". It applies to layers from `from` on, or, if
 * by_layer, to the layers that "layer_types" marks. */
int tune_config_window_read(struct tune_model_config *c, const struct tune_config_reader *r,
                            int from, bool by_layer);

struct tune_family {
    const char *type, *class; /* value of "model_type"; the supported value of "architectures" */
    /* Defaults of transformers if config.json has no such key. kv_heads 0: heads. head_dim 0:
     * hidden / heads. */
    int kv_heads, head_dim, max_positions;
    /* Reads this family's own keys: biases, head norms, multipliers, windows. The rest of *c is
     * set. */
    int (*read)(struct tune_model_config *c, const struct tune_config_reader *r);
    /* Appends the modules of layer i (0..layers-1) to an empty *l, and sets its other fields. */
    void (*layer)(struct tune_layer *l, const struct tune_model_config *c, int i);
    /* More defaults of transformers. theta 0: 10000; norm_eps 0: 1e-6. */
    double theta, norm_eps;
    bool tied;
    /* heads may be rotated in part, and the rope types "su" and "yarn" mean longrope */
    bool partial_rotary;
    int original_positions; /* of "original_max_position_embeddings" at the top level; 0: none */
    /* Reads the rotary embeddings. NULL: tune_rotary_read_one. */
    int (*rotary)(struct tune_model_config *c, const struct tune_config_reader *r);
};

/* tune_rotary_read - read a rotary embedding from the object rope; NULL: all defaults. theta: its
 * default.
 * tune_rotary_read_one - read the only one of a model, from keys of transformers 4 or 5. */
int tune_rotary_read(struct tune_model_config *c, const struct tune_config_reader *r,
                     const struct cJSON *rope, double theta, struct tune_rotary *to);
int tune_rotary_read_one(struct tune_model_config *c, const struct tune_config_reader *r,
                         const struct tune_family *family);

/* tune_family_of - the family of a config; llama if it names none.
 * tune_llama_layer - a layer of llama. */
const struct tune_family *tune_family_of(const struct tune_model_config *c);
void tune_llama_layer(struct tune_layer *l, const struct tune_model_config *c, int i);

/* tune_qwen_window - read the sliding window of the qwen families. */
int tune_qwen_window(struct tune_model_config *c, const struct tune_config_reader *r);

extern const struct tune_family tune_family_llama, tune_family_qwen2, tune_family_qwen3,
    tune_family_mistral, tune_family_granite, tune_family_smollm3, tune_family_phi3,
    tune_family_olmo2, tune_family_gemma3;

#endif
