/* parameters.c - names, shapes and places of a transformer's parameters. */
#include "models/parameters.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/nf4.h"
#include "core/try.h"

enum { BYTES = 64, ELEMENTS = 16 }; /* of float32 in them */

static int64_t align(int64_t n, int64_t unit)
{
    return (n + unit - 1) / unit * unit;
}

static int64_t bytes_of(const struct tune_parameter *r)
{
    if (r->storage == TUNE_NF4)
        return tune_nf4_bytes(r->count); /* whole lines of 64 */
    return r->count * tune_dtype_bits(r->storage) / 8;
}

/* Its place behind what is in the buffer already. */
static void place(struct tune_parameter *r, int64_t *buffer)
{
    if (!r->glued)
        *buffer = align(*buffer, BYTES);
    r->offset = *buffer;
    *buffer += bytes_of(r);
}

/* All of the base's. */
static void place_base(struct tune_parameters *p)
{
    p->weights = 0;
    for (int i = 0; i < p->base; i++)
        place(&p->at[i], &p->weights);
    p->weights = align(p->weights, BYTES);
}

/* One more row; glued: right behind the one before, with no padding. rows 0: a vector. */
static void add(struct tune_parameters *p, int unit, bool glued, int64_t rows, int64_t columns, const char *format, ...)
{
    struct tune_parameter *r = &p->at[p->count++];
    va_list args;
    *r = (struct tune_parameter){.unit = unit, .trainable = true, .glued = glued, .gradient = -1, .storage = TUNE_F32,
                                 .read_dtype = TUNE_F32};
    va_start(args, format);
    vsnprintf(r->name, sizeof r->name, format, args);
    va_end(args);
    r->ndim = rows > 0 ? 2 : 1;
    r->shape[0] = rows > 0 ? rows : columns;
    r->shape[1] = rows > 0 ? columns : 0;
    r->count = rows > 0 ? rows * columns : columns;
    r->norm = strstr(r->name, "norm.weight") != NULL;
}

static void add_layer(struct tune_parameters *p, const struct tune_model_config *c, int i)
{
    static const char *const qkv[] = {"q_proj", "k_proj", "v_proj"}, *const gate_up[] = {"gate_proj", "up_proj"};
    int64_t C = c->hidden, F = c->ffn, q = (int64_t)c->heads * c->head_dim, k = (int64_t)c->kv_heads * c->head_dim;
    const char *layer = "model.layers.%d.%s%s";
    int unit = i + 1;
    add(p, unit, false, 0, C, layer, i, "input_layernorm.weight", "");
    for (int j = 0; j < 3; j++)
        add(p, unit, j > 0, j ? k : q, C, "model.layers.%d.self_attn.%s.weight", i, qkv[j]);
    for (int j = 0; j < 3 && c->qkv_bias; j++)
        add(p, unit, j > 0, 0, j ? k : q, "model.layers.%d.self_attn.%s.bias", i, qkv[j]);
    if (c->qk_norm) {
        add(p, unit, false, 0, c->head_dim, layer, i, "self_attn.q_norm.weight", "");
        add(p, unit, false, 0, c->head_dim, layer, i, "self_attn.k_norm.weight", "");
    }
    add(p, unit, false, C, q, layer, i, "self_attn.o_proj.weight", "");
    if (c->out_bias)
        add(p, unit, false, 0, C, layer, i, "self_attn.o_proj.bias", "");
    add(p, unit, false, 0, C, layer, i, "post_attention_layernorm.weight", "");
    for (int j = 0; j < 2; j++)
        add(p, unit, j > 0, F, C, "model.layers.%d.mlp.%s.weight", i, gate_up[j]);
    for (int j = 0; j < 2 && c->mlp_bias; j++)
        add(p, unit, j > 0, 0, F, "model.layers.%d.mlp.%s.bias", i, gate_up[j]);
    add(p, unit, false, C, F, layer, i, "mlp.down_proj.weight", "");
    if (c->mlp_bias)
        add(p, unit, false, 0, C, layer, i, "mlp.down_proj.bias", "");
}

int tune_parameters_new(struct tune_parameters *p, const struct tune_model_config *c)
{
    *p = (struct tune_parameters){.at = calloc((size_t)c->layers * 18 + 3, sizeof *p->at)};
    if (!p->at) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for the table of parameters");
        return -1;
    }
    add(p, 0, false, c->vocabulary, c->hidden, "model.embed_tokens.weight");
    for (int i = 0; i < c->layers; i++)
        add_layer(p, c, i);
    add(p, c->layers + 1, false, 0, c->hidden, "model.norm.weight");
    if (!c->tied)
        add(p, c->layers + 1, false, c->vocabulary, c->hidden, "lm_head.weight");
    p->base = p->count;
    place_base(p);
    tune_parameters_place(p);
    return 0;
}

bool tune_parameter_is_linear(const struct tune_parameter *p)
{
    size_t n = strlen(p->name), tail = strlen("_proj.weight");
    return !p->adapter && n > tail && strcmp(p->name + n - tail, "_proj.weight") == 0;
}

/* What is looked up, and what the loss projects on, is not quantised. */
static enum tune_dtype storage_of(const struct tune_parameter *r, enum tune_dtype storage)
{
    if (r->ndim != 2)
        return TUNE_F32;
    return storage == TUNE_NF4 && !tune_parameter_is_linear(r) ? TUNE_BF16 : storage;
}

int tune_parameters_freeze(struct tune_parameters *p, enum tune_dtype storage)
{
    if (storage != TUNE_F32 && storage != TUNE_BF16 && storage != TUNE_NF4) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "frozen weights in %s: supported are F32, BF16 and NF4", tune_dtype_name(storage));
        return -1;
    }
    for (int i = 0; i < p->base; i++) {
        p->at[i].trainable = false;
        p->at[i].storage = storage_of(&p->at[i], storage);
        TRY(p->at[i].storage == TUNE_NF4 && tune_nf4_bytes(p->at[i].count) < 0 ? -1 : 0);
    }
    place_base(p);
    tune_parameters_place(p);
    return 0;
}

struct tune_parameter *tune_parameters_append(struct tune_parameters *p, const char *name, int unit, bool glued, int64_t rows,
                                              int64_t columns)
{
    struct tune_parameter *more = realloc(p->at, sizeof *more * (size_t)(p->count + 1)), *r;
    if (more)
        p->at = more;
    if (!more || strlen(name) >= sizeof r->name) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "%s: %s", name, more ? "the name is too long for the table of parameters"
                                                                    : "no memory for the table of parameters");
        return NULL;
    }
    r = &p->at[p->count++];
    *r = (struct tune_parameter){.ndim = columns > 0 ? 2 : 1, .shape = {rows, columns},
                                 .count = columns > 0 ? rows * columns : rows, .unit = unit, .trainable = true, .glued = glued,
                                 .gradient = -1, .adapter = true, .storage = TUNE_F32, .read_dtype = TUNE_F32};
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
    for (int i = 0; i < p->count; i++)
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
