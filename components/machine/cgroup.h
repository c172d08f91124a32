/* cgroup.h - processors and memory that this process's control groups allow (Linux, versions 1 and
 * 2).
 *
 * Groups are nested, and the tightest limit on the way to the root applies. So every group from the
 * process's own to the root of the mount is read. A container sees only its part of the tree. Under
 * systemd or a batch system, a process is several groups deep. /proc/self/cgroup and
 * /proc/self/mountinfo name the groups. Source: the kernel's admin-guide/cgroup-v2,
 * cgroup-v1/memory and scheduler/sched-bwc. */
#ifndef TUNE_CORE_CGROUP_H
#define TUNE_CORE_CGROUP_H

#include <stdint.h>

struct tune_cgroup {
    double cpus;          /* processors: quota / period; 0: no quota */
    int64_t memory_limit; /* bytes; 0: no limit */
    /* bytes left in the group with least: limit - usage, without reclaimable file pages; 0: no
     * limit */
    int64_t memory_free;
    /* the folder of that group; it may be another than that of memory_limit */
    char memory_group[256];
};

/* tune_cgroup_read - fill *group. Unreadable files mean no limit. root: "" for this machine. Tests
 * give a folder with proc/self/cgroup, proc/self/mountinfo and the files they name. */
void tune_cgroup_read(struct tune_cgroup *group, const char *root);

/* tune_cgroup_oom_kills - processes killed for lack of memory: oom_kill of this process's group
 * plus oom_kill of the machine (/proc/vmstat). Only an increase between two calls has a meaning.
 * root: as above. */
int64_t tune_cgroup_oom_kills(const char *root);

#endif
