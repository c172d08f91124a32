/* slurm.c - --launcher slurm: measure the points in job arrays.
 *
 * All jobs of an operation have the same name, which contains the ids of the store and the
 * operation. So one query to Slurm covers all of them, and no job ids are stored. Slurm is queried
 * every 10 s at most. Meanwhile, rows are read from the store. */

#include "core/hash.h"
#include "core/map.h"
#include "launch.h"

enum {
    ASK_S = 10,             /* seconds between two queries */
    FIRST_ASK_S = 2,        /* seconds until the first query after a submission */
    BATCH_MOST = 100000,
    JOBS_IN_BATCH = 8,      /* of --order model, without --max-jobs */
    ARRAY_MOST = 1000,      /* maximum jobs in an array, Slurm's default limit */
    WAVE_MOST = 10000,      /* maximum jobs in a submission */
    TRIES_MOST = 3,         /* lost jobs of a point before it is recorded as failed */
    FAILURES_MOST = 5,      /* consecutive job failures without a row before an error */
    ANSWER_BYTES = 16 << 20,
};

/* A job, as reported by squeue or sacct. */
struct job {
    char id[49], state[25], host[65], reason[65];
    int code, restarts; /* code: a status as of wait(2) */
};

struct slurm {
    char option[208]; /* "--name=" and the name of the jobs */
    const char *name;
    struct job *jobs;
    int count;
    bool away;       /* Slurm did not answer the last query */
    bool no_sacct;   /* accounting (sacct) is not available */
    bool cancelled;  /* jobs were cancelled: start no new ones when the others have ended */
    bool stopped;    /* waiting jobs were cancelled: start no new ones */
    int delayed;     /* requeued jobs, which wait for minutes */
    bool submitted;
    bool resumed;    /* resumed, and earlier jobs have not been checked yet */
    double next_s;   /* time of the next query */
    int lost;        /* number of points that need a new job */
    int failures;    /* failed jobs since the last query with new rows */
    int waves;       /* consecutive submissions without a row */
    int64_t rows, wave_rows; /* launch.rows at the last query and submission */
    struct tune_map seen; /* jobs whose end was handled */
    char pending[65], excluded[1024];
};

/* ---- names and states ---- */

/* True if the word is in the list, whose words this separator parts. */
static bool is_one_of(const char *word, const char *list, char separator)
{
    size_t n = strlen(word);
    for (const char *at = list; n > 0 && (at = strstr(at, word)); at++)
        if ((at == list || at[-1] == separator) && (at[n] == separator || !at[n]))
            return true;
    return false;
}

/* True if the job has ended. A COMPLETING job has not, because its processes may still write. */
static bool has_ended(const struct job *job)
{
    return is_one_of(job->state, "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED "
                                 "RECONFIG_FAIL REVOKED TIMEOUT", ' ');
}

/* Name the jobs after the operation, with characters that Slurm always accepts. If others are
 * replaced, a hash is appended. */
static void name_jobs(const struct plan *plan, char *option, size_t size)
{
    const char *own = plan->record.id;
    char id[129];
    bool changed = false;
    snprintf(id, sizeof id, "%s", own);
    for (char *c = id; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("._-", *c))) {
            *c = '_';
            changed = true;
        }
    int n = snprintf(option, size, "--name=sweep-%s-%s", plan->store ? tune_store_id(plan->store) : "new", id);
    if (changed)
        snprintf(option + n, size - (size_t)n, "-%08x", (unsigned)tune_hash64(own, strlen(own), 0));
}

static bool accepts(const char *text)
{
    return !strcmp(text, "slurm");
}

static int open_slurm(struct launch *l)
{
    const char *const argv[] = {"sbatch", "--version", NULL}, *options = l->plan->record.slurm;
    char text[256];
    struct slurm *s = l->own = calloc(1, sizeof *s);
    if (!s)
        return no_memory();
    if (options && strpbrk(options, "\n\r"))
        return tune_error_usage("--slurm: the options must be on one line");
    int64_t batch = (l->plan->record.max_jobs > 0 ? l->plan->record.max_jobs : JOBS_IN_BATCH) * (int64_t)l->plan->record.points_per_job;
    l->batch = batch < BATCH_MOST ? (int)batch : BATCH_MOST;
    name_jobs(l->plan, s->option, sizeof s->option);
    s->name = s->option + strlen("--name=");
    s->resumed = l->plan->flags->resume;
    if (!l->plan->flags->dry_run && launch_run(l, argv, text, sizeof text) < 0) {
        snprintf(text, sizeof text, "%s", tune_error_message());
        return tune_error_cannot("--launcher slurm needs the programs of Slurm on this machine: %s",
                                 text);
    }
    return 0;
}

/* Print the header of the script. max_jobs applies per array, so with max_jobs the arrays of a
 * submission run one after another. */
static void header(const struct launch *l, FILE *f, int jobs)
{
    const struct slurm *s = l->own;
    const struct tune_operation_record *r = &l->plan->record;
    fprintf(f, "#SBATCH --job-name=%s --output=/dev/null --array=1-%d", s->name, jobs < 1 ? 1 : jobs > ARRAY_MOST ? ARRAY_MOST : jobs);
    if (r->max_jobs > 0)
        fprintf(f, "%%%d", r->max_jobs);
    fputc('\n', f);
    if (s->excluded[0])
        fprintf(f, "#SBATCH --exclude=%s\n", s->excluded);
    if (r->slurm && *r->slurm)
        fprintf(f, "#SBATCH %s\n", r->slurm);
    fputs("job=\"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"\n", f);
}

static void arguments(const struct launch *l, FILE *f)
{
    fprintf(f, " --at-most %d --job \"$job/${SLURM_RESTART_COUNT:-0}\"", l->plan->record.points_per_job);
}

/* ---- questions ---- */

/* The first line of a message, without "sbatch: error: ". */
static const char *first_message(char *text)
{
    text[strcspn(text, "\n")] = 0;
    for (const char *prefix = strstr(text, "error: "); prefix; prefix = strstr(text, "error: "))
        text = (char *)(uintptr_t)prefix + 7;
    return text;
}

static bool is_unreachable(const char *text)
{
    return strstr(text, "Unable to contact") || strstr(text, "timed out") || strstr(text, "onnection") || strstr(text, "no answer");
}

/* Read a column of `width` characters at *at, and advance *at. */
static void read_column(const char **at, size_t width, char *text, size_t size)
{
    size_t length = strcspn(*at, "\n"), n = length < width ? length : width;
    const char *column = *at;
    *at += n;
    while (n > 0 && column[n - 1] == ' ')
        n--;
    snprintf(text, size, "%.*s", (int)n, column);
}

static int add_job(struct slurm *s, const struct job *job)
{
    if (!tune_array_fit(&s->jobs, (size_t)s->count, sizeof *s->jobs))
        return no_memory();
    s->jobs[s->count++] = *job;
    return 0;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct job *)a)->id, ((const struct job *)b)->id);
}

static const struct job *find_job(const struct slurm *s, const char *id)
{
    struct job key = {0};
    snprintf(key.id, sizeof key.id, "%s", id);
    return s->count ? bsearch(&key, s->jobs, (size_t)s->count, sizeof key, by_id) : NULL;
}

/* Log that Slurm does not answer, with its message. */
static void log_away(const struct launch *l, struct slurm *s, const char *message)
{
    if (!s->away) {
        progress_log(l->progress, "Slurm says          %s", message);
        progress_log(l->progress, "                    next question to Slurm in %d s; running jobs continue", ASK_S);
    }
    s->away = true;
}

static void log_answer(const struct launch *l, struct slurm *s)
{
    if (s->away)
        progress_log(l->progress, "Slurm answers again");
    s->away = false;
}

/* Run a query. 0: *text is the answer, which the caller frees; 1: *text is an error of Slurm;
 * -1. */
static int ask_slurm(const struct launch *l, const char *const *argv, char **text)
{
    *text = malloc(ANSWER_BYTES);
    return *text ? launch_run(l, argv, *text, ANSWER_BYTES) : no_memory();
}

/* The columns of squeue, with their widths. */
#define FORMAT_OPTION "--Format=JobArrayID:48,State:24,exit_code:12,RestartCnt:8,NodeList:64,Reason:64"

static int read_squeue(struct slurm *s, const char *text)
{
    char code[16], restarts[16];
    s->count = 0;
    for (const char *at = text; *at; at += strcspn(at, "\n"), at += *at == '\n') {
        struct job job = {0};
        read_column(&at, 48, job.id, sizeof job.id);
        read_column(&at, 24, job.state, sizeof job.state);
        read_column(&at, 12, code, sizeof code);
        read_column(&at, 8, restarts, sizeof restarts);
        read_column(&at, 64, job.host, sizeof job.host);
        read_column(&at, 64, job.reason, sizeof job.reason);
        job.code = atoi(code);
        job.restarts = atoi(restarts);
        if (*job.id)
            TRY(add_job(s, &job));
    }
    qsort(s->jobs, (size_t)s->count, sizeof *s->jobs, by_id);
    return 0;
}

/* Query squeue. 1: it answered; 0: it did not; -1. */
static int ask_squeue(const struct launch *l)
{
    struct slurm *s = l->own;
    const char *const argv[] = {"squeue", "--me", "--noheader", "--array", "--states=all", s->option, FORMAT_OPTION, NULL};
    char *text;
    int code = ask_slurm(l, argv, &text), answered = code == 0;
    if (code == 1)
        log_away(l, s, first_message(text));
    if (answered) {
        log_answer(l, s);
        code = read_squeue(s, text);
    }
    free(text);
    return code < 0 ? -1 : answered;
}

/* Read lines such as "12_3|OUT_OF_MEMORY|0:125|n2" and "12_4|CANCELLED by 0|0:15|n1". */
static int read_sacct(struct slurm *s, char *text)
{
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct job job = {0};
        int exit = 0, signal = 0;
        if (sscanf(line, "%48[^|]|%24[^| ]%*[^|]|%d:%d|%64s", job.id, job.state, &exit, &signal, job.host) < 4 &&
            sscanf(line, "%48[^|]|%24[^| ]|%d:%d|%64s", job.id, job.state, &exit, &signal, job.host) < 4)
            continue;
        job.code = exit << 8 | signal;
        if (!find_job(s, job.id))
            TRY(add_job(s, &job));
    }
    qsort(s->jobs, (size_t)s->count, sizeof *s->jobs, by_id);
    return 0;
}

/* Query the accounting for jobs that squeue no longer lists. 0, also if there is no accounting;
 * -1. */
static int ask_sacct(const struct launch *l)
{
    struct slurm *s = l->own;
    const char *const argv[] = {"sacct", "--noheader", "--parsable2", "--allocations", "--starttime=now-30days",
                                "--format=JobID,State,ExitCode,NodeList", s->option, NULL};
    char *text;
    int code = ask_slurm(l, argv, &text);
    if (code == 1)
        s->no_sacct = true; /* not installed, or switched off */
    if (code == 0)
        code = read_sacct(s, text);
    free(text);
    return code < 0 ? -1 : 0;
}

/* ---- submitting ---- */

static int submit_array(const struct launch *l, int jobs, const char *after, char *id, size_t size,
                        char *text, size_t text_size)
{
    char array[64], dependency[96];
    const char *argv[8] = {"sbatch", "--parsable", array};
    int n = 3, most = l->plan->record.max_jobs;
    snprintf(array, sizeof array, most > 0 ? "--array=1-%d%%%d" : "--array=1-%d", jobs, most);
    snprintf(dependency, sizeof dependency, "--dependency=afterany:%s", after);
    if (*after && most > 0)
        argv[n++] = dependency;
    argv[n++] = l->script;
    int code = launch_run(l, argv, text, text_size);
    if (code == 0)
        snprintf(id, size, "%.*s", (int)strcspn(text, ";\n"), text);
    return code;
}

/* Submit jobs, in as many arrays as needed. If Slurm refuses the first array, this is an error,
 * unless Slurm is unavailable and jobs were submitted before. */
static int submit(struct launch *l, int jobs)
{
    struct slurm *s = l->own;
    char id[64] = "", after[64] = "", text[4096] = "";
    int accepted = 0, code = 0;
    jobs = jobs > WAVE_MOST ? WAVE_MOST : jobs;
    TRY(launch_write_script(l, jobs));
    for (int left = jobs; left > 0 && code == 0;) {
        int n = left < ARRAY_MOST ? left : ARRAY_MOST;
        TRY(code = submit_array(l, n, after, id, sizeof id, text, sizeof text));
        accepted += code == 0 ? n : 0;
        left -= n;
        snprintf(after, sizeof after, "%s", id);
    }
    const char *message = first_message(text);
    if (accepted == 0 && s->submitted && is_unreachable(message)) {
        log_away(l, s, message);
        return 0;
    }
    if (accepted == 0)
        return tune_error_cannot("Slurm does not accept the jobs: %s", message);
    progress_log(l->progress, "jobs in Slurm       %d, called %s", accepted, s->name);
    s->lost = 0;
    s->waves = l->rows > s->wave_rows ? 1 : s->waves + 1;
    s->wave_rows = l->rows;
    if (!s->submitted)
        s->next_s = tune_clock_s() + FIRST_ASK_S;
    s->submitted = true;
    return 0;
}

static int jobs_for(const struct launch *l, int points)
{
    int each = l->plan->record.points_per_job;
    return points / each + (points % each > 0);
}

/* ---- ends of jobs ---- */

/* Set the error for a failed job, if all other jobs would fail for the same reason. */
static int fail_of(const struct launch *l, const struct job *job, int code, const char *line)
{
    char cause[TUNE_PATH_MAX + 128];
    if (launch_cause(l, job->host, code, cause, sizeof cause))
        return tune_error_cannot("job %s: %s%s", job->id, cause, code == LAUNCH_NO_VALUES ? "" : "; all nodes must have it under the same path");
    return tune_error_cannot("job %s on %s ended with exit code %d: %s", job->id, job->host, code, *line ? line : "it wrote nothing");
}

/* Exclude a host for waiting and later jobs. */
static int exclude_host(const struct launch *l, const char *host)
{
    struct slurm *s = l->own;
    char text[512], nodes[1100], name[256];
    size_t n = strlen(s->excluded);
    if (!*host || is_one_of(host, s->excluded, ','))
        return 0;
    if (n + strlen(host) + 2 > sizeof s->excluded) {
        progress_log(l->progress, "%s also failed, but jobs may still start there: the list of excluded hosts is full (%zu bytes)", host, n);
        return 0;
    }
    snprintf(s->excluded + n, sizeof s->excluded - n, "%s%s", n ? "," : "", host);
    snprintf(nodes, sizeof nodes, "ExcNodeList=%s", s->excluded);
    snprintf(name, sizeof name, "JobName=%s", s->name);
    const char *const argv[] = {"scontrol", "update", name, nodes, NULL};
    int code = launch_run(l, argv, text, sizeof text); /* this fails if no job waits, which is fine */
    return code < 0 ? -1 : 0;
}

/* Handle a failed job. The worker failed, not the program that it measured. */
static int look_at_failure(const struct launch *l, const struct job *job)
{
    struct slurm *s = l->own;
    char line[512] = "", how[80];
    int code = job->code >> 8 & 0xff;
    bool ran = (job->code & 0x7f) == 0;
    if (ran)
        launch_last_line(l, job->id, line, sizeof line);
    if (ran && launch_never_runs(code))
        return fail_of(l, job, code, line);
    s->failures++;
    if (ran)
        snprintf(how, sizeof how, "exit code %d", code);
    else
        snprintf(how, sizeof how, "%s", job->reason);
    const char *colon = *line ? ": " : "";
    progress_log(l->progress, "job %s on %s failed (%s)%s%s", job->id, job->host, how, colon, line);
    if (s->failures >= FAILURES_MOST && l->rows == s->rows)
        return tune_error_set("%d jobs in a row ended without a result; the last one was job %s on "
                              "%s (%s)%s%s", s->failures, job->id,
                              job->host, how, colon, line);
    return ran && code == 1 ? exclude_host(l, job->host) : 0;
}

/* Handle each ended job once. quiet: do not report them, because they are from before a resume. */
static int look_at_ends(const struct launch *l, bool quiet)
{
    struct slurm *s = l->own;
    for (int i = 0; i < s->count; i++) {
        const struct job *job = &s->jobs[i];
        if (!has_ended(job))
            continue;
        uint64_t key[2] = {tune_hash64(job->id, strlen(job->id), (uint64_t)job->restarts), 1};
        int64_t *seen = tune_map_add(&s->seen, key);
        if (!seen)
            return no_memory();
        bool new = *seen == 0;
        *seen = 1;
        if (!new || quiet)
            continue;
        bool cancelled = !strcmp(job->state, "CANCELLED");
        s->cancelled |= cancelled;
        s->stopped |= cancelled && !*job->host;
        if (!strcmp(job->state, "FAILED"))
            TRY(look_at_failure(l, job));
    }
    return 0;
}

static void log_pending(const struct launch *l, struct slurm *s, const char *reason)
{
    if (!*reason || !strcmp(reason, s->pending) ||
        is_one_of(reason, "None Priority Resources Dependency JobArrayTaskLimit BeginTime Cleaning Prolog Licenses", ' '))
        return;
    snprintf(s->pending, sizeof s->pending, "%s", reason);
    progress_log(l->progress, "Slurm does not start jobs yet, because: %s (squeue --name=%s)",
                 reason, s->name);
}

static void count_jobs(struct launch *l)
{
    struct slurm *s = l->own;
    l->running = l->waiting = s->delayed = 0;
    for (int i = 0; i < s->count; i++) {
        const struct job *job = &s->jobs[i];
        if (has_ended(job) || is_one_of(job->reason, "JobHeldAdmin launch_failed_requeued_held", ' '))
            continue; /* Slurm holds such jobs after a failure and never starts them */
        bool waits = is_one_of(job->state, "PENDING REQUEUED REQUEUE_HOLD REQUEUE_FED SPECIAL_EXIT", ' ');
        l->waiting += waits;
        l->running += !waits;
        s->delayed += waits && !strcmp(job->reason, "BeginTime");
        if (waits)
            log_pending(l, s, job->reason);
    }
}

/* ---- ends of points ---- */

/* Handle a point whose job has ended: record a failure, or try again. job NULL: Slurm no longer
 * knows the job. */
static int settle_point(struct launch *l, struct launch_point *p, const struct job *job)
{
    struct slurm *s = l->own;
    const struct tune_lease_job *c = &p->holder.job;
    char why[256], entity[ENTITY_TEXT];
    int retries = l->plan->record.retries;
    const char *state = job ? has_ended(job) ? job->state : "REQUEUED" : "Slurm does not know the "
                                                                         "job any more";
    bool own = is_one_of(state, "OUT_OF_MEMORY DEADLINE", ' ') || (!strcmp(state, "TIMEOUT") && c->turn == 0);
    bool cancelled = !strcmp(state, "CANCELLED"), again = cancelled || p->holder.takes <= (own ? retries : TRIES_MOST + retries);
    snprintf(why, sizeof why, "Slurm ended job %s on %s: %s", c->id, job && *job->host ? job->host : p->holder.host, state);
    TRY(launch_lost(l, p, again, why));
    p->leased = false;
    cancelled &= !s->resumed; /* a resume measures what was cancelled before */
    s->cancelled |= cancelled;
    p->given_up = cancelled || !again;
    if (p->given_up)
        return 0;
    s->lost++;
    progress_log(l->progress, "tried again         %s: %s", entity_text(l->plan->space, p->job.entity, entity), why);
    return 0;
}

/* True if the point's job has ended. *job is the job, or NULL if Slurm no longer knows it. */
static bool is_over(const struct slurm *s, const struct launch_point *p, const struct job **job)
{
    const struct tune_lease_job *c = &p->holder.job;
    if (!p->leased || !*c->id)
        return false;
    *job = find_job(s, c->id);
    return !*job || has_ended(*job) || (*job)->restarts > c->restarts;
}

static int settle_points(struct launch *l)
{
    struct slurm *s = l->own;
    const struct job *job;
    bool forgotten = false;
    for (int i = 0; i < l->count && !s->no_sacct && !forgotten; i++)
        forgotten = is_over(s, &l->points[i], &job) && !job;
    if (forgotten) {
        TRY(ask_sacct(l));
        s->next_s = tune_clock_s() + ASK_S;
    }
    for (int i = 0; i < l->count; i++)
        if (is_over(s, &l->points[i], &job))
            TRY(settle_point(l, &l->points[i], job));
    return 0;
}

/* ---- steps ---- */

/* Count the points without a job. */
static int count_free(const struct launch *l)
{
    int n = 0;
    for (int i = 0; i < l->count; i++)
        n += !l->points[i].leased && !l->points[i].given_up;
    return n;
}

/* Start jobs for the remaining points, if there are none for them. */
static int start_jobs(struct launch *l)
{
    struct slurm *s = l->own;
    int live = l->running + l->waiting, most = l->plan->record.max_jobs;
    if (s->cancelled && live == 0) {
        progress_log(l->progress, "%d %s left, because jobs were cancelled", l->count, l->count == 1 ? "point is" : "points are");
        return 1;
    }
    if (s->stopped)
        return 0;
    if (live == 0 && s->waves > 2)
        return tune_error_set("the jobs of Slurm end again and again without a result of this "
                              "operation; see %s", l->folder);
    int n = live == 0 ? jobs_for(l, count_free(l)) : l->waiting == s->delayed ? jobs_for(l, s->lost) : 0;
    if (live > 0 && most > 0 && n > most - live)
        n = most - live;
    return n > 0 ? submit(l, n) : 0;
}

static int look_at_jobs(struct launch *l)
{
    struct slurm *s = l->own;
    if (!s->submitted && !s->resumed)
        return 1; /* no job was submitted */
    if (tune_clock_s() < s->next_s)
        return 0;
    TRY(launch_look(l)); /* read leases before the query, so that it knows their jobs */
    int answered = ask_squeue(l);
    s->next_s = tune_clock_s() + ASK_S;
    if (answered <= 0)
        return answered;
    s->submitted = true;
    TRY(launch_read_rows(l));
    s->failures = l->rows > s->rows ? 0 : s->failures;
    TRY(look_at_ends(l, s->resumed));
    s->rows = l->rows;
    count_jobs(l);
    TRY(settle_points(l));
    s->resumed = false;
    return 1;
}

/* Cancel jobs. After the last point, cancel waiting ones, which have nothing to do. After an error,
 * cancel all. */
static void close_slurm(struct launch *l)
{
    struct slurm *s = l->own;
    char name[256], text[1024];
    const char *argv[] = {"scancel", "--quiet", name, l->count == 0 ? "--state=PENDING" : NULL, NULL};
    struct tune_error why;
    snprintf(name, sizeof name, "--jobname=%s", s->name);
    tune_error_save(&why);
    if (s->submitted && launch_run(l, argv, text, sizeof text) == 1 && l->count > 0)
        progress_log(l->progress, "the jobs may still run, because Slurm says: %s (to end them: "
                                  "scancel --jobname=%s)", first_message(text), s->name);
    tune_error_restore(&why);
    tune_map_free(&s->seen);
    free(s->jobs);
    free(s);
}

const struct launcher launcher_slurm = {accepts, open_slurm, header, arguments, look_at_jobs, start_jobs, close_slurm};
