/* confine.c - open files of the root, and nothing else. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/error.h"
#include "core/try.h"
#include "studio.h"

enum { MODE = 0644 };

/* As in <linux/openat2.h>, which comes with the kernel's headers, not with the C library's. */
struct studio_how { uint64_t flags, mode, resolve; };
enum { NO_MAGIC_LINKS = 0x02, BENEATH = 0x08 };

static int leads_out(const char *path)
{
    errno = EXDEV;
    return tune_error_set_kind(TUNE_ERROR_USAGE, "%.200s: this leads out of the root; expected a path below it, and links that stay in it", path);
}

static int cannot(const char *path)
{
    int why = errno;
    tune_error_set("%.200s: %s", path, strerror(why));
    errno = why;
    return -1;
}

/* A path from outside: relative, and no step up. */
static int check_path(const char *path)
{
    if (*path == '/')
        return leads_out(path);
    if (strlen(path) >= TUNE_PATH_MAX)
        return errno = ENAMETOOLONG, cannot(path);
    for (const char *at = path; *at; at += strcspn(at, "/"), at += strspn(at, "/"))
        if (!strncmp(at, "..", 2) && (at[2] == '/' || !at[2]))
            return leads_out(path);
    return 0;
}

static int open_root(const struct studio *s)
{
    int root = open(s->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? cannot(s->root) : root;
}

/* The opened thing must be a file or a folder. */
static int check_kind(int fd, const char *path)
{
    struct stat st;
    if (fstat(fd, &st) == 0 && (S_ISREG(st.st_mode) || S_ISDIR(st.st_mode)))
        return fd;
    close(fd);
    errno = EINVAL;
    return tune_error_set("%.200s: this is no file and no folder", path);
}

/* Open each name of a path without links, from the folder `from`, which is closed. */
static int walk(int from, char *path, const char *said, int flags)
{
    for (char *name = path, *next; from >= 0; name = next) {
        name += strspn(name, "/");
        next = name + strcspn(name, "/");
        bool last = !next[strspn(next, "/")];
        if (*next)
            *next++ = 0;
        int fd = openat(from, *name ? name : ".", last ? flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC : O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, MODE);
        int why = errno;
        close(from);
        errno = why;
        if (fd < 0)
            return why == ELOOP ? leads_out(said) : cannot(said);
        if (last)
            return check_kind(fd, said);
        from = fd;
    }
    return from;
}

int studio_open_by_steps(const struct studio *s, const char *path, int flags)
{
    char asked[TUNE_PATH_MAX], *real;
    size_t n = strlen(s->root);
    TRY(check_path(path));
    TRY(tune_path(asked, "%s/%s", s->root, path));
    real = realpath(asked, NULL);
    if (!real && !(errno == ENOENT && (flags & O_CREAT)))
        return cannot(path);
    /* Links are resolved now. Who puts a new one there meanwhile is refused below. */
    const char *rest = real ? real : path;
    if (real && (strncmp(real, s->root, n) || (real[n] && real[n] != '/' && s->root[n - 1] != '/')))
        return free(real), leads_out(path);
    char *steps = strdup(real ? rest + n : rest);
    free(real);
    int root = steps ? open_root(s) : tune_error_no_memory("a path");
    int fd = root < 0 ? -1 : walk(root, steps, path, flags);
    free(steps);
    return fd;
}

int studio_open(const struct studio *s, const char *path, int flags)
{
    struct studio_how how = {.flags = (uint64_t)(flags | O_CLOEXEC | O_NONBLOCK), .mode = flags & O_CREAT ? MODE : 0, .resolve = BENEATH | NO_MAGIC_LINKS};
    TRY(check_path(path));
    int root = open_root(s), fd;
    if (root < 0)
        return -1;
    do
        fd = (int)syscall(SYS_openat2, root, *path ? path : ".", &how, sizeof how);
    while (fd < 0 && (errno == EAGAIN || errno == EINTR)); /* EAGAIN: somebody renames folders */
    int why = errno;
    close(root);
    if (fd >= 0)
        return check_kind(fd, path);
    errno = why;
    /* EXDEV: a link out of the root, or an absolute one that may lie in it. */
    if (why == EXDEV || why == ENOSYS || why == EPERM)
        return studio_open_by_steps(s, path, flags);
    return cannot(path);
}

size_t studio_read_line(FILE *in, char *line, size_t size, bool *whole)
{
    size_t n = 0;
    int c = 0;
    while (n + 1 < size && c != '\n' && (c = getc_unlocked(in)) != EOF)
        line[n++] = (char)c;
    line[n] = 0;
    *whole = n > 0 && line[n - 1] == '\n';
    return n;
}
