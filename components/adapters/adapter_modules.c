/* adapter_modules.c - the modules that an adapter_config.json names: lists, patterns and expressions as options. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "adapters/adapter_config_parts.h"
#include "core/error.h"
#include "core/print.h"
#include "core/regular.h"
#include "core/try.h"
#include "files/safetensors.h"

enum { MAX_NAMES = 8192, MAX_NAME = 255, MAX_KEY = 4096 };

static const char all_linear[] = "all-linear";

static int no_memory(const struct tune_adapter_reader *r)
{
    return tune_error_no_memory("reading %s", r->path);
}

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

/* Check that a value is a list of texts. */
static int check_list(const struct tune_adapter_reader *r, const char *key, const cJSON *v)
{
    bool good = cJSON_IsArray(v) && cJSON_GetArraySize(v) <= MAX_NAMES;
    for (const cJSON *item = good ? v->child : NULL; item && good; item = item->next)
        good = cJSON_IsString(item);
    return good ? 0 : tune_adapter_refuse(r, key, "expected a list of module names, at most 8192, or a text");
}

/* Write the names of a list with `between` between them, dots as \. if they go into an expression. PEFT compares names letter by
 * letter, so an item that no module can be called is left out. */
static int write_names(const cJSON *list, bool expression, const char *between, FILE *out)
{
    int count = 0;
    for (const cJSON *item = list->child; item; item = item->next) {
        if (!is_name(item->valuestring))
            continue;
        fputs(count++ ? between : "", out);
        for (const char *c = item->valuestring; *c; c++)
            fprintf(out, expression && *c == '.' ? "\\%c" : "%c", *c);
    }
    return count;
}

/* Read a list of module names as text with commas. *text NULL: none. */
static int read_list(const struct tune_adapter_reader *r, const char *key, char **text)
{
    const cJSON *v = tune_adapter_key(r, key);
    size_t size;
    *text = NULL;
    if (tune_adapter_is_empty(v))
        return 0;
    TRY(check_list(r, key, v));
    FILE *out = open_memstream(text, &size);
    if (!out)
        return no_memory(r);
    write_names(v, false, ",", out);
    fclose(out);
    return 0;
}

/* ---- targets ---- */

/* Write target_modules as one expression for whole names. */
static void write_targets(const cJSON *v, const char *layers, FILE *out)
{
    if (cJSON_IsString(v)) {
        bool all = strcasecmp(v->valuestring, all_linear) == 0;
        fprintf(out, "(?:%s)", all ? ".*_proj" : v->valuestring);
        return;
    }
    fputs("(?:", out);
    if (layers) { /* a whole name holds in whatever layer */
        write_names(v, true, "|", out);
        fputs("|(?=.*\\.layers\\.(?:", out);
        for (const char *c = layers; *c; c++)
            fputc(*c == ',' ? '|' : *c, out);
        fputs(")\\.)", out);
    }
    fputs("(?:.*\\.)?(?:", out);
    write_names(v, true, "|", out);
    fputs("))", out);
}

/* Put exclude_modules into the targets: one expression for what is a target and not left out. */
static int exclude(const struct tune_adapter_reader *r, const cJSON *targets, struct tune_adapter_config *c)
{
    const cJSON *v = tune_adapter_key(r, "exclude_modules");
    char *text = NULL;
    size_t size;
    if (!cJSON_IsString(v))
        TRY(check_list(r, "exclude_modules", v));
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return no_memory(r);
    fputs(cJSON_IsString(v) ? "(?!(?:" : "(?!(?:.*\\.)?(?:", out);
    if (cJSON_IsString(v))
        fputs(v->valuestring, out);
    else
        write_names(v, true, "|", out);
    fputs(")$)", out);
    write_targets(targets, c->lora.layers, out);
    fclose(out);
    free(c->text[0]);
    c->text[0] = text;
    c->lora.layers = NULL;
    return 0;
}

/* The modules that the folder's file has tensors of, as whole names with commas; with ranks: "NAME=RANK". NULL: it has none. */
static char *modules_of(const struct tune_adapter_reader *r, bool ranks)
{
    static const char prefix[] = "base_model.model.", tail[] = ".lora_A.weight";
    char *text = NULL;
    size_t size;
    struct tune_safetensors *f = tune_safetensors_open_in(r->folder, "adapter_model.safetensors");
    FILE *out = f ? open_memstream(&text, &size) : NULL;
    for (int64_t i = 0, n = 0; out && i < tune_safetensors_count(f); i++) {
        const char *name = tune_safetensors_name(f, i);
        size_t k = strlen(name), edges = sizeof prefix + sizeof tail - 2;
        if (k <= edges || strncmp(name, prefix, sizeof prefix - 1) || strcmp(name + k - (sizeof tail - 1), tail))
            continue;
        fprintf(out, "%s%.*s", n++ ? "," : "", (int)(k - edges), name + sizeof prefix - 1);
        if (ranks)
            fprintf(out, "=%" PRId64, tune_safetensors_at(f, i)->shape[0]);
    }
    if (out)
        fclose(out);
    tune_safetensors_close(f);
    if (text && *text)
        return text;
    free(text);
    return NULL;
}

/* An expression is not understood. Take from the folder's file what it decides. text: what was made of it. */
static int from_file(const struct tune_adapter_reader *r, struct tune_adapter_config *c, const char *key, bool ranks, char **text)
{
    char why[400], remark[600];
    snprintf(why, sizeof why, "%.300s", tune_error_message());
    char *modules = modules_of(r, ranks);
    if (!modules)
        return tune_adapter_refuse(r, key, why);
    free(*text);
    *text = modules;
    tune_error_clear();
    snprintf(remark, sizeof remark, "%s is not understood (%.300s): the %s are those of the tensors in the adapter's file", key, why,
             ranks ? "ranks" : "modules");
    if (!c->remark)
        c->remark = strdup(remark);
    return c->remark ? 0 : no_memory(r);
}

/* Read target_modules, exclude_modules and, before, the layers. */
static int read_targets(const struct tune_adapter_reader *r, struct tune_adapter_config *c)
{
    const cJSON *v = tune_adapter_key(r, "target_modules");
    size_t size;
    if (tune_adapter_is_empty(v))
        return tune_error_set("%s: no \"target_modules\"; expected a list of module names, or "
                              "\"all-linear\"", r->path);
    if (!cJSON_IsString(v))
        TRY(check_list(r, "target_modules", v));
    FILE *out = open_memstream(&c->text[0], &size);
    if (!out)
        return no_memory(r);
    int names = 1;
    if (cJSON_IsArray(v))
        names = write_names(v, false, ",", out);
    else if (strcasecmp(v->valuestring, all_linear) == 0)
        fputs(all_linear, out);
    else if (tune_lora_is_expression(v->valuestring))
        fputs(v->valuestring, out);
    else
        write_targets(v, NULL, out); /* brackets: it is an expression for a whole name */
    fclose(out);
    if (names == 0)
        return tune_adapter_refuse(r, "target_modules", "no module can have such a name; in a list, PEFT takes names letter by letter");
    TRY(tune_adapter_is_empty(tune_adapter_key(r, "exclude_modules")) ? 0 : exclude(r, v, c));
    if (tune_lora_is_expression(c->text[0]) && tune_lora_expression_check(c->text[0]) < 0)
        TRY(from_file(r, c, "target_modules", false, &c->text[0]));
    c->lora.targets = c->text[0];
    return 0;
}

/* ---- patterns ---- */

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* True if no key of an object is there twice. -1: no memory. */
static int each_once(const struct tune_adapter_reader *r, const cJSON *v)
{
    int n = cJSON_GetArraySize(v), good = 1, i = 0;
    const char **key = calloc((size_t)n + 1, sizeof *key);
    if (!key)
        return no_memory(r);
    for (const cJSON *p = v->child; p; p = p->next)
        key[i++] = p->string;
    qsort(key, (size_t)n, sizeof *key, by_text);
    for (i = 1; i < n; i++)
        good = good && strcmp(key[i - 1], key[i]) != 0;
    free(key);
    return good;
}

/* True if a list can hold the key: its brackets are closed. */
static bool closed(const char *key)
{
    char text[MAX_KEY + 2];
    size_t n = strlen(key);
    if (n > MAX_KEY)
        return false;
    snprintf(text, sizeof text, "%s,", key);
    for (const char *at = text;; at += tune_lora_piece(at) + 1)
        if (at + tune_lora_piece(at) >= text + n)
            return at[tune_lora_piece(at)] == ',';
}

/* Write a key so that a list can hold it: a comma outside of brackets is written as \x2c, which means the same. */
static void write_key(const char *key, FILE *out)
{
    for (const char *at = key;; at++) {
        size_t n = tune_lora_piece(at);
        fprintf(out, "%.*s", (int)n, at);
        at += n;
        if (!*at)
            return;
        fputs("\\x2c", out);
    }
}

/* Convert {"k_proj": 4} to "k_proj=4". PEFT uses the first key that fits, as an expression for the whole name or for what
 * follows a dot. */
static int read_pattern(const struct tune_adapter_reader *r, struct tune_adapter_config *c, const char *key, bool ranks, char **text)
{
    const char *expected = ranks ? "expected names of modules, or expressions, each once, and ranks from 1 to 16384"
                                 : "expected names of modules, or expressions, each once, and numbers above 0";
    const cJSON *v = tune_adapter_key(r, key);
    size_t size;
    bool good = true, known = true;
    if (tune_adapter_is_empty(v))
        return 0;
    if (!cJSON_IsObject(v) || cJSON_GetArraySize(v) > MAX_NAMES)
        return tune_adapter_refuse(r, key, "expected an object of module names and numbers, at most 8192");
    int once = each_once(r, v);
    TRY(once);
    FILE *out = open_memstream(text, &size);
    if (!out)
        return no_memory(r);
    for (const cJSON *p = v->child; p && good && known; p = p->next) {
        char number[32];
        double x = p->valuedouble;
        good = cJSON_IsNumber(p) && p->string[0] && closed(p->string) &&
               (ranks ? x >= 1 && x <= TUNE_LORA_MAX_RANK && x == floor(x) : x > 0 && x <= TUNE_LORA_MAX_ALPHA);
        known = !tune_lora_is_expression(p->string) || tune_lora_expression_check(p->string) == 0;
        fputs(p == v->child ? "" : ",", out);
        write_key(p->string, out);
        fprintf(out, "=%s", tune_number_text(number, x));
    }
    fclose(out);
    if (!good || !once)
        return tune_adapter_refuse(r, key, expected);
    if (!known && ranks)
        return from_file(r, c, key, true, text);
    return known ? 0 : tune_adapter_refuse(r, key, tune_error_message());
}

/* ---- layers, modules to save ---- */

static bool layer_number(const cJSON *v)
{
    return cJSON_IsNumber(v) && v->valuedouble >= 0 && v->valuedouble < TUNE_MAX_LAYERS && v->valuedouble == floor(v->valuedouble);
}

/* True if an expression of layers_pattern stands before the layer's number in the names of these models. */
static bool before_number(const cJSON *pattern)
{
    static const char module[] = "model.layers.7.self_attn.q_proj";
    char *text = NULL;
    bool fits = cJSON_IsString(pattern) && !strchr(pattern->valuestring, '|') &&
                asprintf(&text, "(?:^|.*?\\.)%s\\.(\\d+)\\.", pattern->valuestring) >= 0 && tune_regular_matches(text, module, false) == 1;
    free(text);
    return fits;
}

static int read_layers(const struct tune_adapter_reader *r, struct tune_adapter_config *c)
{
    const cJSON *v = tune_adapter_key(r, "layers_to_transform"), *pattern = tune_adapter_key(r, "layers_pattern");
    size_t size;
    bool good = true, found = tune_adapter_is_empty(pattern) || before_number(pattern);
    if (cJSON_IsBool(v))
        return tune_adapter_refuse(r, "layers_to_transform", "expected numbers of layers, from 0");
    if (tune_adapter_is_empty(v))
        return 0;
    if (cJSON_GetArraySize(v) > TUNE_MAX_LAYERS)
        return tune_adapter_refuse(r, "layers_to_transform", "more numbers than a model has layers");
    if (!cJSON_IsArray(tune_adapter_key(r, "target_modules")))
        return tune_adapter_refuse(r, "layers_to_transform", "layers can be chosen only where target_modules is a list");
    for (const cJSON *p = cJSON_IsArray(pattern) ? pattern->child : NULL; p && !found; p = p->next)
        found = before_number(p);
    if (!found)
        return tune_adapter_refuse(r, "layers_pattern", "it fits no layer of these models, which are \"layers\"; set it to null");
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
    return good ? 0 : tune_adapter_refuse(r, "layers_to_transform", "expected numbers of layers, from 0");
}

/* Add the embedding and the output projection to modules_to_save, where the folder's file has them whole. PEFT saves them so if
 * the vocabulary grew. */
static int add_whole(const struct tune_adapter_reader *r, struct tune_adapter_config *c)
{
    static const char *const names[] = {"model.embed_tokens", "lm_head"};
    char tensor[80], list[80] = "";
    struct tune_error why;
    tune_error_save(&why);
    struct tune_safetensors *f = tune_safetensors_open_in(r->folder, "adapter_model.safetensors");
    for (int i = 0; f && i < 2; i++) {
        snprintf(tensor, sizeof tensor, "base_model.model.%s.weight", names[i]);
        if (tune_safetensors_find(f, tensor) && tune_lora_rank(&c->lora, names[i]) == 0)
            tune_append(list, sizeof list, "%s%s", *list ? "," : "", names[i]);
    }
    tune_safetensors_close(f);
    tune_error_restore(&why); /* whoever reads the file reports what is wrong with it */
    c->implied = *list != 0;
    if (!c->implied)
        return 0;
    char remark[200];
    snprintf(remark, sizeof remark, "the adapter's file has %s whole, which modules_to_save does not name: taken as if it did", list);
    c->remark = c->remark ? c->remark : strdup(remark);
    c->text[4] = strdup(list);
    return c->text[4] && c->remark ? 0 : no_memory(r);
}

/* Read the modules that are trained whole. */
static int read_saved(const struct tune_adapter_reader *r, struct tune_adapter_config *c)
{
    bool tied;
    if (cJSON_IsString(tune_adapter_key(r, "modules_to_save")))
        return tune_adapter_refuse(r, "modules_to_save", "expected a list of module names");
    TRY(read_list(r, "modules_to_save", &c->text[4]));
    TRY(tune_adapter_flag(r, "ensure_weight_tying", &tied));
    const cJSON *v = tune_adapter_key(r, "modules_to_save");
    for (const cJSON *item = tune_adapter_is_empty(v) ? NULL : v->child; item; item = item->next) {
        struct tune_lora_options one = {.r = 1, .alpha = 1, .targets = all_linear, .modules_to_save = item->valuestring};
        if (!is_name(item->valuestring) || tune_lora_check(&one) < 0)
            return tune_adapter_refuse(r, "modules_to_save", "of modules that are trained whole, embed_tokens and lm_head are supported; merge "
                                                "the adapter with PEFT");
    }
    if (!c->text[4])
        TRY(add_whole(r, c));
    c->lora.modules_to_save = c->text[4];
    if (tied && (c->text[4] || tune_lora_low_rank(&c->lora, 0)))
        return tune_adapter_refuse(r, "ensure_weight_tying", "trained copies that stay tied are not supported; train with false, or merge the "
                                                "adapter with PEFT");
    return 0;
}

int tune_adapter_modules_read(const struct tune_adapter_reader *r, struct tune_adapter_config *c)
{
    TRY(read_layers(r, c));
    TRY(read_targets(r, c));
    TRY(read_pattern(r, c, "rank_pattern", true, &c->text[1]));
    TRY(read_pattern(r, c, "alpha_pattern", false, &c->text[2]));
    c->lora.rank_pattern = c->text[1];
    c->lora.alpha_pattern = c->text[2];
    return read_saved(r, c);
}
