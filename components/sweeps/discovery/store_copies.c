/* store_copies.c - store copies of experiments, and hashes of data files, in a store. */
#include "sweeps/discovery/store_copies.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"
#include "core/try.h"
#include "files/cjson.h"

enum { RECORD_LIMIT = 1 << 16 };

/* ---- experiments ---- */

/* Write the record, unless it exists with this text. */
static int save_file(struct tune_store *s, const char *name, const char *text, size_t size)
{
    char path[TUNE_PATH_MAX], *there;
    size_t length;
    TRY(tune_path(path, "%s/experiments/%s", tune_store_folder(s), name));
    if (tune_file_exists(path)) {
        TRY(tune_file_read(path, TUNE_DOCUMENT_BYTES, &there, &length));
        bool same = length == size && !memcmp(there, text, size);
        free(there);
        if (same)
            return 0;
    }
    return tune_store_record(s, "experiments", name, text, size);
}

/* Copy the folder of e's program, if its path is relative. */
static int copy_folder(struct tune_store *s, const struct tune_experiment *e, const char *name)
{
    char file[TUNE_COPY_NAME + 8], *folder = NULL, *line = NULL;
    if (!e->program || !strchr(e->program, '/') || e->program[0] == '/')
        return 0;
    folder = realpath(e->folder, NULL);
    int length = folder ? asprintf(&line, "%s\n", folder) : -1;
    free(folder);
    if (length < 0)
        return tune_error_set("the folder %s of the experiment %s does not exist", e->folder,
                              e->name);
    snprintf(file, sizeof file, "%s.folder", name);
    int code = save_file(s, file, line, (size_t)length);
    free(line);
    return code;
}

bool tune_experiment_is_copy(const struct tune_store *s, const struct tune_experiment *e)
{
    const char *own = tune_store_folder(s);
    size_t length = strlen(own);
    return !strncmp(e->document->path, own, length) && !strncmp(e->document->path + length, "/experiments/", 13);
}

void tune_experiment_copy_name(const struct tune_store *s, const struct tune_experiment *e, char name[TUNE_COPY_NAME])
{
    const char *path = e->document->path, *dot = strrchr(path, '.');
    bool json = dot && !strcmp(dot, ".json");
    if (tune_experiment_is_copy(s, e))
        snprintf(name, TUNE_COPY_NAME, "%s", strrchr(path, '/') + 1);
    else
        snprintf(name, TUNE_COPY_NAME, "%.200s.%.200s%s", e->actuator, e->name, json ? ".json" : ".yaml");
}

static int copy_experiment(struct tune_store *s, const struct tune_experiment *e)
{
    char name[TUNE_COPY_NAME], *text;
    size_t size;
    if (tune_experiment_is_copy(s, e))
        return 0;
    tune_experiment_copy_name(s, e, name);
    TRY(tune_file_read(e->document->path, TUNE_DOCUMENT_BYTES, &text, &size));
    int code = copy_folder(s, e, name);
    if (code == 0)
        code = save_file(s, name, text, size);
    free(text);
    return code;
}

int tune_copy_experiments(struct tune_store *s, const struct tune_binding *bindings, int count)
{
    for (int p = 0; p < count; p++)
        if (tune_binding_is_first(bindings, p))
            TRY(copy_experiment(s, bindings[p].experiment));
    return 0;
}

/* ---- data ---- */

static void data_record_name(const char *path, char name[32])
{
    unsigned long long hash = tune_hash64(path, strlen(path), 0);
    snprintf(name, 32, "%016llx.json", hash);
}

int tune_data_hash_read(const struct tune_store *s, const char *path, char hash[33])
{
    char name[32], file[TUNE_PATH_MAX];
    data_record_name(path, name);
    TRY(tune_path(file, "%s/data/%s", tune_store_folder(s), name));
    if (!tune_file_exists(file))
        return 0;
    cJSON *json = tune_cjson_read(file, RECORD_LIMIT);
    TRY(json ? 0 : -1);
    const cJSON *of = cJSON_GetObjectItemCaseSensitive(json, "path"),
                *item = cJSON_GetObjectItemCaseSensitive(json, "hash");
    bool good = cJSON_IsString(of) && cJSON_IsString(item) && strlen(item->valuestring) < 33;
    bool same = good && !strcmp(of->valuestring, path);
    if (same)
        strcpy(hash, item->valuestring);
    cJSON_Delete(json);
    return good ? same : tune_error_set("%s: expected the path and the hash of a data file; remove it", file);
}

int tune_data_hash_save(struct tune_store *s, const char *path, const char *hash)
{
    char name[32], known[33];
    int there = tune_data_hash_read(s, path, known);
    TRY(there);
    if (there && !strcmp(known, hash))
        return 0;
    data_record_name(path, name);
    cJSON *json = cJSON_CreateObject();
    bool good = tune_cjson_put_text(json, "path", path) && tune_cjson_put_text(json, "hash", hash);
    char *text = good ? cJSON_Print(json) : NULL;
    cJSON_Delete(json);
    if (!text)
        return tune_error_cannot("out of memory while the hash of a data file is stored");
    int code = tune_store_record(s, "data", name, text, strlen(text));
    cJSON_free(text);
    return code;
}
