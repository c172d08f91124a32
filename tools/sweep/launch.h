/* launch.h - types and functions shared by launch.c, launch_script.c, launchers.c and the
 * launchers. */
#ifndef TUNE_TOOLS_LAUNCH_H
#define TUNE_TOOLS_LAUNCH_H

#include "sweep.h"

/* A measurement that has no row yet. */
struct launch_point {
    struct tune_job job;
    char lease[48];                  /* name of its lease */
    struct tune_lease_holder holder; /* the holder of the lease, at the last check */
    bool leased, given_up;           /* given_up: no new job is started for it */
};

struct launch {
    struct plan *plan;
    struct queue *queue;
    struct progress *progress;
    const struct launcher *launcher; /* NULL: this process measures */
    void *own;                       /* the launcher's own state */
    struct launch_point *points; /* [count] */
    int count;
    int batch;            /* measurements that --order model chooses at a time */
    int running, waiting; /* numbers of jobs or programs, at the last check */
    int64_t rows;         /* number of rows seen so far */
    struct tune_map noted; /* hashes of entities in the record */
    struct tune_lease follower;
    char store[TUNE_PATH_MAX], leases[TUNE_PATH_MAX], folder[TUNE_PATH_MAX], script[TUNE_PATH_MAX];
};

/* A way to start processes elsewhere. Each process runs the script, and its output goes to
 * <folder>/<name>.log.
 * accepts - true if this text of --launcher means this launcher.
 * open - check that it can be used here, and set `own` and `batch`. 0 or -1.
 * header - print the lines before the script's command; they set $job. jobs: number of jobs.
 * arguments - print extra arguments of sweep for its processes. NULL: none.
 * look - check started processes, and count running and waiting ones. 1: their state is known; 0:
 * not now; -1 with an error.
 * start - start processes if needed, after a look that returned 1. 0; 1: nothing more can be done;
 * -1 with an error.
 * close - end waiting processes and, if points are left, running ones. Free `own`. */
struct launcher {
    bool (*accepts)(const char *text);
    int (*open)(struct launch *l);
    void (*header)(const struct launch *l, FILE *f, int jobs);
    void (*arguments)(const struct launch *l, FILE *f);
    int (*look)(struct launch *l);
    int (*start)(struct launch *l);
    void (*close)(struct launch *l);
};

/* launchers.c
 * launch_choose - check that the flags fit together, choose the launcher, and write the flags to
 * the record. */
int launch_choose(struct launch *l, struct plan *plan);

/* launch.c
 * launch_follow - let the launcher's processes measure, and follow them. 0: all points are done; 1:
 * stopped by a signal, the time limit or --max-failures; -1.
 * launch_tidy - remove the launcher's files from the store.
 * launch_read_rows - look for new rows, print them, and take their points from the list.
 * launch_look - read the leases of the points.
 * launch_lost - handle a point whose process ended. again: release the point for another process.
 * Else record a failure with the reason why.
 * launch_run - run a command, and read up to size bytes of its output into text. 0: it succeeded;
 * 1: it failed; -1 with an error.
 * launch_never_runs - true if a process with this exit code would fail again. Such codes are our 2
 * and 3, the script's, and a shell's 126 and 127.
 * launch_cause - explain an exit code of the script, as a sentence about the host. false: it is
 * another code.
 * launch_last_line - read the last line of a process's log; "": none.
 *
 * launch_script.c
 * launch_write_script - write the script for a number of jobs, and the file with the values of
 * --env.
 * launch_print_script - print the script, for a dry run. */
enum { LAUNCH_NO_VALUES = 96, LAUNCH_NO_STORE, LAUNCH_NO_PROGRAM }; /* exit codes of the script */
int launch_follow(struct launch *l);
int launch_tidy(const struct plan *plan);
int launch_read_rows(struct launch *l);
int launch_look(struct launch *l);
int launch_lost(struct launch *l, struct launch_point *point, bool again, const char *why);
int launch_run(const struct launch *l, const char *const *argv, char *text, size_t size);
bool launch_never_runs(int code);
bool launch_cause(const struct launch *l, const char *host, int code, char *text, size_t size);
void launch_last_line(const struct launch *l, const char *name, char *text, size_t size);
int launch_write_script(const struct launch *l, int jobs);
int launch_print_script(const struct launch *l);

#endif
