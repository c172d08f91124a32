/* known.c - the table of known models, read from defaults/models. */
#include "flags/known.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/cjson.h"
#include "core/error.h"
#include "files/file.h"
#include "core/try.h"

const char *tune_hub_name(const char *hub_id)
{
    const char *slash = strrchr(hub_id, '/');
    return slash ? slash + 1 : hub_id;
}

static int64_t whole(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    return cJSON_IsNumber(item) && item->valuedouble > 0 && item->valuedouble < 9e15 ? (int64_t)item->valuedouble : 0;
}

static int read_model(struct tune_known_model *m, const char *path)
{
    cJSON *json = tune_cjson_read(path, 1 << 24);
    if (!json)
        return -1;
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(json, "name");
    const cJSON *hub_id = cJSON_GetObjectItemCaseSensitive(json, "hub_id");
    bool good = cJSON_IsString(name) && cJSON_IsString(hub_id) && strlen(name->valuestring) < sizeof m->name &&
                strlen(hub_id->valuestring) < sizeof m->hub_id;
    memset(m, 0, sizeof *m);
    if (good) {
        const cJSON *config = cJSON_GetObjectItemCaseSensitive(json, "config");
        strcpy(m->name, name->valuestring);
        strcpy(m->hub_id, hub_id->valuestring);
        m->parameters = whole(json, "parameters");
        int64_t context = whole(config, "max_position_embeddings");
        m->context = (int)(context ? context : whole(config, "n_positions"));
    } else {
        tune_error_set("%s: expected a JSON object with the strings \"name\" (under 64 bytes) and \"hub_id\" (under 128)",
                       path);
    }
    cJSON_Delete(json);
    return good ? 0 : -1;
}

static int by_size(const void *a, const void *b)
{
    const struct tune_known_model *x = a, *y = b;
    if (x->parameters != y->parameters)
        return x->parameters < y->parameters ? -1 : 1;
    return strcmp(x->name, y->name);
}

int tune_known_models(struct tune_known_model **models)
{
    char folder[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    int count = 0, capacity = 0;
    *models = NULL;
    if (tune_defaults_path(folder, "models") < 0) {
        tune_error_clear(); /* a foreign program may not have our defaults */
        return 0;
    }
    DIR *dir = opendir(folder);
    if (!dir)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        size_t n = strlen(entry->d_name);
        if (n < 6 || *entry->d_name == '.' || strcmp(entry->d_name + n - 5, ".json"))
            continue;
        if (count == capacity) {
            capacity = capacity ? 2 * capacity : 16;
            struct tune_known_model *more = realloc(*models, (size_t)capacity * sizeof *more);
            if (!more) {
                tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory for the table of known models");
                goto fail;
            }
            *models = more;
        }
        if (tune_path(path, "%s/%s", folder, entry->d_name) < 0 || read_model(*models + count, path) < 0)
            goto fail;
        count++;
    }
    closedir(dir);
    if (count > 1)
        qsort(*models, (size_t)count, sizeof **models, by_size);
    return count;
fail:
    closedir(dir);
    free(*models);
    *models = NULL;
    return -1;
}

/* True if the path goes through the Hub cache's folder of that id: .../models--ORG--NAME/... */
static bool below_cache(const char *path, const char *hub_id)
{
    char part[192];
    const char *slash = strchr(hub_id, '/');
    if (!slash)
        return false;
    snprintf(part, sizeof part, "models--%.*s--%s/", (int)(slash - hub_id), hub_id, slash + 1);
    return strcasestr(path, part) != NULL;
}

static bool means(const struct tune_known_model *m, const char *model)
{
    char folder[TUNE_PATH_MAX];
    size_t n = strlen(model);
    while (n > 1 && model[n - 1] == '/')
        n--;
    if (n == 0 || n >= sizeof folder)
        return false;
    memcpy(folder, model, n);
    folder[n] = 0;
    const char *last = strrchr(folder, '/');
    return !strcasecmp(folder, m->name) || !strcasecmp(folder, m->hub_id) ||
           !strcasecmp(last ? last + 1 : folder, tune_hub_name(m->hub_id)) || below_cache(model, m->hub_id);
}

int tune_known_model(const char *model, struct tune_known_model *found)
{
    struct tune_known_model *models;
    int count = tune_known_models(&models), i = 0;
    if (count < 0)
        return -1;
    while (i < count && !means(models + i, model))
        i++;
    if (i < count)
        *found = models[i];
    free(models);
    return i < count;
}
