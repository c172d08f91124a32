/* worker.c - a sweep that a launcher started. It shares an operation, measures some points, and
 * ends. */
#include <poll.h>

#include "machine/slurm.h"
#include "sweep.h"

/* Read "12_3/0": the job's id in Slurm, and the number of its earlier starts. */
static int read_job(const char *text, struct tune_lease_job *job)
{
    const char *slash = strchr(text, '/');
    char *end = NULL;
    long restarts = slash ? strtol(slash + 1, &end, 10) : -1;
    size_t length = slash ? (size_t)(slash - text) : 0;
    if (length == 0 || length >= sizeof job->id || strspn(text, "0123456789_+") != length || end == slash + 1 || *end ||
        restarts < 0 || restarts > 1000000)
        return tune_error_usage("--job %s: expected the id of the job in Slurm and its number of "
                                "restarts, such as 12_3/0", text);
    snprintf(job->id, sizeof job->id, "%.*s", (int)length, text);
    job->restarts = (int)restarts;
    return 0;
}

int worker_check(struct plan *plan)
{
    const struct sweep_flags *flags = plan->flags;
    if (is_worker(plan) && !flags->join)
        return tune_error_usage("--at-most needs --join OPERATION");
    if (flags->job && !is_worker(plan))
        return tune_error_usage("--job is only for the jobs of --launcher slurm, so it needs "
                                "--at-most");
    return flags->job ? read_job(flags->job, &plan->job) : 0;
}

bool worker_may_take(const struct plan *plan, const struct queue *q)
{
    return !is_worker(plan) || q->taken < plan->flags->at_most;
}

/* Slurm signals the processes of a job one by one, so the program may get its signal before this
 * process. It may even end well: a shell continues when its `sleep` was killed. So wait a while for
 * the signal after a failure, or if Slurm's daemon is hidden. */
bool worker_cut_short(const struct plan *plan, const struct tune_result *result)
{
    enum { HIDDEN_MS = 50, AFTER_FAILURE_MS = 300 };
    if (!*plan->job.id)
        return false;
    bool sent = tune_slurm_signals_sent();
    int left = result->status == TUNE_FAILED ? AFTER_FAILURE_MS : sent ? 0 : HIDDEN_MS;
    for (; left > 0 && !is_stopped(plan); left -= 10)
        poll(NULL, 0, 10);
    return is_stopped(plan);
}
