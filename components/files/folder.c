/* folder.c - open a folder and a file in it, then check the real paths of the open descriptors. A
 * link cannot change in between. */
#include "files/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/try.h"

void tune_hub_cache(char folder[TUNE_PATH_MAX])
{
    static const struct {
        const char *variable, *below;
    } caches[] = {{"HF_HUB_CACHE", ""},
                  {"HUGGINGFACE_HUB_CACHE", ""}, /* older name of the variable */
                  {"HF_HOME", "/hub"},
                  {"XDG_CACHE_HOME", "/huggingface/hub"},
                  {"HOME", "/.cache/huggingface/hub"}};
    *folder = 0;
    for (size_t i = 0; i < sizeof caches / sizeof *caches; i++) {
        const char *value = getenv(caches[i].variable);
        if (!value || !*value)
            continue;
        if (snprintf(folder, TUNE_PATH_MAX, "%s%s", value, caches[i].below) >= TUNE_PATH_MAX)
            *folder = 0;
        return;
    }
}

/* The part of path after "<folder>/", or NULL if it is elsewhere. Both are absolute, without
 * links. */
static const char *below(const char *path, const char *folder, size_t n)
{
    while (n > 0 && folder[n - 1] == '/')
        n--;
    return strncmp(path, folder, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/* True for "blobs/<hash>". */
static bool is_blob(const char *path)
{
    return path && strncmp(path, "blobs/", 6) == 0 && path[6] && !strchr(path + 6, '/');
}

/* True for a blob of the repository whose snapshot the folder is. */
static bool in_own_blobs(const char *path, const char *folder)
{
    for (const char *at = strstr(folder, "/snapshots/"); at; at = strstr(at + 1, "/snapshots/"))
        if (is_blob(below(path, folder, (size_t)(at - folder))))
            return true;
    return false;
}

/* True for a blob of any model in the user's cache. */
static bool in_cache_blobs(const char *path)
{
    char named[TUNE_PATH_MAX], cache[PATH_MAX];
    tune_hub_cache(named);
    if (!*named || !realpath(named, cache))
        return false;
    const char *repository = below(path, cache, strlen(cache));
    const char *slash = repository && strncmp(repository, "models--", 8) == 0 ? strchr(repository, '/') : NULL;
    return slash && is_blob(slash + 1);
}

/* Report a failed open. For a link the message names its target. */
static int cannot_open(const char *path)
{
    char target[512];
    int code = errno;
    ssize_t n = readlink(path, target, sizeof target - 1);
    if (n < 0)
        return tune_error_set("cannot open %s: %s", path, strerror(code));
    target[n] = 0;
    return tune_error_set("cannot open %s, a link to %s: %s; put the file itself in its place", path, target,
                          strerror(code));
}

/* The real path of an open file or folder, from the kernel. */
static int real_path(int fd, const char *path, char real[TUNE_PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, real, TUNE_PATH_MAX - 1);
    if (n < 0)
        return tune_error_cannot("cannot tell where %s lies: /proc/self/fd: %s; /proc must be mounted", path,
                                   strerror(errno));
    real[n] = 0;
    return 0;
}

/* True for private files in .git: .git/config may hold a token. Files of git-annex and git-lfs in
 * .git belong to the model. */
static bool is_private_of_git(const char *path)
{
    const char *git = strncmp(path, ".git/", 5) == 0 ? path : strstr(path, "/.git/");
    const char *inner = git ? strchr(git + 1, '/') + 1 : NULL;
    return inner && strncmp(inner, "annex/objects/", 14) != 0 &&
           strncmp(inner, "lfs/objects/", 12) != 0;
}

static int check_inside(int fd, int folder, const char *path)
{
    char real[TUNE_PATH_MAX], home[TUNE_PATH_MAX];
    TRY(real_path(fd, path, real));
    TRY(real_path(folder, path, home));
    const char *inside = below(real, home, strlen(home));
    if (inside ? !is_private_of_git(inside) : in_own_blobs(real, home) || in_cache_blobs(real))
        return 0;
    return tune_error_set(
        "%.500s leads to %.500s, which is %s; links may lead only inside the folder or into the Hub "
        "cache's blobs, so that a stranger's folder cannot take your files along. If you trust it, copy the file: "
        "cp --remove-destination %.200s %.200s",
        path, real, inside ? "git's own" : "outside its folder", real, path);
}

static int check(int fd, int folder, struct tune_folder_file *f)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return cannot_open(f->path);
    if (!S_ISREG(st.st_mode))
        return tune_error_set("%s is %s, expected a file", f->path, S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
    f->size = (size_t)st.st_size;
    f->mode = st.st_mode & 0777;
    return check_inside(fd, folder, f->path);
}

/* Open the file with O_PATH first, which does not touch a pipe or device. After the checks, reopen
 * that same file to read. */
static int open_in(int folder, const char *name, struct tune_folder_file *f)
{
    char again[64];
    int found = openat(folder, name, O_PATH | O_CLOEXEC);
    if (found < 0)
        return cannot_open(f->path);
    int status = check(found, folder, f);
    snprintf(again, sizeof again, "/proc/self/fd/%d", found);
    if (status == 0 && (f->fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) < 0)
        status = cannot_open(f->path);
    close(found);
    return status;
}

/* The folder is opened once, because its name could lead elsewhere a moment later. */
int tune_folder_open(struct tune_folder_file *f, const char *folder, const char *name)
{
    f->fd = -1;
    TRY(tune_path(f->path, "%s/%s", folder, name));
    int home = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (home < 0)
        return cannot_open(f->path);
    int status = open_in(home, name, f);
    close(home);
    return status;
}

int tune_folder_read(const char *folder, const char *name, size_t limit, char **text, size_t *size)
{
    struct tune_folder_file f;
    TRY(tune_folder_open(&f, folder, name));
    *size = f.size;
    int status = tune_file_read_open(f.fd, f.path, f.size, limit, text);
    close(f.fd);
    return status;
}

bool tune_folder_has(const char *folder, const char *name)
{
    char path[TUNE_PATH_MAX];
    struct stat st;
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path && lstat(path, &st) == 0;
}

int tune_folder_fingerprint(const char *folder, const char *name, uint64_t *hash)
{
    struct tune_folder_file f;
    TRY(tune_folder_open(&f, folder, name));
    int status = tune_file_fingerprint_open(f.fd, f.path, f.size, hash);
    close(f.fd);
    return status;
}
