/* template.c - the chat template as keys, from where transformers finds it: chat_template.jinja,
 * else "chat_template" in tokenizer_config.json. */
#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/try.h"
#include "export.h"
#include "files/cjson.h"
#include "files/folder.h"

enum { LIMIT = 4 << 20, MOST = 16 };

/* Put a template of a list under its name. */
static int put_named(struct export *e, const char *name, const char *text, struct tune_text *names,
                     int *count)
{
    char key[128];
    if (strcmp(name, "default") == 0)
        return tune_gguf_put_text(e->out, "tokenizer.chat_template", text);
    if (*count == MOST)
        return tune_error_set("%s: more than %d chat templates", e->m.folder, MOST);
    int n = snprintf(key, sizeof key, "tokenizer.chat_template.%.60s", name);
    for (char *c = key + strlen("tokenizer.chat_template."); c < key + n; c++)
        *c = isalnum((unsigned char)*c) ? *c : '_';
    names[(*count)++] = (struct tune_text){name, strlen(name)};
    return tune_gguf_put_text(e->out, key, text);
}

static int put_list(struct export *e, const cJSON *list)
{
    struct tune_text names[MOST];
    int count = 0;
    for (const cJSON *item = list->child; item; item = item->next) {
        const cJSON *name = cJSON_GetObjectItemCaseSensitive(item, "name"),
                    *text = cJSON_GetObjectItemCaseSensitive(item, "template");
        if (cJSON_IsString(name) && cJSON_IsString(text))
            TRY(put_named(e, name->valuestring, text->valuestring, names, &count));
    }
    return count ? tune_gguf_put_array(e->out, "tokenizer.chat_templates", TUNE_GGUF_STRING,
                                       (uint64_t)count, names)
                 : 0;
}

static int from_config(struct export *e, const char *folder)
{
    if (!tune_folder_has(folder, "tokenizer_config.json"))
        return 0;
    cJSON *json = tune_cjson_read_in(folder, "tokenizer_config.json", (size_t)16 << 20);
    if (!json)
        return -1;
    const cJSON *said = cJSON_GetObjectItemCaseSensitive(json, "chat_template");
    int status = cJSON_IsString(said)
                     ? tune_gguf_put_text(e->out, "tokenizer.chat_template", said->valuestring)
                 : cJSON_IsArray(said) ? put_list(e, said)
                                       : 0;
    cJSON_Delete(json);
    return status;
}

int export_template(struct export *e)
{
    const char *file = "chat_template.jinja";
    const char *folder = e->adapter && tune_folder_has(e->adapter, file) ? e->adapter : e->m.folder;
    char *text;
    size_t size;
    if (!tune_folder_has(folder, file))
        return from_config(e, folder);
    TRY(tune_folder_read(folder, file, LIMIT, &text, &size));
    struct tune_text whole = {text, size};
    int status = tune_gguf_put(e->out, "tokenizer.chat_template", TUNE_GGUF_STRING, &whole);
    free(text);
    return status;
}
