/* end_token.c - what a model's folder says of its tokens: which one ends texts, and how many rows the vocabulary has. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "files/cjson.h"
#include "files/file.h"
#include "files/folder.h"
#include "tokenizers/tokenizer.h"

/* Read one member of a JSON file of the folder. 0 and *json, NULL without file; *item, NULL without
 * member. */
static int read_member(const char *folder, const char *file, const char *key, cJSON **json, const cJSON **item)
{
    *json = NULL;
    *item = NULL;
    if (!tune_folder_has(folder, file))
        return 0;
    *json = tune_cjson_read_in(folder, file, (size_t)16 << 20);
    *item = cJSON_GetObjectItemCaseSensitive(*json, key);
    return *json ? 0 : -1;
}

int tune_tokenizer_end(const struct tune_tokenizer *tok, const char *folder, char **token)
{
    cJSON *json;
    const cJSON *item;
    const char *found = NULL;
    *token = NULL;
    TRY(read_member(folder, "tokenizer_config.json", "eos_token", &json, &item));
    if (cJSON_IsObject(item))
        item = cJSON_GetObjectItemCaseSensitive(item, "content");
    if (cJSON_IsString(item) && *item->valuestring)
        found = item->valuestring;
    if (!found) {
        cJSON_Delete(json);
        TRY(read_member(folder, "config.json", "eos_token_id", &json, &item));
        if (cJSON_IsArray(item))
            item = cJSON_GetArrayItem(item, 0);
        if (cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < tune_tokenizer_size(tok))
            found = tune_tokenizer_token(tok, (int32_t)item->valuedouble);
    }
    if (found)
        *token = strdup(found);
    cJSON_Delete(json);
    return !found || *token ? 0 : tune_error_no_memory("the name of a token");
}

int tune_tokenizer_limit_by(struct tune_tokenizer *tok, const char *folder)
{
    cJSON *json = NULL;
    const cJSON *rows = NULL;
    struct tune_error why;
    tune_error_save(&why);
    if (!tune_file_is_folder(folder) || read_member(folder, "config.json", "vocab_size", &json, &rows) < 0)
        tune_error_restore(&why); /* whoever reads the model reports what is wrong with its config */
    double n = cJSON_IsNumber(rows) && rows->valuedouble >= 1 && rows->valuedouble <= INT32_MAX ? rows->valuedouble : 0;
    cJSON_Delete(json);
    return tune_tokenizer_limit(tok, (int32_t)n);
}
