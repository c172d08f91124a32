/* find.c - find what --model and --dataset mean, and identify weights. */
#include "flags/find.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "files/folder.h"
#include "files/json.h"
#include "core/nearest.h"
#include "core/try.h"
#include "flags/known.h"
#include "flags/model_hint.h"

enum { HINT = TUNE_PATH_MAX + 32 };

static bool has_file(const char *folder, const char *name)
{
    char path[TUNE_PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && tune_file_exists(path);
}

static bool has_weights(const char *folder)
{
    return has_file(folder, "model.safetensors") || has_file(folder, "model.safetensors.index.json");
}

/* True for ORG/NAME in letters that the Hub allows. Paths like ./x, ../x or a/b/c are none. */
static bool hub_shaped(const char *name)
{
    const char *slash = strchr(name, '/');
    if (!slash || slash == name || !slash[1] || strchr(slash + 1, '/') || *name == '.' || slash[1] == '.')
        return false;
    for (const char *c = name; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("-_./", *c))
            return false;
    return strlen(name) < 128;
}

/* ---- the Hub client's cache ---- */

static bool is_commit(const char *text, size_t size)
{
    return size > 0 && size <= 64 && strspn(text, "0123456789abcdef") >= size;
}

/* The commit in refs/main. A download by revision has no such file; then the only snapshot counts.
 * With several snapshots, none does. */
static bool find_commit(const char *repository, char commit[65])
{
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    int snapshots = 0;
    if (tune_folder_has(repository, "refs/main")) {
        if (tune_folder_read(repository, "refs/main", 4096, &text, &size) < 0)
            return false;
        size = strcspn(text, " \t\r\n");
        bool good = is_commit(text, size);
        if (good)
            snprintf(commit, 65, "%.*s", (int)size, text);
        free(text);
        return good;
    }
    DIR *folder = tune_path(path, "%s/snapshots", repository) == 0 ? opendir(path) : NULL;
    for (struct dirent *e; folder && (e = readdir(folder));)
        if (is_commit(e->d_name, strlen(e->d_name)) && snapshots++ == 0)
            snprintf(commit, 65, "%.64s", e->d_name);
    if (folder)
        closedir(folder);
    return snapshots == 1;
}

/* The newest snapshot of a repository in the cache: models--ORG--NAME/snapshots/<commit>, which
 * holds the files as links into blobs. kind: "models" or "datasets". */
static bool find_snapshot(const char *kind, const char *hub_id, size_t size, char folder[TUNE_PATH_MAX])
{
    char cache[TUNE_PATH_MAX], repository[TUNE_PATH_MAX], commit[65];
    size_t owner = strcspn(hub_id, "/");
    tune_hub_cache(cache);
    return *cache && owner < size &&
           tune_path(repository, "%s/%s--%.*s--%.*s", cache, kind, (int)owner, hub_id, (int)(size - owner - 1), hub_id + owner + 1) == 0 &&
           find_commit(repository, commit) && tune_path(folder, "%s/snapshots/%s", repository, commit) == 0;
}

static bool in_cache(const char *hub_id, char folder[TUNE_PATH_MAX])
{
    /* the cache often holds a tokenizer alone */
    return find_snapshot("models", hub_id, strlen(hub_id), folder) && has_file(folder, "config.json") && has_weights(folder);
}

int tune_model_locate(const char *hub_id, char folder[TUNE_PATH_MAX])
{
    struct tune_error before; /* not finding it is no error */
    tune_error_save(&before);
    bool found = (tune_path(folder, "models/%s", tune_hub_name(hub_id)) == 0 && has_file(folder, "config.json")) ||
                 in_cache(hub_id, folder);
    tune_error_restore(&before);
    return found;
}

/* ---- names ---- */

static int no_config(const char *folder)
{
    char hint[HINT];
    if (has_file(folder, "adapter_config.json"))
        tune_error_set("%s: no config.json, but an adapter_config.json: this is a LoRA adapter; give it with --adapter, "
                       "and its base with --model, or merge it into its base (build/merge_adapter --help)", folder);
    else if (*tune_model_hint(folder, hint, sizeof hint))
        tune_error_set("%s: no config.json in this folder of a run%s", folder, hint);
    else
        tune_error_set("%s: no config.json in this folder; expected a model in Hugging Face layout: config.json, "
                       "tokenizer.json and model.safetensors", folder);
    return -1;
}

/* True if the first folder of the path is here, so that it is no name of the Hub. */
static bool is_path(const char *name)
{
    char first[TUNE_PATH_MAX];
    return tune_path(first, "%.*s", (int)strcspn(name, "/"), name) == 0 && tune_file_is_folder(first);
}

static int no_such_folder(const char *name)
{
    char hint[HINT];
    return tune_error_usage("%s: no such folder%s", name,
                            *tune_model_hint(name, hint, sizeof hint)
                                ? hint
                                : "; expected a model folder, a known name (see --list-models) or a Hub id such as "
                                  "HuggingFaceTB/SmolLM2-135M");
}

static int absent(const char *name, const char *hub_id, const struct tune_known_model *known)
{
    const char *last = tune_hub_name(hub_id);
    char half[TUNE_PATH_MAX], like[256] = "";
    if (tune_path(half, "models/%s", last) == 0 && tune_file_is_folder(half))
        return no_config(half);
    if (known)
        snprintf(like, sizeof like, "\nor, with random weights, to measure speed only:\n"
                 "  build/init_model --like %s --seed 1 models/%s", known->name, last);
    return tune_error_usage("model \"%s\": neither in models/%s nor in the Hub client's cache. To "
                            "get it:\n  tools/download.sh %s models/%s%s", name, last, hub_id, last,
                            like);
}

static int no_such_name(const char *name)
{
    struct tune_known_model *models;
    int count = tune_known_models(&models);
    if (count < 0)
        return -1;
    const char **names = calloc((size_t)count + 1, sizeof *names);
    for (int i = 0; names && i < count; i++)
        names[i] = models[i].name;
    const char *nearest = names ? tune_nearest(name, names, count, NULL) : NULL;
    char hint[HINT];
    if (*tune_model_hint(name, hint, sizeof hint))
        tune_error_usage("model \"%s\": neither a folder nor a known name%s", name, hint);
    else
        tune_error_usage("model \"%s\": neither a folder, nor a known name%s%s%s, nor a Hub id such "
                         "as ORG/NAME; --list-models shows the known ones", name,
                         nearest ? " (the nearest is " : "", nearest ? nearest : "",
                         nearest ? ")" : "");
    free(names);
    free(models);
    return -1;
}

int tune_model_find(const char *name, char folder[TUNE_PATH_MAX])
{
    struct tune_known_model known;
    if (!name || !*name)
        return tune_error_usage("--model is missing: a model folder, a known name (see "
                                "--list-models) or a Hub id such as HuggingFaceTB/SmolLM2-135M");
    bool there = tune_file_is_folder(name);
    if (there && has_file(name, "config.json"))
        return tune_path(folder, "%s", name);
    int found = tune_known_model(name, &known);
    if (found < 0)
        return -1;
    bool named = found && (!strcasecmp(name, known.name) || !strcasecmp(name, known.hub_id));
    if (there && !named)
        return no_config(name);
    if (!there && tune_file_exists(name))
        return tune_error_set("%s is a file; expected the folder it lies in, with config.json "
                              "beside the weights", name);
    if (!found && !hub_shaped(name)) {
        if (!strchr(name, '/'))
            return no_such_name(name);
        return no_such_folder(name);
    }
    if (!found && is_path(name)) /* runs/NAME must not become models/NAME */
        return in_cache(name, folder) ? 0 : no_such_folder(name);
    const char *hub_id = found ? known.hub_id : name;
    /* a missing /elsewhere/SmolLM2-135M must not become another folder */
    if ((!found || named) && tune_model_locate(hub_id, folder))
        return 0;
    return absent(name, hub_id, found ? &known : NULL);
}

/* ORG/NAME of a snapshot in the Hub client's cache: .../models--ORG--NAME/snapshots/... */
static bool id_of_snapshot(const char *folder, char id[128])
{
    static const char lead[] = "/models--";
    const char *at = strstr(folder, lead), *end = at ? strstr(at, "/snapshots/") : NULL;
    const char *parts = end ? strstr(at + sizeof lead - 1, "--") : NULL;
    if (!parts || parts >= end || end - at >= 128)
        return false;
    at += sizeof lead - 1;
    snprintf(id, 128, "%.*s/%.*s", (int)(parts - at), at, (int)(end - parts - 2), parts + 2);
    return hub_shaped(id);
}

bool tune_model_hub_id(const char *name, const char *folder, char id[128])
{
    struct tune_known_model known;
    if (id_of_snapshot(folder, id))
        return true;
    if (!name || tune_file_is_folder(name))
        return false;
    bool found = tune_known_model(name, &known) > 0 && (!strcasecmp(name, known.name) || !strcasecmp(name, known.hub_id));
    if (!found && !hub_shaped(name))
        return false;
    snprintf(id, 128, "%s", found ? known.hub_id : name);
    return true;
}

/* ---- data sets ---- */

/* Length of OWNER/NAME at the beginning of OWNER/NAME or OWNER/NAME/SPLIT; 0: it is none of them. */
static size_t hub_part(const char *name)
{
    char id[128];
    const char *slash = strchr(name, '/'), *second = slash ? strchr(slash + 1, '/') : NULL;
    size_t size = second ? (size_t)(second - name) : strlen(name);
    if (size >= sizeof id || (second && !second[1]))
        return 0;
    memcpy(id, name, size);
    id[size] = 0;
    return hub_shaped(id) ? size : 0;
}

static bool ends_as_rows(const char *name)
{
    static const char *const endings[] = {".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt"};
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending && i < sizeof endings / sizeof *endings; i++)
        if (!strcasecmp(ending, endings[i]))
            return true;
    return false;
}

int tune_dataset_find(const char *name, char path[TUNE_PATH_MAX])
{
    char folder[TUNE_PATH_MAX];
    size_t size = hub_part(name);
    struct tune_error before;
    if (tune_file_exists(name))
        return tune_path(path, "%s", name);
    if (size > 0) {
        size_t owner = strcspn(name, "/") + 1;
        tune_error_save(&before);
        bool found = (tune_path(folder, "data/%.*s", (int)(size - owner), name + owner) == 0 && tune_file_is_folder(folder)) ||
                     (find_snapshot("datasets", name, size, folder) && tune_file_is_folder(folder));
        tune_error_restore(&before);
        if (found)
            return tune_path(path, "%s%s", folder, name + size);
    }
    TRY(tune_file_parent(folder, name));
    if (ends_as_rows(name) || !*name)
        return tune_error_usage("%s: no such file", name);
    if (strchr(name, '/') && tune_file_is_folder(folder))
        return tune_path(path, "%s", name); /* a split */
    if (size == 0)
        return tune_error_usage("%s: no such file; expected a file of rows, a folder of them, or a Hub id such as tatsu-lab/alpaca", name);
    const char *last = strchr(name, '/') + 1;
    int n = (int)(size - (size_t)(last - name));
    return tune_error_usage("%s: no such file, and neither in data/%.*s nor in the Hub client's cache. To get it from the Hub:\n"
                            "  tools/download.sh --dataset %.*s data/%.*s", name, n, last, (int)size, name, n, last);
}

bool tune_dataset_hub_id(const char *name, char id[128])
{
    char path[TUNE_PATH_MAX];
    size_t size = hub_part(name);
    if (size == 0 || ends_as_rows(name) || tune_file_exists(name) || is_path(name))
        return false;
    bool found = tune_dataset_find(name, path) == 0;
    tune_error_clear();
    snprintf(id, 128, "%.*s", (int)size, name);
    return found;
}

/* ---- which weights ---- */

static bool is_weights(const char *name, bool model_only)
{
    size_t n = strlen(name), end = strlen(".safetensors");
    return n > end && !strcmp(name + n - end, ".safetensors") && *name != '.' &&
           (!model_only || !strncmp(name, "model", 5));
}

static int only_model(const struct dirent *entry)
{
    return is_weights(entry->d_name, true);
}

static int any(const struct dirent *entry)
{
    return is_weights(entry->d_name, false);
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name); /* strcmp, not alphasort: the locale must not change
                                                * a hash */
}

static int fingerprint(const char *folder, uint64_t *hash)
{
    struct dirent **files = NULL;
    int count = scandir(folder, &files, only_model, by_name), result = 0;
    if (count == 0) {
        free(files);
        count = scandir(folder, &files, any, by_name);
    }
    if (count <= 0) {
        free(files);
        return tune_error_set("%s: no weights in this folder; expected model.safetensors, or "
                              "model-00001-of-0000N.safetensors with their index", folder);
    }
    *hash = 0;
    for (int i = 0; i < count; i++) {
        *hash = tune_hash64(files[i]->d_name, strlen(files[i]->d_name), *hash);
        if (result == 0)
            result = tune_folder_fingerprint(folder, files[i]->d_name, hash);
        free(files[i]);
    }
    free(files);
    return result;
}

/* Take the revision from a snapshot's path, else from the file that the Hub client leaves beside a
 * download. */
static int read_revision(const char *folder, char revision[65])
{
    static const char metadata[] = ".cache/huggingface/download/config.json.metadata";
    char *text = NULL, *real = realpath(folder, NULL);
    const char *at = real ? strstr(real, "/snapshots/") : NULL;
    size_t size = 0;
    *revision = 0;
    if (at && strstr(real, "/models--")) {
        at += strlen("/snapshots/");
        size = strcspn(at, "/");
        if (is_commit(at, size))
            snprintf(revision, 65, "%.*s", (int)size, at);
    }
    free(real);
    if (*revision)
        return 0;
    if (!tune_folder_has(folder, metadata))
        return 0;
    TRY(tune_folder_read(folder, metadata, 65536, &text, &size));
    size = strcspn(text, " \t\r\n");
    if (is_commit(text, size))
        snprintf(revision, 65, "%.*s", (int)size, text);
    free(text);
    return 0;
}

/* Read {"weights": "random", "seed": N} with the strict reader, so that a seed above 2^53 stays
 * exact. */
static int read_origin(struct tune_json *j, struct tune_model_identity *identity)
{
    struct tune_text key, text;
    uint64_t seed = 0;
    bool found = false;
    int more;
    TRY(tune_json_object(j));
    while ((more = tune_json_key(j, &key)) == 1) {
        if (tune_text_equal(key, "weights")) {
            TRY(tune_json_string(j, &text));
            identity->random = tune_text_equal(text, "random");
            found = true;
        } else if (tune_text_equal(key, "seed")) {
            TRY(tune_json_u64(j, &seed));
        } else {
            TRY(tune_json_skip(j));
        }
    }
    TRY(more);
    if (!found || seed > INT64_MAX)
        return tune_json_fail(j, "expected {\"weights\": \"random\", \"seed\": N}");
    identity->seed = (int64_t)seed;
    return tune_json_end(j);
}

static int read_random(const char *folder, struct tune_model_identity *identity)
{
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    struct tune_json j;
    TRY(tune_path(path, "%s/tune_weights.json", folder));
    if (!tune_folder_has(folder, "tune_weights.json"))
        return 0;
    TRY(tune_folder_read(folder, "tune_weights.json", 65536, &text, &size));
    tune_json_start(&j, path, text, size, 1);
    int status = read_origin(&j, identity);
    tune_json_free(&j);
    free(text);
    return status;
}

int tune_model_identity(const char *folder, struct tune_model_identity *identity)
{
    memset(identity, 0, sizeof *identity);
    TRY(read_random(folder, identity));
    TRY(read_revision(folder, identity->revision));
    return fingerprint(folder, &identity->fingerprint);
}

int tune_model_hash_settings(const char *folder, uint64_t *hash)
{
    static const char *const names[] = {"config.json", "adapter_config.json", "tokenizer.json"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (tune_folder_has(folder, names[i]))
            TRY(tune_folder_fingerprint(folder, names[i], hash));
    return 0;
}
