/* adapter_config.c - read PEFT's keys. Which modules they name is read in adapter_modules.c. */
#include "adapters/adapter_config_parts.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/cjson.h"
#include "files/folder.h"
#include "core/error.h"
#include "files/file.h"
#include "core/try.h"

enum { LARGEST = 4 << 20 };

static const char file_name[] = "adapter_config.json";

/* Keys that PEFT 0.21 writes. advice NULL: the key is read below, or does not change the numbers.
 * Otherwise the key must be absent, null, false or empty. */
static const struct {
    const char *name, *advice;
} keys[] = {
    {"alpha_pattern", NULL},
    {"alora_invocation_tokens", "activated LoRA is not supported"},
    {"arrow_config", "routing between adapters is not supported"},
    {"auto_mapping", NULL},
    {"base_model_name_or_path", NULL},
    {"bias", NULL},
    {"corda_config", NULL},
    {"ensure_weight_tying", NULL},
    {"eva_config", NULL},
    {"exclude_modules", NULL},
    {"fan_in_fan_out", NULL}, /* of weights stored [in, out], which these models do not have: PEFT takes it as false */
    {"inference_mode", NULL},
    {"init_lora_weights", NULL},
    {"kasa_config", "KaSA cuts singular values off the base; merge the adapter with PEFT"},
    {"layer_replication", "repeated layers are not supported; merge the adapter with PEFT"},
    {"layers_pattern", NULL},
    {"layers_to_transform", NULL},
    {"loftq_config", NULL},
    {"lora_alpha", NULL},
    {"lora_bias", "a bias of lora_B is not supported; train with lora_bias false, or merge the adapter with PEFT"},
    {"lora_dropout", NULL},
    {"lora_ga_config", NULL},
    {"megatron_config", "Megatron's parallel layers are not supported"},
    {"megatron_core", NULL},
    {"modules_to_save", NULL},
    {"monteclora_config", "MonteCLoRA is not supported"},
    {"peft_type", NULL},
    {"peft_version", NULL},
    {"qalora_group_size", NULL},
    {"r", NULL},
    {"rank_pattern", NULL},
    {"revision", NULL},
    {"target_modules", NULL},
    {"target_parameters", "adapters of bare parameters are not supported; name linear layers in target_modules"},
    {"task_type", NULL},
    {"trainable_token_indices", "trained rows of the embedding are not supported; merge the adapter with PEFT"},
    {"use_bdlora", "block-diagonal LoRA is not supported"},
    {"use_dora", NULL},
    {"use_qalora", "QALoRA is not supported"},
    {"use_rslora", NULL},
    {"velora_config", "VeLoRA is not supported"},
};
enum { KEYS = sizeof keys / sizeof *keys };

const cJSON *tune_adapter_key(const struct tune_adapter_reader *r, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(r->json, key);
    return cJSON_IsNull(v) ? NULL : v;
}

int tune_adapter_refuse(const struct tune_adapter_reader *r, const char *key, const char *why)
{
    char *value = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(r->json, key));
    tune_error_set("%s: \"%s\" is %.200s: %s", r->path, key, value ? value : "?", why);
    cJSON_free(value);
    return -1;
}

static int no_memory(const struct tune_adapter_reader *r)
{
    return tune_error_no_memory("reading %s", r->path);
}

bool tune_adapter_is_empty(const cJSON *v)
{
    return !v || cJSON_IsFalse(v) || ((cJSON_IsArray(v) || cJSON_IsObject(v)) && !v->child) ||
           (cJSON_IsString(v) && !v->valuestring[0]);
}

static int check_keys(const struct tune_adapter_reader *r, struct tune_adapter_config *c)
{
    size_t size;
    FILE *unknown = NULL;
    int seen[KEYS] = {0};
    for (const cJSON *v = r->json->child; v; v = v->next) {
        int k = 0;
        while (k < KEYS && strcmp(v->string, keys[k].name) != 0)
            k++;
        if (k < KEYS && seen[k]++) /* readers differ in which one they use */
            tune_error_set("%s: \"%s\" is there twice", r->path, v->string);
        if (k < KEYS && seen[k] > 1)
            break;
        if (k == KEYS && !unknown && !(unknown = open_memstream(&c->unknown, &size)))
            break;
        if (k == KEYS && ftell(unknown) < 1000)
            fprintf(unknown, "%s%.60s", ftell(unknown) ? ", " : "", v->string);
    }
    if (unknown)
        fclose(unknown);
    for (int k = 0; k < KEYS; k++) {
        if (seen[k] > 1)
            return -1;
        if (keys[k].advice && !tune_adapter_is_empty(tune_adapter_key(r, keys[k].name)))
            return tune_adapter_refuse(r, keys[k].name, keys[k].advice);
    }
    return 0;
}

int tune_adapter_flag(const struct tune_adapter_reader *r, const char *key, bool *value)
{
    const cJSON *v = tune_adapter_key(r, key);
    if (v && !cJSON_IsBool(v))
        return tune_adapter_refuse(r, key, "expected true or false");
    *value = cJSON_IsTrue(v);
    return 0;
}

static int read_number(const struct tune_adapter_reader *r, const char *key, double least, double most, double missing, double *value)
{
    const cJSON *v = tune_adapter_key(r, key);
    *value = v && cJSON_IsNumber(v) ? v->valuedouble : missing;
    if ((v && !cJSON_IsNumber(v)) || !(*value >= least && *value <= most)) {
        char why[80];
        snprintf(why, sizeof why, "expected a number from %g to %g", least, most);
        return tune_adapter_refuse(r, key, why);
    }
    return 0;
}

/* The string of key must be in `allowed`, where a space follows each entry. It may be absent. */
static int check_text(const struct tune_adapter_reader *r, const char *key, const char *allowed, const char *why)
{
    const cJSON *v = tune_adapter_key(r, key);
    size_t n = v && cJSON_IsString(v) ? strlen(v->valuestring) : 0;
    if (!v)
        return 0;
    for (const char *at = allowed; n && *at; at += strcspn(at, " ") + 1)
        if (strcspn(at, " ") == n && strncmp(at, v->valuestring, n) == 0)
            return 0;
    return tune_adapter_refuse(r, key, why);
}

/* Check the kind of adapter, task and base. */
static int check_kind(const struct tune_adapter_reader *r)
{
    const cJSON *init = tune_adapter_key(r, "init_lora_weights");
    if (!tune_adapter_key(r, "peft_type"))
        return tune_error_set("%s: no \"peft_type\"; expected \"LORA\": this is no adapter of "
                              "PEFT's", r->path);
    TRY(check_text(r, "peft_type", "LORA ", "the one kind of adapter that is supported is \"LORA\""));
    TRY(check_text(r, "task_type", "CAUSAL_LM ", "the one task that is supported is \"CAUSAL_LM\""));
    TRY(check_text(r, "bias", "none ",
                   "trained biases of the base are not supported; train with \"none\", or merge the adapter with PEFT"));
    if (init && !cJSON_IsBool(init)) /* the other methods change the base before training */
        TRY(check_text(r, "init_lora_weights", "gaussian orthogonal eva ",
                       "this beginning changes the base's weights, and the adapter is one of the changed base; have PEFT "
                       "convert it (save_pretrained with path_initial_model_for_weight_conversion)"));
    return 0;
}

static int read_all(const struct tune_adapter_reader *r, struct tune_adapter_config *c)
{
    double rank;
    const cJSON *base;
    if (!cJSON_IsObject(r->json))
        return tune_error_set("%s: expected a JSON object", r->path);
    TRY(check_keys(r, c));
    TRY(check_kind(r));
    c->lora.loose = true; /* a list may be meant for several kinds of models */
    TRY(read_number(r, "r", 1, TUNE_LORA_MAX_RANK, 8, &rank));
    if (rank != floor(rank))
        return tune_adapter_refuse(r, "r", "expected a whole number");
    c->lora.r = (int)rank;
    TRY(read_number(r, "lora_alpha", 0, TUNE_LORA_MAX_ALPHA, 8, &c->lora.alpha));
    TRY(read_number(r, "lora_dropout", 0, 1, 0, &c->lora.dropout));
    if (c->lora.alpha == 0 || c->lora.dropout == 1)
        return tune_adapter_refuse(r, c->lora.alpha == 0 ? "lora_alpha" : "lora_dropout", "nothing of the adapter is left with that");
    TRY(tune_adapter_flag(r, "use_rslora", &c->lora.rslora));
    TRY(tune_adapter_flag(r, "use_dora", &c->lora.dora));
    TRY(tune_adapter_modules_read(r, c));
    base = tune_adapter_key(r, "base_model_name_or_path");
    if (base && !cJSON_IsString(base))
        return tune_adapter_refuse(r, "base_model_name_or_path", "expected a text");
    if (base && !(c->base = strdup(base->valuestring)))
        return no_memory(r);
    return 0;
}

int tune_adapter_config_read(struct tune_adapter_config *c, const char *folder)
{
    struct tune_adapter_reader r;
    *c = (struct tune_adapter_config){0};
    TRY(tune_path(r.path, "%s/%s", folder, file_name));
    cJSON *json = tune_cjson_read_in(folder, file_name, LARGEST);
    if (!json && tune_folder_has(folder, "checkpoint-final"))
        return tune_error_set("%s is a run's folder, not an adapter's; give %s/checkpoint-final", folder, folder);
    if (!json)
        return -1;
    r.json = json;
    r.folder = folder;
    int status = read_all(&r, c);
    cJSON_Delete(json);
    if (status < 0)
        tune_adapter_config_free(c);
    return status;
}

void tune_adapter_config_free(struct tune_adapter_config *c)
{
    for (size_t i = 0; i < sizeof c->text / sizeof *c->text; i++)
        free(c->text[i]);
    free(c->base);
    free(c->unknown);
    free(c->remark);
    *c = (struct tune_adapter_config){0};
}
