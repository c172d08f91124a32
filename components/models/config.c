/* config.c - read config.json of transformers 4 and 5 into struct tune_model_config. */
#include "models/config.h"

#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "files/cjson.h"
#include "files/file.h"
#include "core/try.h"
#include "core/print.h"
#include "models/families/family.h"
#include "models/weights.h"

enum { MAX_CONFIG = 4 << 20 }; /* bytes; real files have a few thousand */

/* The value of a key. If the key occurs twice, the last one counts, as in Python. */
static const cJSON *find(const cJSON *object, const char *key)
{
    const cJSON *found = NULL;
    for (const cJSON *v = cJSON_IsObject(object) ? object->child : NULL; v; v = v->next)
        if (strcmp(v->string, key) == 0)
            found = v;
    return found;
}

const cJSON *tune_config_get(const cJSON *object, const char *key)
{
    const cJSON *v = find(object, key);
    return cJSON_IsNull(v) ? NULL : v;
}

int tune_config_number(const struct tune_config_reader *r, const cJSON *object, const char *key, double low, double high,
                       double missing, double *value)
{
    const cJSON *v = tune_config_get(object, key);
    if (!v) {
        *value = missing;
        if (!isnan(missing))
            return 0;
        return tune_error_set("%s: no \"%s\"; a model cannot be built without it", r->name, key);
    }
    if (!cJSON_IsNumber(v) || !(v->valuedouble >= low && v->valuedouble <= high)) {
        char *text = cJSON_PrintUnformatted(v);
        tune_error_set("%s: \"%s\" is %.60s, expected a number from %g to %g", r->name, key, text ? text : "?", low, high);
        cJSON_free(text);
        return -1;
    }
    *value = v->valuedouble;
    return 0;
}

int tune_config_whole(const struct tune_config_reader *r, const char *key, int low, int high, double missing, int *value)
{
    double d;
    TRY(tune_config_number(r, r->json, key, low, high, missing, &d));
    if (d != floor(d))
        return tune_error_set("%s: \"%s\" is %g, expected a whole number", r->name, key, d);
    *value = (int)d;
    return 0;
}

int tune_config_flag(const struct tune_config_reader *r, const char *key, bool missing, bool *value)
{
    const cJSON *v = tune_config_get(r->json, key);
    if (v && !cJSON_IsBool(v))
        return tune_error_set("%s: \"%s\" is not true or false", r->name, key);
    *value = v ? cJSON_IsTrue(v) : missing;
    return 0;
}

int tune_config_scalar(const struct tune_config_reader *r, const char *key, double missing, float *value)
{
    double d;
    TRY(tune_config_number(r, r->json, key, -1e30, 1e30, missing, &d));
    *value = (float)d;
    return 0;
}

int tune_config_text(const struct tune_config_reader *r, const cJSON *object, const char *key, const char **value)
{
    const cJSON *v = tune_config_get(object, key);
    *value = cJSON_IsString(v) ? v->valuestring : NULL;
    if (!v || *value)
        return 0;
    return tune_error_set("%s: \"%s\" is no string", r->name, key);
}

void tune_model_config_remark(struct tune_model_config *c, const char *text)
{
    size_t used = strlen(c->remarks);
    snprintf(c->remarks + used, sizeof c->remarks - used, "%s%s", used ? "\n" : "", text);
}

static const struct tune_family *const families[] = {
    &tune_family_llama, &tune_family_qwen2, &tune_family_qwen3, &tune_family_mistral, &tune_family_granite, &tune_family_smollm3, &tune_family_phi3,
    &tune_family_olmo2, &tune_family_gemma3,
};
enum { FAMILIES = sizeof families / sizeof *families };

const struct tune_family *tune_family_of(const struct tune_model_config *c)
{
    int i = 0;
    while (i < FAMILIES && strcmp(c->family, families[i]->type) != 0)
        i++;
    return i < FAMILIES ? families[i] : &tune_family_llama;
}

static int no_family(const char *name, const char *type)
{
    char known[256] = "";
    for (int i = 0; i < FAMILIES; i++)
        tune_append_item(known, sizeof known, "%s", families[i]->type);
    return type ? tune_error_set("%s: model_type \"%.60s\" is not supported; supported: %s", name, type, known)
                : tune_error_set("%s: no \"model_type\"; supported: %s", name, known);
}

/* True if a class has the same layers as LlamaForCausalLM: LlamaModel, LLaMAForCausalLM, LlamaForSequenceClassification. */
static bool is_of_class(const char *class, const char *known)
{
    size_t stem = strlen(known) - strlen("ForCausalLM");
    return strncasecmp(class, known, stem) == 0 && (!strncmp(class + stem, "For", 3) || !strcmp(class + stem, "Model"));
}

/* Find the family by model_type and architectures. */
static int read_family(struct tune_model_config *c, const struct tune_config_reader *r, const struct tune_family **family)
{
    const char *type;
    TRY(tune_config_text(r, r->json, "model_type", &type));
    const cJSON *first = cJSON_GetArrayItem(tune_config_get(r->json, "architectures"), 0);
    const char *class = cJSON_IsString(first) ? first->valuestring : NULL;
    for (int i = 0; i < FAMILIES && type; i++) {
        if (strcmp(type, families[i]->type) != 0)
            continue;
        if (class && !is_of_class(class, families[i]->class))
            return tune_error_set("%s: architecture \"%.60s\" is not supported; for model_type %s: %s", r->name, class, type,
                                  families[i]->class);
        snprintf(c->family, sizeof c->family, "%s", type);
        *family = families[i];
        return 0;
    }
    return no_family(r->name, type);
}

int tune_config_window_read(struct tune_model_config *c, const struct tune_config_reader *r, int from, bool by_layer)
{
    if (cJSON_IsNull(find(r->json, "sliding_window")))
        return 0;
    TRY(tune_config_whole(r, "sliding_window", 1, INT_MAX, 4096, &c->window));
    const cJSON *types = by_layer ? tune_config_get(r->json, "layer_types") : NULL;
    if (types && cJSON_GetArraySize(types) != c->layers)
        return tune_error_set("%s: \"layer_types\" has %d entries, \"num_hidden_layers\" is %d", r->name,
                              cJSON_GetArraySize(types), c->layers);
    for (int i = 0; i < c->layers; i++) {
        const cJSON *type = cJSON_GetArrayItem(types, i);
        const char *kind = cJSON_IsString(type) ? type->valuestring : "?";
        c->sliding[i] = types ? strcmp(kind, "sliding_attention") == 0 : i >= from;
        if (types && !c->sliding[i] && strcmp(kind, "full_attention") != 0)
            return tune_error_set("%s: \"layer_types\" has \"%.40s\"; supported: full_attention, sliding_attention", r->name,
                                  kind);
    }
    return 0;
}

static int read_sizes(struct tune_model_config *c, const struct tune_config_reader *r, const struct tune_family *family)
{
    TRY(tune_config_whole(r, "vocab_size", 1, 1 << 24, NAN, &c->vocabulary));
    TRY(tune_config_whole(r, "hidden_size", 1, 1 << 17, NAN, &c->hidden));
    TRY(tune_config_whole(r, "intermediate_size", 1, 1 << 20, NAN, &c->ffn));
    TRY(tune_config_whole(r, "num_hidden_layers", 1, TUNE_MAX_LAYERS, NAN, &c->layers));
    TRY(tune_config_whole(r, "num_attention_heads", 1, 1 << 14, NAN, &c->heads));
    int kv_heads = family->kv_heads && !find(r->json, "num_key_value_heads") ? family->kv_heads : c->heads; /* null: heads */
    TRY(tune_config_whole(r, "num_key_value_heads", 1, 1 << 14, kv_heads, &c->kv_heads));
    TRY(tune_config_whole(r, "max_position_embeddings", 1, 1 << 28, family->max_positions, &c->max_positions));
    if (!tune_config_get(r->json, "head_dim") && c->hidden % c->heads != 0)
        return tune_error_set(
            "%s: \"hidden_size\" %d does not divide by \"num_attention_heads\" %d and there is no \"head_dim\"", r->name,
            c->hidden, c->heads);
    TRY(tune_config_whole(r, "head_dim", 2, 1 << 14, family->head_dim ? family->head_dim : c->hidden / c->heads, &c->head_dim));
    if (c->heads % c->kv_heads != 0)
        return tune_error_set("%s: \"num_attention_heads\" %d does not divide by \"num_key_value_heads\" %d%s", r->name,
                              c->heads, c->kv_heads, find(r->json, "num_key_value_heads") ? "" : ", the default of this family");
    if (c->head_dim % 2 != 0)
        return tune_error_set("%s: \"head_dim\" %d is odd; rotary embedding needs pairs", r->name, c->head_dim);
    return 0;
}

/* Refuse settings that would change the numbers and are not supported. */
static int refuse_unsupported(const struct tune_config_reader *r)
{
    const char *act;
    TRY(tune_config_text(r, r->json, "hidden_act", &act));
    if (act && strcmp(act, "silu") != 0 && strcmp(act, "swish") != 0)
        return tune_error_set("%s: \"hidden_act\" \"%.40s\" is not supported; supported: silu", r->name, act);
    const cJSON *by_layer = tune_config_get(r->json, "per_layer_config");
    if (by_layer && (!cJSON_IsObject(by_layer) || by_layer->child))
        return tune_error_set("%s: \"per_layer_config\": layers that differ from one another are not supported; the model must be "
                              "the same in each layer", r->name);
    if (tune_config_get(r->json, "quantization_config"))
        return tune_error_set(
            "%s: \"quantization_config\": quantised weights are not supported; use the model's F32, F16 or BF16 "
            "folder",
            r->name);
    return 0;
}

static int read_numbers(struct tune_model_config *c, const struct tune_config_reader *r, const struct tune_family *family)
{
    double eps;
    TRY(tune_config_number(r, r->json, "rms_norm_eps", 0, 1, family->norm_eps > 0 ? family->norm_eps : 1e-6, &eps));
    c->norm_eps = (float)eps;
    TRY(tune_config_scalar(r, "attention_dropout", 0, &c->attention_dropout));
    TRY(tune_config_scalar(r, "initializer_range", 0.02, &c->initializer_range));
    TRY(tune_config_flag(r, "tie_word_embeddings", family->tied, &c->tied));
    c->embedding_multiplier = c->residual_multiplier = c->logits_scaling = 1;
    c->attention_scale = (float)(1 / sqrt((double)c->head_dim));
    const char *dtype;
    TRY(tune_config_text(r, r->json, "dtype", &dtype));
    if (!dtype)
        TRY(tune_config_text(r, r->json, "torch_dtype", &dtype));
    int found = dtype ? tune_dtype_from(dtype) : TUNE_F32;
    c->dtype = found >= 0 && found <= TUNE_F16 ? (enum tune_dtype)found : TUNE_F32;
    return 0;
}

int tune_model_config_parse(struct tune_model_config *c, const struct cJSON *json, const char *name)
{
    struct tune_config_reader r = {json, name};
    *c = (struct tune_model_config){0};
    if (!cJSON_IsObject(json))
        return tune_error_set("%s: expected a JSON object", name);
    const struct tune_family *family = NULL;
    TRY(read_family(c, &r, &family));
    TRY(read_sizes(c, &r, family));
    TRY(refuse_unsupported(&r));
    TRY(read_numbers(c, &r, family));
    TRY(family->read(c, &r));
    return family->rotary ? family->rotary(c, &r) : tune_rotary_read_one(c, &r, family);
}

int tune_model_config_read(struct tune_model_config *c, const char *folder)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/config.json", folder));
    cJSON *json = tune_cjson_read_in(folder, "config.json", MAX_CONFIG);
    if (!json)
        return -1;
    int status = tune_model_config_parse(c, json, path);
    cJSON_Delete(json);
    if (status == 0 && c->tied && tune_weights_own_head(folder)) {
        c->tied = false;
        tune_model_config_remark(c, "config.json ties the output projection to the embedding, but lm_head.weight is stored and is "
                                    "another: it is used, as in transformers 5");
    }
    return status;
}

/* Weights that are multiplied with every token, without the output projection. */
static int64_t matmul_weights(const struct tune_model_config *c)
{
    int64_t weights = 0;
    for (int i = 1; i <= c->layers; i++) {
        struct tune_layer l;
        tune_layer_make(&l, c, i);
        for (int k = 0; k < l.count; k++)
            weights += l.module[k].out * l.module[k].in;
    }
    return weights;
}

double tune_model_config_flops(const struct tune_model_config *c, double T)
{
    double weights = (double)matmul_weights(c) + (double)c->vocabulary * c->hidden;
    return 6 * weights + 6.0 * c->layers * T * c->heads * c->head_dim;
}
