/* child.h - run a program under guard: whatever it starts ends with it, and with us.
 *
 *     struct tune_child_options o = {.argv = argv, .environment = env, .log = "log.txt",
 *                                    .log_limit = 1 << 20, .limit_s = 600, .grace_s = 10};
 *     struct tune_child *c = tune_child_start(&o);
 *     poll(tune_child_descriptor(c)) ... tune_child_end(c, &end);
 *
 * A small process stands between us and the program: the guard. It is our executable, started
 * again, so main must call tune_child_guard first. The guard is a child subreaper, puts the program
 * into a process group of its own, and holds a pipe from us.
 *
 * The guard ends the program when the pipe closes (we died), when the time limit is over, or when
 * it is told to. It sends SIGTERM to the group. After the grace time it sends SIGKILL to the group
 * and to every descendant that left it. Then it waits until none is left. Descendants that outlive
 * the program end the same way. Output passes through the guard into the log, which keeps the first
 * and the last half of log_limit bytes. Stdout and stderr come through a pipe each. What the guard
 * finds in both at once goes to the log with stdout first.
 *
 * If the guard itself is killed, the kernel kills the program, and tune_child_end kills what is
 * left in their session. Processes in sessions of their own then survive. If we were killed too,
 * all descendants of the program survive.
 *
 * The program starts with default signals, none blocked, and without a controlling terminal. Its
 * only open files are 0 (/dev/null), 1 and 2 (the log). */
#ifndef TUNE_ACTUATORS_CHILD_H
#define TUNE_ACTUATORS_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_child_options {
    /* ends with NULL; argv[0] with a '/' is a path, else looked up in our PATH */
    const char *const *argv;
    const char *const *environment; /* all of "NAME=value"; ends with NULL */
    const char *folder;             /* working folder; NULL: ours */
    const char *log;                /* file for stdout and stderr; NULL: none */
    int64_t log_limit;              /* bytes of the log to keep */
    double limit_s, grace_s;        /* time limit, 0: none; time between SIGTERM and SIGKILL */
    const int *cpus;                /* [cpu_count] processors that it may use; NULL: ours */
    int cpu_count;
    /* Wait until nobody on this machine has reserved one of cpus with this function, then reserve
     * them until the end. The wait does not count for limit_s. */
    bool own_cpus;
    /* [lock_count] descriptors, at most TUNE_CHILD_LOCKS, of tune_child_lock. The guard keeps them
     * open until the end. The program does not get them. */
    const int *locks;
    int lock_count;
};
enum { TUNE_CHILD_LOCKS = 64 };

enum tune_child_how {
    TUNE_CHILD_EXITED, TUNE_CHILD_SIGNALLED, TUNE_CHILD_TIMED_OUT, TUNE_CHILD_STOPPED,
    TUNE_CHILD_NOT_STARTED
};

struct tune_child_end {
    enum tune_child_how how;    /* STOPPED: tune_child_stop ended it */
    /* exit code, or the signal; 128 + the signal if TIMED_OUT or STOPPED */
    int code;
    /* The kernel probably killed it for want of memory. It ended by SIGKILL (or exit code 137) that
     * the guard did not send. Meanwhile oom_kill rose in the cgroup's memory.events or in
     * /proc/vmstat. */
    bool oom_killed;
    /* from its start to its end; its descendants may have taken longer */
    double seconds;
    double waited_s;            /* before that: the wait for its processors */
    /* processor time that it and its children used, and that they lost to other processes and to
     * the hypervisor */
    double cpu_s, lost_s;
    /* NOT_STARTED: the reason; SIGNALLED: that the guard was killed; else "" */
    char reason[512];
    /* first line of its stderr that is not blank, perhaps cut; "": none */
    char complaint[256];
};

struct tune_child;

/* tune_child_guard - call it first in main. If this process was started as a guard, it serves and
 * returns the exit code for main to return. Else it returns -1 at once. */
int tune_child_guard(int argc, char **argv);

/* tune_child_find - find the file of argv[0], which has a '/'. 0, or an errno: absent, no file, or
 * not executable. */
int tune_child_find(const char *name, char path[TUNE_PATH_MAX]);

/* The process that reserved a processor. Any program of this machine can hold the sockets that
 * reserve processors. */
struct tune_child_holder {
    int cpu;
    long pid;      /* 0: a process that we may not look into, such as another user's */
    long uid;      /* its user; -1: unknown */
    char name[32]; /* its name; "" if pid is 0 */
    bool guard;    /* it is a guard of this library, so it will end */
    bool ours;     /* it is the guard of a child of this process, which has the processor */
};

/* tune_child_cpus_taken - whether one of cpus[count] is reserved now, so that a child with own_cpus
 * would wait. *holder, unless NULL: by whom. */
bool tune_child_cpus_taken(const int *cpus, int count, struct tune_child_holder *holder);

/* tune_child_lock - lock something of this machine by its name, such as "gpu/0", at most 90
 * characters. It is ours until the descriptor is closed here and in all guards that keep it open;
 * the kernel closes it when a process dies. -1, without an error text: somebody has it (errno is
 * EADDRINUSE), or there is no socket. */
int tune_child_lock(const char *name);

/* tune_child_start - start the program. NULL with an error: no such program, no permission, or no
 * process. What the kernel refuses later (a file that is no program) is NOT_STARTED.
 * tune_child_descriptor - a descriptor that is readable when it has ended.
 * tune_child_stop - end it as above; it does not wait. A second call skips the grace time.
 * tune_child_end - wait until it and its descendants have ended, fill *end and free c. Always 0. */
struct tune_child *tune_child_start(const struct tune_child_options *o);
int tune_child_descriptor(const struct tune_child *c);
void tune_child_stop(struct tune_child *c);
int tune_child_end(struct tune_child *c, struct tune_child_end *end);

#ifdef __cplusplus
}
#endif
#endif
