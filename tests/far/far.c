/* far.c - the far device: a queue of calls in front of the CPU's table. */
#include "far.h"

#include <stdio.h>
#include <sys/mman.h>

#include "core/error.h"
#include "core/nf4.h"
#include "core/try.h"
#include "devices/cpu/cpu.h"
#include "devices/ops.h"

enum { PAGE = 4096, BIG = 4 << 20, GARBAGE = 0xff };

struct far;

/* One thing to do later: an operation, an upload, a download, a free. */
struct call {
    int (*run)(struct far *far, void *arguments);
    void *arguments;
    struct call *next;
};

struct block {
    char *memory;
    size_t size;
    uint64_t ended; /* the scalars in it of a step that has ended; 0: none */
    struct block *next;
};

/* Memory that was released: its contents, while it holds garbage. */
struct released {
    char *memory, *contents;
    size_t size;
    struct released *next;
};

struct far {
    struct tune_device *cpu;
    struct block *blocks;
    struct released *released;
    struct call *first, **last;
    bool failed;     /* since the last sync */
    int64_t counted; /* of the bytes that the CPU device took: working memory */
    int64_t limit;   /* bytes of memory in all */
};

static void give_up(const char *why)
{
    fprintf(stderr, "the far device: %s\n", why);
    abort();
}

static int enqueue(struct tune_device *dev, int (*run)(struct far *, void *), const void *arguments,
                   size_t size)
{
    struct far *far = dev->state;
    struct call *call = malloc(sizeof *call);
    void *copy = malloc(size);
    if (!call || !copy)
        give_up("no memory for its queue");
    memcpy(copy, arguments, size);
    *call = (struct call){run, copy, NULL};
    *far->last = call;
    far->last = &call->next;
    return 0;
}

/* ---- memory ---- */

static size_t pages(int64_t bytes)
{
    return ((size_t)bytes + PAGE) / PAGE * PAGE; /* one byte at least */
}

static void open_all(struct far *far, bool open)
{
    for (struct block *b = far->blocks; b; b = b->next)
        if (mprotect(b->memory, b->size, open ? PROT_READ | PROT_WRITE : PROT_NONE) < 0)
            give_up("mprotect failed");
}

static tune_address far_alloc(struct tune_device *dev, int64_t bytes)
{
    struct far *far = dev->state;
    if (bytes > far->limit - dev->bytes)
        return (tune_address){0};
    struct block *b = malloc(sizeof *b);
    void *memory = mmap(NULL, pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (!b || memory == MAP_FAILED) {
        free(b);
        return (tune_address){0};
    }
    if (pages(bytes) >= BIG) /* else opening and closing it takes as long as an operation */
        madvise(memory, pages(bytes), MADV_HUGEPAGE);
    *b = (struct block){memory, pages(bytes), 0, far->blocks};
    far->blocks = b;
    return (tune_address){(uint64_t)(uintptr_t)memory};
}

/* Memory from tune_device_release to tune_device_acquire. */
struct range {
    tune_address memory;
    size_t size;
};

static int run_release(struct far *far, void *arguments)
{
    const struct range *range = arguments;
    struct released *r = malloc(sizeof *r);
    char *contents = malloc(range->size);
    if (!r || !contents)
        give_up("no memory for what was released");
    *r = (struct released){(char *)(uintptr_t)range->memory.at, contents, range->size, far->released};
    memcpy(r->contents, r->memory, r->size);
    memset(r->memory, GARBAGE, r->size);
    far->released = r;
    return 0;
}

/* Put the contents back; without `back`, the memory is freed. */
static void end_release(struct released **at, bool back)
{
    struct released *r = *at;
    for (size_t i = 0; i < r->size; i++)
        if ((unsigned char)r->memory[i] != GARBAGE)
            give_up("released memory was written to");
    if (back)
        memcpy(r->memory, r->contents, r->size);
    *at = r->next;
    free(r->contents);
    free(r);
}

/* What was never released is there already. */
static int run_acquire(struct far *far, void *arguments)
{
    const struct range *range = arguments;
    for (struct released **at = &far->released; *at; at = &(*at)->next)
        if ((uintptr_t)(*at)->memory == range->memory.at) {
            if ((*at)->size != range->size)
                give_up("memory is acquired in another size than it was released in");
            end_release(at, true);
            return 0;
        }
    return 0;
}

static int far_release(struct tune_device *dev, tune_address memory, int64_t bytes)
{
    struct range range = {memory, (size_t)bytes};
    return enqueue(dev, run_release, &range, sizeof range);
}

static int far_acquire(struct tune_device *dev, tune_address memory, int64_t bytes)
{
    struct range range = {memory, (size_t)bytes};
    return enqueue(dev, run_acquire, &range, sizeof range);
}

static void forget_released(struct far *far, const struct block *b)
{
    for (struct released **at = &far->released; *at;)
        if ((*at)->memory >= b->memory && (*at)->memory < b->memory + b->size)
            end_release(at, false);
        else
            at = &(*at)->next;
}

static int run_free(struct far *far, void *arguments)
{
    const tune_address *memory = arguments;
    for (struct block **at = &far->blocks; *at; at = &(*at)->next)
        if ((uintptr_t)(*at)->memory == memory->at) {
            struct block *b = *at;
            *at = b->next;
            forget_released(far, b);
            munmap(b->memory, b->size);
            free(b);
            return 0;
        }
    give_up("memory is freed that is not its own");
    return -1;
}

static void far_free(struct tune_device *dev, tune_address memory, int64_t bytes)
{
    (void)bytes;
    enqueue(dev, run_free, &memory, sizeof memory);
}

/* ---- transfers ---- */

struct transfer {
    tune_address device;
    void *host; /* an upload's: a copy of its own */
    int64_t bytes;
};

static int run_upload(struct far *far, void *arguments)
{
    struct transfer *t = arguments;
    int status = far->cpu->ops->upload(far->cpu, t->device, t->host, t->bytes);
    free(t->host);
    return status;
}

static int far_upload(struct tune_device *dev, tune_address to, const void *from, int64_t bytes)
{
    struct transfer t = {to, malloc((size_t)bytes + 1), bytes};
    if (!t.host)
        give_up("no memory for an upload");
    memcpy(t.host, from, (size_t)bytes);
    return enqueue(dev, run_upload, &t, sizeof t);
}

static int run_download(struct far *far, void *arguments)
{
    struct transfer *t = arguments;
    const unsigned char *host = t->host;
    for (int64_t i = 0; i < t->bytes; i++)
        if (host[i] != GARBAGE)
            give_up("the target of a download was freed, written or used before the sync");
    return far->cpu->ops->download(far->cpu, t->host, t->device, t->bytes);
}

static int far_download(struct tune_device *dev, void *to, tune_address from, int64_t bytes)
{
    struct transfer t = {from, to, bytes};
    memset(to, GARBAGE, (size_t)bytes);
    return enqueue(dev, run_download, &t, sizeof t);
}

/* Working memory that the CPU device has taken by now is ours, too. */
static void count_work(struct tune_device *dev)
{
    struct far *far = dev->state;
    dev->bytes += far->cpu->bytes - far->counted;
    dev->bytes_peak = dev->bytes > dev->bytes_peak ? dev->bytes : dev->bytes_peak;
    far->counted = far->cpu->bytes;
}

static int far_sync(struct tune_device *dev)
{
    struct far *far = dev->state;
    if (!far->first)
        return 0;
    open_all(far, true);
    while (far->first) {
        struct call *call = far->first;
        far->first = call->next;
        if (!far->failed && call->run(far, call->arguments) < 0)
            far->failed = true; /* what was queued behind it does not run, but for what concerns memory alone */
        else if (far->failed && (call->run == run_free || call->run == run_acquire || call->run == run_release))
            call->run(far, call->arguments);
        free(call->arguments);
        free(call);
    }
    far->last = &far->first;
    open_all(far, false);
    count_work(dev);
    bool failed = far->failed;
    far->failed = false;
    return failed ? -1 : 0;
}

/* ---- operations ---- */

/* A tensor as a queued call keeps it. */
struct kept {
    struct tune_tensor tensor;
    struct tune_nf4_part parts[TUNE_NF4_PARTS];
    bool is_there;
};

static void keep(struct kept *k, const struct tune_tensor *t)
{
    int n = 0;
    memset(k, 0, sizeof *k);
    if (!t)
        return;
    k->is_there = true;
    k->tensor = *t;
    for (const struct tune_nf4_part *p = t->nf4; p; p = p->below)
        k->parts[n++] = *p;
}

/* The tensor again, its parts where they are now. */
static struct tune_tensor *kept(struct kept *k)
{
    int n = 0;
    if (!k->is_there)
        return NULL;
    for (const struct tune_nf4_part *p = k->tensor.nf4; p && n < TUNE_NF4_PARTS && k->parts[n].memory.at; n++) {
        bool more = k->parts[n].below != NULL;
        k->parts[n].below = more ? &k->parts[n + 1] : NULL;
        p = more ? p : NULL;
    }
    if (k->tensor.nf4)
        k->tensor.nf4 = k->parts;
    return &k->tensor;
}

/* Rows of a tensor, and what lies from one to the next. */
struct rows {
    int64_t count, bytes, stride, inner, outer; /* inner: rows until the next outer step */
};

static struct rows rows_of(const struct tune_tensor *t)
{
    int64_t bits = tune_dtype_bits(t->dtype), all = tune_tensor_elements(t);
    int64_t row = t->ndim == 4 ? t->shape[2] * t->shape[3] : t->ndim == 2 ? t->shape[1] : all, rows = row > 0 ? all / row : 0;
    int64_t stride = t->stride ? t->stride : row, inner = t->ndim == 4 ? t->shape[1] : rows;
    return (struct rows){rows, row * bits / 8, stride * bits / 8, inner, (t->outer ? t->outer : inner * stride) * bits / 8};
}

/* Device memory from its first byte to behind its last. */
struct span {
    uint64_t from, to;
};

static struct span span_of(const struct tune_tensor *t)
{
    struct rows r = rows_of(t);
    int64_t last = r.count > 0 ? (r.count - 1) / r.inner * r.outer + (r.inner - 1) * r.stride : 0;
    int64_t bytes = r.count > 0 && t->data.at ? last + r.bytes : 0;
    return (struct span){t->data.at, t->data.at + (uint64_t)bytes};
}

static struct span span_of_scalars(uint64_t at)
{
    return (struct span){at, at + sizeof(struct tune_scalars)};
}

static bool meet(struct span a, struct span b)
{
    return a.from < b.to && b.from < a.to;
}

static bool overlap(const struct tune_tensor *a, const struct tune_tensor *b)
{
    return a && b && meet(span_of(a), span_of(b));
}

static void spoil(const struct tune_tensor *t)
{
    struct rows r = rows_of(t);
    char *to = tune_cpu_data(t);
    for (int64_t i = 0; i < r.count; i++)
        memset(to + i / r.inner * r.outer + i % r.inner * r.stride, GARBAGE, (size_t)r.bytes);
}

static void spoil_front(float *memory, int64_t floats)
{
    int64_t most = 1 << 14; /* whatever an operation uses begins at the front; all of it would take milliseconds */
    if (memory)
        memset(memory, GARBAGE, (size_t)(floats < most ? floats : most) * sizeof *memory);
}

/* The CPU's working memory before an operation. */
static void spoil_work(struct tune_device *cpu)
{
    struct tune_cpu *state = cpu->state;
    for (int t = 0; t < cpu->threads; t++)
        spoil_front(state->work ? state->work + t * state->floats : NULL, state->floats);
    spoil_front(state->shared, state->shared_floats);
    spoil_front(state->sums, state->sums_floats);
}

/* ---- steps that have ended ---- */

/* An operation touches these; an ended step's scalars must not be among them. */
static void touch(const struct far *far, const struct span *spans, int count)
{
    for (const struct block *b = far->blocks; b; b = b->next)
        for (int i = 0; b->ended && i < count; i++)
            if (meet(spans[i], span_of_scalars(b->ended)))
                give_up("an operation touches a step's scalars behind the step's end");
}

/* A step has begun or ended. */
static void mark(struct far *far, uint64_t step, bool ended)
{
    for (struct block *b = far->blocks; b; b = b->next)
        if (step >= (uintptr_t)b->memory && step < (uintptr_t)b->memory + b->size)
            b->ended = ended ? step : 0;
}

#define FIELD(kind, ...) FIELD_##kind(__VA_ARGS__)
#define FIELD_SET(x) struct kept x;
#define FIELD_EDIT(x, old) struct kept x;
#define FIELD_GET(x) struct kept x;
#define FIELD_STEP(x) tune_address x;
#define FIELD_VALUE(x, T) T x;

#define KEEP(kind, ...) KEEP_##kind(__VA_ARGS__)
#define KEEP_SET(x) keep(&arguments.x, x);
#define KEEP_EDIT(x, old) keep(&arguments.x, x);
#define KEEP_GET(x) keep(&arguments.x, x);
#define KEEP_STEP(x) arguments.x = x;
#define KEEP_VALUE(x, T) arguments.x = x;

#define FETCH(kind, ...) FETCH_##kind(__VA_ARGS__)
#define FETCH_SET(x) struct tune_tensor *x = kept(&arguments->x);
#define FETCH_EDIT(x, old) struct tune_tensor *x = kept(&arguments->x);
#define FETCH_GET(x) const struct tune_tensor *x = kept(&arguments->x);
#define FETCH_STEP(x) tune_address x = arguments->x;
#define FETCH_VALUE(x, T) T x = arguments->x;

/* What an operation reads; an output that lies there is not spoilt. */
#define READ(kind, ...) READ_##kind(__VA_ARGS__)
#define READ_SET(x)
#define READ_EDIT(x, old) if (x && (old)) reads[count++] = x;
#define READ_GET(x) if (x) reads[count++] = x;
#define READ_STEP(x)
#define READ_VALUE(x, T)

#define SPOIL(kind, ...) SPOIL_##kind(__VA_ARGS__)
#define SPOIL_SET(x) if (x && !any_overlap(reads, count, x)) spoil(x);
#define SPOIL_EDIT(x, old) if (x && !(old) && !any_overlap(reads, count, x)) spoil(x);
#define SPOIL_GET(x)
#define SPOIL_STEP(x)
#define SPOIL_VALUE(x, T)

/* All that an operation touches. */
#define SPAN(kind, ...) SPAN_##kind(__VA_ARGS__)
#define SPAN_SET(x) if (x) spans_[spanned_++] = span_of(x);
#define SPAN_EDIT(x, old) SPAN_SET(x)
#define SPAN_GET(x) SPAN_SET(x)
#define SPAN_STEP(x) step_ = x.at; spans_[spanned_++] = span_of_scalars(step_);
#define SPAN_VALUE(x, T)

static bool any_overlap(const struct tune_tensor *const *reads, int count, const struct tune_tensor *x)
{
    for (int i = 0; i < count; i++)
        if (overlap(reads[i], x))
            return true;
    return false;
}

#define FAR(op)                                                               \
    struct op##_arguments {                                                   \
        TUNE_ARGS_##op(FIELD)                                                 \
    };                                                                        \
    static int run_##op(struct far *far, void *kept_arguments)                \
    {                                                                         \
        struct op##_arguments *arguments = kept_arguments;                    \
        struct tune_device *cpu = far->cpu;                                   \
        const struct tune_tensor *reads[16] = {0};                            \
        struct span spans_[16];                                               \
        uint64_t step_ = 0;                                                   \
        int count = 0, spanned_ = 0;                                          \
        TUNE_ARGS_##op(FETCH)                                                 \
        TUNE_ARGS_##op(READ)                                                  \
        TUNE_ARGS_##op(SPOIL)                                                 \
        TUNE_ARGS_##op(SPAN)                                                  \
        (void)reads;                                                          \
        (void)count;                                                          \
        if (step_ && !strcmp(#op, "begin_step"))                              \
            mark(far, step_, false);                                          \
        touch(far, spans_, spanned_);                                         \
        if (step_ && !strcmp(#op, "end_step"))                                \
            mark(far, step_, true);                                           \
        spoil_work(cpu);                                                      \
        return cpu->ops->op(cpu TUNE_ARGS_##op(TUNE_ARGUMENT));               \
    }                                                                         \
    static int far_##op(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER)) \
    {                                                                         \
        struct op##_arguments arguments;                                      \
        memset(&arguments, 0, sizeof arguments);                              \
        TUNE_ARGS_##op(KEEP)                                                  \
        return enqueue(dev, run_##op, &arguments, sizeof arguments);          \
    }
TUNE_OPS(FAR)

/* ---- the rest ---- */

static int far_memory(const struct tune_device *dev, struct tune_device_memory *memory)
{
    const struct far *far = dev->state;
    *memory = (struct tune_device_memory){.free = far->limit - dev->bytes, .total = far->limit};
    return 0;
}

void tune_far_limit(struct tune_device *dev, int64_t bytes)
{
    ((struct far *)dev->state)->limit = bytes;
}

static int far_reserve(struct tune_device *dev, const struct tune_max_sizes *sizes)
{
    struct tune_device *cpu = ((struct far *)dev->state)->cpu;
    TRY(far_sync(dev));
    int64_t library, more = cpu->ops->reserve_bytes(cpu, sizes, &library) - cpu->bytes;
    if (more > ((struct far *)dev->state)->limit - dev->bytes) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory on far for its operations: %lld bytes more",
                            (long long)more);
        return -1;
    }
    TRY(cpu->ops->reserve(cpu, sizes));
    count_work(dev);
    return 0;
}

static int far_peak_rates(struct tune_device *dev, struct tune_peak_rates *peak_rates, tune_address memory, int64_t n)
{
    struct far *far = dev->state;
    TRY(far_sync(dev));
    open_all(far, true);
    int status = far->cpu->ops->peak_rates(far->cpu, peak_rates, memory, n);
    open_all(far, false);
    return status;
}

static int64_t far_reserve_bytes(const struct tune_device *dev, const struct tune_max_sizes *sizes, int64_t *library)
{
    const struct tune_device *cpu = ((const struct far *)dev->state)->cpu;
    return cpu->ops->reserve_bytes(cpu, sizes, library);
}

static void far_close(struct tune_device *dev)
{
    struct far *far = dev->state;
    far_sync(dev);
    if (far->blocks)
        give_up("memory was not freed before it was closed");
    tune_device_close(far->cpu);
    free(far);
}

static const struct tune_ops far_ops = {
    .close = far_close,
    .alloc = far_alloc,
    .free = far_free,
    .memory = far_memory,
    .reserve = far_reserve,
    .reserve_bytes = far_reserve_bytes,
    .peak_rates = far_peak_rates,
    .upload = far_upload,
    .download = far_download,
    .sync = far_sync,
    .acquire = far_acquire,
    .release = far_release,
#define ENTRY(op) .op = far_##op,
    TUNE_OPS(ENTRY)
};

struct tune_device *tune_far_open(int threads)
{
    struct tune_device *dev = calloc(1, sizeof *dev);
    struct far *far = calloc(1, sizeof *far);
    struct tune_device_memory memory;
    if (!dev || !far || !(far->cpu = tune_device_open("cpu", threads)) ||
        tune_device_memory(far->cpu, &memory) < 0) {
        free(dev);
        free(far);
        return NULL;
    }
    *dev = *far->cpu; /* what it says of itself */
    dev->ops = &far_ops;
    dev->name = "far";
    dev->bytes = dev->bytes_peak = dev->allocations = 0;
    dev->state = far;
    far->last = &far->first;
    far->limit = memory.free;
    return dev;
}
