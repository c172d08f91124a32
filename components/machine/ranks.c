/* ranks.c - the variables of launchers, and mpirun. */
#include "machine/ranks.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/array.h"
#include "core/error.h"

/* A whole number in a variable; -1: it is not set. */
static int number(const char *name)
{
    const char *text = getenv(name);
    return text && *text ? atoi(text) : -1;
}

struct tune_launched tune_ranks_launched(void)
{
    static const struct {
        const char *size, *rank, *also;
        enum tune_launcher by;
    } known[] = {
        {"WORLD_SIZE", "RANK", "TORCHELASTIC_RUN_ID", TUNE_BY_ADDRESS}, /* torchrun */
        {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", NULL, TUNE_BY_MPI},
        {"PMI_SIZE", "PMI_RANK", NULL, TUNE_BY_MPI}, /* MPICH's launcher, and srun --mpi=pmi2 */
        {"WORLD_SIZE", "RANK", NULL, TUNE_BY_ADDRESS},
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "PMIX_RANK", TUNE_BY_MPI}, /* srun --mpi=pmix */
        {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID", NULL, TUNE_BY_SLURM},
    };
    struct tune_launched one = {0};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int size = number(known[i].size), rank = number(known[i].rank);
        if (rank < 0 || rank >= size || (known[i].also && !getenv(known[i].also)))
            continue;
        if (size > 1)
            return (struct tune_launched){rank, size, known[i].by};
        if (size == 1 && (i == 1 || i == 2)) /* a job of one task has no ranks */
            one = (struct tune_launched){0, 1, TUNE_BY_MPI};
    }
    return one;
}

/* Settings of Open MPI, unless the user has others. */
static int settle(void)
{
    static const char *const settings[][2] = {{"OMPI_MCA_rmaps_base_oversubscribe", "1"},
                                              {"OMPI_MCA_hwloc_base_binding_policy", "none"}, /* or all threads of a rank share a core */
                                              {"OMPI_MCA_btl_vader_single_copy_mechanism", "none"}}; /* containers forbid it */
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (setenv(settings[i][0], settings[i][1], 0) < 0)
            return -1;
    if (geteuid() != 0)
        return 0;
    return setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 0) < 0 || setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 0) < 0 ? -1 : 0;
}

static const char *const columns_name = "TUNE_RANKS_COLUMNS";

int tune_ranks_columns(void)
{
    int n = number(columns_name);
    return n > 0 ? n : 0;
}

/* Tell the ranks what our standard output is. */
static int tell_columns(void)
{
    struct winsize w = {0};
    char text[16];
    bool terminal = isatty(STDOUT_FILENO);
    if (terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0)
        w.ws_col = 0;
    snprintf(text, sizeof text, "%d", !terminal ? 0 : w.ws_col > 0 ? w.ws_col : 80);
    return setenv(columns_name, text, 1);
}

int tune_ranks_launch(int size, int argc, char **argv)
{
    char path[PATH_MAX], count[16];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);
    const char **words = tune_zeroed((size_t)argc + 8, sizeof *words, "the command of mpirun");
    if (!words)
        return -1;
    path[n > 0 ? n : 0] = 0;
    snprintf(count, sizeof count, "%d", size);
    const char *const first[] = {"mpirun", "-q", "-n", count, n > 0 ? path : argv[0]};
    memcpy(words, first, sizeof first);
    for (int i = 1; i < argc; i++)
        words[sizeof first / sizeof *first + (size_t)i - 1] = argv[i];
    if (settle() == 0 && tell_columns() == 0)
        execvp("mpirun", (char *const *)words);
    int why = errno;
    free(words);
    return tune_error_usage("`ranks` %d needs mpirun, and it cannot be started: %s (Debian: apt-get install openmpi-bin)", size, strerror(why));
}
