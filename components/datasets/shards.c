/* shards.c - from a folder's files to splits, and from those to the one that is meant. */
#include "datasets/shards.h"

#include <ctype.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/array.h"
#include "core/error.h"
#include "core/print.h"
#include "core/try.h"

enum { DEEPEST = 3, FILES = 10000 }; /* folders below the path; files in them */

/* A file below the folder. Its split is its folder and the beginning of its name. */
struct found {
    char *path;
    char split[512]; /* "main/train", below the folder; the folder "data" is left out */
    bool parquet;
};

struct search {
    struct found *files;
    int count;
    const char *root;
};

static bool ends_in(const char *name, const char *ending)
{
    size_t n = strlen(name), m = strlen(ending);
    return n > m && !strcasecmp(name + n - m, ending);
}

static bool is_rows(const char *name)
{
    static const char *const endings[] = {".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".txt"};
    static const char *const others[] = {"dataset_infos.json", "dataset_dict.json", "dataset_info.json", "state.json", "tune.json"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcasecmp(name, others[i]))
            return false;
    if (!strncasecmp(name, "readme", 6) || !strncasecmp(name, "license", 7) || *name == '.')
        return false;
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++)
        if (ends_in(name, endings[i]))
            return true;
    return false;
}

/* Length of the split's name in a file's name: without its ending, "-00000-of-00002" and the hash
 * that may follow that. 0: the name is a number, and the folder is the split. */
static size_t split_size(const char *name)
{
    size_t size = (size_t)(strrchr(name, '.') - name), digits = strspn(name, "0123456789");
    for (size_t i = 1; i + 4 < size; i++) {
        size_t first = name[i] == '-' ? strspn(name + i + 1, "0123456789") : 0;
        const char *of = name + i + 1 + first;
        if (first > 0 && !strncmp(of, "-of-", 4) && isdigit((unsigned char)of[4]))
            return i;
    }
    return digits == size ? 0 : size;
}

static int add(struct search *s, const char *folder, const char *name)
{
    char path[TUNE_PATH_MAX];
    const char *below = folder + strlen(s->root);
    size_t size = split_size(name);
    while (*below == '/')
        below++;
    if (s->count == FILES)
        return tune_error_set("%s: has more than %d files of rows; name the ones to read", s->root, FILES);
    if (!tune_array_fit(&s->files, (size_t)s->count, sizeof *s->files))
        return tune_error_no_memory("the files of %s", s->root);
    TRY(tune_path(path, "%s/%s", folder, name));
    struct found *f = &s->files[s->count];
    *f = (struct found){.path = strdup(path), .parquet = ends_in(name, ".parquet")};
    if (!f->path)
        return tune_error_no_memory("the files of %s", s->root);
    if (!strcmp(below, "data"))
        below = "";
    else if (!strncmp(below, "data/", 5))
        below += 5;
    snprintf(f->split, sizeof f->split, "%s%s%.*s", below, *below && size ? "/" : "", (int)size, name);
    s->count++;
    return 0;
}

static int visible(const struct dirent *entry)
{
    return *entry->d_name != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int search(struct search *s, const char *folder, int depth)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, visible, by_name), status = 0;
    if (count < 0)
        return tune_error_set("%s: this folder cannot be read", folder);
    for (int i = 0; i < count; i++) {
        char path[TUNE_PATH_MAX];
        if (status == 0)
            status = tune_path(path, "%s/%s", folder, entries[i]->d_name);
        if (status == 0 && tune_file_is_folder(path))
            status = depth < DEEPEST ? search(s, path, depth + 1) : 0;
        else if (status == 0 && is_rows(entries[i]->d_name) && tune_file_exists(path))
            status = add(s, folder, entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* ---- which split ---- */

static const char *last_name(const char *split)
{
    const char *slash = strrchr(split, '/');
    return slash ? slash + 1 : split;
}

/* The only split that fits name, or its last part. NULL: none, or several. */
static const char *only(const struct search *s, const char *name)
{
    const char *one = NULL;
    for (int i = 0; i < s->count; i++) {
        const char *split = s->files[i].split;
        if (name && strcmp(split, name) && strcmp(last_name(split), name))
            continue;
        if (one && strcmp(one, split))
            return NULL;
        one = split;
    }
    return one;
}

static int list_splits(const struct search *s, const char *name)
{
    char list[1024] = "";
    int splits = 0;
    for (int i = 0; i < s->count; i++) {
        bool known = false;
        for (int k = 0; k < i; k++)
            known = known || !strcmp(s->files[k].split, s->files[i].split);
        if (!known && splits++ < 8)
            tune_append_item(list, sizeof list, "%s/%s", s->root, s->files[i].split);
    }
    if (splits > 8)
        tune_append_item(list, sizeof list, "%d more", splits - 8);
    tune_blank_controls(list);
    if (name)
        return tune_error_usage("%s/%s: no such file, and no split of that folder, which has %s", s->root, name, list);
    return tune_error_usage("%s: has several splits, and not one that is called train; give one of %s", s->root, list);
}

static int keep(struct tune_shards *s, struct search *all, const char *split)
{
    bool parquet = true;
    s->paths = tune_zeroed((size_t)all->count, sizeof *s->paths, "the files of %s", all->root);
    if (!s->paths)
        return -1;
    for (int i = 0; i < all->count; i++) {
        if (strcmp(all->files[i].split, split))
            continue;
        parquet = parquet && all->files[i].parquet;
        s->paths[s->count++] = all->files[i].path;
        all->files[i].path = NULL;
    }
    if (parquet || s->count == 1)
        return 0;
    return tune_error_usage("%s: split %s has %d files, such as %s; only Parquet files are read as one set: name the files with "
                            "commas between them", all->root, split, s->count, s->paths[0]);
}

/* True for a folder that a model was saved in. */
static bool is_model(const struct search *s)
{
    for (int i = 0; i < s->count; i++)
        if (!strcmp(s->files[i].split, "config") || !strcmp(s->files[i].split, "adapter_config"))
            return true;
    return false;
}

static int find_in(struct tune_shards *s, const char *folder, const char *name)
{
    struct search all = {.root = folder};
    int status = search(&all, folder, 0);
    const char *split = status == 0 ? only(&all, name) : NULL;
    if (status == 0 && !split && !name)
        split = only(&all, "train");
    if (status == 0 && split)
        status = keep(s, &all, split);
    else if (status == 0 && all.count == 0)
        status = tune_error_usage("%s: no file of rows lies in this folder; expected .parquet, .jsonl, .json, .csv, .tsv or .txt", folder);
    else if (status == 0 && is_model(&all))
        status = tune_error_usage("%s: is a folder with a model, expected a file or folder of rows", folder);
    else if (status == 0)
        status = list_splits(&all, name);
    for (int i = 0; i < all.count; i++)
        free(all.files[i].path);
    free(all.files);
    return status;
}

int tune_shards_find(struct tune_shards *s, const char *path)
{
    char folder[TUNE_PATH_MAX];
    *s = (struct tune_shards){0};
    int status = tune_path(folder, "%s", path);
    char *slash = strrchr(folder, '/');
    for (size_t n = strlen(folder); status == 0 && n > 1 && folder[n - 1] == '/'; slash = strrchr(folder, '/'))
        folder[--n] = 0;
    if (status == 0 && tune_file_is_folder(folder)) {
        status = find_in(s, folder, NULL);
    } else if (status == 0 && !tune_file_exists(folder) && slash && slash > folder && (*slash = 0, tune_file_is_folder(folder))) {
        status = find_in(s, folder, slash + 1);
    } else if (status == 0) {
        s->paths = tune_zeroed(1, sizeof *s->paths, "the name of a data set");
        s->count = s->paths && (s->paths[0] = strdup(path));
        status = s->count ? 0 : tune_error_no_memory("the name of a data set");
    }
    if (status < 0)
        tune_shards_free(s);
    return status;
}

void tune_shards_free(struct tune_shards *s)
{
    for (int i = 0; i < s->count; i++)
        free(s->paths[i]);
    free(s->paths);
    *s = (struct tune_shards){0};
}

int tune_shards_stamp(const struct tune_shards *s, struct tune_file_stamp *stamp)
{
    *stamp = (struct tune_file_stamp){0};
    for (int i = 0; i < s->count; i++) {
        struct tune_file_stamp one;
        TRY(tune_file_stamp(s->paths[i], &one));
        stamp->size += one.size;
        if (strcmp(one.modified, stamp->modified) > 0)
            memcpy(stamp->modified, one.modified, sizeof one.modified);
    }
    return 0;
}

int tune_shards_fingerprint(const struct tune_shards *s, uint64_t *hash)
{
    for (int i = 0; i < s->count; i++)
        TRY(tune_file_fingerprint(s->paths[i], hash));
    return 0;
}
