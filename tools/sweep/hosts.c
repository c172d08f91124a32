/* hosts.c - --launcher 'ssh HOST': start one sweep on each host, by a command of the user. These
 * sweeps share the operation by --join, and run until nothing is left. A container can be a host,
 * too: 'docker exec NAME'. */
#include <poll.h>

#include "core/nearest.h"
#include "launch.h"

enum {
    IDLE_MOST = 5,
    FAILURES_MOST = 3, /* consecutive failures, each soon after its start or without a row */
    SOON_S = 30,
    PAUSE_S = 5,       /* pause before the next start, times the consecutive failures */
    LAST_S = 5,        /* time for the processes to end when nothing is left */
};

struct host {
    const char *prefix;
    char name[16]; /* name of its log */
    struct tune_child *child;
    int failures, idle;       /* idle: how often in a row it ended well, and there was no new row */
    int64_t rows;             /* launch.rows when it started */
    double started_s, next_s; /* next_s: earliest time of the next start */
    bool given_up;
};

struct hosts {
    char *text;
    struct host all[MOST_PATHS];
    int count;
    bool begun; /* the script has been written */
};

static bool accepts(const char *text)
{
    return text;
}

static int open_hosts(struct launch *l)
{
    const char *prefixes[MOST_PATHS];
    struct hosts *hosts = l->own = calloc(1, sizeof *hosts);
    if (!hosts || !(hosts->text = strdup(l->plan->record.launcher)))
        return no_memory();
    TRY(hosts->count = tune_name_split(hosts->text, prefixes, MOST_PATHS));
    if (hosts->count == 0)
        return tune_error_usage("--launcher: expected slurm, or a command for each host, such as 'ssh HOST'");
    for (int i = 0; i < hosts->count; i++) {
        if (!strcmp(prefixes[i], "slurm"))
            return tune_error_usage("--launcher: slurm cannot be combined with other launchers");
        hosts->all[i].prefix = prefixes[i];
        snprintf(hosts->all[i].name, sizeof hosts->all[i].name, "host-%d", i + 1);
    }
    l->batch = hosts->count * (l->plan->flags->in_flight > 0 ? l->plan->flags->in_flight : 1);
    return 0;
}

static void header(const struct launch *l, FILE *f, int jobs)
{
    (void)l;
    (void)jobs;
    fputs("job=$1\n", f);
}

static int start_host(const struct launch *l, struct host *h)
{
    extern char **environ;
    char line[2 * TUNE_PATH_MAX + 64], log[TUNE_PATH_MAX];
    const char *const argv[] = {"sh", "-c", line, NULL};
    snprintf(line, sizeof line, "exec %s sh %s %s", h->prefix, l->script, h->name);
    TRY(tune_path(log, "%s/%s.out.log", l->folder, h->name));
    const struct tune_child_options o = {.argv = argv, .environment = (const char *const *)environ, .log = log,
                                         .log_limit = LOG_LIMIT, .grace_s = l->plan->flags->grace};
    h->started_s = tune_clock_s();
    h->rows = l->rows;
    return (h->child = tune_child_start(&o)) ? 0 : -1;
}

static bool is_plain(const char *path)
{
    return !path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.,:=@%+-")];
}

/* Find the cause of a host's failure: the meaning of its exit code, or the last line of its log. */
static void find_cause(const struct launch *l, const struct host *h, int code, char *text,
                       size_t size)
{
    char out[32];
    if (launch_cause(l, "this host", code, text, size))
        return;
    snprintf(out, sizeof out, "%s.out", h->name);
    launch_last_line(l, h->name, text, size);
    if (!*text)
        launch_last_line(l, out, text, size);
}

static int end_host(const struct launch *l, struct host *h)
{
    struct tune_child_end end;
    char why[TUNE_PATH_MAX + 128];
    TRY(tune_child_end(h->child, &end));
    h->child = NULL;
    double now = tune_clock_s();
    bool exited = end.how == TUNE_CHILD_EXITED;
    if (exited && end.code == 0) {
        h->failures = 0;
        h->next_s = now + 1;
        return 0;
    }
    h->failures = now - h->started_s > SOON_S && l->rows > h->rows ? 1 : h->failures + 1;
    h->next_s = now + PAUSE_S * h->failures;
    h->given_up = (exited && launch_never_runs(end.code)) || h->failures >= FAILURES_MOST;
    find_cause(l, h, end.code, why, sizeof why);
    progress_log(l->progress, "%s: %s %d%s%s%s", h->prefix, exited ? "exit code" : "signal", end.code, *why ? ": " : "", why,
                 h->given_up ? "; it is not used any more" : "");
    return 0;
}

static bool has_ended(const struct host *h, int wait_ms)
{
    struct pollfd over = {.fd = tune_child_descriptor(h->child), .events = POLLIN};
    return poll(&over, 1, wait_ms) > 0;
}

static int look_at_hosts(struct launch *l)
{
    struct hosts *hosts = l->own;
    for (int i = 0; i < hosts->count; i++) {
        struct host *h = &hosts->all[i];
        if (!h->child || !has_ended(h, 0))
            continue;
        TRY(end_host(l, h));
        TRY(launch_read_rows(l));
        h->idle = h->failures > 0 || l->rows > h->rows || l->count == 0 ? 0 : h->idle + 1;
        if (h->idle == IDLE_MOST) {
            h->given_up = true;
            progress_log(l->progress, "%s: ended %d times without a result, though points are left; it is not used any more: see %s/%s.log", h->prefix,
                         h->idle, l->folder, h->name);
        }
    }
    return 1;
}

static int begin_hosts(struct launch *l, struct hosts *hosts)
{
    if (!is_plain(l->script))
        return tune_error_usage("%s: --launcher needs a store whose path has no spaces and no characters of the shell", l->script);
    hosts->begun = true;
    return launch_write_script(l, hosts->count);
}

static int start_hosts(struct launch *l)
{
    struct hosts *hosts = l->own;
    int used = 0;
    TRY(hosts->begun ? 0 : begin_hosts(l, hosts));
    l->running = 0;
    for (int i = 0; i < hosts->count; i++) {
        struct host *h = &hosts->all[i];
        if (!h->child && !h->given_up && tune_clock_s() >= h->next_s)
            TRY(start_host(l, h));
        l->running += h->child != NULL;
        used += !h->given_up;
    }
    return used > 0 ? 0 : tune_error_cannot("no host is left that can measure; %d point%s left",
                                            l->count, l->count == 1 ? " is" : "s are");
}

static void close_hosts(struct launch *l)
{
    struct hosts *hosts = l->own;
    struct tune_child_end end;
    struct tune_error why;
    tune_error_save(&why);
    double until = tune_clock_s() + (l->count > 0 ? 0 : LAST_S);
    for (int i = 0; i < hosts->count; i++) {
        double left = until - tune_clock_s();
        struct host *h = &hosts->all[i];
        /* for example an ssh to a host that does not answer */
        if (h->child && !has_ended(h, left > 0 ? (int)(left * 1e3) : 0))
            tune_child_stop(h->child);
    }
    for (int i = 0; i < hosts->count; i++)
        if (hosts->all[i].child)
            tune_child_end(hosts->all[i].child, &end);
    tune_error_restore(&why);
    free(hosts->text);
    free(hosts);
}

const struct launcher launcher_hosts = {accepts, open_hosts, header, NULL, look_at_hosts, start_hosts, close_hosts};
