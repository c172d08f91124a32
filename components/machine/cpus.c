/* cpus.c - affinity and control group quota; hardware threads of one core. */
#include "machine/cpus.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "machine/cgroup.h"
#include "core/error.h"

/* A function of OpenMP's library, in programs that link it. It gives the process's affinity from
 * before OMP_PROC_BIND or OMP_PLACES bound the first thread to one processor. */
extern int omp_get_num_procs(void) __attribute__((weak));

int tune_cpus_usable(void)
{
    cpu_set_t set;
    struct tune_cgroup group;
    /* if the set is too small for this machine, all processors that are online */
    int n = omp_get_num_procs ? omp_get_num_procs()
            : sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    tune_cgroup_read(&group, "");
    if (group.cpus > 0 && group.cpus < n)
        n = (int)(group.cpus + 0.5);
    return n < 1 ? 1 : n;
}

/* The first number of a list like "4,2"; the others are for nested regions. 0: invalid, or above
 * TUNE_THREADS. */
static int first_of(const char *list)
{
    long first = 0;
    for (const char *at = list;; at++) {
        char *end;
        while (isspace((unsigned char)*at))
            at++;
        long n = isdigit((unsigned char)*at) ? strtol(at, &end, 10) : 0;
        if (n < 1)
            return 0;
        first = first ? first : n;
        for (at = end; isspace((unsigned char)*at);)
            at++;
        if (!*at)
            return first <= TUNE_THREADS ? (int)first : 0;
        if (*at != ',')
            return 0;
    }
}

int tune_cpus_threads(int request)
{
    const char *set = getenv("OMP_NUM_THREADS");
    int threads = request > 0 ? request : set && *set ? first_of(set) : tune_cpus_cores("");
    if (threads > 0 && threads <= TUNE_THREADS)
        return threads;
    if (request > 0)
        tune_error_usage("%d threads: expected at most %d", request, TUNE_THREADS);
    else if (!set || !*set)
        return TUNE_THREADS; /* a machine with more processors */
    else
        tune_error_usage("OMP_NUM_THREADS=%.100s: expected a number of threads in [1,%d], or a list that begins "
                            "with one, such as 4,2; set it to that, or unset it", set, TUNE_THREADS);
    return -1;
}

/* The first number in the processor's file. A list of processors begins with its lowest. */
static int topology(const char *root, int cpu, const char *name, int otherwise)
{
    char path[PATH_MAX];
    int value;
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/%s", root, cpu, name);
    FILE *f = fopen(path, "re");
    if (!f || fscanf(f, "%d", &value) != 1)
        value = otherwise;
    if (f)
        fclose(f);
    return value;
}

struct location {
    int socket, core, cpu; /* core: its lowest processor */
};

static int compare(const void *a, const void *b)
{
    const struct location *x = a, *y = b;
    return x->socket != y->socket ? (x->socket > y->socket) - (x->socket < y->socket)
           : x->core != y->core   ? (x->core > y->core) - (x->core < y->core)
                                  : (x->cpu > y->cpu) - (x->cpu < y->cpu);
}

int tune_cpus_group(const char *root, int *cpus, int count, int *cores)
{
    struct location locations[CPU_SETSIZE];
    for (int i = 0; i < count; i++) /* the second name is for kernels before 5.3 */
        locations[i] = (struct location){
            .socket = topology(root, cpus[i], "physical_package_id", 0),
            .core = topology(root, cpus[i], "core_cpus_list", topology(root, cpus[i], "thread_siblings_list", cpus[i])),
            .cpu = cpus[i]};
    qsort(locations, (size_t)count, sizeof *locations, compare);
    for (int i = 0, core = -1; i < count; i++) {
        core += i == 0 || locations[i].socket != locations[i - 1].socket || locations[i].core != locations[i - 1].core;
        cpus[i] = locations[i].cpu;
        cores[i] = core;
    }
    return count > 0 ? cores[count - 1] + 1 : 0;
}

int tune_cpus_cores(const char *root)
{
    cpu_set_t set;
    int cpus[CPU_SETSIZE], cores[CPU_SETSIZE], count = 0, usable = tune_cpus_usable();
    if (sched_getaffinity(getpid(), sizeof set, &set) != 0) /* more processors than the set can hold */
        return usable;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            cpus[count++] = i;
    bool bound = omp_get_num_procs && omp_get_num_procs() != count;
    int all = tune_cpus_group(root, cpus, count, cores);
    return !bound && all < usable ? all : usable;
}

bool tune_cpus_allowed(struct tune_cpus_allowed *allowed)
{
    cpu_set_t set;
    _Static_assert(sizeof allowed->bits >= sizeof set, "a set of processors");
    memset(allowed, 0, sizeof *allowed);
    if (sched_getaffinity(getpid(), sizeof set, &set) != 0)
        return false;
    memcpy(allowed->bits, &set, sizeof set);
    return true;
}

/* The threads of this process; the first is the main one. */
static int bind_threads(const cpu_set_t *set)
{
    DIR *tasks = opendir("/proc/self/task");
    int status = tasks || sched_setaffinity(0, sizeof *set, set) == 0 ? 0 : errno;
    for (struct dirent *e; tasks && status == 0 && (e = readdir(tasks));)
        if (isdigit((unsigned char)*e->d_name) && sched_setaffinity(atoi(e->d_name), sizeof *set, set) < 0 && errno != ESRCH)
            status = errno;
    if (tasks)
        closedir(tasks);
    return status ? tune_error_cannot("cannot bind threads to cores: %s", strerror(status)) : 0;
}

int tune_cpus_bind(int place, int parts)
{
    static const char *const theirs[] = {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"};
    cpu_set_t set, own;
    int cpus[CPU_SETSIZE], cores[CPU_SETSIZE], count = 0;
    for (size_t i = 0; i < sizeof theirs / sizeof *theirs; i++)
        if (getenv(theirs[i]))
            return 0;
    if (sched_getaffinity(getpid(), sizeof set, &set) != 0)
        return 0;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            cpus[count++] = i;
    int all = tune_cpus_group("", cpus, count, cores), first = all / parts * place + all % parts * place / parts;
    int end = all / parts * (place + 1) + all % parts * (place + 1) / parts;
    if (all < parts)
        return 0;
    CPU_ZERO(&own);
    for (int i = 0; i < count; i++)
        if (cores[i] >= first && cores[i] < end)
            CPU_SET(cpus[i], &own);
    return bind_threads(&own) < 0 ? -1 : end - first;
}
