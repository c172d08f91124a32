/* sockets.h - ranks that find each other at an address, without MPI. They were started by torchrun,
 * by srun without PMIx, or by hand.
 *
 * Rank 0 listens. The others come to it and learn the addresses of all. Then each pair of ranks has
 * two connections. One is for the data. On the other, a rank that gives up says whom it waited for.
 * The bytes are neither encrypted nor signed: use it in a network that you trust. */
#ifndef TUNE_COMM_SOCKETS_H
#define TUNE_COMM_SOCKETS_H

#include <stdint.h>

#include "comm/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The place where ranks meet. */
struct tune_meeting_place {
    int rank, size;
    const char *address;  /* host name or number of rank 0's machine */
    int port;             /* rank 0 takes the first free one of 8 from here on */
    uint64_t job;         /* equal for the ranks of a run, so that two runs do not mix */
    double timeout_s;     /* how long a rank waits for the others */
};

/* tune_sockets_open - join the others. -1 with an error: nobody answers there, a rank does not
 * come, or two processes say that they are the same rank. */
int tune_sockets_open(struct tune_transport *t, const struct tune_meeting_place *place);

#ifdef __cplusplus
}
#endif
#endif
