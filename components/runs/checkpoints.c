/* checkpoints.c - the checkpoints in a run folder, by their names. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/try.h"
#include "runs/run.h"

enum { DEEPEST = 4 }; /* folders in a checkpoint: state/, and what somebody put there */

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

/* "checkpoint-120": 120, else -1; checkpoint-120.tmp-77 is one that is being written. */
static int64_t step_of(const char *name)
{
    static const char prefix[] = "checkpoint-";
    const char *digits = name + sizeof prefix - 1;
    if (strncmp(name, prefix, sizeof prefix - 1) || !*digits || digits[strspn(digits, "0123456789")] || strlen(digits) > 18)
        return -1;
    return atoll(digits);
}

static bool linked(const struct tune_run *r, const char *link, const char *name)
{
    char path[TUNE_PATH_MAX], target[TUNE_PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", r->folder, link) >= (int)sizeof path)
        return false;
    ssize_t n = readlink(path, target, sizeof target - 1);
    return n == (ssize_t)strlen(name) && !memcmp(target, name, (size_t)n);
}

static int is_checkpoint(const struct dirent *e)
{
    return step_of(e->d_name) >= 0;
}

static int by_step(const struct dirent **a, const struct dirent **b)
{
    int64_t x = step_of((*a)->d_name), y = step_of((*b)->d_name);
    return x < y ? -1 : x > y;
}

int tune_run_checkpoints(const struct tune_run *r, struct tune_run_checkpoint **checkpoints)
{
    struct dirent **entries = NULL;
    char path[TUNE_PATH_MAX];
    int n = scandir(r->folder, &entries, is_checkpoint, by_step), count = 0;
    *checkpoints = calloc((size_t)(n > 0 ? n : 0) + 1, sizeof **checkpoints);
    for (int i = 0; i < n; i++) {
        const char *name = entries[i]->d_name;
        bool fits = snprintf(path, sizeof path, "%s/%s", r->folder, name) < (int)sizeof path;
        if (*checkpoints && fits && tune_file_is_folder(path))
            (*checkpoints)[count++] = (struct tune_run_checkpoint){
                step_of(name), bytes_in(path, 0), linked(r, "checkpoint-best", name), linked(r, "checkpoint-final", name)};
        free(entries[i]);
    }
    free(entries);
    if (*checkpoints)
        return count;
    tune_error_set_kind(TUNE_ERROR_CANNOT, "out of memory for a list of checkpoints");
    return -1;
}
