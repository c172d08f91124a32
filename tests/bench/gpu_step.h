/* gpu_step.h - a training step of a known model's shape for the benches of GPUs, in C and C++. No
 * file is read but the shape: weights are drawn on the device.
 *
 *     struct gpu_step s;
 *     if (gpu_step_new(&s, dev, &gpu_cases[0]) < 0 || gpu_step_run(&s) < 0) ...
 *     gpu_step_free(&s); */
#ifndef TUNE_BENCH_GPU_STEP_H
#define TUNE_BENCH_GPU_STEP_H

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "devices/ops.h"
#include "files/file.h"
#include "losses/loss.h"
#include "models/lora.h"
#include "models/model.h"
#include "optimizers/optimizer.h"
#ifdef __cplusplus
extern "C" {
#endif
#include "files/cjson.h" /* not a public header: it is for C alone */
#ifdef __cplusplus
}
#endif

struct gpu_case {
    const char *name, *model;
    bool lora;            /* adapters of rank 16 on all linear layers of a frozen bfloat16 base */
    bool tiny;            /* one narrow layer of that kind, for trying the programs out */
    int B, T;
    int text;             /* positions of each text in a pack */
    int layers;           /* 0: the model's own */
};

/* Both compute in bfloat16. Trained weights, gradients and moments are float32. */
static const struct gpu_case gpu_cases[] = {
    {"llama3-8b-lora", "llama3-8b", true, false, 4, 2048, 512, 0},
    {"llama3-8b-lora-2048", "llama3-8b", true, false, 4, 2048, 2048, 0},
    {"smollm2-135m-full", "smollm2-135m", false, false, 8, 2048, 512, 0},
    {"smollm2-135m-full-2048", "smollm2-135m", false, false, 8, 2048, 2048, 0},
    {"tiny-lora", "llama3-8b", true, true, 1, 96, 48, 0},
    {"tiny-full", "smollm2-135m", false, true, 1, 96, 48, 0},
};

/* Bytes of logits that exist at a time, to try sizes; 0: as the device has it. */
static int64_t gpu_step_logits;

struct gpu_step {
    struct tune_device *dev;
    struct tune_model_config config;
    struct tune_model *m;
    struct tune_loss *loss;
    struct tune_optimizer *opt;
    struct tune_record *record;
    struct tune_batch batch;
    int text;         /* the case's */
    int32_t *numbers; /* ids, labels, positions, starts, lengths */
};

static inline const struct gpu_case *gpu_case_named(const char *name)
{
    for (size_t i = 0; i < sizeof gpu_cases / sizeof *gpu_cases; i++)
        if (strcmp(gpu_cases[i].name, name) == 0)
            return &gpu_cases[i];
    return NULL;
}

static inline int gpu_step_config(struct tune_model_config *c, const struct gpu_case *k)
{
    char path[TUNE_PATH_MAX], name[128];
    snprintf(name, sizeof name, "models/%s.json", k->model);
    if (tune_defaults_path(path, name) < 0)
        return -1;
    cJSON *json = tune_cjson_read(path, 1 << 20);
    int status = json ? tune_model_config_parse(
                            c, cJSON_GetObjectItemCaseSensitive(json, "config"), path)
                      : -1;
    cJSON_Delete(json);
    if (k->layers > 0)
        c->layers = k->layers;
    if (k->tiny) {
        c->layers = 1;
        c->vocabulary = 128;
        c->hidden = 64;
        c->ffn = 96;
        c->heads = 2;
        c->kv_heads = 1;
        c->head_dim = c->rotary[0].dims = 32;
    }
    return status;
}

/* Draw one matrix: noise of float32, a tile of rows at a time, rounded to the weight's dtype. */
static inline int gpu_step_draw(struct gpu_step *s, const struct tune_parameter *p, int number,
                                tune_address step, tune_address tile, int64_t tile_floats,
                                tune_address ones)
{
    if (tune_unit_take(s->m, p->unit) < 0)
        return -1;
    struct tune_tensor w = tune_model_tensor(s->m, p, TUNE_WEIGHT);
    struct tune_tensor g = tune_tensor_1d(ones, TUNE_F32, p->shape[1]);
    int64_t most = tile_floats / p->shape[1], bytes = tune_dtype_bits(p->storage) / 8;
    int status = 0;
    for (int64_t row = 0; row < p->shape[0] && status == 0; row += most) {
        int64_t n = p->shape[0] - row < most ? p->shape[0] - row : most;
        struct tune_tensor x = tune_tensor_2d(tile, TUNE_F32, n, p->shape[1]);
        struct tune_tensor y = tune_tensor_2d(
            tune_address_plus(w.data, row * p->shape[1] * bytes), p->storage, n, p->shape[1]);
        struct tune_dropout drop = {(uint64_t)number, row, 0, 0, 0};
        status = tune_zero(s->dev, &x);
        if (status == 0)
            status = tune_noise(s->dev, &x, step, drop, 0.03f);
        if (status == 0)
            status = tune_scale_columns(s->dev, &y, &x, &g, 0, 1, 0);
    }
    return tune_unit_done(s->m, p->unit, status);
}

/* Draw the base's weights on the device. Norms are 1, adapters as tune_lora_add made them. */
static inline int gpu_step_fill(struct gpu_step *s)
{
    const struct tune_parameters *p = tune_model_parameters(s->m);
    const int64_t tile_floats = 1 << 24;
    int64_t widest = 0;
    int status = 0;
    for (int i = 0; i < p->base; i++)
        if (p->at[i].ndim == 2 && p->at[i].shape[1] > widest)
            widest = p->at[i].shape[1];
    float *one = (float *)malloc((size_t)widest * 4);
    for (int64_t i = 0; one && i < widest; i++)
        one[i] = 1;
    tune_address ones = tune_device_alloc(s->dev, widest * 4, "a row of ones");
    tune_address tile = tune_device_alloc(s->dev, tile_floats * 4, "a tile of weights");
    if (!one || !ones.at || !tile.at || tune_device_upload(s->dev, ones, one, widest * 4) < 0 ||
        tune_record_begin(s->record) < 0)
        status = -1;
    tune_address step = {0};
    if (status == 0)
        step = tune_record_step(s->record);
    for (int i = 0; i < p->base && status == 0; i++)
        if (p->at[i].ndim == 2)
            status = gpu_step_draw(s, &p->at[i], i, step, tile, tile_floats, ones);
    tune_device_free(s->dev, tile, tile_floats * 4);
    tune_device_free(s->dev, ones, widest * 4);
    free(one);
    return status;
}

/* Packs of texts of one length; each position is trained but the last of its text. */
static inline int gpu_step_batch(struct gpu_step *s, const struct gpu_case *k)
{
    int64_t N = (int64_t)k->B * k->T, labels = 0;
    int32_t *ids = s->numbers = (int32_t *)calloc((size_t)(4 * N + k->B), 4);
    if (!ids)
        return -1;
    int32_t *label = ids + N, *position = label + N, *start = position + N, *length = start + N;
    for (int64_t i = 0; i < N; i++) {
        int32_t t = (int32_t)(i % k->T), begin = t / k->text * k->text;
        bool last = t + 1 == k->T || (t + 1) % k->text == 0;
        ids[i] = (int32_t)(i * 7919 % s->config.vocabulary);
        label[i] = last ? TUNE_NO_LABEL : (int32_t)((i + 1) * 7919 % s->config.vocabulary);
        labels += !last;
        position[i] = t - begin;
        start[i] = begin;
    }
    for (int b = 0; b < k->B; b++)
        length[b] = k->T;
    s->batch.B = k->B;
    s->batch.T = k->T;
    s->batch.ids = ids;
    s->batch.labels = label;
    s->batch.positions = position;
    s->batch.starts = start;
    s->batch.lengths = length;
    s->batch.tokens = N;
    s->batch.label_count = labels;
    s->batch.row_count = N / k->text;
    return 0;
}

static inline void gpu_step_free(struct gpu_step *s)
{
    tune_optimizer_free(s->opt);
    tune_record_free(s->record);
    tune_loss_free(s->loss);
    tune_model_free(s->m);
    free(s->numbers);
    memset(s, 0, sizeof *s);
}

/* gpu_step_new - the model, its loss and optimizer (AdamW) on dev. -1 with an error. */
static inline int gpu_step_new(struct gpu_step *s, struct tune_device *dev,
                               const struct gpu_case *k)
{
    struct tune_lora_options lora;
    struct tune_optimizer_options adamw;
    memset(s, 0, sizeof *s);
    memset(&lora, 0, sizeof lora);
    memset(&adamw, 0, sizeof adamw);
    lora.r = 16;
    lora.alpha = 32;
    lora.targets = "all-linear";
    adamw.kind = TUNE_ADAMW;
    adamw.beta1 = 0.9;
    adamw.beta2 = 0.999;
    adamw.eps = 1e-8;
    s->dev = dev;
    s->text = k->text;
    if (gpu_step_logits > 0)
        dev->logits_bytes = gpu_step_logits;
    if (gpu_step_config(&s->config, k) < 0 || gpu_step_batch(s, k) < 0)
        return -1;
    s->m = k->lora ? tune_model_new_frozen(&s->config, dev, TUNE_BF16, TUNE_BF16)
                   : tune_model_new(&s->config, dev, TUNE_BF16);
    if (!s->m || (k->lora && tune_lora_add(s->m, &lora, 42) < 0) ||
        tune_model_reserve(s->m, k->B, k->T, TUNE_FOR_TRAINING) < 0 ||
        !(s->loss = tune_loss_new(s->m, true)) || !(s->opt = tune_optimizer_new(s->m, &adamw)) ||
        !(s->record = tune_record_new(dev, 8)) || gpu_step_fill(s) < 0)
        return -1;
    return 0;
}

/* gpu_step_run - queue one step. The caller reads the record. */
static inline int gpu_step_run(struct gpu_step *s)
{
    struct tune_tensor *hidden, *dhidden;
    return tune_model_zero_grad(s->m, s->record) < 0 ||
                   tune_model_forward(s->m, &s->batch, &hidden) < 0 ||
                   tune_loss_forward_backward(s->loss, hidden, &s->batch, s->record, &dhidden) <
                       0 ||
                   tune_model_backward(s->m, &s->batch, dhidden) < 0 ||
                   tune_optimizer_scale(s->opt, 1, s->record) < 0 ||
                   tune_optimizer_step(s->opt, 1e-4, s->record) < 0
               ? -1
               : 0;
}

#endif
