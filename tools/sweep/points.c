/* points.c - a sweep that a launcher started: it shares an operation, measures some points, and ends. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "machine/slurm.h"
#include "sweep.h"

/* "12_3/0": the job's id in Slurm, and how often it was started before. */
static int read_job(const char *text)
{
    struct tune_claim_job *job = &sweep.job;
    const char *slash = strchr(text, '/');
    char *end = NULL;
    long restarts = slash ? strtol(slash + 1, &end, 10) : -1;
    size_t length = slash ? (size_t)(slash - text) : 0;
    if (length == 0 || length >= sizeof job->id || strspn(text, "0123456789_+") != length || end == slash + 1 || *end ||
        restarts < 0 || restarts > 1000000)
        return tune_error_usage("--job %s: expected the job's id in Slurm and its restarts, such as 12_3/0", text);
    snprintf(job->id, sizeof job->id, "%.*s", (int)length, text);
    job->restarts = (int)restarts;
    return 0;
}

int sweep_points_check(void)
{
    if (my.points > 0 && !my.join)
        return tune_error_usage("--points is for a sweep that shares an operation; --join names that");
    if (my.job && my.points == 0)
        return tune_error_usage("--job is for the jobs of --launcher slurm, which have --points, too");
    return my.job ? read_job(my.job) : 0;
}

bool sweep_points_left(void)
{
    return my.points == 0 || sweep.taken < my.points;
}

/* Slurm signals the processes of a job one by one. So a program may end before we hear why. It may even end well: a shell goes on
 * when its `sleep` was killed. Where Slurm's daemon is hidden, and after a failure, we wait a while for the signal. */
bool sweep_cut_short(const struct tune_result *result)
{
    enum { HIDDEN_MS = 50, AFTER_FAILURE_MS = 300 };
    if (!*sweep.job.id)
        return false;
    bool sent = tune_slurm_signals_sent();
    int left = result->status == TUNE_FAILED ? AFTER_FAILURE_MS : sent ? 0 : HIDDEN_MS;
    for (; left > 0 && !*my.tune.stop_signal; left -= 10)
        poll(NULL, 0, 10);
    return *my.tune.stop_signal;
}
