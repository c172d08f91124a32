/* graph.cu - the operations of a group, collected and queued as one CUDA graph.
 *
 * Each call within a group is written down: the operation and its arguments. At the group's end the
 * list is looked up. A list that was not seen before runs call by call. The second time it is also
 * captured, and from then on one launch queues all of it. So a graph always does what the calls
 * say: other arguments are another list. The driver takes memory for graphs; it is measured. Once
 * it is TUNE_CUDA_GRAPHS, a list that is used much more than that of a graph takes its place. */
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "devices/cuda/cuda.h"

namespace {

/* The calls of a group, one after the other: a head, then the arguments. */
struct calls {
    char *at;
    size_t used, capacity;
};

struct graph {
    struct calls calls;
    uint64_t hash;
    cudaGraphExec_t exec; /* NULL: seen once */
    uint64_t last;        /* when it was used */
    uint64_t uses;        /* how often; it is halved after each AGE groups */
};

enum { MOST = 4096, AGE = 1 << 12 }; /* MOST: graphs that are kept */

} // namespace

struct tune_cuda_graphs {
    bool off, open, collecting;
    bool broken; /* a call of the group could not be written down */
    int failed; /* -1: an operation of the group failed before its end */
    struct calls now;
    struct graph kept[MOST];
    int count, found; /* found: the one that was looked up last */
    uint64_t clock;
    int64_t taken; /* of the GPU's memory */
};

/* ---- writing calls down ---- */

#define NUMBER(op) CALL_##op,
enum { TUNE_OPS(NUMBER) CALLS };

static bool put(struct calls *c, const void *from, size_t bytes)
{
    if (c->used + bytes > c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 1 << 16;
        char *more = static_cast<char *>(realloc(c->at, capacity));
        if (!more) {
            tune_error_no_memory("the calls of a CUDA graph");
            return false;
        }
        c->at = more;
        c->capacity = capacity;
    }
    memcpy(c->at + c->used, from, bytes);
    c->used += bytes;
    return true;
}

/* Field by field: padding has no meaning. */
static bool put_tensor(struct calls *c, const struct tune_tensor *t)
{
    int32_t head[2] = {t ? t->ndim : -1, t ? static_cast<int32_t>(t->dtype) : 0};
    if (!put(c, head, sizeof head) || !t)
        return !t;
    int64_t steps[2] = {t->stride, t->outer};
    return put(c, &t->data, sizeof t->data) && put(c, steps, sizeof steps) &&
           put(c, &t->nf4, sizeof t->nf4) &&
           put(c, t->shape, static_cast<size_t>(t->ndim) * sizeof *t->shape);
}

template <class T> static void take(const char **from, T *to)
{
    memcpy(to, *from, sizeof *to);
    *from += sizeof *to;
}

/* The tensor, made in *tensor; NULL: none. */
static struct tune_tensor *take_tensor(const char **from, struct tune_tensor *tensor)
{
    int32_t head[2];
    int64_t steps[2];
    take(from, &head);
    if (head[0] < 0)
        return nullptr;
    *tensor = {};
    tensor->ndim = head[0];
    tensor->dtype = static_cast<enum tune_dtype>(head[1]);
    take(from, &tensor->data);
    take(from, &steps);
    take(from, &tensor->nf4);
    tensor->stride = steps[0];
    tensor->outer = steps[1];
    memcpy(tensor->shape, *from, static_cast<size_t>(tensor->ndim) * sizeof *tensor->shape);
    *from += static_cast<size_t>(tensor->ndim) * sizeof *tensor->shape;
    return tensor;
}

/* The operation, and the weight that an error names. */
struct head {
    const char *what;
    int32_t unit, number;
};

static bool put_head(struct calls *c, int number, const struct tune_device *dev)
{
    struct head h = {dev->doing.what, dev->doing.unit, number};
    return put(c, &h, sizeof h);
}

#define PUT(kind, ...) PUT_##kind(__VA_ARGS__)
#define PUT_SET(x) &&put_tensor(calls_, x)
#define PUT_EDIT(x, old) &&put_tensor(calls_, x)
#define PUT_GET(x) &&put_tensor(calls_, x)
#define PUT_STEP(x) &&put(calls_, &x, sizeof x)
#define PUT_VALUE(x, T) &&put(calls_, &x, sizeof x)
#define TAKE(kind, ...) TAKE_##kind(__VA_ARGS__)
#define TAKE_TENSOR(x)                                                                             \
    struct tune_tensor tensor_##x;                                                                 \
    struct tune_tensor *x = take_tensor(from_, &tensor_##x);
#define TAKE_SET(x) TAKE_TENSOR(x)
#define TAKE_EDIT(x, old) TAKE_TENSOR(x)
#define TAKE_GET(x) TAKE_TENSOR(x)
#define TAKE_STEP(x)                                                                               \
    tune_address x;                                                                                \
    take(from_, &x);
#define TAKE_VALUE(x, T)                                                                           \
    T x;                                                                                           \
    take(from_, &x);

/* Queue an operation. Its name is in the error. */
#define NOW(op)                                                                                    \
    static int now_##op(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER))                    \
    {                                                                                              \
        tune_cuda_of(dev)->failed = cudaSuccess;                                                   \
        int status = tune_cuda_##op(dev TUNE_ARGS_##op(TUNE_ARGUMENT));                            \
        return status < 0 ? tune_cuda_op_failed(dev, #op) : status;                                \
    }
TUNE_OPS(NOW)

/* The operation: written down within a group, else queued. */
#define CALL(op)                                                                                   \
    static int call_##op(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER))                   \
    {                                                                                              \
        struct tune_cuda_graphs *all_ = tune_cuda_of(dev)->graphs;                                 \
        if (!all_ || !all_->collecting)                                                            \
            return now_##op(dev TUNE_ARGS_##op(TUNE_ARGUMENT));                                    \
        struct calls *calls_ = &all_->now;                                                         \
        size_t used_ = calls_->used;                                                               \
        if (put_head(calls_, CALL_##op, dev) TUNE_ARGS_##op(PUT))                                  \
            return 0;                                                                              \
        calls_->used = used_;                                                                      \
        all_->broken = true;                                                                       \
        return -1;                                                                                 \
    }
TUNE_OPS(CALL)

#define PLAY(op)                                                                                   \
    static int play_##op(struct tune_device *dev, const char **from_)                              \
    {                                                                                              \
        TUNE_ARGS_##op(TAKE);                                                                      \
        return now_##op(dev TUNE_ARGS_##op(TUNE_ARGUMENT));                                        \
    }
TUNE_OPS(PLAY)

/* Queue the calls one by one. */
static int play(struct tune_device *dev, const struct calls *c)
{
#define ENTRY(op) play_##op,
    static int (*const table[CALLS])(struct tune_device *, const char **) = {TUNE_OPS(ENTRY)};
    struct tune_doing doing = dev->doing;
    int status = 0;
    for (const char *at = c->at; at < c->at + c->used && status == 0;) {
        struct head h;
        take(&at, &h);
        dev->doing.what = h.what;
        dev->doing.unit = h.unit;
        status = table[h.number](dev, &at);
    }
    dev->doing = doing;
    return status;
}

/* ---- graphs ---- */

#define WITHOUT " (TUNE_CUDA_GRAPHS=0 in the environment runs without)"

/* FNV-1a over 8 bytes at a time. */
static uint64_t hash_of(const struct calls *c)
{
    uint64_t hash = 14695981039346656037u, word;
    for (size_t i = 0; i < c->used; i += sizeof word) {
        size_t n = c->used - i < sizeof word ? c->used - i : sizeof word;
        word = 0;
        memcpy(&word, c->at + i, n);
        hash = (hash ^ word) * 1099511628211u;
        hash ^= hash >> 32;
    }
    return hash;
}

/* The GPU's free memory; 0: it does not say. */
static int64_t free_memory()
{
    size_t free = 0, total = 0;
    if (cudaMemGetInfo(&free, &total) == cudaSuccess)
        return static_cast<int64_t>(free);
    cudaGetLastError(); /* it was only looked at */
    return 0;
}

/* Count what the driver has taken, or given back, since so much was free. */
static void count_taken(struct tune_cuda_graphs *all, int64_t before)
{
    int64_t now = free_memory();
    if (before > 0 && now > 0)
        all->taken += before - now;
}

/* Forget the graph and keep its list. */
static void drop_exec(struct tune_cuda_graphs *all, struct graph *g)
{
    if (g->exec) {
        int64_t before = free_memory();
        cudaGraphExecDestroy(g->exec);
        count_taken(all, before);
    }
    g->exec = nullptr;
}

static void drop(struct tune_cuda_graphs *all, struct graph *g)
{
    drop_exec(all, g);
    free(g->calls.at);
    *g = {};
}

/* Capture the calls as one graph. */
static int capture(struct tune_device *dev, struct graph *g)
{
    cudaStream_t stream = tune_cuda_of(dev)->stream;
    cudaGraph_t graph = nullptr;
    cudaError_t error = cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    if (error != cudaSuccess)
        return tune_cuda_failed(error, "cuda, capturing a graph" WITHOUT);
    int status = play(dev, &g->calls);
    error = cudaStreamEndCapture(stream, &graph);
    if (status < 0 || error != cudaSuccess) {
        if (graph)
            cudaGraphDestroy(graph);
        cudaGetLastError();
        return status < 0 ? -1 : tune_cuda_failed(error, "cuda, capturing a graph" WITHOUT);
    }
    error = cudaGraphInstantiate(&g->exec, graph, 0);
    cudaGraphDestroy(graph);
    if (error != cudaSuccess) {
        g->exec = nullptr;
        return tune_cuda_failed(error, "cuda, making a graph" WITHOUT);
    }
    return 0;
}

/* Groups come in the same order in each step: look behind the one that was found last first. */
static struct graph *find(struct tune_cuda_graphs *all, const struct calls *c, uint64_t hash)
{
    for (int i = 1; i <= all->count; i++) {
        int at = (all->found + i) % all->count;
        struct graph *g = &all->kept[at];
        if (g->hash == hash && g->calls.used == c->used && !memcmp(g->calls.at, c->at, c->used)) {
            all->found = at;
            return g;
        }
    }
    return nullptr;
}

/* Keep a copy of the calls, in place of the graph that was not used for longest. */
static void keep(struct tune_device *dev, const struct calls *c, uint64_t hash)
{
    struct tune_cuda_graphs *all = tune_cuda_of(dev)->graphs;
    struct graph *g = &all->kept[all->count < MOST ? all->count : 0];
    for (int i = 1; all->count == MOST && i < MOST; i++)
        if (all->kept[i].last < g->last)
            g = &all->kept[i];
    char *at = static_cast<char *>(malloc(c->used));
    if (!at)
        return; /* it goes on without this graph */
    if (g->exec)
        cudaStreamSynchronize(tune_cuda_of(dev)->stream); /* it may be running */
    drop(all, g);
    memcpy(at, c->at, c->used);
    *g = {{at, c->used, c->used}, hash, nullptr, all->clock, 1};
    if (all->count < MOST)
        all->count++;
}

/* Whether there is memory for the graph of g. At the limit, graphs that are used much less are
 * dropped. If they were used nearly as much, they would soon take its place, and each change costs
 * more than a graph saves. */
static bool has_memory(struct tune_device *dev, struct tune_cuda_graphs *all, const struct graph *g)
{
    while (all->taken >= TUNE_CUDA_GRAPHS) {
        struct graph *least = nullptr;
        for (int i = 0; i < all->count; i++) {
            struct graph *other = &all->kept[i];
            if (other->exec && (!least || other->uses < least->uses))
                least = other;
        }
        if (!least || g->uses < 2 * least->uses + 2)
            return false;
        int64_t before = all->taken;
        cudaStreamSynchronize(tune_cuda_of(dev)->stream); /* it may be running */
        drop_exec(all, least);
        if (all->taken >= before)
            return true; /* the driver keeps the memory, and gives it to the next graph */
    }
    return true;
}

static void age(struct tune_cuda_graphs *all)
{
    if (++all->clock % AGE == 0)
        for (int i = 0; i < all->count; i++)
            all->kept[i].uses /= 2;
}

static int run(struct tune_device *dev, struct tune_cuda_graphs *all)
{
    uint64_t hash = hash_of(&all->now);
    struct graph *g = find(all, &all->now, hash);
    age(all);
    if (!g) {
        keep(dev, &all->now, hash);
        return play(dev, &all->now);
    }
    g->last = all->clock;
    g->uses++;
    bool is_new = !g->exec;
    if (is_new && !has_memory(dev, all, g))
        return play(dev, &all->now);
    int64_t before = is_new ? free_memory() : 0;
    int refusals = tune_cuda_refusals(tune_cuda_of(dev));
    if (is_new && capture(dev, g) < 0) {
        if (tune_cuda_refusals(tune_cuda_of(dev)) == refusals)
            return -1;
        tune_error_clear(); /* cuBLASLt refused what it computed before: as if it were new */
        return play(dev, &all->now);
    }
    cudaError_t error = cudaGraphLaunch(g->exec, tune_cuda_of(dev)->stream);
    if (error != cudaSuccess)
        return tune_cuda_failed(error, "cuda, queueing a graph" WITHOUT);
    if (is_new)
        count_taken(all, before);
    dev->graph_bytes = all->taken;
    return 0;
}

/* ---- groups ---- */

static int group_begin(struct tune_device *dev)
{
    struct tune_cuda *cuda = tune_cuda_of(dev);
    if (!cuda->graphs) {
        cuda->graphs = static_cast<struct tune_cuda_graphs *>(calloc(1, sizeof *cuda->graphs));
        if (!cuda->graphs)
            return tune_error_no_memory("CUDA graphs");
        const char *wanted = getenv("TUNE_CUDA_GRAPHS");
        cuda->graphs->off = wanted && strcmp(wanted, "0") == 0;
    }
    struct tune_cuda_graphs *g = cuda->graphs;
    if (g->open)
        return tune_error_set("groups of operations do not nest");
    g->open = true;
    g->collecting = !g->off;
    g->failed = 0;
    g->now.used = 0;
    g->broken = false;
    return 0;
}

static int group_end(struct tune_device *dev)
{
    struct tune_cuda_graphs *g = tune_cuda_of(dev)->graphs;
    bool collected = g->collecting && g->now.used > 0;
    g->open = g->collecting = false;
    if (g->broken)
        return -1; /* half a group is not queued */
    return collected ? run(dev, g) : g->failed;
}

void tune_cuda_graph_flush(struct tune_device *dev)
{
    struct tune_cuda_graphs *g = tune_cuda_of(dev)->graphs;
    if (!g || !g->collecting)
        return;
    g->collecting = false;
    g->failed = play(dev, &g->now);
}

void tune_cuda_graphs_drop(struct tune_cuda *cuda)
{
    for (int i = 0; cuda->graphs && i < cuda->graphs->count; i++)
        drop(cuda->graphs, &cuda->graphs->kept[i]);
    if (cuda->graphs)
        cuda->graphs->count = 0;
}

void tune_cuda_graphs_free(struct tune_cuda *cuda)
{
    tune_cuda_graphs_drop(cuda);
    if (cuda->graphs)
        free(cuda->graphs->now.at);
    free(cuda->graphs);
    cuda->graphs = nullptr;
}

int64_t tune_cuda_graphs_taken(const struct tune_cuda *cuda)
{
    return cuda->graphs ? cuda->graphs->taken : 0;
}

void tune_cuda_graph_table(struct tune_ops *ops)
{
    ops->group_begin = group_begin;
    ops->group_end = group_end;
#define FILL(op) ops->op = call_##op;
    TUNE_OPS(FILL)
}
