/* cpus.h - how many processors this process may use. */
#ifndef TUNE_CORE_CPUS_H
#define TUNE_CORE_CPUS_H

#ifdef __cplusplus
extern "C" {
#endif

/* tune_cpus_usable - the lesser of the process's affinity and its control groups' quota (core/cgroup.h; rounded), at least 1. */
int tune_cpus_usable(void);

#ifdef __cplusplus
}
#endif
#endif
