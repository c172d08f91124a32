/* slurm.c - the job of this process, by scontrol and /proc. */
#include "machine/slurm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/try.h"
#include "machine/guard.h"

extern char **environ;

const char *tune_slurm_job(void)
{
    const char *job = getenv("SLURM_JOB_ID");
    return job && *job ? job : NULL;
}

/* Read up to size - 1 bytes to the end, and discard the rest. */
static void read_all(int fd, char *text, size_t size)
{
    size_t used = 0;
    char more[4096];
    ssize_t n;
    while ((n = read(fd, more, sizeof more)) > 0 || (n < 0 && errno == EINTR)) {
        size_t take = n < 0 ? 0 : (size_t)n < size - 1 - used ? (size_t)n : size - 1 - used;
        memcpy(text + used, more, take);
        used += take;
    }
    text[used] = 0;
}

static int spawn_command(pid_t *pid, int out, char *const *argv)
{
    posix_spawn_file_actions_t files;
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    for (int fd = 1; fd <= 2 && !error; fd++)
        error = posix_spawn_file_actions_adddup2(&files, out, fd);
    if (!error)
        error = posix_spawnp(pid, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* Run `scontrol <verb> [job] <job>`. text gets what it prints. */
static int scontrol(const char *verb, const char *what, const char *job, char *text, size_t size)
{
    char *argv[5] = {(char *)"scontrol", (char *)verb, (char *)(what ? what : job), (char *)(what ? job : NULL), NULL};
    int ends[2], status = 0;
    pid_t pid, got;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return tune_error_set("scontrol %s %s: %s", verb, job, strerror(errno));
    int error = spawn_command(&pid, ends[1], argv);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return tune_error_set("scontrol %s %s: %s", verb, job, strerror(error));
    }
    read_all(ends[0], text, size);
    close(ends[0]);
    while ((got = waitpid(pid, &status, 0)) < 0 && errno == EINTR)
        ;
    if (got == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    for (size_t n = strlen(text); n > 0 && text[n - 1] == '\n'; n--)
        text[n - 1] = 0;
    if (got == pid && WIFEXITED(status))
        return tune_error_set("scontrol %s %s: exit code %d: %.800s", verb, job, WEXITSTATUS(status), *text ? text : "it said nothing");
    return tune_error_set("scontrol %s %s was killed", verb, job);
}

/* Seconds of Slurm's "[days-]hours:minutes:seconds" behind a name such as " RunTime="; -1: no such
 * text, as with a limit of UNLIMITED. */
static long seconds(const char *text, const char *name)
{
    const char *at = strstr(text, name);
    int n[3] = {0}, days = 0;
    if (!at)
        return -1;
    at += strlen(name);
    if (at[strspn(at, "0123456789")] == '-' && sscanf(at, "%d-", &days) == 1)
        at = strchr(at, '-') + 1;
    return sscanf(at, "%d:%d:%d", n, n + 1, n + 2) == 3 ? days * 86400L + n[0] * 3600L + n[1] * 60L + n[2] : -1;
}

/* True if Slurm is ending the job for another reason than its time limit or a job that goes before
 * it. While Slurm ends a job, scontrol shows the state COMPLETING for all reasons alike. */
static bool cancelled(const char *text)
{
    if (strstr(text, "JobState=CANCELLED"))
        return true;
    long ran = seconds(text, " RunTime="), limit = seconds(text, " TimeLimit=");
    bool preempted = strstr(text, " PreemptTime=") && !strstr(text, " PreemptTime=None");
    return strstr(text, "JobState=COMPLETING") && !preempted && (limit < 0 || ran < limit);
}

int tune_slurm_requeue(const char *job, bool idle)
{
    char text[16384];
    TRY(scontrol("show", "job", job, text, sizeof text));
    if (cancelled(text))
        return 1;
    long limit = seconds(text, " TimeLimit=");
    if (idle && limit >= 0 && 2 * seconds(text, " RunTime=") >= limit)
        return 2;
    return scontrol("requeue", NULL, job, text, sizeof text);
}

/* The slurmstepd that this process descends from; 0: none is seen. */
static pid_t step_daemon(void)
{
    struct tune_process p;
    for (pid_t pid = getppid(); pid > 0 && tune_process_read(pid, &p); pid = p.parent)
        if (strcmp(p.name, "slurmstepd") == 0)
            return pid;
    return 0;
}

/* The daemon may be signalling: the thread that does so never sleeps between two signals.
 * 1: some thread is awake. 0: none is. -1: the daemon is not seen. */
static int awake(pid_t daemon)
{
    char folder[40];
    struct tune_process thread;
    int seen = 0, busy = 0;
    snprintf(folder, sizeof folder, "/proc/%d/task", daemon);
    DIR *threads = opendir(folder);
    while (threads && tune_process_next(threads, &thread)) {
        seen++;
        busy += thread.busy;
    }
    if (threads)
        closedir(threads);
    return seen == 0 ? -1 : busy > 0;
}

bool tune_slurm_signals_sent(void)
{
    pid_t daemon = step_daemon();
    int is = daemon > 0 ? awake(daemon) : -1;
    for (int waited = 0; is > 0 && waited < 2000; waited++) {
        poll(NULL, 0, 1);
        is = awake(daemon);
    }
    return is == 0;
}
