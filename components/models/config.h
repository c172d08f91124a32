/* config.h - a model's config.json, checked, as a struct.
 *
 * Families: llama (with and without biases), qwen2, qwen3, mistral, granite. Keys of transformers 4
 * (rope_theta, rope_scaling, torch_dtype) and 5 (rope_parameters, dtype) are read. A key that would
 * change the numbers and is not supported is an error that names it. */
#ifndef TUNE_MODEL_CONFIG_H
#define TUNE_MODEL_CONFIG_H

#include <stdbool.h>

#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

enum { TUNE_MAX_LAYERS = 1024 };

enum tune_rope { TUNE_ROPE_DEFAULT, TUNE_ROPE_LINEAR, TUNE_ROPE_LLAMA3, TUNE_ROPE_YARN };

struct tune_model_config {
    char family[16];                  /* model_type: "llama", "qwen2", ... */
    int hidden, ffn, layers, heads, kv_heads, head_dim, vocabulary;
    int max_positions;                /* context of the model, in positions */
    float norm_eps;
    bool tied;                        /* the output projection shares the embedding's weights */
    bool qkv_bias, out_bias, mlp_bias;
    bool qk_norm;                     /* RMSNorm on each head of q and k (qwen3) */
    int window;                       /* window of the layers marked in sliding; 0: none */
    unsigned char sliding[TUNE_MAX_LAYERS];
    enum tune_rope rope;
    double rope_theta, rope_factor, rope_low, rope_high;
    double rope_scale;                /* sines and cosines are multiplied by it (yarn) */
    int rope_original;                /* context before scaling (llama3, yarn) */
    /* granite; elsewhere attention_scale is 1/sqrt(head_dim) and the others are 1 */
    float embedding_multiplier, attention_scale, residual_multiplier, logits_scaling;
    float initializer_range;
    float attention_dropout;          /* of config.json; it is not applied here */
    enum tune_dtype dtype;            /* dtype of the weights by config.json; F32 if it has none */
    char remarks[640];                /* for the user: what was read otherwise than config.json
                                         says, a line each; "": nothing */
};

/* tune_model_config_read - read <folder>/config.json. A tied model whose file holds another output
 * projection is not tied. -1 with an error that names file and key: a key is missing, out of range
 * or not supported, or heads do not divide.
 * tune_model_config_parse - the same from parsed JSON alone; name goes into messages.
 * tune_model_config_remark - add a line to the remarks. */
int tune_model_config_read(struct tune_model_config *c, const char *folder);
int tune_model_config_parse(struct tune_model_config *c, const struct cJSON *json,
                            const char *name);
void tune_model_config_remark(struct tune_model_config *c, const char *text);

/* tune_model_config_window - the attention window of a layer; 0: none. */
int tune_model_config_window(const struct tune_model_config *c, int layer);

/* tune_model_config_flops - FLOPs of training on one token in rows of T. It is 6 per matrix weight
 * (output projection included) + 6 L T H D for causal attention. Recomputation does not count. */
double tune_model_config_flops(const struct tune_model_config *c, double T);

/* tune_rope_table - cosines and sines of positions 0..T-1 into table [T,head_dim] F32: D/2 cosines,
 * then D/2 sines. Angles are position * theta^(-2i/D), in float32 as in transformers, scaled by the
 * config's rule. */
void tune_rope_table(const struct tune_model_config *c, int T, float *table);

#ifdef __cplusplus
}
#endif
#endif
