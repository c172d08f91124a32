/* memory_plan.c - the parts, their sum, and ways to save memory if they do not fit. */
#include "models/cache.h"
#include "profilers/memory_plan.h"

#include <stdio.h>

#include "comm/comm.h"
#include "core/print.h"
#include "core/try.h"
#include "devices/record.h"
#include "losses/loss.h"
#include "profilers/profiler.h"
#include "profilers/sampler.h"

enum { TRANSFER_BYTES = 4 << 20 }; /* heap buffers for reading and saving weights, JSON and rows */

/* A save frees buffers of up to 8 MiB. glibc's malloc then keeps up to twice that for the process. */
enum { KEPT_BYTES = (16 << 20) - TRANSFER_BYTES };

/* A reference's log-probability has 16 bytes in a table of 2^k entries, at most half full. The table
 * doubles by a copy, and a save has the numbers once more. */
enum { LOG_PROB_BYTES = 16, LEAST_ENTRIES = 1024 };

enum { ARENA_BYTES = 64 << 20 };   /* addresses that glibc's malloc reserves for a thread */

/* The memory that holds a part. */
enum where { HOST, DEVICE };

static void add_to(int64_t *sum, int64_t bytes)
{
    if (__builtin_add_overflow(*sum, bytes, sum))
        *sum = INT64_MAX; /* a part may already be INT64_MAX: see core/arena.h */
}

static void add(struct tune_memory_plan *plan, const char *name, int64_t bytes, enum where where)
{
    if (bytes == 0)
        return;
    plan->parts[plan->count++] = (struct tune_memory_part){name, bytes, where == DEVICE};
    add_to(&plan->total, bytes);
    add_to(where == DEVICE ? &plan->device : &plan->host, bytes);
}

/* The device's working memory, that of the many keys of previews and answers among it. */
static int64_t working(const struct tune_model_bytes *model, const struct tune_memory_request *r, const struct tune_device *dev)
{
    struct tune_max_sizes sizes = model->max_sizes;
    int64_t library, bytes, scalars = tune_record_bytes(r->log_every);
    int rows = r->preview_rows > r->answer_rows ? r->preview_rows : r->answer_rows;
    int tokens = r->preview_tokens > r->answer_tokens ? r->preview_tokens : r->answer_tokens;
    sizes.B = rows > sizes.B ? rows : sizes.B;
    sizes.T = tokens > sizes.T ? tokens : sizes.T;
    sizes.training = false;
    bytes = rows ? tune_device_reserve_bytes(dev, &sizes, &library) : 0;
    bytes = bytes > model->working ? bytes : model->working;
    return bytes < INT64_MAX - scalars ? bytes + scalars : INT64_MAX;
}

/* The reference's numbers, and the loader that reads the rows for them. */
static int64_t reference_bytes(const struct tune_memory_request *r)
{
    int64_t entries = LEAST_ENTRIES, bytes;
    if (r->reference == 0)
        return 0;
    while (entries <= INT64_MAX / 4 && entries / 2 <= r->reference)
        entries *= 2;
    return __builtin_mul_overflow(entries + entries / 2, LOG_PROB_BYTES, &bytes) ||
           __builtin_add_overflow(bytes, tune_loader_bytes(&r->loader, r->rows), &bytes) ? INT64_MAX : bytes;
}

int tune_memory_plan_make(struct tune_memory_plan *plan, const struct tune_memory_request *r, struct tune_device *dev)
{
    struct tune_model_bytes model;
    struct tune_profiler_bytes profiler = tune_profiler_bytes(r->profile);
    const struct tune_loader_options *o = &r->loader;
    int sequences = tune_loader_sequences(o);
    int64_t N = (int64_t)sequences * o->max_length;
    TRY(tune_model_bytes(&model, r->config, dev, r->activations, r->adapted, sequences, o->max_length, r->use));
    int64_t loader = tune_loader_bytes(o, r->rows);
    for (int k = 0; k < r->evaluation_sets; k++) {
        struct tune_loader_options held_out = *o;
        held_out.accumulate = 1;
        loader += tune_loader_bytes(&held_out, r->rows);
    }
    *plan = (struct tune_memory_plan){.held = tune_memory_anonymous()};
    TRY(tune_device_memory(dev, &plan->memory));
    /* frozen weights may be stored in a narrower dtype than the file's */
    plan->mapped = model.files > model.weights ? model.files : model.weights;
    struct tune_model_shares share, all;
    TRY(tune_model_shares(&all, r->config, r->adapted, TUNE_DDP, 0, 1));
    TRY(tune_model_shares(&share, r->config, r->adapted, r->shard, r->rank, r->ranks > 1 ? r->ranks : 1));
    add(plan, "weights", model.weights - all.weights + share.weights, DEVICE);
    add(plan, "gradients", share.gradients, DEVICE);
    add(plan, "gathered units", share.gathered, DEVICE);
    add(plan, "moments", tune_optimizer_bytes(&r->optimizer, share.owned, model.muon), DEVICE);
    add(plan, "averages", r->optimizer.ema > 0 ? share.owned : 0, DEVICE);
    add(plan, "activations", model.activations, DEVICE);
    add(plan, "loss and logits", tune_loss_bytes(r->config, dev, r->activations, N, true), DEVICE);
    add(plan, plan->memory.shared ? "threads' work" : "working memory", working(&model, r, dev), DEVICE);
    add(plan, "profiler", profiler.device, DEVICE);
    add(plan, "profiler's trace", profiler.heap, HOST);
    add(plan, "previews' keys and values", r->preview_rows ? tune_cache_bytes(r->config, r->activations, r->preview_rows,
                                                                           r->preview_tokens, N) : 0, DEVICE);
    int64_t answers = r->answer_rows ? tune_cache_bytes(r->config, r->activations, r->answer_rows, r->answer_tokens, N) : 0;
    for (int i = 1, caches = r->answer_caches; i < caches; i++)
        add_to(&answers, tune_cache_bytes(r->config, r->activations, r->answer_rows, r->answer_tokens, N));
    add(plan, "answers' keys and values", answers, DEVICE);
    add(plan, "loader", loader, HOST);
    if (o->comm && tune_comm_size(o->comm) > 1)
        add(plan, "other ranks' gradients", (int64_t)tune_comm_held_bytes(o->comm, (size_t)share.reduced) +
                                                (plan->memory.shared || tune_comm_has_device(o->comm) ? 0 : share.copied),
            tune_comm_has_device(o->comm) ? DEVICE : HOST);
    add(plan, "reference", reference_bytes(r), HOST);
    int64_t row = r->row_bytes * (1 + r->evaluation_sets); /* a thread for each loader */
    add(plan, "longest row", row, HOST);
    add(plan, "libraries' buffers", model.library + TRANSFER_BYTES + (r->saves_between ? KEPT_BYTES : 0), HOST);
    add(plan, "files to save", r->files, HOST);
    add(plan, "process so far", plan->held, HOST);
    return 0;
}

/* Memory that a limit counts besides the plan: stack and malloc reserve of the loader's thread,
 * stack of the sampler's thread, and mapped files. */
static int64_t beside(const struct tune_memory_request *r, int64_t mapped, enum tune_memory_counts counts)
{
    int64_t reserved = ARENA_BYTES + mapped * (r->resumes ? 2 : 1);
    int64_t stacks = tune_memory_thread(counts) + (counts == TUNE_MEMORY_FILLED ? 0 : TUNE_SAMPLER_STACK);
    return stacks + (counts == TUNE_MEMORY_ADDRESSES ? reserved : 0);
}

static double mib(int64_t bytes)
{
    return (double)bytes / (1 << 20);
}

/* Append "513.1 MiB on the device: weights 513.1, ..." with the parts of one place, or of both. */
static void say_parts(char *text, size_t size, const struct tune_memory_plan *plan, const char *head, int64_t sum,
                      bool device, bool host)
{
    const char *comma = "";
    tune_append(text, size, "%.1f MiB%s:", mib(sum), head);
    for (const struct tune_memory_part *p = plan->parts; p < plan->parts + plan->count; p++)
        if (p->on_device ? device : host) {
            tune_append(text, size, "%s %s %.1f", comma, p->name, mib(p->bytes));
            comma = ",";
        }
}

const char *tune_memory_plan_text(const struct tune_memory_plan *plan, char *text, size_t size)
{
    *text = 0;
    if (plan->memory.shared) {
        say_parts(text, size, plan, "", plan->total, true, true);
        return text;
    }
    say_parts(text, size, plan, " on the device", plan->device, true, false);
    tune_append(text, size, "; ");
    say_parts(text, size, plan, " on the host", plan->host, false, true);
    return text;
}

/* Bytes that the run will still allocate in one place. A device that shares host memory counts
 * once. */
static int64_t to_take(const struct tune_memory_plan *plan, enum where where)
{
    if (plan->memory.shared)
        return plan->total - plan->held;
    return where == DEVICE ? plan->device : plan->host - plan->held;
}

/* Bytes that do not fit, and their place. */
struct excess {
    enum where where;
    int64_t bytes;
};

/* The ways to save memory, as text. */
struct advice {
    char text[512];
    const struct tune_memory_plan *plan;
    struct tune_device *dev;
    struct excess excess;
};

/* Append one way to save memory: the bytes it saves, and whether that is enough. */
static void advise(struct advice *a, const char *option, const struct tune_memory_request *changed)
{
    struct tune_memory_plan less;
    if (tune_memory_plan_make(&less, changed, a->dev) < 0)
        return;
    int64_t saved = to_take(a->plan, a->excess.where) - to_take(&less, a->excess.where);
    if (saved >= 1 << 20)
        tune_append(a->text, sizeof a->text, "%s %s saves %.1f MiB%s", *a->text ? ";" : "", option, mib(saved),
                    saved >= a->excess.bytes ? " (enough)" : "");
}

static struct advice advice(const struct tune_memory_plan *plan, const struct tune_memory_request *r,
                            struct tune_device *dev, struct excess excess)
{
    struct advice a = {"", plan, dev, excess};
    char option[64];
    struct tune_memory_request changed = *r;
    changed.use |= TUNE_CHECKPOINTING;
    advise(&a, "`activation_checkpointing` full", &changed);
    changed = *r;
    changed.loader.batch_size = 1;
    advise(&a, "`batch_size` 1", &changed);
    changed = *r;
    changed.loader.max_length = r->loader.max_length > 1 ? r->loader.max_length / 2 : 1;
    snprintf(option, sizeof option, "`max_length` %d", changed.loader.max_length);
    advise(&a, option, &changed);
    changed = *r;
    changed.activations = TUNE_BF16;
    advise(&a, "`dtype` bfloat16", &changed);
    struct tune_model_adapted narrow = {r->adapted ? r->adapted->lora : NULL, TUNE_BF16};
    changed = *r;
    changed.adapted = r->adapted ? &narrow : NULL;
    advise(&a, "`base_dtype` bfloat16", &changed);
    narrow.storage = TUNE_NF4;
    advise(&a, "`base_dtype` nf4", &changed);
    changed = *r;
    changed.optimizer = (struct tune_optimizer_options){.kind = TUNE_SGD, .ema = r->optimizer.ema};
    advise(&a, "`optimizer` sgd", &changed);
    changed = *r;
    changed.optimizer.ema = 0;
    advise(&a, "`ema` 0", &changed);
    changed = *r;
    changed.profile = 0;
    advise(&a, "`profile` 0", &changed);
    changed = *r;
    changed.shard = TUNE_SHARD_OPTIMIZER;
    if (r->optimizer.kind != TUNE_MUON && r->shard == TUNE_DDP)
        advise(&a, "`shard` optimizer", &changed);
    changed.shard = TUNE_FSDP;
    if (r->optimizer.kind != TUNE_MUON && r->shard != TUNE_FSDP)
        advise(&a, "`shard` fsdp", &changed);
    if (!*a.text)
        tune_append(a.text, sizeof a.text, " nothing but a smaller model, or more memory, helps");
    return a;
}

/* Check a device with its own memory. */
static int check_device(const struct tune_memory_plan *plan, const struct tune_memory_request *r,
                        struct tune_device *dev)
{
    int64_t need = to_take(plan, DEVICE), most = need - plan->memory.free;
    char parts[512];
    if (most <= 0 || plan->memory.total == 0)
        return 0;
    struct advice help = advice(plan, r, dev, (struct excess){DEVICE, most});
    return tune_error_cannot("not enough memory on the device %s: %.1f MiB are still to be taken, %.1f of "
                               "its %.1f MiB are free. The run needs %s. To need less:%s",
                               dev->name, mib(need), mib(plan->memory.free), mib(plan->memory.total),
                               tune_memory_plan_text(plan, parts, sizeof parts), help.text);
}

int tune_memory_plan_check(const struct tune_memory_plan *plan, const struct tune_memory_request *r, struct tune_device *dev,
                           const struct tune_memory_limit *limits, int count)
{
    const struct tune_memory_limit *worst = NULL;
    int64_t most = 0, worst_need = 0;
    if (!plan->memory.shared)
        TRY(check_device(plan, r, dev));
    for (int i = 0; i < count; i++) {
        int64_t need = to_take(plan, HOST) + beside(r, plan->mapped, limits[i].counts);
        if (limits[i].counts == TUNE_MEMORY_FILLED && r->ranks_here > 1)
            need *= r->ranks_here;
        if (need - limits[i].bytes > most) {
            most = need - limits[i].bytes;
            worst = &limits[i];
            worst_need = need;
        }
    }
    if (!worst)
        return 0;
    char parts[512];
    struct advice help = advice(plan, r, dev, (struct excess){HOST, most});
    bool shared = worst->counts == TUNE_MEMORY_FILLED && r->ranks_here > 1;
    return tune_error_cannot("not enough memory%s: %.1f MiB are still to be taken%s%s, %.1f MiB are %s. "
                               "The run needs %s. To need less:%s",
                               plan->memory.shared ? "" : " on the host", mib(worst_need),
                               worst->counts == TUNE_MEMORY_FILLED
                                   ? "" : " (a thread's stack and what is only reserved among them)",
                               shared ? " by all ranks of this machine" : "",
                               mib(worst->bytes), worst->what, tune_memory_plan_text(plan, parts, sizeof parts), help.text);
}
