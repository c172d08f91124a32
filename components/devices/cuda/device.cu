/* device.cu - the CUDA device: its table of operations, its memory, its queue.
 *
 * All operations go into one stream, so they are done in the order of the calls. Small transfers go
 * through pinned memory, and the host waits only in sync. An upload that fills the pinned memory
 * waits for its older half. */
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "core/clock.h"
#include "core/error.h"
#include "core/tensor.h"
#include "devices/cuda/algorithms.h"
#include "devices/cuda/device.h"

constexpr int64_t HALF = 4 << 20;  /* bytes of half the pinned memory for uploads */
constexpr int64_t SMALL = 1 << 16; /* bytes of pinned memory for downloads between two syncs */

/* A download whose bytes are copied to their target at the next sync. */
struct pending {
    void *to;
    int64_t at, bytes;
};

struct transfers {
    char *up, *down;     /* pinned: [2 HALF], [SMALL] */
    cudaEvent_t read[2]; /* the half was read by the GPU */
    int half;
    int64_t used;            /* of this half */
    struct pending *pending; /* downloads */
    int count, capacity;
    int64_t down_used;
};

struct state {
    struct tune_cuda cuda; /* first: kernels see this part */
    struct transfers move;
    cudaStream_t beside; /* null: nobody has asked for it */
    int index;           /* of the GPU */
    char bus[32];
    char algorithms[TUNE_PATH_MAX];
};

static struct state *state_of(const struct tune_device *dev)
{
    return static_cast<struct state *>(dev->state);
}

#define CUDA_TRY(what, call)                                                                       \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess)                                                                 \
            return tune_cuda_failed(error_, "cuda, " what);                                        \
    } while (0)

/* ---- memory ---- */

/* No memory left: address 0 without an error. The caller says what it was for. */
static tune_address cuda_alloc(struct tune_device *dev, int64_t bytes)
{
    void *memory = nullptr;
    tune_address at = {0};
    size_t size = bytes > 0 ? static_cast<size_t>(bytes) : 1;
    tune_cuda_graph_flush(dev);
    cudaError_t error = cudaMalloc(&memory, size);
    if (error == cudaErrorMemoryAllocation)
        cudaGetLastError();
    else if (error != cudaSuccess)
        tune_cuda_failed(error, "cuda, allocating");
    if (error != cudaSuccess)
        return at;
    error = cudaMemsetAsync(memory, 0, size, state_of(dev)->cuda.stream);
    if (error != cudaSuccess) {
        cudaFree(memory);
        tune_cuda_failed(error, "cuda, zeroing memory");
        return at;
    }
    at.at = reinterpret_cast<uint64_t>(memory);
    return at;
}

/* Work that was queued may still use the memory, so it waits. */
static void cuda_free(struct tune_device *dev, tune_address memory, int64_t)
{
    tune_cuda_graph_flush(dev);
    cudaStreamSynchronize(state_of(dev)->cuda.stream);
    tune_cuda_graphs_drop(tune_cuda_of(dev)); /* one may use it */
    cudaFree(reinterpret_cast<void *>(memory.at));
}

/* What graphs and kernels may still take is not free. Kernels that are loaded already count twice:
 * CUDA does not say which they are. */
static int cuda_memory(const struct tune_device *dev, struct tune_device_memory *memory)
{
    size_t free = 0, total = 0;
    CUDA_TRY("the size of its memory", cudaMemGetInfo(&free, &total));
    int64_t graphs = TUNE_CUDA_GRAPHS - tune_cuda_graphs_taken(tune_cuda_of(dev));
    int64_t taken = tune_cuda_most(0, graphs) + TUNE_CUDA_KERNELS;
    memory->free = tune_cuda_most(0, static_cast<int64_t>(free) - taken);
    memory->total = static_cast<int64_t>(total);
    memory->shared = false;
    return 0;
}

static int cuda_reserve(struct tune_device *dev, const struct tune_max_sizes *l)
{
    if (tune_cuda_products_begin(dev) < 0)
        return tune_error_prefix("cuda, ");
    return tune_cuda_scratch(dev, tune_cuda_scratch_floats(l)) ? 0 : tune_error_prefix("cuda, ");
}

static int64_t cuda_reserve_bytes(const struct tune_device *, const struct tune_max_sizes *l,
                                  int64_t *library)
{
    *library = 0;
    return tune_cuda_reserve_bytes(l);
}

/* ---- transfers ---- */

/* After an error, nobody calls sync for the queued downloads, and their targets may be freed. So
 * wait for the stream here, and drop them. Returns -1. */
static int abandon(struct tune_device *dev)
{
    cudaStreamSynchronize(state_of(dev)->cuda.stream);
    cudaGetLastError(); /* the first error is the one that counts */
    state_of(dev)->move.count = 0;
    state_of(dev)->move.down_used = 0;
    return -1;
}

/* The next half of the pinned memory, once the GPU has read it. */
static int next_half(struct tune_device *dev)
{
    struct transfers *m = &state_of(dev)->move;
    CUDA_TRY("upload", cudaEventRecord(m->read[m->half], state_of(dev)->cuda.stream));
    m->half = 1 - m->half;
    m->used = 0;
    CUDA_TRY("upload", cudaEventSynchronize(m->read[m->half]));
    return 0;
}

static int upload(struct tune_device *dev, tune_address to, const void *from, int64_t bytes)
{
    struct transfers *m = &state_of(dev)->move;
    const char *source = static_cast<const char *>(from);
    tune_cuda_graph_flush(dev);
    for (int64_t done = 0, n; done < bytes; done += n) {
        if (m->used == HALF && next_half(dev) < 0)
            return -1;
        n = bytes - done < HALF - m->used ? bytes - done : HALF - m->used;
        char *pinned = m->up + m->half * HALF + m->used;
        memcpy(pinned, source + done, static_cast<size_t>(n));
        CUDA_TRY("upload", cudaMemcpyAsync(reinterpret_cast<char *>(to.at) + done, pinned,
                                           static_cast<size_t>(n), cudaMemcpyHostToDevice,
                                           state_of(dev)->cuda.stream));
        m->used += (n + 63) / 64 * 64;
    }
    return 0;
}

static int cuda_upload(struct tune_device *dev, tune_address to, const void *from, int64_t bytes)
{
    return upload(dev, to, from, bytes) < 0 ? abandon(dev) : 0;
}

static int cuda_sync(struct tune_device *dev)
{
    struct transfers *m = &state_of(dev)->move;
    tune_cuda_graph_flush(dev);
    cudaError_t error = cudaStreamSynchronize(state_of(dev)->cuda.stream);
    for (int i = 0; i < m->count && error == cudaSuccess; i++)
        memcpy(m->pending[i].to, m->down + m->pending[i].at,
               static_cast<size_t>(m->pending[i].bytes));
    m->count = 0;
    m->down_used = 0;
    if (error == cudaSuccess)
        return 0;
    tune_cuda_failed(error, "cuda, waiting for queued work");
    return abandon(dev);
}

/* A download that is larger than the pinned memory goes straight to its target. */
static int cuda_download(struct tune_device *dev, void *to, tune_address from, int64_t bytes)
{
    struct transfers *m = &state_of(dev)->move;
    cudaStream_t stream = state_of(dev)->cuda.stream;
    void *target = to, *source = reinterpret_cast<void *>(from.at);
    tune_cuda_graph_flush(dev);
    if (bytes <= SMALL - m->down_used && m->count < m->capacity) {
        struct pending p = {to, m->down_used, bytes};
        target = m->down + m->down_used;
        m->pending[m->count++] = p;
        m->down_used += (bytes + 63) / 64 * 64;
    }
    cudaError_t error = cudaMemcpyAsync(target, source, static_cast<size_t>(bytes),
                                        cudaMemcpyDeviceToHost, stream);
    if (error == cudaSuccess)
        return 0;
    tune_cuda_failed(error, "cuda, download");
    return abandon(dev);
}

/* ---- other libraries ---- */

/* Its kernels go first: they wait for another GPU, and have little to compute. */
static void *cuda_beside(struct tune_device *dev)
{
    struct state *s = state_of(dev);
    int least = 0, most = 0;
    cudaSetDevice(s->index); /* the caller may be another thread */
    if (s->beside)
        return s->beside;
    cudaError_t error = cudaDeviceGetStreamPriorityRange(&least, &most);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithPriority(&s->beside, cudaStreamNonBlocking, most);
    if (error != cudaSuccess)
        tune_cuda_failed(error, "cuda, a second stream");
    return error == cudaSuccess ? s->beside : nullptr;
}

static int is_done(cudaError_t error)
{
    if (error == cudaSuccess || error == cudaErrorNotReady)
        return error == cudaSuccess;
    return tune_cuda_failed(error, "cuda, waiting for queued work");
}

static int cuda_done(struct tune_device *dev)
{
    return is_done(cudaStreamQuery(state_of(dev)->beside));
}

static void *cuda_mark(struct tune_device *dev)
{
    cudaEvent_t event = nullptr;
    tune_cuda_graph_flush(dev);
    cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    if (error == cudaSuccess)
        error = cudaEventRecord(event, state_of(dev)->cuda.stream);
    if (error == cudaSuccess)
        return event;
    if (event)
        cudaEventDestroy(event);
    tune_cuda_failed(error, "cuda, marking queued work");
    return nullptr;
}

static void cuda_unmark(struct tune_device *, void *mark)
{
    cudaEventDestroy(static_cast<cudaEvent_t>(mark));
}

static int cuda_reached(struct tune_device *dev, void *mark)
{
    int reached = is_done(cudaEventQuery(static_cast<cudaEvent_t>(mark)));
    if (reached)
        cuda_unmark(dev, mark);
    return reached;
}

/* ---- operations ---- */

int tune_cuda_op_failed(struct tune_device *dev, const char *op)
{
    char what[96] = "", where[32] = "";
    if (dev->doing.unit >= 0)
        snprintf(where, sizeof where, "unit %d, ", dev->doing.unit);
    if (dev->doing.what && dev->doing.what[0])
        snprintf(what, sizeof what, " (%s%s)", where, dev->doing.what);
    if (tune_cuda_of(dev)->failed != cudaSuccess)
        tune_cuda_failed(tune_cuda_of(dev)->failed, "cuda, %s%s", op, what);
    else
        tune_error_prefix("cuda, %s%s: ", op, what);
    return abandon(dev);
}

static void close_all(struct tune_device *dev)
{
    struct state *s = state_of(dev);
    cudaStreamSynchronize(s->cuda.stream);
    tune_cuda_graphs_free(&s->cuda);
    tune_cuda_products_free(&s->cuda);
    tune_cuda_scratch_free(dev);
    for (cudaEvent_t e : s->move.read)
        if (e)
            cudaEventDestroy(e);
    cudaFreeHost(s->move.up);
    cudaFreeHost(s->move.down);
    if (s->cuda.stream)
        cudaStreamDestroy(s->cuda.stream);
    if (s->beside)
        cudaStreamDestroy(s->beside);
    free(s->move.pending);
    free(s);
}

static void cuda_close(struct tune_device *dev) { close_all(dev); }

static struct tune_ops make_table()
{
    struct tune_ops ops = {};
    ops.close = cuda_close;
    ops.alloc = cuda_alloc;
    ops.free = cuda_free;
    ops.memory = cuda_memory;
    ops.reserve = cuda_reserve;
    ops.reserve_bytes = cuda_reserve_bytes;
    ops.upload = cuda_upload;
    ops.download = cuda_download;
    ops.sync = cuda_sync;
    ops.beside = cuda_beside;
    ops.done = cuda_done;
    ops.mark = cuda_mark;
    ops.reached = cuda_reached;
    ops.unmark = cuda_unmark;
    tune_cuda_graph_table(&ops);
    return ops;
}

/* ---- opening ---- */

static void versions(char *text, size_t size)
{
    int driver = 0, runtime = 0;
    char has[32] = "no driver";
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    if (driver > 0)
        snprintf(has, sizeof has, "driver for CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    snprintf(text, size, "%s, built with %d.%d", has, runtime / 1000, runtime % 1000 / 10);
}

/* Why no GPU can be used at all. */
static int no_gpu(cudaError_t error)
{
    char text[72];
    versions(text, sizeof text);
    switch (error) {
    case cudaErrorInsufficientDriver:
        return tune_error_cannot("cuda: the NVIDIA driver is missing or too old (%s); install a "
                                 "newer one, or use --device cpu",
                                 text);
    case cudaErrorNoDevice:
        return tune_error_cannot("cuda: no GPU is visible (%s); look at nvidia-smi and at "
                                 "CUDA_VISIBLE_DEVICES, or use --device cpu",
                                 text);
    default: return tune_cuda_failed(error, "cuda, listing the GPUs (%s)", text);
    }
}

static int choose_gpu(struct tune_device *dev, int index, bool round)
{
    int count = 0;
    cudaDeviceProp p;
    cudaError_t error = cudaGetDeviceCount(&count);
    if (error != cudaSuccess || count == 0)
        return no_gpu(error == cudaSuccess ? cudaErrorNoDevice : error);
    if (round)
        index %= count;
    if (index >= count)
        return tune_error_usage(
            "cuda:%d: there is no such GPU; this process sees %d, from cuda:0 on", index, count);
    CUDA_TRY("the GPU's properties", cudaGetDeviceProperties(&p, index));
    if (p.major < 8)
        return tune_error_cannot("cuda:%d is a %s of compute capability %d.%d; bfloat16 products "
                                 "need 8.0 or newer",
                                 index, p.name, p.major, p.minor);
    error = cudaSetDevice(index);
    if (error == cudaSuccess)
        error = cudaFree(nullptr); /* makes the context */
    if (error == cudaErrorDevicesUnavailable)
        return tune_error_cannot("cuda:%d, %s: another process has it for itself, or its mode "
                                 "forbids processes; look at nvidia-smi",
                                 index, p.name);
    if (error != cudaSuccess)
        return tune_cuda_failed(error, "cuda:%d, %s, opening it", index, p.name);
    struct state *s = state_of(dev);
    s->index = index;
    char text[72];
    versions(text, sizeof text);
    snprintf(s->bus, sizeof s->bus, "%08x:%02x:%02x.0", static_cast<unsigned>(p.pciDomainID),
             static_cast<unsigned>(p.pciBusID), static_cast<unsigned>(p.pciDeviceID));
    snprintf(dev->description, sizeof dev->description, "%.72s, %.1f GiB, sm_%d%d, %s", p.name,
             static_cast<double>(p.totalGlobalMem) / 1073741824.0, p.major, p.minor, text);
    dev->gpus = s->bus;
    dev->logits_bytes = tune_cuda_logits_bytes(static_cast<int64_t>(p.totalGlobalMem));
    return 0;
}

/* What the GPU's clock is ahead of ours: the middle of the narrowest of some readings. */
static int compare_clocks(struct tune_device *dev)
{
    struct tune_cuda *cuda = tune_cuda_of(dev);
    struct tune_scalars *step = nullptr, read;
    double narrowest = 1e9;
    CUDA_TRY("the GPU's clock", cudaMalloc(&step, sizeof *step));
    /* begin_step reads it, and reports an error */
    cudaMemsetAsync(step, 0, sizeof *step, cuda->stream);
    tune_address at = {reinterpret_cast<uint64_t>(step)};
    for (int i = 0; i < 5; i++) {
        double before = tune_clock_s();
        int status = tune_cuda_begin_step(dev, at);
        cudaError_t error = cudaStreamSynchronize(cuda->stream);
        double after = tune_clock_s();
        if (status == 0 && error == cudaSuccess)
            error = cudaMemcpy(&read, step, sizeof read, cudaMemcpyDeviceToHost);
        if (status < 0 || error != cudaSuccess) {
            cudaFree(step);
            return tune_cuda_failed(status < 0 ? cuda->failed : error, "cuda, the GPU's clock");
        }
        if (after - before < narrowest) {
            narrowest = after - before;
            cuda->clock_ahead_s += read.begin_s - (before + after) / 2;
        }
    }
    cudaFree(step);
    return 0;
}

static int start(struct tune_device *dev, int index, bool round)
{
    struct state *s = state_of(dev);
    if (choose_gpu(dev, index, round) < 0)
        return -1;
    CUDA_TRY("opening the GPU", cudaStreamCreateWithFlags(&s->cuda.stream, cudaStreamNonBlocking));
    CUDA_TRY("pinned memory", cudaMallocHost(&s->move.up, 2 * HALF));
    CUDA_TRY("pinned memory", cudaMallocHost(&s->move.down, SMALL));
    for (cudaEvent_t &e : s->move.read)
        CUDA_TRY("opening the GPU", cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
    s->move.capacity = SMALL / 64;
    s->move.pending = static_cast<struct pending *>(
        calloc(static_cast<size_t>(s->move.capacity), sizeof *s->move.pending));
    if (!s->move.pending)
        return tune_error_cannot("cuda: no memory for its downloads");
    if (tune_cuda_algorithms_path(dev, s->algorithms) < 0)
        return -1;
    s->cuda.algorithms = s->algorithms;
    return compare_clocks(dev);
}

extern "C" int tune_cuda_open(struct tune_device *dev, int index, bool round)
{
    static struct tune_ops table;
    struct state *s = static_cast<struct state *>(calloc(1, sizeof *s));
    if (!s)
        return tune_error_cannot("cuda: no memory for the device");
    table = make_table();
    dev->state = s;
    dev->name = "cuda";
    dev->ops = &table;
    if (start(dev, index, round) == 0)
        return 0;
    close_all(dev);
    dev->state = nullptr;
    return -1;
}
