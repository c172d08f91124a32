/* plan.c - ask the program whether it has the memory for a job, before anything is measured. */
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sweep.h"

enum { PLAN_S = 30, PLAN_LOG = 1 << 16 };

/* The first sentence of the log's last line, without the program's name. */
static void last_line(const char *log, char *text, size_t size)
{
    char *all;
    size_t length;
    text[0] = 0;
    if (tune_file_read(log, PLAN_LOG, &all, &length) < 0) {
        tune_error_clear();
        return;
    }
    while (length > 0 && all[length - 1] == '\n')
        all[--length] = 0;
    const char *line = strrchr(all, '\n');
    line = line ? line + 1 : all;
    const char *colon = strstr(line, ": ");
    line = colon && !memchr(line, ' ', (size_t)(colon - line)) ? colon + 2 : line;
    const char *stop = strstr(line, ". ");
    snprintf(text, size, "%.*s", stop ? (int)(stop - line) : (int)strlen(line), line);
    free(all);
}

static int run(const char *const *argv, const char *log, struct tune_child_end *end)
{
    const struct tune_child_options o = {.argv = argv, .environment = (const char *const *)sweep.environment, .log = log,
                                         .log_limit = PLAN_LOG, .limit_s = PLAN_S, .grace_s = 1};
    struct tune_child *child = tune_child_start(&o);
    TRY(child ? 0 : -1);
    struct pollfd ended = {.fd = tune_child_descriptor(child), .events = POLLIN};
    while (!*my.tune.stop_signal && poll(&ended, 1, 100) <= 0)
        ;
    if (*my.tune.stop_signal)
        tune_child_stop(child);
    return tune_child_end(child, end);
}

/* 1 with the reason: it does not fit; 0: it does, or the program does not say; -1. */
static int ask(const struct tune_experiment *e, const char *program, const struct tune_command *c, char *why, size_t size)
{
    char log[TUNE_PATH_MAX];
    struct tune_child_end end;
    const char *folder = getenv("TMPDIR");
    TRY(tune_path(log, "%s/tune-plan-XXXXXX", folder && *folder ? folder : P_tmpdir));
    int fd = mkstemp(log), n = 0;
    const char **argv = calloc((size_t)(c->argument_count + e->plan_count) + 2, sizeof *argv);
    if (fd < 0 || !argv) {
        free(argv);
        return tune_error_set("%s: cannot make this file for a program's plan", log);
    }
    close(fd);
    argv[n++] = program;
    for (int i = 0; i < c->argument_count; i++)
        argv[n++] = c->arguments[i];
    for (int i = 0; i < e->plan_count; i++)
        argv[n++] = e->plan[i];
    int code = run(argv, log, &end);
    if (code == 0 && end.how == TUNE_CHILD_EXITED && end.code == TUNE_ERROR_CANNOT) {
        last_line(log, why, size);
        code = 1;
    }
    unlink(log);
    free(argv);
    return code;
}

int sweep_plan(const struct tune_job *job, char *why, size_t size)
{
    const struct tune_experiment *e = sweep.protocols[job->protocol].experiment;
    struct tune_word words[2];
    struct tune_command c;
    if (e->plan_count == 0 || !*sweep.programs[job->protocol].path)
        return 0;
    TRY(tune_experiment_command(e, job->inputs, words, sweep_words(e, words), &c));
    int code = ask(e, sweep.programs[job->protocol].path, &c, why, size);
    tune_command_free(&c);
    return code;
}
