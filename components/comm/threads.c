/* threads.c - ranks that are threads of one process, with trouble for tests. */
#include "comm/threads.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/random.h"
#include "core/try.h"

/* One rank. The arrays belong to it; others read them between two meetings. */
struct seat {
    struct tune_threads *world;
    int rank;
    bool arrived;
    bool reads;         /* it may read arrays of the others, which must stay as they are */
    int64_t calls, draws;
    const void *const *send;
    const size_t *send_bytes;
    const void *shown;
};

struct tune_threads {
    int size;
    struct tune_threads_trouble trouble;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int64_t meetings;
    int arrived;
    int gone;   /* the first rank that left; -1: all are here */
    int bits;
    struct seat seats[];
};

static uint64_t draw(struct seat *s)
{
    return tune_random_u64(s->world->trouble.seed, (uint64_t)s->rank, (uint64_t)s->draws++);
}

/* The lock is held. */
static void leave(struct seat *s)
{
    if (s->world->gone < 0)
        s->world->gone = s->rank;
    pthread_cond_broadcast(&s->world->changed);
}

/* After an error: wait until no rank reads the arrays of this one. */
static void stop_reading(struct seat *s)
{
    struct tune_threads *w = s->world;
    pthread_mutex_lock(&w->lock);
    s->reads = false;
    pthread_cond_broadcast(&w->changed);
    for (int r = 0; r < w->size; r++)
        while (w->seats[r].reads)
            pthread_cond_wait(&w->changed, &w->lock);
    pthread_mutex_unlock(&w->lock);
}

/* A place where a rank may be delayed, or end. */
static int pass(struct seat *s)
{
    struct tune_threads *w = s->world;
    const struct tune_threads_trouble *t = &w->trouble;
    if (t->delay_us > 0) {
        uint64_t us = draw(s) % (uint64_t)t->delay_us;
        nanosleep(&(struct timespec){.tv_sec = (time_t)(us / 1000000), .tv_nsec = (long)(us % 1000000 * 1000)}, NULL);
    }
    pthread_mutex_lock(&w->lock);
    bool ends = ++s->calls == t->death_at && s->rank == t->death_rank;
    if (ends)
        leave(s);
    pthread_mutex_unlock(&w->lock);
    if (!ends)
        return 0;
    stop_reading(s);
    return tune_error_set("rank %d ends here, as was asked", s->rank);
}

static int first_absent(const struct tune_threads *w)
{
    for (int r = 0; r < w->size; r++)
        if (!w->seats[r].arrived)
            return r;
    return -1;
}

/* Wait until all ranks are here. timeout_s <= 0: as long as it takes. */
static int wait_for_all(struct seat *s, double timeout_s, int *late)
{
    struct tune_threads *w = s->world;
    struct timespec until;
    TRY(pass(s));
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)timeout_s;
    until.tv_nsec += (long)((timeout_s - (double)(time_t)timeout_s) * 1e9);
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&w->lock);
    int64_t meeting = w->meetings;
    int timed_out = 0;
    s->arrived = true;
    bool reads = !s->reads; /* every second meeting ends the reading */
    if (w->gone < 0 && ++w->arrived == w->size) {
        w->arrived = 0;
        w->meetings++;
        for (int r = 0; r < w->size; r++)
            w->seats[r].arrived = false, w->seats[r].reads = reads;
        pthread_cond_broadcast(&w->changed);
    }
    while (w->meetings == meeting && w->gone < 0 && !timed_out)
        timed_out = timeout_s > 0 ? pthread_cond_timedwait(&w->changed, &w->lock, &until) : pthread_cond_wait(&w->changed, &w->lock);
    bool met = w->meetings != meeting;
    int gone = w->gone, absent = gone >= 0 ? gone : first_absent(w);
    pthread_mutex_unlock(&w->lock);
    if (met)
        return pass(s);
    stop_reading(s);
    if (late)
        *late = absent;
    return gone >= 0 ? tune_error_set("has ended") : tune_error_set("did not come within %g s", timeout_s);
}

static int threads_meet(void *own, const void *mine, void *all, size_t bytes, double timeout_s, int *late)
{
    struct seat *s = own;
    s->shown = mine;
    TRY(wait_for_all(s, timeout_s, late));
    for (int r = 0; r < s->world->size; r++)
        memcpy((char *)all + (size_t)r * bytes, s->world->seats[r].shown, bytes);
    return wait_for_all(s, timeout_s, late);
}

/* The k-th of the other ranks, in an order that the seed draws. */
static int other_rank(struct seat *s, int k, uint64_t order)
{
    int size = s->world->size;
    return (int)tune_random_permute(s->world->trouble.seed, order, (uint64_t)size, (uint64_t)k);
}

static int threads_exchange(void *own, const void *const *send, const size_t *send_bytes, void *const *receive, const size_t *receive_bytes,
                            int *late)
{
    struct seat *s = own;
    s->send = send;
    s->send_bytes = send_bytes;
    TRY(wait_for_all(s, 0, late));
    uint64_t order = draw(s);
    for (int k = 0; k < s->world->size; k++) {
        int r = other_rank(s, k, order);
        const struct seat *from = &s->world->seats[r];
        if (r == s->rank || receive_bytes[r] == 0)
            continue;
        if (from->send_bytes[s->rank] != receive_bytes[r]) {
            size_t sent = from->send_bytes[s->rank];
            pthread_mutex_lock(&s->world->lock);
            leave(s);
            pthread_mutex_unlock(&s->world->lock);
            stop_reading(s);
            return tune_error_set("rank %d sends %zu bytes to rank %d, which expects %zu", r, sent, s->rank, receive_bytes[r]);
        }
        memcpy(receive[r], from->send[s->rank], receive_bytes[r]);
        TRY(pass(s));
    }
    return wait_for_all(s, 0, late);
}

static int threads_gather(void *own, void *all, const size_t *at, int *late)
{
    struct seat *s = own;
    s->shown = (char *)all + at[s->rank];
    TRY(wait_for_all(s, 0, late));
    uint64_t order = draw(s);
    for (int k = 0; k < s->world->size; k++) {
        int r = other_rank(s, k, order);
        if (r != s->rank)
            memcpy((char *)all + at[r], s->world->seats[r].shown, at[r + 1] - at[r]);
        TRY(pass(s));
    }
    return wait_for_all(s, 0, late);
}

static int threads_broadcast(void *own, void *data, size_t bytes, int root, int *late)
{
    struct seat *s = own;
    s->shown = data;
    TRY(wait_for_all(s, 0, late));
    if (s->rank != root)
        memcpy(data, s->world->seats[root].shown, bytes);
    return wait_for_all(s, 0, late);
}

static int threads_bits(void *own, int set)
{
    struct tune_threads *w = ((struct seat *)own)->world;
    pthread_mutex_lock(&w->lock);
    int before = w->bits;
    w->bits |= set;
    pthread_mutex_unlock(&w->lock);
    return before;
}

static void threads_close(void *own, int failed)
{
    struct seat *s = own;
    (void)failed;
    pthread_mutex_lock(&s->world->lock);
    leave(s);
    pthread_mutex_unlock(&s->world->lock);
}

struct tune_threads *tune_threads_new(int size, const struct tune_threads_trouble *trouble)
{
    pthread_condattr_t monotonic;
    struct tune_threads *w = tune_zeroed(1, sizeof *w + (size_t)size * sizeof *w->seats, "ranks");
    if (!w)
        return NULL;
    w->size = size;
    w->gone = -1;
    if (trouble)
        w->trouble = *trouble;
    for (int r = 0; r < size; r++)
        w->seats[r] = (struct seat){.world = w, .rank = r};
    pthread_mutex_init(&w->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&w->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return w;
}

void tune_threads_join(struct tune_threads *w, int rank, struct tune_transport *t)
{
    *t = (struct tune_transport){
        .name = "threads", .own = &w->seats[rank], .rank = rank, .size = w->size, .meet = threads_meet, .exchange = threads_exchange,
        .gather = threads_gather, .broadcast = threads_broadcast, .bits = threads_bits, .close = threads_close,
    };
}

int64_t tune_threads_calls(const struct tune_threads *w, int rank)
{
    return w->seats[rank].calls;
}

void tune_threads_free(struct tune_threads *w)
{
    if (!w)
        return;
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
}
