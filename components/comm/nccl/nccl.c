/* nccl.c - arrays of GPUs by NCCL: tune_nccl.so.
 *
 * NCCL has no watchdog: its kernels wait for ever for a rank that has ended. So its calls return at
 * once here (blocking = 0). We look at the stream, at NCCL's own errors and at the other processes.
 * If a rank is gone, we abort NCCL, and its kernels end. */
#include <nccl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "comm/gpu.h"
#include "core/array.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/try.h"
#include "devices/device.h"

static const double BLAME_S = 1; /* how long we look for a rank that has ended after an error of NCCL */

struct group {
    struct tune_link_place place;
    ncclComm_t comm;
    bool aborted;
};

/* Same ranks, same machine, same bits: NCCL shall not choose by size or load. */
static const char *const settings[][2] = {
    {"NCCL_ALGO", "Ring"}, {"NCCL_PROTO", "Simple"}, {"NCCL_MIN_NCHANNELS", "8"}, {"NCCL_MAX_NCHANNELS", "8"}};

static int nccl_error(const struct group *w, ncclResult_t code, const char *what)
{
    const char *more = w && w->comm ? ncclGetLastError(w->comm) : NULL;
    return tune_error_set("NCCL: %s: %s%s%s (NCCL_DEBUG=WARN in the environment says more)", what, ncclGetErrorString(code),
                          more && *more ? ": " : "", more && *more ? more : "");
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* -1 with an error: another rank has ended. */
static int look(const struct group *w, int *late)
{
    return w->place.t->look ? w->place.t->look(w->place.t->own, late) : 0;
}

/* NCCL gives this error. It may be because another rank has ended, which says more. */
static int blame(const struct group *w, ncclResult_t code, const char *what, int *late)
{
    for (double began = tune_clock_s(); tune_clock_s() - began < BLAME_S; nap())
        TRY(look(w, late));
    return nccl_error(w, code, what);
}

/* All waits ask this: an error of a rank, of NCCL, or of the time? 1: NCCL has taken all that it was told; 0: not yet. */
static int state(const struct group *w, double began, const char *what, int *late)
{
    ncclResult_t code = ncclSuccess, asked = ncclCommGetAsyncError(w->comm, &code);
    code = asked == ncclSuccess ? code : asked;
    if (code != ncclSuccess && code != ncclInProgress)
        return blame(w, code, what, late);
    TRY(look(w, late));
    if (tune_clock_s() - began > *w->place.timeout_s)
        return tune_error_set("NCCL: %s: the GPUs were not done within %g s", what, *w->place.timeout_s);
    return code == ncclSuccess;
}

static int finish(struct group *w, ncclResult_t code, const char *what, int *late)
{
    double began = tune_clock_s();
    int taken = 0, done = 0;
    if (code != ncclSuccess && code != ncclInProgress)
        return blame(w, code, what, late);
    while (taken == 0) {
        taken = state(w, began, what, late);
        if (taken == 0)
            nap();
    }
    while (taken > 0 && (done = tune_device_done(w->place.dev)) == 0) {
        taken = state(w, began, what, late);
        nap();
    }
    return taken < 0 || done < 0 ? -1 : 0;
}

/* After an error the GPU's kernels shall not wait any more, or nobody could close the device. */
static int ended(struct group *w, int status)
{
    if (status < 0 && !w->aborted) {
        ncclCommAbort(w->comm);
        w->aborted = true;
    }
    return status;
}

static ncclResult_t worse(ncclResult_t a, ncclResult_t b)
{
    return a == ncclSuccess || a == ncclInProgress ? b : a;
}

static cudaStream_t stream_of(const struct group *w)
{
    return tune_device_beside(w->place.dev);
}

/* Shares of one size are NCCL's own case. Others are sums for one rank each. */
static int nccl_reduce_scatter(void *own, const void *from, void *to, const size_t *at, int *late)
{
    struct group *w = own;
    int size = w->place.size;
    cudaStream_t stream = stream_of(w);
    size_t share = at[w->place.rank + 1] - at[w->place.rank];
    if (at[size] == share * (size_t)size)
        return ended(w, finish(w, ncclReduceScatter(from, to, share, ncclFloat32, ncclSum, w->comm, stream), "reduce-scatter", late));
    ncclResult_t code = ncclGroupStart();
    for (int r = 0; r < size; r++)
        if (at[r + 1] > at[r])
            code = worse(code, ncclReduce((const float *)from + at[r], to, at[r + 1] - at[r], ncclFloat32, ncclSum, r, w->comm, stream));
    return ended(w, finish(w, worse(code, ncclGroupEnd()), "sums for each rank", late));
}

static int nccl_exchange(void *own, const void *const *send, const size_t *send_bytes, void *const *receive, const size_t *receive_bytes,
                         int *late)
{
    struct group *w = own;
    cudaStream_t stream = stream_of(w);
    ncclResult_t code = ncclGroupStart();
    for (int r = 0; r < w->place.size; r++) {
        if (r != w->place.rank && send_bytes[r] > 0)
            code = worse(code, ncclSend(send[r], send_bytes[r], ncclInt8, r, w->comm, stream));
        if (r != w->place.rank && receive_bytes[r] > 0)
            code = worse(code, ncclRecv(receive[r], receive_bytes[r], ncclInt8, r, w->comm, stream));
    }
    return ended(w, finish(w, worse(code, ncclGroupEnd()), "all-to-all", late));
}

static int nccl_gather(void *own, const void *from, void *all, const size_t *at, int *late)
{
    struct group *w = own;
    int size = w->place.size;
    char *bytes = all;
    cudaStream_t stream = stream_of(w);
    size_t share = at[w->place.rank + 1] - at[w->place.rank];
    if (at[size] == share * (size_t)size)
        return ended(w, finish(w, ncclAllGather(from, all, share, ncclInt8, w->comm, stream), "all-gather", late));
    ncclResult_t code = ncclGroupStart();
    for (int r = 0; r < size; r++)
        if (at[r + 1] > at[r])
            code = worse(code, ncclBroadcast(r == w->place.rank ? from : bytes + at[r], bytes + at[r], at[r + 1] - at[r], ncclInt8, r, w->comm, stream));
    return ended(w, finish(w, worse(code, ncclGroupEnd()), "shares of each rank", late));
}

static int nccl_broadcast(void *own, void *data, size_t bytes, int root, int *late)
{
    struct group *w = own;
    return ended(w, finish(w, ncclBroadcast(data, data, bytes, ncclInt8, root, w->comm, stream_of(w)), "broadcast", late));
}

/* Other ranks may still need what we sent, so all of them end together. */
static void nccl_close(void *own, int failed)
{
    struct group *w = own;
    int late = -1;
    if (!failed && !w->aborted) {
        ncclResult_t code = ncclCommFinalize(w->comm);
        ended(w, finish(w, code, "the end", &late));
    }
    if (!w->aborted && (failed || ncclCommDestroy(w->comm) != ncclSuccess))
        ncclCommAbort(w->comm);
    free(w);
}

int tune_nccl_id(char id[TUNE_LINK_ID])
{
    ncclUniqueId unique;
    _Static_assert(sizeof unique <= TUNE_LINK_ID, "the id of NCCL has grown");
    ncclResult_t code = ncclGetUniqueId(&unique);
    if (code != ncclSuccess)
        return nccl_error(NULL, code, "its id");
    memcpy(id, &unique, sizeof unique);
    return 0;
}

/* Set what the user has not set, and say what holds. */
static int settle(struct tune_link *link)
{
    int version = 0;
    ncclGetVersion(&version);
    int n = snprintf(link->about, sizeof link->about, "NCCL %d.%d.%d:", version / 10000, version / 100 % 100, version % 100);
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        if (setenv(settings[i][0], settings[i][1], 0) < 0)
            return tune_error_no_memory("the settings of NCCL");
        if (n < (int)sizeof link->about)
            n += snprintf(link->about + n, sizeof link->about - (size_t)n, " %s=%s", settings[i][0], getenv(settings[i][0]));
    }
    return 0;
}

static int join(struct group *w, const char id[TUNE_LINK_ID], int *late)
{
    ncclUniqueId unique;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    double began = tune_clock_s();
    int taken = 0;
    config.blocking = 0;
    memcpy(&unique, id, sizeof unique);
    ncclResult_t code = ncclCommInitRankConfig(&w->comm, w->place.size, unique, w->place.rank, &config);
    if (code != ncclSuccess && code != ncclInProgress)
        return blame(w, code, "its start", late);
    while (taken == 0) {
        taken = state(w, began, "its start", late);
        nap();
    }
    return taken < 0 ? -1 : 0;
}

int tune_nccl_open(struct tune_link *link, const struct tune_link_place *place, const char id[TUNE_LINK_ID], int *late)
{
    TRY(settle(link));
    struct group *w = tune_zeroed(1, sizeof *w, "a link between GPUs");
    if (!w)
        return -1;
    w->place = *place;
    if (join(w, id, late) < 0) {
        if (w->comm)
            ncclCommAbort(w->comm);
        free(w);
        return -1;
    }
    link->own = w;
    link->reduce_scatter = nccl_reduce_scatter;
    link->exchange = nccl_exchange;
    link->gather = nccl_gather;
    link->broadcast = nccl_broadcast;
    link->close = nccl_close;
    return 0;
}
