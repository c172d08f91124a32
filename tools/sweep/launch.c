/* launch.c - follow an operation whose points other processes measure: those of Slurm's jobs, or of
 * commands on other hosts.
 *
 * Each of them runs `sweep --join`, claims points and writes rows into the store. So the store says
 * what is done. Nothing is kept here that the store and Slurm do not have, and `sweep` may be
 * killed at any time. `sweep --resume` goes on with what it finds. */
#include "launch.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/print.h"
#include "sweeps/discovery/uids.h"

struct launch launch;
static const struct launcher *launcher;
static struct tune_claim follower;

enum { RUN_S = 60, STEP_MS = 200, READ_SHARE = 20 };

/* ---- what may be asked ---- */

int sweep_launch_check(struct tune_operation_record *r)
{
    bool given = tune_flags_given(&my.tune, "points-per-job") || tune_flags_given(&my.tune, "max-jobs") || my.slurm;
    TRY(my.join ? 0 : sweep_trust_launcher(r));
    r->launcher = my.launcher ? my.launcher : r->launcher;
    r->slurm = my.slurm ? my.slurm : r->slurm;
    if (tune_flags_given(&my.tune, "points-per-job") || r->points_per_job == 0)
        r->points_per_job = my.points_per_job;
    if (tune_flags_given(&my.tune, "max-jobs"))
        r->max_jobs = my.max_jobs;
    if (my.points > 0 && (my.launcher || given))
        return tune_error_usage("--points is for the processes of a launcher, which have no launcher themselves");
    if (my.join && my.launcher)
        return tune_error_usage("--launcher is for an operation of its own: leave out --join, or go on with --resume %s", my.join);
    if (my.join)
        return 0;
    if (!r->launcher)
        return given && my.points == 0 ? tune_error_usage("--slurm, --points-per-job and --max-jobs are for --launcher slurm") : 0;
    if (r->stop_when)
        return tune_error_usage("--stop-when is not for --launcher: whether a point needs more repeats is known only after the others");
    launcher = strcmp(r->launcher, "slurm") ? &sweep_hosts : &sweep_slurm;
    if (launcher == &sweep_hosts && (r->slurm || r->max_jobs > 0))
        return tune_error_usage("--slurm and --max-jobs are for --launcher slurm, not for --launcher '%s'", r->launcher);
    TRY(sweep_mark_launcher(r));
    return launcher->check();
}

/* ---- the script ---- */

bool sweep_launches(void)
{
    return launcher;
}

static void put_flag(FILE *f, const char *name, const char *value)
{
    if (!value)
        return;
    fprintf(f, " --%s ", name);
    launch_put_quoted(f, value);
}

static void put_number(FILE *f, const char *name, double value)
{
    if (tune_flags_given(&my.tune, name))
        fprintf(f, " --%s %.17g", name, value);
}

/* The flags of this command line that are about measuring, not about what. */
static void put_flags(FILE *f)
{
    put_flag(f, "experiments", my.experiments);
    put_flag(f, "actuator-configuration", my.configuration);
    launch_put_names(f);
    put_flag(f, "gpus", my.gpus);
    put_number(f, "timeout", my.timeout);
    put_number(f, "grace", my.grace);
    put_number(f, "in-flight", my.in_flight);
    fputs(my.share_cores ? " --share-cores" : "", f);
    fputs(my.keep_runs ? " --keep-runs" : "", f);
    fputs(my.env_secrets ? " --env-secrets" : "", f);
    fputs(" --trust-store", f); /* we looked */
    fputs(" --max-failures 0", f); /* we count them */
}

/* The path from the root on. */
static int whole_path(const char *path, char whole[TUNE_PATH_MAX])
{
    char *real = realpath(path, NULL);
    int code = real ? tune_path(whole, "%s", real) : tune_error_set("%s: %s", path, strerror(errno));
    free(real);
    return code;
}

static int write_script(FILE *f, const char *store, int jobs)
{
    char program[TUNE_PATH_MAX], here[TUNE_PATH_MAX];
    TRY(whole_path("/proc/self/exe", program));
    TRY(whole_path(".", here));
    fputs("#!/bin/sh\n", f);
    launcher->header(f, jobs);
    fputs("# Measure some points of an operation. 97: this host does not see the store; 98: nor the program or the folder;\n"
          "# 96: this user cannot read the values of --env.\nstore=", f);
    launch_put_quoted(f, store);
    fputs(" sweep=", f);
    launch_put_quoted(f, program);
    fputs(" name=", f);
    launch_put_quoted(f, sweep.record.id);
    fputs("\n[ -e \"$store/operations/$name.json\" ] || exit 97\n[ -x \"$sweep\" ] && cd ", f);
    launch_put_quoted(f, here);
    fputs(" || exit 98\n", f);
    int values = launch_has_values();
    TRY(values);
    if (values)
        fputs("[ -r \"$store/launch/$name/env\" ] && . \"$store/launch/$name/env\" || exit 96\n", f);
    fputs("exec \"$sweep\" --join \"$name\" --store \"$store\"", f);
    if (launcher == &sweep_slurm)
        fprintf(f, " --points %d --job \"$job/${SLURM_RESTART_COUNT:-0}\"", sweep.record.points_per_job);
    put_flags(f);
    fputs(" >>\"$store/launch/$name/$job.log\" 2>&1 </dev/null\n", f);
    return ferror(f) ? tune_error_set("cannot write the script of the jobs") : 0;
}

int launch_write_script(int jobs)
{
    struct tune_file_writer w;
    TRY(tune_file_make_folder(launch.folder));
    TRY(launch_write_values());
    TRY(tune_file_begin(&w, launch.script));
    if (write_script(w.file, launch.store, jobs) == 0 && tune_file_commit(&w) == 0)
        return 0;
    tune_file_cancel(&w);
    return -1;
}

int sweep_launch_dry_run(void)
{
    char store[TUNE_PATH_MAX] = "", here[TUNE_PATH_MAX];
    if (tune_file_is_folder(my.store)) {
        TRY(whole_path(my.store, store));
    } else {
        TRY(whole_path(".", here));
        TRY(my.store[0] == '/' ? tune_path(store, "%s", my.store) : tune_path(store, "%s/%s", here, my.store));
    }
    int64_t points = sweep.record.planned;
    int each = sweep.record.points_per_job;
    printf("# the script of a job:\n");
    return write_script(stdout, store, (int)((points + each - 1) / each));
}

/* ---- commands ---- */

int launch_run(const char *const *argv, char *text, size_t size)
{
    extern char **environ;
    char log[TUNE_PATH_MAX];
    const char *folder = getenv("TMPDIR");
    struct tune_child_end end;
    TRY(tune_path(log, "%s/tune-launch-XXXXXX", folder && *folder ? folder : P_tmpdir));
    int fd = mkstemp(log);
    if (fd < 0)
        return tune_error_set("%s: cannot make this file for what %s says: %s", log, argv[0], strerror(errno));
    const struct tune_child_options o = {.argv = argv, .environment = (const char *const *)environ, .log = log,
                                         .log_limit = (int64_t)size - 1, .limit_s = RUN_S, .grace_s = 1};
    struct tune_child *child = tune_child_start(&o);
    struct pollfd ended = {.fd = child ? tune_child_descriptor(child) : -1, .events = POLLIN};
    while (child && !*my.tune.stop_signal && poll(&ended, 1, STEP_MS) <= 0)
        ;
    if (child && *my.tune.stop_signal)
        tune_child_stop(child);
    int code = child ? tune_child_end(child, &end) : -1;
    ssize_t n = code == 0 ? pread(fd, text, size - 1, 0) : 0;
    text[n > 0 ? n : 0] = 0;
    close(fd);
    unlink(log);
    TRY(code);
    if (end.how == TUNE_CHILD_TIMED_OUT)
        snprintf(text, size, "%s gave no answer in %d s", argv[0], RUN_S);
    if (end.how == TUNE_CHILD_NOT_STARTED)
        snprintf(text, size, "%s: %s", argv[0], end.reason);
    return end.how == TUNE_CHILD_EXITED && end.code == 0 ? 0 : 1;
}

bool launch_never_runs(int code)
{
    return code == TUNE_ERROR_USAGE || code == TUNE_ERROR_CANNOT || code == 96 || code == 97 || code == 98 || code == 126 || code == 127;
}

void launch_last_line(const char *name, char *text, size_t size)
{
    char path[TUNE_PATH_MAX], *all = NULL;
    size_t length = 0;
    text[0] = 0;
    if (tune_path(path, "%s/%s.log", launch.folder, name) < 0 || tune_file_read(path, LOG_LIMIT, &all, &length) < 0) {
        tune_error_clear();
        return;
    }
    while (length > 0 && all[length - 1] == '\n')
        all[--length] = 0;
    const char *line = strrchr(all, '\n');
    snprintf(text, size, "%s", line ? line + 1 : all);
    free(all);
}

/* ---- points ---- */

/* Count the row that answers a point; a replayed one has none. *seconds: its duration. uid: of the row, or NULL. */
static int count_row(const struct tune_job *job, enum tune_status *status, double *seconds, uint8_t uid[16], bool *replayed)
{
    const struct tune_known_row *rows, *row = NULL;
    struct tune_operation_record *r = &sweep.record;
    int n = tune_known_find(sweep.known, job->protocol, job->inputs, &job->origin,
                            TUNE_ACCEPT_HOST | TUNE_ACCEPT_BUILD | TUNE_ACCEPT_WEIGHTS | TUNE_ACCEPT_DATA, &rows);
    TRY(n);
    for (int i = 0; i < n; i++)
        if (rows[i].entity == job->hash && rows[i].repeat == job->repeat)
            row = &rows[i];
    *replayed = !row;
    for (int i = 0; i < n && *replayed; i++)
        if (rows[i].status != TUNE_FAILED)
            row = &rows[i];
    *status = row ? row->status : TUNE_VALID;
    *seconds = row && !*replayed ? row->seconds : 0;
    if (row)
        memcpy(uid, row->uid, sizeof row->uid);
    sweep.done_weight += sweep_weight(job);
    r->replayed += *replayed;
    r->replayed_invalid += *replayed && *status != TUNE_VALID;
    if (*replayed)
        return 0;
    sweep.measured_s += *seconds;
    sweep.measured_weight += sweep_weight(job);
    r->measured++;
    r->failed += *status == TUNE_FAILED;
    r->invalid += *status == TUNE_INVALID;
    return 0;
}

static int add_point(struct tune_job *job)
{
    if (!tune_array_fit(&launch.points, (size_t)launch.count, sizeof *launch.points))
        return sweep_no_memory();
    struct launch_point *p = &launch.points[launch.count++];
    char key[33];
    *p = (struct launch_point){.job = *job};
    *job = (struct tune_job){0};
    TRY(tune_known_name(sweep.known, p->job.protocol, p->job.inputs, key));
    snprintf(p->claim, sizeof p->claim, "%s-%d", key, p->job.repeat);
    return 0;
}

static int collect_one(struct tune_job *job)
{
    enum tune_status status;
    double seconds;
    uint8_t uid[16];
    bool replayed;
    TRY(sweep_note_point(job));
    sweep.done += job->kind == TUNE_JOB_ANSWERED;
    return job->kind == TUNE_JOB_ANSWERED ? count_row(job, &status, &seconds, uid, &replayed) : add_point(job);
}

/* The points of the operation, or of its rung, that have no row yet. */
static int collect(void)
{
    struct tune_job job = {0};
    int more;
    while ((more = tune_jobs_next(sweep.jobs, &job)) == 1) {
        int code = collect_one(&job);
        tune_job_free(&job);
        TRY(code);
    }
    return more;
}

static void free_points(void)
{
    for (int i = 0; i < launch.count; i++)
        tune_job_free(&launch.points[i].job);
    free(launch.points);
    launch.points = NULL;
    launch.count = 0;
}

int launch_look(void)
{
    for (int i = 0; i < launch.count; i++) {
        struct launch_point *p = &launch.points[i];
        int held = tune_claim_look(launch.claims, p->claim, &p->holder);
        TRY(held);
        p->held = held;
    }
    return 0;
}

int launch_lost(struct launch_point *p, bool again, const char *why)
{
    uint8_t uid[16];
    if (again)
        return tune_claim_release(&p->holder);
    struct tune_result result = {.status = TUNE_FAILED, .started_s = tune_clock_date_s(), .core_share = NAN, .stable = NAN};
    struct tune_results results = sweep.results;
    snprintf(result.reason, sizeof result.reason, "%s", why);
    results.host = p->holder.host;
    p->job.origin.host_class[0] = 0; /* we do not know the node's */
    TRY(tune_results_measured(&results, &p->job, &result, true, uid));
    struct tune_known_row row = {.status = TUNE_FAILED, .repeat = p->job.repeat, .entity = p->job.hash};
    memcpy(row.uid, uid, sizeof row.uid);
    TRY(tune_known_add(sweep.known, p->job.protocol, p->job.inputs, &p->job.origin, &row));
    return tune_claim_release(&p->holder);
}

/* ---- rows that came ---- */

/* Points that have just got a row, and the uids of the rows. */
struct news {
    struct tune_uids uids;
    struct { struct tune_job job; enum tune_status status; double seconds; } *at;
    int count;
};

static void tell_row(const struct news *n, int i, const double *targets, const char *why)
{
    enum tune_status status = n->at[i].status;
    struct tune_result result = {.status = status};
    snprintf(result.how, sizeof result.how, "%s", why);
    launch.rows++;
    sweep.done++;
    sweep_brake(&result);
    sweep_tell(&n->at[i].job, status == TUNE_VALID ? "measured" : tune_status_name(status), n->at[i].seconds,
               status == TUNE_VALID ? targets : NULL, why);
}

/* Print the rows of one experiment that are among the news. */
static int tell_rows(const struct news *n, const struct tune_experiment *e)
{
    const char **names = calloc((size_t)e->target_count + 2, sizeof *names);
    double *targets = calloc((size_t)e->target_count + 1, sizeof *targets);
    const struct tune_cell *cells;
    int more = 0;
    if (names && targets) {
        names[0] = tune_key_column(TUNE_KEY_UID)->name;
        names[1] = tune_key_column(TUNE_KEY_REASON)->name;
        for (int t = 0; t < e->target_count; t++)
            names[2 + t] = e->targets[t].name;
    }
    struct tune_scan *scan = names && targets ? tune_scan_open(sweep.store, e->name, names, e->target_count + 2) : NULL;
    while ((more = tune_scan_next(scan, &cells)) == 1) {
        uint8_t uid[16];
        uint64_t at;
        tune_uid_read(uid, cells[0].text);
        if (!tune_uids_first(&n->uids, uid, &at))
            continue;
        for (int t = 0; t < e->target_count; t++)
            targets[t] = cells[2 + t].absent ? NAN : cells[2 + t].number;
        tell_row(n, (int)at, targets, cells[1].absent ? "" : cells[1].text);
    }
    tune_scan_free(scan);
    free(names);
    free(targets);
    return names && targets ? more : sweep_no_memory();
}

/* Move a point that has a row to the news, or say that its result was known. */
static int take_news(struct news *n, struct launch_point *p)
{
    double seconds;
    enum tune_status status;
    uint8_t uid[16];
    bool replayed;
    TRY(count_row(&p->job, &status, &seconds, uid, &replayed));
    if (replayed) {
        launch.rows++;
        sweep.done++;
        sweep_tell(&p->job, "known", 0, NULL, "");
        tune_job_free(&p->job);
        return 0;
    }
    if (!tune_array_fit(&n->at, (size_t)n->count, sizeof *n->at))
        return sweep_no_memory();
    n->at[n->count].job = p->job;
    n->at[n->count].status = status;
    n->at[n->count].seconds = seconds;
    p->job = (struct tune_job){0};
    return tune_uids_add(&n->uids, uid, (uint64_t)n->count++);
}

static int find_news(struct news *n)
{
    int left = 0, code = 0;
    for (int i = 0; i < launch.count; i++) {
        struct launch_point *p = &launch.points[i];
        int answered = code == 0 ? tune_known_answered(sweep.known, p->job.protocol, p->job.inputs, p->job.hash, p->job.repeat) : 0;
        code = answered < 0 ? -1 : answered ? take_news(n, p) : code;
        if (answered <= 0)
            launch.points[left++] = *p;
    }
    launch.count = left;
    return code;
}

/* Look for new rows, and print them. */
int launch_read_rows(void)
{
    struct news n = {0};
    TRY(tune_known_refresh(sweep.known));
    int code = find_news(&n);
    tune_uids_sort(&n.uids);
    for (int p = 0; p < sweep.protocol_count && n.count > 0 && code == 0; p++)
        if (tune_protocol_is_first(sweep.protocols, p))
            code = tell_rows(&n, sweep.protocols[p].experiment);
    for (int i = 0; i < n.count; i++)
        tune_job_free(&n.at[i].job);
    free(n.at);
    tune_uids_free(&n.uids);
    return code;
}

/* ---- the loop ---- */

static void draw_status(void)
{
    char counts[96], planned[24], eta[32], line[512];
    double rest = sweep.planned_weight - sweep.done_weight;
    bool known = sweep.measured_weight > 0 && sweep.record.planned > 0;
    int at_a_time = launch.running > 0 ? launch.running : 1;
    int n = snprintf(line, sizeof line, "%lld of %s: %s  %d run, %d wait", (long long)sweep.done, sweep_planned_text(planned),
                     sweep_counts_text(counts), launch.running, launch.waiting);
    if (known && n > 0)
        snprintf(line + n, sizeof line - (size_t)n, "  ETA %s",
                 sweep_clock_text(fmax(rest, 0) * sweep.measured_s / sweep.measured_weight / at_a_time, eta));
    sweep_draw_line(line);
}

/* Two programs that follow one operation would both start jobs. */
static int become_follower(void)
{
    char who[256] = "";
    bool told = false;
    int mine;
    TRY(tune_path(launch.claims, "%s/claims/%s", tune_store_folder(sweep.store), sweep.record.id));
    while ((mine = tune_claim_take(&follower, launch.claims, "follower", NULL, who, sizeof who)) == 0 && !*my.tune.stop_signal) {
        if (!told)
            printf("# %s follows this operation: we wait until it ends\n", who);
        told = true;
        fflush(stdout);
        poll(NULL, 0, 1000);
    }
    return mine;
}

/* Follow until every point has a row. 0; 1: stopped; -1. */
static int follow(void)
{
    double next = 0;
    while (launch.count > 0) {
        double now = tune_clock_s();
        if (*my.tune.stop_signal || sweep.braked)
            return 1;
        if (my.time_limit > 0 && now - sweep.begin_s >= my.time_limit) {
            sweep_clear_status();
            printf("# the time limit is over: the jobs are ended\n");
            return 1;
        }
        if (now >= next) {
            TRY(launch_read_rows());
            next = tune_clock_s() + fmax(.2, READ_SHARE * (tune_clock_s() - now));
        }
        int over = launch.count > 0 && !sweep.braked ? launcher->step() : 0;
        TRY(over);
        if (over)
            return 1;
        draw_status();
        TRY(tune_claim_renew(&sweep.own));
        TRY(tune_claim_renew(&follower));
        if (launch.count > 0)
            poll(NULL, 0, STEP_MS);
    }
    return sweep.braked;
}

static int follow_all(void)
{
    for (;;) {
        TRY(collect());
        int stopped = follow();
        if (stopped)
            return stopped;
        free_points();
        int more = sweep_next_rung();
        if (more <= 0)
            return more;
    }
}

static void forget_counts(void)
{
    struct tune_operation_record *r = &sweep.record;
    launch.resumed = my.resume;
    r->measured = r->failed = r->invalid = r->replayed = r->replayed_invalid = r->refused = 0; /* rows are counted anew */
}

int sweep_launch(void)
{
    TRY(whole_path(tune_store_folder(sweep.store), launch.store));
    TRY(tune_path(launch.folder, "%s/launch/%s", launch.store, sweep.record.id));
    TRY(tune_path(launch.script, "%s/job.sh", launch.folder));
    int mine = become_follower();
    if (mine <= 0)
        return mine < 0 ? -1 : 1;
    forget_counts();
    int stopped = follow_all();
    if (*my.tune.stop_signal) {
        sweep_clear_status();
        puts("# stopped by a signal: what was started goes on, and --resume finds what it did");
    } else {
        launcher->end();
    }
    free_points();
    TRY(stopped);
    return tune_claim_drop(&follower) < 0 ? -1 : stopped;
}

int sweep_launch_tidy(void)
{
    char folder[TUNE_PATH_MAX];
    TRY(tune_path(folder, "%s/launch/%s", tune_store_folder(sweep.store), sweep.record.id));
    TRY(tune_file_remove_folder(folder));
    TRY(tune_path(folder, "%s/launch", tune_store_folder(sweep.store)));
    rmdir(folder);
    return 0;
}
