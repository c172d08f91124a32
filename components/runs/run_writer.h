/* run_writer.h - write a run folder (run_folder.h): begin, append rows, end; or resume one.
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
 * Every function that writes first checks that the folder is still the one that was opened
 * (tune_run_folder_held). It returns -1 (or NULL) with an error if not, if a file cannot be
 * written, or if memory is short. */
#ifndef TUNE_RUNS_RUN_WRITER_H
#define TUNE_RUNS_RUN_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "runs/run_folder.h"

struct cJSON;
struct tune_host;

struct tune_run_writer {
    char folder[TUNE_PATH_MAX];
    struct cJSON *now;    /* the new contents of run.json; tune_run_writer_save writes them */
    struct cJSON *before; /* the contents of run.json when the run was reopened; NULL: a new run */
    FILE *metrics;        /* metrics.jsonl, locked; NULL: no folder is open */
    bool follows;         /* another process writes the folder: tune_run_writer_follow */
};

/* tune_run_writer_create - make the folder, as tune_run_folder_make does.
 * tune_run_writer_reopen - lock the folder of a run that will be resumed, and read its run.json.
 * Nothing in the folder changes.
 * tune_run_writer_follow - for a process beside the one that writes the folder, such as a rank of a
 * run. The functions below then write nothing. resume: read run.json.
 * tune_run_writer_close - release the folder; call this after an error too. */
int tune_run_writer_create(struct tune_run_writer *w, const char *folder, const char *program,
                           bool overwrite);
int tune_run_writer_reopen(struct tune_run_writer *w, const char *folder);
int tune_run_writer_follow(struct tune_run_writer *w, const char *folder, bool resume);
void tune_run_writer_close(struct tune_run_writer *w);

/* tune_run_writer_held - tune_run_folder_held of the folder. */
int tune_run_writer_held(const struct tune_run_writer *w);

/* tune_run_writer_begin - make w->now: program, version, time, process, host, build, the members of
 * settings (NULL: none), and a new session. A resumed run keeps its sessions, and started, argv,
 * command and working_folder of its first process. Nothing is written.
 * tune_run_writer_session - this process's session in w->now, borrowed; NULL: none. */
int tune_run_writer_begin(struct tune_run_writer *w, const char *program,
                          const struct cJSON *settings, const struct tune_host *host);
struct cJSON *tune_run_writer_session(const struct tune_run_writer *w);

/* tune_run_writer_save - replace run.json by w->now.
 * tune_run_writer_end - the same with status, reason (NULL: none), end time and last step, in the
 * session too. */
int tune_run_writer_save(const struct tune_run_writer *w);
int tune_run_writer_end(struct tune_run_writer *w, const char *status, const char *reason,
                        int64_t last_step);

/* tune_run_writer_row - append the object to metrics.jsonl as one line. Returns the line without
 * its newline; the caller frees it (free). The line survives a kill of the process.
 * tune_run_writer_sync - sync the lines so far to the disk.
 * tune_run_writer_cut - keep only the first bytes of metrics.jsonl, and append after them. */
char *tune_run_writer_row(struct tune_run_writer *w, const struct cJSON *row);
int tune_run_writer_sync(const struct tune_run_writer *w);
int tune_run_writer_cut(struct tune_run_writer *w, int64_t bytes);

/* tune_run_writer_preview - append an object with "step" to samples.jsonl.
 * tune_run_writer_cut_previews - keep only the lines of samples.jsonl up to this step. Without the
 * file it does nothing. */
int tune_run_writer_preview(struct tune_run_writer *w, const struct cJSON *row);
int tune_run_writer_cut_previews(const struct tune_run_writer *w, int64_t step);

/* tune_run_writer_again - prepare to resume: remove report.json and collectives.json of an earlier
 * end, and files that a killed process left half-written.
 * tune_run_writer_source - write recipe.c. At a step above 0, recipe.c stays; a different source is
 * written as recipe-from-<step>.c, and 1 is returned.
 * tune_run_writer_report - write report.json; complete: nothing failed while report was built. */
int tune_run_writer_again(const struct tune_run_writer *w);
int tune_run_writer_source(const struct tune_run_writer *w, const char *source, size_t size,
                           int64_t step);
int tune_run_writer_report(const struct tune_run_writer *w, const struct cJSON *report,
                           bool complete);

#endif
