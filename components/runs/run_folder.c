/* run_folder.c - make the folder of one run. mkdir is the lock: it succeeds for one process only. */
#include "runs/run_folder.h"

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

bool tune_run_folder_has(const char *folder, const char *name)
{
    char path[TUNE_PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && tune_file_exists(path);
}

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

static int cannot_make(const char *path)
{
    tune_error_set("cannot make the run folder %s: %s", path, strerror(errno));
    return -1;
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
            return tune_file_sync_name(path);
        if (errno != EEXIST)
            break;
    }
    return cannot_make(path);
}

/* False: another process has the lock. A reader that checks whether a run is alive takes a shared
 * lock for a moment. */
static bool lock(int fd)
{
    for (int i = 0; i < 100; i++, usleep(10000))
        if (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
            return true;
    return false;
}

/* True if the open file is still the file at that path. */
static bool is_there(int metrics, const char *folder)
{
    char path[TUNE_PATH_MAX];
    struct stat mine, there;
    return tune_path(path, "%s/" TUNE_RUN_METRICS, folder) == 0 && fstat(metrics, &mine) == 0 && stat(path, &there) == 0 &&
           mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
}

int tune_run_folder_held(FILE *metrics, const char *folder)
{
    if (is_there(fileno(metrics), folder))
        return 0;
    tune_error_set("the run folder %s was moved or removed while the run wrote into it; where it was moved, go on with "
                   "`resume` and its new name, else start again", folder);
    return -1;
}

int tune_run_folder_hold(FILE *metrics, const char *folder)
{
    bool free_now = lock(fileno(metrics));
    if (free_now && is_there(fileno(metrics), folder))
        return 0;
    tune_error_set(free_now ? "%s was removed by another process just now" : "%s: a run is still writing there; wait for its end, "
                   "or stop it (SIGINT or SIGTERM: it saves first)", folder);
    return -1;
}

/* True if the folder holds only what a run leaves when it is killed before it has a run.json. */
static bool hardly_begun(int folder)
{
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again < 0 ? NULL : fdopendir(again);
    struct stat st;
    bool only = dir != NULL;
    for (struct dirent *e; only && (e = readdir(dir));)
        only = !strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || !strncmp(e->d_name, TUNE_RUN_JSON ".tmp-", 13) ||
               (!strcmp(e->d_name, TUNE_RUN_METRICS) && fstatat(folder, e->d_name, &st, 0) == 0 && st.st_size == 0);
    if (dir)
        closedir(dir);
    else if (again >= 0)
        close(again);
    return only;
}

static int still_written(const char *path)
{
    tune_error_set_kind(TUNE_ERROR_USAGE, "`overwrite`: a run is still writing to %s; wait for its end, stop it, or give "
                        "another `output`", path);
    return -1;
}

/* Remove the open folder, which was at path a moment ago, if it is a run folder without a working
 * process. The lock on metrics.jsonl makes sure that only one process removes it. If the file is
 * missing, it is made first. */
static int remove_run(int folder, const char *path)
{
    bool run = faccessat(folder, TUNE_RUN_JSON, F_OK, 0) == 0;
    if (!run && !hardly_begun(folder)) {
        struct stat mine, there;
        bool moved = fstat(folder, &mine) == 0 && (stat(path, &there) < 0 || mine.st_ino != there.st_ino || mine.st_dev != there.st_dev);
        if (moved || faccessat(folder, TUNE_RUN_JSON, F_OK, 0) == 0)
            return 0; /* another process changed it between the two checks: check again */
        tune_error_set_kind(TUNE_ERROR_USAGE, "`overwrite`: %s has no run.json, so it is no run folder and is left alone; "
                            "give another `output`", path);
        return -1;
    }
    /* NFS gives the lock only to who may write the file */
    int fd = openat(folder, TUNE_RUN_METRICS, O_RDWR | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
    if (fd < 0 && errno == EACCES)
        fd = openat(folder, TUNE_RUN_METRICS, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0 && errno == ENOENT)
        return 0; /* removed meanwhile */
    if (fd >= 0 && !lock(fd)) {
        close(fd);
        return still_written(path);
    }
    int status = fd < 0 || is_there(fd, path) ? tune_file_discard_folder(path) : 0;
    if (fd >= 0)
        close(fd);
    return status;
}

/* In each round, we make path, or remove what is there, or another process was faster at one of
 * these. */
static int make_named(const char *path, bool overwrite)
{
    for (int i = 0; i < 100; i++) {
        if (mkdir(path, 0777) == 0)
            return tune_file_sync_name(path);
        if (errno != EEXIST)
            return cannot_make(path);
        if (!overwrite) {
            tune_error_set_kind(TUNE_ERROR_USAGE, "the run folder %s is there already, and nothing is written over; "
                                "give another `output`, or `overwrite` to remove it first", path);
            return -1;
        }
        int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        struct stat there;
        if (folder < 0 && errno == ENOENT && lstat(path, &there) < 0)
            continue;
        int status = remove_run(folder, path);
        if (folder >= 0)
            close(folder);
        TRY(status);
    }
    return still_written(path);
}

/* Make metrics.jsonl, the first file of the new folder, and lock it. If that fails, another process
 * took the folder. */
static int make_metrics(const char *path, FILE **metrics)
{
    char name[TUNE_PATH_MAX];
    TRY(tune_path(name, "%s/" TUNE_RUN_METRICS, path));
    *metrics = fopen(name, "wxe");
    if (!*metrics && errno != EEXIST && errno != ENOENT) {
        tune_error_set("cannot write %s: %s", name, strerror(errno));
        return -1;
    }
    if (*metrics && lock(fileno(*metrics)) && is_there(fileno(*metrics), path))
        return 0;
    if (*metrics)
        fclose(*metrics);
    *metrics = NULL;
    tune_error_set_kind(TUNE_ERROR_USAGE, "another run began in %s at the same moment; wait for its end, stop it, or give "
                        "another `output`", path);
    return -1;
}

int tune_run_folder_make(char path[TUNE_PATH_MAX], FILE **metrics, const char *folder, const char *program, bool overwrite)
{
    if (!folder) {
        TRY(make_dated(path, program));
        return make_metrics(path, metrics);
    }
    TRY(tune_path(path, "%s", folder));
    for (size_t n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
        path[n - 1] = 0; /* a link with a trailing slash would be followed when it is removed */
    if (!*path) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "`output`: expected a folder's name, found an empty text");
        return -1;
    }
    TRY(make_parent(path));
    TRY(make_named(path, overwrite));
    return make_metrics(path, metrics);
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

int tune_run_folder_forget(const char *folder)
{
    static const char *const made[] = {TUNE_RUN_REPORT, TUNE_RUN_ROWS_CSV, TUNE_RUN_FIGURE, TUNE_RUN_CONFUSION, TUNE_RUN_CONFUSION_CSV};
    char path[TUNE_PATH_MAX];
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
        TRY(tune_path(path, "%s/%s", folder, made[i]));
        if (unlink(path) < 0 && errno != ENOENT)
            return tune_error_set("cannot remove %s, which is of other rows: %s", path, strerror(errno));
    }
    return 0;
}
