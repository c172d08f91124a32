/* generation_config.c - read what a model's folder says of generation. */
#include "generators/generation_config.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "files/cjson.h"
#include "files/folder.h"
#include "generators/generation_keys.h"
#include "generators/token_sampler.h"
#include "tokenizers/tokenizer.h"

enum { LIMIT = 16 << 20 };

void tune_generation_config_free(struct tune_generation_config *c)
{
    tune_token_rules_free(&c->rules);
    for (int i = 0; i < c->stop_count; i++)
        free(c->stops[i]);
    c->stop_count = c->end_count = 0;
}

int tune_generation_config_end(struct tune_generation_config *c, int32_t id)
{
    for (int i = 0; i < c->end_count; i++)
        if (c->ends[i] == id)
            return 0;
    if (c->end_count == TUNE_CONFIG_ENDS)
        return tune_error_set("more than %d tokens end an answer", TUNE_CONFIG_ENDS);
    c->ends[c->end_count++] = id;
    return 0;
}

/* Read a file of the folder. *json is NULL if it is absent. */
static int read_file(const char *folder, const char *name, cJSON **json)
{
    *json = NULL;
    if (!tune_folder_has(folder, name))
        return 0;
    *json = tune_cjson_read_in(folder, name, LIMIT);
    return *json ? 0 : -1;
}

static int add_id(struct tune_generation_config *c, const char *folder, const char *file, const cJSON *id,
                  int32_t size)
{
    if (!cJSON_IsNumber(id) || id->valuedouble != (double)(int32_t)id->valuedouble)
        return tune_error_set("%s/%s: \"eos_token_id\" is no id and no list of ids", folder, file);
    if (id->valuedouble < 0 || id->valuedouble >= size)
        return 0; /* transformers writes -1 for none; an id that no token has ends nothing */
    return tune_generation_config_end(c, (int32_t)id->valuedouble);
}

static int add_ids(struct tune_generation_config *c, const char *folder, const char *file, const cJSON *json,
                   int32_t size)
{
    const cJSON *ids = cJSON_GetObjectItemCaseSensitive(json, "eos_token_id"), *id;
    if (!ids || cJSON_IsNull(ids))
        return 0;
    if (!cJSON_IsArray(ids))
        return add_id(c, folder, file, ids, size);
    cJSON_ArrayForEach(id, ids)
        TRY(add_id(c, folder, file, id, size));
    return 0;
}

/* A number, or `otherwise` if it is absent or null. */
static int number(const char *folder, const cJSON *json, const char *key, double otherwise, double *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, key);
    *value = otherwise;
    if (!item || cJSON_IsNull(item))
        return 0;
    if (!cJSON_IsNumber(item))
        return tune_error_set("%s/generation_config.json: \"%s\" is no number", folder, key);
    *value = item->valuedouble;
    return 0;
}

static int read_sampling(struct tune_generation_config *c, const char *folder, const cJSON *json)
{
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(json, "do_sample");
    bool samples = cJSON_IsTrue(said);
    double temperature, top_k, top_p, min_p, penalty;
    if (said && !cJSON_IsBool(said) && !cJSON_IsNull(said))
        return tune_error_set("%s/generation_config.json: \"do_sample\" is neither true nor false", folder);
    TRY(number(folder, json, "temperature", 1, &temperature));
    TRY(number(folder, json, "top_k", samples ? 50 : 0, &top_k));
    TRY(number(folder, json, "top_p", 1, &top_p));
    TRY(number(folder, json, "min_p", 0, &min_p));
    TRY(number(folder, json, "repetition_penalty", 1, &penalty));
    c->said = samples || penalty != 1;
    if (!(top_k >= 0 && top_k <= INT32_MAX))
        return tune_error_set("%s/generation_config.json: \"top_k\" is %g", folder, top_k);
    c->sampling = (struct tune_sampling_options){samples ? temperature : 0, (int)top_k, top_p, min_p, penalty};
    if (tune_sampling_check(&c->sampling) == 0)
        return 0;
    return tune_error_prefix("%s/generation_config.json: ", folder);
}

/* eos_token is a string, or an object with its content. */
static int add_token(struct tune_generation_config *c, const cJSON *json, const struct tune_tokenizer *tok)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, "eos_token");
    if (cJSON_IsObject(item))
        item = cJSON_GetObjectItemCaseSensitive(item, "content");
    int32_t id = cJSON_IsString(item) ? tune_tokenizer_id(tok, item->valuestring) : -1;
    return id < 0 ? 0 : tune_generation_config_end(c, id);
}

int tune_generation_config_read(struct tune_generation_config *c, const char *folder,
                                const struct tune_tokenizer *tok)
{
    static const char *const files[] = {"generation_config.json", "config.json", "tokenizer_config.json"};
    *c = (struct tune_generation_config){.sampling = {0, 0, 1, 0, 1}};
    for (int i = 0; i < 3; i++) {
        cJSON *json;
        int status = read_file(folder, files[i], &json);
        status = status < 0 || !json ? status : i < 2 ? add_ids(c, folder, files[i], json, tune_tokenizer_size(tok)) : add_token(c, json, tok);
        if (status == 0 && i == 0 && json)
            status = read_sampling(c, folder, json);
        if (status == 0 && i == 0 && json)
            status = tune_generation_keys_read(c, folder, json);
        cJSON_Delete(json);
        if (status < 0) {
            tune_generation_config_free(c);
            return -1;
        }
    }
    return 0;
}
