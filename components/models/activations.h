/* activations.h - the buffers of forward and backward, sized once. Inside this folder only. */
#ifndef TUNE_ACTIVATIONS_H
#define TUNE_ACTIVATIONS_H

#include "models/lora_parts.h"
#include "models/model.h"

/* What forward keeps of one layer. N rows. */
struct layer_state {
    void *qkv;     /* [N,Q] after bias and rope: what attention read */
    void *raw;     /* [N,Q] before the heads' norms (qk_norm only) */
    void *att;     /* [N,HD] attention's output */
    void *mid;     /* [N,C] between attention and feed-forward */
    void *gate_up; /* [N,2F] */
    float *rstd1, *rstd2; /* [N] */
    float *rstd_q, *rstd_k; /* [N,H], [N,K] (qk_norm only) */
    float *lse;    /* [N,H] */
    struct lora_state lora[LORA_PRODUCTS]; /* of the products with adapters */
};

struct tune_model {
    struct tune_model_config config;
    struct tune_device *dev;
    enum tune_dtype dtype;           /* of activations */
    struct tune_parameters parameters;
    struct tune_parameter **first;   /* [layers+2] first row of each unit */
    char *weights, *adapters;        /* the base's, the adapters' */
    struct tune_nf4 *nf4;            /* [2 base] scales of each row, and of it with those glued below it; NULL: none is NF4 */
    float *kept[TUNE_VALUES];        /* [parameters.gradients] each: gradients, moments, extra ones; NULL: none */
    float *room;                     /* [TUNE_PIECE] while weights are filled; else NULL */
    double load_seconds;
    int max_B, max_T;
    bool training, checkpointing;
    void *memory;                    /* one allocation for all below */
    int64_t memory_bytes;
    float *rope;                     /* [max_T, D] */
    int32_t *ids;                    /* [N] */
    int32_t *places;                 /* [2,N] room for: */
    int32_t *positions, *starts;     /* [N] of the last forward; NULL: each row is one text from its begin */
    void **x;                        /* [layers+1] the residual stream [N,C]; one shared buffer when not training */
    struct layer_state *layer;       /* [layers]; all the same buffers when not training or checkpointing */
    float *rstd;                     /* [N] of the final norm */
    void *hidden;                    /* [N,C] */
    void *norm, *h;                  /* [N,C], [N,F]: a norm's and swiglu's output, made again in backward */
    void *dnorm, *dqkv, *datt, *dh;  /* [N,C], [N,Q], [N,HD], [N,F] */
    float *attention_work;           /* [N,2HD] */
    struct tune_lora *lora;          /* NULL: no adapters */
    struct lora_work lora_work;
    int64_t step, forwards;          /* steps begun; forward passes of this one */
    bool dropping;                   /* in the last one */
    const struct tune_weights_source *merged; /* during tune_model_infer_merged: what products with adapters multiply with */
    struct tune_tensor hidden_tensor;
    int B, T;                        /* of the last forward */
};

/* The sizes of x rows, by name. */
static inline int64_t tune_model_q(const struct tune_model_config *c)
{
    return (int64_t)(c->heads + 2 * c->kv_heads) * c->head_dim;
}

/* tune_model_gradient_at - where a parameter's gradient lies on the device; NULL: frozen, or none made yet. */
static inline float *tune_model_gradient_at(const struct tune_model *m, const struct tune_parameter *p)
{
    return m->kept[TUNE_GRADIENT] && p->gradient >= 0 ? m->kept[TUNE_GRADIENT] + p->gradient : NULL;
}

/* tune_model_chain_nf4 - every row's scales once more, linked with those of the rows that are one matrix with it. */
void tune_model_chain_nf4(struct tune_model *m);

/* tune_model_find_units - each unit's first row, again where rows have moved. */
void tune_model_find_units(struct tune_model *m);

/* A product of layer i: y = scale (x w^T + bias) + beta y, and what its adapters, if it has any, add to it: lora.h. */
struct product {
    int layer;
    enum lora_product which;
    const struct tune_tensor *w, *bias; /* bias NULL: none */
    float scale;
};

/* tune_product_forward - as tune_linear_forward, with adapters. tune_product_merged - instead of adapters with weights that
 * m->merged gives, some rows at a time; tune_product_merged_bytes - what that takes, the adapter's own numbers among it.
 * tune_product_again - what backward reads of tune_product_forward, without y.
 * tune_product_backward - as tune_linear_backward with dx set; dx, dw, dbias: NULL where not wanted. */
int tune_product_forward(struct tune_model *m, const struct product *p, struct tune_tensor *y, const struct tune_tensor *x,
                         float beta);
int tune_product_merged(struct tune_model *m, const struct product *p, const struct lora_group *g, struct tune_tensor *y,
                        const struct tune_tensor *x, float beta);
void tune_product_merged_bytes(const struct tune_lora *l, int layers, int64_t *device, int64_t *host);
int tune_product_again(struct tune_model *m, const struct product *p, const struct tune_tensor *x);
int tune_product_backward(struct tune_model *m, const struct product *p, struct tune_tensor *dx, struct tune_tensor *dw,
                          struct tune_tensor *dbias, const struct tune_tensor *dy, const struct tune_tensor *x);

#endif
