/* comm.c - collectives over a transport: a queue with a thread, comparison before each, sums in order. */
#include "comm/comm.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "comm/gpu.h"
#include "core/array.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/hash.h"
#include "core/try.h"
#include "devices/device.h"
#include "machine/guard.h"

/* QUEUE: collectives that wait. RECORDS: that are remembered. PIECE: most elements of a share that
 * one round of a reduce_scatter moves; it bounds the memory and changes no result. BEAT: in what
 * part of timeout_s a rank that works alone says that it is alive. */
enum { QUEUE = 256, RECORDS = 64, WHAT = 40, HOST = 64, PIECE = 1 << 20, BEAT = 4 };

/* Bits that the ranks of a machine share. HERE: rank 0 is one of them. PRINTS_OWN: rank 0 has begun
 * to print an error of its own. PRINTS_COMMON: a rank has begun to print an error of all. SAVES: rank
 * 0 has an error, and saves the run. SAVED: it has, and ends now. */
enum { HERE = 1, PRINTS_OWN = 2, PRINTS_COMMON = 4, SAVES = 8, SAVED = 16 };

/* Each rank says this before each collective. */
struct fingerprint {
    int64_t number, step;
    uint64_t count, element;
    int32_t kind, root, on_device, alone; /* alone: nothing yet, it works alone */
    char what[WHAT];
};

struct queued {
    struct tune_collective what;
    char name[WHAT];
    int64_t step;
    bool apart;   /* tune_comm_start's */
    void *mark;   /* on_device: behind what the device does first; NULL: no such thing */
};

struct peer {
    char host[HOST];
    long pid;
};

struct tune_comm {
    struct tune_transport t;
    double timeout_s;
    struct tune_comm_gpu *gpu; /* NULL: arrays are in host memory alone */
    bool exact;
    char about[300];
    struct peer *peers;
    struct fingerprint *said; /* [size] of one collective */
    float *pieces;            /* [size - 1] of at most PIECE elements; grows */
    size_t piece_room;
    int64_t step;
    /* Under the lock. Numbers count from 1. */
    pthread_mutex_t lock;
    pthread_cond_t more, over;
    struct queued queue[QUEUE];
    int64_t started, finished;
    double opened_s;
    bool failed, stop, threaded, alone, running;
    struct tune_error error;
    atomic_int lost; /* 1 + the rank because of which it failed; 0: none */
    struct tune_collective_record records[RECORDS];
    uint64_t bytes;
    double took_s, blocked_s; /* of collectives of tune_comm_start */
    pthread_t thread;
};

const char *tune_collective_name(enum tune_collective_kind kind)
{
    static const char *const names[TUNE_COLLECTIVES] = {"barrier", "broadcast", "all_gather", "reduce_scatter"};
    return kind < TUNE_COLLECTIVES ? names[kind] : "?";
}

size_t tune_comm_share(size_t count, int rank, int size)
{
    size_t n = (size_t)size, r = (size_t)rank;
    return count / n * r + count % n * r / n;
}

static size_t share_end(size_t count, int rank, int size)
{
    return tune_comm_share(count, rank + 1, size);
}

size_t tune_comm_share_count(const struct tune_comm *c, size_t count)
{
    return share_end(count, c->t.rank, c->t.size) - tune_comm_share(count, c->t.rank, c->t.size);
}

int tune_comm_rank(const struct tune_comm *c)
{
    return c->t.rank;
}

int tune_comm_size(const struct tune_comm *c)
{
    return c->t.size;
}

bool tune_comm_follows(const struct tune_comm *c)
{
    return c && c->t.rank > 0;
}

const char *tune_comm_host(const struct tune_comm *c, int rank)
{
    return c->peers[rank].host;
}

int tune_comm_local(const struct tune_comm *c, int *place)
{
    int count = 0;
    *place = 0;
    for (int r = 0; r < c->t.size; r++) {
        bool here = !strcmp(c->peers[r].host, c->peers[c->t.rank].host);
        count += here;
        *place += here && r < c->t.rank;
    }
    return count;
}

/* ---- what ranks are about to do ---- */

static void tell_of(const struct fingerprint *f, char text[192])
{
    int n = snprintf(text, 192, "%s of \"%s\"", tune_collective_name((enum tune_collective_kind)f->kind), f->what);
    if (f->count > 0)
        n += snprintf(text + n, 192 - (size_t)n, ", %llu elements of %llu bytes", (unsigned long long)f->count, (unsigned long long)f->element);
    if (f->on_device)
        n += snprintf(text + n, 192 - (size_t)n, " of GPUs");
    if (f->kind == TUNE_BROADCAST)
        n += snprintf(text + n, 192 - (size_t)n, " from rank %d", f->root);
    snprintf(text + n, 192 - (size_t)n, ", step %lld", (long long)f->step);
}

/* The transport's error says what became of the rank that is late. */
static int late_error(struct tune_comm *c, int late, const char *what)
{
    const struct peer *p = &c->peers[late];
    c->lost = late + 1;
    if (late == c->t.rank)
        return tune_error_set("the other ranks gave up rank %d of %d, this one (process %ld on %s): it %s", late, c->t.size, p->pid, p->host,
                              tune_error_message());
    return tune_error_set("rank %d of %d (process %ld on %s) %s; rank %d waited for it in %s", late, c->t.size, p->pid, p->host,
                          tune_error_message(), c->t.rank, what);
}

/* Wait for all ranks, and compare. 1: one of them works alone, and is alive. */
static int meet(struct tune_comm *c, const struct fingerprint *mine, double timeout_s)
{
    int late = -1;
    char ours[192], theirs[192];
    tell_of(mine, ours);
    int status = c->t.meet(c->t.own, mine, c->said, sizeof *mine, timeout_s, &late);
    if (late >= 0)
        return late_error(c, late, ours);
    TRY(status);
    for (int r = 0; r < c->t.size; r++)
        if (c->said[r].alone)
            return 1;
    for (int r = 0; r < c->t.size; r++) {
        if (!memcmp(&c->said[r], &c->said[0], sizeof *mine))
            continue;
        tell_of(&c->said[0], ours);
        tell_of(&c->said[r], theirs);
        return tune_error_set("ranks do different things in collective %lld: rank 0 on %s is at %s; rank %d on %s is at %s",
                              (long long)mine->number, c->peers[0].host, ours, r, c->peers[r].host, theirs);
    }
    return 0;
}

/* ---- the collectives ---- */

/* sum[i] = rank 0's + rank 1's + ..., in this order. from[r]: of rank r. The sum may lie in one of them. */
static void add_in_order(float *sum, const float *const *from, int size, size_t count)
{
    enum { BLOCK = 256 };
    float block[BLOCK];
    for (size_t first = 0; first < count; first += BLOCK) {
        size_t n = count - first < BLOCK ? count - first : BLOCK;
        memcpy(block, from[0] + first, n * sizeof *block);
        for (int r = 1; r < size; r++)
            for (size_t i = 0; i < n; i++)
                block[i] += from[r][first + i];
        memcpy(sum + first, block, n * sizeof *block);
    }
}

size_t tune_comm_piece(size_t count, int rank, int size, size_t first, size_t *round)
{
    size_t start = tune_comm_share(count, rank, size) + first, end = share_end(count, rank, size);
    if (round)
        *round = PIECE;
    return start >= end ? 0 : end - start < PIECE ? end - start : PIECE;
}

size_t tune_comm_held_bytes(const struct tune_comm *c, size_t count)
{
    if (c && c->gpu)
        return tune_gpu_held_bytes(c->gpu, count);
    return c ? (size_t)(c->t.size - 1) * tune_comm_piece(count, c->t.rank, c->t.size, 0, NULL) * sizeof *c->pieces : 0;
}

/* Room for the pieces of the other ranks, of so many elements each. */
static int reserve_pieces(struct tune_comm *c, size_t elements)
{
    size_t need = (size_t)(c->t.size - 1) * elements;
    if (need <= c->piece_room)
        return 0;
    free(c->pieces);
    c->pieces = tune_zeroed(need, sizeof *c->pieces, "pieces of other ranks");
    c->piece_room = c->pieces ? need : 0;
    return c->pieces ? 0 : -1;
}

/* One round: a piece of each share. */
static int reduce_piece(struct tune_comm *c, const float *values, float *share, size_t count, size_t first, int *late)
{
    int size = c->t.size, rank = c->t.rank;
    const void *send[size];
    void *receive[size];
    const float *from[size];
    size_t send_bytes[size], receive_bytes[size], own = tune_comm_piece(count, rank, size, first, NULL);
    TRY(reserve_pieces(c, own));
    float *at = c->pieces;
    for (int r = 0; r < size; r++) {
        const float *piece = values + tune_comm_share(count, r, size) + first;
        send[r] = piece;
        send_bytes[r] = tune_comm_piece(count, r, size, first, NULL) * sizeof *values;
        receive_bytes[r] = own * sizeof *values;
        from[r] = r == rank ? piece : at;
        receive[r] = r == rank ? NULL : at;
        at += r == rank ? 0 : own;
    }
    TRY(c->t.exchange(c->t.own, send, send_bytes, receive, receive_bytes, late));
    if (own > 0)
        add_in_order(share + first, from, size, own);
    return 0;
}

static int reduce_scatter(struct tune_comm *c, const struct tune_collective *o, int *late)
{
    size_t longest = (o->count + (size_t)c->t.size - 1) / (size_t)c->t.size;
    for (size_t first = 0; first < longest; first += PIECE)
        TRY(reduce_piece(c, o->from, o->to, o->count, first, late));
    return 0;
}

static int all_gather(struct tune_comm *c, const struct tune_collective *o, int *late)
{
    size_t at[c->t.size + 1];
    for (int r = 0; r <= c->t.size; r++)
        at[r] = tune_comm_share(o->count, r, c->t.size) * o->element;
    size_t bytes = at[c->t.rank + 1] - at[c->t.rank];
    if (o->from && bytes > 0)
        memmove((char *)o->to + at[c->t.rank], o->from, bytes);
    return c->t.size > 1 ? c->t.gather(c->t.own, o->to, at, late) : 0;
}

/* Bytes that this rank sends in a collective. */
static size_t sent_bytes(const struct tune_comm *c, const struct tune_collective *o)
{
    size_t own = tune_comm_share_count(c, o->count) * o->element, others = (size_t)c->t.size - 1;
    switch (o->kind) {
    case TUNE_REDUCE_SCATTER: return o->count * o->element - own;
    case TUNE_ALL_GATHER: return own * others;
    case TUNE_BROADCAST: return o->root == c->t.rank ? o->count * o->element * others : 0;
    default: return 0;
    }
}

/* The transport's error is set. */
static int move_error(struct tune_comm *c, const struct fingerprint *mine, int late)
{
    char text[192];
    tell_of(mine, text);
    return late >= 0 ? late_error(c, late, text) : tune_error_prefix("rank %d of %d, in %s: ", c->t.rank, c->t.size, text);
}

/* All ranks are there, and do the same. */
static int move(struct tune_comm *c, const struct tune_collective *o, int *late)
{
    if (o->count == 0)
        return 0;
    if (o->on_device)
        return tune_gpu_move(c->gpu, o, late);
    switch (o->kind) {
    case TUNE_REDUCE_SCATTER: return reduce_scatter(c, o, late);
    case TUNE_ALL_GATHER: return all_gather(c, o, late);
    case TUNE_BROADCAST: return c->t.broadcast(c->t.own, o->to, o->count * o->element, o->root, late);
    default: return 0;
    }
}

static int check_collective(const struct tune_comm *c, const struct tune_collective *o)
{
    if (o->kind >= TUNE_COLLECTIVES || !o->what)
        return tune_error_set("a collective lacks its kind or its name");
    bool bytes = o->kind != TUNE_BARRIER && o->count > 0;
    if (bytes && (!o->to || o->element == 0 || (o->kind == TUNE_REDUCE_SCATTER && (!o->from || o->element != sizeof(float)))))
        return tune_error_set("%s of %s: expected arrays, and elements of %zu bytes", tune_collective_name(o->kind), o->what,
                              o->kind == TUNE_REDUCE_SCATTER ? sizeof(float) : o->element);
    if (bytes && o->count > SIZE_MAX / 2 / o->element)
        return tune_error_set("%s of %s: %zu elements of %zu bytes are too many", tune_collective_name(o->kind), o->what, o->count, o->element);
    if (o->on_device && !c->gpu)
        return tune_error_set("%s of %s: the comm has no device", tune_collective_name(o->kind), o->what);
    if (o->kind == TUNE_BROADCAST && (o->root < 0 || o->root >= c->t.size))
        return tune_error_set("broadcast of %s: there is no rank %d; ranks are 0 to %d", o->what, o->root, c->t.size - 1);
    return 0;
}

/* ---- the thread ---- */

/* pthread_cond_timedwait from now on, by the monotonic clock. */
static int wait_for(pthread_cond_t *cond, pthread_mutex_t *lock, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + (int64_t)((seconds < 1e6 ? seconds : 1e6) * 1e9);
    until.tv_sec += ns / 1000000000;
    until.tv_nsec = ns % 1000000000;
    return pthread_cond_timedwait(cond, lock, &until);
}

/* Latch the first error. The lock is held. */
static void fail(struct tune_comm *c)
{
    if (!c->failed)
        tune_error_save(&c->error);
    c->failed = true;
}

/* The device has done what comes before the collective. The lock is held at the beginning and at the end. */
static int reach(struct tune_comm *c, struct queued *q, const struct fingerprint *mine)
{
    void *mark = q->mark;
    int late = -1, status = 0;
    q->mark = NULL;
    pthread_mutex_unlock(&c->lock);
    if (mark && tune_gpu_reach(c->gpu, mark, &late) < 0)
        status = move_error(c, mine, late);
    pthread_mutex_lock(&c->lock);
    return status;
}

/* Run the collective of that number. The lock is held at the beginning and at the end. */
static void run(struct tune_comm *c, int64_t number)
{
    struct queued *q = &c->queue[number % QUEUE];
    struct fingerprint mine = {.number = number, .step = q->step, .count = q->what.count, .element = q->what.element,
                               .kind = (int32_t)q->what.kind, .root = q->what.root, .on_device = q->what.on_device};
    struct tune_collective_record *record = &c->records[number % RECORDS];
    int late = -1;
    memcpy(mine.what, q->name, sizeof mine.what);
    c->running = true;
    int status = reach(c, q, &mine);
    double began = tune_clock_s();
    *record = (struct tune_collective_record){.number = number, .step = q->step, .kind = q->what.kind, .count = q->what.count,
                                              .at_s = began - c->opened_s};
    memcpy(record->what, q->name, sizeof record->what);
    double timeout_s = c->timeout_s;
    pthread_mutex_unlock(&c->lock);
    for (int again = status == 0; again > 0;)
        status = again = meet(c, &mine, timeout_s);
    double all_there = tune_clock_s();
    pthread_mutex_lock(&c->lock);
    record->waited_s = all_there - began;
    pthread_mutex_unlock(&c->lock);
    if (status == 0 && move(c, &q->what, &late) < 0)
        status = move_error(c, &mine, late);
    pthread_mutex_lock(&c->lock);
    if (status < 0)
        fail(c);
    if (!c->failed) {
        record->moved_s = tune_clock_s() - all_there;
        record->bytes = sent_bytes(c, &q->what);
        record->over = true;
        c->bytes += record->bytes;
        c->took_s += q->apart ? record->waited_s + record->moved_s : 0;
        c->finished = number;
    }
    c->running = false;
    pthread_cond_broadcast(&c->over);
}

/* This rank works alone: tell the others that it is alive. The lock is held at the beginning and at the end. */
static void beat(struct tune_comm *c)
{
    struct fingerprint mine = {.alone = 1, .step = c->step, .what = "work of one rank alone"};
    double timeout_s = c->timeout_s;
    pthread_mutex_unlock(&c->lock);
    int status = meet(c, &mine, timeout_s);
    pthread_mutex_lock(&c->lock);
    if (status < 0) {
        fail(c);
        pthread_cond_broadcast(&c->over);
    }
}

static void *work(void *comm)
{
    struct tune_comm *c = comm;
    pthread_mutex_lock(&c->lock);
    while (!c->failed) {
        if (c->finished < c->started)
            run(c, c->finished + 1);
        else if (c->stop)
            break;
        else if (!c->alone)
            pthread_cond_wait(&c->more, &c->lock);
        else if (wait_for(&c->more, &c->lock, c->timeout_s / BEAT) == ETIMEDOUT && c->alone && c->finished == c->started)
            beat(c);
    }
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- for callers ---- */

/* This thread gets the comm's error. The lock is held. */
static int give_error(struct tune_comm *c)
{
    tune_error_restore(&c->error);
    return -1;
}

static int64_t start(struct tune_comm *c, const struct tune_collective *what, bool apart)
{
    TRY(check_collective(c, what));
    void *mark = what->on_device ? tune_device_mark(tune_gpu_device(c->gpu)) : NULL;
    TRY(what->on_device && !mark ? -1 : 0);
    pthread_mutex_lock(&c->lock);
    while (!c->failed && c->started - c->finished == QUEUE)
        pthread_cond_wait(&c->over, &c->lock);
    if (c->failed) {
        give_error(c);
        pthread_mutex_unlock(&c->lock);
        if (mark)
            tune_device_unmark(tune_gpu_device(c->gpu), mark);
        return -1;
    }
    int64_t number = ++c->started;
    struct queued *q = &c->queue[number % QUEUE];
    *q = (struct queued){.what = *what, .step = c->step, .apart = apart, .mark = mark};
    snprintf(q->name, sizeof q->name, "%s", what->what);
    if (!c->threaded) /* one rank: nothing to wait for */
        run(c, number);
    else
        pthread_cond_signal(&c->more);
    pthread_mutex_unlock(&c->lock);
    return number;
}

/* On a device, only the time counts in which it has no other operations. */
static int finish(struct tune_comm *c, int64_t number, bool apart)
{
    double began = tune_clock_s();
    const struct tune_collective_record *record = &c->records[number % RECORDS];
    bool computes = c->gpu && tune_gpu_computes(c->gpu, c->queue[number % QUEUE].what.kind);
    void *mark = apart && c->gpu && !computes ? tune_device_mark(tune_gpu_device(c->gpu)) : NULL;
    pthread_mutex_lock(&c->lock);
    while (!c->failed && c->finished < number) {
        if (mark && tune_device_reached(tune_gpu_device(c->gpu), mark)) {
            mark = NULL;
            began = tune_clock_s();
        }
        if (mark)
            wait_for(&c->over, &c->lock, 5e-5);
        else
            pthread_cond_wait(&c->over, &c->lock);
    }
    int status = c->finished < number ? give_error(c) : 0;
    double reached = c->opened_s + record->at_s;
    began = computes && record->number == number && reached > began ? reached : began;
    c->blocked_s += apart && !mark ? tune_clock_s() - began : 0;
    pthread_mutex_unlock(&c->lock);
    if (mark)
        tune_device_unmark(tune_gpu_device(c->gpu), mark);
    return status;
}

int64_t tune_comm_start(struct tune_comm *c, const struct tune_collective *what)
{
    int64_t number = start(c, what, true);
    if (number > 0 && what->on_device && tune_gpu_computes(c->gpu, what->kind) && finish(c, number, true) < 0)
        return -1;
    return number;
}

int tune_comm_wait(struct tune_comm *c, int64_t number)
{
    return finish(c, number, true);
}

int tune_comm_do(struct tune_comm *c, const struct tune_collective *what)
{
    int64_t number = start(c, what, false);
    return number < 0 ? -1 : finish(c, number, false);
}

int tune_comm_barrier(struct tune_comm *c, const char *what)
{
    return tune_comm_do(c, &(struct tune_collective){.kind = TUNE_BARRIER, .what = what});
}

void tune_comm_alone(struct tune_comm *c, bool alone)
{
    pthread_mutex_lock(&c->lock);
    c->alone = alone;
    pthread_cond_signal(&c->more);
    pthread_mutex_unlock(&c->lock);
}

void *tune_comm_gather(struct tune_comm *c, const char *what, const void *mine, size_t bytes)
{
    void *all = tune_zeroed((size_t)c->t.size, bytes + 1, "%s of all ranks", what);
    struct tune_collective o = {.kind = TUNE_ALL_GATHER, .what = what, .from = mine, .to = all, .count = (size_t)c->t.size, .element = bytes};
    if (all && tune_comm_do(c, &o) < 0) {
        free(all);
        return NULL;
    }
    return all;
}

int tune_comm_sum(struct tune_comm *c, const char *what, double *values, int count)
{
    double *all = tune_comm_gather(c, what, values, (size_t)count * sizeof *values);
    for (int i = 0; all && i < count; i++) {
        values[i] = all[i];
        for (int r = 1; r < c->t.size; r++)
            values[i] += all[(size_t)r * (size_t)count + (size_t)i];
    }
    bool good = all;
    free(all);
    return good ? 0 : -1;
}

int tune_comm_sum_whole(struct tune_comm *c, const char *what, int64_t *values, int count)
{
    int64_t *all = tune_comm_gather(c, what, values, (size_t)count * sizeof *values);
    for (int k = count; all && k < count * c->t.size; k++)
        all[k % count] += all[k];
    if (all)
        memcpy(values, all, (size_t)count * sizeof *values);
    bool good = all;
    free(all);
    return good ? 0 : -1;
}

void tune_comm_fail(struct tune_comm *c)
{
    pthread_mutex_lock(&c->lock);
    fail(c);
    pthread_mutex_unlock(&c->lock);
}

int tune_comm_agree(struct tune_comm *c, const char *what, const char *text)
{
    static const uint8_t halves[2][16] = {{1}, {2}};
    uint64_t mine[2];
    int other = 0;
    for (int k = 0; k < 2; k++)
        mine[k] = tune_siphash(text, strlen(text), halves[k]);
    uint64_t *all = tune_comm_gather(c, what, mine, sizeof mine);
    if (!all)
        return -1;
    for (int r = 1; r < c->t.size && other == 0; r++)
        other = memcmp(all + 2 * r, all, sizeof mine) ? r : 0;
    free(all);
    if (other == 0)
        return 0;
    tune_error_usage("ranks differ in %s: rank %d on %s has others than rank 0 on %s; start all ranks alike", what, other, c->peers[other].host,
                     c->peers[0].host);
    tune_comm_fail(c);
    return -1;
}

bool tune_comm_has_failed(struct tune_comm *c)
{
    if (!c)
        return false;
    pthread_mutex_lock(&c->lock);
    bool failed = c->failed;
    pthread_mutex_unlock(&c->lock);
    return failed;
}

int tune_comm_lost(const struct tune_comm *c)
{
    return c->lost - 1;
}

bool tune_comm_speaks(struct tune_comm *c, bool told)
{
    if (!c)
        return !told;
    bool common = tune_comm_has_failed(c);
    int first = c->t.rank == 0 ? SAVES | (common ? 0 : PRINTS_OWN) : 0;
    int before = c->t.bits(c->t.own, first | (common ? PRINTS_COMMON : 0));
    return common ? !(before & (PRINTS_OWN | PRINTS_COMMON)) : !told;
}

/* Wait so many seconds until a rank of this machine has set one of the bits. End also if a signal
 * comes, or if rank 0 has ended or has been stopped. The bits then. */
static int wait_for_bits(struct tune_comm *c, int wanted, double seconds)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    double end_s = tune_clock_s() + seconds;
    pid_t pid = (pid_t)c->peers[0].pid;
    struct tune_process p = {0};
    int bits = c->t.bits(c->t.own, 0);
    while (!(bits & wanted) && tune_clock_s() < end_s && nanosleep(&pause, NULL) == 0) {
        bool gone = bits & HERE && (kill(pid, 0) < 0 ? errno == ESRCH : tune_process_read(pid, &p) && (p.dead || p.stopped));
        bits = c->t.bits(c->t.own, 0);
        if (gone)
            break;
    }
    return bits;
}

int tune_comm_wait_told(struct tune_comm *c, double seconds)
{
    bool here = c->t.bits(c->t.own, 0) & HERE;
    int bits = wait_for_bits(c, PRINTS_OWN | PRINTS_COMMON, tune_comm_lost(c) == 0 ? 0 : !here && tune_comm_has_failed(c) ? fmin(seconds, 1) : seconds);
    return bits & PRINTS_OWN ? 1 : here || bits & PRINTS_COMMON ? -1 : 0;
}

void tune_comm_wait_saved(struct tune_comm *c, double seconds)
{
    if (c->t.rank == 0)
        c->t.bits(c->t.own, SAVED);
    if (c->t.rank == 0 || tune_comm_lost(c) == 0 || !(c->t.bits(c->t.own, 0) & HERE))
        return;
    /* rank 0 does not know of an error of this rank alone, or of its comm's thread */
    bool alone = !tune_comm_has_failed(c) && c->t.leave;
    if (alone)
        c->t.leave(c->t.own);
    if (wait_for_bits(c, SAVES, alone || tune_comm_lost(c) > 0 ? seconds : 0) & SAVES)
        wait_for_bits(c, SAVED, INFINITY);
}

void tune_comm_step(struct tune_comm *c, int64_t step)
{
    pthread_mutex_lock(&c->lock);
    c->step = step;
    pthread_mutex_unlock(&c->lock);
}

void tune_comm_timeout(struct tune_comm *c, double seconds)
{
    pthread_mutex_lock(&c->lock);
    c->timeout_s = seconds;
    pthread_mutex_unlock(&c->lock);
}

int tune_comm_history(struct tune_comm *c, struct tune_collective_record *records, int most)
{
    pthread_mutex_lock(&c->lock);
    int64_t last = c->finished + (c->records[(c->finished + 1) % RECORDS].number == c->finished + 1);
    int64_t first = last - (most < RECORDS ? most : RECORDS) + 1;
    int n = 0;
    for (int64_t i = first > 1 ? first : 1; i <= last; i++)
        records[n++] = c->records[i % RECORDS];
    pthread_mutex_unlock(&c->lock);
    return n;
}

uint64_t tune_comm_bytes(struct tune_comm *c)
{
    pthread_mutex_lock(&c->lock);
    uint64_t bytes = c->bytes;
    pthread_mutex_unlock(&c->lock);
    return bytes;
}

void tune_comm_overlap(struct tune_comm *c, double *took_s, double *waited_s)
{
    pthread_mutex_lock(&c->lock);
    *took_s = c->took_s;
    *waited_s = c->blocked_s;
    pthread_mutex_unlock(&c->lock);
}

/* ---- arrays of a device ---- */

void tune_comm_exact(struct tune_comm *c, bool exact)
{
    c->exact = exact;
}

bool tune_comm_has_device(const struct tune_comm *c)
{
    return c->gpu;
}

bool tune_comm_beside_device(const struct tune_comm *c)
{
    return c->gpu && !c->exact;
}

const char *tune_comm_about_device(const struct tune_comm *c)
{
    return c->about;
}

struct tune_link_place tune_comm_link(struct tune_comm *c, struct tune_device *dev, bool *exact)
{
    *exact = c->exact;
    return (struct tune_link_place){.rank = c->t.rank, .size = c->t.size, .dev = dev, .t = &c->t, .timeout_s = &c->timeout_s};
}

void tune_comm_set_gpu(struct tune_comm *c, struct tune_comm_gpu *g, const char *about)
{
    pthread_mutex_lock(&c->lock);
    while (c->gpu && (c->running || (!c->failed && c->finished < c->started)))
        pthread_cond_wait(&c->over, &c->lock);
    for (int i = 0; c->gpu && i < QUEUE; i++) { /* collectives that did not run any more, after an error */
        tune_device_unmark(tune_gpu_device(c->gpu), c->queue[i].mark);
        c->queue[i].mark = NULL;
    }
    if (c->gpu && c->failed)
        tune_gpu_failed(c->gpu);
    pthread_mutex_unlock(&c->lock);
    tune_gpu_free(c->gpu);
    c->gpu = g;
    snprintf(c->about, sizeof c->about, "%s", about ? about : "");
}

/* ---- open and close ---- */

/* The ranks tell each other who they are. */
static int introduce(struct tune_comm *c)
{
    int late = -1;
    struct peer mine = {.pid = getpid()};
    if (gethostname(mine.host, sizeof mine.host - 1) < 0)
        snprintf(mine.host, sizeof mine.host, "?");
    c->peers[c->t.rank] = mine;
    if (c->t.size == 1)
        return 0;
    if (c->t.rank == 0)
        c->t.bits(c->t.own, HERE);
    int status = c->t.meet(c->t.own, &mine, c->peers, sizeof mine, c->timeout_s, &late);
    if (late >= 0)
        return tune_error_set("rank %d of %d %s, when rank %d on %s opened its comm", late, c->t.size, tune_error_message(), c->t.rank, mine.host);
    return status;
}

static void close_transport(struct tune_transport *t, bool failed)
{
    if (t->close)
        t->close(t->own, failed);
}

struct tune_comm *tune_comm_open(struct tune_transport *transport, double timeout_s)
{
    struct tune_comm *c = tune_zeroed(1, sizeof *c, "a comm");
    if (!c) {
        close_transport(transport, true);
        return NULL;
    }
    c->t = *transport;
    c->timeout_s = timeout_s > 0 ? timeout_s : TUNE_COMM_PATIENCE_S;
    c->opened_s = tune_clock_s();
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_t steady;
    pthread_condattr_init(&steady);
    pthread_condattr_setclock(&steady, CLOCK_MONOTONIC);
    pthread_cond_init(&c->more, &steady);
    pthread_cond_init(&c->over, &steady);
    pthread_condattr_destroy(&steady);
    c->peers = tune_zeroed((size_t)c->t.size, sizeof *c->peers, "the other ranks");
    c->said = tune_zeroed((size_t)c->t.size, sizeof *c->said, "the other ranks");
    int status = c->peers && c->said ? introduce(c) : -1;
    if (status == 0 && c->t.size > 1 && pthread_create(&c->thread, NULL, work, c))
        status = tune_error_set("cannot start the thread of the collectives");
    c->threaded = status == 0 && c->t.size > 1;
    if (status == 0)
        return c;
    c->failed = true;
    tune_comm_close(c);
    return NULL;
}

static int self_meet(void *own, const void *mine, void *all, size_t bytes, double timeout_s, int *late)
{
    (void)own, (void)timeout_s, (void)late;
    memcpy(all, mine, bytes);
    return 0;
}

/* The pieces of a single rank are all its own. */
static int self_exchange(void *own, const void *const *send, const size_t *send_bytes, void *const *receive, const size_t *receive_bytes,
                         int *late)
{
    (void)late, (void)own, (void)send, (void)send_bytes, (void)receive, (void)receive_bytes;
    return 0;
}

static int self_gather(void *own, void *all, const size_t *at, int *late)
{
    (void)own, (void)all, (void)at, (void)late;
    return 0;
}

static int self_broadcast(void *own, void *data, size_t bytes, int root, int *late)
{
    (void)own, (void)data, (void)bytes, (void)root, (void)late;
    return 0;
}

static int self_bits(void *own, int set)
{
    (void)own;
    (void)set;
    return 0;
}

struct tune_comm *tune_comm_open_self(void)
{
    struct tune_transport self = {.name = "self", .size = 1, .meet = self_meet, .exchange = self_exchange, .gather = self_gather,
                                  .broadcast = self_broadcast, .bits = self_bits};
    return tune_comm_open(&self, 0);
}

void tune_comm_close(struct tune_comm *c)
{
    if (!c)
        return;
    if (c->threaded) {
        pthread_mutex_lock(&c->lock);
        c->stop = true;
        pthread_cond_signal(&c->more);
        pthread_mutex_unlock(&c->lock);
        pthread_join(c->thread, NULL);
    }
    tune_comm_set_gpu(c, NULL, NULL);
    close_transport(&c->t, c->failed);
    pthread_cond_destroy(&c->over);
    pthread_cond_destroy(&c->more);
    pthread_mutex_destroy(&c->lock);
    free(c->pieces);
    free(c->said);
    free(c->peers);
    free(c);
}
