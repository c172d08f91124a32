/* gpu.h - collectives on arrays of GPUs, for comm.c, gpu.c and tune_nccl.so alone.
 *
 * A link moves bytes between the GPUs of ranks that have a comm already. The comm says when: before
 * each call all ranks have come to it, and do the same. */
#ifndef TUNE_COMM_GPU_H
#define TUNE_COMM_GPU_H

#include <stdbool.h>
#include <stddef.h>

#include "comm/comm.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_LINK_ID = 128 }; /* bytes that rank 0 makes, and all ranks open a link with */

/* A link is opened with these. */
struct tune_link_place {
    int rank, size;
    struct tune_device *dev;
    const struct tune_transport *t; /* its `look` tells whether a rank has ended */
    const double *timeout_s;        /* as it is at each call */
};

/* Each function works in the GPU's second stream, and returns once that is done: 0, or -1 with an
 * error. Then the link works no more.
 * If it fails because of a rank, *late is that one, and the error says what became of it. */
struct tune_link {
    void *own;
    char about[200]; /* "NCCL 2.28.9: NCCL_ALGO=Ring ..." */
    /* The sum over the ranks of from[at[r]..at[r + 1]), float32, to each rank r. */
    int (*reduce_scatter)(void *own, const void *from, void *to, const size_t *at, int *late);
    /* As in transport.h, with arrays of the GPU. from: our share of a gather; it may lie in all. */
    int (*exchange)(void *own, const void *const *send, const size_t *send_bytes,
                    void *const *receive, const size_t *receive_bytes, int *late);
    int (*gather)(void *own, const void *from, void *all, const size_t *at, int *late);
    int (*broadcast)(void *own, void *data, size_t bytes, int root, int *late);
    void (*close)(void *own, int failed);
};

/* tune_nccl_id - what rank 0 makes for tune_nccl_open. Both are functions of tune_nccl.so.
 * tune_nccl_open - a link of all ranks, which call it at the same time. */
int tune_nccl_id(char id[TUNE_LINK_ID]);
int tune_nccl_open(struct tune_link *link, const struct tune_link_place *place,
                   const char id[TUNE_LINK_ID], int *late);

struct tune_comm_gpu;

/* tune_gpu_device - the GPU of this rank.
 * tune_gpu_reach - wait until the operations before the mark are done. -1 with an error: an
 * operation failed, or a rank has ended: *late. The mark is freed.
 * tune_gpu_computes - the collective takes operations of the device, so nobody else may call any
 * until it is over.
 * tune_gpu_move - do a collective on arrays of the GPU.
 * tune_gpu_held_bytes - memory of the GPU that a reduce_scatter of count elements takes.
 * tune_gpu_failed - the comm has failed: do not wait for other ranks at the end.
 * tune_gpu_about - how bytes get from GPU to GPU, for people.
 * tune_gpu_free - close the link and free it; NULL is fine. */
struct tune_device *tune_gpu_device(const struct tune_comm_gpu *g);
int tune_gpu_reach(struct tune_comm_gpu *g, void *mark, int *late);
bool tune_gpu_computes(const struct tune_comm_gpu *g, enum tune_collective_kind kind);
int tune_gpu_move(struct tune_comm_gpu *g, const struct tune_collective *o, int *late);
size_t tune_gpu_held_bytes(const struct tune_comm_gpu *g, size_t count);
void tune_gpu_failed(struct tune_comm_gpu *g);
const char *tune_gpu_about(const struct tune_comm_gpu *g);
void tune_gpu_free(struct tune_comm_gpu *g);

/* These are functions of comm.c:
 * tune_comm_piece - elements of a rank's share from its element `first` on, at most the most that
 * one round of a reduce_scatter moves; *round: that most.
 * tune_comm_link - what gpu.c needs of a comm.
 * tune_comm_fail - this thread's error is the comm's from now on. All ranks have it.
 * tune_comm_set_gpu - the comm has it from now on; about: how gradients travel, for people. */
size_t tune_comm_piece(size_t count, int rank, int size, size_t first, size_t *round);
struct tune_link_place tune_comm_link(struct tune_comm *c, struct tune_device *dev, bool *exact);
void tune_comm_fail(struct tune_comm *c);
void tune_comm_set_gpu(struct tune_comm *c, struct tune_comm_gpu *g, const char *about);

#ifdef __cplusplus
}
#endif
#endif
