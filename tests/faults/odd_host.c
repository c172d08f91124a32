/* odd_host.c - preloaded into a program, it makes this machine look like another one.
 *
 * HOST_NAME: the host's name. Its boot and machine ids follow from that and from HOST_BOOT and HOST_MACHINE. HOST_CLOCK:
 * seconds by which its clock is ahead. HOST_DATES=1: its clock dates the files that it makes and touches, as in Lustre. Otherwise
 * the kernel's does, as a file server's would. HOST_GROUPS: a folder; the process's control groups are those that `cgroup` and
 * `mountinfo` in there tell, in place of the files in /proc/self. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "next.h"

static const char *name(void)
{
    return getenv("HOST_NAME") ? getenv("HOST_NAME") : "elsewhere";
}

static long ahead(void)
{
    return getenv("HOST_CLOCK") ? atol(getenv("HOST_CLOCK")) : 0;
}

static bool dates(void)
{
    return getenv("HOST_DATES") != NULL;
}

int gethostname(char *text, size_t size)
{
    snprintf(text, size, "%s", name());
    return 0;
}

int uname(struct utsname *u)
{
    NEXT(uname);
    int code = next(u);
    snprintf(u->nodename, sizeof u->nodename, "%s", name());
    return code;
}

FILE *fopen(const char *path, const char *mode)
{
    NEXT(fopen);
    const char *groups = getenv("HOST_GROUPS");
    char other[4096];
    if (groups && (!strcmp(path, "/proc/self/cgroup") || !strcmp(path, "/proc/self/mountinfo"))) {
        snprintf(other, sizeof other, "%s%s", groups, strrchr(path, '/'));
        return next(other, mode);
    }
    static char text[2][128];
    int which = !strcmp(path, "/proc/sys/kernel/random/boot_id") ? 0 : !strcmp(path, "/etc/machine-id") ? 1 : -1;
    if (which < 0)
        return next(path, mode);
    const char *more = getenv(which ? "HOST_MACHINE" : "HOST_BOOT");
    snprintf(text[which], sizeof text[which], "%s-%s%s\n", which ? "machine" : "boot", name(), more ? more : "");
    return fmemopen(text[which], strlen(text[which]), "r");
}

int clock_gettime(clockid_t id, struct timespec *now)
{
    NEXT(clock_gettime);
    int code = next(id, now);
    if (id == CLOCK_REALTIME)
        now->tv_sec += ahead();
    return code;
}

time_t time(time_t *now)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    if (now)
        *now = t.tv_sec;
    return t.tv_sec;
}

static void date(int fd)
{
    struct timespec now[2];
    clock_gettime(CLOCK_REALTIME, &now[0]);
    now[1] = now[0];
    if (dates())
        futimens(fd, now);
}

int utimensat(int folder, const char *path, const struct timespec times[2], int flags)
{
    NEXT(utimensat);
    struct timespec now[2];
    clock_gettime(CLOCK_REALTIME, &now[0]);
    now[1] = now[0];
    return next(folder, path, times || !dates() ? times : now, flags);
}

int open(const char *path, int flags, ...)
{
    NEXT(open);
    MODE_OF(mode, flags)
    int fd = next(path, flags, mode);
    if (fd >= 0 && flags & O_CREAT)
        date(fd);
    return fd;
}

int close(int fd)
{
    NEXT(close);
    struct stat st;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) != O_RDONLY && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        date(fd);
    return next(fd);
}
