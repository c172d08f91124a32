/* operate.c - the main loop: put jobs into slots, and make rows of their results. */
#include <errno.h>
#include <poll.h>
#include <pwd.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/print.h"
#include "sweep.h"

/* ---- one measurement ---- */

static void clean_slot(struct slot *slot)
{
    tune_measurement_free(slot->measurement);
    tune_command_free(&slot->command);
    tune_job_free(&slot->job);
    slot->measurement = NULL;
    slot->busy = false;
}

/* "process 123 (nc) of user bob", "a process of user bob", "a process that we may not see" */
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
        snprintf(text, size, "a process%s", *user ? user : " that we may not see");
    return text;
}

/* h NULL: the process has released the cores already. */
static void tell_of_cpus(const struct tune_child_holder *h)
{
    char text[160];
    bool stranger = h && !h->guard;
    if (sweep.told_of_cpus && (!stranger || sweep.told_of_stranger))
        return;
    sweep.told_of_cpus = true;
    sweep.told_of_stranger |= stranger;
    sweep_clear_status();
    if (!stranger)
        printf("# another sweep measures on these cores: its measurements and ours take turns (--share-cores: at the same time)\n");
    else if (h->pid > 0) {
        fputs("# ", stdout);
        tune_print_line_of(stdout, holder_text(h, text, sizeof text));
        printf(", which is no sweep, holds core %d (the socket @tune.c/cpu/%d): we wait until it ends; end it, take other cores "
               "(taskset), or give --share-cores\n", h->cpu, h->cpu);
    } else
        printf("# %s holds core %d (the socket @tune.c/cpu/%d), maybe for a sweep: we wait until it lets go; ask its user, take other "
               "cores (taskset), or give --share-cores\n", holder_text(h, text, sizeof text), h->cpu, h->cpu);
    fflush(stdout);
}

/* Check from time to time which process holds our cores. Not often, because a check takes
 * milliseconds on cores where another sweep measures. */
static void look_at_cpus(struct slot *slot)
{
    struct tune_child_holder holder;
    double now = tune_clock_s();
    if (sweep.told_of_cpus && (sweep.told_of_stranger || now - sweep.looked_s < 10))
        return;
    sweep.looked_s = now;
    if (!tune_child_cpus_taken(slot->cpus, slot->cpu_count, &holder))
        return;
    slot->has_cpus = holder.ours;
    if (!holder.ours)
        tell_of_cpus(&holder);
}

/* Look at measurements that may be waiting: another sweep may have taken their cores after we looked
 * and before they could. */
static void look_at_waiting(void)
{
    for (int i = 0; i < sweep.slot_count && !my.share_cores; i++)
        if (sweep.slots[i].busy && !sweep.slots[i].for_gpus && !sweep.slots[i].has_cpus)
            look_at_cpus(&sweep.slots[i]);
}

static int start_measurement(struct slot *slot)
{
    const struct tune_protocol *p = &sweep.protocols[slot->job.protocol];
    TRY(tune_path(slot->folder, "%s/runs/%s/%lld-%s%s%.0d", tune_store_folder(sweep.store), sweep.record.id,
                  (long long)slot->job.index, slot->name, slot->attempt ? "-retry-" : "", slot->attempt));
    TRY(tune_file_remove_folder(slot->folder)); /* left by a killed sweep */
    char parent[TUNE_PATH_MAX];
    TRY(tune_file_parent(parent, slot->folder));
    TRY(tune_file_make_folder(parent));
    const struct tune_measure_options o = {.experiment = p->experiment, .inputs = slot->job.inputs, .command = &slot->command,
        .program = sweep.programs[slot->job.protocol].path, .folder = slot->folder,
        .environment = slot->environment, .limit_s = my.timeout, .grace_s = my.grace, .log_limit = LOG_LIMIT,
        .cpus = slot->cpus, .cpu_count = slot->cpu_count, .own_cpus = !my.share_cores && !slot->for_gpus,
        .held = slot->claims, .held_count = slot->gpu_count};
    slot->has_cpus = false;
    if (o.own_cpus)
        look_at_cpus(slot);
    slot->begin_s = tune_clock_s();
    slot->measurement = tune_measurement_start(&o);
    return slot->measurement ? 0 : -1;
}

static int begin_slot(struct slot *slot, struct tune_job *job)
{
    struct tune_word words[2];
    slot->job = *job;
    *job = (struct tune_job){0};
    slot->busy = true;
    slot->attempt = 0;
    sweep.taken++;
    TRY(sweep_note_unused(&slot->job));
    TRY(tune_results_fit(&sweep.results, &slot->job));
    const struct tune_experiment *e = sweep.protocols[slot->job.protocol].experiment;
    TRY(tune_experiment_command(e, slot->job.inputs, words, sweep_words(e, words), &slot->command));
    TRY(sweep_set_visible(slot));
    return start_measurement(slot);
}

/* last: this row answers the job's request. */
static int add_known(const struct tune_job *job, const uint8_t uid[16], enum tune_status status, double seconds, bool last)
{
    struct tune_known_row row = {.status = status, .repeat = job->repeat, .seconds = (float)seconds,
                                 .entity = last ? job->hash : 0};
    memcpy(row.uid, uid, sizeof row.uid);
    return tune_known_add(sweep.known, job->protocol, job->inputs, &job->origin, &row);
}

/* Report and record a job that needs no run, or that belongs to another process. */
static int settle(struct tune_job *job)
{
    uint8_t uid[16];
    sweep.done++;
    sweep.done_weight += sweep_weight(job);
    switch (job->kind) {
    case TUNE_JOB_REPLAY:
        TRY(tune_results_replayed(&sweep.results, job));
        TRY(sweep_enough_known(job));
        sweep.record.replayed++;
        sweep.record.replayed_invalid += job->rows[job->row_count - 1].status != TUNE_VALID;
        sweep_tell(job, "known", 0, NULL, "");
        break;
    case TUNE_JOB_REFUSED:
        TRY(tune_results_refused(&sweep.results, job, uid));
        TRY(add_known(job, uid, TUNE_INVALID, 0, true));
        sweep.record.refused++;
        sweep_tell(job, "invalid", 0, NULL, job->why);
        break;
    case TUNE_JOB_HOPELESS:
        sweep.hopeless++;
        sweep_tell(job, "unknown", 0, NULL, "there is no program here that measures it");
        break;
    default:
        break;
    }
    return 0;
}

/* A launcher's process does not wait: another one may be started for what is left. */
static int wait_for_other(struct tune_job *job)
{
    sweep.left_to_others = true;
    if (my.points > 0)
        return 0;
    if (!tune_array_fit(&sweep.waiting, (size_t)sweep.waiting_count, sizeof *sweep.waiting))
        return sweep_no_memory();
    sweep.waiting[sweep.waiting_count++] = *job;
    *job = (struct tune_job){0};
    return 0;
}

/* Lock the point: the experiment, its inputs, host class, build, weights and data. Other operations wait for its result. With
 * --remeasure nothing is locked. 0: another operation has it. */
static int hold(struct slot *slot, const struct tune_job *job)
{
    const struct tune_origin *o = &job->origin;
    const char *const parts[] = {slot->name, o->host_class, o->build, o->weights, o->data};
    if (!sweep.record.options.memoize)
        return 1;
    slot->point = 0;
    for (int i = 0; i < 5; i++)
        slot->point = tune_hash64(parts[i], strlen(parts[i]) + 1, slot->point);
    for (int i = 0; i < sweep.slot_count; i++)
        if (&sweep.slots[i] != slot && sweep.slots[i].held && sweep.slots[i].point == slot->point)
            return 0;
    int held = tune_store_hold(sweep.store, slot->point);
    slot->held = held == 1;
    return held;
}

/* Release the slot's GPUs, cores and point. */
static int let_go(struct slot *slot)
{
    sweep_release_gpus(slot);
    if (slot->held)
        tune_store_release(sweep.store, slot->point);
    slot->held = false;
    if (!slot->claimed)
        return 0;
    slot->claimed = false;
    bool over = slot->over && my.points > 0; /* other jobs need not read the store to find that out */
    slot->over = false;
    return over ? tune_claim_done(&slot->claim) : tune_claim_drop(&slot->claim);
}

static bool is_earlier(const struct tune_job *a, const struct tune_job *b)
{
    return a->hash == b->hash && a->protocol == b->protocol && a->repeat < b->repeat;
}

/* Count the earlier repeats of the job that run here or wait. */
static void count_earlier(struct tune_job *job)
{
    job->running = job->waiting = 0;
    for (int i = 0; i < sweep.slot_count; i++)
        job->running += sweep.slots[i].busy && is_earlier(&sweep.slots[i].job, job);
    for (int i = 0; i < sweep.waiting_count; i++)
        job->waiting += is_earlier(&sweep.waiting[i], job);
}

/* True if nobody had the claim before us. */
static bool is_first(const struct tune_claim *c)
{
    const char *name = strrchr(c->path, '/');
    return !strchr(name ? name : c->path, '~');
}

/* Take the job into a free slot, or find that another process has it. 1: done; 0: it must wait. The
 * claim is on the measurement, because an experiment may measure two entities at once. */
static int take(struct slot *slot, struct tune_job *job)
{
    char folder[TUNE_PATH_MAX], key[33], who[256];
    TRY(tune_path(folder, "%s/claims/%s", tune_store_folder(sweep.store), sweep.record.id));
    TRY(tune_known_name(sweep.known, job->protocol, job->inputs, key));
    snprintf(slot->name, sizeof slot->name, "%s-%d", key, job->repeat);
    int mine = hold(slot, job);
    sweep.job.turn = sweep.taken;
    if (mine == 1)
        mine = tune_claim_take(&slot->claim, folder, slot->name, *sweep.job.id ? &sweep.job : NULL, who, sizeof who); /* makes the folder */
    slot->claimed = mine == 1;
    if (mine <= 0)
        return mine < 0 || let_go(slot) < 0 ? -1 : wait_for_other(job);
    /* the process that had it before may have finished it; jobs leave such a claim as done */
    if (my.points == 0 || !is_first(&slot->claim))
        TRY(tune_known_refresh(sweep.known));
    count_earlier(job);
    sweep.takes = true;
    int decided = tune_jobs_decide(sweep.jobs, job);
    sweep.takes = false;
    TRY(decided);
    if (job->kind == TUNE_JOB_RUN && *my.tune.stop_signal) /* it came while data was made */
        return let_go(slot) < 0 ? -1 : 1;
    if (job->kind == TUNE_JOB_LATER)
        return let_go(slot) < 0 ? -1 : wait_for_other(job);
    if (job->kind == TUNE_JOB_RUN)
        return begin_slot(slot, job) < 0 ? -1 : 1;
    TRY(settle(job));
    slot->over = true;
    if (my.join) { /* the next process must see the row */
        TRY(tune_store_commit(sweep.store));
        tune_store_begin(sweep.store);
    }
    return let_go(slot) < 0 ? -1 : 1;
}

static int end_slot(struct slot *slot)
{
    clean_slot(slot);
    return let_go(slot);
}

/* End a slot whose measurement was ended. A scheduler's job keeps its claim: whether the point is measured again depends on why the
 * scheduler ended the job. */
static int leave_slot(struct slot *slot)
{
    slot->claimed = slot->claimed && !*sweep.job.id;
    return end_slot(slot);
}

/* A disturbed measurement is tried once more, unless --retries says otherwise. */
static int most_retries(void)
{
    return sweep.disturbed && sweep.record.retries == 0 && !tune_flags_given(&my.tune, "retries") ? 1 : sweep.record.retries;
}

/* A result that had too little of its cores counts as failed if it will be measured again. With
 * --share-cores measurements disturb each other, as wanted. */
static void retry_disturbed(const struct slot *slot, struct tune_result *result)
{
    sweep.disturbed = result->status == TUNE_VALID && result->core_share < TUNE_CORE_SHARE && !my.share_cores;
    if (!sweep.disturbed || slot->attempt >= most_retries())
        return;
    result->status = TUNE_FAILED;
    result->targets = NULL;
    snprintf(result->how, sizeof result->how, "disturbed");
}

/* Handle a run's result: a row, a retry, or the next run of the measurement. */
static int ended(struct slot *slot)
{
    struct tune_result result;
    char why[TUNE_PATH_MAX + 1200];
    uint8_t uid[16];
    int over = tune_measurement_next(slot->measurement, &result);
    if (over <= 0)
        return over;
    if (result.waited_s > .05)
        tell_of_cpus(NULL);
    if (result.status == TUNE_STOPPED || sweep_cut_short(&result))
        return leave_slot(slot);
    if (result.status != TUNE_FAILED && sweep_origin_changed(&slot->job, result.reason, sizeof result.reason)) {
        result.status = TUNE_FAILED;
        result.targets = NULL;
        snprintf(result.how, sizeof result.how, "%s", result.reason);
    }
    retry_disturbed(slot, &result);
    bool last = result.status != TUNE_FAILED || slot->attempt >= most_retries();
    bool again = sweep.disturbed && result.status == TUNE_FAILED;
    if ((again || result.status != TUNE_FAILED) && !my.keep_runs) /* remove it before the row is written: it
                                                        * may fill the disk */
        TRY(tune_file_remove_folder(slot->folder));
    TRY(tune_results_measured(&sweep.results, &slot->job, &result, last, uid));
    TRY(add_known(&slot->job, uid, result.status, result.seconds, last));
    sweep.done += last;
    sweep.done_weight += last ? sweep_weight(&slot->job) : 0;
    sweep.measured_weight += sweep_weight(&slot->job);
    sweep.measured_s += result.seconds;
    sweep.record.measured += last; /* a retry is no second measurement */
    sweep.record.failed += last && result.status == TUNE_FAILED;
    sweep.record.invalid += result.status == TUNE_INVALID;
    if (result.status == TUNE_VALID)
        TRY(sweep_enough_measured(&slot->job, result.targets));
    if (last)
        sweep_brake(&result);
    bool failed = result.status == TUNE_FAILED && !again && !strstr(result.reason, slot->folder);
    snprintf(why, sizeof why, "%s%s%s", result.reason, failed ? "; see " : "", failed ? slot->folder : "");
    sweep_tell(&slot->job, result.status == TUNE_VALID ? "measured" : again ? "again" : tune_status_name(result.status), result.seconds,
         result.status == TUNE_VALID ? result.targets : NULL, why);
    slot->over = last;
    if (last)
        return end_slot(slot);
    TRY(sweep_origin(NULL, &sweep.protocols[slot->job.protocol], slot->job.inputs, &slot->job.origin)); /* the program may have been
                                                                                                         * built again */
    slot->attempt++;
    tune_measurement_free(slot->measurement);
    slot->measurement = NULL;
    return start_measurement(slot);
}

/* ---- the operation ---- */

static struct slot *free_slot(bool for_gpus)
{
    for (int i = 0; i < sweep.slot_count; i++)
        if (!sweep.slots[i].busy && sweep.slots[i].for_gpus == for_gpus)
            return &sweep.slots[i];
    return NULL;
}

/* Busy slots of one kind. */
static int busy_slots_of(bool for_gpus)
{
    int count = 0;
    for (int i = 0; i < sweep.slot_count; i++)
        count += sweep.slots[i].busy && sweep.slots[i].for_gpus == for_gpus;
    return count;
}

static int busy_slots(void)
{
    return busy_slots_of(false) + busy_slots_of(true);
}

static void tell_of_gpus(void)
{
    if (sweep.told_of_gpus)
        return;
    sweep.told_of_gpus = true;
    sweep_clear_status();
    printf("# other sweeps measure on these GPUs: we wait until they let go of some\n");
    fflush(stdout);
}

static int gpus_of(const struct tune_job *job)
{
    return job->kind != TUNE_JOB_RUN ? 0 : sweep_gpus_of(&sweep.protocols[job->protocol], job->inputs);
}

/* A slot for a job, with as many GPUs reserved as it needs: 1; 0: not yet; -1. Measurements on the CPU alone and those on GPUs do not run at the same
 * time, because they would disturb each other. */
static int find_slot(const struct tune_job *job, struct slot **slot)
{
    int n = gpus_of(job);
    *slot = free_slot(n > 0);
    if (n == 0)
        return *slot && (job->kind != TUNE_JOB_RUN || busy_slots_of(true) == 0);
    if (!*slot || busy_slots_of(false) > 0)
        return 0;
    int taken = sweep_take_gpus(*slot, n);
    if (taken == 0 && busy_slots() == 0)
        tell_of_gpus();
    return taken;
}

/* 1 if a job needs more GPUs than measurements may use here. It is then counted, and said. */
static int lacks_gpus(const struct tune_job *job)
{
    int n = gpus_of(job);
    char why[160];
    if (n <= sweep.gpu_count)
        return 0;
    snprintf(why, sizeof why, "it needs %d GPU%s; %d %s here. --gpus names GPUs", n, n == 1 ? "" : "s", sweep.gpu_count,
             sweep.gpu_count == 1 ? "is" : "are");
    sweep.done++;
    sweep.done_weight += sweep_weight(job);
    sweep.hopeless++;
    sweep_tell(job, "unknown", 0, NULL, why);
    return 1;
}

/* The next job: the one that no slot could take, else a new one. 1; 0: there is none; -1. */
static int next_job(struct tune_job *job)
{
    if (sweep.has_pending) {
        *job = sweep.pending;
        sweep.pending = (struct tune_job){0};
        sweep.has_pending = false;
        return 1;
    }
    int more = sweep.more ? tune_jobs_next(sweep.jobs, job) : 0;
    TRY(more);
    sweep.more = more;
    TRY(more ? sweep_note_point(job) : 0);
    return more;
}

/* One job into a slot, or settled. 1; 0: it must wait for a slot, and is pending; -1. */
static int place(struct tune_job *job)
{
    struct slot *slot = NULL;
    bool ours = my.points > 0 && job->kind == TUNE_JOB_REPLAY; /* many processes find it */
    if (job->kind != TUNE_JOB_RUN && job->kind != TUNE_JOB_REFUSED && !ours)
        return settle(job) < 0 ? -1 : 1;
    if (lacks_gpus(job))
        return 1;
    int found = find_slot(job, &slot);
    if (found == 1)
        return take(slot, job) < 0 ? -1 : 1;
    if (found == 0) {
        sweep.pending = *job;
        sweep.has_pending = true;
        *job = (struct tune_job){0};
    }
    return found;
}

/* Put jobs into free slots. Jobs that need no run are recorded on the way, in one write. */
static int fill(void)
{
    struct tune_job job = {0};
    struct slot *slot;
    int code = 1;
    if (!sweep_points_left()) {
        sweep.more = sweep.has_pending = false;
        tune_job_free(&sweep.pending);
    }
    while ((sweep.more || sweep.has_pending) && sweep_points_left() && (free_slot(false) || free_slot(true)) &&
           !*my.tune.stop_signal && code == 1) {
        code = next_job(&job);
        if (code == 1)
            code = *my.tune.stop_signal ? 0 : place(&job); /* the signal came while data was made */
        tune_job_free(&job);
        job = (struct tune_job){0};
        TRY(code);
    }
    /* jobs of other processes: check each once per round, until they have a result or are free */
    for (int i = sweep.waiting_count; !sweep.more && !sweep.has_pending && i > 0; i--) {
        job = sweep.waiting[0];
        code = find_slot(&job, &slot);
        TRY(code);
        if (code == 0)
            break;
        memmove(sweep.waiting, sweep.waiting + 1, (size_t)--sweep.waiting_count * sizeof job);
        code = take(slot, &job);
        tune_job_free(&job);
        TRY(code);
    }
    return 0;
}

static int fill_slots(void)
{
    tune_store_begin(sweep.store);
    TRY(fill());
    return tune_store_commit(sweep.store);
}

static void tell_of_waiting(void)
{
    if (sweep.told_of_waiting)
        return;
    sweep.told_of_waiting = true;
    sweep_clear_status();
    printf("# other sweeps measure what is left (%d): we wait for their results\n", sweep.waiting_count);
    fflush(stdout);
}

static int wait_for_one(bool stopping)
{
    struct pollfd fds[1024];
    int at[1024], n = 0;
    for (int i = 0; i < sweep.slot_count && n < 1024; i++)
        if (sweep.slots[i].busy) {
            fds[n] = (struct pollfd){.fd = tune_measurement_descriptor(sweep.slots[i].measurement), .events = POLLIN};
            at[n++] = i;
        }
    if (n == 0 && sweep.waiting_count > 0 && !sweep.has_pending)
        tell_of_waiting();
    sweep_draw_status();
    double left = my.time_limit > 0 && !stopping ? my.time_limit - (tune_clock_s() - sweep.begin_s) : 1;
    double most = n > 0 ? 1 : .1; /* there is no message when others finish, so look again */
    left = left < 0 ? 0 : left < most ? left : most;
    int ready = poll(fds, (nfds_t)n, (int)(left * 1000) + (left > 0));
    if (ready < 0 && errno != EINTR)
        return tune_error_set("poll: %s", strerror(errno));
    if (ready == 0 && !stopping)
        look_at_waiting();
    if (my.points == 0)
        TRY(tune_claim_renew(&sweep.own));
    for (int i = 0; i < sweep.slot_count; i++)
        if (sweep.slots[i].claimed && sweep.slots[i].busy)
            TRY(tune_claim_renew(&sweep.slots[i].claim));
    for (int i = 0; i < n; i++)
        if (fds[i].revents)
            TRY(ended(&sweep.slots[at[i]]));
    return 0;
}

/* Run the operation. 0: finished; 1: stopped by a signal, the time limit or --max-failures. */
int sweep_operate(void)
{
    bool stopping = false;
    sweep.more = true;
    for (;;) {
        bool over = my.time_limit > 0 && tune_clock_s() - sweep.begin_s >= my.time_limit;
        if (!stopping && (over || *my.tune.stop_signal)) {
            stopping = true;
            sweep_clear_status();
            printf("# %s: what runs is ended, and not recorded\n", over ? "the time limit is over" : "stopped by a signal");
            for (int i = 0; i < sweep.slot_count; i++)
                if (sweep.slots[i].busy)
                    tune_measurement_stop(sweep.slots[i].measurement);
        }
        if (!stopping && !sweep.braked)
            TRY(fill_slots());
        if (busy_slots() == 0 && sweep.braked)
            return 1;
        if (busy_slots() == 0 && stopping)
            return 1;
        if (busy_slots() == 0 && !sweep.more && my.points > 0 && (sweep.left_to_others || !sweep_points_left()))
            return 0;
        if (busy_slots() == 0 && !sweep.more && !sweep.has_pending && sweep.waiting_count == 0) {
            int more = sweep_next_rung();
            if (more <= 0)
                return more;
            continue;
        }
        TRY(wait_for_one(stopping));
    }
}

void sweep_end_slots(void)
{
    for (int i = 0; i < sweep.slot_count; i++)
        if (sweep.slots[i].measurement)
            tune_measurement_stop(sweep.slots[i].measurement); /* stop all first, because each may
                                                                * take the whole grace time */
    for (int i = 0; i < sweep.slot_count; i++)
        if (sweep.slots[i].busy)
            end_slot(&sweep.slots[i]);
}
