/* gemma3.c - Gemma 3, its language model. Norms are before and behind attention and MLP, and their
 * weights count from 1. The gate is GELU. Most layers have a window, and rotary angles of their
 * own. */
#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "models/families/family.h"

/* Read which layers have the window: "layer_types", else all but each sixth. */
static int read_windows(struct tune_model_config *c, const struct tune_config_reader *r)
{
    int each;
    TRY(tune_config_whole(r, "sliding_window_pattern", 1, INT_MAX, 6, &each));
    TRY(tune_config_window_read(c, r, 0, true));
    if (c->window == 0)
        return tune_error_set("%s: \"sliding_window\" is null; expected a number of positions", r->name);
    for (int i = 0; i < c->layers && !tune_config_get(r->json, "layer_types"); i++)
        c->sliding[i] = (i + 1) % each != 0;
    return 0;
}

/* Refuse settings of this family that would change the numbers. */
static int refuse(const struct tune_config_reader *r)
{
    const char *gate;
    bool both_ways;
    TRY(tune_config_text(r, r->json, "hidden_activation", &gate));
    TRY(tune_config_flag(r, "use_bidirectional_attention", false, &both_ways));
    if (gate && strcmp(gate, "gelu_pytorch_tanh") != 0)
        return tune_error_set("%s: \"hidden_activation\" \"%.40s\" is not supported; supported: gelu_pytorch_tanh", r->name, gate);
    if (both_ways)
        return tune_error_set("%s: \"use_bidirectional_attention\" is not supported; supported: false", r->name);
    for (int i = 0; i < 2; i++) {
        const char *key = i ? "attn_logit_softcapping" : "final_logit_softcapping";
        if (tune_config_get(r->json, key))
            return tune_error_set("%s: \"%s\" is not supported; supported: null", r->name, key);
    }
    return 0;
}

static int read(struct tune_model_config *c, const struct tune_config_reader *r)
{
    double scalar;
    TRY(refuse(r));
    TRY(read_windows(c, r));
    TRY(tune_config_number(r, r->json, "query_pre_attn_scalar", 1e-6, 1e6, 256, &scalar));
    TRY(tune_config_flag(r, "attention_bias", false, &c->qkv_bias));
    c->out_bias = c->qkv_bias;
    c->attention_scale = (float)(1 / sqrt(scalar));
    c->embedding_multiplier = (float)sqrt((double)c->hidden);
    c->scaled_embedding = true;
    c->norm_plus = 1;
    c->qk_norm = true;
    return 0;
}

/* Keys of transformers 5: an object for each type of layer. Of 4: rope_theta and rope_scaling for layers without a window,
 * rope_local_base_freq for the others. What rope_scaling has holds before what the object has, as in transformers. */
static int rotary(struct tune_model_config *c, const struct tune_config_reader *r)
{
    double whole, local;
    const cJSON *both = tune_config_get(r->json, "rope_parameters"), *old = tune_config_get(r->json, "rope_scaling");
    const cJSON *full = tune_config_get(both, "full_attention"), *scaling = old && old->child ? old : full;
    TRY(tune_config_number(r, r->json, "rope_theta", 1, 1e12, 1e6, &whole));
    TRY(tune_config_number(r, full, "rope_theta", 1, 1e12, whole, &whole));
    TRY(tune_config_number(r, r->json, "rope_local_base_freq", 1, 1e12, 1e4, &local));
    if (scaling == old && full && full->child && !tune_config_get(old, "rope_type"))
        return tune_error_set("%s: \"rope_scaling\" beside \"rope_parameters\" has no \"rope_type\"; leave one of them out", r->name);
    TRY(tune_rotary_read(c, r, scaling, whole, &c->rotary[0]));
    TRY(tune_rotary_read(c, r, tune_config_get(both, "sliding_attention"), local, &c->rotary[1]));
    return c->long_from == 0 ? 0 : tune_error_set("%s: rope type \"longrope\" is not supported for model_type %s", r->name, c->family);
}

static void layer(struct tune_layer *l, const struct tune_model_config *c, int i)
{
    tune_llama_layer(l, c, i);
    l->gate = TUNE_GATE_GELU;
    l->rotary = c->sliding[i] ? 1 : 0;
    for (int n = 0; n < l->count; n++)
        if (l->module[n].role == TUNE_MLP_NORM)
            l->module[n].name = "pre_feedforward_layernorm";
    tune_layer_add_norm(l, "post_attention_layernorm", TUNE_POST_ATTENTION_NORM, c->hidden);
    tune_layer_add_norm(l, "post_feedforward_layernorm", TUNE_POST_MLP_NORM, c->hidden);
}

const struct tune_family tune_family_gemma3 = {
    .type = "gemma3_text", .class = "Gemma3ForCausalLM", .kv_heads = 4, .head_dim = 256, .max_positions = 131072, .tied = true,
    .read = read, .rotary = rotary, .layer = layer};
