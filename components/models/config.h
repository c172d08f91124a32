/* config.h - what a config.json says about a model, checked and in our terms.
 *
 * Families: llama (with and without biases), qwen2, qwen3, mistral, granite. Reads the keys of
 * transformers 4 (rope_theta, rope_scaling, torch_dtype) and 5 (rope_parameters, dtype). What
 * would change the numbers and is not supported is refused by name. */
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
    int max_positions;                /* the context the model was made for */
    float norm_eps;
    bool tied;                        /* the output projection is the embedding */
    bool qkv_bias, out_bias, mlp_bias;
    bool qk_norm;                     /* RMSNorm on each head of q and k (qwen3) */
    int window;                       /* sliding window of the layers marked in sliding; 0: none */
    unsigned char sliding[TUNE_MAX_LAYERS];
    enum tune_rope rope;
    double rope_theta, rope_factor, rope_low, rope_high;
    int rope_original;                /* positions before scaling (llama3) */
    float embedding_multiplier, attention_scale, residual_multiplier, logits_scaling; /* granite; attention_scale is
                                                                                         1/sqrt(head_dim) elsewhere */
    float initializer_range;
    enum tune_dtype dtype;            /* of the weights in the file, as the config says; F32 where it does not */
};

/* tune_model_config_read - <folder>/config.json. 0, or -1 naming file and key: a needed key is missing, a number is out
 * of range, heads do not divide, something is not supported (says what is).
 * tune_model_config_parse - the same from parsed JSON; name goes into messages. */
int tune_model_config_read(struct tune_model_config *c, const char *folder);
int tune_model_config_parse(struct tune_model_config *c, const struct cJSON *json, const char *name);

/* tune_model_config_window - the window of that layer, 0: it sees everything before it. */
int tune_model_config_window(const struct tune_model_config *c, int layer);

/* tune_model_config_flops - model FLOPs of training on one token in rows of T: 6 per matmul weight (the output
 * projection included) + 6 L T H D for causal attention; no recomputation. */
double tune_model_config_flops(const struct tune_model_config *c, double T);

/* tune_rope_table - cosines and sines of positions 0..T-1 into table [T, head_dim]: D/2 cosines, then D/2 sines, F32.
 * Angles are position * theta^(-2i/D) in float32 as transformers computes them, scaled by the config's rule. */
void tune_rope_table(const struct tune_model_config *c, int T, float *table);

#ifdef __cplusplus
}
#endif
#endif
