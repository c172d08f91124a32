/* cpus.c - affinity and the control groups' quota. */
#include "core/cpus.h"

#include <sched.h>
#include <unistd.h>

#include "core/cgroup.h"

/* Of OpenMP's run-time library, in programs that have it: the process's affinity as it was before OMP_PROC_BIND or
 * OMP_PLACES gave the first thread a single processor. */
extern int omp_get_num_procs(void) __attribute__((weak));

int tune_cpus_usable(void)
{
    cpu_set_t set;
    struct tune_cgroup group;
    /* more processors than the set holds: then all that are on line */
    int n = omp_get_num_procs ? omp_get_num_procs()
            : sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    tune_cgroup_read(&group, "");
    if (group.cpus > 0 && group.cpus < n)
        n = (int)(group.cpus + 0.5);
    return n < 1 ? 1 : n;
}
