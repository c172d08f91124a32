/* guard.h - what the two sides of a guard share: descriptors, the plan that goes to it, the
 * processes that /proc lists. For the files of this folder only.
 *
 *     we --------- socket pair --------- guard --------- pipe --------- program and what it starts
 *        the plan, then a byte for each         its stdout and stderr
 *        tune_child_stop; its end: ours
 *        back: struct tune_child_end */
#ifndef TUNE_ACTUATORS_GUARD_H
#define TUNE_ACTUATORS_GUARD_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* The first argument of a guard; the program's name follows, for those who list processes. */
#define TUNE_GUARD_WORD "--tune-child-guard"

/* What a guard inherits besides 0, 1 and 2, which are /dev/null. */
enum { TUNE_GUARD_SOCKET = 3, TUNE_GUARD_LOG, TUNE_GUARD_FOLDER, TUNE_GUARD_DESCRIPTORS };

/* Followed by int cpus[cpu_count] and then, each with a NUL, the program's path, argc arguments,
 * and variable_count variables: `size` bytes. Both sides are one executable, so it goes as it lies
 * in memory. */
struct tune_guard_plan {
    int64_t size, log_limit;
    double limit_s, grace_s;
    int argc, variable_count, cpu_count, own_cpus;
};

#define TUNE_GUARD_NAME "tune-guard" /* of the process, for those who list them */

/* A process as /proc/<pid>/stat has it. */
struct tune_process {
    pid_t pid, parent, group, session;
    bool dead; /* and waits to be reaped */
};

/* tune_process_next - the next one that the folder /proc, opened, lists; false after the last. */
bool tune_process_next(DIR *proc, struct tune_process *p);

/* tune_guard_claim - claims[count]: a descriptor for each of the processors, which holds it until
 * it is closed, by whatever end of the process; true: all of them. false: none, for errno:
 * EADDRINUSE (somebody has one of them), or what the kernel says. next: not the processors, but the
 * place of who has them next, so that whoever had them comes behind those who wait. Source: names
 * of sockets that are no files, which the kernel gives to one process of the machine (of its
 * network namespace).
 * tune_guard_release - close claims[count]. */
bool tune_guard_claim(const int *cpus, int count, bool next, int *claims);
void tune_guard_release(const int *claims, int count);

#endif
