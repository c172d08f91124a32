/* get_memory.c - the memory plan of the run that the flags describe. */
#include <cjson/cJSON.h>
#include <string.h>

#include "files/cjson.h"
#include "comm/comm.h"
#include "files/file.h"
#include "core/try.h"
#include "datasets/dataset.h"
#include "devices/known_gpus.h"
#include "flags/find.h"
#include "flags/flags.h"
#include "flags/known.h"
#include "generators/prompts.h"
#include "losses/preference.h"
#include "adapters/adapter.h"
#include "tokenizers/auxiliary_files.h"
#include "profilers/memory_plan.h"
#include "tokenizers/tokenizer.h"

/* The cache that previews of the run will need. */
static int plan_samples(struct tune_memory_request *request, const struct tune_flags *flags)
{
    int context = request->config->max_positions;
    if (flags->preview.every == 0)
        return 0;
    struct tune_tokenizer *tok = tune_get_tokenizer(flags);
    struct tune_prompts *prompts = tok ? tune_get_preview_prompts(flags, tok) : NULL;
    if (prompts) {
        int64_t tokens = (int64_t)tune_prompts_longest(prompts) + flags->preview.tokens;
        request->preview_rows = tune_prompts_batch(prompts);
        request->preview_tokens = tokens < context ? (int)tokens : context;
    }
    tune_prompts_free(prompts);
    tune_tokenizer_free(tok);
    return prompts ? 0 : -1;
}

/* The caches of the answers of evaluations: of a prompt and an answer together, since prompts are parts of rows. */
static void plan_answers(struct tune_memory_request *request, const struct tune_flags *flags)
{
    int context = request->config->max_positions;
    int64_t tokens = (int64_t)flags->data.max_length + flags->eval.answer_tokens, rows = flags->eval.answers;
    if (!flags->eval.metrics)
        return;
    request->answer_rows = rows > 0 && rows < TUNE_EVAL_AT_ONCE ? (int)rows : TUNE_EVAL_AT_ONCE;
    request->answer_tokens = tokens < context ? (int)tokens : context;
    request->answer_caches = flags->eval.general ? 2 : 1;
}

/* Figures of the data set; without one, a guess. */
struct rows {
    int64_t rows, row_bytes;
    int sets;
};

/* Log-probabilities that a file of the reference will have (evaluators/get_reference.c); 0: there is none. With kto, each epoch has
 * mismatched answers of its own. */
static int64_t reference_answers(const struct tune_flags *flags, const struct tune_loader_options *o, int64_t rows)
{
    bool file = o->sequences > 0 && tune_preference_needs_reference(&flags->preference) && (flags->lora.r == 0 || flags->adapter);
    double planned = o->max_steps >= 0 ? (double)o->max_steps * o->batch_size * (double)tune_loader_micro_batches(o) : (double)rows * o->epochs;
    double answers = (double)rows * o->sequences + (tune_preference_needs_kl(&flags->preference) ? planned + (double)rows : 0);
    return !file ? 0 : answers < 1e15 ? (int64_t)answers : (int64_t)1e15;
}

/* folder: the model's; NULL: it is not here. check: compare it with what there is. */
static int make_plan(struct tune_memory_plan *plan, const struct tune_flags *flags, struct tune_device *dev, const char *folder,
                     const struct tune_model_config *config, const struct rows *rows, bool check)
{
    char path[TUNE_PATH_MAX];
    struct tune_memory_limit limits[TUNE_MEMORY_LIMITS];
    struct tune_adapter_config adapter;
    TRY(tune_get_lora_options(flags, &adapter));
    tune_get_logits_bytes(dev, flags);
    int sets = flags->loader.train_split < 1 ? rows->sets : 0;
    while (flags->eval.path && tune_path_listed(flags->eval.path, sets, path) == 1)
        sets++;
    for (int k = 0; flags->eval.general && tune_path_listed(flags->eval.general, k, path) == 1; k++)
        sets++;
    struct tune_model_adapted adapted = {&adapter.lora, flags->lora.r > 0 ? flags->base_dtype : TUNE_F32};
    struct tune_memory_request request = {
        .config = config,
        .activations = flags->dtype,
        .adapted = flags->lora.r > 0 ? &adapted : NULL,
        .use = tune_get_model_use(flags),
        .optimizer = flags->optimizer,
        .loader = tune_get_loader_options(flags),
        .rows = rows->rows,
        .row_bytes = rows->row_bytes,
        .evaluation_sets = sets,
        .log_every = flags->log.log_every,
        .profile = flags->profile,
        .files = folder && tune_flags_saves(flags) ? tune_auxiliary_bytes(folder) : 0,
        .saves_between = tune_flags_saves(flags) && (flags->checkpoint.save_every != 0 || flags->eval.every != 0),
        .resumes = flags->resume,
    };
    int place;
    request.shard = flags->shard;
    request.rank = flags->comm ? tune_comm_rank(flags->comm) : 0;
    request.ranks = flags->comm ? tune_comm_size(flags->comm) : flags->ranks;
    request.ranks_here = flags->comm ? tune_comm_local(flags->comm, &place) : 1;
    plan_answers(&request, flags);
    request.reference = reference_answers(flags, &request.loader, rows->rows);
    int status = folder ? plan_samples(&request, flags) : 0; /* without the tokenizer they are not known */
    if (status == 0)
        status = tune_memory_plan_make(plan, &request, dev);
    if (status == 0 && check)
        status = tune_memory_plan_check(plan, &request, dev, limits, tune_memory_limits(limits));
    tune_adapter_config_free(&adapter);
    return status;
}

int tune_get_memory_plan(struct tune_memory_plan *plan, const struct tune_flags *flags, struct tune_device *dev,
                         const struct tune_dataset *data)
{
    char folder[TUNE_PATH_MAX];
    struct tune_model_config config;
    const struct rows rows = {tune_dataset_rows(data), tune_dataset_row_bytes(data), tune_dataset_sets(data)};
    if (flags->plan_gpu)
        return tune_error_usage("`plan_gpu` %s: a run trains on the GPU that is here; leave it out, or add `plan_memory`", flags->plan_gpu);
    TRY(tune_get_model_config(flags, folder, &config));
    return make_plan(plan, flags, dev, folder, &config, &rows, true);
}

/* ---- --plan-memory ---- */

enum { GUESSED_ROWS = 4096 };

/* The config of a known model that is not on this machine. 0: the model is not known. */
static int known_config(const char *model, struct tune_model_config *config)
{
    struct tune_known_model known;
    char path[TUNE_PATH_MAX], name[96];
    int found = tune_known_model(model, &known);
    if (found <= 0)
        return found;
    snprintf(name, sizeof name, "models/%s.json", known.name);
    TRY(tune_defaults_path(path, name));
    cJSON *json = tune_cjson_read(path, (size_t)1 << 20);
    TRY(json ? 0 : -1);
    int code = tune_model_config_parse(config, cJSON_GetObjectItemCaseSensitive(json, "config"), path);
    cJSON_Delete(json);
    return code < 0 ? -1 : 1;
}

static const struct rows guess = {GUESSED_ROWS, 0, 1};

int tune_get_model_shape(const struct tune_flags *flags, char *folder, struct tune_model_config *config)
{
    bool here = flags->model && tune_model_find(flags->model, folder) == 0;
    int known = flags->model && !here ? known_config(flags->model, config) : 0;
    TRY(known);
    if (!known)
        TRY(tune_get_model_config(flags, folder, config));
    return known;
}

int tune_get_memory_parts(struct tune_memory_plan *plan, const struct tune_flags *flags, struct tune_device *dev,
                          const struct tune_model_config *config)
{
    return make_plan(plan, flags, dev, NULL, config, &guess, false);
}

/* The device to plan for. *gpu: that of --plan-gpu; NULL: the device that is here. */
static struct tune_device *planned_device(const struct tune_flags *flags, const struct tune_known_gpu **gpu)
{
    char old[128];
    *gpu = NULL;
    if (!flags->plan_gpu || strncmp(flags->device, "cuda", 4))
        return tune_device_plan(flags->device, flags->threads, 0);
    if (!(*gpu = tune_known_gpu(flags->plan_gpu))) {
        tune_error_usage("`plan_gpu` %s: no GPU of that name is known; build/fit --gpu list prints the names", flags->plan_gpu);
        return NULL;
    }
    if (*tune_known_gpu_old(*gpu, old, sizeof old)) {
        tune_error_cannot("%s runs no training: %s", (*gpu)->name, old);
        return NULL;
    }
    struct tune_device *dev = tune_device_plan(flags->device, flags->threads, tune_known_gpu_bytes(*gpu));
    if (dev)
        dev->name = (*gpu)->name;
    return dev;
}

static int plan_memory(const struct tune_flags *flags, FILE *out)
{
    char folder[TUNE_PATH_MAX], text[1024];
    const struct tune_known_gpu *gpu;
    struct tune_model_config config;
    struct tune_memory_plan plan;
    int known = tune_get_model_shape(flags, folder, &config);
    TRY(known);
    struct tune_device *dev = planned_device(flags, &gpu);
    long long logits = dev && flags->logits_chunk == 0 ? dev->logits_bytes >> 20 : 0;
    int code = dev ? make_plan(&plan, flags, dev, known ? NULL : folder, &config, &guess, true) : -1;
    tune_device_close(dev);
    TRY(code);
    fprintf(out, "memory: %s\n", tune_memory_plan_text(&plan, text, sizeof text));
    if (flags->plan_gpu && !gpu)
        fprintf(out, "# --plan-gpu is for --device cuda, and counts for nothing here\n");
    if (gpu)
        fprintf(out, "# this was compared with %s, of %.1f GiB, which need not be here; %lld MiB of it are kept for its driver, kernels "
                "and graphs (an estimate)\n", gpu->name, gpu->gib, (long long)(TUNE_CUDA_CONTEXT >> 20));
    if (plan.memory.shared || plan.memory.total > 0)
        return 0;
    fprintf(out, "# no GPU can be opened here, so this was not compared with its memory; %lld MiB of it are kept for its driver, "
            "kernels and graphs (an estimate)\n", (long long)(TUNE_CUDA_CONTEXT >> 20));
    if (logits > 0)
        fprintf(out, "# up to %lld MiB of logits at a time are planned, the most of any GPU; one with less than %lld GiB takes less. "
                "--logits-chunk sets the size\n", logits, logits * 32 / 1024);
    return 0;
}

const struct tune_service tune_plan_memory = {plan_memory};
