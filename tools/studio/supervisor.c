/* supervisor.c - the process that watches one job: it waits for a slot, runs the program under
 * guard, and writes how it ended. It lives on when the server is killed. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "files/cjson.h"
#include "jobs.h"
#include "machine/child.h"
#include "machine/cpus.h"
#include "profilers/gpus.h"
#include "runs/run.h"
#include "secrets.h"

extern char **environ;

/* Descriptors from the one who started us (jobs_files.c). */
enum { LOCK_FILE = 3, PLACE_FILE, CONTROL_FILE };
enum { LOOK_MS = 100, TURNS = 10, GRACE_S = 60, REASON_LINES = 20, REASON_MOST = 3000 };

struct work {
    char id[32];
    cJSON *job;
    struct studio secrets;                   /* for studio_scrub only */
    bool stop, now;                          /* orders that came */
    int64_t *before;                         /* jobs that may be in the queue before us */
    int before_count;
    int cpus[CPU_SETSIZE], cpu_count;        /* that the job gets */
    int locks[TUNE_CHILD_LOCKS], lock_count; /* of GPUs, and the job's own */
    char visible[TUNE_GPUS * TUNE_GPU_NAME]; /* CUDA_VISIBLE_DEVICES=...; "": as it is */
    char slot[512];                          /* for people */
    struct tune_child *child;
    struct tune_child_end end;
};

static void nap(int ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

/* Write job.json. A full disk does not end the run; the next change tries again. */
static void change(struct work *w, const char *state, const char *reason)
{
    char *copy = strdup(reason);
    if (copy)
        studio_scrub(&w->secrets, copy, strlen(copy));
    job_add_state(w->job, state, copy ? copy : "");
    free(copy);
    job_write(w->id, w->job);
}

static void take_orders(struct work *w)
{
    char order;
    while (read(CONTROL_FILE, &order, 1) == 1) {
        w->now = w->now || order == 'n';
        w->stop = true;
    }
}

/* ---- the queue ---- */

/* True if a job before us still has its place in the queue. */
static bool is_behind(struct work *w)
{
    while (w->before_count > 0) {
        char path[TUNE_PATH_MAX], id[32];
        snprintf(id, sizeof id, "%" PRId64, w->before[w->before_count - 1]);
        int fd = job_path(path, id, "place") < 0 ? -1 : open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
        bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
        if (fd >= 0)
            close(fd);
        if (held)
            return true;
        w->before_count--;
    }
    return false;
}

static const cJSON *value_of(const struct work *w, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(w->job, "values"), name);
}

static int wanted(const struct work *w, const char *key)
{
    const cJSON *want = cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(w->job, "want"), key);
    return cJSON_IsNumber(want) && want->valuedouble > 0 && want->valuedouble < 1e6 ? want->valueint : 0;
}

/* GPUs that the job needs: as asked, else by its --device. *number: the one it names, else -1. */
static int gpus_of(const struct work *w, int *number)
{
    const char *device = cJSON_GetStringValue(value_of(w, "device"));
    int asked = wanted(w, "gpus");
    *number = -1;
    if (!device || strncmp(device, "cuda", 4))
        return asked;
    if (device[4] == ':')
        *number = atoi(device + 5);
    return asked > 0 ? asked : 1;
}

static int lock_gpu(struct work *w, const char *name)
{
    char text[TUNE_GPU_NAME + 8];
    snprintf(text, sizeof text, "gpu/%s", name);
    int fd = tune_child_lock(text);
    if (fd >= 0)
        w->locks[w->lock_count++] = fd;
    return fd;
}

/* Reserve count GPUs, or the one that is named. 1; 0: not now; -1 with an error: never. */
static int take_gpus(struct work *w, int count, int number)
{
    struct tune_gpu *gpus = calloc(TUNE_GPUS, sizeof *gpus);
    int all = 0, n = gpus ? tune_gpus_find(getenv("CUDA_VISIBLE_DEVICES"), gpus, &all) : tune_error_no_memory("GPUs"), got = 0;
    int first = w->lock_count;
    if (n >= 0 && (count > n || count > TUNE_CHILD_LOCKS - 2 || number >= n))
        n = tune_error_set("it needs %d GPUs, and the studio has %d", number >= n ? number + 1 : count, n);
    for (int g = 0; g < n && got < count; g++) {
        if ((number >= 0 && count == 1 && g != number) || lock_gpu(w, gpus[g].name) < 0)
            continue;
        size_t used = strlen(w->visible);
        if (number < 0)
            snprintf(w->visible + used, sizeof w->visible - used, "%s%s", got > 0 ? "," : "CUDA_VISIBLE_DEVICES=", gpus[g].name);
        used = strlen(w->slot);
        snprintf(w->slot + used, sizeof w->slot - used, "%sGPU %d", got > 0 ? ", " : "", gpus[g].index);
        got++;
    }
    if (n < 0 || got < count) {
        while (w->lock_count > first)
            close(w->locks[--w->lock_count]);
        *w->visible = *w->slot = 0;
    }
    free(gpus);
    return n < 0 ? -1 : got == count;
}

/* Cores that the job needs: as asked, else one for each of its --threads, else all. */
static int cores_of(const struct work *w, int all)
{
    const cJSON *threads = value_of(w, "threads");
    int n = wanted(w, "cores");
    if (n == 0 && threads)
        n = cJSON_IsNumber(threads) ? threads->valueint : cJSON_IsString(threads) ? atoi(threads->valuestring) : 0;
    return n > 0 && n < all ? n : all;
}

/* The processors of free cores. true: enough of them are free now. */
static bool take_cores(struct work *w)
{
    int cpus[CPU_SETSIZE], cores[CPU_SETSIZE], n = 0, got = 0;
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return true;
    for (int i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &set))
            cpus[n++] = i;
    tune_cpus_group("", cpus, n, cores);
    int most = tune_cpus_usable(); /* less where a control group has a quota */
    n = most < n ? most : n;
    int need = cores_of(w, cores[n - 1] + 1);
    w->cpu_count = 0;
    for (int at = 0, end; at < n && got < need; at = end) {
        for (end = at; end < n && cores[end] == cores[at]; end++)
            ;
        if (tune_child_cpus_taken(cpus + at, end - at, NULL))
            continue;
        memcpy(w->cpus + w->cpu_count, cpus + at, (size_t)(end - at) * sizeof *cpus);
        w->cpu_count += end - at;
        got++;
    }
    snprintf(w->slot, sizeof w->slot, "%d of %d cores", need, cores[n - 1] + 1);
    return got == need;
}

/* Say in job.json why the job waits, where that has changed. behind: another job is before it. */
static void explain(struct work *w, bool behind)
{
    char text[1024] = "";
    int number, gpus = gpus_of(w, &number);
    if (behind)
        snprintf(text, sizeof text, "waits behind job %" PRId64 ", which came before it", w->before[w->before_count - 1]);
    else if (gpus > 0)
        job_explain_gpus(gpus, text, sizeof text);
    else
        job_explain_cores(cores_of(w, INT_MAX), text, sizeof text);
    studio_scrub(&w->secrets, text, strlen(text));
    if (!*text || !strcmp(text, job_text(w->job, "reason")))
        return; /* it may have been freed meanwhile */
    cJSON *states = cJSON_GetObjectItemCaseSensitive(w->job, "states");
    cJSON *entry = cJSON_GetArrayItem(states, cJSON_GetArraySize(states) - 1);
    if (entry && tune_cjson_put_text(w->job, "reason", text) && tune_cjson_put_text(entry, "reason", text))
        job_write(w->id, w->job);
}

/* Find a slot. 1; 0: not now; -1 with an error. */
static int take_slot(struct work *w)
{
    int number, gpus = gpus_of(w, &number);
    if (cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(w->job, "want"), "none")))
        return 1;
    return gpus > 0 ? take_gpus(w, gpus, number) : take_cores(w);
}

/* ---- the program ---- */

static int start(struct work *w)
{
    const cJSON *argv = cJSON_GetObjectItemCaseSensitive(w->job, "argv"), *item;
    char log[TUNE_PATH_MAX];
    int n = 0, variables = 0;
    while (environ[variables])
        variables++;
    const char **words = calloc((size_t)cJSON_GetArraySize(argv) + 1, sizeof *words);
    const char **environment = calloc((size_t)variables + 2, sizeof *environment);
    if (words && environment) {
        cJSON_ArrayForEach(item, argv)
            words[n++] = cJSON_IsString(item) ? item->valuestring : "";
        n = 0;
        for (int i = 0; i < variables; i++)
            if (!*w->visible || strncmp(environ[i], "CUDA_VISIBLE_DEVICES=", 21))
                environment[n++] = environ[i];
        if (*w->visible)
            environment[n] = w->visible;
        w->locks[w->lock_count++] = LOCK_FILE;
        struct tune_child_options o = {.argv = words, .environment = environment, .log_limit = JOB_LOG_MOST, .grace_s = GRACE_S,
                                       .cpus = w->cpus, .cpu_count = w->cpu_count, .own_cpus = w->cpu_count > 0,
                                       .locks = w->locks, .lock_count = w->lock_count};
        o.log = job_path(log, w->id, JOB_LOG) < 0 ? NULL : log;
        if (w->cpu_count == 0)
            o.cpus = NULL;
        w->child = tune_child_start(&o);
    }
    free(words);
    free(environment);
    return w->child ? 0 : -1;
}

static bool has_ended(const struct work *w)
{
    struct pollfd p = {.fd = tune_child_descriptor(w->child), .events = POLLIN};
    return poll(&p, 1, 0) > 0;
}

/* Wait until the guard has reserved the job's cores, so that the next job of the queue sees that they are taken. */
static void await_cores(struct work *w)
{
    struct tune_child_holder holder;
    while (w->cpu_count > 0 && !has_ended(w) && !w->stop && !(tune_child_cpus_taken(w->cpus, w->cpu_count, &holder) && holder.ours)) {
        take_orders(w);
        nap(LOOK_MS / 5);
    }
}

/* Send the orders on. The guard skips the grace time at the second one. */
static void stop_child(struct work *w, int *sent)
{
    if (*sent == 0) {
        tune_child_stop(w->child);
        change(w, "stopping", w->now ? "asked to end at once" : "asked to save and end; it has a minute");
        *sent = 1;
    }
    if (w->now && *sent == 1) {
        tune_child_stop(w->child);
        *sent = 2;
    }
}

/* ---- the end ---- */

/* The log's last lines, into text. */
static void last_lines(const struct work *w, char text[REASON_MOST])
{
    char path[TUNE_PATH_MAX];
    int fd = job_path(path, w->id, JOB_LOG) < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW), lines = 0;
    off_t size = fd < 0 ? 0 : lseek(fd, 0, SEEK_END), from = size > REASON_MOST - 1 ? size - (REASON_MOST - 1) : 0;
    ssize_t n = fd < 0 ? 0 : pread(fd, text, REASON_MOST - 1, from);
    if (fd >= 0)
        close(fd);
    while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
        n--;
    n = n > 0 ? n : 0;
    text[n] = 0;
    ssize_t at = n;
    while (at > 0 && !(text[at - 1] == '\n' && ++lines == REASON_LINES))
        at--;
    if (at == 0 && from > 0) { /* it begins in the middle of a line */
        const char *line = strchr(text, '\n');
        at = line ? line + 1 - text : 0;
    }
    memmove(text, text + at, (size_t)(n - at) + 1);
    for (char *c = text; *c; c++)
        if (*c == '\r')
            *c = '\n';
}

/* The run folder: the one that is known, or the one that the program's header names ("# run folder NAME"). */
static void find_folder(struct work *w)
{
    char path[TUNE_PATH_MAX], line[TUNE_PATH_MAX + 64];
    if (*job_text(w->job, "folder") || job_path(path, w->id, JOB_LOG) < 0)
        return;
    FILE *in = fopen(path, "re");
    for (int n = 0; in && n < 1000 && fgets(line, sizeof line, in); n++) {
        const char *at = strstr(line, "run folder");
        if (*line != '#' || !at)
            continue;
        at += strlen("run folder");
        at += strspn(at, " \t:");
        line[strcspn(line, "\n")] = 0;
        if (*at && *at != '/' && tune_run_is(at))
            tune_cjson_put_text(w->job, "folder", at);
        break;
    }
    if (in)
        fclose(in);
}

static void finish(struct work *w, bool asked)
{
    const struct tune_child_end *e = &w->end;
    char last[REASON_MOST] = "", *reason = NULL;
    find_folder(w);
    const char *folder = job_text(w->job, "folder");
    char *root = realpath(".", NULL);
    struct tune_run *run = *folder && root ? tune_run_open_within(folder, root, NULL) : NULL;
    enum tune_run_state found = run ? run->state : TUNE_RUN_ABSENT;
    int signal = e->how == TUNE_CHILD_SIGNALLED ? e->code : e->how == TUNE_CHILD_STOPPED && e->code > 128 ? e->code - 128 : 0;
    if (run)
        tune_cjson_put_text(w->job, "run_state", tune_run_state_name(found));
    if (signal)
        tune_cjson_put_whole(w->job, "signal", signal);
    else if (e->how != TUNE_CHILD_NOT_STARTED)
        tune_cjson_put_whole(w->job, "exit_code", e->code);
    tune_cjson_put_number(w->job, "seconds", e->seconds);
    bool bad = e->how != TUNE_CHILD_EXITED || e->code != 0, diverged = found == TUNE_RUN_DIVERGED;
    bool cancelled = !diverged && (asked || (e->how == TUNE_CHILD_EXITED && e->code > 128 && found == TUNE_RUN_STOPPED));
    const char *state = diverged ? "diverged" : cancelled ? "cancelled" : bad ? "failed" : "succeeded";
    if (bad && !cancelled)
        last_lines(w, last);
    int made = 0;
    if (cancelled)
        made = asprintf(&reason, "stopped%s%s%s", signal == SIGKILL ? ", and killed" : "", run ? "; the run is " : "", run ? tune_run_state_name(found) : "");
    else if (bad)
        made = asprintf(&reason, "%s%s%s%s", e->how == TUNE_CHILD_NOT_STARTED ? e->reason : e->oom_killed ? "the kernel killed it for want of memory" :
                        signal ? "it ended by a signal" : "", (signal || e->how == TUNE_CHILD_NOT_STARTED) && *last ? "\n" : "", last,
                        run && *run->reason && !*last ? run->reason : "");
    if (made < 0)
        reason = NULL;
    change(w, state, reason ? reason : run && found == TUNE_RUN_DIVERGED ? run->reason : "");
    free(reason);
    tune_run_free(run);
    free(root);
}

static void supervise_child(struct work *w)
{
    int sent = 0;
    tune_cjson_put_text(w->job, "slot", w->slot);
    await_cores(w);
    change(w, "running", "");
    flock(PLACE_FILE, LOCK_UN);
    while (!has_ended(w)) {
        struct pollfd p[] = {{.fd = tune_child_descriptor(w->child), .events = POLLIN}, {.fd = CONTROL_FILE, .events = POLLIN}};
        if (w->stop)
            stop_child(w, &sent);
        poll(p, 2, *job_text(w->job, "folder") ? -1 : 500);
        take_orders(w);
        if (!*job_text(w->job, "folder")) {
            find_folder(w);
            if (*job_text(w->job, "folder"))
                job_write(w->id, w->job);
        }
    }
    tune_child_end(w->child, &w->end);
    finish(w, sent > 0);
}

static void work(struct work *w)
{
    int slot = 0, turn = 0;
    w->before_count = job_ids(&w->before);
    while (w->before_count > 0 && w->before[w->before_count - 1] >= job_number(w->id))
        w->before_count--;
    for (;;) {
        struct pollfd p = {.fd = CONTROL_FILE, .events = POLLIN};
        take_orders(w);
        if (w->stop) {
            change(w, "cancelled", "cancelled before it began");
            return;
        }
        bool behind = is_behind(w);
        if (!behind && (slot = take_slot(w)) != 0)
            break;
        if (turn++ % TURNS == 0)
            explain(w, behind);
        poll(&p, 1, LOOK_MS);
    }
    if (slot < 0 || start(w) < 0)
        change(w, "failed", tune_error_message());
    else
        supervise_child(w);
}

/* The last word must reach the disk, so a full one is tried again until the job's folder is gone. */
static void write_last(struct work *w)
{
    char path[TUNE_PATH_MAX];
    while (job_path(path, w->id, "") == 0 && tune_file_exists(path)) {
        cJSON *there = tune_cjson_read_in(path, JOB_JSON, JOB_JSON_MOST);
        bool good = there && job_is_over(job_state(there));
        cJSON_Delete(there);
        if (good || job_write(w->id, w->job) == 0)
            return;
        nap(1000);
    }
}

int studio_supervise(int argc, char **argv)
{
    static struct work w;
    char path[TUNE_PATH_MAX];
    if (argc != 3 || strcmp(argv[1], JOB_WORD))
        return -1;
    /* the first process ends at once, so the one who started us has no child */
    pid_t pid = fork();
    if (pid != 0)
        _exit(pid < 0);
    for (int fd = LOCK_FILE; fd <= CONTROL_FILE; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
    syscall(SYS_close_range, CONTROL_FILE + 1, ~0U, 0); /* musl has no function for it */
    signal(SIGPIPE, SIG_IGN), signal(SIGXFSZ, SIG_IGN), signal(SIGHUP, SIG_IGN);
    snprintf(w.id, sizeof w.id, "%s", argv[2]);
    if (job_number(w.id) < 0 || job_path(path, w.id, "") < 0 || !(w.job = tune_cjson_read_in(path, JOB_JSON, JOB_JSON_MOST)))
        return 1;
    if (studio_find_secrets(&w.secrets) < 0)
        return 1;
    tune_cjson_put_whole(w.job, "pid", getpid());
    work(&w);
    write_last(&w);
    studio_forget_secrets(&w.secrets);
    cJSON_Delete(w.job);
    free(w.before);
    return 0;
}
