/* keys.c - general keys and those of the family. What llama.cpp would compute otherwise is refused.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "export.h"
#include "files/cjson.h"

static int put_u32(struct export *e, const char *name, uint32_t value)
{
    char key[EXPORT_KEY];
    return tune_gguf_put_u32(e->out, export_key(e, name, key), value);
}

static int put_float(struct export *e, const char *name, double value)
{
    char key[EXPORT_KEY];
    return tune_gguf_put_float(e->out, export_key(e, name, key), value);
}

/* ---- what llama.cpp has ---- */

static int refuse(const struct export *e, const char *what)
{
    return tune_error_set("%s: llama.cpp has no %s for \"%s\"; the file would not load, or answer "
                          "otherwise",
                          e->m.folder, what, e->family->arch);
}

static int check_rotary(const struct export *e)
{
    const struct tune_rotary *r = e->m.config.rotary;
    unsigned can = e->family->can;
    if (r[0].kind == TUNE_ROPE_LLAMA3 && !(can & EXPORT_FREQS))
        return refuse(e, "rope type \"llama3\"");
    if (r[0].kind == TUNE_ROPE_LONG && !(can & EXPORT_LONG))
        return refuse(e, "rope type \"longrope\"");
    if (!(can & EXPORT_WINDOW) || r[1].dims == 0)
        return 0;
    return r[1].kind == TUNE_ROPE_DEFAULT && r[0].kind != TUNE_ROPE_LLAMA3
               ? 0
               : refuse(e, "scaled rotary embedding of layers with a window");
}

/* llama.cpp skips the rotary embedding of each fourth layer of SmolLM3, and of no other model. */
static int check_unrotated(const struct export *e)
{
    bool each_fourth = strcmp(e->family->arch, "smollm3") == 0;
    for (int i = 0; i < e->m.config.layers; i++)
        if (e->m.config.unrotated[i] != (each_fourth && (i + 1) % 4 == 0))
            return tune_error_set("%s: llama.cpp leaves out the rotary embedding of each fourth "
                                  "layer of smollm3, and of no other layer; layer %d "
                                  "of this model differs (\"no_rope_layers\")",
                                  e->m.folder, i);
    return 0;
}

/* The factor on the attention's products that llama.cpp takes where it reads none. */
static double usual_scale(const struct export *e)
{
    const struct tune_model_config *c = &e->m.config;
    bool largest = strcmp(e->family->arch, "gemma3") == 0 && c->layers == 62;
    return 1 / sqrt(largest ? (double)c->hidden / c->heads : (double)c->head_dim);
}

static bool has_multipliers(const struct export *e)
{
    return strcmp(e->family->arch, "granite") == 0;
}

static int check_scales(const struct export *e)
{
    const struct tune_model_config *c = &e->m.config;
    char what[160];
    if (has_multipliers(e) || fabs((double)c->attention_scale / usual_scale(e) - 1) < 1e-5)
        return 0;
    snprintf(what, sizeof what,
             "key for the attention's scale, and takes %g where this model has %g "
             "(\"query_pre_attn_scalar\")",
             usual_scale(e), (double)c->attention_scale);
    return refuse(e, what);
}

int export_check(struct export *e)
{
    const struct tune_model_config *c = &e->m.config;
    unsigned can = e->family->can;
    int sliding = 0;
    if (c->out_bias && !(can & EXPORT_OUT_BIAS))
        return refuse(e, "bias of attn_output (\"attention_bias\")");
    if (c->mlp_bias && !(can & EXPORT_MLP_BIAS))
        return refuse(e, "bias of ffn_gate (\"mlp_bias\")");
    if (c->heads * c->head_dim != c->hidden && !(can & EXPORT_ANY_HEAD))
        return refuse(e, "\"head_dim\" other than hidden_size / num_attention_heads");
    TRY(check_rotary(e));
    TRY(check_unrotated(e));
    TRY(check_scales(e));
    for (int i = 0; i < c->layers; i++)
        sliding += c->window > 0 && c->sliding[i];
    if (sliding && !(can & EXPORT_WINDOW) && c->window < c->max_positions)
        fprintf(e->notes,
                "llama.cpp has no windows for \"%s\": in %d layers it looks back further than the "
                "%d positions of this model, so longer "
                "texts get other answers\n",
                e->family->arch, sliding, c->window);
    return 0;
}

/* ---- keys ---- */

static const char *size_label(int64_t count, char text[32])
{
    double n = (double)count;
    const char *unit = n > 1e9 ? "B" : n > 1e6 ? "M" : "K";
    n /= n > 1e9 ? 1e9 : n > 1e6 ? 1e6 : 1e3;
    snprintf(text, 32, "%.*f%s", n < 9.5 ? 1 : 0, n, unit);
    return text;
}

int export_general(struct export *e, const char *type, int file_type)
{
    char label[32];
    TRY(tune_gguf_put_text(e->out, "general.architecture", e->family->arch));
    TRY(tune_gguf_put_text(e->out, "general.type", type));
    TRY(tune_gguf_put_text(e->out, "general.name", e->name));
    if (strcmp(type, "model") == 0)
        TRY(tune_gguf_put_text(e->out, "general.size_label",
                               size_label(tune_parameters_total(&e->m.table), label)));
    TRY(tune_gguf_put_u32(e->out, "general.file_type", (uint32_t)file_type));
    for (int i = 0; i < e->count; i++)
        if (e->tensors[i].block > TUNE_GGUF_BF16)
            return tune_gguf_put_u32(e->out, "general.quantization_version", 2);
    return 0;
}

/* A number of the object with the rotary keys, as config.json spells it. missing: it has none. */
static double rope_number(const cJSON *config, const char *key, double missing)
{
    const cJSON *rope = cJSON_GetObjectItemCaseSensitive(config, "rope_scaling");
    if (!cJSON_IsObject(rope) || !rope->child)
        rope = cJSON_GetObjectItemCaseSensitive(config, "rope_parameters");
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(rope, key);
    return cJSON_IsNumber(v) ? v->valuedouble : cJSON_IsFalse(v) ? 0 : missing;
}

/* llama.cpp multiplies sines and cosines by 1 + 0.1 log(factor), and by attn_factor. */
static int put_yarn(struct export *e, const struct tune_rotary *r)
{
    char key[EXPORT_KEY];
    cJSON *config = tune_cjson_read_in(e->m.folder, "config.json", (size_t)4 << 20);
    if (!config)
        return -1;
    double fast = rope_number(config, "beta_fast", 32), slow = rope_number(config, "beta_slow", 1),
           whole = rope_number(config, "truncate", 1);
    cJSON_Delete(config);
    if (whole == 0)
        return refuse(e, "yarn with \"truncate\" false");
    TRY(tune_gguf_put_text(e->out, export_key(e, "rope.scaling.type", key), "yarn"));
    TRY(put_float(e, "rope.scaling.factor", r->factor));
    TRY(put_u32(e, "rope.scaling.original_context_length", (uint32_t)r->original));
    TRY(put_float(e, "rope.scaling.yarn_beta_fast", fast));
    TRY(put_float(e, "rope.scaling.yarn_beta_slow", slow));
    double usual = 1 + 0.1 * log(r->factor);
    return fabs(r->scale / usual - 1) < 1e-6
               ? 0
               : put_float(e, "rope.scaling.attn_factor", r->scale / usual);
}

static int put_rotary(struct export *e)
{
    const struct tune_model_config *c = &e->m.config;
    const struct tune_rotary *r = &c->rotary[0];
    char key[EXPORT_KEY];
    TRY(put_u32(e, "rope.dimension_count", (uint32_t)r->dims));
    TRY(put_float(e, "rope.freq_base", r->theta));
    if (r->kind == TUNE_ROPE_LINEAR) {
        TRY(tune_gguf_put_text(e->out, export_key(e, "rope.scaling.type", key), "linear"));
        return put_float(e, "rope.scaling.factor", r->factor);
    }
    if (r->kind == TUNE_ROPE_YARN)
        return put_yarn(e, r);
    bool phi = strcmp(e->family->arch, "phi3") == 0;
    if (r->kind == TUNE_ROPE_LONG) {
        TRY(tune_gguf_put_text(e->out, export_key(e, "rope.scaling.type", key), "longrope"));
        TRY(put_float(e, "rope.scaling.attn_factor", r->scale));
        fprintf(e->notes,
                "llama.cpp takes the long factors for every text if its context (-c) is above %d, "
                "and the short ones else\n",
                r->original);
    }
    if (r->kind == TUNE_ROPE_LONG || phi)
        return put_u32(e, "rope.scaling.original_context_length",
                       (uint32_t)(r->original ? r->original : c->max_positions));
    return 0;
}

static int put_windows(struct export *e)
{
    const struct tune_model_config *c = &e->m.config;
    char key[EXPORT_KEY];
    bool usual = true;
    TRY(put_u32(e, "attention.sliding_window", (uint32_t)c->window));
    for (int i = 0; i < c->layers; i++)
        usual = usual && c->sliding[i] == ((i + 1) % 6 != 0);
    if (!usual)
        TRY(tune_gguf_put_array(e->out, export_key(e, "attention.sliding_window_pattern", key),
                                TUNE_GGUF_BOOL, (uint64_t)c->layers, c->sliding));
    return put_float(e, "rope.freq_base_swa", c->rotary[1].theta);
}

int export_keys(struct export *e)
{
    const struct tune_model_config *c = &e->m.config;
    bool phi = strcmp(e->family->arch, "phi3") == 0;
    TRY(put_u32(e, "block_count", (uint32_t)c->layers));
    TRY(put_u32(e, "context_length", (uint32_t)c->max_positions));
    TRY(put_u32(e, "embedding_length", (uint32_t)c->hidden));
    TRY(put_u32(e, "feed_forward_length", (uint32_t)c->ffn));
    TRY(put_u32(e, "attention.head_count", (uint32_t)c->heads));
    TRY(put_u32(e, "attention.head_count_kv", (uint32_t)c->kv_heads));
    TRY(put_float(e, "attention.layer_norm_rms_epsilon", (double)c->norm_eps));
    TRY(put_u32(e, "vocab_size", (uint32_t)c->vocabulary));
    if (c->heads * c->head_dim != c->hidden || e->family->can & EXPORT_WINDOW) {
        TRY(put_u32(e, "attention.key_length", (uint32_t)c->head_dim));
        TRY(put_u32(e, "attention.value_length", (uint32_t)c->head_dim));
    }
    TRY(put_rotary(e));
    if (e->family->can & EXPORT_WINDOW)
        TRY(put_windows(e));
    else if (phi) /* 0 tells llama.cpp that there are none */
        TRY(put_u32(e, "attention.sliding_window", (uint32_t)c->window));
    if (!has_multipliers(e))
        return 0;
    TRY(put_float(e, "attention.scale", (double)c->attention_scale));
    TRY(put_float(e, "embedding_scale", (double)c->embedding_multiplier));
    TRY(put_float(e, "residual_scale", (double)c->residual_multiplier));
    return put_float(e, "logit_scale", (double)c->logits_scaling);
}
