/* checkpoint_names.c - checkpoints by their names. */
#include "runs/checkpoint_names.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/error.h"
#include "files/file.h"

static const char prefix[] = "checkpoint-";

int64_t tune_checkpoint_named(const char *name)
{
    const char *digits = name + sizeof prefix - 1;
    if (strncmp(name, prefix, sizeof prefix - 1) || !*digits || *digits == '0' || digits[strspn(digits, "0123456789")])
        return 0;
    errno = 0;
    long long step = strtoll(digits, NULL, 10);
    return errno ? 0 : step;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

int tune_checkpoint_steps(const char *folder, int64_t **steps)
{
    DIR *d = opendir(folder);
    struct dirent *entry;
    int count = 0;
    *steps = NULL;
    if (!d) {
        tune_error_set("cannot open folder %s: %s", folder, strerror(errno));
        return -1;
    }
    while ((entry = readdir(d))) {
        char path[TUNE_PATH_MAX];
        struct stat st;
        int64_t step = tune_checkpoint_named(entry->d_name);
        if (step == 0 || tune_path(path, "%s/%s", folder, entry->d_name) < 0 || lstat(path, &st) < 0 || !S_ISDIR(st.st_mode))
            continue;
        if ((count & (count - 1)) == 0) { /* capacity is the power of two at or above count */
            int64_t *more = realloc(*steps, (count ? 2 * (size_t)count : 1) * sizeof **steps);
            if (!more) {
                free(*steps);
                closedir(d);
                tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory to list %s", folder);
                return -1;
            }
            *steps = more;
        }
        (*steps)[count++] = step;
    }
    closedir(d);
    if (count > 0)
        qsort(*steps, (size_t)count, sizeof **steps, ascending);
    return count;
}
