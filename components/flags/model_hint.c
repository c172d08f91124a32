/* model_hint.c - look for the folder that a wrong --model may mean. */
#include "flags/model_hint.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/nearest.h"
#include "core/print.h"
#include "core/try.h"
#include "files/file.h"

enum { MOST = 256 }; /* folders that are compared */

static bool has_file(const char *folder, const char *name)
{
    char path[TUNE_PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && tune_file_exists(path);
}

bool tune_model_in(const char *folder, char path[TUNE_PATH_MAX], bool *best)
{
    long long last = -1;
    *best = has_file(folder, "checkpoint-best");
    if (*best && tune_path(path, "%s/checkpoint-best", folder) == 0) {
        char target[256];
        ssize_t n = readlink(path, target, sizeof target - 1);
        if (n > 0 && !memchr(target, '/', (size_t)n)) /* by its step: another may become the best */
            return tune_path(path, "%s/%.*s", folder, (int)n, target) == 0;
        return true;
    }
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d));) {
        char *end;
        long long step = strncmp(e->d_name, "checkpoint-", 11) ? -1 : strtoll(e->d_name + 11, &end, 10);
        if (step > last && !*end && end > e->d_name + 11)
            last = step;
    }
    if (d)
        closedir(d);
    return last >= 0 && tune_path(path, "%s/checkpoint-%lld", folder, last) == 0;
}

/* The folder if it is a model, or a checkpoint of a run: "models/x", "runs/x/checkpoint-38". */
static bool find_model(const char *folder, char path[TUNE_PATH_MAX])
{
    bool best;
    return has_file(folder, "config.json") ? tune_path(path, "%s", folder) == 0 : tune_model_in(folder, path, &best);
}

/* The folder beside a missing one whose name is nearest and which has a model. */
static bool find_beside(const char *parent, const char *missing, char path[TUNE_PATH_MAX])
{
    char *names[MOST], folder[TUNE_PATH_MAX];
    int count = 0;
    DIR *d = opendir(parent);
    for (struct dirent *e; d && count < MOST && (e = readdir(d));)
        if (*e->d_name != '.' && tune_path(folder, "%s/%s", parent, e->d_name) == 0 && find_model(folder, path) &&
            (names[count] = strdup(e->d_name)))
            count++;
    if (d)
        closedir(d);
    const char *nearest = tune_nearest(missing, (const char *const *)names, count, NULL);
    bool found = nearest && tune_path(folder, "%s/%s", parent, nearest) == 0 && find_model(folder, path);
    for (int i = 0; i < count; i++)
        free(names[i]);
    return found;
}

static bool find(const char *name, char path[TUNE_PATH_MAX])
{
    static const char *const parents[] = {"models", "runs"};
    char folder[TUNE_PATH_MAX];
    const char *slash = strrchr(name, '/');
    if (tune_file_is_folder(name))
        return find_model(name, path);
    for (int i = 0; i < 2 && !slash; i++)
        if (tune_path(folder, "%s/%s", parents[i], name) == 0 && find_model(folder, path))
            return true;
    for (int i = 0; i < 2 && !slash; i++)
        if (find_beside(parents[i], name, path))
            return true;
    if (!slash || tune_file_parent(folder, name) < 0)
        return false;
    return (!strncmp(slash, "/checkpoint-", 12) && find_model(folder, path)) || find_beside(folder, slash + 1, path);
}

const char *tune_model_hint(const char *name, char *text, size_t size)
{
    char path[TUNE_PATH_MAX];
    struct tune_error before;
    tune_error_save(&before);
    *text = 0;
    if (*name && find(name, path))
        tune_append(text, size, has_file(path, "adapter_config.json") ? "; give --adapter %s, and its base with --model" : "; give --model %s", path);
    tune_error_restore(&before);
    return text;
}
