/* fit.c - what fits on a GPU: the largest batch and the longest rows, without that GPU.
 *
 *     build/fit --gpu h100-80gb --model llama3-8b        full, LoRA, QLoRA of one model
 *     build/fit --gpu-memory 24GiB                       all known models
 *     build/fit --gpu rtx-4090 --method qlora --json
 *
 * Each figure is the memory plan of a recipe (--plan-memory), made with the device's own
 * arithmetic. So it is what a run takes. The driver's part is an estimate. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/nearest.h"
#include "core/print.h"
#include "core/try.h"
#include "devices/device.h"
#include "files/file.h"
#include "flags/known.h"
#include "flags/program.h"
#include "profilers/memory_plan.h"
#include "views/table.h"

enum { MOST_BATCH = 4096 }; /* as --batch-size of the recipes */
#define GIB ((double)(1 << 30))

static struct {
    struct tune_flags tune;
    const char *gpu, *memory, *method;
    enum tune_dtype dtype, base_dtype;
    bool json;
} my = {.tune = {.loader = {.accumulate = 1, .train_split = 1}, .log = {.log_every = 1}, .save = true}};

static const struct tune_option my_options[] = {
    {"model", TUNE_STRING, &my.tune.model, NULL, "", "",
     "model folder, known name (see --list-models) or Hub id. A known model need not be here. "
     "Default: all known models"},
    {"gpu", TUNE_JOINED(TUNE_STRING), &my.gpu, NULL, "", "",
     "known GPUs, with commas: --gpu list prints them"},
    {"gpu-memory", TUNE_JOINED(TUNE_STRING), &my.memory, NULL, "", "",
     "memory of any other GPU, as CUDA shows it: 24GiB, 24GB or 24564MiB; several with commas"},
    {"json", TUNE_BOOL, &my.json, "false", "", "",
     "print an array of objects, with bytes and with the command of a recipe"},
    TUNE_OPTION_GROUP("the run"),
    {"method", TUNE_STRING, &my.method, "full,lora,qlora", "", "",
     "full: all weights are trained, in float32. lora: adapters on a frozen base. qlora: on a base "
     "of 4 bits. Several with commas"},
    {"max-length", TUNE_INT, &my.tune.data.max_length, "2048", "[1,inf)", "tokens",
     "length of rows for which the largest batch is sought; at most the model's context"},
    {"batch-size", TUNE_INT, &my.tune.loader.batch_size, "1", "[1,4096]", "rows",
     "batch for which the longest rows are sought. The parts are those of this batch"},
    {"dtype", TUNE_DTYPE, &my.dtype, "bfloat16", "float32|bfloat16", "", "format of activations"},
    {"base-dtype", TUNE_DTYPE, &my.base_dtype, "bfloat16", "float32|bfloat16", "",
     "format of the frozen weights of lora"},
    {"activation-checkpointing", TUNE_ENUM, &my.tune.activation_checkpointing, "full", "none|full", "",
     "full: keep only each layer's input"},
    {"optimizer", TUNE_ENUM, &my.tune.optimizer.kind, "adamw", "adamw|sgd|muon", "", "update rule"},
    {"momentum", TUNE_DOUBLE, &my.tune.optimizer.momentum, "0", "[0,1)", "", "SGD: momentum"},
    {"ema", TUNE_DOUBLE, &my.tune.optimizer.ema, "0", "[0,1)", "", "moving averages of the weights"},
    {"lora-r", TUNE_INT, &my.tune.lora.r, "16", "[1,16384]", "", "rank of the adapters"},
    {"lora-targets", TUNE_STRING, &my.tune.lora.targets, "all-linear", "", "",
     "modules with an adapter"},
    {"lora-dora", TUNE_BOOL, &my.tune.lora.dora, "false", "", "", "DoRA"},
    TUNE_OPTION_GROUP(""),
    {0},
};
static const struct tune_property my_properties[] = {{0}};

/* ---- GPUs ---- */

/* Known GPUs with the memory that CUDA shows, which is less than their names say. All have bfloat16. The figures are those that PyTorch
 * prints in public reports of "out of memory"; a driver's own may differ by some MiB. */
static const struct gpu {
    const char *name;
    double gib;
} gpus[] = {
    {"rtx-3060-12gb", 11.7}, {"rtx-3090", 23.6},   {"rtx-4090", 23.6},   {"rtx-5090", 31.3},
    {"l4", 22.0},          {"a10g", 21.9},          {"rtx-a6000", 47.5},  {"l40s", 44.3},       {"a100-40gb", 39.3},
    {"a100-80gb", 79.1},   {"h100-80gb", 79.1},     {"h200", 139.7},      {"b200", 178.3},
};
enum { GPUS = sizeof gpus / sizeof *gpus, MOST_GPUS = 64 };

struct target {
    char name[64];
    int64_t bytes;
};

static int list_gpus(void)
{
    for (int i = 0; i < GPUS; i++)
        printf("%-16s%6.1f GiB\n", gpus[i].name, gpus[i].gib);
    return ferror(stdout) ? tune_error_set("cannot write to standard output") : 0;
}

static int unknown_gpu(const char *name)
{
    char all[512] = "";
    for (int i = 0; i < GPUS; i++)
        tune_append(all, sizeof all, "%s%s", i ? ", " : "", gpus[i].name);
    return tune_error_usage("--gpu %s: known are %s. For another: --gpu-memory 24GiB", name, all);
}

static int named_gpu(const char *name, struct target *t)
{
    int i = 0;
    while (i < GPUS && strcasecmp(gpus[i].name, name))
        i++;
    if (i == GPUS)
        return unknown_gpu(name);
    snprintf(t->name, sizeof t->name, "%s", gpus[i].name);
    t->bytes = (int64_t)(gpus[i].gib * GIB);
    return 0;
}

/* "24GiB", "24 GB", "24564MiB" */
static int sized_gpu(const char *text, struct target *t)
{
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"GiB", 0x1p30}, {"MiB", 0x1p20}, {"GB", 1e9}, {"MB", 1e6}, {"TiB", 0x1p40}};
    char *end;
    double n = strtod(text, &end);
    bool number = end > text && isfinite(n) && n > 0;
    end += strspn(end, " ");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (number && !strcasecmp(end, units[i].unit) && n * units[i].bytes < 0x1p60) {
            snprintf(t->name, sizeof t->name, "%.40s", text);
            t->bytes = (int64_t)(n * units[i].bytes);
            return 0;
        }
    return tune_error_usage("--gpu-memory %s: expected a number and GiB, MiB, GB or MB, such as 24GiB", text);
}

/* Read a list of --gpu or --gpu-memory. */
static int read_gpus(const char *list, int (*read)(const char *, struct target *), struct target *targets, int *count)
{
    for (const char *at = list; at && *at; at += strcspn(at, ","), at += *at == ',') {
        char word[64];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, ","), at);
        if (*count == MOST_GPUS)
            return tune_error_usage("at most %d GPUs", MOST_GPUS);
        TRY(read(word, &targets[(*count)++]));
    }
    return 0;
}

/* ---- one row ---- */

static const char *const methods[] = {"full", "lora", "qlora"};
enum { FULL, LORA, QLORA, METHODS };

/* The flags of a recipe for that method. */
static struct tune_flags flags_of(int method)
{
    struct tune_flags f = my.tune;
    f.dtype = my.dtype;
    f.base_dtype = method == QLORA ? TUNE_NF4 : my.base_dtype;
    f.lora.r = method == FULL ? 0 : f.lora.r;
    f.lora.alpha = 2 * my.tune.lora.r;
    return f;
}

struct row {
    const char *model;
    const struct target *gpu;
    const struct tune_model_config *config;
    struct tune_device *dev;
    int method, length; /* length: for the largest batch */
    int64_t room;       /* bytes for the run */
};

static int plan(const struct row *r, int batch, int length, struct tune_memory_plan *p)
{
    struct tune_flags f = flags_of(r->method);
    f.loader.batch_size = batch;
    f.data.max_length = length;
    return tune_get_memory_parts(p, &f, r->dev, r->config);
}

/* 1: it fits; 0; -1. A batch has at most 2^31 - 1 positions. */
static int fits(const struct row *r, int batch, int length)
{
    struct tune_memory_plan p;
    if ((int64_t)batch * length > INT32_MAX)
        return 0;
    TRY(plan(r, batch, length, &p));
    return p.device <= r->room;
}

/* The largest batch (with that length) or length (with that batch) up to most; 0: none. */
static int largest(const struct row *r, int batch, int length, int most)
{
    int low = 0, high = most + 1; /* low fits, high does not */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        int good = batch ? fits(r, batch, middle) : fits(r, middle, length);
        TRY(good);
        *(good ? &low : &high) = middle;
    }
    return low;
}

/* Columns of parts, and the names that the plan has for them. */
static const struct part {
    const char *column, *names[2];
} parts[] = {
    {"weights", {"weights", NULL}},         {"gradients", {"gradients", NULL}}, {"optimizer", {"moments", "averages"}},
    {"activations", {"activations", NULL}}, {"loss", {"loss and logits", NULL}},    {"working", {"working memory", NULL}},
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

static void put_bytes(struct tune_table *t, int64_t bytes)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", (double)bytes / GIB);
    tune_table_shown(t, (double)bytes, text);
}

/* People see "no" for 0. */
static void put_most(struct tune_table *t, int most)
{
    char text[16];
    snprintf(text, sizeof text, "%d", most);
    tune_table_shown(t, most, most ? text : "no");
}

/* The command that makes this plan. */
static const char *command_of(const struct row *r, int batch, int length, char *text, size_t size)
{
    static const char *const optimizers[] = {"adamw", "sgd", "muon"};
    struct tune_flags f = flags_of(r->method);
    snprintf(text, size, "finetune_%s --model %s --device cuda --dtype %s", r->method == FULL ? "full" : "lora", r->model,
             f.dtype == TUNE_BF16 ? "bfloat16" : "float32");
    if (r->method != FULL)
        tune_append(text, size, " --base-dtype %s --lora-r %d --lora-targets '%s'%s",
                    r->method == QLORA ? "nf4" : f.base_dtype == TUNE_BF16 ? "bfloat16" : "float32", f.lora.r, f.lora.targets,
                    f.lora.dora ? " --lora-dora" : "");
    tune_append(text, size, " --activation-checkpointing %s --optimizer %s", f.activation_checkpointing ? "full" : "none",
                optimizers[f.optimizer.kind]);
    if (f.optimizer.momentum > 0)
        tune_append(text, size, " --momentum %g", f.optimizer.momentum);
    if (f.optimizer.ema > 0)
        tune_append(text, size, " --ema %g", f.optimizer.ema);
    /* A recipe on another machine would take this from the GPU that is there. */
    tune_append(text, size, " --logits-chunk %d --max-length %d --batch-size %d", (int)(r->dev->logits_bytes >> 20), length, batch);
    return text;
}

/* Columns: those that only JSON has come first. */
static const char *const columns[] = {"gpu", "gpu_memory_bytes", "driver_bytes", "command", "model", "method", "batch", "length"};
enum { JSON_COLUMNS = 4, COLUMNS = sizeof columns / sizeof *columns };

static struct tune_table *new_table(void)
{
    const char *names[COLUMNS + PARTS + 1];
    int n = 0;
    for (int i = my.json ? 0 : JSON_COLUMNS; i < COLUMNS; i++)
        names[n++] = columns[i];
    for (int i = 0; i < PARTS; i++)
        names[n++] = parts[i].column;
    names[n++] = "needed";
    return tune_table_new(names, n);
}

static int add_row(struct tune_table *t, const struct row *r)
{
    struct tune_memory_plan p;
    char command[1024];
    int batch = my.tune.loader.batch_size;
    int most = largest(r, 0, r->length, MOST_BATCH), longest = largest(r, batch, 0, r->config->max_positions);
    if (most < 0 || longest < 0)
        return -1;
    TRY(plan(r, batch, r->length, &p));
    if (my.json) {
        tune_table_text(t, r->gpu->name);
        tune_table_number(t, (double)r->gpu->bytes, "%.0f");
        tune_table_number(t, (double)TUNE_CUDA_CONTEXT, "%.0f");
        tune_table_text(t, command_of(r, batch, r->length, command, sizeof command));
    }
    tune_table_text(t, r->model);
    tune_table_text(t, methods[r->method]);
    put_most(t, most);
    put_most(t, longest);
    for (int i = 0; i < PARTS; i++)
        put_bytes(t, part_bytes(&p, &parts[i]));
    put_bytes(t, p.device);
    return 0;
}

/* ---- all of them ---- */

static int method_given(const char *name)
{
    return tune_name_listed(my.method, name);
}

static int check_methods(void)
{
    for (const char *at = my.method; *at; at += strcspn(at, ","), at += *at == ',') {
        bool known = false;
        for (int i = 0; i < METHODS; i++)
            known = known || (strcspn(at, ",") == strlen(methods[i]) && !strncmp(at, methods[i], strlen(methods[i])));
        if (!known)
            return tune_error_usage("--method %s: expected full, lora, qlora, or several of them with commas", my.method);
    }
    return *my.method ? 0 : tune_error_usage("--method is empty: expected full, lora or qlora");
}

static int add_model(struct tune_table *t, const char *model, const struct target *gpu, struct tune_device *dev)
{
    char folder[TUNE_PATH_MAX];
    struct tune_model_config config;
    struct tune_device_memory memory;
    struct tune_flags f = my.tune;
    f.model = model;
    f.data.max_length = 1;
    TRY(tune_get_model_shape(&f, folder, &config));
    TRY(tune_device_memory(dev, &memory));
    int length = my.tune.data.max_length < config.max_positions ? my.tune.data.max_length : config.max_positions;
    for (int i = 0; i < METHODS; i++) {
        struct row r = {model, gpu, &config, dev, i, length, memory.free};
        if (method_given(methods[i]))
            TRY(add_row(t, &r));
    }
    return 0;
}

static int add_gpu(struct tune_table *t, const struct target *gpu)
{
    struct tune_known_model *known = NULL;
    struct tune_device *dev = tune_device_plan("cuda", 0, gpu->bytes);
    int code = dev ? 0 : -1, count = 0;
    if (code == 0 && my.tune.model)
        code = add_model(t, my.tune.model, gpu, dev);
    else if (code == 0)
        code = (count = tune_known_models(&known)) < 0 ? -1 : 0;
    for (int i = 0; i < count && code == 0; i++)
        code = add_model(t, known[i].name, gpu, dev);
    free(known);
    tune_device_close(dev);
    return code;
}

static int print(const struct target *targets, int count)
{
    struct tune_table *t = NULL;
    int code = 0;
    for (int i = 0; i < count && code == 0; i++) {
        t = t ? t : new_table();
        code = t ? add_gpu(t, &targets[i]) : -1;
        if (my.json && i + 1 < count)
            continue;
        if (code == 0 && !my.json)
            printf("%s# %s: %.1f GiB, %.1f of them for its driver (an estimate)\n", i ? "\n" : "", targets[i].name,
                   (double)targets[i].bytes / GIB, (double)TUNE_CUDA_CONTEXT / GIB);
        if (code == 0)
            code = tune_table_print(t, my.json ? "json" : "table", 0, "", stdout);
        tune_table_free(t);
        t = NULL;
    }
    tune_table_free(t);
    if (code == 0 && !my.json)
        printf("# batch: the largest with rows of %d. length: the longest rows with batch %d. The parts, in GiB, are those of\n"
               "# batch %d with rows of %d. A shorter context bounds both. 'working' has 32 MiB for cuBLASLt.\n",
               my.tune.data.max_length, my.tune.loader.batch_size, my.tune.loader.batch_size, my.tune.data.max_length);
    if (code == 0 && !my.json)
        printf("# Activations in %s, checkpointing %s; adapters of rank %d on %s. fit --help has the options.\n",
               tune_dtype_name(my.dtype), my.tune.activation_checkpointing ? "full" : "none", my.tune.lora.r,
               my.tune.lora.targets);
    return code < 0 ? -1 : ferror(stdout) ? tune_error_set("cannot write to standard output") : 0;
}

static int fit(void)
{
    struct target targets[MOST_GPUS];
    int count = 0;
    if (my.gpu && !strcmp(my.gpu, "list"))
        return list_gpus();
    TRY(check_methods());
    TRY(read_gpus(my.gpu, named_gpu, targets, &count));
    TRY(read_gpus(my.memory, sized_gpu, targets, &count));
    if (count == 0)
        return tune_error_usage("which GPU? --gpu NAME (--gpu list prints the names), or --gpu-memory 24GiB");
    return print(targets, count);
}

int main(int argc, char **argv)
{
    tune_program_start(argc, argv, &my.tune, my_options, my_properties,
                       "Say what fits on a GPU, without that GPU: the largest batch and the longest rows.");
    MUST(fit());
    tune_flags_free(&my.tune);
    struct tune_progress none = {0};
    return tune_program_exit(&none);
}
