/* plan.c - the memory plan of a recipe on a GPU, and the largest run that fits. */
#include "fit.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <strings.h>

#include "core/print.h"
#include "core/try.h"
#include "files/cjson.h"

const char *const fit_methods[METHODS] = {"full", "lora", "qlora"};

const char *fit_dtype(enum tune_dtype dtype)
{
    return dtype == TUNE_BF16 ? "bfloat16" : dtype == TUNE_NF4 ? "nf4" : "float32";
}

/* The file of a bare config.json: "models/x/config.json". */
static bool is_config_file(const char *model)
{
    size_t n = strlen(model);
    return n > 5 && !strcasecmp(model + n - 5, ".json");
}

static int read_config_file(const char *path, struct tune_model_config *config)
{
    cJSON *json = tune_cjson_read(path, (size_t)1 << 20);
    int code = json ? tune_model_config_parse(config, json, path) : -1;
    cJSON_Delete(json);
    return code;
}

int fit_shape(const struct fit_flags *my, const char *model, struct tune_model_config *config)
{
    char folder[TUNE_PATH_MAX];
    struct tune_flags f = my->tune;
    f.model = model;
    f.data.max_length = 1;
    if (is_config_file(model))
        return read_config_file(model, config);
    return tune_get_model_shape(&f, folder, config) < 0 ? -1 : 0;
}

int fit_open(struct fit_run *r, const struct fit_flags *my, const char *model, const struct fit_gpu *gpu,
             struct tune_model_config *config)
{
    struct tune_device_memory memory;
    TRY(fit_shape(my, model, config));
    int length = my->tune.data.max_length < config->max_positions ? my->tune.data.max_length : config->max_positions;
    struct tune_device *dev = tune_device_plan("cuda", 0, gpu->bytes);
    *r = (struct fit_run){my, model, gpu, config, dev, FULL, length, 0};
    TRY(dev ? tune_device_memory(dev, &memory) : -1);
    r->room = memory.free;
    return 0;
}

struct tune_flags fit_flags_of(const struct fit_run *r)
{
    struct tune_flags f = r->my->tune;
    f.dtype = r->my->dtype;
    f.base_dtype = r->method == QLORA ? TUNE_NF4 : r->my->base_dtype;
    f.lora.r = r->method == FULL ? 0 : f.lora.r;
    f.lora.alpha = 2 * r->my->tune.lora.r;
    return f;
}

/* The plan of rank 0. The share of another may be some bytes larger. */
static int plan(const struct fit_run *r, int batch, int length, int ranks, struct tune_memory_plan *p)
{
    struct tune_flags f = fit_flags_of(r);
    f.loader.batch_size = batch;
    f.data.max_length = length;
    f.ranks = ranks;
    f.shard = fit_shard_of(r->my);
    return tune_get_memory_parts(p, &f, r->dev, r->config);
}

int fit_plan_whole(const struct fit_run *r, int batch, int length, struct tune_memory_plan *p)
{
    return plan(r, batch, length, 1, p);
}

int fit_plan(const struct fit_run *r, int batch, int length, struct tune_memory_plan *p)
{
    return plan(r, batch, length, r->my->gpus, p);
}

int fit_fits(const struct fit_run *r, int batch, int length)
{
    struct tune_memory_plan p;
    if ((int64_t)batch * length > INT32_MAX) /* the most positions of a batch */
        return 0;
    TRY(fit_plan(r, batch, length, &p));
    return p.device <= r->room;
}

int fit_largest(const struct fit_run *r, int batch, int length, int most)
{
    int low = 0, high = most + 1; /* low fits, high does not */
    while (high - low > 1) {
        int middle = low + (high - low) / 2;
        int good = batch ? fit_fits(r, batch, middle) : fit_fits(r, middle, length);
        TRY(good);
        *(good ? &low : &high) = middle;
    }
    return low;
}

/* The --model of a recipe: for a config.json its folder. False: no recipe takes a file of that name. */
static bool find_model(const char *given, char model[TUNE_PATH_MAX])
{
    static const char name[] = "config.json";
    size_t n = strlen(given), end = sizeof name - 1;
    snprintf(model, TUNE_PATH_MAX, "%s", given);
    if (!is_config_file(given))
        return true;
    if (n < end || strcmp(given + n - end, name) || (n > end && given[n - end - 1] != '/'))
        return false;
    snprintf(model, TUNE_PATH_MAX, "%.*s", n > end + 1 ? (int)(n - end - 1) : 1, n > end ? given : ".");
    return true;
}

const char *fit_command(const struct fit_run *r, int batch, int length, char *text, size_t size)
{
    static const char *const optimizers[] = {"adamw", "sgd", "muon"};
    struct tune_flags f = fit_flags_of(r);
    char model[TUNE_PATH_MAX];
    *text = 0;
    if (!find_model(r->model, model))
        return text;
    snprintf(text, size, "finetune_%s --model %s --device cuda --dtype %s", r->method == FULL ? "full" : "lora", model, fit_dtype(f.dtype));
    if (r->method != FULL)
        tune_append(text, size, " --base-dtype %s --lora-r %d --lora-targets '%s'%s",
                    fit_dtype(f.base_dtype), f.lora.r, f.lora.targets,
                    f.lora.dora ? " --lora-dora" : "");
    tune_append(text, size, " --activation-checkpointing %s --optimizer %s", f.activation_checkpointing ? "full" : "none",
                optimizers[f.optimizer.kind]);
    if (f.optimizer.momentum > 0)
        tune_append(text, size, " --momentum %g", f.optimizer.momentum);
    if (f.optimizer.ema > 0)
        tune_append(text, size, " --ema %g", f.optimizer.ema);
    if (r->my->gpus > 1)
        tune_append(text, size, " --ranks %d --shard %s", r->my->gpus, r->my->shard);
    /* A recipe on another machine would take this from the GPU that is there. */
    tune_append(text, size, " --logits-chunk %d --max-length %d --batch-size %d", (int)(r->dev->logits_bytes >> 20), length, batch);
    return text;
}
