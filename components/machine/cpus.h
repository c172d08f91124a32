/* cpus.h - how many processors this process may use. */
#ifndef TUNE_CORE_CPUS_H
#define TUNE_CORE_CPUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* tune_cpus_usable - the lesser of the process's affinity and its control groups' quota
 * (machine/cgroup.h; rounded), at least 1. */
int tune_cpus_usable(void);

/* tune_cpus_threads - how many threads compute: wish where that is above 0, else the first number
 * of OMP_NUM_THREADS, else tune_cpus_usable. -1, kind USAGE, where that is above TUNE_THREADS
 * (OpenMP's library ends the process at its own limit), or where OMP_NUM_THREADS is no list of
 * whole numbers. */
enum { TUNE_THREADS = 4096 };
int tune_cpus_threads(int wish);

/* tune_cpus_group - put the processors cpus[count] (at most CPU_SETSIZE) in order of socket and
 * core, so that the threads of one core stand together, and number their cores from 0 in
 * cores[count]; how many cores these are. Source: <root>/sys/devices/system/cpu ("" for root but in
 * tests); a processor that it says nothing of is a core by itself. */
int tune_cpus_group(const char *root, int *cpus, int count, int *cores);

#ifdef __cplusplus
}
#endif
#endif
