/* run.h - read a run folder (run_folder.h), also while the run goes on: what ran, its progress, its
 * curves. It serves programs that show or compare runs.
 *
 * Nothing is written, and no process of the run has to be alive. A folder that cannot be read
 * becomes a run in the state BROKEN, with a reason. So a list can show it beside the others.
 * Example:
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
struct tune_metrics_position;

enum tune_run_state {
    TUNE_RUN_RUNNING,    /* a process works on it */
    TUNE_RUN_FINISHED,   /* reached its planned end, or stopped early by its own rule */
    TUNE_RUN_STOPPED,    /* ended before that because somebody asked for it; it can be resumed */
    TUNE_RUN_FAILED,     /* ended by an error; see reason */
    TUNE_RUN_UNFINISHED, /* its program ended without saying how */
    TUNE_RUN_DIVERGED,   /* its loss rose, to the end or where that ended it; or was not finite */
    TUNE_RUN_STALLED,    /* a process holds it, but has not written for long (see tune_run_open) */
    TUNE_RUN_DEAD,       /* it says that it runs, but no process does: it was killed, or the machine
                          * went down */
    TUNE_RUN_ABSENT,     /* no such folder yet; only tune_run_follow gives this */
    TUNE_RUN_BROKEN,     /* its files are damaged; reason says which and where */
    TUNE_RUN_STATES,
};

/* The values of one name in the run's metrics. */
struct tune_run_series {
    char name[48];
    int64_t count, capacity;
    bool last_only;       /* only the last value is kept */
    double *step, *value; /* [count], steps ascending */
};

/* Private: sums over all rows. longest_s: the longest time between two rows. */
struct tune_run_sums {
    double tokens, longest_s;
};

struct tune_run {
    char folder[TUNE_PATH_MAX];
    char name[256];              /* last part of the folder's path */
    enum tune_run_state state;
    char reason[1024];           /* why it is in this state; "": nothing to say */
    /* run.json, report.json; NULL: missing or unreadable. They belong to the run */
    struct cJSON *run, *report;
    double started_s, ended_s;   /* start of the first session and end of the last, seconds since
                                  * 1970; 0: unknown */
    int64_t step, planned_steps; /* last finished step; planned steps, 0: unknown */
    /* seconds from the start of the first step to the end of the last, summed over sessions; 0: no
     * step */
    double seconds;
    double tokens_per_s;         /* mean over that time; NAN: no step */
    double loss, eval_loss, best_eval_loss; /* last loss, last evaluation, lowest evaluation; NAN:
                                             * none */
    int64_t best_eval_step;      /* -1: none */
    int series_count;
    struct tune_run_series *series;
    struct tune_metrics_position *position; /* position in its metrics */
    char *only;                  /* names, with commas, of the series that are kept whole; of the
                                  * others only the last value is kept. NULL: all are whole */
    const char *root;            /* its files must lie there; NULL: anywhere */
    bool leads_out;              /* one of them does not, and was not read */
    struct tune_run_sums sums;
};

/* tune_run_is - whether the folder holds a run.json or a metrics.jsonl.
 * tune_run_held - whether a process has the folder's metrics.jsonl open for writing. */
bool tune_run_is(const char *folder);
bool tune_run_held(const char *folder);

/* tune_run_open - read a run. NULL with an error: no such folder, no run in it, no memory. Any
 * other problem makes the state BROKEN; what was read before stays.
 *
 * A run that says it runs may have been killed. On the run's own machine the lock on its metrics
 * decides, or its process id if there are no locks. On another machine its age decides; reason then
 * says so. STALLED: no write for ten times its longest interval so far, and at least 60 s. Before
 * the first step: for 600 s.
 * tune_run_open_within - the same for the run of a stranger, or for some of its metrics.
 * root: an absolute path without links, which outlives the run. A file that is a link to something
 * outside root is not read: the run is BROKEN, and leads_out is set. NULL: any file is read.
 * names: metrics with commas. Each series of others has only its last value; figures such as
 * tokens_per_s are those of the whole run. NULL: all metrics are kept.
 * tune_run_free - free it; NULL is fine. */
struct tune_run *tune_run_open(const char *folder);
struct tune_run *tune_run_open_within(const char *folder, const char *root, const char *names);
void tune_run_free(struct tune_run *r);

/* tune_run_follow - the same, but a folder without a run gives a run in the state ABSENT.
 * tune_run_follow_last - the same with root as above, and no metric is kept whole: for long lists.
 * tune_run_update - read the changes since the last call; only whole lines of metrics count. If the
 * run went back to an earlier step, all lines are read again. Pointers into r become invalid. 1:
 * state or metrics changed; 0: neither.
 * tune_run_ended - whether no process works on it: it is not RUNNING, STALLED or ABSENT. */
struct tune_run *tune_run_follow(const char *folder);
struct tune_run *tune_run_follow_last(const char *folder, const char *root);
int tune_run_update(struct tune_run *r);
bool tune_run_ended(const struct tune_run *r);

/* tune_run_time - the time under this key of run.json or of a session in it, such as "started", in
 * seconds since 1970; 0: none. */
double tune_run_time(const struct cJSON *object, const char *key);

/* tune_run_series - the values of that name, or NULL.
 * tune_run_keeps - whether the series of that name is kept whole. */
const struct tune_run_series *tune_run_series(const struct tune_run *r, const char *name);
bool tune_run_keeps(const struct tune_run *r, const char *name);

/* tune_run_axis - the x values of a series: "time" (seconds elapsed), "tokens" or "epoch" up to
 * each point, or "step". Returns [count] doubles; the caller frees them. NULL with an error: the
 * run has no such numbers. */
double *tune_run_axis(const struct tune_run *r, const struct tune_run_series *series,
                      const char *what);

/* tune_run_is_axis - whether that is one of the four above; another name is a metric.
 * tune_run_over - a series over another metric: its points at the steps that have both, sorted by
 * that metric. *over becomes a series of its own with x[count], empty where there is no such
 * metric. -1 with an error: no memory.
 * tune_run_over_free - free what it made. */
bool tune_run_is_axis(const char *what);
int tune_run_over(const struct tune_run *r, const struct tune_run_series *series,
                  const char *metric, struct tune_run_series *over, double **x);
void tune_run_over_free(struct tune_run_series *over, double *x);

/* A checkpoint in the folder. */
struct tune_run_checkpoint {
    int64_t step, bytes;
    bool best, final;  /* the links of these names point to it */
};

/* tune_run_checkpoints - the run's checkpoints by ascending step; the caller frees them. Returns
 * their number, or -1 with an error. */
int tune_run_checkpoints(const struct tune_run *r, struct tune_run_checkpoint **checkpoints);

/* tune_run_state_name - "running", "finished", ...
 * tune_run_state_from - the state of that name, or -1. */
const char *tune_run_state_name(enum tune_run_state state);
int tune_run_state_from(const char *name, size_t size);

/* tune_runs_open - open the runs at the given paths, in order. A path is a run folder, or a folder
 * of run folders, which are taken in order of name. Any other name is looked up in runs/. count 0:
 * the folder runs. The caller frees *runs with tune_runs_free. Returns the number of runs; 0 for a
 * folder without any. -1 with an error: a path is none of these, or no memory. */
int tune_runs_open(struct tune_run ***runs, const char *const *paths, int count);

/* tune_runs_follow - the same, but a path that does not exist yet gives a run in the state ABSENT.
 * A name without '/' means one in runs/.
 * tune_runs_more - add the runs of folder that are not yet in the list of count runs. Returns the
 * new number. A run that could not be added is tried again by the next call.
 * tune_runs_free - free the runs and the array. */
int tune_runs_follow(struct tune_run ***runs, const char *const *paths, int count);
int tune_runs_more(struct tune_run ***runs, int count, const char *folder);
void tune_runs_free(struct tune_run **runs, int count);

/* tune_run_option - write the run's option of that name as text, cut to size. Returns text; NULL:
 * it has no such option. */
const char *tune_run_option(const struct tune_run *r, const char *name, char *text, size_t size);

/* tune_runs_differing - the names of the options that differ between these runs. Options about
 * where a run writes and when it logs are left out. The caller frees *names, but not the texts,
 * which belong to the runs. Returns their number, or -1. */
int tune_runs_differing(struct tune_run *const *runs, int count, const char ***names);

#ifdef __cplusplus
}
#endif
#endif
