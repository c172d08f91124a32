/* activations.h - struct tune_model and the activation buffers, allocated once. Private to this
 * folder. */
#ifndef TUNE_ACTIVATIONS_H
#define TUNE_ACTIVATIONS_H

#include "models/lora_parts.h"
#include "models/model.h"

/* Activations of one layer that forward keeps for backward. N rows. */
struct layer_state {
    tune_address qkv;     /* [N,Q] q, k, v after bias and rope; input of attention */
    tune_address raw;     /* [N,Q] before the norm of each head (qk_norm only) */
    tune_address att;     /* [N,HD] output of attention */
    tune_address mid;     /* [N,C] residual stream between attention and feed-forward */
    tune_address gate_up; /* [N,2F] */
    tune_address rstd1, rstd2;   /* [N] */
    tune_address rstd_q, rstd_k; /* [N,H], [N,K] (qk_norm only) */
    tune_address lse;     /* [N,H] */
    struct lora_state lora[LORA_PRODUCTS]; /* of the products that have adapters */
};

/* The part of a cache (cache.c) that layers use. */
struct tune_cached {
    tune_address kv;     /* [layers] [layer_rows, 2 K D] keys, then values, of each position */
    tune_address rope;   /* [capacity, D] */
    int rows, capacity;  /* rows in use; positions of each */
    int64_t layer_rows;  /* rows of kv in a layer */
    /* [N] position, first visible key, row of kv, of each new token */
    struct tune_tensor positions, first, to;
    struct tune_tensor keys, begin; /* [rows] keys so far; position of the first new token */
    const volatile int *stop;       /* tune_cache_stop */
};

struct tune_model {
    struct tune_model_config config;
    struct tune_device *dev;
    enum tune_dtype dtype;           /* of activations */
    struct tune_parameters parameters;
    int *row; /* [layers+2][TUNE_ROLES][2] row of each role and of its bias, by unit; -1: none */
    tune_address weights, adapters;  /* memory of the base weights; memory of the adapters */
    /* [2 base] NF4 parts of each row, then of its fused group; NULL: no NF4 */
    struct tune_nf4_part *nf4;
    /* [parameters.gradients] each: gradients, moments, extra tensors */
    tune_address kept[TUNE_VALUES];
    char extra[TUNE_EXTRAS][32];     /* names of the extra tensors; "": unused */
    int averages;                    /* kind of the averages of the weights; 0: none */
    bool averaged;                   /* they have values */
    bool torn;                       /* an exchange failed after it had changed something */
    float *room;                     /* [TUNE_PIECE] buffer while a folder is loaded; else NULL */
    double load_seconds;
    int max_B, max_T;
    bool training, checkpointing;
    tune_address memory;             /* one allocation for all buffers below */
    int64_t memory_bytes;
    tune_address rope;               /* [max_T, D] */
    tune_address batch; /* [5 N] I32: ids, labels, ... of the last forward, sent in one upload */
    int32_t *staging;                /* [5 N] the same on the host */
    /* [N] inside batch; 0 elements: each row is one text */
    struct tune_tensor ids, positions, starts;
    struct tune_model_labels labels; /* inside batch */
    tune_address *x; /* [layers+1] the residual stream [N,C]; shared buffers when not training */
    struct layer_state *layer; /* [layers]; they share buffers when not training or checkpointing */
    tune_address rstd;               /* [N] of the final norm */
    tune_address hidden;             /* [N,C] */
    tune_address norm, h; /* [N,C], [N,F]: outputs of norm and swiglu, recomputed in backward */
    tune_address dnorm, dqkv, datt, dh; /* [N,C], [N,Q], [N,HD], [N,F] */
    struct tune_lora *lora;          /* NULL: no adapters */
    struct lora_work lora_work;
    /* the step's scalars: in the loop's record, or the model's own */
    tune_address step_at, own_step;
    int64_t steps, past_steps;       /* steps begun; steps a resumed run did before them */
    bool dropping, noisy;            /* whether the last forward applied dropout, noise */
    double noise_alpha;              /* NEFTune's; 0: none */
    uint64_t noise_seed;
    bool bare;                       /* the last batch was tune_model_infer_base's: no adapters */
    /* during tune_model_infer_merged: source of the merged weights */
    const struct tune_weights_source *merged;
    const struct tune_cached *cached; /* during tune_model_extend; else NULL */
    struct tune_tensor hidden_tensor;
    int B, T;                        /* sizes of the last forward */
};

/* tune_model_largest - upper limits of all operations of the model and of its loss, for the
 * device's working memory. The table of parameters and the sizes are there; the weights may be
 * missing. */
struct tune_largest tune_model_largest(const struct tune_model *m);

/* Q, the number of columns of qkv. */
static inline int64_t tune_model_q(const struct tune_model_config *c)
{
    return (int64_t)(c->heads + 2 * c->kv_heads) * c->head_dim;
}

/* tune_model_gradient_at - address of a parameter's gradient; 0: frozen, or no gradients allocated
 * yet. */
static inline tune_address tune_model_gradient_at(const struct tune_model *m,
                                                  const struct tune_parameter *p)
{
    return tune_address_plus(p->gradient >= 0 ? m->kept[TUNE_GRADIENT] : (tune_address){0},
                             p->gradient * 4);
}

/* tune_model_row - the base model's row of this role (or its bias) in a unit. NULL: there is
 * none. */
static inline const struct tune_parameter *tune_model_row(const struct tune_model *m, int unit,
    enum tune_role role, bool bias)
{
    int row = m->row[(unit * TUNE_ROLES + (int)role) * 2 + bias];
    return row < 0 ? NULL : &m->parameters.at[row];
}

/* tune_model_base_embedding, tune_model_base_output - the base's rows. Tied weights are one.
 * tune_model_embedding, tune_model_output - the rows that the last batch uses: the trained copies,
 * if there are any. */
static inline const struct tune_parameter *tune_model_base_embedding(const struct tune_model *m)
{
    return tune_model_row(m, 0, TUNE_EMBEDDING, false);
}

static inline const struct tune_parameter *tune_model_base_output(const struct tune_model *m)
{
    const struct tune_parameter *p = tune_model_row(m, m->config.layers + 1, TUNE_OUTPUT, false);
    return p ? p : tune_model_base_embedding(m);
}

static inline const struct tune_parameter *tune_model_embedding(const struct tune_model *m)
{
    bool own = m->lora && m->lora->embedding && !m->bare;
    return own ? &m->parameters.at[m->lora->embedding] : tune_model_base_embedding(m);
}

static inline const struct tune_parameter *tune_model_output(const struct tune_model *m)
{
    bool own = m->lora && m->lora->output && !m->bare;
    return own ? &m->parameters.at[m->lora->output] : tune_model_base_output(m);
}

/* Rows of activations of the current batch. */
static inline struct tune_tensor rows(const struct tune_model *m, tune_address data, int64_t width)
{
    return tune_tensor_2d(data, m->dtype, (int64_t)m->B * m->T, width);
}

/* tune_model_extend - tune_model_infer of a batch that goes on behind what is in a cache. bare:
 * with the base alone. The batch's labels, positions and starts are not read. 1: cached->stop came
 * between two layers.
 * tune_model_reserve_keys - working memory of the device for B rows with so many keys. */
int tune_model_extend(struct tune_model *m, const struct tune_cached *cached,
                      const struct tune_batch *batch, bool bare, struct tune_tensor **hidden);
int tune_model_reserve_keys(struct tune_model *m, int B, int keys);

/* A matrix product of a layer: y = scale (x w^T + bias) + r. Its adapters, if any, add to y
 * (lora.h). */
struct product {
    int layer;
    enum lora_product which;
    const struct tune_tensor *w, *bias; /* bias NULL: none */
    struct tune_tensor *dw, *dbias;     /* their gradients; NULL: not wanted */
    float scale;
};

/* tune_product_forward - like tune_linear_forward, with the adapters' contribution.
 * tune_product_merged - use the weights of m->merged instead of adapters, some rows at a time.
 * tune_product_merged_bytes - memory that tune_product_merged needs, including the adapter's
 * weights.
 * tune_product_tile_rows - how many rows: of a matrix with so many columns.
 * tune_product_again - recompute what backward reads of tune_product_forward, without y.
 * tune_product_backward - like tune_linear_backward; dx is set, and may be NULL. */
int tune_product_forward(struct tune_model *m, const struct product *p, struct tune_tensor *y,
                         const struct tune_tensor *x, const struct tune_tensor *r);
int tune_product_merged(struct tune_model *m, const struct product *p, const struct lora_group *g,
                        struct tune_tensor *y, const struct tune_tensor *x,
                        const struct tune_tensor *r);
void tune_product_merged_bytes(const struct tune_lora *l, int layers, int64_t *device,
                               int64_t *host);
int64_t tune_product_tile_rows(int64_t in);
int tune_product_again(struct tune_model *m, const struct product *p, const struct tune_tensor *x);
int tune_product_backward(struct tune_model *m, const struct product *p, struct tune_tensor *dx,
                          const struct tune_tensor *dy, const struct tune_tensor *x);

#endif
