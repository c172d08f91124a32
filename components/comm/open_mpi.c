/* open_mpi.c - ranks that MPI started, by tune_mpi.so. */
#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm.h"
#include "comm/transport.h"
#include "core/array.h"
#include "core/clock.h"
#include "files/library.h"
#include "machine/guard.h"

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

int tune_open_mpi_transport(struct tune_transport *t)
{
    char path[PATH_MAX];
    struct tune_library library = {.name = find_mpi(path)};
    int (*open)(struct tune_transport *t) = NULL;
    if (!library.name)
        return -1;
    library.handle = dlopen(library.name, RTLD_NOW | RTLD_GLOBAL); /* Open MPI opens parts of its own, which look for its names */
    if (!library.handle) {
        const char *why = dlerror();
        tune_error_cannot("ranks: cannot load %s: %s; the MPI that it was built with must be found, as by LD_LIBRARY_PATH", library.name,
                          why ? why : "no reason given");
        return -1;
    }
    if (tune_library_find(&library, "tune_mpi_open", &open) < 0 || open(t) < 0)
        return -1; /* MPI leaves threads and handlers behind: it stays open */
    if (t->size == 1 && check_alone() < 0) {
        t->close(t->own, 1);
        return -1;
    }
    return 0;
}

struct tune_comm *tune_comm_open_mpi(double timeout_s)
{
    struct tune_transport t;
    return tune_open_mpi_transport(&t) < 0 ? NULL : tune_comm_open(&t, timeout_s);
}
