/* memory_plan.c - the parts, their sum, and what to give up when they are too much. */
#include "profilers/memory_plan.h"

#include <stdio.h>
#include <string.h>

#include "core/try.h"
#include "devices/record.h"
#include "losses/loss.h"
#include "profilers/profiler.h"
#include "profilers/sampler.h"

enum { TRANSFER_BYTES = 4 << 20 }; /* of the heap: what weights pass through when they are read and saved, JSON, rows of text */

enum { ARENA_BYTES = 64 << 20 };   /* addresses that glibc's malloc reserves for a thread */

static void add(struct tune_memory_plan *plan, const char *name, int64_t bytes, bool tensor)
{
    if (bytes == 0)
        return;
    plan->parts[plan->count++] = (struct tune_memory_part){name, bytes};
    if (__builtin_add_overflow(plan->total, bytes, &plan->total))
        plan->total = INT64_MAX; /* a part may be that already: see core/arena.h */
    if (tensor && __builtin_add_overflow(plan->tensors, bytes, &plan->tensors))
        plan->tensors = INT64_MAX;
}

int tune_memory_plan_make(struct tune_memory_plan *plan, const struct tune_memory_request *r, struct tune_device *dev)
{
    struct tune_model_bytes model;
    struct tune_profiler_bytes profiler = tune_profiler_bytes(r->profile);
    const struct tune_loader_options *o = &r->loader;
    int64_t N = (int64_t)o->batch_size * o->max_length;
    TRY(tune_model_bytes(&model, r->config, dev, r->activations, r->adapted, o->batch_size, o->max_length, r->use));
    int64_t loader = tune_loader_bytes(o, r->rows);
    if (r->evaluates) {
        struct tune_loader_options held_out = *o;
        held_out.accumulate = 1;
        loader += tune_loader_bytes(&held_out, r->rows);
    }
    *plan = (struct tune_memory_plan){.held = tune_memory_anonymous()};
    plan->mapped = model.files > model.weights ? model.files : model.weights; /* a base that is kept narrower than it is read */
    add(plan, "weights", model.weights, true);
    add(plan, "gradients", model.gradients, true);
    add(plan, "moments", tune_optimizer_bytes(&r->optimizer, model.gradients), true);
    add(plan, "activations", model.activations, true);
    add(plan, "loss and logits", tune_loss_bytes(r->config, r->activations, N, true), true);
    int64_t scalars = tune_record_bytes(r->log_every);
    add(plan, "threads' work", model.working < INT64_MAX - scalars ? model.working + scalars : INT64_MAX, true);
    add(plan, "merged tile", r->proves ? model.merged : 0, true);
    add(plan, "proof of adapters", r->proves ? model.merged_host : 0, false);
    add(plan, "profiler", profiler.device, true);
    add(plan, "profiler's trace", profiler.heap, false);
    add(plan, "loader", loader, false);
    add(plan, "longest row", r->row_bytes * (r->evaluates ? 2 : 1), false); /* a thread for each loader */
    add(plan, "libraries' buffers", model.library + TRANSFER_BYTES, false);
    add(plan, "files to save", r->files, false);
    add(plan, "process so far", plan->held, false);
    return 0;
}

/* What a limit counts beside the plan: the thread that reads the data, with what malloc reserves for it, the one that watches the
 * machine; files while they are mapped. */
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

const char *tune_memory_plan_text(const struct tune_memory_plan *plan, char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%.1f MiB:", mib(plan->total));
    for (int i = 0; i < plan->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s %s %.1f", i ? "," : "", plan->parts[i].name,
                                 mib(plan->parts[i].bytes));
    return text;
}

/* One way to need less: what it saves, and whether that is enough. */
static size_t advise(char *text, size_t size, size_t used, const char *option, const struct tune_memory_plan *plan,
                     const struct tune_memory_request *changed, struct tune_device *dev, int64_t excess)
{
    struct tune_memory_plan less;
    if (used >= size || tune_memory_plan_make(&less, changed, dev) < 0)
        return used;
    int64_t saved = (plan->total - plan->held) - (less.total - less.held);
    if (saved < 1 << 20)
        return used;
    return used + (size_t)snprintf(text + used, size - used, "%s %s saves %.1f MiB%s", used ? ";" : "", option, mib(saved),
                                   saved >= excess ? " (enough)" : "");
}

static void advice(char *text, size_t size, const struct tune_memory_plan *plan, const struct tune_memory_request *r,
                   struct tune_device *dev, int64_t excess)
{
    char option[64];
    size_t used = 0;
    struct tune_memory_request changed = *r;
    text[0] = 0;
    changed.use |= TUNE_CHECKPOINTING;
    used = advise(text, size, used, "--activation-checkpointing full", plan, &changed, dev, excess);
    changed = *r;
    changed.loader.batch_size = 1;
    used = advise(text, size, used, "--batch-size 1", plan, &changed, dev, excess);
    changed = *r;
    changed.loader.max_length = r->loader.max_length > 1 ? r->loader.max_length / 2 : 1;
    snprintf(option, sizeof option, "--max-length %d", changed.loader.max_length);
    used = advise(text, size, used, option, plan, &changed, dev, excess);
    changed = *r;
    changed.activations = TUNE_BF16;
    used = advise(text, size, used, "--dtype bfloat16", plan, &changed, dev, excess);
    struct tune_model_adapted narrow = {r->adapted ? r->adapted->lora : NULL, TUNE_BF16};
    changed = *r;
    changed.adapted = r->adapted ? &narrow : NULL;
    used = advise(text, size, used, "--base-dtype bfloat16", plan, &changed, dev, excess);
    narrow.storage = TUNE_NF4;
    used = advise(text, size, used, "--base-dtype nf4", plan, &changed, dev, excess);
    changed = *r;
    changed.optimizer = (struct tune_optimizer_options){.kind = TUNE_SGD};
    used = advise(text, size, used, "--optimizer sgd", plan, &changed, dev, excess);
    changed = *r;
    changed.profile = 0;
    used = advise(text, size, used, "--profile 0", plan, &changed, dev, excess);
    if (used == 0)
        snprintf(text, size, " nothing but a smaller model, or more memory, helps");
}

int tune_memory_plan_check(const struct tune_memory_plan *plan, const struct tune_memory_request *r, struct tune_device *dev,
                           const struct tune_memory_limit *limits, int count)
{
    const struct tune_memory_limit *worst = NULL;
    int64_t most = 0, worst_need = 0;
    for (int i = 0; i < count; i++) {
        int64_t need = plan->total - plan->held + beside(r, plan->mapped, limits[i].counts);
        if (need - limits[i].bytes > most) {
            most = need - limits[i].bytes;
            worst = &limits[i];
            worst_need = need;
        }
    }
    if (!worst)
        return 0;
    char parts[512], help[512];
    advice(help, sizeof help, plan, r, dev, most);
    tune_error_set_kind(TUNE_ERROR_CANNOT,
                        "not enough memory: %.1f MiB are still to be taken%s, %.1f MiB are %s. The run needs %s. "
                        "To need less:%s",
                        mib(worst_need), worst->counts == TUNE_MEMORY_FILLED ? "" : " (a thread's stack and what is only reserved among them)",
                        mib(worst->bytes), worst->what, tune_memory_plan_text(plan, parts, sizeof parts), help);
    return -1;
}
