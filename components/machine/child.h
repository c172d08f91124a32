/* child.h - a program run under guard: whatever it starts ends with it, and with us.
 *
 *     struct tune_child_options o = {.argv = argv, .environment = env, .log = "log.txt", .log_limit = 1 << 20,
 *                                    .limit_s = 600, .grace_s = 10};
 *     struct tune_child *c = tune_child_start(&o);
 *     poll(tune_child_descriptor(c)) ... tune_child_end(c, &end);
 *
 * Between us and the program stands a small process, the guard: the same executable started again (tune_child_guard must
 * be called first thing in main). It is a child subreaper, puts the program into a process group of its own, and holds a
 * pipe from us. When the pipe ends (we died, however), when the limit is over or when it is told to, it sends SIGTERM to
 * the whole group, after the grace SIGKILL, to the group and to every descendant that left it, and waits until none is
 * left. What the program leaves behind when it ends by itself is ended the same way. Output goes to the log through the
 * guard, which keeps the first and the last half of log_limit bytes.
 *
 * If the guard itself is killed (SIGKILL), the kernel kills the program with it, and tune_child_end what is left in their
 * session; what made a session of its own lives on then, and where we were killed too, all that the program had started.
 *
 * The program is started with all signals at their defaults, none blocked, without a controlling terminal, and with no
 * open files but 0 (/dev/null), 1 and 2 (the log). */
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
    /* start it when nobody on this machine, by this function, has one of cpus as his own, and have
     * them until all has ended; the time until then is not counted in limit_s */
    bool own_cpus;
};

enum tune_child_how { TUNE_CHILD_EXITED, TUNE_CHILD_SIGNALLED, TUNE_CHILD_TIMED_OUT, TUNE_CHILD_STOPPED, TUNE_CHILD_NOT_STARTED };

struct tune_child_end {
    enum tune_child_how how;    /* STOPPED: tune_child_stop ended it */
    int code;                   /* exit code, or the signal; of one that was ended (TIMED_OUT, STOPPED) 128 + the signal */
    /* SIGKILL (or exit code 137, as a shell says it) that did not come from the guard, and oom_kill
     * of the cgroup's memory.events or of /proc/vmstat rose meanwhile */
    bool oom_killed;
    double seconds;             /* from its start to its end; what it left behind may have taken longer */
    double waited_s;            /* before that, until its processors were its own */
    char reason[512];           /* NOT_STARTED: why; SIGNALLED: that it was the guard that was killed; else "" */
};

struct tune_child;

/* tune_child_guard - in main, before anything else: if this process was started as a guard, serves as one and returns
 * the exit code for main to return; else -1 at once. */
int tune_child_guard(int argc, char **argv);

/* tune_child_find - the file that argv[0] names, with a '/' in it: 0, or an errno: it is not there, no file, not executable. */
int tune_child_find(const char *name, char path[TUNE_PATH_MAX]);

/* Who has a processor as his own. Any program of this machine can have the sockets that stand for processors. */
struct tune_child_holder {
    int cpu;
    long pid;      /* 0: no process that we may look into (another user's, another container's) */
    long uid;      /* of its user; -1: unknown */
    char name[32]; /* of the process, "" where pid is 0 */
    bool guard;    /* it is a guard of this library, so it will let go */
};

/* tune_child_cpus_taken - whether somebody has one of cpus[count] as his own now: a child with own_cpus would wait. Then *holder
 * is who (NULL: not asked). */
bool tune_child_cpus_taken(const int *cpus, int count, struct tune_child_holder *holder);

/* tune_child_start - NULL with an error: no such program, no permission, no process. What the kernel refuses later (a file
 * that is no program) is NOT_STARTED. tune_child_descriptor - readable when it has ended. tune_child_stop - end it as above,
 * a second time without waiting for the grace to pass; does not wait. tune_child_end - wait for the end of it and its
 * descendants, then fill *end; frees c. Always 0. */
struct tune_child *tune_child_start(const struct tune_child_options *o);
int tune_child_descriptor(const struct tune_child *c);
void tune_child_stop(struct tune_child *c);
int tune_child_end(struct tune_child *c, struct tune_child_end *end);

#ifdef __cplusplus
}
#endif
#endif
