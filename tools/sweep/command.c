/* command.c - run a program to its end, or until a signal arrives. */
#include <errno.h>
#include <poll.h>
#include <unistd.h>

#include "sweep.h"

enum { POLL_MS = 100 }; /* maximum time until a signal is noticed */

int command_run(const struct plan *plan, const struct tune_child_options *o,
                struct tune_child_end *end)
{
    struct tune_child *child = tune_child_start(o);
    TRY(child ? 0 : -1);
    struct pollfd ended = {.fd = tune_child_descriptor(child), .events = POLLIN};
    while (!is_stopped(plan) && poll(&ended, 1, POLL_MS) <= 0)
        ;
    if (is_stopped(plan))
        tune_child_stop(child);
    return tune_child_end(child, end);
}

int command_output(const struct plan *plan, const char *const *argv, const char *const *environment,
                   double limit_s, char *text, size_t size, struct tune_child_end *end)
{
    char log[TUNE_PATH_MAX];
    const char *folder = getenv("TMPDIR");
    TRY(tune_path(log, "%s/tune-sweep-XXXXXX", folder && *folder ? folder : P_tmpdir));
    int fd = mkstemp(log);
    if (fd < 0)
        return tune_error_set("%s: cannot make this file for the output of %s: %s", log, argv[0],
                              strerror(errno));
    const struct tune_child_options o = {.argv = argv, .environment = environment, .log = log, .log_limit = (int64_t)size - 1,
                                         .limit_s = limit_s, .grace_s = 1};
    int code = command_run(plan, &o, end);
    ssize_t n = code == 0 ? pread(fd, text, size - 1, 0) : 0;
    text[n > 0 ? n : 0] = 0;
    close(fd);
    unlink(log);
    return code;
}

const char *last_line(char *text)
{
    size_t length = strlen(text);
    while (length > 0 && text[length - 1] == '\n')
        text[--length] = 0;
    const char *line = strrchr(text, '\n');
    return line ? line + 1 : text;
}
