/* on_gpus.c - what fits on a GPU: the largest batch and the longest rows of each model and method. */
#include "fit.h"

#include <stdlib.h>
#include <string.h>

#include "core/nearest.h"
#include "core/try.h"
#include "../drawing.h"
#include "flags/known.h"

/* Columns of parts, and the names that the plan has for them. */
static const struct part {
    const char *column, *names[2];
} parts[] = {
    {"weights", {"weights", NULL}},         {"gradients", {"gradients", NULL}}, {"optimizer", {"moments", "averages"}},
    {"activations", {"activations", NULL}}, {"loss", {"loss and logits", NULL}},    {"working", {"working memory", NULL}},
    {"gathered", {"gathered units", NULL}}, /* the last one: of several GPUs alone */
};
enum { PARTS = sizeof parts / sizeof *parts };

static int64_t part_bytes(const struct tune_memory_plan *p, const struct part *part)
{
    int64_t sum = 0;
    for (int i = 0; i < p->count; i++)
        for (int k = 0; k < 2; k++)
            sum += part->names[k] && !strcmp(p->parts[i].name, part->names[k]) ? p->parts[i].bytes : 0;
    return sum;
}

/* Columns: those that only programs get come first. */
static const char *const columns[] = {"gpu", "gpu_memory_bytes", "driver_bytes", "command", "gpus", "shard", "model", "method", "batch", "length"};
enum { PROGRAM_COLUMNS = 6, COLUMNS = sizeof columns / sizeof *columns };

/* The columns of parts: people see the last one where GPUs share weights. */
static int part_count(const struct fit_flags *my)
{
    return strcmp(my->format, "table") || !strcmp(fit_shard(my), "fsdp") ? PARTS : PARTS - 1;
}

static bool for_people(const struct fit_flags *my)
{
    return !strcmp(my->format, "table");
}

static struct tune_table *new_table(const struct fit_flags *my)
{
    const char *names[COLUMNS + PARTS + 1];
    int n = 0;
    for (int i = for_people(my) ? PROGRAM_COLUMNS : 0; i < COLUMNS; i++)
        names[n++] = columns[i];
    for (int i = 0; i < part_count(my); i++)
        names[n++] = parts[i].column;
    names[n++] = "needed";
    struct tune_table *t = tune_table_new(names, n);
    if (t && for_people(my))
        tune_table_keys(t, 2);
    return t;
}

static int add_row(struct tune_table *t, const struct fit_run *r)
{
    struct tune_memory_plan p;
    char command[1024], text[128];
    int batch = r->my->tune.loader.batch_size;
    bool old = r->gpu->known && *tune_known_gpu_old(r->gpu->known, text, sizeof text);
    int most = old ? 0 : fit_largest(r, 0, r->length, MOST_BATCH);
    int longest = old ? 0 : fit_largest(r, batch, 0, r->config->max_positions);
    if (most < 0 || longest < 0)
        return -1;
    TRY(fit_plan(r, batch, r->length, &p));
    if (!for_people(r->my)) {
        tune_table_text(t, r->gpu->name);
        tune_table_number(t, (double)r->gpu->bytes, "%.0f");
        tune_table_number(t, (double)TUNE_CUDA_CONTEXT, "%.0f");
        tune_table_text(t, fit_command(r, batch, r->length, command, sizeof command));
        tune_table_number(t, r->my->gpus, "%.0f");
        tune_table_text(t, fit_shard(r->my));
    }
    tune_table_text(t, r->model);
    tune_table_text(t, fit_methods[r->method]);
    fit_put_most(t, most);
    fit_put_most(t, longest);
    for (int i = 0; i < part_count(r->my); i++)
        fit_put_bytes(t, part_bytes(&p, &parts[i]));
    fit_put_bytes(t, p.device);
    return 0;
}

static int add_model(struct tune_table *t, const struct fit_flags *my, const char *model, const struct fit_gpu *gpu)
{
    struct tune_model_config config;
    struct fit_run r = {0};
    int code = fit_open(&r, my, model, gpu, &config);
    for (r.method = FULL; r.method < METHODS && code == 0; r.method++)
        if (tune_name_listed(my->method, fit_methods[r.method]))
            code = add_row(t, &r);
    tune_device_close(r.dev);
    return code;
}

static int add_gpu(struct tune_table *t, const struct fit_flags *my, const struct fit_gpu *gpu)
{
    struct tune_known_model *known = NULL;
    int code = 0, count = 0;
    if (my->tune.model)
        return add_model(t, my, my->tune.model, gpu);
    TRY(count = tune_known_models(&known));
    for (int i = 0; i < count && code == 0; i++)
        code = add_model(t, my, known[i].name, gpu);
    free(known);
    return code;
}

static void print_heading(const struct fit_gpu *gpu, bool first, int width)
{
    char old[128] = "";
    if (gpu->known)
        tune_known_gpu_old(gpu->known, old, sizeof old);
    fputs(first ? "" : "\n", stdout);
    fit_note(width, "%s: %.1f GiB, %.1f of them for its driver (an estimate)", gpu->name, (double)gpu->bytes / GIB,
             (double)TUNE_CUDA_CONTEXT / GIB);
    if (*old)
        fit_note(width, "no run works on it: %s", old);
}

static void print_legend(const struct fit_flags *my, int width)
{
    int batch = my->tune.loader.batch_size, length = my->tune.data.max_length;
    fit_note(width, "batch: the largest with rows of %d. length: the longest rows with batch %d. The parts, in GiB, are those of batch %d "
             "with rows of %d. A shorter context bounds both. 'working' has 32 MiB for cuBLASLt.", length, batch, batch, length);
    fit_note(width, "Activations in %s, checkpointing %s; adapters of rank %d on %s. fit --help has the options.", fit_dtype(my->dtype),
             my->tune.activation_checkpointing ? "full" : "none", my->tune.lora.r, my->tune.lora.targets);
    fit_note(width, "What is trained has float32 weights, gradients and moments: 16 bytes for each weight with AdamW.");
    fit_note_gpus(my, false, width);
}

int fit_on_gpus(const struct fit_flags *my, const struct fit_gpu *gpus, int count)
{
    struct tune_table *t = NULL;
    int code = 0, width = for_people(my) ? drawing_columns(my->width, 0) : 0, notes = fit_note_width(width);
    for (int i = 0; i < count && code == 0; i++) {
        t = t ? t : new_table(my);
        code = t ? add_gpu(t, my, &gpus[i]) : -1;
        if (!for_people(my) && i + 1 < count)
            continue;
        if (code == 0 && for_people(my))
            print_heading(&gpus[i], i == 0, notes);
        if (code == 0)
            code = tune_table_print(t, my->format, width, "...", stdout);
        tune_table_free(t);
        t = NULL;
    }
    tune_table_free(t);
    if (code == 0 && for_people(my))
        print_legend(my, notes);
    return code;
}
