/* crew.h - ranks that are threads of a test, and run one function each. */
#ifndef TUNE_TESTS_COMM_CREW_H
#define TUNE_TESTS_COMM_CREW_H

#include <pthread.h>

#include "test.h"

#include "comm/comm.h"
#include "comm/threads.h"
#include "core/clock.h"

enum { MOST = 8 };

/* Ranks that run one function. */
struct crew {
    int size;
    double timeout_s;
    struct tune_threads *world;
    int (*work)(struct tune_comm *c, int rank, void *context);
    void *context;
    int status[MOST];
    char error[MOST][2048];
    double seconds[MOST];
};
struct crew_rank {
    struct crew *crew;
    int rank;
};

static inline void *crew_member(void *of)
{
    struct crew_rank *m = of;
    struct tune_transport t;
    double began = tune_clock_s();
    tune_threads_join(m->crew->world, m->rank, &t);
    struct tune_comm *c = tune_comm_open(&t, m->crew->timeout_s);
    int status = c ? m->crew->work(c, m->rank, m->crew->context) : -1;
    m->crew->status[m->rank] = status;
    snprintf(m->crew->error[m->rank], sizeof *m->crew->error, "%s", status < 0 ? tune_error_message() : "");
    tune_comm_close(c);
    m->crew->seconds[m->rank] = tune_clock_s() - began;
    return NULL;
}

static inline struct crew run(int size, const struct tune_threads_trouble *trouble, double timeout_s,
                              int (*work)(struct tune_comm *c, int rank, void *context), void *context)
{
    struct crew crew = {.size = size, .timeout_s = timeout_s, .work = work, .context = context};
    struct crew_rank members[MOST];
    pthread_t threads[MOST];
    crew.world = tune_threads_new(size, trouble);
    assert_got(crew.world);
    for (int r = 0; r < size; r++) {
        members[r] = (struct crew_rank){&crew, r};
        assert_int_equal(pthread_create(&threads[r], NULL, crew_member, &members[r]), 0);
    }
    for (int r = 0; r < size; r++)
        pthread_join(threads[r], NULL);
    return crew;
}

#endif
