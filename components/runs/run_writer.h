/* run_writer.h - write a run folder (run_folder.h): begin, append rows, end; or go on with one.
 *
 *     struct tune_run_writer w = {0};
 *     if (tune_run_writer_create(&w, "runs/a", "mine", false) < 0) ...
 *     tune_run_writer_begin(&w, "mine", NULL, &host);          w.now: change it as you like
 *     tune_run_writer_save(&w);                                run.json says "running"
 *     char *line = tune_run_writer_row(&w, row);               one line of metrics.jsonl
 *     tune_run_writer_report(&w, report, true);
 *     tune_run_writer_end(&w, "finished", NULL, steps);
 *     tune_run_writer_close(&w);
 *
 * Every function that writes asks first whether the folder is still the one that was opened
 * (tune_run_folder_held). It returns -1 (or NULL) with an error if it is not. So it does when a
 * file cannot be written, or memory is short. */
#ifndef TUNE_RUNS_RUN_WRITER_H
#define TUNE_RUNS_RUN_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "runs/run_folder.h"

struct cJSON;
struct tune_host;

struct tune_run_writer {
    char folder[TUNE_PATH_MAX];
    struct cJSON *now;    /* what run.json shall hold; tune_run_writer_save writes it */
    struct cJSON *before; /* what run.json held when the run was reopened; NULL: a new run */
    FILE *metrics;        /* metrics.jsonl, held; NULL: no folder is open */
};

/* tune_run_writer_create - make the folder, as tune_run_folder_make does.
 * tune_run_writer_reopen - hold the folder of a run to go on with, and read its run.json; nothing
 * is changed there. tune_run_writer_close - let go of it; also after an error. */
int tune_run_writer_create(struct tune_run_writer *w, const char *folder, const char *program,
                           bool overwrite);
int tune_run_writer_reopen(struct tune_run_writer *w, const char *folder);
void tune_run_writer_close(struct tune_run_writer *w);

/* tune_run_writer_begin - make w->now: program, version, time, process, host, build, the members
 * of settings (NULL: none), and a new session. A run that goes on keeps its sessions, and the
 * started, argv, command and working_folder of the process that began it. Nothing is written.
 * tune_run_writer_session - this process's session in w->now; borrowed. NULL: there is none. */
int tune_run_writer_begin(struct tune_run_writer *w, const char *program,
                          const struct cJSON *settings, const struct tune_host *host);
struct cJSON *tune_run_writer_session(const struct tune_run_writer *w);

/* tune_run_writer_save - replace run.json by w->now. tune_run_writer_end - the same with the
 * status, reason (NULL: none), time and last step of the end, in the session too. */
int tune_run_writer_save(const struct tune_run_writer *w);
int tune_run_writer_end(struct tune_run_writer *w, const char *status, const char *reason,
                        int64_t last_step);

/* tune_run_writer_row - append the object to metrics.jsonl as one line. Returns the line without
 * its newline; the caller frees it (free). A run that is killed right after keeps the line.
 * tune_run_writer_sync - the lines so far are on the disk.
 * tune_run_writer_cut - keep the first bytes of metrics.jsonl only, and append behind them. */
char *tune_run_writer_row(struct tune_run_writer *w, const struct cJSON *row);
int tune_run_writer_sync(const struct tune_run_writer *w);
int tune_run_writer_cut(struct tune_run_writer *w, int64_t bytes);

/* tune_run_writer_again - the run goes on: report.json, which is of an earlier end, and what a
 * killed process left half-written are removed.
 * tune_run_writer_source - recipe.c. At a step above 0 recipe.c stays; a source that differs from
 * it becomes recipe-from-<step>.c, and the result is 1.
 * tune_run_writer_report - report.json; complete: nothing failed while report was built. */
int tune_run_writer_again(const struct tune_run_writer *w);
int tune_run_writer_source(const struct tune_run_writer *w, const char *source, size_t size,
                           int64_t step);
int tune_run_writer_report(const struct tune_run_writer *w, const struct cJSON *report,
                           bool complete);

#endif
