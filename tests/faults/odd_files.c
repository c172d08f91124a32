/* odd_files.c - preloaded into a program, it makes the file system below $ODD_FOLDER odd in one way, $ODD:
 *
 * excl: O_EXCL is ignored. rename-in-place: rename writes the contents into the file that is there. rename-copy: it makes a copy
 * and removes the old file. rename-EXDEV, rename-ENOSYS: it fails so. fsync-EINVAL, fsync-ENOSYS: fsync of files does.
 * folder-EINVAL, folder-ENOSYS: fsync of folders does. no-link: no hard links. no-names: no RENAME_NOREPLACE either.
 * link-replaces: link takes a name that is taken. noreplace-replaces: no hard links, and RENAME_NOREPLACE does. unseen: a file that was written cannot be opened for reading. ENOSPC: no file
 * can be made. nfs-locks: flock gives an exclusive lock only on a file that is open for writing. stale: each sample file fails
 * once to be read, as over NFS when its owner replaces it. lustre: statfs says that it is Lustre. */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "next.h"

static bool is_odd(const char *how, const char *path)
{
    const char *folder = getenv("ODD_FOLDER"), *odd = getenv("ODD");
    return folder && odd && !strcmp(odd, how) && strstr(path, folder);
}

static int fail(int code)
{
    errno = code;
    return -1;
}

int open(const char *path, int flags, ...)
{
    NEXT(open);
    MODE_OF(mode, flags)
    if (is_odd("excl", path))
        flags &= ~O_EXCL;
    if (is_odd("unseen", path) && (flags & O_ACCMODE) == O_RDONLY && !(flags & O_DIRECTORY))
        return fail(ENOENT);
    if (is_odd("ENOSPC", path) && flags & O_CREAT)
        return fail(ENOSPC);
    return next(path, flags, mode);
}

static int copy(const char *from, const char *to, int flags)
{
    char bytes[65536];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | flags, 0666);
    ssize_t n;
    while ((n = read(in, bytes, sizeof bytes)) > 0)
        if (write(out, bytes, (size_t)n) != n)
            return -1;
    close(in);
    close(out);
    return unlink(from);
}

int rename(const char *from, const char *to)
{
    NEXT(rename);
    if (is_odd("rename-in-place", to))
        return copy(from, to, O_TRUNC);
    if (is_odd("rename-copy", to)) {
        unlink(to);
        return copy(from, to, O_EXCL);
    }
    return is_odd("rename-EXDEV", to) ? fail(EXDEV) : is_odd("rename-ENOSYS", to) ? fail(ENOSYS) : next(from, to);
}

int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
    NEXT(renameat2);
    return is_odd("no-names", to) ? fail(EINVAL) : next(a, from, b, to, is_odd("noreplace-replaces", to) ? 0 : flags);
}

int link(const char *from, const char *to)
{
    NEXT(link);
    if (is_odd("link-replaces", to))
        unlink(to);
    return is_odd("no-link", to) || is_odd("no-names", to) || is_odd("noreplace-replaces", to) ? fail(EPERM) : next(from, to);
}

static void path_of(int fd, char path[4096])
{
    char name[64];
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, path, 4095);
    path[n > 0 ? n : 0] = 0;
}

ssize_t pread(int fd, void *data, size_t size, off_t at)
{
    NEXT(pread);
    static char stale[4096];
    char path[4096];
    path_of(fd, path);
    if (is_odd("stale", path) && strstr(path, ".h5") && strcmp(stale, path)) {
        memcpy(stale, path, sizeof stale);
        return fail(ESTALE);
    }
    return next(fd, data, size, at);
}

int fsync(int fd)
{
    NEXT(fsync);
    char path[4096];
    struct stat st;
    path_of(fd, path);
    bool folder = fstat(fd, &st) == 0 && S_ISDIR(st.st_mode);
    if (is_odd(folder ? "folder-EINVAL" : "fsync-EINVAL", path))
        return fail(EINVAL);
    return is_odd(folder ? "folder-ENOSYS" : "fsync-ENOSYS", path) ? fail(ENOSYS) : next(fd);
}

int flock(int fd, int how)
{
    NEXT(flock);
    char path[4096];
    path_of(fd, path);
    if (is_odd("nfs-locks", path) && (how & LOCK_EX) && (fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY)
        return fail(EBADF);
    return next(fd, how);
}

int statfs(const char *path, struct statfs *fs)
{
    NEXT(statfs);
    int code = next(path, fs);
    if (is_odd("lustre", path))
        fs->f_type = 0x0BD00BD0;
    return code;
}
