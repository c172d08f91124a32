/* memory.c - read /proc/self/status, /proc/meminfo, control groups and resource limits. */
#include "machine/memory.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "machine/cgroup.h"

/* The number of KiB after "name:" in a file, in bytes; -1: none. */
static int64_t line_bytes(const char *path, const char *name)
{
    char line[512];
    long long value = -1;
    size_t n = strlen(name);
    FILE *f = fopen(path, "re");
    while (f && value < 0 && fgets(line, sizeof line, f))
        if (!strncmp(line, name, n) && line[n] == ':')
            value = strtoll(line + n + 1, NULL, 10);
    if (f)
        fclose(f);
    return value < 0 ? -1 : value * 1024;
}

static int64_t positive(int64_t bytes)
{
    return bytes > 0 ? bytes : 0;
}

int64_t tune_memory_anonymous(void)
{
    return positive(line_bytes("/proc/self/status", "RssAnon"));
}

int64_t tune_memory_peak(void)
{
    return positive(line_bytes("/proc/self/status", "VmHWM"));
}

int64_t tune_memory_machine(void)
{
    struct tune_cgroup group;
    int64_t bytes = positive(line_bytes("/proc/meminfo", "MemTotal"));
    tune_cgroup_read(&group, "");
    return group.memory_limit > 0 && (bytes == 0 || group.memory_limit < bytes) ? group.memory_limit : bytes;
}

/* The number after "name:" in a text; -1: none. */
static double line_number(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    return at ? strtod(at + strlen(name), NULL) : -1;
}

/* It does not use a stream, because stdio would give a sampling thread its own heap. */
double tune_memory_used(void)
{
    char text[1024]; /* both values are in the first lines */
    int fd = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[n < 0 ? 0 : n] = 0;
    double total = line_number(text, "MemTotal:"), available = line_number(text, "MemAvailable:");
    return total > 0 && available >= 0 ? 100 * (total - available) / total : -1;
}

static int add_limit(struct tune_memory_limit *limits, int count, const char *what, int64_t bytes,
                     enum tune_memory_counts counts)
{
    struct tune_memory_limit *l = &limits[count];
    snprintf(l->what, sizeof l->what, "%s", what);
    l->bytes = positive(bytes);
    l->counts = counts;
    return count + 1;
}

/* Add a resource limit (ulimit), minus the use that `name` reports. */
static int add_resource(struct tune_memory_limit *limits, int count, int resource, const char *name, const char *what,
                        enum tune_memory_counts counts)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > INT64_MAX)
        return count;
    return add_limit(limits, count, what, (int64_t)limit.rlim_cur - positive(line_bytes("/proc/self/status", name)), counts);
}

int tune_memory_limits(struct tune_memory_limit limits[TUNE_MEMORY_LIMITS])
{
    int count = 0, strict = 0;
    struct tune_cgroup group;
    int64_t available = line_bytes("/proc/meminfo", "MemAvailable");
    tune_cgroup_read(&group, "");
    if (available >= 0)
        count = add_limit(limits, count, "available on this machine (MemAvailable)", available, TUNE_MEMORY_FILLED);
    if (group.memory_limit > 0) {
        char what[sizeof limits->what];
        snprintf(what, sizeof what, "free in the control group %s", group.memory_group);
        count = add_limit(limits, count, what, group.memory_free, TUNE_MEMORY_FILLED);
    }
    count = add_resource(limits, count, RLIMIT_AS, "VmSize", "left of the address space (ulimit -v)", TUNE_MEMORY_ADDRESSES);
    count = add_resource(limits, count, RLIMIT_DATA, "VmData", "left of the data segment (ulimit -d)", TUNE_MEMORY_WRITABLE);
    FILE *f = fopen("/proc/sys/vm/overcommit_memory", "re");
    /* the kernel does not overcommit memory */
    if (f && fscanf(f, "%d", &strict) == 1 && strict == 2)
        count = add_limit(limits, count, "left to promise on this machine (CommitLimit)",
                          line_bytes("/proc/meminfo", "CommitLimit") - line_bytes("/proc/meminfo", "Committed_AS"), TUNE_MEMORY_WRITABLE);
    if (f)
        fclose(f);
    return count;
}

int64_t tune_memory_thread(enum tune_memory_counts counts)
{
    pthread_attr_t defaults;
    size_t stack = 0;
    if (counts == TUNE_MEMORY_FILLED)
        return 0;
    if (pthread_attr_init(&defaults) == 0) {
        pthread_attr_getstacksize(&defaults, &stack);
        pthread_attr_destroy(&defaults);
    }
    return (int64_t)stack;
}
