/* parameters.c - names, shapes and offsets of a transformer's parameters. */
#include "models/parameters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/nf4.h"
#include "core/try.h"

enum { BYTES = 64, ELEMENTS = 16 }; /* alignment, in bytes and in float32 elements */

static int64_t align(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static int64_t bytes_of(const struct tune_parameter *r)
{
    if (r->storage == TUNE_NF4)
        return tune_nf4_bytes(r->count); /* a multiple of 64 bytes */
    return r->count * tune_dtype_bits(r->storage) / 8;
}

/* Set a row's offset to the end of the buffer, aligned. */
static void place(struct tune_parameter *r, int64_t *buffer)
{
    if (!r->glued)
        *buffer = align(*buffer, BYTES);
    r->offset = *buffer;
    *buffer += bytes_of(r);
}

/* Set the offsets of all rows of the base. */
static void place_base(struct tune_parameters *p)
{
    p->weights = 0;
    for (int i = 0; i < p->base; i++)
        place(&p->at[i], &p->weights);
    p->weights = align(p->weights, BYTES);
}

/* ---- the rows ---- */

/* Sizes of a row, and the condition under which a layer has it. */
enum size { NONE, WIDTH, FFN, QUERIES, KEYS, HEAD, VOCABULARY };
enum when { ALWAYS, QKV_BIAS, QK_NORM, OUT_BIAS, MLP_BIAS };

/* The rows of a layer in order, with the names of Hugging Face's llama family. rows NONE: a vector.
 * glued: in one matrix product with the row before. */
static const struct layer_row {
    const char *name;
    enum tune_role role;
    bool bias, glued;
    enum size rows, columns;
    enum when when;
} layer_rows[] = {
    {"input_layernorm.weight", TUNE_INPUT_NORM, false, false, NONE, WIDTH, ALWAYS},
    {"self_attn.q_proj.weight", TUNE_QUERY, false, false, QUERIES, WIDTH, ALWAYS},
    {"self_attn.k_proj.weight", TUNE_KEY, false, true, KEYS, WIDTH, ALWAYS},
    {"self_attn.v_proj.weight", TUNE_VALUE, false, true, KEYS, WIDTH, ALWAYS},
    {"self_attn.q_proj.bias", TUNE_QUERY, true, false, NONE, QUERIES, QKV_BIAS},
    {"self_attn.k_proj.bias", TUNE_KEY, true, true, NONE, KEYS, QKV_BIAS},
    {"self_attn.v_proj.bias", TUNE_VALUE, true, true, NONE, KEYS, QKV_BIAS},
    {"self_attn.q_norm.weight", TUNE_QUERY_NORM, false, false, NONE, HEAD, QK_NORM},
    {"self_attn.k_norm.weight", TUNE_KEY_NORM, false, false, NONE, HEAD, QK_NORM},
    {"self_attn.o_proj.weight", TUNE_ATTENTION_OUT, false, false, WIDTH, QUERIES, ALWAYS},
    {"self_attn.o_proj.bias", TUNE_ATTENTION_OUT, true, false, NONE, WIDTH, OUT_BIAS},
    {"post_attention_layernorm.weight", TUNE_MLP_NORM, false, false, NONE, WIDTH, ALWAYS},
    {"mlp.gate_proj.weight", TUNE_GATE, false, false, FFN, WIDTH, ALWAYS},
    {"mlp.up_proj.weight", TUNE_UP, false, true, FFN, WIDTH, ALWAYS},
    {"mlp.gate_proj.bias", TUNE_GATE, true, false, NONE, FFN, MLP_BIAS},
    {"mlp.up_proj.bias", TUNE_UP, true, true, NONE, FFN, MLP_BIAS},
    {"mlp.down_proj.weight", TUNE_DOWN, false, false, WIDTH, FFN, ALWAYS},
    {"mlp.down_proj.bias", TUNE_DOWN, true, false, NONE, WIDTH, MLP_BIAS},
};
enum { LAYER_ROWS = sizeof layer_rows / sizeof *layer_rows };
static const struct layer_row embedding = {"model.embed_tokens.weight", TUNE_EMBEDDING, false, false, VOCABULARY, WIDTH, ALWAYS};
static const struct layer_row final_norm = {"model.norm.weight", TUNE_FINAL_NORM, false, false, NONE, WIDTH, ALWAYS};
static const struct layer_row output = {"lm_head.weight", TUNE_OUTPUT, false, false, VOCABULARY, WIDTH, ALWAYS};

static int64_t size_of(const struct tune_model_config *c, enum size size)
{
    switch (size) {
    case WIDTH: return c->hidden;
    case FFN: return c->ffn;
    case QUERIES: return (int64_t)c->heads * c->head_dim;
    case KEYS: return (int64_t)c->kv_heads * c->head_dim;
    case HEAD: return c->head_dim;
    case VOCABULARY: return c->vocabulary;
    default: return 0;
    }
}

static bool has(const struct tune_model_config *c, enum when when)
{
    return when == QKV_BIAS ? c->qkv_bias : when == QK_NORM ? c->qk_norm : when == OUT_BIAS ? c->out_bias
           : when == MLP_BIAS ? c->mlp_bias : true;
}

/* Add a row. layer -1: it belongs to no layer. */
static void add(struct tune_parameters *p, const struct tune_model_config *c, const struct layer_row *row, int unit, int layer)
{
    struct tune_parameter *r = &p->at[p->count++];
    int64_t rows = size_of(c, row->rows), columns = size_of(c, row->columns);
    *r = (struct tune_parameter){.role = row->role, .bias = row->bias, .unit = unit, .trainable = true, .glued = row->glued,
                                 .gradient = -1, .lr_scale = 1, .weight_decay = -1, .storage = TUNE_F32, .read_dtype = TUNE_F32};
    if (layer >= 0)
        snprintf(r->name, sizeof r->name, "model.layers.%d.%s", layer, row->name);
    else
        snprintf(r->name, sizeof r->name, "%s", row->name);
    r->ndim = rows > 0 ? 2 : 1;
    r->shape[0] = rows > 0 ? rows : columns;
    r->shape[1] = rows > 0 ? columns : 0;
    r->count = rows > 0 ? rows * columns : columns;
}

int tune_parameters_new(struct tune_parameters *p, const struct tune_model_config *c)
{
    *p = (struct tune_parameters){.at = calloc((size_t)c->layers * LAYER_ROWS + 3, sizeof *p->at)};
    if (!p->at)
        return tune_error_no_memory("the table of parameters");
    add(p, c, &embedding, 0, -1);
    for (int i = 0; i < c->layers; i++)
        for (int k = 0; k < LAYER_ROWS; k++)
            if (has(c, layer_rows[k].when))
                add(p, c, &layer_rows[k], i + 1, i);
    add(p, c, &final_norm, c->layers + 1, -1);
    if (!c->tied)
        add(p, c, &output, c->layers + 1, -1);
    p->base = p->count;
    place_base(p);
    tune_parameters_place(p);
    return 0;
}

bool tune_role_is_norm(enum tune_role role)
{
    return role == TUNE_INPUT_NORM || role == TUNE_QUERY_NORM || role == TUNE_KEY_NORM || role == TUNE_MLP_NORM ||
           role == TUNE_FINAL_NORM;
}

bool tune_role_is_linear(enum tune_role role)
{
    return role == TUNE_QUERY || role == TUNE_KEY || role == TUNE_VALUE || role == TUNE_ATTENTION_OUT || role == TUNE_GATE ||
           role == TUNE_UP || role == TUNE_DOWN;
}

bool tune_parameter_is_linear(const struct tune_parameter *p)
{
    return !p->bias && tune_role_is_linear(p->role);
}

bool tune_parameter_is_hidden(const struct tune_parameter *p)
{
    return tune_parameter_is_linear(p) || p->role == TUNE_LORA_A || p->role == TUNE_LORA_B;
}

/* The embedding and the output projection are not quantized. */
static enum tune_dtype storage_of(const struct tune_parameter *r, enum tune_dtype storage)
{
    if (r->ndim != 2)
        return TUNE_F32;
    return storage == TUNE_NF4 && !tune_parameter_is_linear(r) ? TUNE_BF16 : storage;
}

int tune_parameters_freeze(struct tune_parameters *p, enum tune_dtype storage)
{
    if (storage != TUNE_F32 && storage != TUNE_BF16 && storage != TUNE_NF4)
        return tune_error_usage("frozen weights in %s: supported are F32, BF16 and NF4", tune_dtype_name(storage));
    for (int i = 0; i < p->base; i++) {
        p->at[i].trainable = false;
        p->at[i].storage = storage_of(&p->at[i], storage);
        TRY(p->at[i].storage == TUNE_NF4 && tune_nf4_bytes(p->at[i].count) < 0 ? -1 : 0);
    }
    place_base(p);
    tune_parameters_place(p);
    return 0;
}

struct tune_parameter *tune_parameters_append(struct tune_parameters *p, const char *name, enum tune_role role, int unit,
                                              bool glued, int64_t rows, int64_t columns)
{
    struct tune_parameter *more = realloc(p->at, sizeof *more * (size_t)(p->count + 1)), *r;
    if (more)
        p->at = more;
    if (!more || strlen(name) >= sizeof r->name) {
        tune_error_cannot("%s: %s", name,
                          more ? "the name is too long for the table of parameters"
                               : "no memory for the table of parameters");
        return NULL;
    }
    r = &p->at[p->count++];
    *r = (struct tune_parameter){.ndim = columns > 0 ? 2 : 1, .shape = {rows, columns},
                                 .count = columns > 0 ? rows * columns : rows, .role = role, .unit = unit, .trainable = true, .glued = glued,
                                 .gradient = -1, .lr_scale = 1, .weight_decay = -1, .adapter = true, .storage = TUNE_F32, .read_dtype = TUNE_F32};
    snprintf(r->name, sizeof r->name, "%s", name);
    place(r, &p->adapters);
    return r;
}

void tune_parameters_free(struct tune_parameters *p)
{
    free(p->at);
    *p = (struct tune_parameters){0};
}

struct tune_parameter *tune_parameters_find(const struct tune_parameters *p, const char *name)
{
    for (int i = p->count - 1; i >= 0; i--)
        if (strcmp(p->at[i].name, name) == 0)
            return &p->at[i];
    return NULL;
}

void tune_parameters_place(struct tune_parameters *p)
{
    p->gradients = 0;
    for (int i = 0; i < p->count; i++) {
        struct tune_parameter *r = &p->at[i], *before = i > 0 ? r - 1 : NULL;
        r->gradient = -1;
        if (!r->trainable)
            continue;
        if (!r->glued || !before || before->gradient < 0)
            p->gradients = align(p->gradients, ELEMENTS);
        r->gradient = p->gradients;
        p->gradients += r->count;
    }
    p->gradients = align(p->gradients, ELEMENTS);
}

int64_t tune_parameters_total(const struct tune_parameters *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->count; i++)
        n += p->at[i].count;
    return n;
}

int64_t tune_parameters_trainable(const struct tune_parameters *p)
{
    int64_t n = 0;
    for (int i = 0; i < p->count; i++)
        n += p->at[i].trainable ? p->at[i].count : 0;
    return n;
}
