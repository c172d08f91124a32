/* cgroup.h - what the control groups this process is in grant it: processors and memory (Linux,
 * versions 1 and 2).
 *
 * Groups are nested and the tightest limit on the way up holds, so every group from the process's
 * own to the root of the mount is read: a container sees only its own part of the tree, a process
 * under systemd or a batch system is several groups deep. Where the groups lie is what
 * /proc/self/cgroup and /proc/self/mountinfo say. Source: the kernel's admin-guide/cgroup-v2 and
 * cgroup-v1/memory, scheduler/sched-bwc. */
#ifndef TUNE_CORE_CGROUP_H
#define TUNE_CORE_CGROUP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_cgroup {
    double cpus;          /* processors by quota: quota / period; 0: no quota */
    int64_t memory_limit; /* bytes; 0: no limit */
    /* bytes still to be had: limit - usage, where file pages the kernel can take back are no usage;
     * of the group that leaves least, which may be another than memory_limit's. Without limit 0 */
    int64_t memory_free;
    char memory_group[256]; /* that group's folder */
};

/* tune_cgroup_read - fill *group; what cannot be read is no limit. root: "" for this machine; a
 * folder with proc/self/cgroup, proc/self/mountinfo and what they name, for tests. */
void tune_cgroup_read(struct tune_cgroup *group, const char *root);

/* tune_cgroup_oom_kills - processes that the kernel has killed for want of memory: oom_kill of the
 * process's own group and of the machine (/proc/vmstat), added up. Of use is only whether it rose
 * between two looks. root as above. */
int64_t tune_cgroup_oom_kills(const char *root);

#ifdef __cplusplus
}
#endif
#endif
