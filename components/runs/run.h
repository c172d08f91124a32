/* run.h - read a run folder (run_folder.h): what ran, how far it came, its curves; also while it
 * runs. For whoever shows or compares runs.
 *
 * Nothing is written, and no process of the run has to be alive. A folder that cannot be read is a
 * run in the state BROKEN, with what is wrong: a list shows it beside the others. Example:
 *
 *     struct tune_run *r = tune_run_open("runs/first");
 *     const struct tune_run_series *loss = tune_run_series(r, "loss");
 *     printf("%s %s %g\n", r->name, tune_run_state_name(r->state), loss->value[loss->count - 1]);
 *     tune_run_free(r);
 *
 * Follow a run until it ends:
 *
 *     struct tune_run *r = tune_run_follow("runs/first");     it need not be there yet
 *     while (!tune_run_ended(r)) {
 *         ... show r->step, r->loss ...
 *         sleep(1);
 *         tune_run_update(r);
 *     } */
#ifndef TUNE_RUN_H
#define TUNE_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "files/file.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;
struct tune_metrics_place;

enum tune_run_state {
    TUNE_RUN_RUNNING,    /* a process works on it */
    TUNE_RUN_FINISHED,   /* came to its planned end, or to an early stop */
    TUNE_RUN_STOPPED,    /* ended before that because somebody asked for it; can go on */
    TUNE_RUN_FAILED,     /* ended by an error, which reason tells */
    TUNE_RUN_UNFINISHED, /* its program ended without saying how */
    TUNE_RUN_DIVERGED,   /* came to its end with a loss far above that of its begin */
    TUNE_RUN_STALLED,    /* a process holds it, but has been silent for long (see tune_run_open) */
    TUNE_RUN_DEAD,       /* says it runs, but no process does: killed, or the machine went down */
    TUNE_RUN_ABSENT,     /* nothing there yet; only of tune_run_follow */
    TUNE_RUN_BROKEN,     /* its files do not make sense; reason says which and where */
    TUNE_RUN_STATES,
};

/* The values of one name in the run's metrics. */
struct tune_run_series {
    char name[48];
    int64_t count, room;
    double *step, *value; /* [count], steps ascending */
};

struct tune_run {
    char folder[TUNE_PATH_MAX];
    char name[256];              /* the folder's last name */
    enum tune_run_state state;
    char reason[1024];           /* why it ended so, what is broken; "": nothing to say */
    /* run.json, report.json; NULL: not there or unreadable. The run's */
    struct cJSON *run, *report;
    double started_s, ended_s;   /* first begin, last end, seconds since 1970; 0: unknown */
    int64_t step, planned_steps; /* last finished one; planned 0: unknown */
    /* from the first step's begin to the last one's end, sessions added up; 0: no step */
    double seconds;
    double tokens_per_s;         /* over all of that; NAN: no step */
    double loss, eval_loss, best_eval_loss; /* last, last, lowest; NAN: none */
    int64_t best_eval_step;      /* -1: none */
    int series_count;
    struct tune_run_series *series;
    struct tune_metrics_place *place; /* how far its metrics are read */
};

/* tune_run_is - the folder holds a run.json or a metrics.jsonl.
 * tune_run_held - a process has the folder's metrics.jsonl open for writing. */
bool tune_run_is(const char *folder);
bool tune_run_held(const char *folder);

/* tune_run_open - read it. NULL with an error: no such folder, no run in it, no memory. Anything
 * else that is wrong makes it BROKEN; what could be read before that is there.
 *
 * A run that says it runs may have been killed. The lock on its metrics decides where the run's
 * machine is this one. Without locks its process id decides. On another machine its age decides.
 * reason then says so. STALLED: it is silent for ten times the longest time between two writes so
 * far, and at least 60 s. Before its first step: for 600 s.
 * tune_run_free - free it; NULL is fine. */
struct tune_run *tune_run_open(const char *folder);
void tune_run_free(struct tune_run *r);

/* tune_run_follow - the same, but a folder without a run is a run in the state ABSENT.
 * tune_run_update - read again what can have changed, and the metrics appended since; only whole
 * lines count. All of them are read again where the run went on from an earlier step. Pointers
 * into r end. 1: its state or its metrics changed; 0: neither.
 * tune_run_ended - no process works on it: neither RUNNING, STALLED nor ABSENT. */
struct tune_run *tune_run_follow(const char *folder);
int tune_run_update(struct tune_run *r);
bool tune_run_ended(const struct tune_run *r);

/* tune_run_series - the values of that name, or NULL. */
const struct tune_run_series *tune_run_series(const struct tune_run *r, const char *name);

/* tune_run_axis - the x values of a series: "time" (seconds elapsed), "tokens" or "epoch" up to
 * each point, or "step". [count] doubles, the caller's to free. NULL with an error: the run has no
 * such numbers. */
double *tune_run_axis(const struct tune_run *r, const struct tune_run_series *series,
                      const char *what);

/* A checkpoint that lies in the folder. */
struct tune_run_checkpoint {
    int64_t step, bytes;
    bool best, final;  /* what the links of these names point at */
};

/* tune_run_checkpoints - those of the run, steps ascending, the caller's to free. How many, or -1
 * with an error. */
int tune_run_checkpoints(const struct tune_run *r, struct tune_run_checkpoint **checkpoints);

/* tune_run_state_name - "running", "finished", ...
 * tune_run_state_from - the state of that name, or -1. */
const char *tune_run_state_name(enum tune_run_state state);
int tune_run_state_from(const char *name, size_t size);

/* tune_runs_open - open the runs that the given paths mean, in order. A path is a run folder, or a
 * folder of run folders, which are taken by name. Any other name is looked for in runs/. count 0:
 * the folder runs. *runs and its runs become the caller's (tune_runs_free). Returns how many, 0 for
 * a folder without any. -1 with an error: a path that is none of these, or no memory. */
int tune_runs_open(struct tune_run ***runs, const char *const *paths, int count);

/* tune_runs_follow - the same, but a path that is nothing yet is a run in the state ABSENT: a name
 * without '/' is meant in runs/.
 * tune_runs_more - add the runs of folder that are not among the count ones. Returns how many there
 * are then. The next call tries again what could not be added.
 * tune_runs_free - free the runs and the array. */
int tune_runs_follow(struct tune_run ***runs, const char *const *paths, int count);
int tune_runs_more(struct tune_run ***runs, int count, const char *folder);
void tune_runs_free(struct tune_run **runs, int count);

/* tune_run_option - the option of that name in run.json as text, into text, which is returned (cut
 * to size); NULL: it has none. */
const char *tune_run_option(const struct tune_run *r, const char *name, char *text, size_t size);

/* tune_runs_differing - the names of the options that are not the same in all of these runs.
 * Options that say where a run writes and when it logs are left out. names become the caller's
 * (free; the texts are the runs'). Returns how many, or -1. */
int tune_runs_differing(struct tune_run *const *runs, int count, const char ***names);

#ifdef __cplusplus
}
#endif
#endif
