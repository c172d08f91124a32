/* jobs.h - programs that the studio started, and their states. There is no database: each job has a
 * folder below the root, .studio/jobs/<number>/ with
 *
 *     job.json   command line, states with time and reason, exit code. Replaced whole
 *     log.txt    what the program printed: the first and the last half of JOB_LOG_MOST bytes
 *     lock       held while the supervisor or its guard lives. So a job that says "running" and
 *                whose lock is free is lost: killed, or the machine went down. Numbers of
 *                processes, which come again, decide nothing
 *     place      held while the job is in the queue, so that the next ones wait behind it
 *     control    a pipe with orders: 's' stop, 'n' stop now
 *
 * A job belongs to its supervisor (supervisor.c), a process of its own that needs no server. */
#ifndef TUNE_STUDIO_JOBS_H
#define TUNE_STUDIO_JOBS_H

#include "routes.h"

struct cJSON;
struct tune_child_holder;

#define JOBS_FOLDER ".studio/jobs"
#define JOB_JSON "job.json"
#define JOB_LOG "log.txt"
#define JOB_WORD "--studio-supervisor"
enum { JOB_LOG_MOST = 64 << 20, JOB_JSON_MOST = 4 << 20 };

/* The place where a job may run. 0 in each: as its options say. */
struct studio_job_want {
    int cores, gpus;
    bool no_slot;      /* it starts at once; a sweep reserves cores for itself */
};

/* studio_job_start - start a job with this command line, an array of texts, in the root: it waits
 * for its slot by itself. The array and values become the job's own. program: its name. values: for
 * "clone with changes"; NULL: none. name: of the job; NULL: that of the program. folder: its run
 * folder relative to the root; NULL: unknown yet. key: a second start with the same key gives the
 * first one's job; NULL: none. The job as jobs.json shows it; the caller deletes it. NULL with an
 * error.
 *
 * studio_job_of - the newest job whose run folder this is, into id; false: none.
 *
 * studio_job_log - the path of that job's log, relative to the root; -1 with an error.
 *
 * studio_job_read - the job of that number with its state now; NULL with an error. */
struct cJSON *studio_job_start(struct studio *s, const char *program, struct cJSON *argv,
                               struct cJSON *values,
                               const char *name, const char *folder, const char *key,
                               const struct studio_job_want *want);
bool studio_job_of(struct studio *s, const char *folder, char id[32]);
int studio_job_log(const char *id, char path[TUNE_PATH_MAX]);
struct cJSON *studio_job_read(const char *id);

/* The newest job of each run folder, in the order of the folders. */
struct studio_job_runs {
    struct studio_job_run {
        char *folder, id[32], state[16];
        char *reason; /* while it waits or runs; "": none, or it has ended */
    } *at;
    int count;
};

/* studio_job_runs - find them; the caller frees with studio_job_runs_free, which takes an empty
 * one, too. -1 with an error.
 * studio_job_of_run - the one of that folder; NULL: no job wrote it.
 * studio_job_runs_version - a number that changes when any of them does. */
int studio_job_runs(struct studio_job_runs *runs);
void studio_job_runs_free(struct studio_job_runs *runs);
const struct studio_job_run *studio_job_of_run(const struct studio_job_runs *runs,
                                               const char *folder);
uint32_t studio_job_runs_version(const struct studio_job_runs *runs);

/* studio_supervise - call it early in main. If this process was started as a supervisor, it serves
 * and returns the exit code for main to return. Else it returns -1 at once. */
int studio_supervise(int argc, char **argv);

/* For the files of jobs.
 * job_number - the number of that text; -1: it is none.
 * job_path - the path of a job's file, relative to the root; name "": its folder.
 * job_state - the state that its job.json says; "": none.
 * job_is_over - whether a job in that state has ended.
 * job_add_state - append a state with the time and a reason.
 * job_write - replace its job.json, counting its version. -1 with an error.
 * job_ids - all numbers in order, in an array that the caller frees. Returns how many, or -1.
 * job_text - a text of the job; "": none.
 * job_count_cores - how many cores jobs and sweeps use now; *total: those that we may use. each is
 * called with the holder of each; NULL: nobody.
 * job_count_gpus - the same for GPUs.
 * job_explain_cores - why a job that needs so many cores waits, into text: how many are used, and
 * by whom. need above those that there are: all. It leaves text where none is used any more.
 * job_explain_gpus - the same for GPUs; whose they are is not known. */
int64_t job_number(const char *id);
int job_path(char path[TUNE_PATH_MAX], const char *id, const char *name);
const char *job_state(const struct cJSON *job);
bool job_is_over(const char *state);
bool job_add_state(struct cJSON *job, const char *state, const char *reason);
int job_write(const char *id, struct cJSON *job);
int job_ids(int64_t **ids);
const char *job_text(const struct cJSON *job, const char *key);
int job_count_cores(int *total, void (*each)(void *context, const struct tune_child_holder *holder),
                    void *context);
int job_count_gpus(int *total);
void job_explain_cores(int need, char *text, size_t size);
void job_explain_gpus(int need, char *text, size_t size);

#endif
