/* run_folder.c - make the folder of one run. mkdir is the lock: it succeeds for one process only. */
#include "loggers/run_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/try.h"
#include "runs/run.h"

static int make_parent(const char *path)
{
    char parent[TUNE_PATH_MAX];
    TRY(tune_path(parent, "%s", path));
    char *slash = strrchr(parent, '/');
    if (!slash || slash == parent)
        return 0;
    *slash = 0;
    return tune_file_make_folder(parent);
}

static int fail(const char *path)
{
    tune_error_set("cannot make the run folder %s: %s", path, strerror(errno));
    return -1;
}

static bool is_empty(const char *path)
{
    DIR *dir = opendir(path);
    int entries = 0;
    while (dir && entries < 3 && readdir(dir))
        entries++;
    if (dir)
        closedir(dir);
    return dir && entries == 2; /* . and .. */
}

static int make_dated(char path[TUNE_PATH_MAX], const char *program)
{
    char stamp[32];
    time_t now = time(NULL);
    struct tm local;
    strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", localtime_r(&now, &local));
    for (int i = 1; i < 1000; i++) {
        TRY(i == 1 ? tune_path(path, "runs/%s-%s", program, stamp) : tune_path(path, "runs/%s-%s-%d", program, stamp, i));
        if (i == 1)
            TRY(make_parent(path));
        if (mkdir(path, 0777) == 0)
            return 0;
        if (errno != EEXIST)
            break;
    }
    return fail(path);
}

void tune_run_folder_hold(FILE *metrics)
{
    /* who looks whether a run is alive holds a shared lock for a moment; where a file system has no locks, nothing is guarded */
    for (int i = 0; i < 100 && flock(fileno(metrics), LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; i++)
        usleep(10000);
}

int tune_run_folder_make(char path[TUNE_PATH_MAX], const char *folder, const char *program, bool overwrite)
{
    char inner[TUNE_PATH_MAX];
    if (!folder)
        return make_dated(path, program);
    TRY(tune_path(path, "%s", folder));
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = 0; /* a link with a slash behind it would be followed when it is removed */
    if (!*path) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "--output: expected a folder's name, found an empty text");
        return -1;
    }
    TRY(make_parent(path));
    if (mkdir(path, 0777) == 0)
        return 0;
    if (errno != EEXIST)
        return fail(path);
    if (!overwrite) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "the run folder %s is there already, and nothing is written over; "
                            "give another --output, or --overwrite to remove it first", path);
        return -1;
    }
    TRY(tune_path(inner, "%s/run.json", path));
    if (!tune_file_exists(inner) && !is_empty(path)) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "--overwrite: %s has no run.json, so it is no run folder and is left alone; "
                            "give another --output", path);
        return -1;
    }
    if (tune_run_held(path)) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "--overwrite: a run is still writing to %s; wait for its end, stop it, or "
                            "give another --output", path);
        return -1;
    }
    TRY(tune_file_remove_folder(path));
    return mkdir(path, 0777) == 0 ? 0 : fail(path);
}

bool tune_run_folder_holds(const char *folder, const char *path)
{
    char *outer = realpath(folder, NULL), *inner = realpath(path, NULL);
    size_t n = outer ? strlen(outer) : 0;
    bool holds = outer && inner && !strncmp(outer, inner, n) && (inner[n] == 0 || inner[n] == '/' || n == 1);
    free(outer);
    free(inner);
    return holds;
}
