/* guard.h - declarations shared by the parent and the guard. Private to this folder.
 *
 *     parent ------ socket pair --------- guard -------- 2 pipes ------- program and its children
 *        sends: the plan, a byte for             their stdout and stderr
 *               each tune_child_stop
 *        receives: struct tune_child_end
 *
 * The parent's death closes its end of the socket pair. */
#ifndef TUNE_ACTUATORS_GUARD_H
#define TUNE_ACTUATORS_GUARD_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* First argument of a guard. The program's name follows, for process lists, then how many
 * locks it keeps open (tune_child_options.locks): they come after its own. */
#define TUNE_GUARD_WORD "--tune-child-guard"

/* Descriptors of a guard, besides 0, 1 and 2, which are /dev/null. */
enum { TUNE_GUARD_SOCKET = 3, TUNE_GUARD_LOG, TUNE_GUARD_FOLDER, TUNE_GUARD_DESCRIPTORS };

/* `size` bytes follow: int cpus[cpu_count], then strings with a NUL each. These are the program's
 * path, argc arguments and variable_count variables. Both sides are the same executable, so the
 * struct is sent as it is in memory. */
struct tune_guard_plan {
    int64_t size, log_limit;
    double limit_s, grace_s;
    int argc, variable_count, cpu_count, own_cpus;
};

#define TUNE_GUARD_NAME "tune-guard" /* name of the guard process in process lists */

/* A process, from /proc/<pid>/stat. */
struct tune_process {
    pid_t pid, parent, group, session;
    char name[16]; /* of its program, cut to 15 bytes */
    bool dead;     /* a zombie */
    bool stopped;  /* by a signal, such as SIGSTOP */
    bool busy;     /* it runs, waits for a processor, or for a disk */
};

/* tune_process_next - read the next process in proc, the open folder /proc, or the next thread in
 * /proc/<pid>/task. false after the last.
 * tune_process_read - read the process `pid`. false: there is none, or the system hides it. */
bool tune_process_next(DIR *proc, struct tune_process *p);
bool tune_process_read(pid_t pid, struct tune_process *p);

/* tune_guard_lock - lock one name on this machine: a descriptor, or -1 with errno, as below.
 *
 * tune_guard_lock_cpus - lock cpus[count] with a descriptor each, in locks[count]. A lock ends when
 * its descriptor is closed or the process dies. true: all are locked. false: none is; errno is
 * EADDRINUSE if another process holds one, or another error. next: lock the name of the next
 * holder instead, so that waiting processes come before earlier holders.
 *
 * A lock is an abstract socket name, which the kernel gives to one process of the machine (of its
 * network namespace).
 *
 * tune_guard_unlock_cpus - close locks[count]. */
int tune_guard_lock(const char *name);
bool tune_guard_lock_cpus(const int *cpus, int count, bool next, int *locks);
void tune_guard_unlock_cpus(const int *locks, int count);

#endif
