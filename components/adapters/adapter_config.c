/* adapter_config.c - read PEFT's keys; convert lists, patterns and simple regular expressions to
 * names. */
#include "adapters/adapter_config_parts.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "files/cjson.h"
#include "files/folder.h"
#include "core/error.h"
#include "files/file.h"
#include "core/print.h"
#include "core/try.h"

enum { LARGEST = 4 << 20, MAX_NAMES = 8192, MAX_NAME = 255, MAX_EXPRESSION = 4096 };

static const char file_name[] = "adapter_config.json";

static const char all_linear[] = "all-linear";

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
    {"fan_in_fan_out", "it is for weights stored [in, out], which these models do not have; set it to false"},
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

struct reader {
    const cJSON *json;
    char path[TUNE_PATH_MAX];
};

/* A member that exists and is not null. */
static const cJSON *get(const struct reader *r, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(r->json, key);
    return cJSON_IsNull(v) ? NULL : v;
}

/* Report an error: the key, its value (shortened) and the reason. */
static int refuse(const struct reader *r, const char *key, const char *why)
{
    char *value = cJSON_PrintUnformatted(cJSON_GetObjectItemCaseSensitive(r->json, key));
    tune_error_set("%s: \"%s\" is %.200s: %s", r->path, key, value ? value : "?", why);
    cJSON_free(value);
    return -1;
}

static int no_memory(const struct reader *r)
{
    return tune_error_no_memory("reading %s", r->path);
}

static bool is_empty(const cJSON *v)
{
    return !v || cJSON_IsFalse(v) || ((cJSON_IsArray(v) || cJSON_IsObject(v)) && !v->child) ||
           (cJSON_IsString(v) && !v->valuestring[0]);
}

static int check_keys(const struct reader *r, struct tune_adapter_config *c)
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
        if (keys[k].advice && !is_empty(get(r, keys[k].name)))
            return refuse(r, keys[k].name, keys[k].advice);
    }
    return 0;
}

static int read_flag(const struct reader *r, const char *key, bool *value)
{
    const cJSON *v = get(r, key);
    if (v && !cJSON_IsBool(v))
        return refuse(r, key, "expected true or false");
    *value = cJSON_IsTrue(v);
    return 0;
}

static int read_number(const struct reader *r, const char *key, double least, double most, double missing, double *value)
{
    const cJSON *v = get(r, key);
    *value = v && cJSON_IsNumber(v) ? v->valuedouble : missing;
    if ((v && !cJSON_IsNumber(v)) || !(*value >= least && *value <= most)) {
        char why[80];
        snprintf(why, sizeof why, "expected a number from %g to %g", least, most);
        return refuse(r, key, why);
    }
    return 0;
}

/* The string of key must be in `allowed`, where a space follows each entry. It may be absent. */
static int check_text(const struct reader *r, const char *key, const char *allowed, const char *why)
{
    const cJSON *v = get(r, key);
    size_t n = v && cJSON_IsString(v) ? strlen(v->valuestring) : 0;
    if (!v)
        return 0;
    for (const char *at = allowed; n && *at; at += strcspn(at, " ") + 1)
        if (strcspn(at, " ") == n && strncmp(at, v->valuestring, n) == 0)
            return 0;
    return refuse(r, key, why);
}

/* Check the kind of adapter, task and base. */
static int check_kind(const struct reader *r)
{
    const cJSON *init = get(r, "init_lora_weights");
    if (!get(r, "peft_type"))
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

/* ---- names ---- */

static bool name_character(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '.';
}

static bool is_name(const char *text)
{
    size_t n = 0;
    while (text[n] && name_character(text[n]))
        n++;
    return n > 0 && n <= MAX_NAME && !text[n] && text[0] != '.' && text[n - 1] != '.';
}

static bool is_whole(const char *name)
{
    return strncmp(name, "model.", 6) == 0;
}

/* The module's name is `end`, or ends in "." and `end`. */
static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    return n >= k && strcmp(name + n - k, end) == 0 && (n == k || name[n - k - 1] == '.');
}

/* Copy the literal characters at the start of an expression, without the dots' backslashes. Returns
 * the number used. */
static size_t literal(const char *text, char *out, size_t room)
{
    size_t used = 0, n = 0;
    while (n + 1 < room && (name_character(text[used]) || (text[used] == '\\' && text[used + 1] == '.'))) {
        used += text[used] == '\\';
        out[n++] = text[used++];
    }
    out[n] = 0;
    return used;
}

/* Convert an expression that is equivalent to a list of names to ends of names, separated by
 * commas. any: it need not begin with ".*\.". false: it is not equivalent to a list. */
static bool plain_names(const char *text, bool any, FILE *out)
{
    char head[MAX_NAME + 1], name[2 * MAX_NAME + 2];
    bool group, from_start = *text == '^', first = true;
    if (strlen(text) > MAX_EXPRESSION)
        return false;
    text += from_start;
    if (strncmp(text, ".*\\.", 4) == 0) {
        text += 4;
        any = true;
        from_start = false;
    }
    text += literal(text, head, sizeof head);
    group = *text == '(';
    if (group)
        text += strncmp(text, "(?:", 3) == 0 ? 3 : 1;
    for (;; text++) {
        size_t n = strlen(head);
        memcpy(name, head, n + 1);
        if (group)
            text += literal(text, name + n, MAX_NAME + 1);
        /* an end without ".*" in front would match more than the expression does */
        if (!is_name(name) || ((!any || from_start) && !is_whole(name)))
            return false;
        fprintf(out, "%s%s", first ? "" : ",", name);
        first = false;
        if (!group || *text != '|')
            break;
    }
    if (group && *text++ != ')')
        return false;
    return !*text || strcmp(text, "$") == 0;
}

/* Convert a list of names, or an expression, to ends separated by commas. *ends NULL: no names. */
static int read_names(const struct reader *r, const char *key, char **ends)
{
    static const char more[] = "PEFT takes a text as a regular expression for whole names, and this one fits none; write a list of "
                               "module names";
    const cJSON *v = get(r, key);
    size_t size;
    bool good = true;
    *ends = NULL;
    if (is_empty(v))
        return 0;
    if ((!cJSON_IsString(v) && !cJSON_IsArray(v)) || cJSON_GetArraySize(v) > MAX_NAMES)
        return refuse(r, key, "expected a list of module names, at most 8192, or a text");
    FILE *out = open_memstream(ends, &size);
    if (!out)
        return no_memory(r);
    if (cJSON_IsString(v))
        good = plain_names(v->valuestring, false, out);
    for (const cJSON *item = v->child; item && good; item = item->next) {
        good = cJSON_IsString(item) && is_name(item->valuestring);
        fprintf(out, "%s%s", item == v->child ? "" : ",", good ? item->valuestring : "");
    }
    fclose(out);
    if (good)
        return 0;
    free(*ends);
    *ends = NULL;
    return refuse(r, key, cJSON_IsString(v) ? more : "expected a list of module names");
}

/* The shortest end that selects the same modules: q_proj for self_attn.q_proj. */
static const char *shortest(const char *end)
{
    static const char *const same[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj",
                                       "mlp.gate_proj",    "mlp.up_proj",      "mlp.down_proj"};
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(end, same[i]) == 0)
            return strchr(end, '.') + 1;
    return end;
}

/* Remove the excluded names from the targets. */
static int exclude(const struct reader *r, char **targets, const char *excluded)
{
    char *from = *targets, *to = NULL, *rest, *end, *rest2, *other;
    size_t size;
    FILE *out = open_memstream(&to, &size);
    int status = 0, kept = 0;
    if (!out)
        return no_memory(r);
    for (end = strtok_r(from, ",", &rest); end && status == 0; end = strtok_r(NULL, ",", &rest)) {
        char *list = strdup(excluded);
        bool out_of_it = false;
        if (!list)
            status = no_memory(r);
        for (other = list ? strtok_r(list, ",", &rest2) : NULL; other; other = strtok_r(NULL, ",", &rest2)) {
            other = (char *)shortest(other);
            out_of_it = out_of_it || ends_with(end, other);
            if (!ends_with(end, other) && ends_with(other, end))
                status = refuse(r, "exclude_modules", "names that leave out some of the modules of a target are not supported; "
                                                      "write whole names into target_modules");
        }
        free(list);
        if (!out_of_it)
            fprintf(out, "%s%s", kept++ ? "," : "", end);
    }
    fclose(out);
    free(from);
    *targets = to;
    if (status == 0 && !kept)
        status = refuse(r, "exclude_modules", "this leaves nothing of target_modules");
    return status;
}

/* True if a regular expression is only a list of names in another form. */
static bool is_list_of_names(const char *text)
{
    char *names = NULL;
    size_t size;
    FILE *out = open_memstream(&names, &size);
    bool good = out && plain_names(text, false, out);
    if (out)
        fclose(out);
    free(names);
    return good;
}

static int read_targets(const struct reader *r, struct tune_adapter_config *c)
{
    const cJSON *v = get(r, "target_modules");
    char *excluded;
    if (is_empty(v))
        return tune_error_set("%s: no \"target_modules\"; expected a list of module names, or "
                              "\"all-linear\"", r->path);
    TRY(read_names(r, "exclude_modules", &excluded));
    bool all = cJSON_IsString(v) && strcasecmp(v->valuestring, all_linear) == 0;
    int status = 0;
    bool expression = cJSON_IsString(v) && tune_lora_is_expression(v->valuestring) && !is_list_of_names(v->valuestring);
    if (expression && excluded) {
        free(excluded);
        return refuse(r, "exclude_modules", "beside a regular expression in target_modules it is not supported; leave the names "
                                            "out of the expression");
    }
    if (expression) {
        c->text[0] = strdup(v->valuestring);
        status = c->text[0] && tune_lora_expression_check(c->text[0]) < 0 ? tune_error_prefix("%s: ", r->path) : 0;
    } else if (!all) {
        status = read_names(r, "target_modules", &c->text[0]);
    } else {
        c->text[0] = strdup(excluded ? TUNE_ADAPTER_LINEAR : all_linear);
    }
    if (status == 0 && !c->text[0])
        status = no_memory(r);
    if (status == 0 && excluded)
        status = exclude(r, &c->text[0], excluded);
    free(excluded);
    c->lora.targets = c->text[0];
    return status;
}

/* Check that no name in "k_proj=4,v_proj=2" occurs twice, because the result would be ambiguous.
 * -1: no memory. */
static int each_once(const struct reader *r, const char *pattern)
{
    char *copy = pattern ? strdup(pattern) : NULL, **piece = copy ? tune_adapter_pieces(copy, true) : NULL;
    int good = piece ? 1 : no_memory(r);
    /* sorted, so equal names are neighbours */
    for (size_t i = 0; good > 0 && piece[i] && piece[i + 1]; i++)
        good = strncmp(piece[i], piece[i + 1], strcspn(piece[i], "=") + 1) != 0;
    free(piece);
    free(copy);
    return good;
}

/* Convert {"k_proj": 4} to "k_proj=4". PEFT uses the first key that matches, as an expression for
 * the whole name or for what follows a dot. */
static int read_pattern(const struct reader *r, const char *key, bool whole, char **text)
{
    const cJSON *v = get(r, key);
    size_t size;
    int count = 0, once;
    bool good = true, memory = true;
    if (is_empty(v))
        return 0;
    if (!cJSON_IsObject(v) || cJSON_GetArraySize(v) > MAX_NAMES)
        return refuse(r, key, "expected an object of module names and numbers, at most 8192");
    FILE *out = open_memstream(text, &size);
    if (!out)
        return no_memory(r);
    for (const cJSON *p = v->child; p && good && memory; p = p->next) {
        char number[32], *names = NULL, *rest;
        size_t n;
        FILE *list = open_memstream(&names, &n);
        double x = p->valuedouble;
        good = cJSON_IsNumber(p) &&
               (whole ? x >= 1 && x <= TUNE_LORA_MAX_RANK && x == floor(x) : x > 0 && x <= TUNE_LORA_MAX_ALPHA) &&
               (!list || plain_names(p->string, true, list));
        memory = list && fclose(list) == 0 && names;
        for (char *name = good && memory ? strtok_r(names, ",", &rest) : NULL; name; name = strtok_r(NULL, ",", &rest))
            fprintf(out, "%s%s=%s", count++ ? "," : "", name, tune_number_text(number, x));
        free(names);
    }
    if (fclose(out) != 0 || !memory)
        return no_memory(r);
    TRY(once = good ? each_once(r, *text) : 0);
    return once ? 0
                : refuse(r, key, whole ? "expected names of modules, or their ends, each once, and ranks from 1 to 16384"
                                       : "expected names of modules, or their ends, each once, and numbers above 0");
}

static bool layer_number(const cJSON *v)
{
    return cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble < TUNE_MAX_LAYERS && v->valuedouble == floor(v->valuedouble);
}

/* Handle targets that are whole module names. PEFT applies these in any layer; here `layers` limits
 * all targets. */
static int whole_names(const struct reader *r, struct tune_adapter_config *c)
{
    int whole = 0, outside = 0, count = 0;
    for (const cJSON *v = get(r, "target_modules")->child; v; v = v->next, count++)
        if (is_whole(v->valuestring)) {
            whole++;
            outside += tune_lora_rank(&c->lora, v->valuestring) == 0;
        }
    if (outside && whole < count)
        return refuse(r, "layers_to_transform", "target_modules has a whole name of another layer, which PEFT takes all the "
                                                "same, beside ends of names; write whole names only");
    if (outside)
        c->lora.layers = NULL;
    return 0;
}

static int read_layers(const struct reader *r, struct tune_adapter_config *c)
{
    const cJSON *v = get(r, "layers_to_transform"), *pattern = get(r, "layers_pattern");
    size_t size;
    bool good = true, found = is_empty(pattern) || (cJSON_IsString(pattern) && strcmp(pattern->valuestring, "layers") == 0);
    if (is_empty(v))
        return 0;
    if (cJSON_GetArraySize(v) > TUNE_MAX_LAYERS)
        return refuse(r, "layers_to_transform", "more numbers than a model has layers");
    if (!cJSON_IsArray(get(r, "target_modules")))
        return refuse(r, "layers_to_transform", "layers can be chosen only where target_modules is a list");
    for (const cJSON *p = cJSON_IsArray(pattern) ? pattern->child : NULL; p && !found; p = p->next)
        found = cJSON_IsString(p) && strcmp(p->valuestring, "layers") == 0;
    if (!found)
        return refuse(r, "layers_pattern", "it fits no layer of these models, which are \"layers\"; set it to null");
    FILE *out = open_memstream(&c->text[3], &size);
    if (!out)
        return no_memory(r);
    if (!cJSON_IsArray(v) && (good = layer_number(v)))
        fprintf(out, "%d", (int)v->valuedouble);
    for (const cJSON *p = v->child; p && good; p = p->next)
        if ((good = layer_number(p)))
            fprintf(out, "%s%d", p == v->child ? "" : ",", (int)p->valuedouble);
    fclose(out);
    c->lora.layers = c->text[3];
    return good ? whole_names(r, c) : refuse(r, "layers_to_transform", "expected numbers of layers, from 0");
}

/* Read the modules that are trained whole. */
static int read_saved(const struct reader *r, struct tune_adapter_config *c)
{
    bool tied;
    if (cJSON_IsString(get(r, "modules_to_save")))
        return refuse(r, "modules_to_save", "expected a list of module names");
    TRY(read_names(r, "modules_to_save", &c->text[4]));
    TRY(read_flag(r, "ensure_weight_tying", &tied));
    c->lora.modules_to_save = c->text[4];
    if (c->text[4] && tune_lora_check(&c->lora) < 0)
        return refuse(r, "modules_to_save", "of modules that are trained whole, embed_tokens and lm_head are supported; merge the "
                                            "adapter with PEFT");
    if (c->text[4] && tied)
        return refuse(r, "ensure_weight_tying", "trained copies that stay tied are not supported; train with false, or merge the "
                                                "adapter with PEFT");
    return 0;
}

static int read_all(const struct reader *r, struct tune_adapter_config *c)
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
        return refuse(r, "r", "expected a whole number");
    c->lora.r = (int)rank;
    TRY(read_number(r, "lora_alpha", 0, TUNE_LORA_MAX_ALPHA, 8, &c->lora.alpha));
    TRY(read_number(r, "lora_dropout", 0, 1, 0, &c->lora.dropout));
    if (c->lora.alpha == 0 || c->lora.dropout == 1)
        return refuse(r, c->lora.alpha == 0 ? "lora_alpha" : "lora_dropout", "nothing of the adapter is left with that");
    TRY(read_flag(r, "use_rslora", &c->lora.rslora));
    TRY(read_flag(r, "use_dora", &c->lora.dora));
    TRY(read_targets(r, c));
    TRY(read_pattern(r, "rank_pattern", true, &c->text[1]));
    TRY(read_pattern(r, "alpha_pattern", false, &c->text[2]));
    c->lora.rank_pattern = c->text[1];
    c->lora.alpha_pattern = c->text[2];
    TRY(read_layers(r, c));
    TRY(read_saved(r, c));
    base = get(r, "base_model_name_or_path");
    if (base && !cJSON_IsString(base))
        return refuse(r, "base_model_name_or_path", "expected a text");
    if (base && !(c->base = strdup(base->valuestring)))
        return no_memory(r);
    return 0;
}

int tune_adapter_config_read(struct tune_adapter_config *c, const char *folder)
{
    struct reader r;
    *c = (struct tune_adapter_config){0};
    TRY(tune_path(r.path, "%s/%s", folder, file_name));
    cJSON *json = tune_cjson_read_in(folder, file_name, LARGEST);
    if (!json && tune_folder_has(folder, "checkpoint-final"))
        return tune_error_set("%s is a run's folder, not an adapter's; give %s/checkpoint-final", folder, folder);
    if (!json)
        return -1;
    r.json = json;
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
    *c = (struct tune_adapter_config){0};
}
