/* open_mpi.c - ranks that MPI started, by tune_mpi.so. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/comm.h"
#include "core/array.h"
#include "core/clock.h"
#include "core/error.h"
#include "files/library.h"
#include "machine/guard.h"
#include "machine/ranks.h"

/* The library also calls these functions. So the linker takes them from libtune.a even if the
 * program does not call them. */
static void (*const for_mpi[])(void) __attribute__((used)) = {(void (*)(void))tune_process_read, (void (*)(void))tune_zeroed,
                                                              (void (*)(void))tune_clock_s};

static const char *find_mpi(char path[PATH_MAX])
{
    const char *name = tune_library_beside("tune_mpi.so", "TUNE_MPI", path, PATH_MAX);
    if (!name)
        tune_error_usage("ranks: there is no tune_mpi.so beside the program; `make mpi` builds it where MPI is (Debian: apt-get install "
                         "libopenmpi-dev openmpi-bin), and TUNE_MPI may name it");
    return name;
}

static bool in_path(const char *program)
{
    char file[PATH_MAX];
    bool found = false;
    for (const char *at = getenv("PATH"); at && !found;) {
        size_t length = strcspn(at, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)length, at, program);
        found = access(file, X_OK) == 0;
        at = at[length] ? at + length + 1 : NULL;
    }
    return found;
}

int tune_comm_can_start(void)
{
    char path[PATH_MAX];
    if (!find_mpi(path))
        return -1;
    if (!in_path("mpirun"))
        return tune_error_usage("ranks: there is no mpirun in PATH, which starts them (Debian: apt-get install openmpi-bin)");
    if (geteuid() == 0 && (!getenv("OMPI_ALLOW_RUN_AS_ROOT") || !getenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM")))
        return tune_error_usage("ranks: mpirun refuses to run as root; run as another user, or, as in a container, set "
                                "OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1");
    return 0;
}

/* MPI sees one rank. An error if a launcher says that there are more: they would all do the same work, in one run folder. */
static int check_alone(void)
{
    static const char *const sizes[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"}; /* not of Slurm: a sweep under srun starts single runs */
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        const char *size = getenv(sizes[i]);
        if (size && atoi(size) > 1)
            return tune_error_usage("ranks: this is one of %s processes (%s), but they do not find each other: tune_mpi.so was built with another "
                                    "MPI than that of the launcher; take the mpirun of its MPI", size, sizes[i]);
    }
    return 0;
}

/* MPI's start waits for all ranks, and cannot be told for how long. */
struct watch {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool started;
    double timeout_s;
};

static void *watch(void *argument)
{
    struct watch *w = argument;
    struct tune_launched mine = tune_ranks_launched();
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)ceil(fmin(w->timeout_s, 1e6));
    pthread_mutex_lock(&w->lock);
    int code = 0;
    while (!w->started && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&w->over, &w->lock, &until);
    if (!w->started) {
        fprintf(stderr, "%s: rank %d of %d: MPI did not start within %g s (--timeout): a rank stands still, or cannot be reached\n",
                program_invocation_short_name, mine.rank, mine.size, w->timeout_s);
        _exit(1);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

/* MPI's start, as long as ranks may be behind. */
static int open_in_time(int (*open)(struct tune_transport *t), struct tune_transport *t, double timeout_s)
{
    struct watch w = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, timeout_s > 0 ? timeout_s : TUNE_COMM_PATIENCE_S};
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, &w))
        return tune_error_set("cannot start the thread that watches MPI's start");
    int status = open(t);
    pthread_mutex_lock(&w.lock);
    w.started = true;
    pthread_cond_signal(&w.over);
    pthread_mutex_unlock(&w.lock);
    pthread_join(thread, NULL);
    return status;
}

struct tune_comm *tune_comm_open_mpi(double timeout_s)
{
    char path[PATH_MAX];
    struct tune_transport t;
    struct tune_library library = {.name = find_mpi(path)};
    int (*open)(struct tune_transport *t) = NULL;
    if (!library.name)
        return NULL;
    library.handle = dlopen(library.name, RTLD_NOW | RTLD_GLOBAL); /* Open MPI opens parts of its own, which look for its names */
    if (!library.handle) {
        const char *why = dlerror();
        tune_error_cannot("ranks: cannot load %s: %s; the MPI that it was built with must be found, as by LD_LIBRARY_PATH", library.name,
                          why ? why : "no reason given");
        return NULL;
    }
    if (tune_library_find(&library, "tune_mpi_open", &open) < 0 || open_in_time(open, &t, timeout_s) < 0)
        return NULL; /* MPI leaves threads and handlers behind: it stays open */
    if (t.size == 1 && check_alone() < 0) {
        t.close(t.own, 1);
        return NULL;
    }
    return tune_comm_open(&t, timeout_s);
}
