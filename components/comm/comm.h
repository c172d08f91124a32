/* comm.h - collectives between ranks: the processes that train one model together.
 *
 * Each rank calls the same collectives in the same order. Sums are added in the order of the ranks,
 * in float32. So a result depends on the number of ranks alone, not on how or when the bytes moved.
 * With one rank each call copies or does nothing. Example, the gradients of a layer:
 *
 *     float *share = ...;                                  tune_comm_share_count(c, count) values
 *     int64_t id = tune_comm_start(c, &(struct tune_collective){
 *         .kind = TUNE_REDUCE_SCATTER, .what = "gradients of layer 3",
 *         .from = gradients, .to = share, .count = count, .element = sizeof(float)});
 *     ... go on with the backward pass ...
 *     if (id < 0 || tune_comm_wait(c, id) < 0)
 *         return -1;
 *
 * A collective begins when all ranks have come to it. They compare what they are about to do first.
 * It fails if ranks do different things, or if one has ended or does not come in time. The error
 * names the rank and its host. Each further call then fails with the same error. */
#ifndef TUNE_COMM_H
#define TUNE_COMM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "comm/transport.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tune_comm;
struct tune_device;
struct tune_flags;

enum tune_collective_kind {
    TUNE_BARRIER,        /* each rank waits until all are there */
    TUNE_BROADCAST,      /* all get what the root has */
    TUNE_ALL_GATHER,     /* all get the shares of all, one behind the other */
    TUNE_REDUCE_SCATTER, /* each gets its share of the sum over the ranks; float32 */
    TUNE_COLLECTIVES,
};

/* One collective. count: elements of the whole array, the same on each rank. */
struct tune_collective {
    enum tune_collective_kind kind;
    const char *what;  /* "gradients of layer 3", for messages; at most 39 bytes are kept */
    const void *from;  /* reduce_scatter: [count]. all_gather: our share; NULL: it lies in its place
                        * in `to`. Others: NULL */
    void *to;          /* reduce_scatter: the own share; else [count]. It may be the own share's
                        * place in `from`. Barrier: NULL */
    size_t count;
    size_t element;    /* bytes of an element; reduce_scatter: 4 */
    int root;          /* of broadcast */
    bool on_device;    /* the arrays are on the device of tune_comm_use_device: address.at as a
                        * pointer. It begins when operations called before it are done */
};

#define TUNE_COMM_PATIENCE_S 300 /* the default of timeout_s */

/* tune_comm_open - a comm over a transport, which it owns from then on and closes, also after an
 * error. timeout_s: how long a rank may be behind the others, seconds; 0: the default. The ranks
 * tell each other their hosts. NULL with an error.
 * tune_comm_open_self - a comm of one rank.
 * tune_comm_open_mpi - the ranks that mpirun or srun started, of which this process is one. Without
 * them, one rank. Once in a process. NULL with an error of kind USAGE: this build has no MPI.
 * tune_comm_can_start - 0 if mpirun can start ranks here. -1 with an error of kind USAGE that says
 * what it lacks: tune_mpi.so, mpirun, or the leave to run as root.
 * tune_comm_close - close it; NULL is fine. It waits for collectives that nobody waited for. After
 * an error it tells the other ranks not to wait.
 * tune_get_comm - the comm of this process. It is flags->comm, which the other getters read, and
 * tune_flags_free closes it. The ranks' options must be alike. Where ranks share a host and
 * flags->threads is 0, each has its share of the cores (rank_threads). It is bound to its own cores
 * then, if the launcher has not bound them. There each rank's tune_get_device takes another GPU.
 * NULL with an error: a launcher started other ranks than flags->ranks says.
 * tune_comm_rank - our number, from 0.
 * tune_comm_size - how many ranks there are.
 * tune_comm_follows - whether there is another rank that prints and writes the run folder for us:
 * rank 0. c may be NULL.
 * tune_comm_host - the host of a rank.
 * tune_comm_local - how many ranks are on our host; *place: how many of these come before us. */
struct tune_comm *tune_comm_open(struct tune_transport *transport, double timeout_s);
struct tune_comm *tune_comm_open_self(void);
struct tune_comm *tune_comm_open_mpi(double timeout_s);
int tune_comm_can_start(void);
void tune_comm_close(struct tune_comm *c);
struct tune_comm *tune_get_comm(struct tune_flags *flags);
int tune_comm_rank(const struct tune_comm *c);
int tune_comm_size(const struct tune_comm *c);
bool tune_comm_follows(const struct tune_comm *c);
const char *tune_comm_host(const struct tune_comm *c, int rank);
int tune_comm_local(const struct tune_comm *c, int *place);

/* tune_comm_exact - before tune_comm_use_device: arrays of GPUs, too, are added in the order of the
 * ranks, so that their sums have the bits of other ranks'. Else NCCL adds them.
 * tune_comm_use_device - open NCCL between the GPUs of the ranks, of which dev is ours. All ranks
 * call it. It closes with the device. A CPU, and a program without tune_nccl.so, have nothing to
 * open. -1 with an error, of kind USAGE if two ranks have one GPU.
 * tune_comm_has_device - whether there are collectives on_device.
 * tune_comm_beside_device - whether they add up while the device computes. With tune_comm_exact the
 * device adds, and tune_comm_start waits for it.
 * tune_comm_about_device - how the gradients of GPUs travel, for people; "": there is no GPU. */
void tune_comm_exact(struct tune_comm *c, bool exact);
int tune_comm_use_device(struct tune_comm *c, struct tune_device *dev);
bool tune_comm_has_device(const struct tune_comm *c);
bool tune_comm_beside_device(const struct tune_comm *c);
const char *tune_comm_about_device(const struct tune_comm *c);

/* tune_comm_share - the first element of a rank's share of count elements. The share ends where
 * that of rank + 1 begins. Shares differ by at most one element, and may be empty.
 * tune_comm_share_count - the number of elements of our own share. */
size_t tune_comm_share(size_t count, int rank, int size);
size_t tune_comm_share_count(const struct tune_comm *c, size_t count);

/* tune_comm_start - begin a collective, and return while it runs on a thread of its own. Its arrays
 * must stay as they are until it is over. Collectives run one after the other, in the order of the
 * starts. Returns its number, or -1 with an error.
 * tune_comm_wait - wait until that collective is over. -1 with an error: it, or one before, failed.
 * tune_comm_do - start it and wait.
 * tune_comm_barrier - all ranks wait until all are there.
 * tune_comm_alone - true: this rank goes to work that takes it longer than the others, such as a
 * save. In their next collective they wait for it as long as its process is alive and not stopped.
 * false: its work is over. */
int64_t tune_comm_start(struct tune_comm *c, const struct tune_collective *what);
int tune_comm_wait(struct tune_comm *c, int64_t number);
int tune_comm_do(struct tune_comm *c, const struct tune_collective *what);
int tune_comm_barrier(struct tune_comm *c, const char *what);
void tune_comm_alone(struct tune_comm *c, bool alone);

/* tune_comm_gather - the same number of bytes of each rank, one behind the other, which the caller
 * frees (free). NULL with an error.
 * tune_comm_sum - replace values[count] by their sums over the ranks, added in order in float64.
 * tune_comm_sum_whole - the same for whole numbers.
 * tune_comm_agree - 0 if all ranks give the same text. Else -1 with an error of kind USAGE. That
 * names a rank and its host, and is the comm's from then on. what: "the options", for messages. */
void *tune_comm_gather(struct tune_comm *c, const char *what, const void *mine, size_t bytes);
int tune_comm_sum(struct tune_comm *c, const char *what, double *values, int count);
int tune_comm_sum_whole(struct tune_comm *c, const char *what, int64_t *values, int count);
int tune_comm_agree(struct tune_comm *c, const char *what, const char *text);

/* tune_comm_speaks - whether this rank should print its error. All ranks have a comm's error: then
 * the first rank of a machine that asks prints it. An error of its own each rank prints, unless
 * told: rank 0 says why. c may be NULL.
 * tune_comm_wait_told - wait so many seconds until a rank of this machine begins to print an error,
 * or a signal comes. It does not wait if rank 0 is lost. 1: rank 0 prints an error of its own. -1:
 * it does not. 0: it is on another machine.
 * tune_comm_wait_saved - call it before the end, after an error. Rank 0 tells the others of its
 * machine that it has saved the run, and they wait for that. If they ended earlier, the launcher
 * would end rank 0 while it saves. They do not wait if rank 0 is lost, or does not begin to save
 * within so many seconds. A rank whose error is its own tells the others first. */
bool tune_comm_speaks(struct tune_comm *c, bool told);
int tune_comm_wait_told(struct tune_comm *c, double seconds);
void tune_comm_wait_saved(struct tune_comm *c, double seconds);

/* tune_comm_has_failed - whether a collective has failed, so that this thread's error is about the
 * ranks. c may be NULL.
 * tune_comm_lost - the rank that ended or did not come; -1: none. */
bool tune_comm_has_failed(struct tune_comm *c);
int tune_comm_lost(const struct tune_comm *c);

/* tune_comm_step - say which optimizer step begins. Ranks compare it with each collective.
 * tune_comm_timeout - how long a rank may be behind the others from now on, seconds. The first step
 * takes longer than the others. */
void tune_comm_step(struct tune_comm *c, int64_t step);
void tune_comm_timeout(struct tune_comm *c, double seconds);

/* The time and the bytes of a collective. */
struct tune_collective_record {
    int64_t number, step;
    enum tune_collective_kind kind;
    char what[40];
    size_t count;      /* elements of the whole array */
    size_t bytes;      /* that this rank sent */
    double at_s;       /* when it began, from the opening of the comm */
    double waited_s;   /* until all ranks were there */
    double moved_s;    /* from then on */
    bool over;         /* false: it still runs, or it failed */
};

/* tune_comm_history - the last collectives, at most `most` and at most 64, the newest last, into
 * records. Returns their number.
 * tune_comm_bytes - bytes that this rank has sent in collectives.
 * tune_comm_overlap - of those that tune_comm_start began: how long they took, from when they could
 * begin, and how long tune_comm_wait waited for them. The rest ran beside the caller's work. Of a
 * device, only the waiting counts in which it had no operations to do.
 * tune_comm_held_bytes - memory that a comm takes for its first reduce_scatter of count elements.
 * It is on the device if tune_comm_has_device. c may be NULL.
 * tune_collective_name - "reduce_scatter" and so on. */
int tune_comm_history(struct tune_comm *c, struct tune_collective_record *records, int most);
uint64_t tune_comm_bytes(struct tune_comm *c);
void tune_comm_overlap(struct tune_comm *c, double *took_s, double *waited_s);
size_t tune_comm_held_bytes(const struct tune_comm *c, size_t count);
const char *tune_collective_name(enum tune_collective_kind kind);

#ifdef __cplusplus
}
#endif
#endif
