/* cpus.h - the processors that this process may use. */
#ifndef TUNE_CORE_CPUS_H
#define TUNE_CORE_CPUS_H

#include <stdbool.h>

/* tune_cpus_usable - number of processors this process may use: the smaller of its affinity and its
 * control groups' quota (rounded; machine/cgroup.h), at least 1. */
int tune_cpus_usable(void);

/* tune_cpus_cores - number of cores that these processors belong to, at most tune_cpus_usable. Two
 * hardware threads of a core share its arithmetic. If OMP_PROC_BIND or OMP_PLACES chose processors,
 * each counts. root: as for tune_cpus_group.
 * tune_cpus_threads - number of compute threads: request if above 0, else the first number of
 * OMP_NUM_THREADS, else tune_cpus_cores. Returns -1 with kind USAGE above TUNE_THREADS, because
 * OpenMP would end the process at its own limit. So it does if OMP_NUM_THREADS is no list of
 * integers. */
enum { TUNE_THREADS = 4096 };
int tune_cpus_cores(const char *root);
int tune_cpus_threads(int request);

/* tune_cpus_group - sort cpus[count] (at most CPU_SETSIZE) by socket and core, so that threads of
 * one core are adjacent. cores[count] gets their core numbers from 0. Returns the number of cores.
 * Source: <root>/sys/devices/system/cpu; root is "" except in tests. An unknown processor is a core
 * of its own. */
int tune_cpus_group(const char *root, int *cpus, int count, int *cores);

/* tune_cpus_bind - bind this process to part `place` of `parts` of the cores that it may use: all
 * its threads, and those that it will make. Parts share no core, and differ by one at most.
 * Returns the cores of this part. 0: there are fewer cores than parts, or OpenMP's variables bind
 * threads already; then nothing has changed. -1 with an error.
 * tune_cpus_allowed - the processors that this process may use, to compare. False: not known. */
struct tune_cpus_allowed {
    unsigned char bits[128];
};
int tune_cpus_bind(int place, int parts);
bool tune_cpus_allowed(struct tune_cpus_allowed *allowed);

#endif
