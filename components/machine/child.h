/* child.h - run a program under guard: all processes that it starts end with it, and with us.
 *
 *     struct tune_child_options o = {.argv = argv, .environment = env, .log = "log.txt",
 *                                    .log_limit = 1 << 20, .limit_s = 600, .grace_s = 10};
 *     struct tune_child *c = tune_child_start(&o);
 *     poll(tune_child_descriptor(c)) ... tune_child_end(c, &end);
 *
 * The guard is a small process between us and the program: our own executable, started again. So
 * main must first call tune_child_guard. The guard is a child subreaper. It puts the program into a
 * process group of its own and holds a pipe from us.
 *
 * The guard ends the program when the pipe closes (we died), at the time limit, or on request. It
 * sends SIGTERM to the group and to descendants that left the group. After the grace period it
 * sends SIGKILL, until none is left. Processes that remain after the program's own end are ended in
 * the same way. Output goes through the guard to the log, which keeps the first and last half of
 * log_limit bytes.
 *
 * If the guard is killed with SIGKILL, the kernel kills the program, and tune_child_end kills the
 * rest of their session. Processes in sessions of their own survive that. If we are killed as well,
 * all processes that the program started survive.
 *
 * The program starts with default signal handlers, no blocked signals and no controlling terminal.
 * Its only open files are 0 (/dev/null), 1 and 2 (the log). */
#ifndef TUNE_ACTUATORS_CHILD_H
#define TUNE_ACTUATORS_CHILD_H

#include <stdbool.h>
#include <stdint.h>

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_child_options {
    const char *const *argv;        /* NULL at its end; argv[0] with a '/' is a path from here, else looked up in our PATH */
    const char *const *environment; /* "NAME=value", NULL at its end: all there is */
    const char *folder;             /* to run in; NULL: ours */
    const char *log;                /* file for stdout and stderr; NULL: none */
    int64_t log_limit;              /* bytes of it that are kept */
    double limit_s, grace_s;        /* limit 0: none */
    const int *cpus;                /* [cpu_count] it may use; NULL: as we */
    int cpu_count;
    bool own_cpus;                  /* start it when nobody on this machine, by this function, has one of cpus as his own, and
                                       have them until all has ended; the time until then is not counted in limit_s */
};

enum tune_child_how { TUNE_CHILD_EXITED, TUNE_CHILD_SIGNALLED, TUNE_CHILD_TIMED_OUT,
    TUNE_CHILD_STOPPED, TUNE_CHILD_NOT_STARTED };

struct tune_child_end {
    enum tune_child_how how;    /* STOPPED: tune_child_stop ended it */
    int code;                   /* exit code or signal; 128 + signal after TIMED_OUT or STOPPED */
    /* a SIGKILL (or exit code 137) that the guard did not send, while oom_kill of the control group
     * or of /proc/vmstat rose */
    bool oom_killed;
    double seconds; /* from start to end of the program, without processes it left behind */
    double waited_s;            /* time before the start, waiting for its own processors */
    char reason[512]; /* NOT_STARTED: the reason; SIGNALLED: the guard was killed; else "" */
};

struct tune_child;

/* tune_child_guard - call it first in main. In a guard process, it does the guard's work and
 * returns the exit code for main. Otherwise it returns -1 at once. */
int tune_child_guard(int argc, char **argv);

/* tune_child_find - find the program file of argv[0], as a path that contains '/'. 0, or an errno:
 * missing, not a file, not executable. */
int tune_child_find(const char *name, char path[TUNE_PATH_MAX]);

/* The holder of a processor (see own_cpus). Any program on this machine could bind the sockets that
 * stand for processors. */
struct tune_child_holder {
    int cpu;
    long pid;      /* 0: a process we may not inspect (another user's or container's) */
    long uid;      /* user id of the process; -1: unknown */
    char name[32]; /* name of the process; "" if pid is 0 */
    bool guard;    /* a guard of this library, so it will release the processor */
};

/* tune_child_cpus_taken - true if someone holds one of cpus[count], so that a child with own_cpus
 * would wait. *holder (may be NULL): who. */
bool tune_child_cpus_taken(const int *cpus, int count, struct tune_child_holder *holder);

/* tune_child_start - start the program. NULL with an error: not found, no permission, no process. A
 * later refusal by the kernel, such as a file that is no program, gives NOT_STARTED.
 *
 * tune_child_descriptor - a descriptor that becomes readable at the end.
 *
 * tune_child_stop - end the program, without waiting. A second call skips the grace period.
 *
 * tune_child_end - wait until the program and its descendants have ended, fill *end and free c.
 * Always 0. */
struct tune_child *tune_child_start(const struct tune_child_options *o);
int tune_child_descriptor(const struct tune_child *c);
void tune_child_stop(struct tune_child *c);
int tune_child_end(struct tune_child *c, struct tune_child_end *end);

#ifdef __cplusplus
}
#endif
#endif
