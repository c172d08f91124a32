/* parameters.h - the table of a model's parameters. Allocation, loading, saving, freezing, weight
 * decay and counts all use it.
 *
 * Rows are ordered by unit: 0 the embedding, 1..L the layers, L+1 the final norm and an untied
 * output projection. Names and shapes are those of Hugging Face.
 *
 * Offsets are bytes in one flat buffer, and each matrix is aligned to 64 bytes. Some groups are
 * adjacent so that each group is one matrix product: q, k, v (weights and biases), and gate, up.
 *
 * Rows of adapters (models/lora.h) follow all rows of the base, again by unit, and have their own
 * buffer. Their names are those in an adapter's file, without the prefix. */
#ifndef TUNE_PARAMETERS_H
#define TUNE_PARAMETERS_H

#include "models/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The purpose of a parameter. */
enum tune_role {
    TUNE_EMBEDDING, TUNE_INPUT_NORM, TUNE_QUERY, TUNE_KEY, TUNE_VALUE, TUNE_QUERY_NORM,
    TUNE_KEY_NORM, TUNE_ATTENTION_OUT, TUNE_MLP_NORM, TUNE_GATE, TUNE_UP, TUNE_DOWN,
    TUNE_FINAL_NORM, TUNE_OUTPUT, TUNE_LORA_A, TUNE_LORA_B, TUNE_LORA_MAGNITUDE,
    TUNE_ROLES /* the number of roles */
};

struct tune_parameter {
    char name[96]; /* "model.layers.0.self_attn.q_proj.weight", "...q_proj.lora_A.weight" */
    int ndim;                  /* 1 or 2 */
    int64_t shape[2];          /* [out, in], or [n] */
    int64_t count;             /* elements */
    enum tune_role role;
    bool bias;                 /* the bias of that role's product */
    int unit;                  /* 0, 1..layers, layers+1 */
    int64_t offset; /* in the weights, or for an adapter in the adapters' buffer; bytes */
    /* index in gradients and moments, in elements; -1: frozen. See tune_parameters_place */
    int64_t gradient;
    bool trainable;            /* true by default; set it to false before gradients are allocated */
    /* in one matrix product with the row before (k, v, up): freeze all of a group or none */
    bool glued;
    double lr_scale;           /* factor on the learning rate; default 1 */
    /* below 0 (default -1): the optimizer decides. Set before making the optimizer */
    double weight_decay;
    bool adapter;              /* belongs to an adapter, not to the base model */
    enum tune_dtype storage;   /* dtype on the device: F32; BF16 or NF4 if frozen */
    enum tune_dtype read_dtype; /* dtype in the file; F32 for a new model */
};

struct tune_parameters {
    struct tune_parameter *at;
    int count;
    int base;                  /* number of rows of the base model; adapters' rows follow them */
    int64_t weights, adapters; /* bytes of the two buffers, with padding */
    /* elements of the gradient buffer, with padding; set by tune_parameters_place */
    int64_t gradients;
};

/* tune_parameters_new - make the table of a model. 0, or -1 with an error: no memory.
 *
 * tune_parameters_free - free its rows. */
int tune_parameters_new(struct tune_parameters *p, const struct tune_model_config *c);
void tune_parameters_free(struct tune_parameters *p);

/* tune_parameters_freeze - freeze all rows and store matrices in `storage`: F32, BF16 or NF4. With
 * NF4, the layers' linear matrices are NF4; the embedding and the output projection are BF16. Call
 * it before weights are allocated.
 *
 * tune_parameters_append - add a row of an adapter: trainable, F32. columns 0: a vector. Pointers
 * to rows become invalid. NULL with an error: no memory, or the name is too long. */
int tune_parameters_freeze(struct tune_parameters *p, enum tune_dtype storage);
struct tune_parameter *tune_parameters_append(struct tune_parameters *p, const char *name,
                                              enum tune_role role, int unit, bool glued,
                                              int64_t rows, int64_t columns);

/* tune_parameters_find - the row of that name; NULL: none. */
struct tune_parameter *tune_parameters_find(const struct tune_parameters *p, const char *name);

/* tune_role_is_norm - whether the role is a weight of RMSNorm, which starts at 1.
 *
 * tune_role_is_linear - whether the role is a matrix product of a layer. */
bool tune_role_is_norm(enum tune_role role);
bool tune_role_is_linear(enum tune_role role);

/* tune_parameter_is_linear - whether the row is the weight matrix of a layer's linear module. Only
 * these are stored as NF4, and only these take adapters. */
bool tune_parameter_is_linear(const struct tune_parameter *p);

/* tune_parameters_place - assign trainable rows their places in the gradient buffer. Call it again
 * after freezing rows. */
void tune_parameters_place(struct tune_parameters *p);

/* tune_parameters_total - elements of all parameters, without padding.
 *
 * tune_parameters_trainable - elements of the trainable parameters, without padding. */
int64_t tune_parameters_total(const struct tune_parameters *p);
int64_t tune_parameters_trainable(const struct tune_parameters *p);

#ifdef __cplusplus
}
#endif
#endif
