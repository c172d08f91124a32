/* parameters.h - the table of a model's parameters. Allocation, loading, saving, freezing, decay
 * and counts follow it.
 *
 * Rows are ordered by unit: 0 the embedding, 1..L the layers, L+1 the final norm and an untied
 * output projection. Names and shapes are those of Hugging Face. Offsets are bytes in one flat
 * buffer; each matrix begins on 64 bytes. q, k and v lie side by side, and so do gate and up. So
 * each group is one matrix product.
 *
 * Rows of adapters (models/lora.h) follow all rows of the base, ordered by unit again. They lie in
 * a buffer of their own. Their names are those in an adapter file, without its prefix. Trained
 * copies of the base's matrices are among them: with the roles and names that these have. */
#ifndef TUNE_PARAMETERS_H
#define TUNE_PARAMETERS_H

#include "models/layer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_parameter {
    char name[96];             /* "model.layers.0.self_attn.q_proj.weight", "...lora_A.weight" */
    const char *module;        /* last part of its module's name: "q_proj"; NULL for adapters */
    int ndim;                  /* 1 or 2 */
    int64_t shape[2];          /* [out,in] or [n] */
    int64_t count;             /* number of elements */
    enum tune_role role;
    enum tune_module_kind kind;
    enum tune_layer_linear linear;   /* LINEAR: the linear layer that computes it */
    bool bias;                 /* it is the bias of its module */
    int unit;                  /* 0, 1..layers, layers+1 */
    int64_t offset;            /* byte offset in the weights or, for adapters, in their buffer */
    int64_t gradient;          /* element offset in gradients and moments; -1: frozen */
    /* set it to false to freeze. Before the gradients are made: it has none, for good. In the loop:
     * for the steps until it is true again (optimizers/optimizer.h) */
    bool trainable;
    /* one product with the row before (k, v, up); both are frozen or none */
    bool fused;
    double lr_scale;           /* factor on the learning rate; 1. Each step reads it */
    double weight_decay;       /* below 0: the optimizer's rule. Each step reads it */
    bool adapter;              /* belongs to an adapter */
    enum tune_dtype storage;   /* dtype on the device: F32; BF16 or NF4 if frozen */
    enum tune_dtype read_dtype; /* dtype in the file; F32 for a new model */
};

struct tune_parameters {
    struct tune_parameter *at;
    int count, room;           /* rows, and those that at has memory for */
    struct tune_layer *unit;   /* [layers+2] the modules of each unit of the base */
    int base;                  /* rows of the base model; they come first */
    int64_t weights, adapters; /* bytes of the two buffers, padding included */
    int64_t gradients;         /* elements of the gradient buffer, padding included */
};

/* tune_parameters_new - the table of a model. -1 with an error: no memory.
 * tune_parameters_free - free its rows. */
int tune_parameters_new(struct tune_parameters *p, const struct tune_model_config *c);
void tune_parameters_free(struct tune_parameters *p);

/* tune_parameters_freeze - make nothing trainable and set the dtype of matrices to storage: F32,
 * BF16 or NF4. NF4 is for the layers' linear matrices; embedding and output projection become BF16.
 * Call it before there are weights.
 * tune_parameters_append - add a row for an adapter: trainable, F32. columns 0: a vector. It
 * invalidates pointers to rows. NULL with an error: no memory, or a name that is too long. */
int tune_parameters_freeze(struct tune_parameters *p, enum tune_dtype storage);
struct tune_parameter *tune_parameters_append(struct tune_parameters *p, const char *name,
                                              enum tune_role role, int unit,
                                              bool fused, int64_t rows, int64_t columns);

/* tune_parameters_find - the row with that name; NULL if there is none. A trained copy comes before
 * the base's row that it replaces. */
struct tune_parameter *tune_parameters_find(const struct tune_parameters *p, const char *name);

/* tune_parameter_bytes - bytes of a row's weight on the device.
 * tune_parameter_is_norm - whether a row is the weight of an RMSNorm.
 * tune_parameter_is_linear - whether a row is the matrix of a layer's linear module. NF4 stores
 * those, and adapters go on those. */
int64_t tune_parameter_bytes(const struct tune_parameter *p);
bool tune_parameter_is_norm(const struct tune_parameter *p);
bool tune_parameter_is_linear(const struct tune_parameter *p);

/* tune_parameter_is_hidden - whether a row is a matrix within the layers: of a linear module, or of
 * its adapter. */
bool tune_parameter_is_hidden(const struct tune_parameter *p);

/* tune_muon_bytes - bytes of Muon's work on such a matrix of this shape: two of its size, and two
 * squares of its shorter side. */
static inline int64_t tune_muon_bytes(int64_t rows, int64_t columns)
{
    int64_t less = rows < columns ? rows : columns;
    return (2 * rows * columns + 2 * less * less) * 4;
}

/* tune_parameters_set_offsets - give each trainable row its offset in the gradient buffer. Call it
 * again after freezing. */
void tune_parameters_set_offsets(struct tune_parameters *p);

/* tune_parameters_total - elements of all rows, without padding.
 * tune_parameters_trainable - elements of the trainable rows. */
int64_t tune_parameters_total(const struct tune_parameters *p);
int64_t tune_parameters_trainable(const struct tune_parameters *p);

#ifdef __cplusplus
}
#endif
#endif
