/* operate.c - the main loop: put jobs into slots, and record their results. */
#include <errno.h>
#include <math.h>
#include <poll.h>

#include "core/hash.h"
#include "sweep.h"

/* ---- a job that needs no run ---- */

static void count_done(struct queue *q, const struct tune_job *job)
{
    q->progress->done++;
    q->progress->done_weight += weight_of(q->plan, job);
}

void queue_give_up(struct queue *q, const struct tune_job *job)
{
    char why[sizeof job->why + 32];
    snprintf(why, sizeof why, "cannot run here: %s", job->why);
    count_done(q, job);
    q->progress->not_measurable++;
    progress_job(q->plan, q->progress, job, "unknown", 0, NULL, why);
}

/* Record a job that is known, refused, or cannot be measured, and print it. */
static int record_job(struct queue *q, const struct tune_job *job)
{
    const struct plan *plan = q->plan;
    struct progress *p = q->progress;
    uint8_t uid[16];
    if (job->kind == TUNE_JOB_UNMEASURABLE) {
        queue_give_up(q, job);
        return 0;
    }
    count_done(q, job);
    if (job->kind == TUNE_JOB_REPLAY) {
        TRY(tune_results_replayed(&plan->results, job));
        TRY(stop_rule_replayed(&q->stop_rule, job));
        p->replayed++;
        p->replayed_invalid += job->rows[job->row_count - 1].status != TUNE_VALID;
        progress_job(plan, p, job, "known", 0, NULL, "");
    } else if (job->kind == TUNE_JOB_REFUSED) {
        TRY(tune_results_refused(&plan->results, job, uid));
        TRY(measure_cache_row(plan, job, uid, TUNE_INVALID, 0, true));
        p->refused++;
        progress_job(plan, p, job, "invalid", 0, NULL, job->why);
    }
    return 0;
}

/* ---- putting a job into a slot ---- */

/* Lock the point for all operations of the store. A point is experiment, inputs, host class, build,
 * weights and data. With --remeasure nothing is locked. 1; 0: another operation or slot has it;
 * -1. */
static int lock_point(const struct plan *plan, const struct slots *slots, struct slot *slot,
                      const struct tune_job *job)
{
    const struct tune_provenance *o = &job->provenance;
    const char *const parts[] = {slot->name, o->host_class, o->build, o->weights, o->data};
    if (!plan->record.options.memoize)
        return 1;
    slot->point = 0;
    for (int i = 0; i < 5; i++)
        slot->point = tune_hash64(parts[i], strlen(parts[i]) + 1, slot->point);
    for (int i = 0; i < slots->count; i++)
        if (&slots->all[i] != slot && slots->all[i].locked && slots->all[i].point == slot->point)
            return 0;
    int locked = tune_store_lock_point(plan->store, slot->point);
    slot->locked = locked == 1;
    return locked;
}

/* Lock the job's measurement, and lease it among processes that share the operation. The lease
 * names the measurement, because an experiment may measure two entities at once. 1; 0: another
 * process has it; -1. */
static int lease_job(const struct queue *q, const struct slots *slots, struct slot *slot,
                     const struct tune_job *job)
{
    const struct plan *plan = q->plan;
    char folder[TUNE_PATH_MAX], key[33], who[256];
    struct tune_lease_job ours = plan->job;
    ours.turn = q->taken;
    TRY(tune_path(folder, "%s/claims/%s", tune_store_folder(plan->store), plan->record.id));
    TRY(tune_result_cache_name(plan->cache, job->binding, job->inputs, key));
    snprintf(slot->name, sizeof slot->name, "%s-%d", key, job->repeat);
    int locked = lock_point(plan, slots, slot, job);
    if (locked <= 0)
        return locked;
    int leased = tune_lease_take(&slot->lease, folder, slot->name, *ours.id ? &ours : NULL, who, sizeof who);
    slot->leased = leased == 1;
    return leased;
}

/* True if this process is the first to have the lease. */
static bool is_first(const struct tune_lease *c)
{
    const char *name = strrchr(c->path, '/');
    return !strchr(name ? name : c->path, '~');
}

static bool is_earlier(const struct tune_job *a, const struct tune_job *b)
{
    return a->hash == b->hash && a->binding == b->binding && a->repeat < b->repeat;
}

/* Decide again what to do with a leased job, because its previous process may have finished it.
 * Workers keep leases of finished jobs. So a job that a worker leases first is not finished. */
static int decide_again(struct queue *q, const struct slots *slots, const struct slot *slot,
                        struct tune_job *job)
{
    if (!is_worker(q->plan) || !is_first(&slot->lease))
        TRY(tune_result_cache_refresh(q->plan->cache));
    job->running = job->waiting = 0;
    for (int i = 0; i < slots->count; i++)
        job->running += slots->all[i].busy && is_earlier(&slots->all[i].job, job);
    for (int i = 0; i < q->waiting_count; i++)
        job->waiting += is_earlier(&q->waiting[i], job);
    q->starting = true;
    int decided = tune_jobs_decide(q->jobs, job);
    q->starting = false;
    return decided;
}

/* Put the job aside for later. Workers do not wait, because another worker may be started for the
 * rest. */
static int put_aside(struct queue *q, struct tune_job *job)
{
    q->left_to_others = true;
    if (is_worker(q->plan))
        return 0;
    if (!tune_array_fit(&q->waiting, (size_t)q->waiting_count, sizeof *q->waiting))
        return no_memory();
    q->waiting[q->waiting_count++] = *job;
    *job = (struct tune_job){0};
    return 0;
}

/* Record a leased job that need not run. Processes that share the operation must see the row
 * before the lease ends. */
static int record_leased(struct queue *q, struct slot *slot, const struct tune_job *job)
{
    TRY(record_job(q, job));
    slot->over = true;
    if (q->plan->flags->join) {
        TRY(tune_store_commit(q->plan->store));
        tune_store_begin(q->plan->store);
    }
    return slot_release(q->plan, slot);
}

/* Measure the job in a free slot. If another process has it, put it aside. If it need not run,
 * record it. */
static int take_job(struct queue *q, const struct slots *slots, struct slot *slot,
                    struct tune_job *job)
{
    int ours = lease_job(q, slots, slot, job);
    TRY(ours);
    if (ours)
        TRY(decide_again(q, slots, slot, job));
    if (!ours || job->kind == TUNE_JOB_LATER) {
        TRY(slot_release(q->plan, slot));
        return put_aside(q, job);
    }
    if (job->kind != TUNE_JOB_RUN)
        return record_leased(q, slot, job);
    if (is_stopped(q->plan)) /* the signal came while data was made */
        return slot_release(q->plan, slot);
    q->taken++;
    return measure_begin(q->plan, q->progress, slot, job);
}

/* ---- slots ---- */

static struct slot *free_slot(const struct slots *slots, bool for_gpus)
{
    for (int i = 0; i < slots->count; i++)
        if (!slots->all[i].busy && slots->all[i].for_gpus == for_gpus)
            return &slots->all[i];
    return NULL;
}

static bool is_any_busy(const struct slots *slots, bool for_gpus)
{
    for (int i = 0; i < slots->count; i++)
        if (slots->all[i].busy && slots->all[i].for_gpus == for_gpus)
            return true;
    return false;
}

static bool are_all_free(const struct slots *slots)
{
    return !is_any_busy(slots, false) && !is_any_busy(slots, true);
}

static int gpus_of_job(const struct plan *plan, const struct tune_job *job)
{
    return job->kind != TUNE_JOB_RUN ? 0 : gpus_of(binding_of(plan, job), job->inputs);
}

/* Find a slot for a job, and reserve the GPUs that it needs. 1; 0: none is free yet; -1. CPU
 * measurements and GPU measurements do not run at the same time, because they would disturb each
 * other. */
static int find_slot(const struct queue *q, const struct slots *slots, const struct tune_job *job,
                     struct slot **slot)
{
    int n = gpus_of_job(q->plan, job);
    *slot = free_slot(slots, n > 0);
    if (n == 0)
        return *slot && (job->kind != TUNE_JOB_RUN || !is_any_busy(slots, true));
    if (!*slot || is_any_busy(slots, false))
        return 0;
    int reserved = gpus_reserve(&q->plan->machine, slots, *slot, n);
    if (reserved == 0 && are_all_free(slots) && !q->progress->gpus_logged) {
        q->progress->gpus_logged = true;
        progress_log(q->progress, "other sweeps measure on these GPUs: waiting until enough GPUs "
                                  "are free");
    }
    return reserved;
}

/* ---- the queue ---- */

/* Get the next job: the pending one, else a new one. 1; 0: there is none; -1. */
static int next_job(struct queue *q, struct tune_job *job)
{
    if (q->has_pending) {
        *job = q->pending;
        q->pending = (struct tune_job){0};
        q->has_pending = false;
        return 1;
    }
    int more = q->more ? tune_jobs_next(q->jobs, job) : 0;
    TRY(more);
    q->more = more;
    TRY(more ? queue_add_point(q, job) : 0);
    return more;
}

/* Put a job into a slot, or record it. 1; 0: no slot is free, and the job is pending; -1. */
static int place_job(struct queue *q, const struct slots *slots, struct tune_job *job)
{
    struct slot *slot = NULL;
    bool shared = is_worker(q->plan) && job->kind == TUNE_JOB_REPLAY; /* many processes may find it */
    if (job->kind != TUNE_JOB_RUN && job->kind != TUNE_JOB_REFUSED && !shared)
        return record_job(q, job) < 0 ? -1 : 1;
    int found = find_slot(q, slots, job, &slot);
    if (found == 1)
        return take_job(q, slots, slot, job) < 0 ? -1 : 1;
    if (found == 0) {
        q->pending = *job;
        q->has_pending = true;
        *job = (struct tune_job){0};
    }
    return found;
}

/* Put new jobs into slots until no slot is free. */
static int place_new(struct queue *q, const struct slots *slots)
{
    int code = 1;
    while ((q->more || q->has_pending) && worker_may_take(q->plan, q) && (free_slot(slots, false) || free_slot(slots, true)) &&
           !is_stopped(q->plan) && code == 1) {
        struct tune_job job = {0};
        code = next_job(q, &job);
        if (code == 1)
            code = is_stopped(q->plan) ? 0 : place_job(q, slots, &job); /* the signal came while data was made */
        tune_job_free(&job);
    }
    return code < 0 ? -1 : 0;
}

/* Check each waiting job of other processes once: it may have a result, or be free. */
static int place_waiting(struct queue *q, const struct slots *slots)
{
    struct slot *slot;
    for (int i = q->waiting_count; i > 0; i--) {
        struct tune_job job = q->waiting[0];
        int found = find_slot(q, slots, &job, &slot);
        if (found <= 0)
            return found;
        memmove(q->waiting, q->waiting + 1, (size_t)--q->waiting_count * sizeof job);
        int code = take_job(q, slots, slot, &job);
        tune_job_free(&job);
        TRY(code);
    }
    return 0;
}

/* Put jobs into free slots. Jobs that need no run are recorded together, in one write. */
static int fill_slots(struct queue *q, const struct slots *slots)
{
    if (!worker_may_take(q->plan, q)) {
        q->more = q->has_pending = false;
        tune_job_free(&q->pending);
        q->pending = (struct tune_job){0};
    }
    tune_store_begin(q->plan->store);
    TRY(place_new(q, slots));
    if (!q->more && !q->has_pending)
        TRY(place_waiting(q, slots));
    return tune_store_commit(q->plan->store);
}

/* ---- the operation ---- */

/* Renew the leases on the operation and on what is measured. */
static int renew_leases(struct queue *q, struct slots *slots)
{
    if (!is_worker(q->plan))
        TRY(tune_lease_renew(&q->own));
    for (int i = 0; i < slots->count; i++)
        if (slots->all[i].leased && slots->all[i].busy)
            TRY(tune_lease_renew(&slots->all[i].lease));
    return 0;
}

/* Remaining seconds of --time-limit. */
static double time_left(const struct queue *q)
{
    double limit = q->plan->flags->time_limit;
    return limit > 0 ? limit - (tune_clock_s() - q->progress->begin_s) : INFINITY;
}

/* Wait until a run ends, and handle the runs that ended. */
static int wait_for_runs(struct queue *q, struct slots *slots, bool stopping)
{
    struct pollfd fds[1024];
    int at[1024], n = 0;
    for (int i = 0; i < slots->count && n < 1024; i++)
        if (slots->all[i].busy) {
            fds[n] = (struct pollfd){.fd = tune_measurement_descriptor(slots->all[i].measurement), .events = POLLIN};
            at[n++] = i;
        }
    if (n == 0 && q->waiting_count > 0 && !q->has_pending && !q->progress->waiting_logged) {
        q->progress->waiting_logged = true;
        progress_log(q->progress, "other sweeps measure the remaining entities (%d): waiting for "
                                  "their results", q->waiting_count);
    }
    progress_draw_status(q->plan, slots, q->progress);
    double most = n > 0 ? 1 : .1; /* poll, because other processes send no message */
    double left = stopping ? most : fmax(0, fmin(time_left(q), most));
    int ready = poll(fds, (nfds_t)n, (int)(left * 1000) + (left > 0));
    if (ready < 0 && errno != EINTR)
        return tune_error_set("poll: %s", strerror(errno));
    if (ready == 0 && !stopping)
        measure_look_at_cpus(q->plan, q->progress, slots);
    TRY(renew_leases(q, slots));
    for (int i = 0; i < n; i++)
        if (fds[i].revents)
            TRY(measure_next(q, &slots->all[at[i]]));
    return 0;
}

static void stop_runs(struct progress *p, const struct slots *slots, bool over)
{
    progress_log(p, "%s: running measurements are stopped, and not recorded",
                 over ? "the time limit is reached" : "stopped by a signal");
    for (int i = 0; i < slots->count; i++)
        if (slots->all[i].busy)
            tune_measurement_stop(slots->all[i].measurement);
}

int operate(struct queue *q, struct slots *slots)
{
    const struct plan *plan = q->plan;
    bool stopping = false;
    for (;;) {
        bool over = time_left(q) <= 0;
        if (!stopping && (over || is_stopped(plan))) {
            stopping = true;
            stop_runs(q->progress, slots, over);
        }
        if (!stopping && !q->progress->halted)
            TRY(fill_slots(q, slots));
        if (are_all_free(slots) && (stopping || q->progress->halted))
            return 1;
        if (are_all_free(slots) && !q->more && is_worker(plan) && (q->left_to_others || !worker_may_take(plan, q)))
            return 0;
        if (are_all_free(slots) && !q->more && !q->has_pending && q->waiting_count == 0) {
            int more = queue_next_rung(q);
            if (more <= 0)
                return more;
            continue;
        }
        TRY(wait_for_runs(q, slots, stopping));
    }
}
