/* process.c - read the processes and their parents from /proc. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "machine/guard.h"

/* Read "4711 (name) S parent group session ...". The name may contain anything. */
static bool read_process(int proc, const char *name, struct tune_process *p)
{
    char path[300], text[512], state;
    snprintf(path, sizeof path, "%s/stat", name);
    int fd = openat(proc, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    if (n <= 0)
        return false; /* the process ended after it was listed */
    text[n] = 0;
    const char *front = strchr(text, '('), *behind = strrchr(text, ')');
    if (!front || !behind || sscanf(text, "%d", &p->pid) != 1 ||
        sscanf(behind + 1, " %c %d %d %d", &state, &p->parent, &p->group, &p->session) != 4)
        return false;
    snprintf(p->name, sizeof p->name, "%.*s", (int)(behind - front - 1), front + 1);
    p->dead = state == 'Z' || state == 'X';
    p->stopped = state == 'T' || state == 't';
    p->busy = state == 'R' || state == 'D';
    return true;
}

bool tune_process_read(pid_t pid, struct tune_process *p)
{
    char folder[32];
    snprintf(folder, sizeof folder, "/proc/%d", pid);
    return read_process(AT_FDCWD, folder, p);
}

bool tune_process_next(DIR *proc, struct tune_process *p)
{
    const struct dirent *entry;
    while ((entry = readdir(proc)))
        if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && read_process(dirfd(proc), entry->d_name, p))
            return true;
    return false;
}
