/* activations.h - struct tune_model and the activation buffers, allocated once. Private to this
 * folder. */
#ifndef TUNE_ACTIVATIONS_H
#define TUNE_ACTIVATIONS_H

#include "comm/comm.h"
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
    tune_address post1, post2;   /* [N,C] inputs of the post norms, where there are such */
    tune_address rstd_post1, rstd_post2; /* [N] */
    tune_address lse;     /* [N,H] */
    struct lora_state lora[TUNE_LINEARS]; /* of the products that have adapters */
};

/* The part of a cache (cache.c) that layers use. */
struct tune_cached {
    tune_address kv;     /* [layers] [layer_rows, 2 K D] keys, then values, of each position */
    tune_address rope;   /* tables of tune_rope_table for the capacity */
    int rows, capacity;  /* rows in use; positions of each */
    bool longer;         /* keys are rotated by config.rotary[1] (longrope) */
    int64_t layer_rows;  /* rows of kv in a layer */
    /* [N] position, first visible key, row of kv, of each new token */
    struct tune_tensor positions, starts, to;
    /* [rows] keys so far; position of the first new token */
    struct tune_tensor kv_length, q_offset;
    const volatile int *stop;       /* tune_cache_stop */
};

/* A unit's weights: one part of each buffer, and how often the unit is taken now. With `shard` fsdp
 * each rank keeps its share of each part. */
struct unit_part {
    int64_t offset, bytes;
    int64_t first, own; /* our share, in words of 4 bytes: from that word of the part on */
    int64_t at;         /* its byte in what we keep */
    bool trained;       /* it has gradients */
};
enum { TUNE_PART_BASE, TUNE_PART_ADAPTERS, TUNE_PARTS };
struct unit {
    struct unit_part weights, adapters;
    int taken;
};

/* Trained parameters side by side in a unit. Each rank owns a share of them. */
struct span {
    int unit, row;              /* row: the first one */
    int64_t gradient, count;    /* in the gradient buffer, padding included */
    int64_t first, own;         /* our share: from that element of the span on */
    int64_t at;                 /* its place in buffers that are shared out */
};

/* Memory for units, which take turns in it (slots.c). */
struct unit_slot {
    int unit;                    /* whose numbers are here, or come; -1: none */
    int64_t number;              /* the last collective that uses it; 0: none */
    tune_address at[TUNE_PARTS];
};
enum { TUNE_SLOTS = 4 };         /* for layers two, for the embedding and the output two */
struct unit_slots {
    struct unit_slot slot[TUNE_SLOTS];
    tune_address memory[TUNE_PARTS];
    int64_t bytes[TUNE_PARTS];
};

struct tune_model {
    struct tune_model_config config;
    struct tune_device *dev;
    enum tune_dtype dtype;           /* of activations */
    struct tune_parameters parameters;
    int *row; /* [layers+2][TUNE_ROLES][2] row of each role and of its bias, by unit; -1: none */
    /* memory of the base weights; memory of the adapters; 0 with `shard` fsdp */
    tune_address weights, adapters;
    tune_address own[TUNE_PARTS];    /* `shard` fsdp: our share of both */
    int64_t own_bytes[TUNE_PARTS];
    struct unit_slots gathered, summed;   /* weights, and gradients, of units that are whole */
    struct unit *units;              /* [layers+2] */
    /* [2 base] NF4 parts of each row, then of its fused group; NULL: no NF4 */
    struct tune_nf4_part *nf4;
    /* [parameters.gradients] each: gradients, moments, extra tensors */
    tune_address state[TUNE_TENSOR_KINDS];
    bool sharded[TUNE_TENSOR_KINDS]; /* that kind is shared out: [owned] */
    char extra[TUNE_EXTRAS][32];     /* names of the extra tensors; "": unused */
    int averages;                    /* kind of the averages of the weights; 0: none */
    bool averaged;                   /* they have values */
    bool inconsistent;               /* an exchange failed after it had changed something */
    float *buffer;                   /* [TUNE_PIECE] while a folder is loaded; else NULL */
    double load_seconds;
    int max_B, max_T;
    bool training, checkpointing;
    tune_address memory;             /* one allocation for all buffers below */
    int64_t memory_bytes;
    tune_address rope;               /* tables of tune_rope_table for max_T */
    int longest;                     /* positions of the longest text of the last batch */
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
    tune_address post;               /* [N,C] F32: output of a post norm, gradient of its input */
    struct tune_lora *lora;          /* NULL: no adapters */
    struct lora_work lora_work;
    /* the step's scalars: in the loop's record, or the model's own */
    tune_address step_at, own_step;
    struct tune_comm *comm;          /* of several ranks; NULL: one */
    int reduced_from;                /* gradients of units from here on are on their way */
    int64_t reducing;                /* the last of their collectives */
    bool apart;                      /* this step's gradients are not reduced yet */
    enum tune_shard shard;           /* TUNE_DDP with one rank */
    int64_t sharing;                 /* the last collective of tune_model_share_unit */
    bool alone;                      /* tune_model_alone: the other ranks serve this one */
    struct span *spans;              /* made with the gradients */
    int span_count;
    int64_t owned;                   /* elements of a buffer that is shared out, padding included */
    int64_t steps, past_steps;       /* steps begun; steps a resumed run did before them */
    double noise_alpha;              /* NEFTune's; 0: none */
    uint64_t noise_seed;
    struct tune_model_pass pass;           /* of the last batch */
    struct tune_tensor hidden_tensor;
    int B, T;                        /* sizes of the last forward */
};

/* tune_model_reduce_unit - backward of a micro-batch is through with this unit. last: so its
 * gradients are complete. Begin to add them up over the ranks, while backward goes on: with `shard`
 * fsdp always, else if they are complete. Units come from the last one down. */
int tune_model_reduce_unit(struct tune_model *m, int unit, bool last);

/* tune_model_move - a reduce_scatter or an all_gather of words (4 bytes) of the device's memory.
 * from and to are as in comm.h; from 0: NULL. On the CPU it is begun. On another device it is over
 * when this returns, because operations and collectives share one queue there. Returns its number;
 * -1 with an error. */
int64_t tune_model_move(struct tune_model *m, enum tune_collective_kind kind, const char *what,
                        tune_address from, tune_address to, int64_t words);

/* tune_spans_find - find the spans, and what this rank owns of them. The table has its offsets of
 * gradients.
 * tune_shard_read - tune_model_read of a kind that is shared out; each rank gets the numbers.
 * tune_shard_write - tune_model_write of such a kind; each rank writes its part.
 * tune_shard_exchange - tell the ranks that serve this one to call tune_model_exchange too. */
int tune_spans_find(struct tune_model *m);
int tune_shard_read(struct tune_model *m, const struct tune_parameter *p, int kind, int64_t at,
                    int64_t n, float *out);
int tune_shard_write(struct tune_model *m, const struct tune_parameter *p, int kind, int64_t at,
                     int64_t n, const float *in);
int tune_shard_exchange(struct tune_model *m);

/* tune_shard_read_weight - the bytes [at, at + bytes) of a weight as they are stored, with `shard`
 * fsdp; each rank gets them.
 * tune_shard_gather - tell the ranks that serve this one to gather that unit, too. */
int tune_shard_read_weight(struct tune_model *m, const struct tune_parameter *p, int64_t at,
                           int64_t bytes, void *out);
int tune_shard_gather(struct tune_model *m, int unit);

/* `shard` fsdp (slots.c). Part 0 of a unit has the base's weights, part 1 the adapters.
 *
 * tune_slots_share - find what a rank keeps of each part, when all parts are found.
 * tune_slots_new - allocate what we keep of part k of all units, and its slots.
 * tune_slots_new_gradients - the slots of gradients, when it is known what is trained.
 * tune_slots_free - free all of that.
 * tune_slots_bytes - bytes of the slots.
 * tune_slots_reduced - words of the largest part, of those that are trained or of all. */
void tune_slots_share(struct tune_model *m, int rank, int ranks);
int tune_slots_new(struct tune_model *m, int k);
int tune_slots_new_gradients(struct tune_model *m);
void tune_slots_free(struct tune_model *m);
int64_t tune_slots_bytes(const struct tune_model *m, bool gradients);
int64_t tune_slots_reduced(const struct tune_model *m, bool trained);

/* tune_slot_weight - address of a weight while its unit is taken.
 * tune_slot_gradient - of a gradient while its unit's gradients are open.
 * tune_own_weight - address of byte `at` of a weight, which this rank owns.
 * tune_rank_weight - the bytes that a rank owns of [*at, *at + bytes) of a weight; *at: the first
 * one. */
tune_address tune_slot_weight(const struct tune_model *m, const struct tune_parameter *p);
tune_address tune_slot_gradient(const struct tune_model *m, const struct tune_parameter *p);
tune_address tune_own_weight(const struct tune_model *m, const struct tune_parameter *p,
                             int64_t at);
int64_t tune_rank_weight(const struct tune_model *m, const struct tune_parameter *p, int rank,
                         int ranks, int64_t *at, int64_t bytes);

/* tune_slot_take - the unit's weights are in its slot when it returns.
 * tune_slot_ahead - begin to gather the unit that is needed next; -1: none is. Without `shard` fsdp
 * it does nothing.
 * tune_slot_settle - no collective reads or writes that unit's weights any more.
 * tune_slot_drop - its weights change: gather them again before the next use. */
int tune_slot_take(struct tune_model *m, int unit);
int tune_slot_ahead(struct tune_model *m, int unit);
int tune_slot_settle(struct tune_model *m, int unit);
int tune_slot_drop(struct tune_model *m, int unit);

/* tune_gradients_open - a unit's gradients are zeros, if they were not open; operations add to
 * them. Without `shard` fsdp it does nothing.
 * tune_gradients_send - begin to add them up over the ranks.
 * tune_gradients_collect - add to what we keep what was sent and is not added yet. Gradients that
 * were opened and not sent are dropped. */
int tune_gradients_open(struct tune_model *m, int unit);
int tune_gradients_send(struct tune_model *m, int unit);
int tune_gradients_collect(struct tune_model *m);

/* tune_model_max_sizes - upper limits of all operations of the model and of its loss, for the
 * device's working memory. The table of parameters and the sizes are there; the weights may be
 * missing. */
struct tune_max_sizes tune_model_max_sizes(const struct tune_model *m);

/* Columns of a layer's activations, and how many norms its queries and keys have in a row. post1,
 * post2: columns of the inputs of the post norms; 0: none. */
struct tune_widths {
    int64_t qkv, att, gate_up, h, q_norms, k_norms, post1, post2;
};

/* tune_model_widths - of layer i.
 * tune_model_widest - the largest of each over all layers. */
struct tune_widths tune_model_widths(const struct tune_model *m, int i);
struct tune_widths tune_model_widest(const struct tune_model *m);

/* tune_unit_find - find the parts of all units. Call it again when the table has got rows.
 * tune_unit_check - -1 with an error if a unit is taken. */
int tune_unit_find(struct tune_model *m);
int tune_unit_check(const struct tune_model *m);

/* tune_model_weight_at - address of a parameter's weight while its unit is taken. */
static inline tune_address tune_model_weight_at(const struct tune_model *m,
                                                const struct tune_parameter *p)
{
    if (tune_model_gathers(m))
        return tune_slot_weight(m, p);
    return tune_address_plus(p->adapter ? m->adapters : m->weights, p->offset);
}

/* tune_model_gradient_at - address of a parameter's gradient; 0: frozen, or no gradients allocated
 * yet. */
static inline tune_address tune_model_gradient_at(const struct tune_model *m,
                                                  const struct tune_parameter *p)
{
    if (tune_model_gathers(m) && p->gradient >= 0 && m->state[TUNE_GRADIENT].at)
        return tune_slot_gradient(m, p);
    return tune_address_plus(p->gradient >= 0 ? m->state[TUNE_GRADIENT] : (tune_address){0},
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
    bool own = m->lora && m->lora->embedding && !m->pass.base;
    return own ? &m->parameters.at[m->lora->embedding] : tune_model_base_embedding(m);
}

static inline const struct tune_parameter *tune_model_output(const struct tune_model *m)
{
    bool own = m->lora && m->lora->output && !m->pass.base;
    return own ? &m->parameters.at[m->lora->output] : tune_model_base_output(m);
}

/* Rows of activations of the current batch. */
static inline struct tune_tensor rows(const struct tune_model *m, tune_address data, int64_t width)
{
    return tune_tensor_2d(data, m->dtype, (int64_t)m->B * m->T, width);
}

/* tune_model_reserve_keys - working memory of the device for B rows with so many keys. */
int tune_model_reserve_keys(struct tune_model *m, int B, int keys);

/* A linear layer, such as QKV: y = scale (x w^T + bias) + r. Its adapters, if any, add to y
 * (lora.h). */
struct linear {
    const struct tune_model_pass *pass;
    int layer;
    enum tune_layer_linear which;
    const struct tune_tensor *w, *bias; /* bias NULL: none */
    struct tune_tensor *dw, *dbias;     /* their gradients; NULL: not wanted */
    float scale;
};

/* tune_model_linear_forward - like tune_linear_forward, with the adapters' contribution.
 * tune_model_linear_recompute - recompute what backward reads of tune_model_linear_forward,
 * without y.
 * tune_model_linear_backward - like tune_linear_backward; dx is set, and may be NULL. */
int tune_model_linear_forward(struct tune_model *m, const struct linear *p, struct tune_tensor *y,
                              const struct tune_tensor *x, const struct tune_tensor *r);
int tune_model_linear_recompute(struct tune_model *m, const struct linear *p,
                                const struct tune_tensor *x);
int tune_model_linear_backward(struct tune_model *m, const struct linear *p, struct tune_tensor *dx,
                               const struct tune_tensor *dy, const struct tune_tensor *x);

#endif
