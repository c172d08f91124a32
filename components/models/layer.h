/* layer.h - a layer as data: its modules, and how they are connected. A family's file makes it from
 * config.json (families/). Parameters, adapters, buffers, working memory, FLOPs, loading and saving
 * follow it, and the forward and backward passes ask it.
 *
 *     x ── input norm ── QKV ── q/k norms, rotary, attention ── O ── post norm ──(+)── mid
 *     mid ── MLP norm ── GATE_UP ── gate ── DOWN ── post norm ──(+)── x of the next layer
 *
 * A layer may lack any of the norms.
 *
 * How a module's weight is mapped to the tensors of the files:
 *
 *     as it is        the tensor NAME.weight has the weight's shape and order
 *     fused           each module has its tensor; in memory their weights are adjacent (q, k, v)
 *     one tensor      the files have several matrices as one: so does the module
 *                     (TUNE_QUERY_KEY_VALUE, TUNE_GATE_UP)
 *     same as another a tied model has no TUNE_OUTPUT; the embedding is used. weights.c reads it
 *                     under either name
 *     norm minus 1    the weight stays as in the file; operations add config.norm_plus
 *
 * There is no other mapping: no interleaved or transposed matrix, slice of a stack or permuted
 * heads. To add one, give tune_module and tune_parameter a member that names it, and copy it where
 * parameters.c adds a row. Then these functions obey it:
 *
 *     tune_weights_check                     the tensor's name and shape
 *     read_file (weights.c)                  which numbers of the tensor the weight has
 *     write_file, put (weights_write.c)      the tensor's shape, and the reverse of read_file
 *     tune_model_compare                     a saved tensor against the weight
 *
 * All other code sees weights as [out,in]. The order of heads in GGUF is that format's alone
 * (tools/export_gguf/tensors.c). */
#ifndef TUNE_LAYER_H
#define TUNE_LAYER_H

#include "devices/device.h"
#include "models/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The use of a parameter. */
enum tune_role {
    TUNE_EMBEDDING, TUNE_INPUT_NORM, TUNE_QUERY, TUNE_KEY, TUNE_VALUE, TUNE_QUERY_NORM,
    TUNE_KEY_NORM, TUNE_ATTENTION_OUT, TUNE_MLP_NORM, TUNE_GATE, TUNE_UP, TUNE_DOWN,
    TUNE_QUERY_KEY_VALUE, TUNE_GATE_UP, /* one matrix in the file, too (phi3) */
    TUNE_POST_ATTENTION_NORM, TUNE_POST_MLP_NORM, /* before the sum with the residual stream */
    TUNE_FINAL_NORM, TUNE_OUTPUT, TUNE_LORA_A, TUNE_LORA_B, TUNE_LORA_MAGNITUDE,
    TUNE_ROLES /* the number of roles */
};

/* The kinds of modules. HEAD: the output projection. ADAPTER: a part of an adapter (lora.h). */
enum tune_module_kind {
    TUNE_MODULE_LINEAR, TUNE_MODULE_NORM, TUNE_MODULE_EMBEDDING, TUNE_MODULE_HEAD,
    TUNE_MODULE_ADAPTER
};

/* The matrix products of a layer. Each multiplies by one matrix, or by adjacent ones. */
enum tune_layer_linear {
    TUNE_LINEAR_QKV, TUNE_LINEAR_O, TUNE_LINEAR_GATE_UP, TUNE_LINEAR_DOWN, TUNE_LINEARS
};

struct tune_module {
    const char *name;      /* in the file, without ".weight": "self_attn.q_proj", "model.norm" */
    enum tune_role role;
    enum tune_module_kind kind;
    enum tune_layer_linear linear; /* of a linear module: the linear layer that computes it */
    int64_t out, in;       /* weight [out,in]; a norm's is [in], and out is 0 */
    bool bias;             /* has a bias [out] */
    bool fused;            /* one product with the module before; their weights are adjacent */
};

enum { TUNE_LAYER_MODULES = 16 };
struct tune_layer {
    struct tune_module module[TUNE_LAYER_MODULES];
    int count;
    enum tune_gate gate;   /* function of the gate: silu, or gelu as tanh approximates it */
    int window;            /* of attention, in positions; 0: none */
    int rotary;            /* which of config.rotary rotates queries and keys; -1: none */
};

/* tune_layer_make - the modules of a unit: 0 the embedding, 1..layers the layers, layers+1 the
 * final norm and an untied output projection.
 * tune_layer_add - append a module.
 * tune_layer_add_norm - append a norm of n weights.
 * tune_layer_add_linear - append a matrix [out,in], with a bias [out] or without one. It is fused
 * to the module before if that is of the same linear layer.
 * tune_layer_has - the module of that role; NULL: there is none.
 * tune_layer_linear - a linear layer of it: sets *out and *in to its columns, returns the first
 * module; NULL: the unit has no such linear layer.
 * tune_layer_adds - whether a linear layer's result is added to the residual stream. */
void tune_layer_make(struct tune_layer *l, const struct tune_model_config *c, int unit);
void tune_layer_add(struct tune_layer *l, struct tune_module module);
void tune_layer_add_norm(struct tune_layer *l, const char *name, enum tune_role role, int64_t n);
void tune_layer_add_linear(struct tune_layer *l, const char *name, enum tune_role role,
                           enum tune_layer_linear linear, int64_t out, int64_t in, bool bias);
const struct tune_module *tune_layer_has(const struct tune_layer *l, enum tune_role role);
const struct tune_module *tune_layer_linear(const struct tune_layer *l,
                                            enum tune_layer_linear linear, int64_t *out,
                                            int64_t *in);
bool tune_layer_adds(const struct tune_layer *l, enum tune_layer_linear linear);

#ifdef __cplusplus
}
#endif
#endif
