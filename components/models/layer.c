/* layer.c - the modules of each unit of a model. */
#include "models/layer.h"

#include <assert.h>

#include "models/families/family.h"

void tune_layer_add(struct tune_layer *l, struct tune_module module)
{
    assert(l->count < TUNE_LAYER_MODULES);
    l->module[l->count++] = module;
}

void tune_layer_add_norm(struct tune_layer *l, const char *name, enum tune_role role, int64_t n)
{
    tune_layer_add(l, (struct tune_module){name, role, TUNE_MODULE_NORM, .in = n});
}

void tune_layer_add_linear(struct tune_layer *l, const char *name, enum tune_role role, enum tune_layer_linear linear, int64_t out,
                           int64_t in, bool bias)
{
    const struct tune_module *before = l->count > 0 ? &l->module[l->count - 1] : NULL;
    bool fused = before && before->kind == TUNE_MODULE_LINEAR && before->linear == linear;
    tune_layer_add(l, (struct tune_module){name, role, TUNE_MODULE_LINEAR, linear, out, in, bias, fused});
}

void tune_layer_make(struct tune_layer *l, const struct tune_model_config *c, int unit)
{
    *l = (struct tune_layer){0};
    if (unit == 0) {
        tune_layer_add(l, (struct tune_module){"model.embed_tokens", TUNE_EMBEDDING, TUNE_MODULE_EMBEDDING, .out = c->vocabulary, .in = c->hidden});
    } else if (unit <= c->layers) {
        tune_family_of(c)->layer(l, c, unit - 1);
    } else {
        tune_layer_add_norm(l, "model.norm", TUNE_FINAL_NORM, c->hidden);
        if (!c->tied)
            tune_layer_add(l, (struct tune_module){"lm_head", TUNE_OUTPUT, TUNE_MODULE_HEAD, .out = c->vocabulary, .in = c->hidden});
    }
}

const struct tune_module *tune_layer_has(const struct tune_layer *l, enum tune_role role)
{
    for (int i = 0; i < l->count; i++)
        if (l->module[i].role == role)
            return &l->module[i];
    return NULL;
}

const struct tune_module *tune_layer_linear(const struct tune_layer *l, enum tune_layer_linear linear, int64_t *out, int64_t *in)
{
    const struct tune_module *first = NULL;
    *out = *in = 0;
    for (int i = 0; i < l->count; i++) {
        const struct tune_module *module = &l->module[i];
        if (module->kind != TUNE_MODULE_LINEAR || module->linear != linear)
            continue;
        first = first ? first : module;
        *out += module->out;
        *in = module->in;
    }
    return first;
}

bool tune_layer_adds(const struct tune_layer *l, enum tune_layer_linear linear)
{
    return (linear == TUNE_LINEAR_O && !tune_layer_has(l, TUNE_POST_ATTENTION_NORM)) ||
           (linear == TUNE_LINEAR_DOWN && !tune_layer_has(l, TUNE_POST_MLP_NORM));
}
