/* mpi.c - bytes by MPI: tune_mpi.so. MPI moves bytes here, and adds nothing.
 *
 * Collectives are messages from rank to rank, not those of MPI. So a rank knows which other one is
 * late, and can give up. MPI is called by one thread at a time. */
#include <errno.h>
#include <math.h>
#include <mpi.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "comm/transport.h"
#include "core/array.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/try.h"
#include "machine/guard.h"

/* PART: most bytes of one message. Each part may take as long as a rank may be late. */
enum { PART = 1 << 22, TAG_MEET = 1, TAG_DATA, TAG_END };
static const double LOOK_S = 0.05; /* between looks for processes that have ended */
static const double GRACE_S = 0.3; /* see mpi_look */

/* The end of a rank. */
enum fate { ENDED, STOPPED, LATE, FATES };

/* Memory that the ranks of a machine share. */
struct board {
    atomic_int blamed; /* 1 + rank * FATES + fate, of the first rank that was found; 0: none */
    atomic_int bits;
};

struct world {
    int rank, size;
    pid_t *pids;           /* of ranks on this machine; 0: of another */
    MPI_Request *requests; /* [2 * size] of a meeting */
    MPI_Request *ends;     /* [size] the word of each rank that it closes */
    int *ranks;            /* [2 * size] with which rank each request is */
    double timeout_s;      /* of the last meeting */
    double looked_s, missed_s; /* when mpi_look looked, and first found one that has ended; 0: none has */
    struct board *board;
    MPI_Win window;        /* that holds the board */
};

static int mpi_error(int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(code, text, &length);
    return tune_error_set("MPI: %s: %s", what, text);
}
#define CHECK(call)                              \
    do {                                         \
        int code_ = (call);                      \
        if (code_ != MPI_SUCCESS)                \
            return mpi_error(code_, #call);      \
    } while (0)

/* The first rank on this machine that has ended, or that has been stopped; -1: none. */
static int find_ended(const struct world *w, bool stopped)
{
    for (int r = 0; r < w->size; r++) {
        struct tune_process p = {0};
        if (r == w->rank || w->pids[r] == 0)
            continue;
        if (kill(w->pids[r], 0) < 0 ? errno == ESRCH : tune_process_read(w->pids[r], &p) && (p.dead || (stopped && p.stopped)))
            return r;
    }
    return -1;
}

/* Blame a rank, or the one that another rank of this machine blamed before. So the first that ended is blamed, not one that gave up after it. */
static int blame(struct world *w, int rank, enum fate fate, int *late)
{
    int first = 0, blamed = 1 + rank * FATES + (int)fate;
    if (!atomic_compare_exchange_strong(&w->board->blamed, &first, blamed))
        blamed = first;
    *late = (blamed - 1) / FATES;
    switch ((enum fate)((blamed - 1) % FATES)) {
    case ENDED: return tune_error_set("has ended");
    case STOPPED: return tune_error_set("did not come within %g s, because it has been stopped", w->timeout_s);
    default: return tune_error_set("did not come within %g s", w->timeout_s);
    }
}

/* A rank that has ended, or that has closed with one of these requests open; -1: none. */
static int find_lost(struct world *w, MPI_Request *requests, const int *ranks, int count)
{
    int lost = find_ended(w, false);
    for (int i = 0; lost < 0 && i < count; i++) {
        int closed = 0, over = 0; /* its word that it closes comes behind its bytes */
        MPI_Test(&w->ends[ranks[i]], &closed, MPI_STATUS_IGNORE);
        MPI_Test(&requests[i], &over, MPI_STATUS_IGNORE);
        lost = closed && !over ? ranks[i] : -1;
    }
    return lost;
}

/* Wait until `count` requests are over. ranks[i]: with which rank request i is. meets: it may take long; leave the processor to others. */
static int finish(struct world *w, MPI_Request *requests, const int *ranks, int count, bool meets, int *late)
{
    double began = tune_clock_s(), looked = began;
    for (int turn = 0;; turn++) {
        int all = 0;
        CHECK(MPI_Testall(count, requests, &all, MPI_STATUSES_IGNORE));
        if (all)
            return 0;
        double now = tune_clock_s();
        if (now - looked > LOOK_S) {
            looked = now;
            int lost = find_lost(w, requests, ranks, count);
            if (lost >= 0 || atomic_load(&w->board->blamed))
                return blame(w, lost, ENDED, late);
        }
        if (now - began > w->timeout_s) {
            int stopped = find_ended(w, true);
            if (stopped >= 0)
                return blame(w, stopped, STOPPED, late);
            for (int i = 0; i < count; i++) {
                int over = 0;
                CHECK(MPI_Test(&requests[i], &over, MPI_STATUS_IGNORE));
                if (!over)
                    return blame(w, ranks[i], LATE, late);
            }
        }
        if (!meets || turn < 100)
            sched_yield();
        else
            nanosleep(&(struct timespec){.tv_nsec = turn < 1000 ? 10000 : 200000}, NULL);
    }
}

static int mpi_meet(void *own, const void *mine, void *all, size_t bytes, double timeout_s, int *late)
{
    struct world *w = own;
    MPI_Request *received = w->requests, *sent = w->requests + w->size;
    w->timeout_s = timeout_s;
    for (int r = 0; r < w->size; r++) {
        char *theirs = (char *)all + (size_t)r * bytes;
        received[r] = sent[r] = MPI_REQUEST_NULL;
        if (r == w->rank)
            memcpy(theirs, mine, bytes);
        else
            CHECK(MPI_Irecv(theirs, (int)bytes, MPI_BYTE, r, TAG_MEET, MPI_COMM_WORLD, &received[r]));
    }
    for (int r = 0; r < w->size; r++)
        if (r != w->rank)
            CHECK(MPI_Isend(mine, (int)bytes, MPI_BYTE, r, TAG_MEET, MPI_COMM_WORLD, &sent[r]));
    return finish(w, w->requests, w->ranks, 2 * w->size, true, late);
}

/* Send to one rank while we receive from another, in parts. */
static int pass_on(struct world *w, const char *send, size_t send_bytes, int to, char *receive, size_t receive_bytes, int from, int *late)
{
    const int ranks[2] = {from, to};
    for (size_t at = 0; at < send_bytes || at < receive_bytes; at += PART) {
        MPI_Request both[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        size_t in = at < receive_bytes ? receive_bytes - at : 0, out = at < send_bytes ? send_bytes - at : 0;
        if (in > 0)
            CHECK(MPI_Irecv(receive + at, (int)(in < PART ? in : PART), MPI_BYTE, from, TAG_DATA, MPI_COMM_WORLD, &both[0]));
        if (out > 0)
            CHECK(MPI_Isend(send + at, (int)(out < PART ? out : PART), MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, &both[1]));
        TRY(finish(w, both, ranks, 2, false, late));
    }
    return 0;
}

static int mpi_exchange(void *own, const void *const *send, const size_t *send_bytes, void *const *receive, const size_t *receive_bytes,
                        int *late)
{
    struct world *w = own;
    for (int k = 1; k < w->size; k++) {
        int to = (w->rank + k) % w->size, from = (w->rank - k + w->size) % w->size;
        TRY(pass_on(w, send[to], send_bytes[to], to, receive[from], receive_bytes[from], from, late));
    }
    return 0;
}

static int mpi_gather(void *own, void *all, const size_t *at, int *late)
{
    struct world *w = own;
    char *bytes = all;
    for (int k = 1; k < w->size; k++) {
        int to = (w->rank + k) % w->size, from = (w->rank - k + w->size) % w->size;
        TRY(pass_on(w, bytes + at[w->rank], at[w->rank + 1] - at[w->rank], to, bytes + at[from], at[from + 1] - at[from], from, late));
    }
    return 0;
}

static int mpi_broadcast(void *own, void *data, size_t bytes, int root, int *late)
{
    struct world *w = own;
    if (w->rank != root)
        return pass_on(w, NULL, 0, root, data, bytes, root, late);
    for (int k = 1; k < w->size; k++) {
        int to = (root + k) % w->size;
        TRY(pass_on(w, data, bytes, to, NULL, 0, to, late));
    }
    return 0;
}

/* A rank that closed in good order has ended, too. So it gets a moment, in which our own work comes to its end if it can. */
static int mpi_look(void *own, int *late)
{
    struct world *w = own;
    double now = tune_clock_s();
    if (now - w->looked_s < LOOK_S)
        return 0;
    w->looked_s = now;
    int lost = find_ended(w, false);
    for (int r = 0; lost < 0 && r < w->size; r++) {
        int closed = 0;
        if (r != w->rank)
            CHECK(MPI_Test(&w->ends[r], &closed, MPI_STATUS_IGNORE));
        lost = closed ? r : -1;
    }
    if (lost < 0 && !atomic_load(&w->board->blamed))
        w->missed_s = 0;
    else if (w->missed_s <= 0)
        w->missed_s = now;
    return w->missed_s > 0 && now - w->missed_s > GRACE_S ? blame(w, lost, ENDED, late) : 0;
}

static void mpi_leave(void *own)
{
    struct world *w = own;
    int none = 0;
    atomic_compare_exchange_strong(&w->board->blamed, &none, 1 + w->rank * FATES + ENDED);
}

static int mpi_bits(void *own, int set)
{
    struct world *w = own;
    return atomic_fetch_or(&w->board->bits, set);
}

/* Tell the others, and wait until they close, too. */
static int part(struct world *w)
{
    int late = -1;
    w->timeout_s = INFINITY; /* rank 0 may have much to write */
    for (int r = 0; r < w->size; r++)
        if (r != w->rank)
            CHECK(MPI_Isend(NULL, 0, MPI_BYTE, r, TAG_END, MPI_COMM_WORLD, &w->requests[r]));
    return finish(w, w->ends, w->ranks, w->size, true, &late);
}

/* After an error nobody finalizes: the launcher sees it, and ends the other ranks. */
static void mpi_close(void *own, int failed)
{
    struct world *w = own;
    if (failed || part(w) < 0)
        return;
    MPI_Waitall(w->size, w->requests, MPI_STATUSES_IGNORE);
    MPI_Win_free(&w->window);
    MPI_Finalize();
    free(w->pids);
    free(w->requests);
    free(w->ends);
    free(w->ranks);
    free(w);
}

/* The ranks of this machine: they get a board, and tell each other their processes. Machines may have equal names, and containers numbers of
 * processes of their own. */
static int find_neighbours(struct world *w)
{
    struct neighbour {
        int leader; /* the lowest rank of its machine */
        pid_t pid;
        ino_t space; /* of the process's number */
    } mine = {.pid = getpid()}, *all = NULL;
    struct stat space;
    MPI_Comm here;
    MPI_Aint bytes = 0;
    int unit = 0;
    CHECK(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, w->rank, MPI_INFO_NULL, &here));
    CHECK(MPI_Allreduce(&w->rank, &mine.leader, 1, MPI_INT, MPI_MIN, here));
    bool leads = mine.leader == w->rank;
    CHECK(MPI_Win_allocate_shared(leads ? sizeof *w->board : 0, 1, MPI_INFO_NULL, here, &w->board, &w->window));
    CHECK(MPI_Win_shared_query(w->window, 0, &bytes, &unit, &w->board));
    if (leads)
        memset(w->board, 0, sizeof *w->board);
    mine.space = stat("/proc/self/ns/pid", &space) == 0 ? space.st_ino : 0;
    all = tune_zeroed((size_t)w->size, sizeof *all, "ranks");
    if (!all)
        return -1;
    int code = MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD); /* the board is empty before it is used */
    for (int r = 0; r < w->size && code == MPI_SUCCESS; r++)
        w->pids[r] = all[r].leader == mine.leader && all[r].space == mine.space ? all[r].pid : 0;
    free(all);
    return code == MPI_SUCCESS ? 0 : mpi_error(code, "the ranks' processes");
}

static int start(struct world *w)
{
    int level = 0;
    CHECK(MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level));
    if (level < MPI_THREAD_SERIALIZED)
        return tune_error_cannot("MPI: this library allows no second thread (level %d); build it with thread support", level);
    CHECK(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
    CHECK(MPI_Comm_rank(MPI_COMM_WORLD, &w->rank));
    CHECK(MPI_Comm_size(MPI_COMM_WORLD, &w->size));
    w->pids = tune_zeroed((size_t)w->size, sizeof *w->pids, "ranks");
    w->requests = tune_zeroed((size_t)w->size, 2 * sizeof *w->requests, "ranks");
    w->ranks = tune_zeroed((size_t)w->size, 2 * sizeof *w->ranks, "ranks");
    w->ends = tune_zeroed((size_t)w->size, sizeof *w->ends, "ranks");
    if (!w->pids || !w->requests || !w->ranks || !w->ends)
        return -1;
    for (int i = 0; i < 2 * w->size; i++)
        w->ranks[i] = i % w->size;
    for (int r = 0; r < w->size; r++) {
        w->requests[r] = w->ends[r] = MPI_REQUEST_NULL;
        if (r != w->rank)
            CHECK(MPI_Irecv(NULL, 0, MPI_BYTE, r, TAG_END, MPI_COMM_WORLD, &w->ends[r]));
    }
    return find_neighbours(w);
}

/* The one function of tune_mpi.so. */
int tune_mpi_open(struct tune_transport *t);
int tune_mpi_open(struct tune_transport *t)
{
    struct world *w = tune_zeroed(1, sizeof *w, "ranks");
    if (!w || start(w) < 0) {
        free(w ? w->pids : NULL);
        free(w ? w->requests : NULL);
        free(w ? w->ranks : NULL);
        free(w ? w->ends : NULL);
        free(w);
        return -1;
    }
    *t = (struct tune_transport){
        .name = "mpi", .own = w, .rank = w->rank, .size = w->size, .meet = mpi_meet, .exchange = mpi_exchange, .gather = mpi_gather,
        .broadcast = mpi_broadcast, .look = mpi_look, .bits = mpi_bits, .leave = mpi_leave, .close = mpi_close,
    };
    return 0;
}
