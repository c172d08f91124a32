/* launch.h - shared by launch.c and the launchers, slurm.c and hosts.c. */
#ifndef TUNE_TOOLS_LAUNCH_H
#define TUNE_TOOLS_LAUNCH_H

#include "sweep.h"

/* A measurement that has no row yet. */
struct launch_point {
    struct tune_job job;
    char claim[48];                  /* name of its claim */
    struct tune_claim_holder holder; /* who has it, as it was last looked up */
    bool held, given_up;             /* given_up: no new job is started for it */
};

struct launch {
    struct launch_point *points; /* [count] */
    int count;
    int running, waiting; /* jobs or programs, as last known */
    int64_t rows;         /* rows seen so far */
    bool resumed;         /* others may be at work already */
    char store[TUNE_PATH_MAX], claims[TUNE_PATH_MAX], folder[TUNE_PATH_MAX], script[TUNE_PATH_MAX];
};
extern struct launch launch;

/* A way to start processes elsewhere.
 * check - whether it can be used here: 0 or -1.
 * header - the script's lines before the command; jobs: number of them.
 * step - start what is needed, and look after what runs. It is called often. 0; 1: all that can be
 * done is done; -1 with an error.
 * end - end what runs. Called after an error, the time limit, or the last point. */
struct launcher {
    int (*check)(void);
    void (*header)(FILE *f, int jobs);
    int (*step)(void);
    void (*end)(void);
};
extern const struct launcher sweep_slurm, sweep_hosts;

/* launch.c
 * launch_read_rows - look for new rows, print them, and take their points from the list.
 * launch_look - look up who has which point.
 * launch_write_script - write launch.script for so many jobs.
 * launch_lost - a job that had this point ended; why says how. again: let another one measure it.
 * Else it becomes a row that says why.
 * launch_run - run a command; its output, at most size bytes of it, into text. 0: it ended well. 1:
 * it did not. -1 with an error.
 * launch_never_runs - whether a process of ours that ended with this exit code would do so again.
 * Such codes are our 2 and 3, the script's 96, 97 and 98, and a shell's 126 and 127.
 * launch_last_line - the last line of a process's log; "": none.
 *
 * launch_values.c
 * launch_put_quoted - print a word for a POSIX shell, in quotes.
 * launch_put_names - print --env with names alone; nothing without --env.
 * launch_has_values - whether --env has a value. -1: a shell cannot set the name of one.
 * launch_write_values - write the values as a script, launch.folder/env, if there are any. */
void launch_put_quoted(FILE *f, const char *word);
void launch_put_names(FILE *f);
int launch_has_values(void);
int launch_write_values(void);
int launch_read_rows(void);
int launch_look(void);
int launch_write_script(int jobs);
int launch_lost(struct launch_point *point, bool again, const char *why);
int launch_run(const char *const *argv, char *text, size_t size);
bool launch_never_runs(int code);
void launch_last_line(const char *name, char *text, size_t size);

#endif
