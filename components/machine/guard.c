/* guard.c - the guard: start the program, write its output to the log, end it and all its children.
 *
 * It has one thread and one poll loop. All signals are blocked; the few that matter arrive as
 * bytes. The guard is a subreaper, so the program's orphans become its children. A guard without a
 * child thus has no descendant left. Only the guard reaps its children, so a pid that it signals
 * never belongs to another process.
 *
 *     RUNS      the program runs, until it ends, its time ends, a stop arrives, or the parent dies
 *     ENDS      SIGTERM once, to the group and to children outside it; then the grace period
 *     IS_KILLED SIGKILL to all of them, and to new children, until none is left */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "machine/child.h"
#include "machine/guard.h"
#include "machine/share.h"
#include "machine/streams.h"
#include "machine/cgroup.h"
#include "core/clock.h"

enum { LAUNCH_STACK = 64 << 10, MOST_SIGNALLED = 64 };
#define ROUND_S .02
#define LOCK_POLL_MS 20
enum phase { RUNS, ENDS, IS_KILLED };

struct guard {
    struct tune_guard_plan plan;
    char *text;                    /* what follows the plan */
    const char *path, **argv, **environment;
    const int *cpus;
    int socket, signals;           /* -1: closed */
    pid_t self, group, program;    /* process IDs; program: 0 after its end; group: kept */
    enum phase phase;
    double start_s, until_s; /* until_s: end of the grace period; then the next round of SIGKILL */
    bool changed;                  /* a child was reaped, so its children may now be ours */
    bool decided;                  /* end.how is set by us, not by how it ends */
    pid_t signalled[MOST_SIGNALLED]; /* processes outside the group that got SIGTERM; 0: unused */
    int64_t oom_kills;
    struct tune_share share;
    double look_s; /* time of the next look at its threads */
    struct tune_streams streams;
    struct tune_child_end end;
};

/* ---- the plan ---- */

static bool receive(void *data, size_t size)
{
    size_t got = 0;
    ssize_t n = 1;
    while (got < size && n > 0) {
        n = recv(TUNE_GUARD_SOCKET, (char *)data + got, size - got, MSG_WAITALL);
        if (n > 0)
            got += (size_t)n;
        else if (n < 0 && errno == EINTR)
            n = 1;
    }
    return got == size;
}

/* A list of strings that follow each other, ending with NULL. *at moves behind them. */
static const char **read_list(const char **at, int count)
{
    const char **list = calloc((size_t)count + 1, sizeof *list);
    for (int i = 0; i < count && list; i++, *at += strlen(*at) + 1)
        list[i] = *at;
    return list;
}

static bool read_plan(struct guard *g)
{
    if (!receive(&g->plan, sizeof g->plan) || !(g->text = malloc((size_t)g->plan.size)) ||
        !receive(g->text, (size_t)g->plan.size))
        return false;
    const char *at = g->text + (size_t)g->plan.cpu_count * sizeof *g->cpus;
    g->cpus = (const int *)(const void *)g->text;
    g->path = at;
    at += strlen(at) + 1;
    g->argv = read_list(&at, g->plan.argc);
    g->environment = read_list(&at, g->plan.variable_count);
    return g->argv && g->environment;
}

void tune_guard_unlock_cpus(const int *locks, int count)
{
    for (int i = 0; i < count; i++)
        close(locks[i]);
}

int tune_guard_lock(const char *name)
{
    /* sun_path begins with NUL: an abstract name, no file */
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    int n = snprintf(at.sun_path + 1, sizeof at.sun_path - 1, "tune.c/%s", name);
    if (n < 0 || (size_t)n >= sizeof at.sun_path - 1) {
        errno = ENAMETOOLONG;
        return -1;
    }
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, size) == 0)
        return fd;
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

bool tune_guard_lock_cpus(const int *cpus, int count, bool next, int *locks)
{
    for (int i = 0; i < count; i++) {
        char name[48];
        snprintf(name, sizeof name, "cpu/%d%s", cpus[i], next ? "/next" : "");
        locks[i] = tune_guard_lock(name);
        if (locks[i] >= 0)
            continue;
        int error = errno;
        tune_guard_unlock_cpus(locks, i);
        errno = error;
        return false;
    }
    return true;
}

/* Close all files that the parent had open, but for ours. The program must inherit
 * none. */
static void close_others(int locks)
{
    DIR *open_ones = opendir("/proc/self/fd");
    const struct dirent *entry;
    while (open_ones && (entry = readdir(open_ones))) {
        int fd = atoi(entry->d_name);
        if (fd >= TUNE_GUARD_DESCRIPTORS + locks && fd != dirfd(open_ones))
            close(fd);
    }
    if (open_ones)
        closedir(open_ones);
    for (int fd = TUNE_GUARD_SOCKET; fd < TUNE_GUARD_DESCRIPTORS + locks; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* ---- the program ---- */

struct launch {
    const struct guard *guard;
    cpu_set_t *cpus; /* NULL: those of the guard */
    size_t cpus_size;
    int outputs[2], report;
};

struct refusal {
    int error;
    char what[60];
};

static int refuse(const struct launch *l, const char *what)
{
    struct refusal r = {.error = errno};
    memcpy(r.what, what, strlen(what));
    return write(l->report, &r, sizeof r) == sizeof r ? 127 : 126;
}

/* Code of the program's process between clone and exec. It runs in the guard's memory while the
 * guard waits, so it may only make system calls. posix_spawn works like this too, but cannot ask
 * the kernel to end the program with its guard. */
static int launch(void *argument)
{
    const struct launch *l = argument;
    const struct guard *g = l->guard;
    sigset_t none;
    sigemptyset(&none);
    /* the guard is already gone */
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != g->self)
        return refuse(l, "be tied to its guard");
    if (setpgid(0, 0) < 0)
        return refuse(l, "have a process group");
    if (l->cpus && sched_setaffinity(0, l->cpus_size, l->cpus) < 0)
        return refuse(l, "be bound to these processors");
    if (fchdir(TUNE_GUARD_FOLDER) < 0)
        return refuse(l, "enter its folder");
    if (dup2(l->outputs[0], STDOUT_FILENO) < 0 || dup2(l->outputs[1], STDERR_FILENO) < 0)
        return refuse(l, "have its output");
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(g->path, (char *const *)g->argv, (char *const *)g->environment);
    return refuse(l, "be executed");
}

static bool choose_cpus(const struct guard *g, struct launch *l)
{
    int most = 0;
    if (g->plan.cpu_count == 0)
        return true;
    for (int i = 0; i < g->plan.cpu_count; i++)
        most = g->cpus[i] > most ? g->cpus[i] : most;
    l->cpus = CPU_ALLOC((size_t)most + 1);
    l->cpus_size = CPU_ALLOC_SIZE((size_t)most + 1);
    if (!l->cpus)
        return false;
    CPU_ZERO_S(l->cpus_size, l->cpus);
    for (int i = 0; i < g->plan.cpu_count; i++)
        CPU_SET_S((size_t)g->cpus[i], l->cpus_size, l->cpus);
    return true;
}

static void not_started(struct guard *g, const char *what, int error)
{
    g->end.how = TUNE_CHILD_NOT_STARTED;
    g->decided = true;
    const char *hint = error == ENOEXEC ? ": it is neither a program of this machine nor a script whose first line names what "
                                          "reads it (#!/bin/sh)"
                       : error == ENOENT ? ", or what its first line (#!) or its headers name to read it" : "";
    snprintf(g->end.reason, sizeof g->end.reason, "%.300s could not %s: %s%s", g->path, what, strerror(error), hint);
}

/* Start the program and set g->program. An error goes to g->end. */
static void start_program(struct guard *g)
{
    int report[2] = {-1, -1};
    struct launch l = {.guard = g, .outputs = {-1, -1}};
    struct refusal r = {.error = 0};
    char *stack = malloc(LAUNCH_STACK);
    pid_t pid = -1;
    if (stack && choose_cpus(g, &l) && tune_streams_open(&g->streams, l.outputs) && pipe2(report, O_CLOEXEC) == 0) {
        l.report = report[1];
        g->oom_kills = tune_cgroup_oom_kills("");
        tune_share_begin(&g->share, g->cpus, g->plan.cpu_count);
        g->start_s = tune_clock_s();
        g->look_s = g->start_s + TUNE_SHARE_S;
        pid = clone(launch, stack + LAUNCH_STACK, CLONE_VM | CLONE_VFORK | SIGCHLD, &l);
    }
    int error = errno;
    if (report[1] >= 0)
        close(report[1]);
    for (int i = 0; i < 2; i++)
        if (l.outputs[i] >= 0)
            close(l.outputs[i]);
    if (pid < 0)
        not_started(g, "be started", error);
    else if (read(report[0], &r, sizeof r) == sizeof r) /* otherwise exec closed it */
        not_started(g, r.what, r.error);
    if (report[0] >= 0)
        close(report[0]);
    g->program = pid > 0 ? pid : 0;
    g->group = g->program;
    if (l.cpus)
        CPU_FREE(l.cpus);
    free(stack);
}

/* ---- the end ---- */

static bool was_signalled(struct guard *g, pid_t pid)
{
    int free_one = -1;
    for (int i = 0; i < MOST_SIGNALLED; i++) {
        if (g->signalled[i] == pid)
            return true;
        free_one = g->signalled[i] == 0 ? i : free_one;
    }
    if (free_one < 0)
        return true; /* too many: they wait until the grace period ends */
    g->signalled[free_one] = pid;
    return false;
}

/* Send SIGTERM or SIGKILL to the guard's children and to the program's group. Signalling a group
 * reaches each member once, even if it forks meanwhile. The group's number is valid until the
 * program is reaped. After that, a process of the guard's session in the group shows that it still
 * is. */
static void signal_all(struct guard *g, int number, bool with_group)
{
    struct tune_process p;
    bool group = g->program > 0;
    DIR *proc = opendir("/proc");
    while (proc && tune_process_next(proc, &p)) {
        if (p.group == g->group && p.session == g->self)
            group = true;
        else if (p.parent == g->self && !p.dead && (number == SIGKILL || !was_signalled(g, p.pid))) {
            kill(p.pid, number);
            kill(p.pid, SIGCONT); /* a stopped process would not receive SIGTERM */
        }
    }
    if (proc)
        closedir(proc);
    if (with_group && group && g->group > 0) {
        kill(-g->group, number);
        kill(-g->group, SIGCONT);
    }
}

static void end_all(struct guard *g)
{
    g->phase = ENDS;
    g->until_s = tune_clock_s() + g->plan.grace_s;
    signal_all(g, SIGTERM, true);
}

/* Begin to end the program. A second request ends it at once. */
static void stop(struct guard *g, enum tune_child_how how)
{
    if (g->phase == RUNS) {
        g->end.how = how;
        g->decided = true;
        end_all(g);
    } else {
        g->until_s = 0;
    }
}

static void program_ended(struct guard *g, int status)
{
    int code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    bool killed = code == (WIFSIGNALED(status) ? SIGKILL : 128 + SIGKILL);
    g->program = 0;
    g->end.seconds = tune_clock_s() - g->start_s;
    if (!g->decided)
        g->end.how = WIFSIGNALED(status) ? TUNE_CHILD_SIGNALLED : TUNE_CHILD_EXITED;
    if (g->end.how != TUNE_CHILD_NOT_STARTED)
        g->end.code = g->decided && WIFSIGNALED(status) ? 128 + code : code;
    g->end.oom_killed = !g->decided && killed && tune_cgroup_oom_kills("") > g->oom_kills;
    g->decided = true;
}

/* Reap children. Returns true if a child is left. */
static bool reap(struct guard *g)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        g->changed = true;
        if (pid == g->program)
            program_ended(g, status);
        for (int i = 0; i < MOST_SIGNALLED; i++)
            if (g->signalled[i] == pid)
                g->signalled[i] = 0;
    }
    return pid == 0;
}

/* ---- events ---- */

static void read_signals(struct guard *g)
{
    struct signalfd_siginfo s;
    while (read(g->signals, &s, sizeof s) == sizeof s)
        if (s.ssi_signo != SIGCHLD)
            stop(g, TUNE_CHILD_STOPPED);
}

static void read_socket(struct guard *g)
{
    char byte;
    ssize_t n = recv(g->socket, &byte, 1, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        g->socket = -1;
        if (g->phase != RUNS)
            return; /* already ending, within its grace period */
    }
    stop(g, TUNE_CHILD_STOPPED);
}

/* The time of the next timed event; -1: none. */
static double next_s(const struct guard *g)
{
    return g->phase != RUNS ? g->until_s : g->plan.limit_s > 0 ? g->start_s + g->plan.limit_s : -1;
}

/* Look at the program's threads from time to time, and when it ends, before it is reaped. */
static void look_at_threads(struct guard *g, bool ends)
{
    double now = tune_clock_s();
    if (g->program == 0 || g->phase != RUNS || (now < g->look_s && !ends))
        return;
    tune_share_look(&g->share, g->self);
    g->look_s = now + TUNE_SHARE_S;
}

/* Sum up after its end. Children that it waited for count as its own. */
static void sum_up(struct guard *g)
{
    struct rusage use;
    if (getrusage(RUSAGE_CHILDREN, &use) == 0 && g->start_s > 0) {
        g->end.cpu_s = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
                       1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
        g->end.lost_s = tune_share_lost(&g->share, g->end.cpu_s);
    }
    tune_share_free(&g->share);
}

static int wait_ms(const struct guard *g)
{
    double next = next_s(g);
    if (g->phase == RUNS && g->program > 0 && (next < 0 || g->look_s < next))
        next = g->look_s;
    double left = next - tune_clock_s();
    return next < 0 ? -1 : left <= 0 ? 0 : left > 1e6 ? 1000000000 : (int)(left * 1e3) + 1;
}

static void go_on(struct guard *g)
{
    double now = tune_clock_s(), next = next_s(g);
    bool due = next >= 0 && now >= next;
    if (g->phase == RUNS && g->program == 0)
        end_all(g); /* processes that the program left behind */
    else if (g->phase == RUNS && due)
        stop(g, TUNE_CHILD_TIMED_OUT);
    else if (g->phase == ENDS && due)
        g->phase = IS_KILLED;
    else if (g->phase == ENDS && g->changed)
        signal_all(g, SIGTERM, false);
    if (g->phase == IS_KILLED && (due || g->changed)) {
        signal_all(g, SIGKILL, true);
        g->until_s = now + ROUND_S;
    }
    g->changed = false;
}

static void watch(struct guard *g)
{
    while (reap(g)) {
        go_on(g);
        const int *from = g->streams.from;
        struct pollfd on[] = {{g->socket, POLLIN, 0}, {g->signals, POLLIN, 0}, {from[0], POLLIN, 0}, {from[1], POLLIN, 0}};
        int ready = poll(on, 4, wait_ms(g));
        look_at_threads(g, ready > 0 && on[1].revents);
        if (ready <= 0)
            continue;
        if (on[0].revents)
            read_socket(g);
        if (on[1].revents)
            read_signals(g);
        for (int i = 0; i < 2; i++)
            if (on[2 + i].revents)
                tune_streams_read(&g->streams, i);
    }
}

/* True if the parent died or sent a stop before the program started. */
static bool too_late(struct guard *g)
{
    char byte;
    bool late = recv(g->socket, &byte, 1, MSG_DONTWAIT | MSG_PEEK) >= 0;
    g->end.how = late ? TUNE_CHILD_STOPPED : g->end.how;
    return late;
}

/* Wait for the processors, or for the name of the next holder. false: stopped, or an error in
 * g->end. */
static bool wait_for_cpus(struct guard *g, bool next, int *locks)
{
    while (!too_late(g) && !tune_guard_lock_cpus(g->cpus, g->plan.cpu_count, next, locks)) {
        struct pollfd on[] = {{g->socket, POLLIN, 0}, {g->signals, POLLIN, 0}};
        if (errno != EADDRINUSE)
            not_started(g, "have processors of its own", errno);
        else if (poll(on, 2, LOCK_POLL_MS) > 0 && on[1].revents)
            g->end.how = TUNE_CHILD_STOPPED;
        else
            continue;
        return false;
    }
    return g->end.how != TUNE_CHILD_STOPPED;
}

/* Wait until the processors are ours. They are released when the guard ends. false: not started;
 * see g->end. */
static bool own_cpus(struct guard *g)
{
    int count = g->plan.cpu_count, *locks = malloc(((size_t)count + 1) * 2 * sizeof *locks);
    int *next = locks ? locks + count : NULL;
    double begin_s = tune_clock_s();
    bool mine = locks && wait_for_cpus(g, true, next);
    if (!locks)
        not_started(g, "have processors of its own", ENOMEM);
    if (mine) {
        mine = wait_for_cpus(g, false, locks);
        tune_guard_unlock_cpus(next, count);
    }
    g->end.waited_s = tune_clock_s() - begin_s;
    free(locks);
    return mine;
}

static int serve(struct guard *g)
{
    static const int awaited[] = {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGQUIT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof awaited / sizeof *awaited; i++)
        sigaddset(&set, awaited[i]);
    g->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (g->signals < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || !read_plan(g) ||
        !tune_streams_begin(&g->streams, TUNE_GUARD_LOG, g->plan.log_limit))
        return 1;
    if (!too_late(g) && (!g->plan.own_cpus || own_cpus(g))) {
        start_program(g);
        watch(g);
        sum_up(g);
    }
    tune_streams_end(&g->streams);
    memcpy(g->end.complaint, g->streams.first, sizeof g->end.complaint);
    bool sent = send(TUNE_GUARD_SOCKET, &g->end, sizeof g->end, MSG_NOSIGNAL) == sizeof g->end;
    return sent || g->socket < 0 ? 0 : 1;
}

int tune_child_guard(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], TUNE_GUARD_WORD))
        return -1;
    struct guard g = {.socket = TUNE_GUARD_SOCKET, .self = getpid()};
    prctl(PR_SET_NAME, TUNE_GUARD_NAME); /* otherwise it would be "exe" */
    close_others(argc > 3 ? atoi(argv[3]) : 0);
    int code = serve(&g);
    free(g.argv);
    free(g.environment);
    free(g.text);
    return code;
}
