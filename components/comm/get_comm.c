/* get_comm.c - the ranks that the flags and the launcher describe. */
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/comm.h"
#include "comm/sockets.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/print.h"
#include "core/try.h"
#include "flags/flags.h"
#include "machine/cpus.h"
#include "machine/ranks.h"

/* 1 if the ranks of our host may use the same processors: then the launcher has not bound them. -1 with an error. */
static int unbound(struct tune_comm *c)
{
    struct tune_cpus_allowed mine;
    bool known = tune_cpus_allowed(&mine);
    struct tune_cpus_allowed *all = tune_comm_gather(c, "processors", &mine, sizeof mine);
    if (!all)
        return -1;
    for (int r = 0; r < tune_comm_size(c); r++)
        known = known && (strcmp(tune_comm_host(c, r), tune_comm_host(c, tune_comm_rank(c))) || !memcmp(&all[r], &mine, sizeof mine));
    free(all);
    return known;
}

/* Ranks of one host share its cores: each gets its own. The user's number of threads is left alone. */
static int share_cores(struct tune_flags *flags, struct tune_comm *c)
{
    int place, here = tune_comm_local(c, &place), same = tune_comm_size(c) > 1 ? unbound(c) : 0, cores = 0;
    const char *own = getenv("OMP_NUM_THREADS");
    if (same < 0)
        return -1;
    int usable = tune_cpus_cores("");
    flags->crowded_cores = same && usable > 0 && here > usable ? usable : 0;
    if (here == 1 || flags->threads > 0 || (own && *own))
        return 0;
    if (same)
        TRY(cores = tune_cpus_bind(place, here));
    flags->rank_threads = !same ? usable : usable > here ? usable / here : 1;
    flags->bound_cores = cores;
    return 0;
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

/* Equal for the ranks of one run, and no other's. */
static uint64_t job_key(void)
{
    static const char *const names[] = {"WORLD_SIZE", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", "SLURM_JOB_ID"};
    static const uint8_t key[16] = {'r', 'a', 'n', 'k', 's'};
    char text[512] = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        tune_append(text, sizeof text, "%.90s,", getenv(names[i]) ? getenv(names[i]) : "");
    return tune_siphash(text, strlen(text), key);
}

/* Ranks that meet at MASTER_ADDR and MASTER_PORT. torchrun itself may listen at that port, and says so. */
static struct tune_comm *open_sockets(const struct tune_flags *flags, const struct tune_launched *launched)
{
    const char *address = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT"), *taken = getenv("TORCHELASTIC_USE_AGENT_STORE");
    struct tune_meeting_place place = {.rank = launched->rank, .size = launched->size, .address = address, .job = job_key(),
                                       .timeout_s = flags->timeout_s > 0 ? flags->timeout_s : TUNE_COMM_PATIENCE_S};
    struct tune_transport t;
    if (!address || !*address) {
        tune_error_usage(launched->by == TUNE_BY_SLURM
                             ? "ranks: srun started %d processes that cannot find each other; give srun --mpi=pmix, or set MASTER_ADDR and "
                               "MASTER_PORT to the host of rank 0 and a free port there, or give `ranks` 1"
                             : "ranks: RANK and WORLD_SIZE say that this is one of %d processes; set MASTER_ADDR and MASTER_PORT to the host of "
                               "rank 0 and a free port there, or unset RANK and WORLD_SIZE, or give `ranks` 1", launched->size);
        return NULL;
    }
    place.port = (port ? atoi(port) : 29500) + (taken && !strcmp(taken, "True"));
    if (place.port < 1 || place.port > 65000) {
        tune_error_usage("ranks: MASTER_PORT=%.40s: expected a number from 1 to 65000", port ? port : "");
        return NULL;
    }
    return tune_sockets_open(&t, &place) < 0 ? NULL : tune_comm_open(&t, flags->timeout_s);
}

/* MPI's start waits for all ranks, and cannot be told for how long. */
struct watch {
    pthread_mutex_t lock;
    pthread_cond_t over;
    bool started;
    double timeout_s;
    void (*give_up)(const char *why);
};

static void *watch(void *argument)
{
    struct watch *w = argument;
    char why[160];
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)ceil(fmin(w->timeout_s, 1e6));
    pthread_mutex_lock(&w->lock);
    int code = 0;
    while (!w->started && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&w->over, &w->lock, &until);
    if (!w->started) {
        snprintf(why, sizeof why, "ranks: MPI did not start within %g s (`timeout`): one of them stands still, or cannot be reached", w->timeout_s);
        w->give_up(why);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static struct tune_comm *open_in_time(const struct tune_flags *flags)
{
    struct watch w = {.lock = PTHREAD_MUTEX_INITIALIZER, .timeout_s = flags->timeout_s > 0 ? flags->timeout_s : TUNE_COMM_PATIENCE_S,
                      .give_up = flags->give_up};
    struct tune_transport t;
    pthread_condattr_t steady;
    pthread_t thread;
    if (!flags->give_up)
        return tune_comm_open_mpi(flags->timeout_s);
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&w.over, &steady);
    pthread_condattr_destroy(&steady);
    if (pthread_create(&thread, NULL, watch, &w)) {
        tune_error_set("ranks: cannot start the thread that watches MPI's start");
        return NULL;
    }
    int status = tune_open_mpi_transport(&t);
    pthread_mutex_lock(&w.lock);
    w.started = true;
    pthread_cond_signal(&w.over);
    pthread_mutex_unlock(&w.lock);
    pthread_join(thread, NULL);
    pthread_cond_destroy(&w.over);
    return status < 0 ? NULL : tune_comm_open(&t, flags->timeout_s);
}

static struct tune_comm *open_ranks(const struct tune_flags *flags, const struct tune_launched *launched)
{
    return launched->size == 0          ? tune_comm_open_self()
           : launched->by == TUNE_BY_MPI ? open_in_time(flags)
                                         : open_sockets(flags, launched);
}

struct tune_comm *tune_get_comm(struct tune_flags *flags)
{
    struct tune_launched launched = flags->ranks == 1 ? (struct tune_launched){0} : tune_ranks_launched();
    struct tune_comm *c = open_ranks(flags, &launched);
    if (!c)
        return NULL;
    if (check(c, flags, launched.size) < 0 || agree(c, flags) < 0 || share_cores(flags, c) < 0) {
        tune_comm_close(c);
        return NULL;
    }
    if (tune_comm_size(c) > 1) {
        tune_comm_local(c, &flags->place);
        tune_comm_exact(c, flags->exact_ranks);
        flags->share_device = tune_comm_use_device;
    }
    flags->comm = c;
    flags->close_comm = tune_comm_close;
    flags->comm_speaks = tune_comm_speaks;
    flags->comm_wait_told = tune_comm_wait_told;
    flags->comm_wait_saved = tune_comm_wait_saved;
    return c;
}
