/* threads.h - ranks that are threads of one process. For tests: with delays, another order of the
 * copies and a rank that ends, all drawn from a seed.
 *
 *     struct tune_threads *w = tune_threads_new(4, &(struct tune_threads_trouble){.seed = 7});
 *     in each thread:
 *         struct tune_transport t;
 *         tune_threads_join(w, rank, &t);
 *         struct tune_comm *c = tune_comm_open(&t, 10);
 *     tune_threads_free(w);     when all comms are closed */
#ifndef TUNE_COMM_THREADS_H
#define TUNE_COMM_THREADS_H

#include <stdint.h>

#include "comm/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_threads;

/* Trouble that a test asks for. */
struct tune_threads_trouble {
    uint64_t seed;     /* of delays and of the order of copies */
    int delay_us;      /* longest delay before and after each step of a call; 0: none */
    int death_rank;    /* the rank that ends ... */
    int64_t death_at;  /* ... in its call of this number, from 1 on; 0: none ends */
};

/* tune_threads_new - the common ground of size ranks. trouble: NULL: none. NULL with an error.
 * tune_threads_join - the transport of a rank. Each rank joins once.
 * tune_threads_calls - calls that a rank has made, for death_at.
 * tune_threads_free - free it; NULL is fine. */
struct tune_threads *tune_threads_new(int size, const struct tune_threads_trouble *trouble);
void tune_threads_join(struct tune_threads *w, int rank, struct tune_transport *t);
int64_t tune_threads_calls(const struct tune_threads *w, int rank);
void tune_threads_free(struct tune_threads *w);

#ifdef __cplusplus
}
#endif
#endif
