/* launch.c - follow an operation that other processes measure, started by a launcher.
 *
 * Each process runs `sweep --join`, leases points and writes rows into the store. So the store has
 * the progress. This program has no other state, so it may be killed at any time. `sweep --resume`
 * continues from the state of the store and the launcher. */
#include "launch.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <unistd.h>

enum { RUN_S = 60, STEP_MS = 200, READ_SHARE = 20 };

/* ---- commands ---- */

int launch_run(const struct launch *l, const char *const *argv, char *text, size_t size)
{
    extern char **environ;
    struct tune_child_end end;
    TRY(command_output(l->plan, argv, (const char *const *)environ, RUN_S, text, size, &end));
    if (end.how == TUNE_CHILD_TIMED_OUT)
        snprintf(text, size, "%s did not answer within %d s", argv[0], RUN_S);
    if (end.how == TUNE_CHILD_NOT_STARTED)
        snprintf(text, size, "%s: %s", argv[0], end.reason);
    return end.how == TUNE_CHILD_EXITED && end.code == 0 ? 0 : 1;
}

bool launch_never_runs(int code)
{
    return code == TUNE_ERROR_USAGE || code == TUNE_ERROR_CANNOT || code == LAUNCH_NO_VALUES || code == LAUNCH_NO_STORE ||
           code == LAUNCH_NO_PROGRAM || code == 126 || code == 127;
}

bool launch_cause(const struct launch *l, const char *host, int code, char *text, size_t size)
{
    if (code == LAUNCH_NO_VALUES)
        snprintf(text, size, "%s cannot read the values of --env in %s/env: it must run as the "
                             "user who began the sweep", host, l->folder);
    else if (code == LAUNCH_NO_STORE)
        snprintf(text, size, "%s does not see the store %s", host, l->store);
    else if (code == LAUNCH_NO_PROGRAM)
        snprintf(text, size, "%s does not see the program or the folder; see %s", host, l->script);
    else
        return false;
    return true;
}

void launch_last_line(const struct launch *l, const char *name, char *text, size_t size)
{
    char path[TUNE_PATH_MAX], *all = NULL;
    size_t length;
    text[0] = 0;
    if (tune_path(path, "%s/%s.log", l->folder, name) < 0 || tune_file_read(path, LOG_LIMIT, &all, &length) < 0)
        tune_error_clear();
    else
        snprintf(text, size, "%s", last_line(all));
    free(all);
}

/* ---- points ---- */

/* The result of a point. replayed: it was known before, so there may be no new row. */
struct answer {
    enum tune_status status;
    double seconds;
    uint8_t uid[16];
    bool replayed;
};

static int find_answer(const struct plan *plan, const struct tune_job *job, struct answer *a)
{
    const struct tune_cached_row *rows, *row = NULL;
    int n = tune_result_cache_find(plan->cache, job->binding, job->inputs, &job->provenance,
                                   TUNE_ACCEPT_HOST | TUNE_ACCEPT_BUILD | TUNE_ACCEPT_WEIGHTS | TUNE_ACCEPT_DATA, &rows);
    TRY(n);
    for (int i = 0; i < n; i++)
        if (rows[i].entity == job->hash && rows[i].repeat == job->repeat)
            row = &rows[i];
    *a = (struct answer){.status = TUNE_VALID, .replayed = !row};
    for (int i = 0; i < n && a->replayed; i++)
        if (rows[i].status != TUNE_FAILED)
            row = &rows[i];
    if (!row)
        return 0;
    a->status = row->status;
    a->seconds = a->replayed ? 0 : row->seconds;
    memcpy(a->uid, row->uid, sizeof a->uid);
    return 0;
}

static void count_answer(struct progress *p, const struct answer *a, double weight)
{
    p->done_weight += weight;
    p->replayed += a->replayed;
    p->replayed_invalid += a->replayed && a->status != TUNE_VALID;
    if (a->replayed)
        return;
    p->measured_s += a->seconds;
    p->measured_weight += weight;
    p->measured++;
    p->failed += a->status == TUNE_FAILED;
    p->invalid += a->status == TUNE_INVALID;
}

static int add_point(struct launch *l, struct tune_job *job)
{
    if (!tune_array_fit(&l->points, (size_t)l->count, sizeof *l->points))
        return no_memory();
    struct launch_point *p = &l->points[l->count++];
    char key[33];
    *p = (struct launch_point){.job = *job};
    *job = (struct tune_job){0};
    TRY(tune_result_cache_name(l->plan->cache, p->job.binding, p->job.inputs, key));
    snprintf(p->lease, sizeof p->lease, "%s-%d", key, p->job.repeat);
    return 0;
}

static int collect_point(struct launch *l, struct tune_job *job)
{
    struct answer a;
    TRY(queue_add_point(l->queue, job));
    if (job->kind != TUNE_JOB_ANSWERED)
        return add_point(l, job);
    TRY(find_answer(l->plan, job, &a));
    count_answer(l->progress, &a, weight_of(l->plan, job));
    l->progress->done++;
    return 0;
}

/* Collect the points of the operation, or of its rung, that have no row yet. */
static int collect_points(struct launch *l)
{
    struct tune_job job = {0};
    int more;
    while ((more = tune_jobs_next(l->queue->jobs, &job)) == 1) {
        int code = collect_point(l, &job);
        tune_job_free(&job);
        TRY(code);
    }
    return more;
}

static void free_points(struct launch *l)
{
    for (int i = 0; i < l->count; i++)
        tune_job_free(&l->points[i].job);
    free(l->points);
    l->points = NULL;
    l->count = 0;
}

int launch_look(struct launch *l)
{
    for (int i = 0; i < l->count; i++) {
        struct launch_point *p = &l->points[i];
        int leased = tune_lease_look(l->leases, p->lease, &p->holder);
        TRY(leased);
        p->leased = leased;
    }
    return 0;
}

int launch_lost(struct launch *l, struct launch_point *p, bool again, const char *why)
{
    uint8_t uid[16];
    if (again)
        return tune_lease_revoke(&p->holder);
    struct tune_result result = {.status = TUNE_FAILED, .started_s = tune_clock_date_s(), .core_share = NAN, .stable = NAN};
    struct tune_results results = l->plan->results;
    snprintf(result.reason, sizeof result.reason, "%s", why);
    results.host = p->holder.host;
    p->job.provenance.host_class[0] = 0; /* the node's host class is unknown */
    TRY(tune_results_measured(&results, &p->job, &result, true, uid));
    TRY(measure_cache_row(l->plan, &p->job, uid, TUNE_FAILED, 0, true));
    return tune_lease_revoke(&p->holder);
}

/* ---- new rows ---- */

/* Points with a new row, and the uids of these rows. */
struct news {
    struct tune_uids uids;
    struct { struct tune_job job; struct answer answer; } *at;
    int count;
};

static void print_row(struct launch *l, const struct tune_job *job, const struct answer *a,
                      const double *targets, const char *why)
{
    bool valid = a->status == TUNE_VALID;
    struct tune_result result = {.status = a->status};
    snprintf(result.how, sizeof result.how, "%s", why);
    l->rows++;
    l->progress->done++;
    progress_count_failure(l->progress, &result, l->plan->flags->max_failures);
    progress_job(l->plan, l->progress, job, valid ? "measured" : tune_status_name(a->status), a->seconds, valid ? targets : NULL, why);
}

/* Print the new rows of one experiment. */
static int print_rows(struct launch *l, const struct news *n, const struct tune_experiment *e)
{
    const char **names = calloc((size_t)e->target_count + 2, sizeof *names);
    double *targets = calloc((size_t)e->target_count + 1, sizeof *targets);
    const struct tune_cell *cells;
    int more = names && targets ? 0 : no_memory();
    if (more == 0) {
        names[0] = tune_key_column(TUNE_KEY_UID)->name;
        names[1] = tune_key_column(TUNE_KEY_REASON)->name;
        for (int t = 0; t < e->target_count; t++)
            names[2 + t] = e->targets[t].name;
    }
    struct tune_scan *scan = more == 0 ? tune_scan_open(l->plan->store, e->name, names, e->target_count + 2) : NULL;
    while (more >= 0 && (more = tune_scan_next(scan, &cells)) == 1) {
        uint8_t uid[16];
        uint64_t at;
        tune_uid_read(uid, cells[0].text);
        if (!tune_uids_first(&n->uids, uid, &at))
            continue;
        for (int t = 0; t < e->target_count; t++)
            targets[t] = cells[2 + t].absent ? NAN : cells[2 + t].number;
        print_row(l, &n->at[at].job, &n->at[at].answer, targets, cells[1].absent ? "" : cells[1].text);
    }
    tune_scan_free(scan);
    free(names);
    free(targets);
    return more;
}

/* If a point has a row, move it to the news, or print that its result was known. */
static int take_news(struct launch *l, struct news *n, struct launch_point *p)
{
    struct answer a;
    TRY(find_answer(l->plan, &p->job, &a));
    count_answer(l->progress, &a, weight_of(l->plan, &p->job));
    if (a.replayed) {
        l->rows++;
        l->progress->done++;
        progress_job(l->plan, l->progress, &p->job, "known", 0, NULL, "");
        tune_job_free(&p->job);
        return 0;
    }
    if (!tune_array_fit(&n->at, (size_t)n->count, sizeof *n->at))
        return no_memory();
    n->at[n->count].job = p->job;
    n->at[n->count].answer = a;
    p->job = (struct tune_job){0};
    return tune_uids_add(&n->uids, a.uid, (uint64_t)n->count++);
}

static int find_news(struct launch *l, struct news *n)
{
    int left = 0, code = 0;
    for (int i = 0; i < l->count; i++) {
        struct launch_point *p = &l->points[i];
        const struct tune_job *job = &p->job;
        int answered = code == 0 ? tune_result_cache_answered(l->plan->cache, job->binding, job->inputs, job->hash, job->repeat) : 0;
        code = answered < 0 ? -1 : answered ? take_news(l, n, p) : code;
        if (answered <= 0)
            l->points[left++] = *p;
    }
    l->count = left;
    return code;
}

int launch_read_rows(struct launch *l)
{
    const struct plan *plan = l->plan;
    struct news n = {0};
    TRY(tune_result_cache_refresh(plan->cache));
    int code = find_news(l, &n);
    tune_uids_sort(&n.uids);
    for (int p = 0; p < plan->binding_count && n.count > 0 && code == 0; p++)
        if (tune_binding_is_first(plan->bindings, p))
            code = print_rows(l, &n, plan->bindings[p].experiment);
    for (int i = 0; i < n.count; i++)
        tune_job_free(&n.at[i].job);
    free(n.at);
    tune_uids_free(&n.uids);
    return code;
}

/* ---- the loop ---- */

static void draw_status(const struct launch *l)
{
    struct progress *p = l->progress;
    char counts[96], planned[24], eta[32], line[512];
    double rest = fmax(p->planned_weight - p->done_weight, 0);
    int n = snprintf(line, sizeof line, "%lld of %s: %s  %d run, %d wait", (long long)p->done,
                     progress_planned(p, planned), progress_counts(p, counts), l->running,
                     l->waiting);
    if (p->measured_weight > 0 && p->planned > 0)
        snprintf(line + n, sizeof line - (size_t)n, "  ETA %s",
                 clock_text(rest * p->measured_s / p->measured_weight / (l->running > 0 ? l->running : 1), eta));
    progress_draw(p, line);
}

/* Ensure that only one program follows the operation. Two would both start jobs. */
static int become_follower(struct launch *l)
{
    char who[256] = "";
    bool logged = false;
    int mine;
    while ((mine = tune_lease_take(&l->follower, l->leases, "follower", NULL, who, sizeof who)) == 0 && !is_stopped(l->plan)) {
        if (!logged)
            progress_log(l->progress, "%s already follows this operation: waiting until it ends",
                         who);
        logged = true;
        poll(NULL, 0, 1000);
    }
    return mine;
}

/* Let the launcher check its processes, and start more if needed. 0; 1: nothing more can be done;
 * -1. */
static int step(struct launch *l)
{
    int known = l->launcher->look(l);
    return known <= 0 ? known : l->count > 0 ? l->launcher->start(l) : 0;
}

/* Follow the operation until every point has a row. 0; 1: stopped; -1. */
static int follow_points(struct launch *l)
{
    struct progress *p = l->progress;
    double next = 0, limit = l->plan->flags->time_limit;
    while (l->count > 0) {
        double now = tune_clock_s();
        if (is_stopped(l->plan) || p->halted)
            return 1;
        if (limit > 0 && now - p->begin_s >= limit) {
            progress_log(p, "the time limit is reached: the jobs are ended");
            return 1;
        }
        if (now >= next) {
            TRY(launch_read_rows(l));
            next = tune_clock_s() + fmax(.2, READ_SHARE * (tune_clock_s() - now));
        }
        int over = l->count > 0 && !p->halted ? step(l) : 0;
        if (over)
            return over;
        draw_status(l);
        TRY(tune_lease_renew(&l->queue->own));
        TRY(tune_lease_renew(&l->follower));
        if (l->count > 0)
            poll(NULL, 0, STEP_MS);
    }
    return p->halted;
}

/* True if the record has the entity already. */
static int is_noted(struct launch *l, const struct tune_value *entity)
{
    const struct tune_space *space = l->plan->space;
    char *text = NULL;
    int length = tune_entity_to_string(space->names, entity, space->count, &text, &(size_t){0});
    int64_t *noted = length < 0 ? NULL : tune_map_add(&l->noted, (const uint64_t[]){tune_entity_hash(text, (size_t)length), 0});
    int before = noted ? *noted > 0 : length < 0 ? -1 : no_memory();
    if (noted)
        *noted = 1;
    free(text);
    return before;
}

/* Add a point that the model chose to the record, and collect it. A point that no machine can measure is given up. */
static int collect_chosen(struct launch *l, struct tune_job *job, bool *new)
{
    char why[sizeof job->why];
    const struct tune_binding *p = &l->plan->bindings[job->binding];
    int nowhere = tune_experiment_not_here(p->experiment, job->inputs, why, sizeof why), noted;
    TRY(nowhere);
    if (nowhere) {
        snprintf(job->why, sizeof job->why, "%s", why);
        queue_give_up(l->queue, job);
        return 0;
    }
    TRY(noted = is_noted(l, job->entity));
    *new |= !noted;
    TRY(noted ? 0 : points_add(l->plan, job->entity));
    return collect_point(l, job);
}

/* Let the model choose the next batch, and write it into the record, where the processes find it. */
static int collect_batch(struct launch *l)
{
    struct tune_job job = {0};
    int more = 1;
    bool new = false;
    while (l->count < l->batch && (more = tune_jobs_next(l->queue->jobs, &job)) == 1) {
        int code = collect_chosen(l, &job, &new);
        tune_job_free(&job);
        TRY(code);
    }
    TRY(more);
    TRY(tune_store_commit(l->plan->store)); /* rows that launch_lost writes go into the store at once */
    return new ? record_write(l->plan, l->progress, "running") : 0;
}

static int follow_batches(struct launch *l)
{
    progress_log(l->progress, "in batches of       %d measurement%s; the model chooses the next ones when all have ended", l->batch,
                 l->batch == 1 ? "" : "s");
    for (int i = 0; i < l->plan->point_count; i++)
        TRY(is_noted(l, l->plan->points[i]));
    for (;;) {
        TRY(collect_batch(l));
        if (l->count == 0)
            return 0;
        int stopped = follow_points(l);
        if (stopped)
            return stopped;
        free_points(l);
    }
}

static int follow_rungs(struct launch *l)
{
    for (;;) {
        TRY(collect_points(l));
        int stopped = follow_points(l);
        if (stopped)
            return stopped;
        free_points(l);
        int more = queue_next_rung(l->queue);
        if (more <= 0)
            return more;
    }
}

static int find_folders(struct launch *l)
{
    const char *store = tune_store_folder(l->plan->store), *id = l->plan->record.id;
    if (!realpath(store, l->store))
        return tune_error_set("%s: %s", store, strerror(errno));
    TRY(tune_path(l->leases, "%s/claims/%s", store, id));
    TRY(tune_path(l->folder, "%s/launch/%s", l->store, id));
    return tune_path(l->script, "%s/job.sh", l->folder);
}

int launch_follow(struct launch *l)
{
    struct progress *p = l->progress;
    TRY(find_folders(l));
    int mine = become_follower(l);
    if (mine <= 0)
        return mine < 0 ? -1 : 1;
    if (model_chooses(l->plan))
        TRY(points_reread(l->plan)); /* another follower may have gone on */
    if (l->plan->flags->resume) /* else begin_record has written it */
        TRY(record_write(l->plan, p, "running"));
    p->measured = p->failed = p->invalid = p->replayed = p->replayed_invalid = p->refused = 0; /* rows are counted again */
    int stopped = model_chooses(l->plan) ? follow_batches(l) : follow_rungs(l);
    tune_map_free(&l->noted);
    if (is_stopped(l->plan))
        progress_log(p, "stopped by a signal: measurements that were started continue, and "
                        "--resume finds their results");
    else
        l->launcher->close(l);
    free_points(l);
    TRY(stopped);
    return tune_lease_release(&l->follower) < 0 ? -1 : stopped;
}

int launch_tidy(const struct plan *plan)
{
    char folder[TUNE_PATH_MAX];
    TRY(tune_path(folder, "%s/launch/%s", tune_store_folder(plan->store), plan->record.id));
    TRY(tune_file_remove_folder(folder));
    TRY(tune_path(folder, "%s/launch", tune_store_folder(plan->store)));
    rmdir(folder);
    return 0;
}
