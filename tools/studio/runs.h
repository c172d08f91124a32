/* runs.h - what the files that answer about runs share. */
#ifndef TUNE_STUDIO_RUNS_H
#define TUNE_STUDIO_RUNS_H

#include "index.h"
#include "routes.h"

struct cJSON;
struct studio_job_runs;

/* studio_row - a run as a row of the list: figures, state, times, and its job, if one of jobs wrote
 * it. The caller deletes it.
 * studio_run_id - the run of the id in a request: locked, as studio_index_lock leaves it. NULL with
 * an error (404), and nothing is locked.
 * studio_run_list - the runs of a list of ids with commas, in its order, each once, in
 * chosen[most]; while the index is locked. Returns their number, or -1 with an error.
 * studio_color - the number of a run's colour, which depends on its folder alone. */
struct cJSON *studio_row(const struct tune_run *r, const struct studio_job_runs *jobs);
struct tune_run *studio_run_id(struct studio *s, const struct studio_request *q,
                               struct studio_reply *r,
                               struct tune_run ***runs);
int studio_run_list(struct studio *s, struct studio_reply *r, const char *ids,
                    struct tune_run **chosen, int most);
int studio_color(const struct tune_run *r);

#endif
