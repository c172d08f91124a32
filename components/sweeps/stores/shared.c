/* shared.c - the clock of a file system, and tests of what a store needs from it. */
#include "sweeps/stores/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "core/random.h"
#include "core/try.h"
#include "sweeps/stores/exclusive.h"
#include "sweeps/stores/store_parts.h"

/* ---- the clock ---- */

/* True if a single clock dates all files: that of this kernel or of an NFS server. Elsewhere, each
 * host may use its own clock, as in Lustre. The numbers are from statfs(2). */
static bool has_one_clock(const char *path)
{
    static const long kinds[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC, TMPFS_MAGIC, OVERLAYFS_SUPER_MAGIC, RAMFS_MAGIC,
                                 F2FS_SUPER_MAGIC, 0x2fc12fc1L /* ZFS */, NFS_SUPER_MAGIC};
    struct statfs fs;
    if (statfs(path, &fs) < 0)
        return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if ((long)fs.f_type == kinds[i])
            return true;
    return false;
}

/* Get the file system's current time, from a new file beside path. */
static int time_beside(const char *path, time_t *now)
{
    char probe[TUNE_PATH_MAX];
    struct stat st;
    uint32_t number;
    TRY(tune_random_fresh(&number, sizeof number));
    TRY(tune_path(probe, "%s.tmp-%" PRIu32, path, number));
    int fd = open(probe, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    int status = fd >= 0 && fstat(fd, &st) == 0 ? 0 : -1;
    if (fd >= 0) {
        close(fd);
        unlink(probe);
    }
    if (status == 0)
        *now = st.st_mtime;
    return status;
}

bool tune_shared_older(const char *path, int seconds)
{
    struct stat st;
    time_t now;
    if (time_beside(path, &now) < 0 || stat(path, &st) < 0)
        return false;
    return st.st_mtime + seconds + (has_one_clock(path) ? 0 : TUNE_CLOCKS_S) < now;
}

/* ---- tests ---- */

struct probe {
    const char *store;
    char first[TUNE_PATH_MAX], second[TUNE_PATH_MAX], hosts[TUNE_PATH_MAX]; /* two test files, and their folder */
};

static int refuse(const struct probe *p, const char *what)
{
    return tune_error_set("%s: a store cannot be on this file system: %s. Rows could be lost or "
                          "measured twice. Use a folder on another file system, such as a local "
                          "disk or NFS", p->store, what);
}

/* Refuse the file system because of an error number, unless the disk is full or damaged. */
static int refuse_error(const struct probe *p, const char *call)
{
    char what[160];
    int code = errno;
    if (code == ENOSPC || code == EDQUOT || code == EIO || code == EROFS || code == EMFILE || code == ENFILE || code == ENOMEM)
        return tune_error_set("cannot write into %s: %s", p->hosts, strerror(code));
    snprintf(what, sizeof what, "%s fails with \"%s\"", call, strerror(code));
    return refuse(p, what);
}

/* Make a file with one letter in it. */
static int make_file(const struct probe *p, const char *path, char letter, bool sync)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
        return refuse_error(p, "making a file");
    int status = write(fd, &letter, 1) != 1 ? refuse_error(p, "write") : sync && fsync(fd) < 0 ? refuse_error(p, "fsync of a file") : 0;
    if (close(fd) < 0 && status == 0)
        status = refuse_error(p, "close");
    return status;
}

/* Read the letter in an open file, or 0, and close the file. */
static char letter_of(int fd)
{
    char letter = 0;
    if (fd >= 0 && pread(fd, &letter, 1, 0) != 1)
        letter = 0;
    if (fd >= 0)
        close(fd);
    return letter;
}

static int try_exclusive(const struct probe *p)
{
    int again = open(p->first, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (again >= 0) {
        close(again);
        return refuse(p, "O_EXCL is ignored, so two processes can make the same file");
    }
    if (errno != EEXIST)
        return refuse_error(p, "O_EXCL on an existing file");
    if (letter_of(open(p->first, O_RDONLY | O_CLOEXEC)) != 'a')
        return refuse(p, "a file that was written and closed cannot be read");
    return 0;
}

/* Test the two ways of exclusive.c to give a file a free name. */
static int try_names(const struct probe *p)
{
    if (link(p->first, p->second) == 0) {
        if (link(p->first, p->second) == 0)
            return refuse(p, "link does not refuse the name of an existing file");
        return unlink(p->second) < 0 ? refuse_error(p, "removing a file") : 0;
    }
    TRY(make_file(p, p->second, 'b', false));
    int taken = renameat2(AT_FDCWD, p->second, AT_FDCWD, p->first, RENAME_NOREPLACE);
    if (taken == 0)
        return refuse(p, "RENAME_NOREPLACE does not refuse the name of an existing file");
    if (errno != EEXIST)
        return refuse(p, "it has neither hard links nor RENAME_NOREPLACE");
    return unlink(p->second) < 0 ? refuse_error(p, "removing a file") : 0;
}

/* Test a rename over an open file. The reader must still see the complete old file. The name must
 * refer to the new file, not to a copy. */
static int try_rename(const struct probe *p)
{
    struct stat was, is;
    int old = open(p->first, O_RDONLY | O_CLOEXEC);
    int status = make_file(p, p->second, 'c', false);
    if (status == 0 && (stat(p->second, &was) < 0 || rename(p->second, p->first) < 0))
        status = refuse_error(p, "rename over a file");
    char letter = letter_of(old);
    TRY(status);
    if (letter != 'a')
        return refuse(p, "rename changes the file that it replaces, so a process can read half a "
                         "file");
    if (letter_of(open(p->first, O_RDONLY | O_CLOEXEC)) != 'c')
        return refuse(p, "rename does not replace a file");
    if (stat(p->first, &is) < 0 || is.st_ino != was.st_ino || stat(p->second, &is) == 0)
        return refuse(p, "rename makes a copy, so a process can read half a file");
    return 0;
}

static int try_folder(const struct probe *p)
{
    int fd = open(p->hosts, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int status = fd < 0 ? refuse_error(p, "opening a folder") : fsync(fd) < 0 ? refuse_error(p, "fsync of a folder") : 0;
    if (fd >= 0)
        close(fd);
    return status;
}

static int try_all(const struct probe *p)
{
    int status = make_file(p, p->first, 'a', true);
    if (status == 0)
        status = try_exclusive(p);
    if (status == 0)
        status = try_names(p);
    if (status == 0)
        status = try_rename(p);
    if (status == 0)
        status = try_folder(p);
    unlink(p->first);
    unlink(p->second);
    if (status < 0)
        rmdir(p->hosts); /* fails if other hosts are in it */
    return status;
}

/* Write a text with the boot and the file system. If it has not changed, the last test is still
 * valid. */
static int describe_test(const char *hosts, char *text, size_t size)
{
    char boot[64] = "";
    struct statfs fs;
    struct stat st;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f && fscanf(f, "%60s", boot) != 1)
        boot[0] = 0;
    if (f)
        fclose(f);
    if (stat(hosts, &st) < 0 || statfs(hosts, &fs) < 0)
        return tune_error_set("cannot examine %s: %s", hosts, strerror(errno));
    return snprintf(text, size, "boot %s, device %llx, kind %lx\n", boot, (unsigned long long)st.st_dev, (long)fs.f_type);
}

static bool is_unchanged(const char *path, const char *note)
{
    char text[256] = "";
    FILE *f = fopen(path, "re");
    bool same = f && fgets(text, sizeof text, f) && !strcmp(text, note);
    if (f)
        fclose(f);
    return same;
}

int tune_shared_probe(const char *folder)
{
    struct probe p = {.store = folder};
    char host[65], path[TUNE_PATH_MAX], note[256];
    uint32_t number;
    TRY(tune_path(p.hosts, "%s/hosts", folder));
    if (access(folder, W_OK) < 0 || (tune_file_is_folder(p.hosts) && access(p.hosts, W_OK) < 0))
        return 0; /* the first row tells */
    if (mkdir(p.hosts, 0777) < 0 && errno != EEXIST)
        return tune_error_set("cannot make folder %s: %s", p.hosts, strerror(errno));
    tune_store_host(host);
    TRY(tune_path(path, "%s/%s", p.hosts, host));
    TRY(describe_test(p.hosts, note, sizeof note));
    if (is_unchanged(path, note))
        return 0;
    TRY(tune_random_fresh(&number, sizeof number));
    TRY(tune_path(p.first, "%s/.try-%" PRIu32 "-1", p.hosts, number));
    TRY(tune_path(p.second, "%s/.try-%" PRIu32 "-2", p.hosts, number));
    TRY(try_all(&p));
    return tune_replace_write(path, note, strlen(note), false);
}
