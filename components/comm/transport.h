/* transport.h - how bytes get from rank to rank. comm.h is made of it: a transport adds nothing up.
 *
 * One thread at a time calls it, except `bits` and `leave`. Each function returns 0, or -1 with an
 * error. No call waits for ever for a rank that has ended. If a call fails because of a rank, it
 * sets *late to that one. The error says what became of it: "has ended", or "did not come within
 * 5 s". */
#ifndef TUNE_COMM_TRANSPORT_H
#define TUNE_COMM_TRANSPORT_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct tune_transport {
    const char *name; /* "threads", "mpi" */
    void *own;        /* the first argument of each function */
    int rank, size;

    /* Give bytes, and get those of all ranks: all[size][bytes]. It waits timeout_s for ranks that
     * are behind. */
    int (*meet)(void *own, const void *mine, void *all, size_t bytes, double timeout_s, int *late);

    /* Give send[r] to each rank r, and get receive[r] from it: send_bytes[r], receive_bytes[r]. The
     * own ones are left alone. */
    int (*exchange)(void *own, const void *const *send, const size_t *send_bytes,
                    void *const *receive, const size_t *receive_bytes, int *late);

    /* Get all[at[r]..at[r + 1]) from each rank r. The own part is there already. */
    int (*gather)(void *own, void *all, const size_t *at, int *late);

    /* Get the root's data. */
    int (*broadcast)(void *own, void *data, size_t bytes, int root, int *late);

    /* -1 if a rank has ended, without waiting; else 0. NULL: it cannot tell. */
    int (*look)(void *own, int *late);

    /* Bits that the ranks of this machine share, 0 at first: what they were. `set` is set from now
     * on. Any thread may call it. */
    int (*bits)(void *own, int set);

    /* Tell the other ranks of this machine that this one ends after an error. Any thread may call
     * it. NULL: they see it only when it has ended. */
    void (*leave)(void *own);

    /* End. failed: after an error; then no rank waits for another, and the others are told. */
    void (*close)(void *own, int failed);
};

/* tune_open_mpi_transport - the ranks that mpirun or srun started, by tune_mpi.so. It waits for all
 * of them. -1 with an error. */
int tune_open_mpi_transport(struct tune_transport *t);

#ifdef __cplusplus
}
#endif
#endif
