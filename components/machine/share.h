/* share.h - how much of its processors a program really had. Private to this folder.
 *
 * A program loses processor time in two ways. Its threads wait while other processes run on their
 * processors. And a hypervisor may take processors away (steal). Both are measured here:
 *
 *     wait   the time that its threads were ready and did not run, from /proc/<pid>/task/schedstat,
 *            looked at every TUNE_SHARE_S. At most the time that others ran on these processors:
 *            more threads than processors wait for each other, which is no loss.
 *     steal  of these processors, from /proc/stat
 *
 * The share is own / (own + wait + steal). What a short-lived child waits between two looks is not
 * seen. */
#ifndef TUNE_MACHINE_SHARE_H
#define TUNE_MACHINE_SHARE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define TUNE_SHARE_S .25

/* A thread that was seen, and its times so far. */
struct tune_share_task {
    pid_t tid;
    uint64_t waited_ns;
};

struct tune_share {
    const int *cpus; /* [cpu_count]; 0: all */
    int cpu_count;
    double busy_s, steal_s; /* of the processors when it began */
    struct tune_share_task *tasks;
    size_t count;
};

/* tune_share_begin - note the processors' times. cpus are borrowed.
 * tune_share_look - note what each thread of the session has waited so far.
 * tune_share_lost - the seconds lost until now, to a program that used own_s.
 * tune_share_free - free its memory. */
void tune_share_begin(struct tune_share *s, const int *cpus, int cpu_count);
void tune_share_look(struct tune_share *s, pid_t session);
double tune_share_lost(const struct tune_share *s, double own_s);
void tune_share_free(struct tune_share *s);

#endif
