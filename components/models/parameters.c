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

int64_t tune_parameter_bytes(const struct tune_parameter *r)
{
    if (r->storage == TUNE_NF4)
        return tune_nf4_bytes(r->count); /* a multiple of 64 bytes */
    return r->count * tune_dtype_bits(r->storage) / 8;
}

/* Set a row's offset to the end of the buffer, aligned. */
static void set_offset(struct tune_parameter *r, int64_t *buffer)
{
    if (!r->fused)
        *buffer = align(*buffer, BYTES);
    r->offset = *buffer;
    *buffer += tune_parameter_bytes(r);
}

/* Set the offsets of all rows of the base. */
static void set_base_offsets(struct tune_parameters *p)
{
    p->weights = 0;
    for (int i = 0; i < p->base; i++)
        set_offset(&p->at[i], &p->weights);
    p->weights = align(p->weights, BYTES);
}

/* ---- the rows ---- */

/* Add the weight or the bias of a module. */
static void add(struct tune_parameters *p, const struct tune_model_config *c, const struct tune_module *module, int unit, bool bias)
{
    struct tune_parameter *r = &p->at[p->count++];
    int64_t rows = module->out, columns = bias ? 0 : module->in;
    *r = (struct tune_parameter){.role = module->role, .kind = module->kind, .linear = module->linear, .bias = bias, .unit = unit,
                                 .trainable = true, .fused = module->fused, .gradient = -1, .lr_scale = 1, .weight_decay = -1,
                                 .storage = TUNE_F32, .read_dtype = TUNE_F32};
    int n = unit > 0 && unit <= c->layers ? snprintf(r->name, sizeof r->name, "model.layers.%d.", unit - 1) : 0;
    snprintf(r->name + n, sizeof r->name - (size_t)n, "%s.%s", module->name, bias ? "bias" : "weight");
    const char *dot = strrchr(module->name, '.');
    r->module = dot ? dot + 1 : module->name;
    r->ndim = rows > 0 && columns > 0 ? 2 : 1;
    r->shape[0] = rows > 0 ? rows : columns;
    r->shape[1] = r->ndim == 2 ? columns : 0;
    r->count = r->ndim == 2 ? rows * columns : r->shape[0];
}

/* Add the rows of a unit: of fused modules first all weights, then all biases. */
static void add_unit(struct tune_parameters *p, const struct tune_model_config *c, int unit)
{
    struct tune_layer *l = &p->unit[unit];
    tune_layer_make(l, c, unit);
    for (int i = 0, end; i < l->count; i = end) {
        for (end = i + 1; end < l->count && l->module[end].fused; end++)
            ;
        for (int k = i; k < end; k++)
            add(p, c, &l->module[k], unit, false);
        for (int k = i; k < end; k++)
            if (l->module[k].bias)
                add(p, c, &l->module[k], unit, true);
    }
}

int tune_parameters_new(struct tune_parameters *p, const struct tune_model_config *c)
{
    size_t units = (size_t)c->layers + 2, room = units * 2 * TUNE_LAYER_MODULES;
    *p = (struct tune_parameters){.at = calloc(room, sizeof *p->at), .room = (int)room, .unit = calloc(units, sizeof *p->unit)};
    if (!p->at || !p->unit)
        return tune_error_no_memory("the table of parameters");
    for (int unit = 0; unit <= c->layers + 1; unit++)
        add_unit(p, c, unit);
    p->base = p->count;
    set_base_offsets(p);
    tune_parameters_set_offsets(p);
    return 0;
}

bool tune_parameter_is_norm(const struct tune_parameter *p)
{
    return p->kind == TUNE_MODULE_NORM;
}

bool tune_parameter_is_linear(const struct tune_parameter *p)
{
    return p->kind == TUNE_MODULE_LINEAR && !p->bias;
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
    set_base_offsets(p);
    tune_parameters_set_offsets(p);
    return 0;
}

struct tune_parameter *tune_parameters_append(struct tune_parameters *p, const char *name, enum tune_role role, int unit,
                                              bool fused, int64_t rows, int64_t columns)
{
    struct tune_parameter *more = p->at, *r;
    if (p->count == p->room) {
        more = realloc(p->at, sizeof *more * (size_t)p->room * 2);
        if (more) {
            p->at = more;
            p->room *= 2;
        }
    }
    if (!more || strlen(name) >= sizeof r->name) {
        tune_error_cannot("%s: %s", name,
                          more ? "the name is too long for the table of parameters"
                               : "no memory for the table of parameters");
        return NULL;
    }
    r = &p->at[p->count++];
    *r = (struct tune_parameter){.ndim = columns > 0 ? 2 : 1, .shape = {rows, columns},
                                 .count = columns > 0 ? rows * columns : rows, .role = role, .unit = unit, .trainable = true, .fused = fused,
                                 .kind = role == TUNE_EMBEDDING ? TUNE_MODULE_EMBEDDING : role == TUNE_OUTPUT ? TUNE_MODULE_HEAD : TUNE_MODULE_ADAPTER,
                                 .gradient = -1, .lr_scale = 1, .weight_decay = -1, .adapter = true, .storage = TUNE_F32, .read_dtype = TUNE_F32};
    snprintf(r->name, sizeof r->name, "%s", name);
    set_offset(r, &p->adapters);
    return r;
}

void tune_parameters_free(struct tune_parameters *p)
{
    free(p->at);
    free(p->unit);
    *p = (struct tune_parameters){0};
}

struct tune_parameter *tune_parameters_find(const struct tune_parameters *p, const char *name)
{
    for (int i = p->count - 1; i >= 0; i--)
        if (strcmp(p->at[i].name, name) == 0)
            return &p->at[i];
    return NULL;
}

void tune_parameters_set_offsets(struct tune_parameters *p)
{
    p->gradients = 0;
    for (int i = 0; i < p->count; i++) {
        struct tune_parameter *r = &p->at[i], *before = i > 0 ? r - 1 : NULL;
        r->gradient = -1;
        if (!r->trainable)
            continue;
        if (!r->fused || !before || before->gradient < 0)
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
