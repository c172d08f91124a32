/* slurm.c - --launcher slurm: job arrays measure the points.
 *
 * All jobs of an operation have one name, which holds the ids of the store and of the operation. So
 * one question to Slurm tells about all of them, and no job id is kept. A question is asked every
 * 10 s at most. Rows are read from the store meanwhile. */
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/hash.h"
#include "core/map.h"
#include "core/print.h"
#include "launch.h"

enum {
    ASK_S = 10,             /* seconds from one question to the next */
    FIRST_ASK_S = 2,        /* until the first one, when the jobs are new */
    ARRAY_MOST = 1000,      /* jobs of one array: Slurm's default limit */
    WAVE_MOST = 10000,      /* jobs that are submitted at once */
    TRIES_MOST = 3,         /* jobs that may be lost with a point, before it becomes a row */
    FAILURES_MOST = 5,      /* jobs that may fail in a row without a row */
    ANSWER_BYTES = 16 << 20,
};

/* A job as squeue or sacct tells. */
struct job {
    char id[49], state[25], host[65], reason[65];
    int code, restarts; /* code: as wait(2) has it */
};

static struct {
    char name[200]; /* of the jobs */
    struct job *jobs;
    int count;
    bool deaf;       /* Slurm did not answer the last question */
    bool no_sacct;   /* there is no accounting */
    bool cancelled;  /* somebody cancelled jobs: when the others end, no new ones are started */
    bool stopped;    /* ... and jobs that waited: no new ones at all */
    int delayed;     /* jobs that were requeued, and wait for minutes */
    bool submitted;
    double next_s;   /* time of the next question */
    int lost;        /* points that need a new job */
    int failures;    /* jobs that failed since the last answer with new rows */
    int waves;       /* submissions in a row without a row */
    int64_t rows, wave_rows; /* launch.rows at the last answer, and at the last submission */
    struct tune_map told; /* jobs whose end was looked at */
    char held_back[65], excluded[1024];
} slurm;

/* ---- names and states ---- */

static bool is_one_of(const char *word, const char *list)
{
    size_t n = strlen(word);
    for (const char *at = list; n > 0 && (at = strstr(at, word)); at++)
        if ((at == list || at[-1] == ' ') && (at[n] == ' ' || !at[n]))
            return true;
    return false;
}

/* True if the job has ended for good. COMPLETING is not: its processes may still write. */
static bool has_ended(const struct job *job)
{
    return is_one_of(job->state, "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED "
                                 "RECONFIG_FAIL REVOKED TIMEOUT");
}

/* The operation's name in letters that Slurm takes everywhere, with a hash of it if it has others. */
static int name_jobs(void)
{
    char id[129];
    bool changed = false;
    snprintf(id, sizeof id, "%s", sweep.record.id);
    for (char *c = id; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') || strchr("._-", *c))) {
            *c = '_';
            changed = true;
        }
    snprintf(slurm.name, sizeof slurm.name, "sweep-%s-%s", sweep.store ? tune_store_id(sweep.store) : "new", id);
    size_t n = strlen(slurm.name);
    if (changed)
        snprintf(slurm.name + n, sizeof slurm.name - n, "-%08x", (unsigned)tune_hash64(sweep.record.id, strlen(sweep.record.id), 0));
    return 0;
}

static int check(void)
{
    if (sweep.record.slurm && strpbrk(sweep.record.slurm, "\n\r"))
        return tune_error_usage("--slurm: the options stand in one line");
    const char *const argv[] = {"sbatch", "--version", NULL};
    char text[256];
    if (!my.dry_run && launch_run(argv, text, sizeof text) < 0) {
        snprintf(text, sizeof text, "%s", tune_error_message());
        return tune_error_cannot("--launcher slurm needs Slurm's programs here: %s", text);
    }
    return 0;
}

/* max_jobs counts per array; so arrays of one submission follow each other if it is given. */
static void header(FILE *f, int jobs)
{
    if (!slurm.name[0])
        name_jobs();
    fprintf(f, "#SBATCH --job-name=%s --output=/dev/null --array=1-%d", slurm.name, jobs < 1 ? 1 : jobs > ARRAY_MOST ? ARRAY_MOST : jobs);
    if (sweep.record.max_jobs > 0)
        fprintf(f, "%%%d", sweep.record.max_jobs);
    fputc('\n', f);
    if (slurm.excluded[0])
        fprintf(f, "#SBATCH --exclude=%s\n", slurm.excluded);
    if (sweep.record.slurm && *sweep.record.slurm)
        fprintf(f, "#SBATCH %s\n", sweep.record.slurm);
    fputs("job=\"${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID\"\n", f);
}

/* ---- questions ---- */

/* Cut "sbatch: error: " and what follows the first line. */
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

static void column(const char *line, size_t from, size_t width, char *text, size_t size)
{
    size_t length = strcspn(line, "\n");
    size_t n = from >= length ? 0 : length - from < width ? length - from : width;
    while (n > 0 && line[from + n - 1] == ' ')
        n--;
    snprintf(text, size, "%.*s", (int)n, from < length ? line + from : "");
}

static int add_job(const struct job *job)
{
    if (!tune_array_fit(&slurm.jobs, (size_t)slurm.count, sizeof *slurm.jobs))
        return sweep_no_memory();
    slurm.jobs[slurm.count++] = *job;
    return 0;
}

static int by_id(const void *a, const void *b)
{
    return strcmp(((const struct job *)a)->id, ((const struct job *)b)->id);
}

static const struct job *find_job(const char *id)
{
    struct job key = {0};
    snprintf(key.id, sizeof key.id, "%s", id);
    return slurm.count ? bsearch(&key, slurm.jobs, (size_t)slurm.count, sizeof key, by_id) : NULL;
}

static void tell_deaf(const char *message)
{
    if (!slurm.deaf) {
        sweep_clear_status();
        sweep_print("# Slurm says          ", message);
        printf("\n#                     it is asked again every %d s; jobs that run go on\n", ASK_S);
        fflush(stdout);
    }
    slurm.deaf = true;
}

static void tell_hearing(void)
{
    if (slurm.deaf) {
        sweep_clear_status();
        puts("# Slurm answers again");
        fflush(stdout);
    }
    slurm.deaf = false;
}

/* squeue prints columns of these widths. */
#define FORMAT_OPTION "--Format=JobArrayID:48,State:24,exit_code:12,RestartCnt:8,NodeList:64,Reason:64"

static int read_squeue(const char *text)
{
    char number[16];
    slurm.count = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        struct job job = {0};
        column(line, 0, 48, job.id, sizeof job.id);
        column(line, 48, 24, job.state, sizeof job.state);
        column(line, 72, 12, number, sizeof number);
        job.code = atoi(number);
        column(line, 84, 8, number, sizeof number);
        job.restarts = atoi(number);
        column(line, 92, 64, job.host, sizeof job.host);
        column(line, 156, 64, job.reason, sizeof job.reason);
        if (*job.id)
            TRY(add_job(&job));
    }
    qsort(slurm.jobs, (size_t)slurm.count, sizeof *slurm.jobs, by_id);
    return 0;
}

/* Ask about all jobs of the operation. 1: there is an answer; 0: not; -1. */
static int ask_squeue(void)
{
    char name[256], *text = malloc(ANSWER_BYTES);
    const char *const argv[] = {"squeue", "--me", "--noheader", "--array", "--states=all", name, FORMAT_OPTION, NULL};
    snprintf(name, sizeof name, "--name=%s", slurm.name);
    int code = text ? launch_run(argv, text, ANSWER_BYTES) : sweep_no_memory();
    if (code == 1)
        tell_deaf(first_message(text));
    if (code == 0) {
        tell_hearing();
        code = read_squeue(text) < 0 ? -1 : 2;
    }
    free(text);
    return code < 0 ? -1 : code == 2;
}

/* "12_3|OUT_OF_MEMORY|0:125|n2" and "12_4|CANCELLED by 0|0:15|n1" */
static int read_sacct(char *text)
{
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        struct job job = {0};
        int exit = 0, signal = 0;
        if (sscanf(line, "%48[^|]|%24[^| ]%*[^|]|%d:%d|%64s", job.id, job.state, &exit, &signal, job.host) < 4 &&
            sscanf(line, "%48[^|]|%24[^| ]|%d:%d|%64s", job.id, job.state, &exit, &signal, job.host) < 4)
            continue;
        job.code = exit << 8 | signal;
        if (!find_job(job.id))
            TRY(add_job(&job));
    }
    qsort(slurm.jobs, (size_t)slurm.count, sizeof *slurm.jobs, by_id);
    return 0;
}

/* Ask the accounting about jobs that squeue has forgotten. 0, also if there is none. */
static int ask_sacct(void)
{
    char name[256], *text = malloc(ANSWER_BYTES);
    const char *const argv[] = {"sacct", "--noheader", "--parsable2", "--allocations", "--starttime=now-30days",
                                "--format=JobID,State,ExitCode,NodeList", name, NULL};
    snprintf(name, sizeof name, "--name=%s", slurm.name);
    int code = text ? launch_run(argv, text, ANSWER_BYTES) : sweep_no_memory();
    if (code == 1)
        slurm.no_sacct = true; /* not installed, or switched off */
    if (code == 0)
        code = read_sacct(text);
    free(text);
    return code < 0 ? -1 : 0;
}

/* ---- submitting ---- */

static int submit_array(int jobs, const char *after, char *id, size_t size, char *text, size_t text_size)
{
    char array[64], dependency[96];
    const char *argv[8] = {"sbatch", "--parsable", array};
    int n = 3;
    snprintf(array, sizeof array, sweep.record.max_jobs > 0 ? "--array=1-%d%%%d" : "--array=1-%d", jobs, sweep.record.max_jobs);
    snprintf(dependency, sizeof dependency, "--dependency=afterany:%s", after);
    if (*after && sweep.record.max_jobs > 0)
        argv[n++] = dependency;
    argv[n++] = launch.script;
    int code = launch_run(argv, text, text_size);
    if (code == 0)
        snprintf(id, size, "%.*s", (int)strcspn(text, ";\n"), text);
    return code;
}

/* Submit so many jobs, in as many arrays as needed. Slurm's refusal of the first one is an error, unless Slurm is away and jobs were
 * submitted before. */
static int submit(int jobs)
{
    char id[64] = "", after[64] = "", text[4096] = "";
    int accepted = 0, code = 0;
    jobs = jobs > WAVE_MOST ? WAVE_MOST : jobs;
    TRY(launch_write_script(jobs));
    for (int left = jobs; left > 0 && code == 0;) {
        int n = left < ARRAY_MOST ? left : ARRAY_MOST;
        TRY(code = submit_array(n, after, id, sizeof id, text, sizeof text));
        accepted += code == 0 ? n : 0;
        left -= n;
        snprintf(after, sizeof after, "%s", id);
    }
    const char *message = first_message(text);
    if (accepted == 0 && slurm.submitted && is_unreachable(message)) {
        tell_deaf(message);
        return 0;
    }
    if (accepted == 0)
        return tune_error_cannot("Slurm does not take the jobs: %s", message);
    sweep_clear_status();
    printf("# jobs in Slurm       %d, called %s\n", accepted, slurm.name);
    fflush(stdout);
    slurm.lost = 0;
    slurm.waves = launch.rows > slurm.wave_rows ? 1 : slurm.waves + 1;
    slurm.wave_rows = launch.rows;
    if (!slurm.submitted)
        slurm.next_s = tune_clock_s() + FIRST_ASK_S;
    slurm.submitted = true;
    return 0;
}

static int jobs_for(int points)
{
    int each = sweep.record.points_per_job;
    return points / each + (points % each > 0);
}

/* ---- what became of jobs ---- */

/* A failed job whose cause will end all others in the same way. */
static int fail_of(const struct job *job, int code, const char *line)
{
    if (code == 96)
        return tune_error_cannot("%s cannot read the values of --env in %s/env (job %s): its user must be the one that began the sweep",
                                 job->host, launch.folder, job->id);
    if (code == 97)
        return tune_error_cannot("%s does not see the store %s (job %s): a store for jobs lies on a file system that all nodes share, "
                                 "under the same path", job->host, launch.store, job->id);
    if (code == 98)
        return tune_error_cannot("%s does not see the program sweep or the folder from which it was called (job %s): both must be there "
                                 "under the same path; see %s", job->host, job->id, launch.script);
    return tune_error_cannot("job %s on %s ended with exit code %d: %s", job->id, job->host, code, *line ? line : "it wrote nothing");
}

/* Do not use that host any more: jobs that wait, and later ones. */
static int exclude(const char *host)
{
    char text[512], nodes[1100], name[256];
    size_t n = strlen(slurm.excluded);
    if (!*host || strstr(slurm.excluded, host) || n + strlen(host) + 2 > sizeof slurm.excluded)
        return 0;
    snprintf(slurm.excluded + n, sizeof slurm.excluded - n, "%s%s", n ? "," : "", host);
    snprintf(nodes, sizeof nodes, "ExcNodeList=%s", slurm.excluded);
    snprintf(name, sizeof name, "JobName=%s", slurm.name);
    const char *const argv[] = {"scontrol", "update", name, nodes, NULL};
    int code = launch_run(argv, text, sizeof text); /* no job may wait: then there is nothing to change */
    return code < 0 ? -1 : 0;
}

/* A job failed: our side of it, not what it measured. */
static int look_at_failure(const struct job *job)
{
    char line[512], signal[80];
    int code = job->code >> 8 & 0xff;
    bool ran = (job->code & 0x7f) == 0;
    line[0] = 0;
    if (ran)
        launch_last_line(job->id, line, sizeof line);
    if (ran && launch_never_runs(code))
        return fail_of(job, code, line);
    slurm.failures++;
    if (!ran)
        snprintf(signal, sizeof signal, "%s", job->reason);
    else
        snprintf(signal, sizeof signal, "exit code %d", code);
    sweep_clear_status();
    printf("# job %s on %s failed (%s)", job->id, job->host, signal);
    sweep_print(*line ? ": " : "", line);
    printf("\n");
    fflush(stdout);
    if (slurm.failures >= FAILURES_MOST && launch.rows == slurm.rows)
        return tune_error_set("%d jobs in a row failed without a row; the last one was job %s on %s (%s)%s%s", slurm.failures, job->id,
                              job->host, signal, *line ? ": " : "", line);
    return ran && code == 1 ? exclude(job->host) : 0;
}

/* Look at the jobs that ended, each once. quiet: they are of earlier times. */
static int look_at_ends(bool quiet)
{
    for (int i = 0; i < slurm.count; i++) {
        const struct job *job = &slurm.jobs[i];
        if (!has_ended(job))
            continue;
        uint64_t key[2] = {tune_hash64(job->id, strlen(job->id), (uint64_t)job->restarts), 1};
        int64_t *told = tune_map_add(&slurm.told, key);
        if (!told)
            return sweep_no_memory();
        bool new = *told == 0;
        *told = 1;
        if (!new || quiet)
            continue;
        bool cancelled = !strcmp(job->state, "CANCELLED");
        slurm.cancelled |= cancelled;
        slurm.stopped |= cancelled && !*job->host;
        if (!strcmp(job->state, "FAILED"))
            TRY(look_at_failure(job));
    }
    return 0;
}

static void tell_held_back(const char *reason)
{
    if (!*reason || !strcmp(reason, slurm.held_back) ||
        is_one_of(reason, "None Priority Resources Dependency JobArrayTaskLimit BeginTime Cleaning Prolog Licenses"))
        return;
    snprintf(slurm.held_back, sizeof slurm.held_back, "%s", reason);
    sweep_clear_status();
    sweep_print("# Slurm lets jobs wait, because: ", reason);
    printf(" (squeue --name=%s)\n", slurm.name);
    fflush(stdout);
}

static void count_jobs(void)
{
    launch.running = launch.waiting = slurm.delayed = 0;
    for (int i = 0; i < slurm.count; i++) {
        const struct job *job = &slurm.jobs[i];
        if (has_ended(job) || is_one_of(job->reason, "JobHeldAdmin launch_failed_requeued_held"))
            continue; /* jobs that Slurm holds after a failure do not start by themselves */
        bool waits = is_one_of(job->state, "PENDING REQUEUED REQUEUE_HOLD REQUEUE_FED SPECIAL_EXIT");
        launch.waiting += waits;
        launch.running += !waits;
        slurm.delayed += waits && !strcmp(job->reason, "BeginTime");
        if (waits)
            tell_held_back(job->reason);
    }
}

/* The job that had a point has ended: a row that says so, or another try. job NULL: Slurm has forgotten it. */
static int settle(struct launch_point *p, const struct job *job)
{
    char why[256];
    const struct tune_claim_job *c = &p->holder.job;
    const char *state = job ? has_ended(job) ? job->state : "REQUEUED" : "it has forgotten the job";
    bool own = is_one_of(state, "OUT_OF_MEMORY DEADLINE") || (!strcmp(state, "TIMEOUT") && c->turn == 0);
    int most = own ? sweep.record.retries : TRIES_MOST + sweep.record.retries;
    bool cancelled = !strcmp(state, "CANCELLED"), again = cancelled || p->holder.takes <= most;
    snprintf(why, sizeof why, "Slurm ended job %s on %s: %s", c->id, job && *job->host ? job->host : p->holder.host, state);
    TRY(launch_lost(p, again, why));
    p->held = false;
    p->given_up = cancelled || !again;
    if (!again || cancelled)
        return 0;
    slurm.lost++;
    sweep_clear_status();
    printf("# tried again         ");
    sweep_print_entity(p->job.entity);
    sweep_print(": ", why);
    putchar('\n');
    fflush(stdout);
    return 0;
}

/* 1: the job that has the point is over, and *job says how (NULL: forgotten); 0: it may live. */
static bool is_over(const struct launch_point *p, const struct job **job)
{
    const struct tune_claim_job *c = &p->holder.job;
    if (!p->held || !*c->id)
        return false;
    *job = find_job(c->id);
    return !*job || has_ended(*job) || (*job)->restarts > c->restarts;
}

static int settle_points(void)
{
    const struct job *job;
    bool forgotten = false;
    for (int i = 0; i < launch.count && !slurm.no_sacct && !forgotten; i++)
        forgotten = is_over(&launch.points[i], &job) && !job;
    if (forgotten) {
        TRY(ask_sacct());
        slurm.next_s = tune_clock_s() + ASK_S;
    }
    for (int i = 0; i < launch.count; i++)
        if (is_over(&launch.points[i], &job))
            TRY(settle(&launch.points[i], job));
    return 0;
}

/* ---- steps ---- */

static int free_points(void)
{
    int n = 0;
    for (int i = 0; i < launch.count; i++)
        n += !launch.points[i].held && !launch.points[i].given_up;
    return n;
}

static int say_left(void)
{
    sweep_clear_status();
    printf("# %d %s left, because jobs were cancelled\n", launch.count, launch.count == 1 ? "point is" : "points are");
    fflush(stdout);
    return 1;
}

/* Start jobs for what is left, if none are there for it. */
static int refill(void)
{
    int live = launch.running + launch.waiting, most = sweep.record.max_jobs;
    if (slurm.cancelled && live == 0)
        return say_left();
    if (slurm.stopped)
        return 0;
    if (live == 0 && slurm.waves > 2)
        return tune_error_set("Slurm's jobs end without a row of this operation, time and again; see %s", launch.folder);
    int n = live == 0 ? jobs_for(free_points()) : launch.waiting == slurm.delayed ? jobs_for(slurm.lost) : 0;
    if (live > 0 && most > 0 && n > most - live)
        n = most - live;
    return n > 0 ? submit(n) : 0;
}

static int step(void)
{
    double now = tune_clock_s();
    if (!slurm.submitted && !launch.resumed)
        return name_jobs() < 0 ? -1 : submit(jobs_for(launch.count));
    if (now < slurm.next_s)
        return 0;
    bool first = !slurm.name[0];
    TRY(first ? name_jobs() : 0);
    TRY(launch_look()); /* before the question: so each of these jobs had started when it was asked */
    int answered = ask_squeue();
    slurm.next_s = tune_clock_s() + ASK_S;
    if (answered <= 0)
        return answered;
    slurm.submitted = true;
    TRY(launch_read_rows());
    slurm.failures = launch.rows > slurm.rows ? 0 : slurm.failures;
    TRY(look_at_ends(first));
    slurm.rows = launch.rows;
    count_jobs();
    if (launch.count == 0)
        return 0;
    TRY(settle_points());
    return launch.count > 0 ? refill() : 0;
}

/* After the last point jobs may wait that have nothing to do. After an error all are ended. */
static void end(void)
{
    char name[256], text[1024];
    const char *argv[] = {"scancel", "--quiet", name, launch.count == 0 ? "--state=PENDING" : NULL, NULL};
    struct tune_error why;
    snprintf(name, sizeof name, "--jobname=%s", slurm.name);
    tune_error_save(&why);
    if (slurm.submitted && launch_run(argv, text, sizeof text) == 1 && launch.count > 0) {
        sweep_clear_status();
        sweep_print("# the jobs may go on, because Slurm says: ", first_message(text));
        printf(" (scancel --jobname=%s)\n", slurm.name);
    }
    tune_error_restore(&why);
    tune_map_free(&slurm.told);
    free(slurm.jobs);
    slurm.jobs = NULL;
    slurm.count = 0;
}

const struct launcher sweep_slurm = {check, header, step, end};
