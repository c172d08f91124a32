/* launchers.c - the list of launchers, and the choice for an operation. */
#include "launch.h"

extern const struct launcher launcher_slurm, launcher_hosts;

/* the first one that accepts the text is used */
static const struct launcher *const launchers[] = {&launcher_slurm, &launcher_hosts};

/* Write the options to the record. A launcher that is already recorded must be trusted first. */
static int record_launcher(struct plan *plan)
{
    const struct sweep_flags *flags = plan->flags;
    struct tune_operation_record *r = &plan->record;
    TRY(flags->join ? 0 : trust_launcher(plan));
    r->launcher = flags->launcher ? flags->launcher : r->launcher;
    r->slurm = flags->slurm ? flags->slurm : r->slurm;
    if (tune_flags_given(&flags->tune, "points-per-job") || r->points_per_job == 0)
        r->points_per_job = flags->points_per_job;
    if (tune_flags_given(&flags->tune, "max-jobs"))
        r->max_jobs = flags->max_jobs;
    return 0;
}

int launch_choose(struct launch *l, struct plan *plan)
{
    const struct sweep_flags *flags = plan->flags;
    const struct tune_operation_record *r = &plan->record;
    bool given = tune_flags_given(&flags->tune, "points-per-job") ||
                 tune_flags_given(&flags->tune, "max-jobs") || flags->slurm;
    TRY(record_launcher(plan));
    if (is_worker(plan) && (flags->launcher || given))
        return tune_error_usage("--at-most is for processes that a launcher started: leave out "
                                "--launcher and its options");
    if (flags->join && flags->launcher)
        return tune_error_usage("--launcher cannot share an operation: leave out --join, or go on "
                                "with --resume %s", flags->join);
    if (flags->join)
        return 0;
    if (!r->launcher)
        return given ? tune_error_usage("--slurm, --points-per-job and --max-jobs are only for "
                                        "--launcher slurm") : 0;
    if (r->stop_when && r->options.order.mode != TUNE_ORDER_MODEL)
        return tune_error_usage("--stop-when with --launcher needs --order model, because other orders start all jobs before the results that "
                                "decide are there");
    int i = 0;
    while (!launchers[i]->accepts(r->launcher))
        i++;
    l->launcher = launchers[i];
    if (l->launcher != &launcher_slurm && (r->slurm || r->max_jobs > 0))
        return tune_error_usage("--slurm and --max-jobs are only for --launcher slurm, not for "
                                "--launcher '%s'", r->launcher);
    TRY(mark_launcher(plan));
    return l->launcher->open(l);
}
