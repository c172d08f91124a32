/* file.c - map and replace files, folders, fingerprints. */
#include "files/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "core/hash.h"
#include "core/try.h"

static int fail(const char *what, const char *path)
{
    int code = errno;
    return tune_error_set_kind(code == ENOMEM ? TUNE_ERROR_CANNOT : TUNE_ERROR_FAILED, "cannot %s %s: %s%s", what, path,
                               strerror(code), code == ENOSPC ? "; free space or choose another folder" : "");
}

/* A file to read that is not there is a mistake of who named it. */
static int fail_open(const char *path)
{
    return errno == ENOENT ? tune_error_usage("cannot open %s: %s", path, strerror(ENOENT)) : fail("open", path);
}

int tune_file_nameless(const char *what)
{
    const char *folder = getenv("TMPDIR");
    char name[TUNE_PATH_MAX];
    folder = folder && *folder ? folder : "/tmp";
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd >= 0)
        return fd;
    TRY(tune_path(name, "%s/tune-rows-XXXXXX", folder)); /* not every file system has O_TMPFILE */
    fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0)
        return tune_error_cannot("%s: %s, and it cannot be written (%s); set TMPDIR to a folder that can", folder, what, strerror(errno));
    unlink(name);
    return fd;
}

int tune_file_open(const char *path, size_t *size)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* opening a FIFO must not block */
    if (fd < 0)
        return fail_open(path);
    if (fstat(fd, &st) < 0) {
        fail("examine", path);
    } else if (!S_ISREG(st.st_mode)) {
        tune_error_set("%s is %s, expected a file", path, S_ISDIR(st.st_mode) ? "a folder" : "not a regular file");
    } else {
        *size = (size_t)st.st_size;
        return fd;
    }
    close(fd);
    return -1;
}

/* True if the open file lies in root, by its real path, which *real has then. */
static bool is_within(int fd, const char *root, char real[TUNE_PATH_MAX])
{
    char link[64];
    size_t n = strlen(root);
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t got = readlink(link, real, TUNE_PATH_MAX - 1);
    real[got > 0 ? got : 0] = 0;
    while (n > 0 && root[n - 1] == '/')
        n--;
    return !strncmp(real, root, n) && real[n] == '/';
}

int tune_file_open_within(const char *path, const char *root, size_t *size)
{
    char real[TUNE_PATH_MAX], again[64];
    if (!root)
        return tune_file_open(path, size);
    int found = open(path, O_PATH | O_CLOEXEC); /* touches no pipe and no device */
    if (found < 0)
        return fail_open(path);
    snprintf(again, sizeof again, "/proc/self/fd/%d", found);
    int fd = -1;
    if (is_within(found, root, real)) {
        fd = tune_file_open(again, size);
        if (fd < 0)
            tune_error_set("%s: not a file that can be read; expected a regular file", path);
        errno = 0;
    } else {
        tune_error_set("%.500s leads to %.500s, outside %.500s; put the file itself in the place of the link", path, *real ? real : "an unknown place", root);
        errno = EXDEV;
    }
    int why = errno;
    close(found);
    errno = why;
    return fd;
}

int tune_file_read_at(int fd, const char *path, uint64_t offset, void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(fd, (char *)data + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail("read", path);
        if (got == 0)
            return tune_error_set(
                "%s was cut to %llu bytes while it was being read; put the whole file there and start again", path,
                (unsigned long long)(offset + done));
        done += (size_t)got;
    }
    return 0;
}

int tune_file_map_open(struct tune_mapping *m, int fd, const char *path, size_t size)
{
    *m = (struct tune_mapping){"", 0};
    if (size == 0)
        return 0;
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED)
        return fail("map", path);
    *m = (struct tune_mapping){data, size};
    return 0;
}

int tune_file_map(struct tune_mapping *m, const char *path)
{
    *m = (struct tune_mapping){"", 0};
    size_t size = 0;
    int fd = tune_file_open(path, &size);
    if (fd < 0)
        return -1;
    int status = tune_file_map_open(m, fd, path, size);
    close(fd);
    return status;
}

void tune_file_unmap(struct tune_mapping *m)
{
    if (m->size > 0)
        munmap((void *)(uintptr_t)m->data, m->size);
    *m = (struct tune_mapping){0};
}

void tune_file_release(const void *begin, const void *end)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t first = ((uintptr_t)begin + page - 1) / page * page, last = (uintptr_t)end / page * page;
    if (first < last)
        /* a hint; failure does no harm */
        (void)madvise((void *)first, last - first, MADV_DONTNEED);
}

int tune_file_read_open(int fd, const char *path, size_t n, size_t limit, char **text)
{
    if (n > limit)
        return tune_error_set("%s has %zu bytes, more than the %zu that such a file may have", path, n, limit);
    char *data = malloc(n + 1);
    if (!data)
        return fail("read", path);
    if (tune_file_read_at(fd, path, 0, data, n) < 0) {
        free(data);
        return -1;
    }
    data[n] = 0;
    *text = data;
    return 0;
}

int tune_file_read(const char *path, size_t limit, char **text, size_t *size)
{
    int fd = tune_file_open(path, size);
    if (fd < 0)
        return -1;
    int status = tune_file_read_open(fd, path, *size, limit, text);
    close(fd);
    return status;
}

bool tune_file_exists(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0;
}

bool tune_file_is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

bool tune_file_is_same(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int tune_file_make_folder(const char *path)
{
    char part[TUNE_PATH_MAX];
    TRY(tune_path(part, "%s", path));
    for (char *p = part + 1;; p++) {
        if (*p != '/' && *p != 0)
            continue;
        char c = *p;
        *p = 0;
        if (mkdir(part, 0777) == 0)
            TRY(tune_file_sync_name(part));
        else if (errno != EEXIST)
            return fail("make folder", part);
        *p = c;
        if (c == 0)
            break;
    }
    if (!tune_file_is_folder(path)) {
        errno = ENOTDIR;
        return fail("make folder", path);
    }
    return 0;
}

int tune_file_new_folder(const char *path)
{
    return mkdir(path, 0777) < 0 ? fail("make folder", path) : 0;
}

/* Remove the entries of a folder that `meant` accepts. */
static int remove_entries(const char *path, bool (*meant)(const char *name))
{
    DIR *folder = opendir(path);
    if (!folder)
        return errno == ENOENT ? 0 : fail("open folder", path);
    struct dirent *entry;
    int status = 0;
    while (status == 0 && (entry = readdir(folder))) {
        char inner[TUNE_PATH_MAX];
        if (!meant(entry->d_name))
            continue;
        status = tune_path(inner, "%s/%s", path, entry->d_name);
        if (status == 0)
            status = tune_file_remove_folder(inner);
    }
    closedir(folder);
    return status;
}

static bool is_inside(const char *name)
{
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

int tune_file_remove_folder(const char *path)
{
    struct stat st;
    if (lstat(path, &st) < 0)
        return errno == ENOENT ? 0 : fail("examine", path);
    if (!S_ISDIR(st.st_mode))
        return unlink(path) < 0 && errno != ENOENT ? fail("remove", path) : 0;
    int status = remove_entries(path, is_inside);
    /* another process may add or remove entries at the same time */
    for (int i = 0; status == 0 && rmdir(path) < 0 && errno != ENOENT; i++)
        status = (errno == ENOTEMPTY || errno == EEXIST) && i < 10 ? remove_entries(path, is_inside) : fail("remove folder", path);
    return status;
}

int tune_file_sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail("open folder", path);
    /* EINVAL: this file system cannot sync folders */
    int status = fsync(fd) < 0 && errno != EINVAL ? fail("sync folder", path) : 0;
    close(fd);
    return status;
}

int tune_file_parent(char folder[TUNE_PATH_MAX], const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? tune_path(folder, "%.*s", slash == path ? 1 : (int)(slash - path), path) : tune_path(folder, ".");
}

int tune_file_sync_name(const char *path)
{
    char folder[TUNE_PATH_MAX];
    TRY(tune_file_parent(folder, path));
    return access(folder, R_OK) < 0 ? 0 : tune_file_sync_folder(folder);
}

bool tune_file_is_leftover(const char *name)
{
    const char *tail = NULL;
    for (const char *at = name; (at = strstr(at, ".tmp-")); at++)
        tail = at;
    size_t digits = tail ? strspn(tail + 5, "0123456789") : 0;
    return digits > 0 && tail != name && !tail[5 + digits];
}

/* True if no process writes this temporary file or folder. A writer on this host has the process id
 * of its name. A writer anywhere holds a lock on it. */
static bool is_abandoned(const char *temporary)
{
    long pid = strtol(strrchr(temporary, '-') + 1, NULL, 10);
    if (pid <= 0 || pid == getpid() || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
        return false;
    int fd = open(temporary, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    bool free = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0;
    if (fd >= 0)
        close(fd);
    return free;
}

/* Remove what killed processes left beside path: "<path>.tmp-<pid>". */
static void remove_abandoned(const char *path)
{
    char folder[TUNE_PATH_MAX], left[TUNE_PATH_MAX];
    struct tune_error before;
    tune_error_save(&before);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = strlen(name);
    DIR *d = tune_file_parent(folder, path) == 0 ? opendir(folder) : NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (!strncmp(e->d_name, name, n) && !strncmp(e->d_name + n, ".tmp-", 5) && tune_file_is_leftover(e->d_name) &&
            tune_path(left, "%s/%s", folder, e->d_name) == 0 && is_abandoned(left))
            tune_file_remove_folder(left);
    if (d)
        closedir(d);
    tune_error_restore(&before);
}

/* Begin a file with at most these permissions. Removes temporary files of dead processes. */
static int begin_as(struct tune_file_writer *w, const char *path, unsigned mode)
{
    struct stat st;
    *w = (struct tune_file_writer){0};
    TRY(tune_path(w->path, "%s", path));
    TRY(tune_path(w->temporary, "%s.tmp-%ld", path, (long)getpid()));
    remove_abandoned(path);
    int fd = open(w->temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    if (fd >= 0 && fstat(fd, &st) == 0 && ((st.st_mode & 0777 & ~mode) == 0 || fchmod(fd, st.st_mode & mode) == 0) &&
        (w->file = fdopen(fd, "wb"))) {
        flock(fd, LOCK_EX | LOCK_NB); /* see is_abandoned */
        return 0;
    }
    fail("write", w->temporary);
    if (fd >= 0)
        close(fd);
    return -1;
}

int tune_file_begin(struct tune_file_writer *w, const char *path)
{
    return begin_as(w, path, 0666);
}

int tune_file_begin_output(struct tune_file_writer *w, const char *path)
{
    char target[PATH_MAX];
    struct stat st;
    if (stat(path, &st) == 0 ? S_ISREG(st.st_mode) : lstat(path, &st) < 0)
        return tune_file_begin(w, realpath(path, target) ? target : path);
    *w = (struct tune_file_writer){0}; /* no temporary file: path itself is open */
    TRY(tune_path(w->path, "%s", path));
    w->file = fopen(path, "wbe");
    return w->file ? 0 : fail("write", path);
}

int tune_file_commit(struct tune_file_writer *w)
{
    char folder[TUNE_PATH_MAX];
    TRY(tune_file_parent(folder, w->path));
    FILE *f = w->file;
    w->file = NULL;
    errno = 0;
    int bad = ferror(f);
    /* a pipe cannot be synced */
    bad |= fflush(f) != 0 || (w->temporary[0] && fsync(fileno(f)) < 0);
    int code = errno;
    if (fclose(f) != 0 && !bad) {
        bad = 1;
        code = errno;
    }
    if (bad) {
        errno = code ? code : EIO;
        return fail("write", w->path);
    }
    if (!w->temporary[0])
        return 0;
    if (rename(w->temporary, w->path) < 0)
        return fail("rename to", w->path);
    w->temporary[0] = 0;
    return tune_file_sync_folder(folder);
}

void tune_file_cancel(struct tune_file_writer *w)
{
    if (w->file)
        fclose(w->file);
    if (w->temporary[0])
        unlink(w->temporary);
    *w = (struct tune_file_writer){0};
}

int tune_file_write(const char *path, const void *data, size_t size)
{
    return tune_file_write_as(path, data, size, 0666);
}

int tune_file_write_as(const char *path, const void *data, size_t size, unsigned mode)
{
    struct tune_file_writer w;
    TRY(begin_as(&w, path, mode));
    if (fwrite(data, 1, size, w.file) == size && tune_file_commit(&w) == 0)
        return 0;
    if (w.file)
        fail("write", path);
    tune_file_cancel(&w);
    return -1;
}

int tune_file_begin_folder(struct tune_folder_writer *w, const char *path)
{
    *w = (struct tune_folder_writer){.fd = -1};
    TRY(tune_path(w->path, "%s", path));
    TRY(tune_path(w->temporary, "%s.tmp-%ld", path, (long)getpid()));
    TRY(tune_file_remove_folder(w->temporary));
    remove_abandoned(path);
    TRY(tune_file_new_folder(w->temporary));
    w->fd = open(w->temporary, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->fd >= 0)
        flock(w->fd, LOCK_EX | LOCK_NB); /* see is_abandoned */
    return 0;
}

static void end_folder(struct tune_folder_writer *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = -1;
    w->temporary[0] = 0;
}

int tune_file_commit_folder(struct tune_folder_writer *w)
{
    char folder[TUNE_PATH_MAX];
    TRY(tune_file_parent(folder, w->path));
    TRY(tune_file_sync_folder(w->temporary));
    if (rename(w->temporary, w->path) < 0)
        return fail("rename to", w->path);
    end_folder(w);
    return tune_file_sync_folder(folder);
}

void tune_file_cancel_folder(struct tune_folder_writer *w)
{
    struct tune_error why;
    tune_error_save(&why);
    if (w->temporary[0]) {
        tune_file_remove_folder(w->temporary);
        end_folder(w);
    }
    tune_error_restore(&why);
}

int tune_file_discard_folder(const char *path)
{
    char aside[TUNE_PATH_MAX];
    TRY(tune_path(aside, "%s.tmp-%ld", path, (long)getpid()));
    TRY(tune_file_remove_folder(aside));
    if (rename(path, aside) < 0)
        return errno == ENOENT ? 0 : fail("remove", path);
    return tune_file_remove_folder(aside);
}

int tune_file_remove_leftovers(const char *path)
{
    return remove_entries(path, tune_file_is_leftover);
}

int tune_file_stamp(const char *path, struct tune_file_stamp *stamp)
{
    struct stat st;
    struct tm utc;
    char seconds[24];
    if (stat(path, &st) < 0)
        return fail("examine", path);
    stamp->size = st.st_size;
    strftime(seconds, sizeof seconds, "%Y-%m-%dT%H:%M:%S", gmtime_r(&st.st_mtim.tv_sec, &utc));
    snprintf(stamp->modified, sizeof stamp->modified, "%s.%09ldZ", seconds, st.st_mtim.tv_nsec);
    return 0;
}

int tune_file_link(const char *path, const char *target)
{
    char temporary[TUNE_PATH_MAX], folder[TUNE_PATH_MAX];
    TRY(tune_path(temporary, "%s.tmp-%ld", path, (long)getpid()));
    TRY(tune_file_parent(folder, path));
    unlink(temporary);
    if (symlink(target, temporary) < 0)
        return fail("link", path);
    if (rename(temporary, path) < 0) {
        fail("rename to", path);
        unlink(temporary);
        return -1;
    }
    return tune_file_sync_folder(folder);
}

int tune_path(char *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(path, TUNE_PATH_MAX, format, args);
    va_end(args);
    if (n >= 0 && n < TUNE_PATH_MAX)
        return 0;
    return tune_error_set("the path %.60s... is longer than %d bytes", path, TUNE_PATH_MAX - 1);
}

int tune_path_listed(const char *paths, int k, char path[TUNE_PATH_MAX])
{
    bool one = tune_file_exists(paths);
    const char *at = paths;
    for (int i = 0; i < k; i++) {
        at = one ? NULL : strchr(at, ',');
        if (!at)
            return 0;
        at++;
    }
    TRY(tune_path(path, "%.*s", one ? TUNE_PATH_MAX : (int)strcspn(at, ","), at));
    return 1;
}

int tune_defaults_path(char *path, const char *name)
{
    char program[TUNE_PATH_MAX];
    const char *set = getenv("TUNE_DEFAULTS");
    if (set && *set)
        return tune_path(path, "%s/%s", set, name);
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    if (n > 0) {
        program[n] = 0;
        /* programs are installed in bin, or lie in build, build/tests/flags and build/asan/tests/flags */
        static const char *const beside[] = {"../share/tune.c/defaults", "../defaults", "../../defaults", "../../../defaults",
                                             "../../../../defaults"};
        char *slash = strrchr(program, '/');
        *slash = 0;
        for (size_t i = 0; i < sizeof beside / sizeof *beside; i++) {
            TRY(tune_path(path, "%s/%s", program, beside[i]));
            if (tune_file_is_folder(path))
                return tune_path(path, "%s/%s/%s", program, beside[i], name);
        }
    }
    return tune_error_set("no folder of defaults beside the program; set TUNE_DEFAULTS to the defaults folder of tune.c");
}

uint64_t tune_hash64(const void *data, size_t size, uint64_t seed)
{
    /* Multiply and fold 16 bytes at a time. The tail is padded with zeros; the size is mixed in
     * last. */
    const unsigned char *p = data;
    uint64_t hash = seed ^ 0x9E3779B97F4A7C15u, high, low, word[2];
    for (size_t left = size;; p += 16, left -= 16) {
        size_t take = left < 16 ? left : 16;
        word[0] = word[1] = 0;
        if (take > 0)
            memcpy(word, p, take);
        low = tune_multiply(word[0] ^ hash ^ 0xA0761D6478BD642Fu, word[1] ^ 0xE7037ED1A0B428DBu, &high);
        hash = (low ^ high) + 0x8EBC6AF09C88C6E3u;
        if (left <= 16)
            break;
    }
    low = tune_multiply(hash ^ size, 0x589965CC75374CC3u, &high);
    return low ^ high;
}

int64_t tune_file_free_space(const char *folder)
{
    struct statvfs s;
    if (statvfs(folder, &s) < 0 || s.f_frsize == 0 || s.f_blocks == 0)
        return INT64_MAX;
    return s.f_bavail > (uint64_t)INT64_MAX / s.f_frsize ? INT64_MAX : (int64_t)(s.f_bavail * s.f_frsize);
}

int tune_file_fingerprint_open(int fd, const char *path, size_t n, uint64_t *hash)
{
    enum { BLOCKS = 64, BLOCK = 16384 };
    char block[BLOCK], *whole = NULL;
    int status = 0;
    uint64_t size = n, h = tune_hash64(&size, sizeof size, *hash);
    if (n <= (size_t)BLOCKS * BLOCK) {
        status = tune_file_read_open(fd, path, n, n, &whole);
        if (status == 0)
            h = tune_hash64(whole, n, h);
        free(whole);
    } else {
        for (uint64_t i = 0; i < BLOCKS && status == 0; i++) {
            /* evenly from the first byte to the last */
            uint64_t at = (size - BLOCK) * i / (BLOCKS - 1);
            status = tune_file_read_at(fd, path, at, block, BLOCK);
            if (status == 0)
                h = tune_hash64(block, BLOCK, h);
        }
    }
    if (status == 0)
        *hash = h;
    return status;
}

int tune_file_fingerprint(const char *path, uint64_t *hash)
{
    size_t size = 0;
    int fd = tune_file_open(path, &size);
    if (fd < 0)
        return -1;
    int status = tune_file_fingerprint_open(fd, path, size, hash);
    close(fd);
    return status;
}
