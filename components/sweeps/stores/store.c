/* store.c - the store's folder, with its id, files and records. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "files/cjson.h"
#include "core/random.h"
#include "core/try.h"
#include "core/version.h"
#include "sweeps/stores/exclusive.h"
#include "sweeps/stores/shared.h"
#include "sweeps/stores/store_parts.h"

#define JSON_MAX 65536

/* A column that every row has. */
#define KEY(key, name, unit, type) [TUNE_##key] = {name, unit, TUNE_CELL_##type, TUNE_COLUMN_KEY, false}

static const struct tune_column key_columns[TUNE_KEYS] = {
    KEY(KEY_UID, "uid", "", TEXT),
    KEY(KEY_OPERATION, "operation", "", TEXT),
    KEY(KEY_SPACE, "space", "", TEXT),
    KEY(KEY_REQUEST, "request_index", "", WHOLE),
    KEY(KEY_REPEAT, "repeat", "", WHOLE),
    KEY(KEY_EXPERIMENT, "experiment", "", TEXT),
    KEY(KEY_ENTITY, "entity", "", TEXT),
    KEY(KEY_GENERATOR, "generator", "", TEXT),
    KEY(KEY_STARTED, "started", "s since 1970", NUMBER),
    KEY(KEY_SECONDS, "measurement_s", "s", NUMBER),
    KEY(KEY_STATUS, "status", "", TEXT),
    KEY(KEY_REASON, "reason", "", TEXT),
    KEY(KEY_HOST, "host", "", TEXT),
    KEY(KEY_HOST_CLASS, "host_class", "", TEXT),
    KEY(KEY_BUILD, "build_id", "", TEXT),
    KEY(KEY_WEIGHTS, "weights_hash", "", TEXT),
    KEY(KEY_DATA, "data_hash", "", TEXT),
    KEY(KEY_CORE_SHARE, "core_share", "", NUMBER),
    [TUNE_KEY_STABLE] = {"stable", "", TUNE_CELL_NUMBER, TUNE_COLUMN_KEY, true},
};

static const struct tune_column request_columns[TUNE_REQUEST_KEYS] = {
    KEY(REQUEST_OPERATION, "operation", "", TEXT),
    KEY(REQUEST_INDEX, "request_index", "", WHOLE),
    KEY(REQUEST_EXPERIMENT, "experiment", "", TEXT),
    KEY(REQUEST_ENTITY, "entity", "", TEXT),
    KEY(REQUEST_TYPE, "type", "", TEXT),
    KEY(REQUEST_UID, "uid", "", TEXT),
    KEY(REQUEST_STATUS, "status", "", TEXT),
    KEY(REQUEST_TIME, "time", "s since 1970", NUMBER),
};

const struct tune_column *tune_key_column(enum tune_key key)
{
    return &key_columns[key];
}

const struct tune_column *tune_request_column(enum tune_request_key key)
{
    return &request_columns[key];
}

struct tune_cell tune_cell_text(const char *text)
{
    return (struct tune_cell){.absent = !text || !*text, .text = text ? text : ""};
}

struct tune_cell tune_cell_whole(int64_t whole)
{
    return (struct tune_cell){.whole = whole, .number = (double)whole};
}

struct tune_cell tune_cell_number(double number)
{
    return (struct tune_cell){.absent = isnan(number), .number = number};
}

int tune_store_no_memory(const char *what)
{
    return tune_error_cannot("out of memory for %s", what);
}

int tune_store_path(const struct tune_store *s, char path[TUNE_PATH_MAX], const char *name)
{
    return tune_path(path, "%s/%s", s->folder, name);
}

void tune_store_host(char host[65])
{
    memset(host, 0, 65);
    if (gethostname(host, 64) < 0 || !*host)
        snprintf(host, 65, "localhost");
    for (char *c = host; *c; c++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *c))
            *c = '_';
}

int tune_store_check_name(const char *what, const char *name)
{
    if (*name && *name != '.' && !strchr(name, '/') && strlen(name) <= TUNE_STORE_NAME_MAX)
        return 0;
    return tune_error_set("%s cannot have the name \"%.100s\": expected 1 to %d bytes without '/', "
                          "and no '.' at the beginning", what, name, TUNE_STORE_NAME_MAX);
}

/* ---- identity ---- */

/* Draw six hexadecimal digits, with a letter other than e and b. YAML would read "310e50" or
 * "0b1101" as a number. */
static int draw_id(char id[8])
{
    uint32_t number;
    do {
        TRY(tune_random_fresh(&number, sizeof number));
        snprintf(id, 8, "%06x", number & 0xffffff);
    } while (!strpbrk(id, "acdf"));
    return 0;
}

static bool is_id(const char *id)
{
    return id && strlen(id) == 6 && strspn(id, "0123456789abcdefghijklmnopqrstuvwxyz") == 6;
}

static int read_identity(struct tune_store *s, const char *path)
{
    cJSON *json = tune_cjson_read(path, JSON_MAX);
    if (!json)
        return -1;
    const char *id = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, "id"));
    const cJSON *version = cJSON_GetObjectItemCaseSensitive(json, "schema_version");
    double number = cJSON_IsNumber(version) ? version->valuedouble : 0;
    int status = -1;
    if (!(number >= 1) || number != (double)(int64_t)number)
        tune_error_set("%s: \"schema_version\" is missing or below 1, so this is not the "
                       "store.json of a sample store", path);
    else if (number > TUNE_STORE_SCHEMA)
        tune_error_set("%s has schema version %.0f, but this program reads only versions up to %d: "
                       "use a newer tune.c", path, number, TUNE_STORE_SCHEMA);
    else if (!is_id(id))
        tune_error_set("%s: \"id\" must be six digits and small letters, so this is not the "
                       "store.json of a sample store", path);
    else
        status = snprintf(s->id, sizeof s->id, "%s", id) < 0 ? -1 : 0;
    cJSON_Delete(json);
    return status;
}

/* 1: the folder is empty, except for leftovers of a failed creation; 0: it is not; -1 with an
 * error. */
static int is_empty(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d)
        return tune_error_set("cannot open folder %s: %s", folder, strerror(errno));
    int empty = 1;
    for (struct dirent *e; empty && (e = readdir(d));)
        empty = e->d_name[0] == '.' || !strncmp(e->d_name, "store.json.tmp-", 15) || !strcmp(e->d_name, "hosts");
    closedir(d);
    return empty;
}

/* The process that links the file first sets the id; the others read it. */
static int write_identity(struct tune_store *s, const char *path)
{
    char text[256];
    TRY(draw_id(s->id));
    int n = snprintf(text, sizeof text, "{\n\t\"id\": \"%s\",\n\t\"schema_version\": %d,\n\t\"creator\": \"tune.c %s\"\n}\n", s->id,
                     TUNE_STORE_SCHEMA, TUNE_VERSION);
    int made = tune_exclusive_write(path, text, (size_t)n, true);
    return made == 0 ? read_identity(s, path) : made < 0 ? -1 : 0;
}

static int identify(struct tune_store *s, bool create)
{
    char path[TUNE_PATH_MAX];
    struct stat st;
    TRY(tune_store_path(s, path, "store.json"));
    if (create)
        TRY(tune_file_make_folder(s->folder));
    if (stat(path, &st) == 0 || errno != ENOENT)
        return read_identity(s, path) < 0 ? -1 : create ? tune_shared_probe(s->folder) : 0;
    if (!create)
        return tune_error_usage("%s is not a sample store (it has no store.json); expected a "
                                "folder that sweep or samples import wrote into", s->folder);
    int empty = is_empty(s->folder);
    TRY(empty);
    if (empty)
        return tune_shared_probe(s->folder) < 0 ? -1 : write_identity(s, path);
    if (stat(path, &st) == 0) /* another process has made it */
        return read_identity(s, path) < 0 ? -1 : tune_shared_probe(s->folder);
    return tune_error_set("%s is neither a sample store (it has no store.json) nor empty; name "
                          "another folder", s->folder);
}

/* ---- files ---- */

static int append_file(struct tune_store *s, const char *name)
{
    bool fits = tune_array_fit(&s->files, (size_t)s->file_count, sizeof *s->files);
    char *copy = fits ? strdup(name) : NULL;
    if (!copy)
        return tune_store_no_memory("a list of sample files");
    s->files[s->file_count++] = (struct tune_store_file){.name = copy};
    return 0;
}

int tune_store_add_file(struct tune_store *s, const char *name)
{
    for (int i = s->file_count; i-- > 0;) /* our own file was added last */
        if (!strcmp(s->files[i].name, name))
            return 0;
    return append_file(s, name);
}

static int is_sample_file(const struct dirent *e)
{
    size_t n = strlen(e->d_name);
    return e->d_name[0] != '.' && n > 3 && !strcmp(e->d_name + n - 3, ".h5");
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int find_name(const void *key, const void *file)
{
    return strcmp(key, ((const struct tune_store_file *)file)->name);
}

/* Search the first `count` files; the first `sorted` of them are in order. */
static struct tune_store_file *find_file(struct tune_store *s, const char *name, int sorted, int count)
{
    struct tune_store_file *f = sorted > 0 ? bsearch(name, s->files, (size_t)sorted, sizeof *s->files, find_name) : NULL;
    for (int i = sorted; i < count && !f; i++)
        f = strcmp(s->files[i].name, name) ? NULL : &s->files[i];
    return f;
}

/* True if this is the file whose structure is cached. */
static bool is_known(const struct tune_store_file *f, const struct stat *st)
{
    return f->content && st->st_dev == f->seen.st_dev && st->st_ino == f->seen.st_ino && st->st_size == f->seen.st_size &&
           st->st_mtim.tv_sec == f->seen.st_mtim.tv_sec && st->st_mtim.tv_nsec == f->seen.st_mtim.tv_nsec;
}

/* True if another process replaced a file that was read. */
static bool is_changed(const struct tune_store *s, const struct tune_store_file *f)
{
    char path[TUNE_PATH_MAX];
    struct stat st;
    return f->content && strcmp(f->name, tune_store_own_file(s)) && tune_store_path(s, path, f->name) == 0 &&
           stat(path, &st) == 0 && !is_known(f, &st);
}

int tune_store_refresh(struct tune_store *s)
{
    struct dirent **entries = NULL;
    int n = scandir(s->folder, &entries, is_sample_file, by_name), status = 0, changed = 0;
    int before = s->file_count, sorted = before > 0;
    if (n < 0)
        return tune_error_set("cannot open folder %s: %s", s->folder, strerror(errno));
    tune_store_forget_catalogue(s);
    while (sorted < before && strcmp(s->files[sorted - 1].name, s->files[sorted].name) < 0)
        sorted++;
    for (int i = 0; i < before; i++)
        s->files[i].gone = true;
    for (int i = 0; i < n; i++) {
        struct tune_store_file *f = find_file(s, entries[i]->d_name, sorted, before);
        if (f) {
            f->gone = false;
            changed += is_changed(s, f);
        } else if (status == 0) {
            status = append_file(s, entries[i]->d_name);
        }
        free(entries[i]);
    }
    free(entries);
    int tombstones = status < 0 ? -1 : tune_tombstones_list(s);
    return tombstones < 0 ? -1 : s->file_count - before + changed + tombstones;
}

int64_t tune_store_version(struct tune_store *s)
{
    for (int i = 0; i < s->file_count; i++) {
        struct tune_sample_file *content;
        const struct tune_store_file *f = &s->files[i];
        int fd = f->gone || (f->content && !is_changed(s, f)) ? -1 : tune_store_open_file(s, i, &content);
        if (fd >= 0) {
            close(fd);
            tune_sample_free(content);
        } /* readers report a broken file */
    }
    return s->loads;
}

int tune_store_open_file(struct tune_store *s, int i, struct tune_sample_file **content)
{
    struct tune_store_file *f = &s->files[i];
    char path[TUNE_PATH_MAX];
    struct stat st;
    size_t size;
    TRY(tune_store_path(s, path, f->name));
    int fd = tune_file_open(path, &size);
    TRY(fd);
    if (fstat(fd, &st) < 0 || !is_known(f, &st)) {
        close(fd);
        struct tune_sample_file *now = tune_sample_open(path, &fd);
        if (!now) /* over NFS, its owner on another host may have just replaced it */
            now = tune_sample_open(path, &fd);
        TRY(now ? 0 : -1);
        tune_sample_free(f->content);
        f->content = now;
        s->loads += strcmp(f->name, tune_store_own_file(s)) != 0;
        if (fstat(fd, &f->seen) < 0)
            f->seen = (struct stat){0}; /* read it again */
    }
    f->content->users++;
    *content = f->content;
    return fd;
}

/* ---- the store ---- */

struct tune_store *tune_store_open(const char *folder, bool create)
{
    struct tune_store *s = calloc(1, sizeof *s);
    if (s)
        s->points = -1;
    if (!s)
        tune_store_no_memory("a sample store");
    else if (tune_path(s->folder, "%s", folder) == 0 && identify(s, create) == 0 && tune_store_refresh(s) >= 0)
        return s;
    tune_store_free(s);
    return NULL;
}

void tune_store_free(struct tune_store *s)
{
    if (!s)
        return;
    tune_store_forget_catalogue(s);
    tune_store_writer_free(s->writer);
    tune_tombstones_free(s);
    for (int i = 0; i < s->file_count; i++) {
        tune_sample_free(s->files[i].content);
        free(s->files[i].name);
    }
    free(s->files);
    if (s->points >= 0)
        close(s->points);
    free(s);
}

const char *tune_store_id(const struct tune_store *s)
{
    return s->id;
}

const char *tune_store_folder(const struct tune_store *s)
{
    return s->folder;
}

/* ---- records ---- */

int tune_store_record(struct tune_store *s, const char *kind, const char *name, const char *text, size_t size)
{
    char path[TUNE_PATH_MAX];
    TRY(tune_store_check_name("a kind of record", kind));
    TRY(tune_store_check_name("a record", name));
    TRY(tune_store_path(s, path, kind));
    TRY(tune_file_make_folder(path));
    TRY(tune_path(path, "%s/%s/%s", s->folder, kind, name));
    return tune_replace_write(path, text, size, true);
}

static int is_record(const struct dirent *e)
{
    return e->d_name[0] != '.' && !strstr(e->d_name, ".tmp-");
}

char **tune_store_records(struct tune_store *s, const char *kind, int *count)
{
    char path[TUNE_PATH_MAX];
    struct dirent **entries = NULL;
    if (tune_store_check_name("a kind of record", kind) < 0 || tune_store_path(s, path, kind) < 0)
        return NULL;
    int n = scandir(path, &entries, is_record, by_name);
    if (n < 0 && errno != ENOENT) {
        tune_error_set("cannot open folder %s: %s", path, strerror(errno));
        return NULL;
    }
    n = n < 0 ? 0 : n;
    char **names = calloc((size_t)n + 1, sizeof *names);
    bool good = names != NULL;
    *count = 0;
    for (int i = 0; i < n; i++) {
        if (good)
            good = (names[(*count)++] = strdup(entries[i]->d_name)) != NULL;
        free(entries[i]);
    }
    free(entries);
    if (good)
        return names;
    tune_store_records_free(names, *count);
    tune_store_no_memory("a list of records");
    return NULL;
}

void tune_store_records_free(char **names, int count)
{
    for (int i = 0; i < count && names; i++)
        free(names[i]);
    free(names);
}
