/* parameters.h - one table of a model's parameters: it drives allocation, loading, saving, freezing, decay and counts.
 *
 * Ordered by unit (0 the embedding, 1..L the layers, L+1 the final norm and an untied
 * projection). Offsets are bytes in one flat buffer; each matrix begins on 64 bytes, and
 * q, k, v (weights and biases), gate and up lie side by side so that each group is one
 * matrix product. Names and shapes are Hugging Face's.
 *
 * Adapters' rows (models/lora.h) stand behind all rows of the base, by unit again, and lie in
 * a buffer of their own; their names are those of an adapter's file without its prefix. */
#ifndef TUNE_PARAMETERS_H
#define TUNE_PARAMETERS_H

#include "models/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What a parameter is for. */
enum tune_role {
    TUNE_EMBEDDING, TUNE_INPUT_NORM, TUNE_QUERY, TUNE_KEY, TUNE_VALUE, TUNE_QUERY_NORM, TUNE_KEY_NORM, TUNE_ATTENTION_OUT,
    TUNE_MLP_NORM, TUNE_GATE, TUNE_UP, TUNE_DOWN, TUNE_FINAL_NORM, TUNE_OUTPUT, TUNE_LORA_A, TUNE_LORA_B, TUNE_LORA_MAGNITUDE,
    TUNE_ROLES /* how many there are */
};

struct tune_parameter {
    char name[96];             /* "model.layers.0.self_attn.q_proj.weight", "...q_proj.lora_A.weight" */
    int ndim;                  /* 1 or 2 */
    int64_t shape[2];          /* [out, in], or [n] */
    int64_t count;             /* elements */
    enum tune_role role;
    bool bias;                 /* of the product of that role */
    int unit;                  /* 0, 1..layers, layers+1 */
    int64_t offset;            /* in the weights, or where adapter in the adapters' buffer; bytes */
    int64_t gradient;          /* in the gradients and moments, elements; -1: frozen. Set by tune_parameters_place */
    bool trainable;            /* true until somebody freezes it, before the gradients are made */
    bool glued;                /* one matrix product with the row before it (k, v, up): frozen together or not at all */
    double lr_scale;           /* times the optimizer's learning rate; 1 */
    double weight_decay;       /* below 0 (-1 at first): by the optimizer's rule. Set both before the optimizer is made */
    bool adapter;              /* no part of the base model */
    enum tune_dtype storage;   /* on the device: F32, or BF16 or NF4 where frozen */
    enum tune_dtype read_dtype; /* as the file had it; F32 for a new model */
};

struct tune_parameters {
    struct tune_parameter *at;
    int count;
    int base;                  /* rows of the base model, the first ones; the others are adapters' */
    int64_t weights, adapters; /* bytes of the two buffers, padding included */
    int64_t gradients;         /* elements of the gradient buffer, padding included; by tune_parameters_place */
};

/* tune_parameters_new - the table of a model. 0, or -1: no memory. tune_parameters_free - its rows. */
int tune_parameters_new(struct tune_parameters *p, const struct tune_model_config *c);
void tune_parameters_free(struct tune_parameters *p);

/* tune_parameters_freeze - nothing is trainable, and matrices are kept in storage (F32, BF16; NF4: the layers' linear ones, and
 * the embedding and the output projection in BF16). Before there are weights.
 * tune_parameters_append - one more row, of an adapter: trainable, F32; columns 0: a vector. Pointers to rows do not outlive it.
 * NULL with an error: no memory, a name that is too long. */
int tune_parameters_freeze(struct tune_parameters *p, enum tune_dtype storage);
struct tune_parameter *tune_parameters_append(struct tune_parameters *p, const char *name, enum tune_role role, int unit,
                                              bool glued, int64_t rows, int64_t columns);

/* tune_parameters_find - the row of that name, NULL if there is none. */
struct tune_parameter *tune_parameters_find(const struct tune_parameters *p, const char *name);

/* tune_role_is_norm - of an RMSNorm: such weights start at 1.
 * tune_role_is_linear - of a layer's matrix products. */
bool tune_role_is_norm(enum tune_role role);
bool tune_role_is_linear(enum tune_role role);

/* tune_parameter_is_linear - whether a row is the matrix of one of the layers' linear modules: NF4 keeps those, and adapters go
 * on those. */
bool tune_parameter_is_linear(const struct tune_parameter *p);

/* tune_parameters_place - give the trainable ones places in the gradient buffer; call again after freezing. */
void tune_parameters_place(struct tune_parameters *p);

/* tune_parameters_total, _trainable - elements without padding. */
int64_t tune_parameters_total(const struct tune_parameters *p);
int64_t tune_parameters_trainable(const struct tune_parameters *p);

#ifdef __cplusplus
}
#endif
#endif
