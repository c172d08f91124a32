/* activations.h - the buffers of forward and backward, sized once. Inside this folder only. */
#ifndef TUNE_ACTIVATIONS_H
#define TUNE_ACTIVATIONS_H

#include "models/lora_parts.h"
#include "models/model.h"

/* What forward keeps of one layer. N rows. */
struct layer_state {
    tune_address qkv;     /* [N,Q] after bias and rope: what attention read */
    tune_address raw;     /* [N,Q] before the heads' norms (qk_norm only) */
    tune_address att;     /* [N,HD] attention's output */
    tune_address mid;     /* [N,C] between attention and feed-forward */
    tune_address gate_up; /* [N,2F] */
    tune_address rstd1, rstd2;   /* [N] */
    tune_address rstd_q, rstd_k; /* [N,H], [N,K] (qk_norm only) */
    tune_address lse;     /* [N,H] */
    struct lora_state lora[LORA_PRODUCTS]; /* of the products with adapters */
};

struct tune_model {
    struct tune_model_config config;
    struct tune_device *dev;
    enum tune_dtype dtype;           /* of activations */
    struct tune_parameters parameters;
    /* [layers+2][TUNE_ROLES][2] of each unit: the row of a role, and of its bias; -1: none */
    int *row;
    tune_address weights, adapters;  /* the base's, the adapters' */
    /* [2 base] the numbers of each row, and of it with those glued below it; NULL: none is NF4 */
    struct tune_nf4_part *nf4;
    /* [parameters.gradients] each: gradients, moments, extra ones */
    tune_address kept[TUNE_VALUES];
    char extra[TUNE_EXTRAS][32];     /* names of the extra ones; "": none */
    float *room;                     /* [TUNE_PIECE] while a folder is loaded; else NULL */
    double load_seconds;
    int max_B, max_T;
    bool training, checkpointing;
    tune_address memory;             /* one allocation for all below */
    int64_t memory_bytes;
    tune_address rope;               /* [max_T, D] */
    tune_address batch;              /* [5 N] I32: what the last forward was given, one upload */
    int32_t *staging;                /* [5 N] the same on the host */
    /* [N] in it; 0 elements: each row is one text from its begin */
    struct tune_tensor ids, positions, starts;
    struct tune_model_labels labels; /* in it */
    /* [layers+1] the residual stream [N,C]; one shared buffer when not training */
    tune_address *x;
    /* [layers]; all the same buffers when not training or checkpointing */
    struct layer_state *layer;
    tune_address rstd;               /* [N] of the final norm */
    tune_address hidden;             /* [N,C] */
    /* [N,C], [N,F]: a norm's and swiglu's output, made again in backward */
    tune_address norm, h;
    tune_address dnorm, dqkv, datt, dh; /* [N,C], [N,Q], [N,HD], [N,F] */
    struct tune_lora *lora;          /* NULL: no adapters */
    struct lora_work lora_work;
    tune_address step_at, own_step;  /* the step's scalars: the loop's record, or the model's own */
    /* begun; done before the first of them, of a run that goes on */
    int64_t steps, past_steps;
    bool dropping;                   /* in the last one */
    /* during tune_model_infer_merged: what products with adapters multiply with */
    const struct tune_weights_source *merged;
    struct tune_tensor hidden_tensor;
    int B, T;                        /* of the last forward */
};

/* The sizes of x rows, by name. */
static inline int64_t tune_model_q(const struct tune_model_config *c)
{
    return (int64_t)(c->heads + 2 * c->kv_heads) * c->head_dim;
}

/* tune_model_gradient_at - where a parameter's gradient lies; 0: frozen, or none made yet. */
static inline tune_address tune_model_gradient_at(const struct tune_model *m,
                                                  const struct tune_parameter *p)
{
    return tune_address_plus(p->gradient >= 0 ? m->kept[TUNE_GRADIENT] : (tune_address){0},
                             p->gradient * 4);
}

/* tune_model_row - the base's row of that role (or of its bias) in a unit; NULL: there is none. */
static inline const struct tune_parameter *tune_model_row(const struct tune_model *m, int unit,
                                                          enum tune_role role, bool bias)
{
    int row = m->row[(unit * TUNE_ROLES + (int)role) * 2 + bias];
    return row < 0 ? NULL : &m->parameters.at[row];
}

/* A product of layer i: y = scale (x w^T + bias) + beta y, and what its adapters, if it has any,
 * add to it: lora.h. */
struct product {
    int layer;
    enum lora_product which;
    const struct tune_tensor *w, *bias; /* bias NULL: none */
    float scale;
};

/* tune_product_forward - as tune_linear_forward, with adapters. tune_product_merged - instead of
 * adapters with weights that m->merged gives, some rows at a time; tune_product_merged_bytes - what
 * that takes, the adapter's own numbers among it.
 * tune_product_again - what backward reads of tune_product_forward, without y.
 * tune_product_backward - as tune_linear_backward with dx set; dx, dw, dbias: NULL where not
 * wanted. */
int tune_product_forward(struct tune_model *m, const struct product *p, struct tune_tensor *y,
                         const struct tune_tensor *x,
                         float beta);
int tune_product_merged(struct tune_model *m, const struct product *p, const struct lora_group *g,
                        struct tune_tensor *y,
                        const struct tune_tensor *x, float beta);
void tune_product_merged_bytes(const struct tune_lora *l, int layers, int64_t *device,
                               int64_t *host);
int tune_product_again(struct tune_model *m, const struct product *p, const struct tune_tensor *x);
int tune_product_backward(struct tune_model *m, const struct product *p, struct tune_tensor *dx,
                          struct tune_tensor *dw,
                          struct tune_tensor *dbias, const struct tune_tensor *dy, const struct tune_tensor *x);

#endif
