/* auxiliary_files.c - the files beside a model's weights, held in memory. */
#include "tokenizers/auxiliary_files.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/cjson.h"
#include "core/array.h"
#include "core/error.h"
#include "files/folder.h"
#include "files/json.h"
#include "core/try.h"
#include "tokenizers/tokenizer.h"

enum { CONFIG, TOKENIZER, GENERATION, TOKENIZER_CONFIG, SPECIAL, ADDED, CHAT = 9 };
static const char *const names[] = {"config.json",           "tokenizer.json",          "generation_config.json",
                                    "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
                                    "vocab.json",            "merges.txt",              "tokenizer.model",
                                    "chat_template.jinja"};
/* the largest known have 40 MB */
enum { AUXILIARY = sizeof names / sizeof *names, LARGEST = 128 << 20 };

static const char *const dtype_keys[] = {"dtype", "torch_dtype"};

struct tune_auxiliary {
    char folder[TUNE_PATH_MAX];
    char *text[AUXILIARY]; /* NULL: the folder lacks it */
    size_t size[AUXILIARY];
    unsigned mode[AUXILIARY]; /* permissions of the original file */
    bool own_end;              /* generation_config.json is not the one that was read */
};

static bool ends(const char *name, const char *end)
{
    return strlen(name) > strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0;
}

/* Check that a file has the right content: JSON, text, or anything (tokenizer.model). Others are
 * never copied. */
static int check(const struct tune_auxiliary *c, int i, const char *path)
{
    struct tune_json j;
    size_t bad;
    if (ends(names[i], ".json")) {
        tune_json_start(&j, path, c->text[i], c->size[i], 1);
        j.lone_surrogates = true;
        int status = tune_json_skip(&j) < 0 || tune_json_end(&j) < 0 ? -1 : 0;
        tune_json_free(&j);
        return status;
    }
    if (ends(names[i], ".model") ||
        (tune_utf8_valid(c->text[i], c->size[i], &bad) && !memchr(c->text[i], 0, c->size[i])))
        return 0;
    return tune_error_set("%s: not UTF-8 text without NUL bytes; checkpoints copy this file: repair it, or "
                          "remove it if the model does not need it", path);
}

static int read_one(struct tune_auxiliary *c, int i)
{
    struct tune_folder_file f;
    if (i != CONFIG && !tune_folder_has(c->folder, names[i]))
        return 0;
    TRY(tune_folder_open(&f, c->folder, names[i]));
    c->size[i] = f.size;
    c->mode[i] = f.mode | S_IRUSR; /* the reader may always read the copy */
    int status = tune_file_read_open(f.fd, f.path, f.size, LARGEST, &c->text[i]);
    close(f.fd);
    return status < 0 ? -1 : check(c, i, f.path);
}

static int read_all(struct tune_auxiliary *c)
{
    for (int i = 0; i < AUXILIARY; i++)
        TRY(read_one(c, i));
    return 0;
}

static cJSON *config_of(const struct tune_auxiliary *c)
{
    cJSON *json = cJSON_ParseWithLength(c->text[CONFIG], c->size[CONFIG]);
    if (!json)
        tune_error_set("%s/config.json: not JSON", c->folder);
    return json;
}

struct tune_auxiliary *tune_auxiliary_read(const char *folder)
{
    struct tune_auxiliary *c = tune_zeroed(1, sizeof *c, "the files of %s", folder);
    if (!c)
        return NULL;
    if (tune_path(c->folder, "%s", folder) == 0 && read_all(c) == 0)
        return c;
    tune_auxiliary_free(c);
    return NULL;
}

int64_t tune_auxiliary_bytes(const char *folder)
{
    int64_t bytes = 0;
    for (int i = 0; i < AUXILIARY; i++) {
        char path[TUNE_PATH_MAX];
        struct stat s;
        if (tune_path(path, "%s/%s", folder, names[i]) == 0 && stat(path, &s) == 0)
            /* a larger file is an error when it is read */
            bytes += s.st_size < LARGEST ? s.st_size : LARGEST;
    }
    return bytes;
}

void tune_auxiliary_free(struct tune_auxiliary *c)
{
    if (!c)
        return;
    for (int i = 0; i < AUXILIARY; i++)
        free(c->text[i]);
    free(c);
}

/* Write config.json with another dtype. */
static int write_dtype(const struct tune_auxiliary *c, const char *folder, enum tune_dtype save_dtype)
{
    cJSON *json = config_of(c);
    if (!json)
        return -1;
    const char *name = save_dtype == TUNE_F32 ? "float32" : save_dtype == TUNE_BF16 ? "bfloat16" : "float16";
    bool found = false, good = true;
    for (int i = 0; i < 2; i++)
        if (cJSON_GetObjectItemCaseSensitive(json, dtype_keys[i])) {
            found = true;
            good = good && cJSON_ReplaceItemInObjectCaseSensitive(json, dtype_keys[i], cJSON_CreateString(name));
        }
    if (!found)
        good = cJSON_AddStringToObject(json, "dtype", name);
    int status = tune_cjson_write_as(folder, names[CONFIG], json, good, c->mode[CONFIG]);
    cJSON_Delete(json);
    return status;
}

static int write_one(const struct tune_auxiliary *c, const char *folder, int i)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/%s", folder, names[i]));
    return c->text[i] ? tune_file_write_as(path, c->text[i], c->size[i], c->mode[i]) : 0;
}

int tune_auxiliary_write(const struct tune_auxiliary *c, const char *folder, enum tune_dtype save_dtype)
{
    for (int i = 0; i < AUXILIARY; i++)
        TRY(i == CONFIG && save_dtype != TUNE_AS_READ ? write_dtype(c, folder, save_dtype) : write_one(c, folder, i));
    return 0;
}

int tune_auxiliary_write_tokenizer(const struct tune_auxiliary *c, const char *folder)
{
    for (int i = 0; i < AUXILIARY; i++)
        TRY(i == CONFIG || (i == GENERATION && !c->own_end) ? 0 : write_one(c, folder, i));
    return 0;
}

int tune_auxiliary_write_config(const struct tune_auxiliary *c, const char *folder)
{
    return write_one(c, folder, CONFIG);
}

/* ---- changes of config.json ---- */

/* Put an object's text in the place of the file's. It takes over json. */
static int put_text(struct tune_auxiliary *c, int i, cJSON *json, bool good)
{
    char *text = good ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return tune_error_no_memory("%s", names[i]);
    free(c->text[i]);
    c->text[i] = text;
    c->size[i] = strlen(text);
    return 0;
}

/* Set a member. It takes over value. */
static int set_config(struct tune_auxiliary *c, const char *key, cJSON *value)
{
    cJSON *json = value ? config_of(c) : NULL;
    bool there = json && cJSON_GetObjectItemCaseSensitive(json, key);
    bool good = there ? cJSON_ReplaceItemInObjectCaseSensitive(json, key, value) : json && cJSON_AddItemToObject(json, key, value);
    if (!good)
        cJSON_Delete(value);
    return put_text(c, CONFIG, json, good);
}

int tune_auxiliary_untie(struct tune_auxiliary *c)
{
    cJSON *json = config_of(c);
    bool untied = cJSON_IsFalse(cJSON_GetObjectItemCaseSensitive(json, "tie_word_embeddings"));
    cJSON_Delete(json);
    return untied ? 0 : set_config(c, "tie_word_embeddings", cJSON_CreateFalse());
}

int tune_auxiliary_vocabulary(struct tune_auxiliary *c, int rows)
{
    return set_config(c, "vocab_size", cJSON_CreateNumber(rows));
}

/* ---- more tokens ---- */

/* The parsed file; *json NULL: the folder lacks it. */
static int parse(const struct tune_auxiliary *c, int i, cJSON **json)
{
    *json = c->text[i] ? cJSON_ParseWithLength(c->text[i], c->size[i]) : NULL;
    if (!c->text[i] || cJSON_IsObject(*json))
        return 0;
    cJSON_Delete(*json);
    return tune_error_set("%s/%s: expected an object", c->folder, names[i]);
}

/* An entry of tokenizer_config.json's "added_tokens_decoder". */
static bool describe(cJSON *decoder, int32_t id, const char *token)
{
    char key[16];
    static const char *const off[] = {"lstrip", "normalized", "rstrip", "single_word"};
    snprintf(key, sizeof key, "%d", (int)id);
    cJSON *o = cJSON_GetObjectItemCaseSensitive(decoder, key) ? NULL : cJSON_AddObjectToObject(decoder, key);
    if (!o) /* it is there already */
        return cJSON_GetObjectItemCaseSensitive(decoder, key) != NULL;
    bool good = cJSON_AddStringToObject(o, "content", token) != NULL;
    for (int i = 0; i < 4; i++)
        good = cJSON_AddFalseToObject(o, off[i]) && good;
    return cJSON_AddTrueToObject(o, "special") && good;
}

/* Older kinds of files list the added tokens again. tok: the tokenizer that has them. */
static int list_tokens(struct tune_auxiliary *c, const struct tune_tokenizer *tok, const char *tokens)
{
    cJSON *config = NULL, *list = NULL;
    char *copy = strdup(tokens), *rest = copy;
    TRY(copy ? 0 : tune_error_no_memory("the tokens to add"));
    int status = parse(c, TOKENIZER_CONFIG, &config) < 0 || parse(c, ADDED, &list) < 0 ? -1 : 0;
    cJSON *decoder = status == 0 ? cJSON_GetObjectItemCaseSensitive(config, "added_tokens_decoder") : NULL;
    bool good = true;
    for (char *token; status == 0 && (token = strsep(&rest, ","));) {
        int32_t id = tune_tokenizer_id(tok, token);
        good = good && (!decoder || describe(decoder, id, token));
        if (list && !cJSON_GetObjectItemCaseSensitive(list, token))
            good = good && cJSON_AddNumberToObject(list, token, id);
    }
    free(copy);
    if (status == 0 && decoder)
        status = put_text(c, TOKENIZER_CONFIG, config, good);
    else
        cJSON_Delete(config);
    if (status == 0 && list)
        return put_text(c, ADDED, list, good);
    cJSON_Delete(list);
    return status;
}

int tune_auxiliary_add_tokens(struct tune_auxiliary *c, const char *tokens)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_path(path, "%s/%s", c->folder, names[TOKENIZER]));
    if (!c->text[TOKENIZER])
        return tune_error_set("%s: no tokenizer.json to add a token to", c->folder);
    struct tune_tokenizer *tok = tune_tokenizer_add(path, &c->text[TOKENIZER], &c->size[TOKENIZER], tokens);
    if (!tok)
        return -1;
    int32_t ids = tune_tokenizer_size(tok);
    cJSON *config = config_of(c);
    bool grows = config && cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(config, "vocab_size")) < ids;
    cJSON_Delete(config);
    int status = !config ? -1 : list_tokens(c, tok, tokens);
    tune_tokenizer_free(tok);
    return status == 0 && grows ? tune_auxiliary_vocabulary(c, ids) : status;
}

/* ---- chat ---- */

static bool has_number(const cJSON *item, double value)
{
    const cJSON *one;
    if (cJSON_IsNumber(item))
        return item->valuedouble == value;
    cJSON_ArrayForEach(one, item)
        if (cJSON_IsNumber(one) && one->valuedouble == value)
            return true;
    return false;
}

/* The first of the ids that end generation; the others follow. */
static bool put_end(cJSON *json, int32_t id)
{
    cJSON *old = cJSON_DetachItemFromObjectCaseSensitive(json, "eos_token_id"), *all = old;
    if (!cJSON_IsArray(old)) {
        all = cJSON_CreateArray();
        if (!all || !cJSON_IsNumber(old) || !cJSON_AddItemToArray(all, old))
            cJSON_Delete(old);
    }
    cJSON *first = cJSON_CreateNumber(id);
    if (all && first && cJSON_InsertItemInArray(all, 0, first))
        return cJSON_AddItemToObject(json, "eos_token_id", all);
    cJSON_Delete(first);
    cJSON_Delete(all);
    return false;
}

/* A folder without generation_config.json: transformers then takes config.json's ids. */
static cJSON *generation_of_config(const struct tune_auxiliary *c)
{
    static const char *const keys[] = {"bos_token_id", "eos_token_id", "pad_token_id"};
    cJSON *config = config_of(c), *json = config ? cJSON_CreateObject() : NULL;
    for (int i = 0; i < 3 && json; i++) {
        cJSON *item = cJSON_DetachItemFromObjectCaseSensitive(config, keys[i]);
        if (item && !cJSON_IsNull(item))
            cJSON_AddItemToObject(json, keys[i], item);
        else
            cJSON_Delete(item);
    }
    cJSON_Delete(config);
    return json;
}

static int end_with(struct tune_auxiliary *c, int32_t id)
{
    cJSON *json = c->text[GENERATION] ? cJSON_ParseWithLength(c->text[GENERATION], c->size[GENERATION]) : generation_of_config(c);
    if (!cJSON_IsObject(json)) {
        cJSON_Delete(json);
        return tune_error_set("%s/generation_config.json: expected an object", c->folder);
    }
    if (has_number(cJSON_GetObjectItemCaseSensitive(json, "eos_token_id"), id)) {
        cJSON_Delete(json);
        return 0;
    }
    char *text = put_end(json, id) ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return tune_error_no_memory("generation_config.json");
    if (!c->text[GENERATION])
        c->mode[GENERATION] = c->mode[CONFIG];
    free(c->text[GENERATION]);
    c->text[GENERATION] = text;
    c->size[GENERATION] = strlen(text);
    c->own_end = true;
    return 0;
}

int tune_auxiliary_chat(struct tune_auxiliary *c, const char *chat_template, int32_t end_id)
{
    if (end_id >= 0)
        TRY(end_with(c, end_id));
    if (!chat_template)
        return 0;
    char *text = strdup(chat_template);
    if (!text)
        return tune_error_no_memory("a chat template");
    if (!c->text[CHAT])
        c->mode[CHAT] = c->mode[CONFIG];
    free(c->text[CHAT]);
    c->text[CHAT] = text;
    c->size[CHAT] = strlen(text);
    return 0;
}

/* The eos_token of tokenizer_config.json; NULL: it names none. json: the file, parsed. */
static const char *eos_token_of(const cJSON *json)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, "eos_token");
    if (cJSON_IsObject(item))
        item = cJSON_GetObjectItemCaseSensitive(item, "content");
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

int tune_auxiliary_eos_token(struct tune_auxiliary *c, const char *token)
{
    cJSON *json;
    if (!token)
        return 0;
    TRY(parse(c, TOKENIZER_CONFIG, &json));
    if (eos_token_of(json)) {
        cJSON_Delete(json);
        return 0;
    }
    if (!json)
        json = cJSON_CreateObject();
    cJSON_DeleteItemFromObjectCaseSensitive(json, "eos_token"); /* it may be null */
    if (!c->text[TOKENIZER_CONFIG])
        c->mode[TOKENIZER_CONFIG] = c->mode[CONFIG];
    return put_text(c, TOKENIZER_CONFIG, json, cJSON_AddStringToObject(json, "eos_token", token) != NULL);
}

/* Take those files that the other folder has. */
static int take(struct tune_auxiliary *c, const char *folder, const int *which, int count)
{
    for (int k = 0; k < count; k++) {
        struct tune_auxiliary other = {0};
        int i = which[k];
        TRY(tune_path(other.folder, "%s", folder));
        if (!tune_folder_has(folder, names[i]))
            continue;
        int status = read_one(&other, i);
        if (status == 0) {
            free(c->text[i]);
            c->text[i] = other.text[i];
            c->size[i] = other.size[i];
            c->mode[i] = other.mode[i];
        } else {
            free(other.text[i]);
        }
        TRY(status);
    }
    return 0;
}

int tune_auxiliary_take_chat(struct tune_auxiliary *c, const char *folder)
{
    static const int files[] = {GENERATION, CHAT};
    static const char config[] = "tokenizer_config.json";
    TRY(take(c, folder, files, 2));
    if (!tune_folder_has(folder, config))
        return 0;
    cJSON *json = tune_cjson_read_in(folder, config, LARGEST);
    int status = json ? tune_auxiliary_eos_token(c, eos_token_of(json)) : -1;
    cJSON_Delete(json);
    return status;
}

int tune_auxiliary_take_tokenizer(struct tune_auxiliary *c, const char *folder)
{
    static const int files[] = {TOKENIZER, TOKENIZER_CONFIG, SPECIAL, ADDED};
    return tune_folder_has(folder, names[TOKENIZER]) ? take(c, folder, files, 4) : 0;
}

/* ---- compare ---- */

static bool same_config(const struct tune_auxiliary *a, const struct tune_auxiliary *b)
{
    cJSON *x = config_of(a), *y = config_of(b);
    for (int i = 0; i < 2; i++) {
        cJSON_DeleteItemFromObjectCaseSensitive(x, dtype_keys[i]);
        cJSON_DeleteItemFromObjectCaseSensitive(y, dtype_keys[i]);
    }
    bool same = x && y && cJSON_Compare(x, y, true);
    cJSON_Delete(x);
    cJSON_Delete(y);
    return same;
}

static bool same_tokenizer(const struct tune_auxiliary *a, const struct tune_auxiliary *b)
{
    const char *x = a->text[TOKENIZER], *y = b->text[TOKENIZER];
    size_t n = a->size[TOKENIZER];
    return x && y ? n == b->size[TOKENIZER] && !memcmp(x, y, n) : !x && !y;
}

int tune_auxiliary_compare(const struct tune_auxiliary *c, const char *folder, const char *config, const char **differs)
{
    static bool (*const same[])(const struct tune_auxiliary *, const struct tune_auxiliary *) = {same_config, same_tokenizer};
    *differs = NULL;
    for (int i = CONFIG; i <= TOKENIZER && !*differs; i++) {
        struct tune_auxiliary other = {0};
        TRY(tune_path(other.folder, "%s", i == CONFIG ? config : folder));
        int status = read_one(&other, i);
        if (status == 0 && !same[i](c, &other))
            *differs = names[i];
        free(other.text[i]);
        TRY(status);
    }
    return 0;
}
