/* config.h - the fields of a model's config.json, checked.
 *
 * Families: llama (with and without biases), qwen2, qwen3, mistral, granite. It reads the keys of
 * transformers 4 (rope_theta, rope_scaling, torch_dtype) and 5 (rope_parameters, dtype). A key that
 * would change the numbers and is not supported is an error that names it. */
#ifndef TUNE_MODEL_CONFIG_H
#define TUNE_MODEL_CONFIG_H

#include <stdbool.h>

#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

enum { TUNE_MAX_LAYERS = 1024 };

enum tune_rope { TUNE_ROPE_DEFAULT, TUNE_ROPE_LINEAR, TUNE_ROPE_LLAMA3 };

struct tune_model_config {
    char family[16];                  /* model_type: "llama", "qwen2", ... */
    int hidden, ffn, layers, heads, kv_heads, head_dim, vocabulary;
    int max_positions;                /* context length the model was made for */
    float norm_eps;
    bool tied;                        /* the output projection shares the embedding's weights */
    bool qkv_bias, out_bias, mlp_bias;
    bool qk_norm;                     /* RMSNorm on each head of q and k (qwen3) */
    int window; /* sliding window of the layers marked in `sliding`; 0: none */
    unsigned char sliding[TUNE_MAX_LAYERS];
    enum tune_rope rope;
    double rope_theta, rope_factor, rope_low, rope_high;
    int rope_original;                /* context length before scaling (llama3) */
    /* granite; in other families attention_scale is 1/sqrt(head_dim) */
    float embedding_multiplier, attention_scale, residual_multiplier, logits_scaling;
    float initializer_range;
    enum tune_dtype dtype; /* of the weight files, according to the config; F32 if missing */
};

/* tune_model_config_read - read <folder>/config.json. 0, or -1 with an error that names file and
 * key. Errors: a missing key, a number out of range, head counts that do not divide, an unsupported
 * setting.
 *
 * tune_model_config_parse - the same for parsed JSON. name is the file name for messages. */
int tune_model_config_read(struct tune_model_config *c, const char *folder);
int tune_model_config_parse(struct tune_model_config *c, const struct cJSON *json,
                            const char *name);

/* tune_model_config_window - sliding window of a layer, in positions; 0: full causal attention. */
int tune_model_config_window(const struct tune_model_config *c, int layer);

/* tune_model_config_flops - model FLOPs to train on one token in rows of T tokens. It counts 6 for
 * each matmul weight (with the output projection) and 6 L T H D for causal attention. Recomputation
 * is not counted. */
double tune_model_config_flops(const struct tune_model_config *c, double T);

/* tune_rope_table - fill table [T, head_dim] F32 for positions 0..T-1: D/2 cosines, then D/2 sines.
 * The angle is position * theta^(-2i/D) in float32, as transformers computes it, then scaled as
 * config says. */
void tune_rope_table(const struct tune_model_config *c, int T, float *table);

#ifdef __cplusplus
}
#endif
#endif
