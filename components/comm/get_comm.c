/* get_comm.c - the ranks that the flags and the launcher describe. */
#include <cjson/cJSON.h>
#include <stdlib.h>

#include "comm/comm.h"
#include "core/error.h"
#include "core/try.h"
#include "flags/flags.h"
#include "machine/host.h"
#include "machine/ranks.h"

/* Ranks of one host share its cores. */
static void share_cores(struct tune_flags *flags, const struct tune_comm *c)
{
    struct tune_host host;
    int place, here = tune_comm_local(c, &place);
    const char *own = getenv("OMP_NUM_THREADS");
    if (here == 1 || flags->threads > 0 || (own && *own))
        return;
    tune_host_read(&host);
    flags->threads = host.cpus > here ? host.cpus / here : 1;
}

static int agree(struct tune_comm *c, const struct tune_flags *flags)
{
    cJSON *json = tune_flags_json(flags);
    char *text = json ? cJSON_PrintUnformatted(json) : NULL;
    int status = text ? tune_comm_agree(c, "their options", text) : tune_error_no_memory("the options");
    cJSON_free(text);
    cJSON_Delete(json);
    return status;
}

static int check(const struct tune_comm *c, const struct tune_flags *flags, int launched)
{
    int size = tune_comm_size(c);
    if (launched > 0 && size != launched)
        return tune_error_usage("ranks: the launcher started %d processes, and MPI knows of %d; with srun give --mpi=pmix, or use the mpirun "
                                "of the MPI that tune_mpi.so was built with", launched, size);
    if (flags->ranks > 0 && size != flags->ranks)
        return tune_error_usage("`ranks` is %d, and the launcher started %d; leave `ranks` out, or start as many", flags->ranks, size);
    return 0;
}

struct tune_comm *tune_get_comm(struct tune_flags *flags)
{
    struct tune_launched launched = flags->ranks == 1 ? (struct tune_launched){0, 0} : tune_ranks_launched();
    struct tune_comm *c = launched.size > 0 ? tune_comm_open_mpi(flags->timeout_s) : tune_comm_open_self();
    if (!c)
        return NULL;
    if (check(c, flags, launched.size) < 0 || agree(c, flags) < 0) {
        tune_comm_close(c);
        return NULL;
    }
    share_cores(flags, c);
    flags->comm = c;
    flags->close_comm = tune_comm_close;
    flags->comm_speaks = tune_comm_speaks;
    return c;
}
