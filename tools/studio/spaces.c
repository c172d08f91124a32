/* spaces.c - which paths of stores and spaces may be read, and whether they changed. */
#include "spaces.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/hash.h"
#include "core/try.h"
#include "files/document.h"

enum { SPACE_BYTES = 4 << 20, CHECKED = 1024 };

static pthread_mutex_t lock;
static pthread_once_t lock_once = PTHREAD_ONCE_INIT;
static uint64_t checked[CHECKED]; /* stamps of recorded spaces that were found good; under the lock */

static void make_lock(void)
{
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
}

void spaces_lock(void)
{
    pthread_once(&lock_once, make_lock);
    pthread_mutex_lock(&lock);
}

void spaces_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* ---- paths ---- */

static bool is_below(const char *path, const char *folder)
{
    size_t n = strlen(folder);
    while (n > 1 && folder[n - 1] == '/')
        n--;
    return !strncmp(path, folder, n) && (path[n] == '/' || path[n] == 0 || n == 1);
}

bool spaces_inside(const struct studio *s, const char *path, bool defaults)
{
    char name[TUNE_PATH_MAX], *real = realpath(path, NULL), *folder = NULL;
    bool inside = real && is_below(real, s->root);
    if (real && !inside && defaults && tune_defaults_path(name, ".") == 0) {
        folder = realpath(name, NULL);
        inside = folder && is_below(real, folder);
    }
    free(folder);
    free(real);
    return inside;
}

int spaces_confine(const struct studio *s, struct studio_reply *r, const char *what, const char *path)
{
    if (spaces_inside(s, path, true))
        return 0;
    if (!tune_file_exists(path) && *path != '/' && !strstr(path, ".."))
        return studio_fail(r, 404, "%s: %s is not in %s", what, path, s->root);
    return studio_fail(r, 403, "%s: %s is outside the root, %s; start studio with another --root to use it", what, path, s->root);
}

/* ---- space files ---- */

/* Refuse a list of points outside the root. Beside a space's copy in a store, the list is in data/. */
static int check_points(const struct studio *s, struct studio_reply *r, const char *path)
{
    struct tune_document *d = tune_document_read(path);
    char folder[TUNE_PATH_MAX], list[TUNE_PATH_MAX];
    const char *points = NULL;
    int code = d ? tune_document_text(d, d->root, "points", false, &points) : -1;
    if (code < 0 || !points) { /* the question says what is wrong with the file */
        tune_document_free(d);
        return 0;
    }
    code = tune_file_parent(folder, path) < 0 || (*points == '/' ? tune_path(list, "%s", points) : tune_path(list, "%s/%s", folder, points)) < 0 ? -1 : 0;
    if (code == 0 && tune_file_exists(list) && !spaces_inside(s, list, true))
        code = studio_fail(r, 403, "%s: its list of points, %s, is outside the root, %s", path, points, s->root);
    tune_document_free(d);
    return code;
}

int spaces_check_file(const struct studio *s, struct studio_reply *r, const char *path)
{
    struct stat st;
    char *text;
    size_t size;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size > SPACE_BYTES)
        return studio_fail(r, 400, "%s: no space file; expected a regular file of at most %d MiB", path, SPACE_BYTES >> 20);
    if (tune_file_read(path, SPACE_BYTES, &text, &size) < 0)
        return -1;
    bool points = memmem(text, size, "points", 6) != NULL;
    free(text);
    if (!points)
        return 0;
    spaces_lock();
    int code = check_points(s, r, path);
    spaces_unlock();
    return code;
}

/* ---- what changed ---- */

uint64_t spaces_hash(const void *bytes, size_t size, uint64_t hash)
{
    uint8_t key[16] = {0};
    memcpy(key, &hash, sizeof hash);
    return tune_siphash(bytes, size, key);
}

static uint64_t hash_of(const char *name, const struct stat *st)
{
    const int64_t numbers[] = {(int64_t)st->st_ino, (int64_t)st->st_size, (int64_t)st->st_mtim.tv_sec, (int64_t)st->st_mtim.tv_nsec,
                               (int64_t)st->st_mode};
    return spaces_hash(name, strlen(name), spaces_hash(numbers, sizeof numbers, 1));
}

/* Check a recorded space once. */
static int check_record(const struct studio *s, struct studio_reply *r, const char *path, uint64_t stamp)
{
    spaces_lock();
    bool known = checked[stamp % CHECKED] == stamp;
    spaces_unlock();
    if (known)
        return 0;
    TRY(spaces_check_file(s, r, path));
    spaces_lock();
    checked[stamp % CHECKED] = stamp;
    spaces_unlock();
    return 0;
}

static int stamp_folder(const struct studio *s, struct studio_reply *r, const char *folder, int depth, uint64_t *sum)
{
    static const char *const kinds[] = {"spaces", "experiments", "operations", "data", "forgotten"};
    DIR *d = opendir(folder);
    int code = 0;
    for (struct dirent *e; d && code == 0 && (e = readdir(d));) {
        char path[TUNE_PATH_MAX];
        struct stat st;
        bool wanted = depth > 0;
        if (*e->d_name == '.' || tune_path(path, "%s/%s", folder, e->d_name) < 0 || lstat(path, &st) < 0)
            continue;
        if (S_ISLNK(st.st_mode) && !spaces_inside(s, path, true)) {
            code = studio_fail(r, 403, "%s is a link to something outside the root, %s; copy the file in its place", path, s->root);
            break;
        }
        if (S_ISLNK(st.st_mode) && stat(path, &st) < 0)
            continue;
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !depth; i++)
            wanted = wanted || !strcmp(kinds[i], e->d_name);
        if (S_ISDIR(st.st_mode) && wanted && !depth)
            code = stamp_folder(s, r, path, 1, sum);
        if (!S_ISREG(st.st_mode))
            continue;
        uint64_t stamp = hash_of(path, &st);
        *sum += stamp; /* in any order */
        if (depth && strstr(folder, "/spaces"))
            code = check_record(s, r, path, stamp);
    }
    if (d)
        closedir(d);
    return code;
}

int spaces_stamp(const struct studio *s, struct studio_reply *r, const char *path, uint64_t *hash)
{
    struct stat st = {0};
    uint64_t sum = stat(path, &st) < 0 ? 0 : hash_of(path, &st);
    if (S_ISDIR(st.st_mode))
        TRY(stamp_folder(s, r, path, 0, &sum));
    *hash = spaces_hash(&sum, sizeof sum, *hash);
    return 0;
}
