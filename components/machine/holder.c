/* holder.c - find the holder of a processor's socket. /proc shows processes that we may inspect.
 * For others, the kernel's list of sockets (NETLINK_SOCK_DIAG) gives the user. */
#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "machine/child.h"
#include "machine/guard.h"

/* True for "@tune.c/cpu/3", or with `next` for "@tune.c/cpu/3/next", of one of the processors. */
static bool is_name(const char *name, const int *cpus, int count, bool next, int *cpu)
{
    int at = 0;
    if (sscanf(name, "@tune.c/cpu/%d%n", cpu, &at) != 1 || strcmp(name + at, next ? "/next" : "") != 0)
        return false;
    for (int i = 0; i < count; i++)
        if (cpus[i] == *cpu)
            return true;
    return false;
}

/* The socket's inode number, from the kernel's list of names; 0: there is none now. */
static uint64_t find_socket(const int *cpus, int count, bool next, int *cpu)
{
    char line[512], name[128];
    unsigned type;
    uint64_t inode = 0;
    FILE *f = fopen("/proc/net/unix", "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "%*s %*s %*s %*s %x %*s %" SCNu64 " %127s", &type, &inode, name) == 3 && type == SOCK_DGRAM &&
            is_name(name, cpus, count, next, cpu))
            break;
        else
            inode = 0;
    if (f)
        fclose(f);
    return inode;
}

static bool has_open(const char *pid, const char *socket)
{
    char folder[300], target[64];
    snprintf(folder, sizeof folder, "/proc/%.20s/fd", pid);
    DIR *files = opendir(folder); /* unreadable for processes of other users */
    bool found = false;
    for (struct dirent *e; files && !found && (e = readdir(files));) {
        ssize_t n = readlinkat(dirfd(files), e->d_name, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = 0;
        found = strcmp(target, socket) == 0;
    }
    if (files)
        closedir(files);
    return found;
}

static void read_process(const char *pid, struct tune_child_holder *h)
{
    char path[300];
    struct stat st;
    h->pid = atol(pid);
    snprintf(path, sizeof path, "/proc/%.20s", pid);
    if (stat(path, &st) == 0)
        h->uid = st.st_uid;
    snprintf(path, sizeof path, "/proc/%.20s/comm", pid);
    FILE *f = fopen(path, "re");
    if (!f || !fgets(h->name, sizeof h->name, f))
        h->name[0] = 0;
    h->name[strcspn(h->name, "\n")] = 0;
    if (f)
        fclose(f);
    h->guard = strcmp(h->name, TUNE_GUARD_NAME) == 0;
}

/* Ask the kernel for the user of a socket (Linux 5.3 and newer). The structs are those of
 * linux/netlink.h and linux/unix_diag.h, which some C libraries lack. */
static long ask_user(uint64_t inode)
{
    enum { SOCK_DIAG = 4, BY_FAMILY = 20, REQUEST = 1, SHOW_UID = 0x40, ATTRIBUTE_UID = 7 };
    struct header { uint32_t length; uint16_t type, flags; uint32_t sequence, port; };
    struct {
        struct header header;
        uint8_t family, protocol;
        uint16_t pad;
        uint32_t states, inode, show, cookie[2];
    } ask = {{sizeof ask, BY_FAMILY, REQUEST, 1, 0}, AF_UNIX, 0, 0, ~0u, (uint32_t)inode, SHOW_UID, {~0u, ~0u}};
    struct { uint8_t family, type, state, pad; uint32_t inode, cookie[2]; } details;
    struct { uint16_t length, type; } attribute;
    struct header header;
    char answer[1024];
    long uid = -1;
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, SOCK_DIAG);
    ssize_t n = fd >= 0 && send(fd, &ask, sizeof ask, 0) == sizeof ask ? recv(fd, answer, sizeof answer, 0) : -1;
    if (fd >= 0)
        close(fd);
    if (n < (ssize_t)(sizeof header + sizeof details))
        return -1;
    memcpy(&header, answer, sizeof header);
    if (header.type != BY_FAMILY || header.length > (size_t)n)
        return -1;
    for (size_t at = sizeof header + sizeof details; at + sizeof attribute + 4 <= header.length;) {
        uint32_t value;
        memcpy(&attribute, answer + at, sizeof attribute);
        memcpy(&value, answer + at + sizeof attribute, sizeof value);
        if (attribute.length < sizeof attribute)
            break;
        if (attribute.type == ATTRIBUTE_UID)
            uid = value;
        at += (attribute.length + 3u) & ~3u;
    }
    return uid;
}

static void find_holder(const int *cpus, int count, struct tune_child_holder *h)
{
    char socket[64];
    *h = (struct tune_child_holder){.cpu = -1, .uid = -1};
    struct tune_process p;
    uint64_t inode = find_socket(cpus, count, false, &h->cpu);
    bool next = inode == 0;
    if (next)
        inode = find_socket(cpus, count, true, &h->cpu);
    if (inode == 0) {
        h->guard = true; /* released meanwhile, as guards do */
        return;
    }
    snprintf(socket, sizeof socket, "socket:[%" PRIu64 "]", inode);
    DIR *proc = opendir("/proc");
    for (struct dirent *e; proc && h->pid == 0 && (e = readdir(proc));)
        if (isdigit((unsigned char)e->d_name[0]) && has_open(e->d_name, socket))
            read_process(e->d_name, h);
    if (proc)
        closedir(proc);
    if (h->pid == 0)
        h->uid = ask_user(inode);
    else
        h->ours = !next && tune_process_read((pid_t)h->pid, &p) && p.parent == getpid();
}

bool tune_child_cpus_taken(const int *cpus, int count, struct tune_child_holder *holder)
{
    int *locks = malloc((size_t)count * sizeof *locks);
    bool taken = false;
    /* the processors, then the name of the next holder */
    for (int next = 0; locks && !taken && next < 2; next++) {
        taken = !tune_guard_lock_cpus(cpus, count, next, locks);
        if (!taken)
            tune_guard_unlock_cpus(locks, count);
    }
    free(locks);
    if (taken && holder)
        find_holder(cpus, count, holder);
    return taken;
}
