/* checkpoint.c - writing a checkpoint folder beside its name, then renaming it there. */
#include "checkpoints/checkpoint.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cjson.h"
#include "core/file.h"
#include "core/safetensors.h"
#include "core/try.h"
#include "models/weights.h"

struct tune_checkpoint {
    char run[TUNE_PATH_MAX], source[TUNE_PATH_MAX];
    enum tune_dtype save_dtype;
    int64_t saved_step; /* -1: none yet */
};

/* What travels with the weights; those that the source lacks are left out. */
static const char *const companions[] = {"generation_config.json", "tokenizer.json",      "tokenizer_config.json",
                                         "special_tokens_map.json", "added_tokens.json",  "vocab.json",
                                         "merges.txt",              "tokenizer.model",    "chat_template.jinja"};
enum { COMPANIONS = sizeof companions / sizeof *companions };

/* What would end a save, found before the run: a file that cannot be read, a path too long. */
static int can_save(const struct tune_checkpoint *c)
{
    char path[TUNE_PATH_MAX];
    struct tune_mapping file;
    for (size_t i = 0; i < COMPANIONS; i++) {
        TRY(tune_path(path, "%s/%s", c->source, companions[i]));
        if (tune_file_exists(path)) {
            TRY(tune_file_map(&file, path));
            tune_file_unmap(&file);
        }
    }
    return tune_path(path, "%s/checkpoint-%" PRId64 ".tmp-%d/state/optimizer.safetensors.tmp-%d", c->run, INT64_MAX, INT32_MAX,
                     INT32_MAX);
}

struct tune_checkpoint *tune_checkpoint_new(const char *run_folder, const char *source, enum tune_dtype save_dtype)
{
    struct tune_checkpoint *c = calloc(1, sizeof *c);
    if (!c) {
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for checkpoints");
        return NULL;
    }
    c->save_dtype = save_dtype;
    c->saved_step = -1;
    if (tune_path(c->run, "%s", run_folder) < 0 || tune_path(c->source, "%s", source) < 0 || can_save(c) < 0) {
        free(c);
        return NULL;
    }
    return c;
}

void tune_checkpoint_free(struct tune_checkpoint *c)
{
    free(c);
}

/* config.json as it was; only the dtype is the saved one's where that was chosen. */
static int write_config(const char *folder, const char *source, enum tune_dtype save_dtype)
{
    static const char *const keys[] = {"dtype", "torch_dtype"};
    char from[TUNE_PATH_MAX], to[TUNE_PATH_MAX];
    TRY(tune_path(from, "%s/config.json", source));
    TRY(tune_path(to, "%s/config.json", folder));
    if (save_dtype == TUNE_DTYPES)
        return tune_file_copy(to, from);
    cJSON *json = tune_cjson_read(from, (size_t)4 << 20);
    if (!json)
        return -1;
    const char *name = save_dtype == TUNE_F32 ? "float32" : save_dtype == TUNE_BF16 ? "bfloat16" : "float16";
    bool found = false, good = true;
    for (int i = 0; i < 2; i++)
        if (cJSON_GetObjectItemCaseSensitive(json, keys[i])) {
            found = true;
            good = good && cJSON_ReplaceItemInObjectCaseSensitive(json, keys[i], cJSON_CreateString(name));
        }
    if (!found)
        good = cJSON_AddStringToObject(json, "dtype", name);
    int status = tune_cjson_write(folder, "config.json", json, good);
    cJSON_Delete(json);
    return status;
}

static int copy_companions(const char *folder, const char *source)
{
    for (size_t i = 0; i < COMPANIONS; i++) {
        char from[TUNE_PATH_MAX], to[TUNE_PATH_MAX];
        TRY(tune_path(from, "%s/%s", source, companions[i]));
        TRY(tune_path(to, "%s/%s", folder, companions[i]));
        if (tune_file_exists(from))
            TRY(tune_file_copy(to, from));
    }
    return 0;
}

static int read_weight(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    struct tune_model *m = context;
    struct tune_device *dev = tune_model_device(m);
    TRY(dev->kernels->download(dev, out, tune_model_weight(m, p) + at, count * 4));
    return dev->kernels->sync(dev);
}

int tune_checkpoint_write_model(struct tune_model *m, const char *folder, const char *source, enum tune_dtype save_dtype)
{
    struct tune_weights_source weights = {read_weight, m};
    TRY(tune_file_make_folder(folder));
    TRY(write_config(folder, source, save_dtype));
    TRY(copy_companions(folder, source));
    return tune_weights_write(folder, tune_model_parameters(m), save_dtype, 0, &weights);
}

/* Tensors of one F32 file: for each parameter (trainable ones where moments are meant), under a prefix. */
struct tensor_list {
    struct tune_model *m;
    const char *prefix;
    float *base; /* of a moment; NULL: the weights */
};

static int declare(struct tune_safetensors_writer *f, const struct tensor_list *l)
{
    const struct tune_parameters *p = tune_model_parameters(l->m);
    for (int i = 0; i < p->count; i++) {
        char name[128];
        snprintf(name, sizeof name, "%s%s", l->prefix, p->at[i].name);
        if (!l->base || p->at[i].gradient >= 0)
            TRY(tune_safetensors_writer_declare(f, name, TUNE_F32, p->at[i].ndim, p->at[i].shape));
    }
    return 0;
}

static int write_values(struct tune_safetensors_writer *f, const struct tensor_list *l, float *room, int64_t piece)
{
    const struct tune_parameters *p = tune_model_parameters(l->m);
    struct tune_device *dev = tune_model_device(l->m);
    for (int i = 0; i < p->count; i++) {
        if (l->base && p->at[i].gradient < 0)
            continue;
        const float *from = l->base ? l->base + p->at[i].gradient : tune_model_weight(l->m, &p->at[i]);
        for (int64_t at = 0; at < p->at[i].count; at += piece) {
            int64_t n = p->at[i].count - at < piece ? p->at[i].count - at : piece;
            TRY(dev->kernels->download(dev, room, from + at, n * 4));
            TRY(dev->kernels->sync(dev));
            TRY(tune_safetensors_writer_write(f, room, n * 4));
        }
    }
    return 0;
}

static int write_f32(const char *path, const struct tensor_list *lists, int count, int64_t steps)
{
    enum { PIECE = 1 << 20 };
    char text[32];
    float *room = malloc(PIECE * sizeof *room);
    struct tune_safetensors_writer *f = tune_safetensors_writer_new(path);
    int status = room && f ? 0 : -1;
    if (!room)
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory to write %s", path);
    snprintf(text, sizeof text, "%" PRId64, steps);
    if (status == 0)
        status = tune_safetensors_writer_metadata(f, "steps", text);
    for (int i = 0; i < count && status == 0; i++)
        status = declare(f, &lists[i]);
    for (int i = 0; i < count && status == 0; i++)
        status = write_values(f, &lists[i], room, PIECE);
    if (status == 0)
        status = tune_safetensors_writer_finish(f);
    tune_safetensors_writer_free(f);
    free(room);
    return status;
}

static int write_progress(const char *folder, const struct tune_progress *at)
{
    cJSON *json = cJSON_CreateObject();
    bool good = tune_cjson_put_whole(json, "step", at->step) &&
                tune_cjson_put_whole(json, "planned_steps", at->planned_steps) &&
                tune_cjson_put_whole(json, "rows", at->rows) && tune_cjson_put_whole(json, "tokens", at->tokens) &&
                tune_cjson_put_whole(json, "labels", at->labels) &&
                tune_cjson_put_whole(json, "padded_tokens", at->padded_tokens) &&
                tune_cjson_put_number(json, "epoch", at->epoch);
    if (at->eval_step > 0)
        good = good && tune_cjson_put_whole(json, "eval_step", at->eval_step) &&
               tune_cjson_put_number(json, "eval_loss", at->eval_loss) &&
               tune_cjson_put_number(json, "best_loss", at->best_loss);
    int status = tune_cjson_write(folder, "progress.json", json, good);
    cJSON_Delete(json);
    return status;
}

/* Whether some weight is saved in less than it is trained in. */
static bool narrower(struct tune_model *m, enum tune_dtype save_dtype)
{
    const struct tune_parameters *p = tune_model_parameters(m);
    for (int i = 0; i < p->count; i++)
        if ((save_dtype == TUNE_DTYPES ? p->at[i].read_dtype : save_dtype) != TUNE_F32)
            return true;
    return false;
}

static int write_state(struct tune_checkpoint *c, const char *folder, struct tune_model *m, struct tune_optimizer *opt,
                       const struct tune_progress *at)
{
    char state[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    struct tensor_list moments[2] = {{m, "m.", opt ? tune_optimizer_moment(opt, 0) : NULL},
                                     {m, "v.", opt ? tune_optimizer_moment(opt, 1) : NULL}};
    struct tensor_list weights = {m, "", NULL};
    TRY(tune_path(state, "%s/state", folder));
    TRY(tune_file_make_folder(state));
    TRY(write_progress(state, at));
    TRY(tune_path(path, "%s/optimizer.safetensors", state));
    if (opt)
        TRY(write_f32(path, moments, (moments[0].base != NULL) + (moments[1].base != NULL), tune_optimizer_steps(opt)));
    TRY(tune_path(path, "%s/weights.safetensors", state));
    return narrower(m, c->save_dtype) ? write_f32(path, &weights, 1, at->step) : 0;
}

static int link_names(struct tune_checkpoint *c, const struct tune_progress *at)
{
    char name[64], path[TUNE_PATH_MAX];
    snprintf(name, sizeof name, "checkpoint-%" PRId64, at->step);
    TRY(tune_path(path, "%s/checkpoint-best", c->run));
    if (at->best)
        TRY(tune_file_link(path, name));
    TRY(tune_path(path, "%s/checkpoint-final", c->run));
    return at->finished ? tune_file_link(path, name) : 0;
}

int tune_checkpoint_save(struct tune_checkpoint *c, struct tune_model *m, struct tune_optimizer *opt,
                         const struct tune_progress *at)
{
    char folder[TUNE_PATH_MAX], beside[TUNE_PATH_MAX];
    if (at->step == 0)
        return 0;
    TRY(tune_path(folder, "%s/checkpoint-%" PRId64, c->run, at->step));
    if (at->step == c->saved_step) {
        TRY(tune_path(beside, "%s/state", folder));
        TRY(write_progress(beside, at));
        return link_names(c, at);
    }
    TRY(tune_path(beside, "%s.tmp-%ld", folder, (long)getpid()));
    int status = tune_checkpoint_write_model(m, beside, c->source, c->save_dtype);
    if (status == 0)
        status = write_state(c, beside, m, opt, at);
    if (status == 0)
        status = tune_file_sync_folder(beside); /* state/ is in it before it gets its name */
    if (status == 0 && rename(beside, folder) < 0) {
        tune_error_set("cannot rename %s to %s: %s", beside, folder, strerror(errno));
        status = -1;
    }
    if (status < 0) {
        struct tune_error why;
        tune_error_save(&why);
        tune_file_remove_folder(beside);
        tune_error_restore(&why);
        return -1;
    }
    TRY(tune_file_sync_folder(c->run));
    c->saved_step = at->step;
    return link_names(c, at);
}
