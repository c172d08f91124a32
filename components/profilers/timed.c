/* timed.c - a table of operations with a clock around each one, generated from the list of
 * ops.h. */
#include "profilers/timing.h"

#include <stdlib.h>

#include "profilers/costs.h"

static struct tune_profiler *self(struct tune_device *dev)
{
    /* the table is the profiler's first member */
    return (struct tune_profiler *)(void *)(uintptr_t)dev->ops;
}

/* ---- functions for the costs in ops.h ---- */

/* A copy of an index tensor on the host. NULL: no tensor, or no memory. The caller frees it. */
static int32_t *look(struct tune_device *dev, const struct tune_tensor *t)
{
    int32_t *host = t ? malloc((size_t)tune_tensor_bytes(t) + 1) : NULL;
    const struct tune_ops *real = self(dev)->real;
    if (host && real->download(dev, host, t->data, tune_tensor_bytes(t)) == 0 && real->sync(dev) == 0)
        return host;
    free(host);
    return NULL;
}

/* Number of (query, key) pairs in the mask, over all heads and rows. */
static double pairs(struct tune_device *dev, const struct tune_tensor *q, const struct tune_tensor *k, const struct tune_tensor *starts,
                    const struct tune_tensor *kv_length, const struct tune_tensor *q_offset, const struct tune_attention *params)
{
    int32_t *start = look(dev, starts), *length = look(dev, kv_length), *offset = look(dev, q_offset);
    int64_t T = q->shape[1], seen = 0;
    for (int64_t i = 0; i < q->shape[0] * T; i++) {
        int64_t b = i / T, position = i % T + (offset ? offset[b] : 0), end = position + 1, limit = length ? length[b] : k->shape[1];
        int64_t from = start ? start[i] : 0, window = params->window > 0 ? end - params->window : 0;
        end = end < limit ? end : limit;
        from = from > window ? from : window;
        seen += end > from ? end - from : 0;
    }
    free(start);
    free(length);
    free(offset);
    return (double)seen * (double)q->shape[2];
}

/* ---- the entries ---- */

#define COST(flops_, bytes_, way_) .flops = (double)(flops_), .bytes = (double)(bytes_), .way = way_
#define TIMED(op)                                                                           \
    static int op(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER))                   \
    {                                                                                       \
        struct tune_profiler *timer = self(dev);                                            \
        const struct tune_tensor *shaped = NULL;                                            \
        double all = 0 TUNE_ARGS_##op(TOUCHED);                                             \
        TUNE_ARGS_##op(SHAPED)                                                              \
        (void)all;                                                                          \
        struct tune_timed_op timed = {.name = #op, TUNE_COST_##op};                         \
        for (int i = 0; shaped && i < 3 && i < shaped->ndim; i++)                           \
            timed.shape[i] = shaped->shape[i];                                              \
        double begin_s = tune_timed_begin(timer);                                           \
        int status = timer->real->op(dev TUNE_ARGS_##op(TUNE_ARGUMENT));                        \
        return tune_timed_end(timer, begin_s, status, &timed);                              \
    }
TUNE_OPS(TIMED)

static int moved(struct tune_profiler *p, double begin_s, int status, const char *name, int64_t n)
{
    return tune_timed_end(p, begin_s, status, &(struct tune_timed_op){.name = name, .way = "", .bytes = 2.0 * (double)n});
}

static int upload(struct tune_device *dev, tune_address to, const void *from, int64_t n)
{
    struct tune_profiler *p = self(dev);
    double begin_s = tune_timed_begin(p);
    return moved(p, begin_s, p->real->upload(dev, to, from, n), "upload", n);
}

static int download(struct tune_device *dev, void *to, tune_address from, int64_t n)
{
    struct tune_profiler *p = self(dev);
    double begin_s = tune_timed_begin(p);
    return moved(p, begin_s, p->real->download(dev, to, from, n), "download", n);
}

static int sync_device(struct tune_device *dev)
{
    struct tune_profiler *p = self(dev);
    double begin_s = tune_timed_begin(p);
    return moved(p, begin_s, p->real->sync(dev), "sync", 0);
}

void tune_timed_ops(struct tune_profiler *p)
{
    struct tune_ops *t = &p->table;
    *t = *p->real; /* entries without a wrapper are called directly, as time between operations */
    t->group_begin = t->group_end = NULL; /* each operation is timed by itself */
    t->upload = upload;
    t->download = download;
    t->sync = sync_device;
#define ENTRY(op) t->op = op;
    TUNE_OPS(ENTRY)
}
