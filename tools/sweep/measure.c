/* measure.c - the measurement in a slot, from its start to its row. */
#include <pwd.h>

#include "sweep.h"

/* ---- cores held by others ---- */

/* Describe a process: "process 123 (nc) of user bob", "a process of user bob", "a process that we
 * may not see". */
static const char *holder_text(const struct tune_child_holder *h, char *text, size_t size)
{
    const struct passwd *p = h->uid >= 0 ? getpwuid((uid_t)h->uid) : NULL;
    char user[64] = "", number[32];
    snprintf(number, sizeof number, "%ld", h->uid);
    if (h->uid >= 0)
        snprintf(user, sizeof user, " of user %.40s", p ? p->pw_name : number);
    if (h->pid > 0)
        snprintf(text, size, "process %ld (%.31s)%s", h->pid, h->name, user);
    else
        snprintf(text, size, "a process%s", *user ? user : " that this user may not see");
    return text;
}

/* Log who holds our cores. h NULL: the process has already released them. */
static void log_cpus(struct progress *p, const struct tune_child_holder *h)
{
    char text[160];
    bool stranger = h && !h->guard;
    bool *logged = stranger ? &p->stranger_logged : &p->cpus_logged;
    if (*logged)
        return;
    *logged = true;
    if (!stranger)
        progress_log(p, "another sweep measures on these cores: the two sweeps take turns (to "
                        "measure at the same time, give --share-cores)");
    else if (h->pid > 0)
        progress_log(p, "%s, which is not a sweep, reserves core %d (the socket @tune.c/cpu/%d): "
                        "waiting until it ends; end it, use other cores (taskset), or give "
                        "--share-cores", holder_text(h, text, sizeof text), h->cpu, h->cpu);
    else
        progress_log(p, "%s reserves core %d (the socket @tune.c/cpu/%d), maybe for a sweep: "
                        "waiting until the core is free; ask its user, use other cores (taskset), "
                        "or give --share-cores", holder_text(h, text, sizeof text), h->cpu,
                     h->cpu);
}

/* Check now and then which process holds our cores. A check takes milliseconds on cores of another
 * sweep, so it is rare. */
static void look_at_cpus(struct progress *p, struct slot *slot)
{
    struct tune_child_holder holder;
    double now = tune_clock_s();
    if ((p->cpus_logged || p->stranger_logged) && (p->cpus_logged == p->stranger_logged || now - p->cpus_looked_s < 10))
        return;
    p->cpus_looked_s = now;
    if (!tune_child_cpus_taken(slot->cpus, slot->cpu_count, &holder))
        return;
    slot->has_cpus = holder.ours;
    if (!holder.ours)
        log_cpus(p, &holder);
}

void measure_look_at_cpus(const struct plan *plan, struct progress *p, struct slots *slots)
{
    for (int i = 0; i < slots->count && !plan->flags->share_cores; i++) {
        struct slot *slot = &slots->all[i];
        if (slot->busy && !slot->for_gpus && !slot->has_cpus)
            look_at_cpus(p, slot);
    }
}

/* ---- begin ---- */

static int start_run(const struct plan *plan, struct progress *progress, struct slot *slot)
{
    const struct sweep_flags *flags = plan->flags;
    char parent[TUNE_PATH_MAX];
    TRY(tune_path(slot->folder, "%s/runs/%s/%lld-%s%s%.0d", tune_store_folder(plan->store),
                  plan->record.id, (long long)slot->job.index, slot->name,
                  slot->attempt ? "-retry-" : "", slot->attempt));
    TRY(tune_file_remove_folder(slot->folder)); /* left by a killed sweep */
    TRY(tune_file_parent(parent, slot->folder));
    TRY(tune_file_make_folder(parent));
    const struct tune_measure_options o = {.experiment = binding_of(plan, &slot->job)->experiment, .inputs = slot->job.inputs,
        .command = &slot->command, .program = plan->provenance->programs[slot->job.binding].path, .folder = slot->folder,
        .environment = slot->environment, .limit_s = flags->timeout, .grace_s = flags->grace, .log_limit = LOG_LIMIT,
        .cpus = slot->cpus, .cpu_count = slot->cpu_count, .own_cpus = !flags->share_cores && !slot->for_gpus,
        .locks = slot->locks, .lock_count = slot->gpu_count};
    slot->has_cpus = false;
    if (o.own_cpus)
        look_at_cpus(progress, slot);
    slot->begin_s = tune_clock_s();
    slot->measurement = tune_measurement_start(&o);
    return slot->measurement ? 0 : -1;
}

int measure_begin(const struct plan *plan, struct progress *progress, struct slot *slot,
                  struct tune_job *job)
{
    slot->job = *job;
    *job = (struct tune_job){0};
    slot->busy = true;
    slot->attempt = 0;
    TRY(unused_count(plan, progress, &slot->job));
    TRY(tune_results_fit(&plan->results, &slot->job));
    TRY(provenance_command(plan, binding_of(plan, &slot->job)->experiment, slot->job.inputs,
                           &slot->command));
    gpus_show(plan, slot);
    return start_run(plan, progress, slot);
}

/* ---- end ---- */

int slot_release(const struct plan *plan, struct slot *slot)
{
    gpus_release(slot);
    if (slot->locked)
        tune_store_unlock_point(plan->store, slot->point);
    slot->locked = false;
    if (!slot->leased)
        return 0;
    slot->leased = false;
    bool over = slot->over && is_worker(plan); /* saves other jobs reading the store */
    slot->over = false;
    return over ? tune_lease_done(&slot->lease) : tune_lease_release(&slot->lease);
}

static int empty_slot(const struct plan *plan, struct slot *slot)
{
    tune_measurement_free(slot->measurement);
    tune_command_free(&slot->command);
    tune_job_free(&slot->job);
    slot->measurement = NULL;
    slot->busy = false;
    return slot_release(plan, slot);
}

/* True if the measurement got too little of its cores. With --share-cores this is allowed. */
static bool was_disturbed(const struct plan *plan, const struct tune_result *result)
{
    return result->status == TUNE_VALID && result->core_share < TUNE_CORE_SHARE && !plan->flags->share_cores;
}

/* A disturbed measurement is tried once more, unless --retries says otherwise. */
static int most_retries(const struct plan *plan, bool disturbed)
{
    int retries = plan->record.retries;
    return disturbed && retries == 0 && !tune_flags_given(&plan->flags->tune, "retries") ? 1 : retries;
}

static void fail_result(struct tune_result *result, const char *how)
{
    result->status = TUNE_FAILED;
    result->targets = NULL;
    snprintf(result->how, sizeof result->how, "%s", how);
}

int measure_cache_row(const struct plan *plan, const struct tune_job *job, const uint8_t uid[16],
                      enum tune_status status, double seconds, bool last)
{
    struct tune_cached_row row = {.status = status, .repeat = job->repeat, .seconds = (float)seconds,
                                  .entity = last ? job->hash : 0};
    memcpy(row.uid, uid, sizeof row.uid);
    return tune_result_cache_add(plan->cache, job->binding, job->inputs, &job->provenance, &row);
}

/* Count a result. A retry is not counted as a second measurement. */
static void count_result(struct progress *p, const struct tune_result *result, double weight,
                         bool last)
{
    p->measured_weight += weight;
    p->measured_s += result->seconds;
    p->invalid += result->status == TUNE_INVALID;
    if (!last)
        return;
    p->done++;
    p->done_weight += weight;
    p->measured++;
    p->failed += result->status == TUNE_FAILED;
}

static void print_result(const struct plan *plan, struct progress *p, const struct slot *slot,
                         const struct tune_result *result, bool disturbed)
{
    char why[TUNE_PATH_MAX + 1200];
    bool valid = result->status == TUNE_VALID, again = disturbed && !valid;
    bool look = result->status == TUNE_FAILED && !again && !strstr(result->reason, slot->folder);
    snprintf(why, sizeof why, "%s%s%s", result->reason, look ? "; see " : "", look ? slot->folder : "");
    progress_job(plan, p, &slot->job, valid ? "measured" : again ? "again" : tune_status_name(result->status), result->seconds,
                 valid ? result->targets : NULL, why);
}

/* Write the row of an attempt, count it and print it. last: it is the result of the measurement. */
static int record_result(struct queue *q, const struct slot *slot, const struct tune_result *result,
                         bool disturbed, bool last)
{
    const struct plan *plan = q->plan;
    const struct tune_job *job = &slot->job;
    bool keep = plan->flags->keep_runs || (result->status == TUNE_FAILED && !disturbed);
    uint8_t uid[16];
    if (!keep) /* remove the folder before writing the row: it may fill the disk */
        TRY(tune_file_remove_folder(slot->folder));
    TRY(tune_results_measured(&plan->results, job, result, last, uid));
    TRY(measure_cache_row(plan, job, uid, result->status, result->seconds, last));
    count_result(q->progress, result, weight_of(plan, job), last);
    if (result->status == TUNE_VALID)
        TRY(stop_rule_measured(plan, &q->stop_rule, job, result->targets));
    if (last)
        progress_count_failure(q->progress, result, plan->flags->max_failures);
    print_result(plan, q->progress, slot, result, disturbed);
    return 0;
}

/* Begin another attempt. The program may have been rebuilt. */
static int retry(struct queue *q, struct slot *slot)
{
    TRY(provenance_asked(q, binding_of(q->plan, &slot->job), slot->job.inputs, &slot->job.provenance));
    slot->attempt++;
    tune_measurement_free(slot->measurement);
    slot->measurement = NULL;
    return start_run(q->plan, q->progress, slot);
}

int measure_next(struct queue *q, struct slot *slot)
{
    const struct plan *plan = q->plan;
    struct tune_result result;
    int over = tune_measurement_next(slot->measurement, &result);
    if (over <= 0)
        return over;
    if (result.waited_s > .05 && !q->progress->stranger_logged) /* else it may have waited for the stranger */
        log_cpus(q->progress, NULL);
    if (result.status == TUNE_STOPPED || worker_cut_short(plan, &result)) {
        /* A scheduler's job keeps its lease. The point is measured again or not, depending on why
         * the scheduler ended the job. */
        slot->leased = slot->leased && !*plan->job.id;
        return empty_slot(plan, slot);
    }
    if (result.status != TUNE_FAILED && provenance_changed(q, &slot->job, result.reason, sizeof result.reason))
        fail_result(&result, result.reason);
    bool disturbed = was_disturbed(plan, &result), may_retry = slot->attempt < most_retries(plan, disturbed);
    if (disturbed && may_retry)
        fail_result(&result, "disturbed");
    bool last = result.status != TUNE_FAILED || !may_retry;
    TRY(record_result(q, slot, &result, disturbed, last));
    slot->over = last;
    return last ? empty_slot(plan, slot) : retry(q, slot);
}

void slots_end(const struct plan *plan, struct slots *slots)
{
    for (int i = 0; i < slots->count; i++)
        if (slots->all[i].measurement)
            /* stop all at once, because each may take the whole grace time */
            tune_measurement_stop(slots->all[i].measurement);
    for (int i = 0; i < slots->count; i++)
        if (slots->all[i].busy)
            empty_slot(plan, &slots->all[i]);
}
