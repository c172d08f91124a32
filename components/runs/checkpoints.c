/* checkpoints.c - the checkpoints in a run folder, by their names. */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runs/checkpoint_names.h"
#include "core/try.h"
#include "runs/run.h"

enum { DEEPEST = 4 }; /* the most folders inside a checkpoint: state/, and any that a user added */

static int64_t bytes_in(const char *folder, int depth)
{
    int64_t bytes = 0;
    char path[TUNE_PATH_MAX];
    struct stat st;
    DIR *dir = depth < DEEPEST ? opendir(folder) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name) >= (int)sizeof path || lstat(path, &st) < 0)
            continue;
        bytes += S_ISDIR(st.st_mode) ? bytes_in(path, depth + 1) : S_ISREG(st.st_mode) ? (int64_t)st.st_size : 0;
    }
    if (dir)
        closedir(dir);
    return bytes;
}

static bool linked(const struct tune_run *r, const char *link, const char *name)
{
    char path[TUNE_PATH_MAX], target[TUNE_PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", r->folder, link) >= (int)sizeof path)
        return false;
    ssize_t n = readlink(path, target, sizeof target - 1);
    return n == (ssize_t)strlen(name) && !memcmp(target, name, (size_t)n);
}

int tune_run_checkpoints(const struct tune_run *r, struct tune_run_checkpoint **checkpoints)
{
    int64_t *steps;
    int count = tune_checkpoint_steps(r->folder, &steps);
    TRY(count);
    *checkpoints = calloc((size_t)count + 1, sizeof **checkpoints);
    for (int i = 0; i < count && *checkpoints; i++) {
        char name[40], path[TUNE_PATH_MAX];
        snprintf(name, sizeof name, "checkpoint-%" PRId64, steps[i]);
        bool fits = snprintf(path, sizeof path, "%s/%s", r->folder, name) < (int)sizeof path;
        (*checkpoints)[i] = (struct tune_run_checkpoint){steps[i], fits ? bytes_in(path, 0) : 0,
                                                         linked(r, "checkpoint-best", name), linked(r, "checkpoint-final", name)};
    }
    free(steps);
    if (*checkpoints)
        return count;
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory for a list of checkpoints");
    return -1;
}
