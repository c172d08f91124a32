/* open_mpi.c - ranks that MPI started, by tune_mpi.so. */
#include <dlfcn.h>
#include <limits.h>

#include "comm/comm.h"
#include "core/array.h"
#include "core/clock.h"
#include "files/library.h"
#include "machine/guard.h"

/* The library also calls these functions. So the linker takes them from libtune.a even if the
 * program does not call them. */
static void (*const for_mpi[])(void) __attribute__((used)) = {(void (*)(void))tune_process_read, (void (*)(void))tune_zeroed,
                                                              (void (*)(void))tune_clock_s};

struct tune_comm *tune_comm_open_mpi(double timeout_s)
{
    char path[PATH_MAX];
    struct tune_transport t;
    struct tune_library library = {.name = tune_library_beside("tune_mpi.so", "TUNE_MPI", path, sizeof path)};
    int (*open)(struct tune_transport *t) = NULL;
    if (!library.name) {
        tune_error_usage("ranks: there is no tune_mpi.so beside the program; `make mpi` builds it where MPI is (Debian: apt-get install "
                         "libopenmpi-dev openmpi-bin), and TUNE_MPI may name it");
        return NULL;
    }
    library.handle = dlopen(library.name, RTLD_NOW | RTLD_GLOBAL); /* Open MPI opens parts of its own, which look for its names */
    if (!library.handle) {
        const char *why = dlerror();
        tune_error_cannot("ranks: cannot load %s: %s; the MPI that it was built with must be found, as by LD_LIBRARY_PATH", library.name,
                          why ? why : "no reason given");
        return NULL;
    }
    if (tune_library_find(&library, "tune_mpi_open", &open) < 0 || open(&t) < 0)
        return NULL; /* MPI leaves threads and handlers behind: it stays open */
    return tune_comm_open(&t, timeout_s);
}
