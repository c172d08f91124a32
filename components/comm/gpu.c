/* gpu.c - collectives on arrays of GPUs: the ranks find each other by their comm, and open tune_nccl.so. */
#include "comm/gpu.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/array.h"
#include "core/clock.h"
#include "core/error.h"
#include "core/try.h"
#include "devices/ops.h"
#include "files/library.h"

/* tune_nccl.so calls these functions, too. So the linker takes them from libtune.a even if the
 * program does not call them. */
static void (*const for_nccl[])(void) __attribute__((used)) = {(void (*)(void))tune_device_done, (void (*)(void))tune_device_beside,
                                                               (void (*)(void))tune_zeroed, (void (*)(void))tune_clock_s};

struct tune_comm_gpu {
    struct tune_link link;
    struct tune_link_place place;
    bool exact, failed;
    tune_address pieces; /* of other ranks, to be added */
    int64_t piece_bytes;
};

/* A rank tells this to the others before they open a link. */
struct gpu_of_rank {
    char bus[64];
    int found; /* it has the library */
};

static tune_address address(const void *at)
{
    return (tune_address){(uint64_t)(uintptr_t)at};
}

static void *pointer(tune_address at)
{
    return (void *)(uintptr_t)at.at;
}

/* ---- sums in the order of the ranks ---- */

size_t tune_gpu_held_bytes(const struct tune_comm_gpu *g, size_t count)
{
    return g->exact ? (size_t)(g->place.size - 1) * tune_comm_piece(count, g->place.rank, g->place.size, 0, NULL) * sizeof(float) : 0;
}

static int reserve(struct tune_comm_gpu *g, int64_t bytes)
{
    if (bytes <= g->piece_bytes)
        return 0;
    tune_device_free(g->place.dev, g->pieces, g->piece_bytes);
    g->pieces = tune_device_alloc(g->place.dev, bytes, "pieces of other ranks");
    g->piece_bytes = g->pieces.at ? bytes : 0;
    return g->pieces.at ? tune_device_sync(g->place.dev) : -1; /* it is zeroed before the other stream writes there */
}

/* to = from[0] + from[1] + ..., in this order. to may be our own one of them. */
static int add_in_order(struct tune_comm_gpu *g, void *to, void *const *from, size_t count)
{
    struct tune_device *dev = g->place.dev;
    struct tune_tensor sum = tune_tensor_1d(address(from[0]), TUNE_F32, (int64_t)count), all = tune_tensor_1d(address(to), TUNE_F32, (int64_t)count);
    if (g->place.rank == 0 && sum.data.at != all.data.at) { /* our own gradients stay as they are */
        TRY(tune_copy(dev, &all, &sum));
        sum = all;
    }
    for (int r = 1; r < g->place.size; r++) {
        struct tune_tensor next = tune_tensor_1d(address(from[r]), TUNE_F32, (int64_t)count);
        TRY(tune_axpby(dev, &sum, &next, 1, 1));
    }
    return sum.data.at == all.data.at ? 0 : tune_copy(dev, &all, &sum);
}

/* One round: a piece of each share. */
static int reduce_piece(struct tune_comm_gpu *g, const struct tune_collective *o, size_t first, int *late)
{
    int size = g->place.size, rank = g->place.rank;
    const void *send[size];
    void *receive[size], *from[size];
    size_t send_bytes[size], receive_bytes[size], own = tune_comm_piece(o->count, rank, size, first, NULL);
    TRY(reserve(g, (int64_t)((size_t)(size - 1) * own * sizeof(float))));
    tune_address at = g->pieces;
    for (int r = 0; r < size; r++) {
        send[r] = (const float *)o->from + tune_comm_share(o->count, r, size) + first;
        send_bytes[r] = tune_comm_piece(o->count, r, size, first, NULL) * sizeof(float);
        receive_bytes[r] = own * sizeof(float);
        receive[r] = pointer(at);
        from[r] = r == rank ? (void *)(uintptr_t)send[r] : receive[r];
        at = r == rank ? at : tune_address_plus(at, (int64_t)(own * sizeof(float)));
    }
    TRY(g->link.exchange(g->link.own, send, send_bytes, receive, receive_bytes, late));
    TRY(own > 0 ? add_in_order(g, (float *)o->to + first, from, own) : 0);
    return tune_device_sync(g->place.dev); /* the next round's pieces come into the same memory */
}

static int reduce_exactly(struct tune_comm_gpu *g, const struct tune_collective *o, int *late)
{
    size_t longest = (o->count + (size_t)g->place.size - 1) / (size_t)g->place.size, round = 0;
    tune_comm_piece(o->count, 0, g->place.size, 0, &round);
    for (size_t first = 0; first < longest; first += round)
        TRY(reduce_piece(g, o, first, late));
    return 0;
}

/* ---- the collectives ---- */

static int all_gather(struct tune_comm_gpu *g, const struct tune_collective *o, const size_t *at, int *late)
{
    size_t bytes[g->place.size + 1];
    for (int r = 0; r <= g->place.size; r++)
        bytes[r] = at[r] * o->element;
    return g->link.gather(g->link.own, o->from ? o->from : (char *)o->to + bytes[g->place.rank], o->to, bytes, late);
}

struct tune_device *tune_gpu_device(const struct tune_comm_gpu *g)
{
    return g->place.dev;
}

int tune_gpu_reach(struct tune_comm_gpu *g, void *mark, int *late)
{
    const struct tune_transport *t = g->place.t;
    int reached;
    tune_device_beside(g->place.dev); /* the GPU is this thread's, too, from here on */
    while ((reached = tune_device_reached(g->place.dev, mark)) == 0) {
        if (t->look && t->look(t->own, late) < 0) {
            tune_device_unmark(g->place.dev, mark);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
    }
    return reached < 0 ? -1 : 0;
}

bool tune_gpu_computes(const struct tune_comm_gpu *g, enum tune_collective_kind kind)
{
    return g->exact && kind == TUNE_REDUCE_SCATTER;
}

int tune_gpu_move(struct tune_comm_gpu *g, const struct tune_collective *o, int *late)
{
    size_t at[g->place.size + 1];
    tune_device_beside(g->place.dev);
    for (int r = 0; r <= g->place.size; r++)
        at[r] = tune_comm_share(o->count, r, g->place.size);
    switch (o->kind) {
    case TUNE_REDUCE_SCATTER:
        return g->exact ? reduce_exactly(g, o, late) : g->link.reduce_scatter(g->link.own, o->from, o->to, at, late);
    case TUNE_ALL_GATHER: return all_gather(g, o, at, late);
    case TUNE_BROADCAST: return g->link.broadcast(g->link.own, o->to, o->count * o->element, o->root, late);
    default: return 0;
    }
}

/* ---- open and close ---- */

void tune_gpu_failed(struct tune_comm_gpu *g)
{
    g->failed = true;
}

const char *tune_gpu_about(const struct tune_comm_gpu *g)
{
    return g->link.about;
}

void tune_gpu_free(struct tune_comm_gpu *g)
{
    if (!g)
        return;
    if (g->link.close)
        g->link.close(g->link.own, g->failed);
    tune_device_free(g->place.dev, g->pieces, g->piece_bytes);
    g->place.dev->closing = NULL;
    free(g);
}

/* Two ranks with one GPU would wait for each other for ever. */
static int check_gpus(const struct tune_comm *c, const struct gpu_of_rank *all, int size)
{
    int place, here = tune_comm_local(c, &place);
    for (int r = 0; r < size; r++)
        for (int k = 0; k < r; k++)
            if (!strcmp(all[k].bus, all[r].bus) && !strcmp(tune_comm_host(c, k), tune_comm_host(c, r)))
                return tune_error_usage("ranks %d and %d on %s both have the GPU %s: each of the %d ranks there needs one of its own; use fewer "
                                        "`ranks`, `device` cuda without a number, or show each its own (CUDA_VISIBLE_DEVICES)", k, r,
                                        tune_comm_host(c, r), all[r].bus, here);
    for (int r = 1; r < size; r++)
        if (all[r].found != all[0].found)
            return tune_error_usage("rank %d on %s has %s tune_nccl.so, unlike rank 0 on %s; start all ranks from the same build, or set TUNE_NCCL=off "
                                    "everywhere", r, tune_comm_host(c, r), all[r].found ? "a" : "no", tune_comm_host(c, 0));
    return 0;
}

static int open_link(struct tune_comm *c, struct tune_comm_gpu *g, struct tune_library *library)
{
    int (*make_id)(char id[TUNE_LINK_ID]) = NULL, late = -1;
    __typeof__(tune_nccl_open) *open = NULL;
    char id[TUNE_LINK_ID] = "";
    TRY(tune_library_find(library, "tune_nccl_id", &make_id));
    TRY(tune_library_find(library, "tune_nccl_open", &open));
    TRY(g->place.rank == 0 ? make_id(id) : 0);
    TRY(tune_comm_do(c, &(struct tune_collective){.kind = TUNE_BROADCAST, .what = "NCCL's id", .to = id, .count = sizeof id, .element = 1}));
    int status = open(&g->link, &g->place, id, &late);
    if (status < 0 && late >= 0)
        return tune_error_set("rank %d of %d on %s %s, when rank %d opened NCCL", late, g->place.size, tune_comm_host(c, late),
                              tune_error_message(), g->place.rank);
    return status;
}

/* The library; NULL in .name: there is none, or it is not wanted, and *why says so. */
static int find_library(struct tune_library *library, char path[PATH_MAX], const char **why)
{
    const char *name = tune_library_beside("tune_nccl.so", "TUNE_NCCL", path, PATH_MAX);
    *why = name ? "as TUNE_NCCL=off says" : "there is no tune_nccl.so beside the program (`make nccl` builds it where NCCL is)";
    *library = (struct tune_library){0};
    if (!name || !strcmp(name, "off"))
        return 0;
    library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL); /* NCCL leaves threads behind: it stays open */
    library->name = name;
    if (library->handle)
        return 0;
    const char *reason = dlerror();
    return tune_error_cannot("ranks: cannot load %s: %s; the NCCL that it was built with must be found, as by LD_LIBRARY_PATH; TUNE_NCCL=off in the "
                             "environment does without, through host memory", name, reason ? reason : "no reason given");
}

static void close_with_device(void *comm)
{
    tune_comm_set_gpu(comm, NULL, NULL);
}

int tune_comm_use_device(struct tune_comm *c, struct tune_device *dev)
{
    char path[PATH_MAX], about[300];
    const char *why;
    struct tune_library library;
    struct gpu_of_rank mine = {.found = 0};
    if (!dev->gpus)
        return 0;
    TRY(tune_device_beside(dev) ? 0 : -1);
    TRY(find_library(&library, path, &why));
    mine.found = library.handle != NULL;
    snprintf(mine.bus, sizeof mine.bus, "%s", dev->gpus ? dev->gpus : "?");
    struct gpu_of_rank *all = tune_comm_gather(c, "GPUs", &mine, sizeof mine);
    int status = all ? check_gpus(c, all, tune_comm_size(c)) : -1;
    if (all && status < 0)
        tune_comm_fail(c);
    free(all);
    TRY(status);
    if (!mine.found) {
        snprintf(about, sizeof about, "through host memory: %s", why);
        tune_comm_set_gpu(c, NULL, about);
        return 0;
    }
    struct tune_comm_gpu *g = tune_zeroed(1, sizeof *g, "a link between GPUs");
    if (!g)
        return -1;
    g->place = tune_comm_link(c, dev, &g->exact);
    if (open_link(c, g, &library) < 0) {
        free(g);
        return -1;
    }
    snprintf(about, sizeof about, "stay on the GPUs; %s %s", g->exact ? "added in the order of the ranks, and moved by" : "added by", g->link.about);
    tune_comm_set_gpu(c, g, about);
    dev->closing = close_with_device;
    dev->closing_with = c;
    return 0;
}
