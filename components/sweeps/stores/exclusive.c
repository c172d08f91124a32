/* exclusive.c - write a file under a temporary name, and then link it to its final name. Unlike a
 * rename, a link fails if the name is taken. */
#include "sweeps/stores/exclusive.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/file.h"
#include "core/try.h"

static int fail_with_errno(const char *what, const char *path)
{
    return tune_error_set("cannot %s %s: %s", what, path, strerror(errno));
}

static int write_all(const char *path, const void *data, size_t size, bool sync)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return fail_with_errno("write", path);
    const char *from = data;
    bool good = true;
    while (size > 0 && good) {
        ssize_t n = write(fd, from, size);
        good = n >= 0 || errno == EINTR;
        from += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    good = good && (!sync || fsync(fd) == 0);
    int code = errno;
    if (close(fd) < 0 && good) { /* a network file system may report a full disk only here */
        good = false;
        code = errno;
    }
    errno = code;
    return good ? 0 : fail_with_errno("write", path);
}

/* Link the file to its name. Returns 1, 0 or -1 as tune_exclusive_write does. */
static int give_name(const char *temporary, const char *path)
{
    struct stat st;
    if (link(temporary, path) == 0)
        return 1;
    int code = errno;
    if (stat(temporary, &st) == 0 && st.st_nlink == 2) /* the link exists, but the file server's answer was lost */
        return 1;
    /* this file system has no hard links */
    if (code != EEXIST && renameat2(AT_FDCWD, temporary, AT_FDCWD, path, RENAME_NOREPLACE) == 0)
        return 1;
    if (code == EEXIST || errno == EEXIST)
        return 0;
    errno = code;
    return fail_with_errno("make", path);
}

/* Draw a temporary name in the same folder as path. */
static int draw_name(char temporary[TUNE_PATH_MAX], const char *path)
{
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) < 0)
        return fail_with_errno("make a temporary name for", path);
    return tune_path(temporary, "%s.tmp-%" PRIu64, path, number);
}

int tune_replace_write(const char *path, const void *data, size_t size, bool sync)
{
    char temporary[TUNE_PATH_MAX], folder[TUNE_PATH_MAX];
    TRY(draw_name(temporary, path));
    TRY(tune_file_parent(folder, path));
    int status = write_all(temporary, data, size, sync);
    if (status == 0 && rename(temporary, path) < 0)
        status = fail_with_errno("rename to", path);
    if (status < 0)
        unlink(temporary);
    return status < 0 ? -1 : sync ? tune_file_sync_folder(folder) : 0;
}

int tune_exclusive_write(const char *path, const void *data, size_t size, bool sync)
{
    char temporary[TUNE_PATH_MAX], folder[TUNE_PATH_MAX];
    TRY(draw_name(temporary, path));
    TRY(tune_file_parent(folder, path));
    int status = write_all(temporary, data, size, sync);
    if (status == 0)
        status = give_name(temporary, path);
    unlink(temporary);
    return status == 1 && sync && tune_file_sync_folder(folder) < 0 ? -1 : status;
}
