/* spaces_find.c - the sample stores and space files below the root. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/array.h"
#include "core/try.h"
#include "files/cjson.h"
#include "routes.h"
#include "runs/run_folder.h"
#include "spaces.h"
#include "sweeps/spaces/space.h"

/* Folders below each other and in all, the largest file that may be a space, files that may be one, and names in a list. */
enum { DEPTH = 8, FOLDERS = 20000, SPACE_FILE = 256 << 10, KNOWN = 16384, NAMES = 1000 };

/* A list of paths that grows. */
struct paths {
    char **at;
    size_t count;
};

struct walk {
    const struct studio *s;
    struct paths stores, spaces;
    int64_t folders, left_out; /* folders looked into; entries left out: too deep, too many, no UTF-8 */
};

/* ---- the walk ---- */

static int add_path(struct paths *p, const char *path)
{
    if (!tune_array_fit(&p->at, p->count, sizeof *p->at) || !(p->at[p->count] = strdup(path)))
        return tune_error_no_memory("a list of stores");
    p->count++;
    return 0;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_paths(struct paths *p)
{
    for (size_t i = 0; i < p->count; i++)
        free(p->at[i]);
    free(p->at);
}

static bool has_ending(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && !strcmp(name + n - m, ending);
}

static bool has_file(const char *folder, const char *name)
{
    char path[TUNE_PATH_MAX];
    struct stat st;
    return tune_path(path, "%s/%s", folder, name) == 0 && lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int walk(struct walk *w, const char *folder, int depth);

static int visit(struct walk *w, const char *path, const char *name, int depth)
{
    struct stat st;
    if (*name == '.' || lstat(path, &st) < 0)
        return 0;
    if (!tune_utf8_valid(name, strlen(name), NULL))
        return w->left_out++, 0;
    if (S_ISREG(st.st_mode) && (has_ending(name, ".yaml") || has_ending(name, ".yml") || has_ending(name, ".json")))
        return st.st_size <= SPACE_FILE && w->spaces.count < KNOWN ? add_path(&w->spaces, path) : (w->left_out++, 0);
    if (!S_ISDIR(st.st_mode) || has_file(path, TUNE_RUN_JSON))
        return 0;
    if (has_file(path, "store.json"))
        return add_path(&w->stores, path);
    return walk(w, path, depth + 1);
}

static int walk(struct walk *w, const char *folder, int depth)
{
    char path[TUNE_PATH_MAX];
    if (depth > DEPTH || w->folders >= FOLDERS)
        return w->left_out++, 0;
    w->folders++;
    DIR *d = opendir(folder);
    int code = 0;
    for (struct dirent *e; d && code == 0 && (e = readdir(d));)
        if (tune_path(path, "%s%s%s", strcmp(folder, ".") ? folder : "", strcmp(folder, ".") ? "/" : "", e->d_name) == 0)
            code = visit(w, path, e->d_name, depth);
    if (d)
        closedir(d);
    return code;
}

/* Look for stores and space files below the root. */
static int walk_root(struct walk *w)
{
    if (has_file(".", "store.json"))
        TRY(add_path(&w->stores, "."));
    return walk(w, ".", 0);
}

/* ---- space files ---- */

static bool put_texts(cJSON *object, const char *key, const char *const *texts, int count)
{
    cJSON *list = cJSON_AddArrayToObject(object, key);
    bool good = list;
    for (int i = 0; i < count && good; i++)
        good = tune_cjson_add_bytes(list, texts[i], strlen(texts[i]));
    return good;
}

static bool put_optional(cJSON *object, const char *key, const char *text)
{
    return text ? tune_cjson_put_text(object, key, text) : cJSON_AddNullToObject(object, key) != NULL;
}

/* Describe a space file as JSON text, which the caller frees. NULL with an error: no memory. */
static char *describe_space(const struct studio *s, const char *path)
{
    struct studio_reply problem = {0};
    cJSON *json = cJSON_CreateObject();
    struct tune_space *space = spaces_check_file(s, &problem, path) == 0 ? tune_space_read(path) : NULL;
    bool good = tune_cjson_put_text(json, "path", path) && put_optional(json, "problem", space ? NULL : tune_error_message());
    if (space && good) {
        char id[16];
        cJSON *experiments = cJSON_AddArrayToObject(json, "experiments");
        snprintf(id, sizeof id, "space-%s", space->id);
        good = tune_cjson_put_text(json, "id", id) && put_optional(json, "name", space->name) && put_optional(json, "description", space->description) &&
               put_texts(json, "dimensions", space->names, space->count) &&
               (space->size ? tune_cjson_put_number(json, "size", (double)space->size) : cJSON_AddNullToObject(json, "size") != NULL);
        for (int i = 0; i < space->reference_count && good; i++)
            good = tune_cjson_add_bytes(experiments, space->references[i].experiment, strlen(space->references[i].experiment));
    }
    char *text = good ? cJSON_PrintUnformatted(json) : NULL;
    cJSON_Delete(json);
    tune_space_free(space);
    tune_error_clear();
    if (!text)
        tune_error_no_memory("a list of spaces");
    return text;
}

/* Texts of files, by their stamps, so that only changed files are read again. Under the lock. */
static struct { uint64_t stamp; char *text; } known[KNOWN];

static bool is_space(const char *path)
{
    char *text = NULL;
    size_t size;
    bool found = tune_file_read(path, SPACE_FILE, &text, &size) == 0 && memmem(text, size, "entitySpace", 11);
    free(text);
    tune_error_clear();
    return found;
}

/* Write the description of a space file. sure: it is one, whatever it holds. 1: written; 0: it is no space; -1 with an error. */
static int put_space(const struct studio *s, const char *path, bool sure, const char *before, FILE *out)
{
    struct studio_reply problem = {0};
    uint64_t stamp = 0;
    spaces_lock();
    int code = spaces_stamp(s, &problem, path, &stamp);
    size_t i = stamp % KNOWN;
    if (code == 0 && known[i].stamp != stamp) {
        free(known[i].text);
        known[i].stamp = stamp;
        known[i].text = NULL;
        if ((sure || is_space(path)) && !(known[i].text = describe_space(s, path)))
            known[i].stamp = 0, code = -1;
    }
    if (code == 0 && (code = known[i].text != NULL))
        fprintf(out, "%s%s", before, known[i].text);
    spaces_unlock();
    return code;
}

/* ---- stores ---- */

/* The names in <store>/<kind>, with their endings, at most NAMES, sorted. */
static int list_names(const char *store, const char *kind, const char *ending, struct paths *names)
{
    char path[TUNE_PATH_MAX];
    DIR *d = tune_path(path, "%s/%s", store, kind) == 0 ? opendir(path) : NULL;
    int code = 0;
    for (struct dirent *e; d && code == 0 && (e = readdir(d)) && names->count < NAMES;)
        if (*e->d_name != '.' && (!ending || has_ending(e->d_name, ending)) && tune_utf8_valid(e->d_name, strlen(e->d_name), NULL))
            code = add_path(names, e->d_name);
    if (d)
        closedir(d);
    if (names->count > 0)
        qsort(names->at, names->count, sizeof *names->at, by_text);
    return code;
}

static int put_names(const char *store, const char *kind, FILE *out)
{
    struct paths names = {0};
    int code = list_names(store, kind, ".json", &names);
    for (size_t i = 0; i < names.count; i++)
        *strrchr(names.at[i], '.') = 0;
    cJSON *list = cJSON_CreateArray();
    for (size_t i = 0; i < names.count && code == 0; i++)
        code = tune_cjson_add_bytes(list, names.at[i], strlen(names.at[i])) ? 0 : tune_error_no_memory("a list of stores");
    char *text = code == 0 ? cJSON_PrintUnformatted(list) : NULL;
    fprintf(out, ", \"%s\": %s", kind, text ? text : "[]");
    free(text);
    cJSON_Delete(list);
    free_paths(&names);
    return code;
}

/* Sizes and the last change of the sample files. */
static int put_files(const char *store, FILE *out)
{
    struct paths names = {0};
    struct stat st;
    char path[TUNE_PATH_MAX];
    int code = list_names(store, ".", ".h5", &names);
    int64_t bytes = 0, files = 0;
    double modified = tune_path(path, "%s/store.json", store) == 0 && stat(path, &st) == 0 ? (double)st.st_mtim.tv_sec : 0;
    for (size_t i = 0; i < names.count; i++) {
        if (tune_path(path, "%s/%s", store, names.at[i]) < 0 || lstat(path, &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        files++;
        bytes += st.st_size;
        double at = (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec;
        modified = at > modified ? at : modified;
    }
    free_paths(&names);
    fprintf(out, ", \"bytes\": %lld, \"files\": %lld, \"modified\": %.3f", (long long)bytes, (long long)files, modified);
    return code;
}

static int put_json_text(const char *text, FILE *out)
{
    cJSON *json = cJSON_CreateString(text);
    char *written = json ? cJSON_PrintUnformatted(json) : NULL;
    fputs(written ? written : "null", out);
    cJSON_Delete(json);
    int code = written ? 0 : tune_error_no_memory("a list of stores");
    free(written);
    return code;
}

static int put_store(const struct studio *s, const char *store, FILE *out)
{
    struct paths names = {0};
    struct studio_reply problem = {0};
    const char *slash = strrchr(store, '/');
    uint64_t stamp = 0;
    char path[TUNE_PATH_MAX];
    fputs("{\"path\": ", out);
    TRY(put_json_text(store, out));
    fputs(", \"name\": ", out);
    TRY(put_json_text(slash ? slash + 1 : store, out));
    fputs(", \"problem\": ", out);
    if (spaces_stamp(s, &problem, store, &stamp) < 0) {
        TRY(put_json_text(tune_error_message(), out));
        tune_error_clear();
    } else {
        fputs("null", out);
    }
    TRY(put_files(store, out));
    TRY(put_names(store, "operations", out));
    TRY(put_names(store, "experiments", out));
    fputs(", \"spaces\": [", out);
    int code = list_names(store, "spaces", NULL, &names), any = 0;
    for (size_t i = 0; i < names.count && code == 0; i++) {
        int one = tune_path(path, "%s/spaces/%s", store, names.at[i]) == 0 && (has_ending(path, ".yaml") || has_ending(path, ".json")) ?
                  put_space(s, path, true, any ? ", " : "", out) : 0;
        any += one > 0;
        code = one < 0 ? -1 : 0;
    }
    free_paths(&names);
    fputs("]}", out);
    return code;
}

/* ---- answers ---- */

static void sort_paths(struct paths *p)
{
    if (p->count > 0)
        qsort(p->at, p->count, sizeof *p->at, by_text);
}

/* The end of both lists: how far the search went. */
static void put_search(const struct walk *w, FILE *out)
{
    fprintf(out, "], \"folders\": %lld, \"left_out\": %lld}\n", (long long)w->folders, (long long)w->left_out);
}

static int finish_list(struct walk *w, struct studio_reply *r, int code)
{
    put_search(w, r->out);
    free_paths(&w->stores);
    free_paths(&w->spaces);
    if (code < 0 || fflush(r->out) != 0)
        return -1;
    studio_tag(r, r->data, r->size);
    return 0;
}

static int list_stores(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct walk w = {.s = s};
    (void)q;
    int code = walk_root(&w);
    sort_paths(&w.stores);
    fputs("{\"stores\": [", r->out);
    for (size_t i = 0; i < w.stores.count && code == 0; i++) {
        fputs(i > 0 ? ",\n" : "", r->out);
        code = put_store(s, w.stores.at[i], r->out);
    }
    return finish_list(&w, r, code);
}

static int list_spaces(struct studio *s, const struct studio_request *q, struct studio_reply *r)
{
    struct walk w = {.s = s};
    char path[TUNE_PATH_MAX], *folder;
    (void)q;
    int code = walk_root(&w), any = 0;
    if (code == 0 && tune_defaults_path(path, "spaces") == 0 && !spaces_inside(s, path, false) && (folder = realpath(path, NULL))) {
        code = walk(&w, folder, DEPTH);
        free(folder);
    }
    sort_paths(&w.spaces);
    fputs("{\"spaces\": [", r->out);
    for (size_t i = 0; i < w.spaces.count && code == 0; i++) {
        int one = put_space(s, w.spaces.at[i], false, any ? ",\n" : "", r->out);
        any += one > 0;
        code = one < 0 ? -1 : 0;
    }
    return finish_list(&w, r, code);
}

const struct studio_route studio_spaces_routes[] = {
    {"GET", "/api/stores", "listStores", "store list", "The sample stores in the root.", "application/json", list_stores, {{0}}},
    {"GET", "/api/spaces", "listSpaces", "space list", "The space files in the root and among the defaults.", "application/json", list_spaces, {{0}}},
    {0},
};
