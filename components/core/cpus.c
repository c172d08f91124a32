/* cpus.c - affinity and the cgroup's quota. */
#include "core/cpus.h"

#include <sched.h>
#include <stdio.h>
#include <unistd.h>

/* CPUs by the cgroup's quota (version 2, then 1), 0 where there is none. */
static int quota_cpus(void)
{
    double quota = 0, period = 0;
    FILE *f = fopen("/sys/fs/cgroup/cpu.max", "re");
    if (f) {
        if (fscanf(f, "%lf %lf", &quota, &period) != 2)
            quota = 0; /* "max" */
        fclose(f);
    } else {
        FILE *q = fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "re"), *p = fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "re");
        if (!q || !p || fscanf(q, "%lf", &quota) != 1 || fscanf(p, "%lf", &period) != 1)
            quota = 0;
        if (q)
            fclose(q);
        if (p)
            fclose(p);
    }
    if (quota <= 0 || period <= 0)
        return 0;
    int n = (int)(quota / period + 0.5);
    return n < 1 ? 1 : n;
}

int tune_cpus_usable(void)
{
    cpu_set_t set;
    /* more processors than the set holds: then all that are on line */
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    int quota = quota_cpus();
    if (quota > 0 && quota < n)
        n = quota;
    return n < 1 ? 1 : n;
}
