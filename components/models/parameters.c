/* parameters.c - names, shapes and places of a transformer's parameters. */
#include "models/parameters.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"

enum { ALIGN = 16 }; /* elements: 64 bytes of float32 */

static int64_t align(int64_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* One more row; glued: right behind the one before, with no padding. rows 0: a vector. */
static void add(struct tune_parameters *p, int unit, bool glued, int64_t rows, int64_t columns, const char *format, ...)
{
    struct tune_parameter *r = &p->at[p->count++];
    va_list args;
    *r = (struct tune_parameter){.unit = unit, .trainable = true, .glued = glued, .gradient = -1, .read_dtype = TUNE_F32};
    va_start(args, format);
    vsnprintf(r->name, sizeof r->name, format, args);
    va_end(args);
    r->ndim = rows > 0 ? 2 : 1;
    r->shape[0] = rows > 0 ? rows : columns;
    r->shape[1] = rows > 0 ? columns : 0;
    r->count = rows > 0 ? rows * columns : columns;
    r->norm = strstr(r->name, "norm.weight") != NULL;
    if (!glued)
        p->weights = align(p->weights);
    r->offset = p->weights;
    p->weights += r->count;
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
    p->weights = align(p->weights);
    tune_parameters_place(p);
    return 0;
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
        bool glued = before && before->gradient >= 0 && r->offset == before->offset + before->count;
        r->gradient = -1;
        if (!r->trainable)
            continue;
        if (!glued)
            p->gradients = align(p->gradients);
        r->gradient = p->gradients;
        p->gradients += r->count;
    }
    p->gradients = align(p->gradients);
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
