/* mpi.c - bytes by MPI: tune_mpi.so. MPI moves bytes here, and adds nothing.
 *
 * Ranks meet by messages of their own, not by a collective of MPI. So a rank knows which other one
 * is late, and can give up. MPI is called by one thread at a time. */
#include <errno.h>
#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/transport.h"
#include "core/array.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/try.h"
#include "machine/guard.h"

/* PART: most bytes of one message, whose length MPI counts by an int. */
enum { PART = 1 << 30, TAG_MEET = 1, TAG_DATA = 2 };
static const double LOOK_S = 0.05; /* between looks for processes that have ended */

struct world {
    int rank, size;
    pid_t *pids;             /* of ranks on this machine; 0: of another */
    MPI_Request *requests;   /* [2 * size] */
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

static int mpi_ended(void *own)
{
    const struct world *w = own;
    for (int r = 0; r < w->size; r++) {
        struct tune_process p;
        if (r == w->rank || w->pids[r] == 0)
            continue;
        if ((kill(w->pids[r], 0) < 0 && errno == ESRCH) || (tune_process_read(w->pids[r], &p) && p.dead))
            return r;
    }
    return -1;
}

/* Wait for messages from all. received[r]: requests of rank r. */
static int wait_for(struct world *w, MPI_Request *received, double timeout_s, int *late)
{
    double began = tune_clock_s(), looked = began;
    for (int turn = 0;; turn++) {
        int all = 0;
        CHECK(MPI_Testall(w->size, received, &all, MPI_STATUSES_IGNORE));
        double now = tune_clock_s();
        if (all)
            return 0;
        if (now - looked > LOOK_S) {
            looked = now;
            *late = mpi_ended(w);
            if (*late >= 0)
                return tune_error_set("has ended");
        }
        if (now - began > timeout_s)
            for (int r = 0; r < w->size; r++) {
                int here = 0;
                CHECK(MPI_Test(&received[r], &here, MPI_STATUS_IGNORE));
                if (!here && *late < 0) {
                    *late = r;
                    return tune_error_set("did not come within %g s", timeout_s);
                }
            }
        if (turn > 100) /* others may need our core */
            nanosleep(&(struct timespec){.tv_nsec = turn < 1000 ? 10000 : 200000}, NULL);
    }
}

static int mpi_meet(void *own, const void *mine, void *all, size_t bytes, double timeout_s, int *late)
{
    struct world *w = own;
    MPI_Request *received = w->requests, *sent = w->requests + w->size;
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
    TRY(wait_for(w, received, timeout_s, late));
    CHECK(MPI_Waitall(w->size, sent, MPI_STATUSES_IGNORE));
    return 0;
}

/* Send to one rank while we receive from another, in parts. */
static int pass_on(const char *send, size_t send_bytes, int to, char *receive, size_t receive_bytes, int from)
{
    for (size_t at = 0; at < send_bytes || at < receive_bytes; at += PART) {
        MPI_Request both[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
        size_t in = at < receive_bytes ? receive_bytes - at : 0, out = at < send_bytes ? send_bytes - at : 0;
        if (in > 0)
            CHECK(MPI_Irecv(receive + at, (int)(in < PART ? in : PART), MPI_BYTE, from, TAG_DATA, MPI_COMM_WORLD, &both[0]));
        if (out > 0)
            CHECK(MPI_Isend(send + at, (int)(out < PART ? out : PART), MPI_BYTE, to, TAG_DATA, MPI_COMM_WORLD, &both[1]));
        CHECK(MPI_Waitall(2, both, MPI_STATUSES_IGNORE));
    }
    return 0;
}

static int mpi_exchange(void *own, const void *const *send, const size_t *send_bytes, void *const *receive, const size_t *receive_bytes)
{
    struct world *w = own;
    for (int k = 1; k < w->size; k++) {
        int to = (w->rank + k) % w->size, from = (w->rank - k + w->size) % w->size;
        TRY(pass_on(send[to], send_bytes[to], to, receive[from], receive_bytes[from], from));
    }
    return 0;
}

static int mpi_gather(void *own, void *all, const size_t *at)
{
    struct world *w = own;
    size_t own_bytes = at[w->rank + 1] - at[w->rank];
    char *bytes = all;
    if (at[w->size] <= INT_MAX) {
        int counts[w->size], places[w->size];
        for (int r = 0; r < w->size; r++) {
            counts[r] = (int)(at[r + 1] - at[r]);
            places[r] = (int)at[r];
        }
        CHECK(MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, counts, places, MPI_BYTE, MPI_COMM_WORLD));
        return 0;
    }
    for (int k = 1; k < w->size; k++) {
        int to = (w->rank + k) % w->size, from = (w->rank - k + w->size) % w->size;
        TRY(pass_on(bytes + at[w->rank], own_bytes, to, bytes + at[from], at[from + 1] - at[from], from));
    }
    return 0;
}

static int mpi_broadcast(void *own, void *data, size_t bytes, int root)
{
    (void)own;
    for (size_t at = 0; at < bytes; at += PART)
        CHECK(MPI_Bcast((char *)data + at, (int)(bytes - at < PART ? bytes - at : PART), MPI_BYTE, root, MPI_COMM_WORLD));
    return 0;
}

/* After an error nobody finalizes: the launcher sees it, and ends the other ranks. */
static void mpi_close(void *own, int failed)
{
    struct world *w = own;
    int over = 0;
    if (failed)
        return;
    MPI_Finalized(&over);
    if (!over)
        MPI_Finalize();
    free(w->pids);
    free(w->requests);
    free(w);
}

/* Who runs on this machine: all tell their machine's name and process. */
static int find_pids(struct world *w)
{
    struct seat {
        char host[64];
        pid_t pid;
    } mine = {.pid = getpid()}, *all = tune_zeroed((size_t)w->size, sizeof *all, "ranks");
    if (!all)
        return -1;
    gethostname(mine.host, sizeof mine.host - 1);
    int code = MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, sizeof mine, MPI_BYTE, MPI_COMM_WORLD);
    for (int r = 0; r < w->size && code == MPI_SUCCESS; r++)
        w->pids[r] = strcmp(all[r].host, mine.host) ? 0 : all[r].pid;
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
    return w->pids && w->requests ? find_pids(w) : -1;
}

/* The one function of tune_mpi.so. */
int tune_mpi_open(struct tune_transport *t);
int tune_mpi_open(struct tune_transport *t)
{
    struct world *w = tune_zeroed(1, sizeof *w, "ranks");
    if (!w || start(w) < 0) {
        free(w ? w->pids : NULL);
        free(w ? w->requests : NULL);
        free(w);
        return -1;
    }
    *t = (struct tune_transport){
        .name = "mpi", .own = w, .rank = w->rank, .size = w->size, .hangs = 1, .meet = mpi_meet, .exchange = mpi_exchange, .gather = mpi_gather,
        .broadcast = mpi_broadcast, .ended = mpi_ended, .close = mpi_close,
    };
    return 0;
}
