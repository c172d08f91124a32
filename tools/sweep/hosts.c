/* hosts.c - --launcher 'ssh HOST': one sweep on each host, started by a command of the user. They share the operation by --join, and
 * each goes on until nothing is left. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/nearest.h"
#include "core/print.h"
#include "launch.h"

enum {
    FAILURES_MOST = 3, /* in a row, each soon after its start or without a row */
    SOON_S = 30,
    PAUSE_S = 5,       /* before the next start, times the failures in a row */
    LAST_S = 5,        /* for the processes to end when nothing is left */
};

struct host {
    const char *prefix;
    char job[16]; /* names its log */
    struct tune_child *child;
    int failures;
    int64_t rows;             /* launch.rows at its start */
    double started_s, next_s; /* next_s: no start before that */
    bool given_up;
};

static struct {
    char *text;
    struct host *hosts;
    int count;
} list;

static int check(void)
{
    const char *prefixes[MOST_PATHS];
    if (!(list.text = strdup(sweep.record.launcher)))
        return sweep_no_memory();
    int n = tune_name_split(list.text, prefixes, MOST_PATHS);
    TRY(n);
    if (n == 0)
        return tune_error_usage("--launcher: expected slurm, or a command for each host, such as 'ssh HOST'");
    if (!(list.hosts = calloc((size_t)n, sizeof *list.hosts)))
        return sweep_no_memory();
    for (int i = 0; i < n; i++) {
        if (!strcmp(prefixes[i], "slurm"))
            return tune_error_usage("--launcher: slurm stands alone");
        list.hosts[i].prefix = prefixes[i];
        snprintf(list.hosts[i].job, sizeof list.hosts[i].job, "host-%d", i + 1);
    }
    list.count = n;
    return 0;
}

static void header(FILE *f, int jobs)
{
    (void)jobs;
    fputs("job=$1\n", f);
}

static int start(struct host *h)
{
    extern char **environ;
    char line[2 * TUNE_PATH_MAX + 64], log[TUNE_PATH_MAX];
    const char *const argv[] = {"sh", "-c", line, NULL};
    snprintf(line, sizeof line, "exec %s sh %s %s", h->prefix, launch.script, h->job);
    TRY(tune_path(log, "%s/%s.out.log", launch.folder, h->job));
    const struct tune_child_options o = {.argv = argv, .environment = (const char *const *)environ, .log = log,
                                         .log_limit = LOG_LIMIT, .grace_s = my.grace};
    h->started_s = tune_clock_s();
    h->rows = launch.rows;
    return (h->child = tune_child_start(&o)) ? 0 : -1;
}

static bool is_plain(const char *path)
{
    return !path[strspn(path, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.,:=@%+-")];
}

static void last_words(const struct host *h, char *text, size_t size)
{
    char out[32];
    launch_last_line(h->job, text, size);
    snprintf(out, sizeof out, "%s.out", h->job);
    if (!*text)
        launch_last_line(out, text, size);
}

static int ended(struct host *h)
{
    struct tune_child_end end;
    char words[512];
    TRY(tune_child_end(h->child, &end));
    h->child = NULL;
    double now = tune_clock_s();
    if (end.how == TUNE_CHILD_EXITED && end.code == 0) {
        h->failures = 0;
        h->next_s = now + 1;
        return 0;
    }
    last_words(h, words, sizeof words);
    h->failures = now - h->started_s > SOON_S && launch.rows > h->rows ? 1 : h->failures + 1;
    h->next_s = now + PAUSE_S * h->failures;
    bool final = end.how == TUNE_CHILD_EXITED && launch_never_runs(end.code);
    h->given_up = final || h->failures >= FAILURES_MOST;
    sweep_clear_status();
    printf("# %s: %s %d", h->prefix, end.how == TUNE_CHILD_EXITED ? "exit code" : "signal", end.code);
    if (end.code == 96)
        printf(": its user cannot read the values of --env in %s/env", launch.folder);
    else if (end.code == 97)
        printf(": this host does not see the store %s", launch.store);
    else if (end.code == 98)
        printf(": this host does not see the program or the folder; see %s", launch.script);
    else
        sweep_print(*words ? ": " : "", words);
    printf("%s\n", h->given_up ? "; it is not used any more" : "");
    fflush(stdout);
    return 0;
}

static int begin(void)
{
    if (!is_plain(launch.script))
        return tune_error_usage("%s: --launcher needs a store whose path has no spaces and no characters of the shell", launch.script);
    return launch_write_script(list.count);
}

static int step(void)
{
    static bool begun;
    int used = 0;
    TRY(begun ? 0 : begin());
    begun = true;
    launch.running = 0;
    for (int i = 0; i < list.count; i++) {
        struct host *h = &list.hosts[i];
        struct pollfd over = {.fd = h->child ? tune_child_descriptor(h->child) : -1, .events = POLLIN};
        if (h->child && poll(&over, 1, 0) > 0) {
            TRY(ended(h));
            TRY(launch_read_rows());
        }
        if (!h->child && !h->given_up && launch.count > 0 && tune_clock_s() >= h->next_s)
            TRY(start(h));
        launch.running += h->child != NULL;
        used += !h->given_up;
    }
    if (used == 0 && launch.count > 0)
        return tune_error_cannot("no host measures any more; %d point%s left", launch.count, launch.count == 1 ? " is" : "s are");
    return 0;
}

static void end(void)
{
    struct tune_child_end end;
    struct tune_error why;
    tune_error_save(&why);
    double until = tune_clock_s() + (launch.count > 0 ? 0 : LAST_S);
    for (int i = 0; i < list.count; i++) {
        if (!list.hosts[i].child)
            continue;
        double left = until - tune_clock_s();
        struct pollfd over = {.fd = tune_child_descriptor(list.hosts[i].child), .events = POLLIN};
        if (poll(&over, 1, left > 0 ? (int)(left * 1e3) : 0) <= 0) /* such as an ssh to a host that does not answer */
            tune_child_stop(list.hosts[i].child);
    }
    for (int i = 0; i < list.count; i++)
        if (list.hosts[i].child)
            tune_child_end(list.hosts[i].child, &end);
    tune_error_restore(&why);
    free(list.hosts);
    free(list.text);
}

const struct launcher sweep_hosts = {check, header, step, end};
