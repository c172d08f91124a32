/* config.h - a model's config.json, checked, as a struct.
 *
 * Families: those in models/families/. Keys of transformers 4 (rope_theta, rope_scaling,
 * torch_dtype) and 5 (rope_parameters, dtype) are read. A key that would change the numbers and is
 * not supported is an error that names it. */
#ifndef TUNE_MODEL_CONFIG_H
#define TUNE_MODEL_CONFIG_H

#include <stdbool.h>

#include "core/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

enum { TUNE_MAX_LAYERS = 1024 };

enum tune_rope {
    TUNE_ROPE_DEFAULT, TUNE_ROPE_LINEAR, TUNE_ROPE_LLAMA3, TUNE_ROPE_YARN, TUNE_ROPE_LONG
};
enum { TUNE_ROPE_PAIRS = 256 }; /* most divisors of a rotary embedding */


/* A rotary embedding: which angles its table has. */
struct tune_rotary {
    enum tune_rope kind;
    int dims;                         /* numbers of a head that are rotated, from the first on */
    double theta, factor, low, high;
    double scale;                     /* sines and cosines are multiplied by it (yarn, long) */
    int original;                     /* context before scaling (llama3, yarn, long) */
    float divisor[TUNE_ROPE_PAIRS];   /* long: frequencies are divided by these */
};

struct tune_model_config {
    char family[16];                  /* model_type: "llama", "qwen2", ... */
    int hidden, ffn, layers, heads, kv_heads, head_dim, vocabulary;
    int max_positions;                /* context of the model, in positions */
    float norm_eps, norm_plus;        /* norm_plus: added to the weights of norms */
    bool tied;                        /* the output projection shares the embedding's weights */
    bool qkv_bias, out_bias, mlp_bias;
    bool qk_norm;                     /* RMSNorm on each head of q and k (qwen3) */
    int window;                       /* window of the layers marked in sliding; 0: none */
    unsigned char sliding[TUNE_MAX_LAYERS];
    unsigned char unrotated[TUNE_MAX_LAYERS]; /* layers without rotary embedding */
    struct tune_rotary rotary[2];     /* dims of the second 0: there is one alone */
    /* rotary[1] is for batches and texts of more positions than this; 0: for some of the layers */
    int long_from;
    /* granite; elsewhere attention_scale is 1/sqrt(head_dim) and the others are 1 */
    float embedding_multiplier, attention_scale, residual_multiplier, logits_scaling;
    bool scaled_embedding;            /* NEFTune's noise comes behind the embedding_multiplier */
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

/* tune_model_config_flops - FLOPs of training on one token in rows of T. It is 6 per matrix weight
 * (output projection included) + 6 L T H D for causal attention. Recomputation does not count. */
double tune_model_config_flops(const struct tune_model_config *c, double T);

/* tune_rope_table - cosines and sines of positions 0..T-1 into table: for each rotary embedding a
 * matrix [T,R] F32, R = dims, of R/2 cosines, then R/2 sines. Angles are position * theta^(-2i/R),
 * in float32 as in transformers, scaled by its rule.
 * tune_rope_count - the numbers of these matrices. */
void tune_rope_table(const struct tune_model_config *c, int T, float *table);
int64_t tune_rope_count(const struct tune_model_config *c, int T);

#ifdef __cplusplus
}
#endif
#endif
