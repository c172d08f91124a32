/* child.c - the parent's side: find the program, start a guard, read the result. */
#include "machine/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "machine/guard.h"
#include "core/clock.h"
#include "core/error.h"

struct tune_child {
    int socket;
    pid_t guard;
};

extern char **environ;

/* ---- the program ---- */

/* The reason why a file cannot be started, an errno; 0: none. */
static int obstacle(const char *path)
{
    struct stat s;
    if (stat(path, &s) < 0)
        return errno;
    if (S_ISDIR(s.st_mode))
        return EISDIR;
    return !S_ISREG(s.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? EACCES : 0;
}

static int refuse(const char *name, int why)
{
    if (why == EACCES)
        tune_error_set("cannot start \"%s\": it is not an executable file (chmod +x makes a script one)", name);
    else if (why == ENOENT && !strchr(name, '/'))
        tune_error_set("cannot start \"%s\": no program of that name in PATH; one in a folder is named with it, as ./%s", name,
                       name);
    else
        tune_error_set("cannot start \"%s\": %s", name, strerror(why));
    return -1;
}

/* Search PATH. Returns an errno; EACCES in any folder is the most helpful one. */
static int search(const char *name, char found[TUNE_PATH_MAX])
{
    const char *at = getenv("PATH");
    int why = ENOENT;
    at = at ? at : "/usr/bin:/bin";
    for (size_t n;; at += n + 1) {
        n = strcspn(at, ":"); /* an empty entry means the current folder */
        bool fits = snprintf(found, TUNE_PATH_MAX, "%.*s%s%s", (int)n, at, n > 0 ? "/" : "./", name) < TUNE_PATH_MAX;
        int not_this = fits ? obstacle(found) : ENAMETOOLONG;
        if (not_this == 0)
            return 0;
        if (not_this == EACCES)
            why = EACCES;
        if (!at[n])
            return why;
    }
}

int tune_child_find(const char *name, char path[TUNE_PATH_MAX])
{
    if (!strchr(name, '/'))
        return search(name, path);
    return snprintf(path, TUNE_PATH_MAX, "%s", name) < TUNE_PATH_MAX ? obstacle(path) : ENAMETOOLONG;
}

/* Find the program as an absolute path. */
static int find_program(const char *name, char path[TUNE_PATH_MAX])
{
    char here[TUNE_PATH_MAX] = "", found[TUNE_PATH_MAX];
    int why = tune_child_find(name, found);
    if (why)
        return refuse(name, why);
    if (*found != '/' && !getcwd(here, sizeof here))
        return tune_error_set("cannot start \"%s\": the current folder: %s", name, strerror(errno));
    return tune_path(path, "%s%s%s", here, *here ? "/" : "", found);
}

/* ---- the guard ---- */

static int count(const char *const *list)
{
    int n = 0;
    while (list && list[n])
        n++;
    return n;
}

static size_t texts_size(const char *const *list)
{
    size_t size = 0;
    for (int i = 0; list && list[i]; i++)
        size += strlen(list[i]) + 1;
    return size;
}

static char *put_texts(char *to, const char *const *list)
{
    for (int i = 0; list && list[i]; i++)
        to = stpcpy(to, list[i]) + 1;
    return to;
}

/* Make the plan of guard.h. The caller frees it. */
static struct tune_guard_plan *make_plan(const struct tune_child_options *o, const char *program)
{
    int cpus = o->cpus ? o->cpu_count : 0;
    size_t size = (size_t)cpus * sizeof *o->cpus + strlen(program) + 1 + texts_size(o->argv) + texts_size(o->environment);
    struct tune_guard_plan *plan = malloc(sizeof *plan + size);
    if (!plan)
        return NULL;
    *plan = (struct tune_guard_plan){.size = (int64_t)size, .log_limit = o->log_limit, .limit_s = o->limit_s, .grace_s = o->grace_s,
                                     .argc = count(o->argv), .variable_count = count(o->environment), .cpu_count = cpus,
                                     .own_cpus = o->own_cpus};
    char *to = (char *)(plan + 1);
    if (cpus > 0)
        memcpy(to, o->cpus, (size_t)cpus * sizeof *o->cpus);
    to = stpcpy(to + (size_t)cpus * sizeof *o->cpus, program) + 1;
    put_texts(put_texts(to, o->argv), o->environment);
    return plan;
}

/* The path of this executable, also if its file was replaced. Under valgrind the kernel's link
 * points to valgrind. */
static void own_program(char path[TUNE_PATH_MAX])
{
    const char *preload = getenv("LD_PRELOAD");
    ssize_t n = preload && strstr(preload, "vgpreload") ? readlink("/proc/self/exe", path, TUNE_PATH_MAX - 1) : 0;
    if (n > 0)
        path[n] = 0;
    else
        strcpy(path, "/proc/self/exe");
}

/* Start the guard with these descriptors, from TUNE_GUARD_SOCKET on, and no others. No signal is
 * ignored and all are blocked. Its own session lets it survive the terminal. Returns an errno. */
static int spawn(pid_t *guard, char *const *argv, const int *from, int count)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t all;
    char program[TUNE_PATH_MAX];
    int high[3 + TUNE_CHILD_LOCKS], error = 0;
    own_program(program);
    sigfillset(&all);
    if ((error = posix_spawn_file_actions_init(&files)))
        return error;
    if ((error = posix_spawnattr_init(&how))) {
        posix_spawn_file_actions_destroy(&files);
        return error;
    }
    for (int fd = 0; fd < 3 && !error; fd++)
        error = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", fd == 0 ? O_RDONLY : O_WRONLY, 0);
    for (int fd = 0; fd < count; fd++) {
        /* above the numbers that the guard's descriptors get */
        high[fd] = fcntl(from[fd], F_DUPFD_CLOEXEC, TUNE_GUARD_SOCKET + count);
        if (high[fd] < 0)
            error = errno;
    }
    for (int fd = 0; fd < count && !error; fd++)
        error = posix_spawn_file_actions_adddup2(&files, high[fd], TUNE_GUARD_SOCKET + fd);
    if (!error)
        error = posix_spawnattr_setsigdefault(&how, &all);
    if (!error)
        error = posix_spawnattr_setsigmask(&how, &all);
    if (!error)
        error = posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    if (!error)
        error = posix_spawn(guard, program, &files, &how, argv, environ);
    for (int fd = 0; fd < count; fd++)
        if (high[fd] >= 0)
            close(high[fd]);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

/* Open folder and log here, so that errors are reported at once. */
static int open_files(const struct tune_child_options *o, int *log, int *folder)
{
    const char *path = o->log ? o->log : "/dev/null";
    *folder = open(o->folder ? o->folder : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*folder < 0)
        tune_error_set("cannot start \"%s\" in %s: %s", o->argv[0], o->folder ? o->folder : "this folder", strerror(errno));
    else if ((*log = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666)) < 0)
        tune_error_set("cannot write the log %s: %s", path, strerror(errno));
    return *folder < 0 || *log < 0 ? -1 : 0;
}

static int start_guard(struct tune_child *c, const struct tune_guard_plan *plan, int socket, int log, int folder,
                       const struct tune_child_options *o)
{
    const char *name = o->argv[0];
    char self[] = "guard", word[] = TUNE_GUARD_WORD, *shown = strdup(name), locks[16];
    char *argv[] = {self, word, shown, locks, NULL};
    int from[3 + TUNE_CHILD_LOCKS] = {socket, log, folder}, count = 3;
    for (int i = 0; i < o->lock_count; i++)
        from[count++] = o->locks[i];
    snprintf(locks, sizeof locks, "%d", o->lock_count);
    int error = shown ? spawn(&c->guard, argv, from, count) : ENOMEM;
    free(shown);
    if (error)
        return tune_error_set("cannot start a process to guard \"%s\": %s", name, strerror(error));
    const char *at = (const char *)plan;
    size_t left = sizeof *plan + (size_t)plan->size;
    ssize_t n = 0;
    while (left > 0 && (n = send(c->socket, at, left, MSG_NOSIGNAL)) != 0) {
        if (n < 0 && errno != EINTR)
            break; /* the guard is gone; tune_child_end reports it */
        at += n > 0 ? n : 0;
        left -= n > 0 ? (size_t)n : 0;
    }
    return 0;
}

struct tune_child *tune_child_start(const struct tune_child_options *o)
{
    char program[TUNE_PATH_MAX];
    int pair[2] = {-1, -1}, log = -1, folder = -1, status = -1;
    if (o->lock_count > TUNE_CHILD_LOCKS)
        tune_error_set("cannot start \"%s\": %d locks; at most %d", o->argv[0], o->lock_count, TUNE_CHILD_LOCKS);
    if (o->lock_count > TUNE_CHILD_LOCKS || find_program(o->argv[0], program) < 0)
        return NULL;
    struct tune_child *c = calloc(1, sizeof *c);
    struct tune_guard_plan *plan = make_plan(o, program);
    if (!c || !plan)
        tune_error_no_memory("starting \"%s\"", o->argv[0]);
    else if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        tune_error_set("cannot start \"%s\": %s", o->argv[0], strerror(errno));
    else if (open_files(o, &log, &folder) == 0) {
        c->socket = pair[0];
        status = start_guard(c, plan, pair[1], log, folder, o);
    }
    const int ours[] = {pair[1], log, folder, status < 0 ? pair[0] : -1};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
        if (ours[i] >= 0)
            close(ours[i]);
    free(plan);
    if (status == 0)
        return c;
    free(c);
    return NULL;
}

int tune_child_lock(const char *name)
{
    return tune_guard_lock(name);
}

int tune_child_descriptor(const struct tune_child *c)
{
    return c->socket;
}

void tune_child_stop(struct tune_child *c)
{
    while (send(c->socket, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && errno == EINTR)
        ;
}

/* ---- the end ---- */

/* Kill the rest of the session after the guard died from SIGKILL or a fault. The kernel has killed
 * the program, but its children live. Those that made no session of their own are in the guard's
 * session. Its number stays reserved until the guard is reaped. */
static void end_session(pid_t guard)
{
    struct tune_process p;
    double begin = tune_clock_s();
    for (bool any = true; any && tune_clock_s() - begin < 10;) {
        DIR *proc = opendir("/proc");
        any = false;
        while (proc && tune_process_next(proc, &p))
            if (p.session == guard && p.pid != guard && !p.dead) {
                kill(p.pid, SIGKILL);
                any = true;
            }
        if (proc)
            closedir(proc);
        if (any)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static void lost(struct tune_child_end *end, int status)
{
    *end = (struct tune_child_end){.how = TUNE_CHILD_NOT_STARTED};
    if (!WIFSIGNALED(status)) {
        snprintf(end->reason, sizeof end->reason, "its guard ended with exit code %d (is tune_child_guard what main calls first?)",
                 WEXITSTATUS(status));
        return;
    }
    end->how = TUNE_CHILD_SIGNALLED;
    end->code = SIGKILL;
    snprintf(end->reason, sizeof end->reason, "its guard was ended by signal %d, and the program with it", WTERMSIG(status));
}

int tune_child_end(struct tune_child *c, struct tune_child_end *end)
{
    size_t got = 0;
    ssize_t n = 1;
    int status = 0;
    while (got < sizeof *end && n != 0) {
        n = recv(c->socket, (char *)end + got, sizeof *end - got, 0);
        if (n < 0 && errno != EINTR)
            break;
        got += n > 0 ? (size_t)n : 0;
    }
    if (got < sizeof *end)
        end_session(c->guard);
    while (waitpid(c->guard, &status, 0) < 0 && errno == EINTR)
        ;
    if (got < sizeof *end)
        lost(end, status);
    close(c->socket);
    free(c);
    return 0;
}
