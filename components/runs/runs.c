/* runs.c - find the runs for a list of paths, and the options in which runs differ. */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/print.h"
#include "core/try.h"
#include "runs/run.h"
#include "runs/run_folder.h"

struct list {
    struct tune_run **at;
    int count, capacity;
    bool follow; /* a path that does not exist yet counts as a run too */
    bool more;   /* take only those runs of a folder that are not in the list yet */
};

static int add_run(struct list *l, const char *folder)
{
    if (l->count == l->capacity) {
        int capacity = l->capacity * 2 + 16;
        struct tune_run **more = realloc(l->at, (size_t)capacity * sizeof *more);
        if (!more) {
            tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory for a list of runs");
            return -1;
        }
        l->at = more;
        l->capacity = capacity;
    }
    l->at[l->count] = tune_run_follow(folder);
    return l->at[l->count] ? l->count++, 0 : -1;
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int visible(const struct dirent *e)
{
    return *e->d_name != '.';
}

static bool is_listed(const struct list *l, const char *folder)
{
    for (int i = 0; i < l->count; i++)
        if (!strcmp(l->at[i]->folder, folder))
            return true;
    return false;
}

/* Open the run folders in folder. Returns their number, or -1. */
static int add_all(struct list *l, const char *folder)
{
    struct dirent **entries = NULL;
    char path[TUNE_PATH_MAX];
    int before = l->count, status = 0, n = scandir(folder, &entries, visible, by_name);
    for (int i = 0; i < n; i++) {
        bool good = status == 0 && tune_path(path, "%s/%s", folder, entries[i]->d_name) == 0 && tune_run_is(path);
        if (good && !(l->more && is_listed(l, path)))
            status = add_run(l, path);
        free(entries[i]);
    }
    free(entries);
    return status < 0 ? -1 : l->count - before;
}

static int add_path(struct list *l, const char *given)
{
    char path[TUNE_PATH_MAX];
    if (tune_run_is(given))
        return add_run(l, given);
    TRY(tune_path(path, "runs/%s", given));
    if (!strchr(given, '/') && tune_run_is(path))
        return add_run(l, path);
    int n = add_all(l, given);
    TRY(n);
    if (n > 0)
        return 0;
    if (l->follow)
        return add_run(l, strchr(given, '/') ? given : path);
    if (!tune_file_is_folder(given))
        return tune_error_usage("%s: no such run, neither here nor in runs/", given);
    return tune_error_set("%s: neither a run folder (no " TUNE_RUN_JSON " in it) nor a folder of run folders", given);
}

static int open_all(struct list *l, struct tune_run ***runs, const char *const *paths, int count)
{
    int status = count == 0 ? add_all(l, "runs") : 0;
    for (int i = 0; i < count && status >= 0; i++)
        status = add_path(l, paths[i]);
    if (status >= 0) {
        *runs = l->at;
        return l->count;
    }
    tune_runs_free(l->at, l->count);
    return -1;
}

int tune_runs_open(struct tune_run ***runs, const char *const *paths, int count)
{
    return open_all(&(struct list){0}, runs, paths, count);
}

int tune_runs_follow(struct tune_run ***runs, const char *const *paths, int count)
{
    return open_all(&(struct list){.follow = true}, runs, paths, count);
}

int tune_runs_more(struct tune_run ***runs, int count, const char *folder)
{
    struct list l = {.at = *runs, .count = count, .capacity = count, .more = true};
    add_all(&l, folder); /* a run that could not be added is tried again later */
    *runs = l.at;
    return l.count;
}

void tune_runs_free(struct tune_run **runs, int count)
{
    for (int i = 0; i < count; i++)
        tune_run_free(runs[i]);
    free(runs);
}

static const cJSON *options_of(const struct tune_run *r)
{
    return cJSON_GetObjectItemCaseSensitive(r->run, "options");
}

static const char *value_of(const cJSON *item, char number[32])
{
    return cJSON_IsString(item)   ? item->valuestring
           : cJSON_IsNumber(item) ? tune_number_text(number, item->valuedouble)
           : cJSON_IsTrue(item)   ? "true"
           : cJSON_IsFalse(item)  ? "false"
                                  : "none";
}

const char *tune_run_option(const struct tune_run *r, const char *name, char *text, size_t size)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(options_of(r), name);
    char number[32];
    if (!item || size == 0)
        return NULL;
    snprintf(text, size, "%s", value_of(item, number));
    return text;
}

/* True if the option is only about where or when a run writes. Such options make no difference
 * between runs. */
static bool is_bookkeeping(const char *name)
{
    static const char *const names[] = {"output", "overwrite", "log_every", "logger", "show_tokens", "plan_memory", "resume", "keep_last",
                                        "requeue", "save_every", "save", "stop_at_step", "stop_after_seconds", "until_stable", "profile",
                                        "allow_changed"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

/* An option: its value in the first run that has it, and whether another run has another value. Of
 * a name that a run has twice, the first counts. */
struct option {
    const cJSON *first;
    int run; /* the last run that was seen to have it */
    bool differs;
};

static bool same(const cJSON *a, const cJSON *b)
{
    char one[32], other[32];
    if (cJSON_IsNumber(a) && cJSON_IsNumber(b))
        return a->valuedouble == b->valuedouble;
    return !strcmp(value_of(a, one), value_of(b, other));
}

/* The place of this name among n options, or n. It is looked for at `next` first: runs of one
 * program have the same options in the same order. */
static int find(const struct option *options, int n, const char *name, int next)
{
    if (next < n && !strcmp(options[next].first->string, name))
        return next;
    int i = 0;
    while (i < n && strcmp(options[i].first->string, name))
        i++;
    return i;
}

/* A run of another program or version may lack an option. That is no difference. */
int tune_runs_differing(struct tune_run *const *runs, int count, const char ***names)
{
    int n = 0, kept = 0;
    size_t capacity = 0;
    struct option *options = NULL;
    for (int i = 0; i < count; i++) {
        const cJSON *item;
        int next = 0;
        cJSON_ArrayForEach(item, options_of(runs[i])) {
            if (!item->string)
                continue;
            int at = find(options, n, item->string, next);
            next = at + 1;
            if (at < n) {
                options[at].differs |= options[at].run != i && !same(options[at].first, item);
                options[at].run = i;
                continue;
            }
            if (tune_array_reserve(&options, &capacity, (size_t)n + 1, sizeof *options, "the options of runs") < 0)
                goto failed;
            options[n++] = (struct option){.first = item, .run = i};
        }
    }
    const char **found = tune_zeroed((size_t)n + 1, sizeof *found, "the options of runs");
    if (!found)
        goto failed;
    for (int i = 0; i < n; i++)
        if (options[i].differs && !is_bookkeeping(options[i].first->string))
            found[kept++] = options[i].first->string;
    free(options);
    *names = found;
    return kept;
failed:
    free(options);
    return -1;
}
