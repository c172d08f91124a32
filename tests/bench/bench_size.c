/* bench_size.c - what size costs: time and memory of a training step of smollm2-135m's shape over length, batch and depth,
 * one of them changed at a time. What grows faster than its arithmetic shows as falling model FLOP/s, or as rising KiB of
 * activations a token; what a step costs whatever its tokens are (gradients to zero, clipping, the update) lowers FLOP/s
 * where it has few of them.
 * Usage: bench_size [SECONDS a size (3), one step at least [SECONDS in all (300): what would begin later is left out]]. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "files/cjson.h"
#include "core/clock.h"
#include "core/error.h"
#include "files/file.h"
#include "machine/memory.h"
#include "losses/loss.h"
#include "models/model.h"
#include "models/weights.h"
#include "optimizers/optimizer.h"

struct size {
    const char *what; /* heading of a group */
    int T, B, layers;
};

static const struct size sizes[] = {
    {"reference", 512, 1, 30}, {"layers", 512, 1, 2}, {NULL, 512, 1, 4},    {NULL, 512, 1, 8},    {NULL, 512, 1, 16},
    {"length", 128, 1, 30},    {NULL, 256, 1, 30},    {NULL, 1024, 1, 30},  {NULL, 2048, 1, 30},  {NULL, 4096, 1, 30},
    {"batch", 512, 2, 30},     {NULL, 512, 4, 30},    {NULL, 512, 8, 30},
};

struct result {
    bool good;
    char why[256];
    int steps;
    double step_s; /* the fastest */
    int64_t tensors, anonymous, activations;
};

static int read_config(struct tune_model_config *c)
{
    char path[TUNE_PATH_MAX];
    if (tune_defaults_path(path, "models/smollm2-135m.json") < 0)
        return -1;
    cJSON *json = tune_cjson_read(path, 1 << 20);
    int status = json ? tune_model_config_parse(c, cJSON_GetObjectItemCaseSensitive(json, "config"), path) : -1;
    cJSON_Delete(json);
    return status;
}

struct trainer {
    struct tune_device *dev;
    struct tune_model *m;
    struct tune_loss *loss;
    struct tune_optimizer *opt;
    struct tune_record *sums;
    struct tune_batch batch;
};

static int draw(void *context, const struct tune_parameter *p, int64_t at, int64_t n, float *out)
{
    uint32_t *state = context;
    (void)p;
    (void)at;
    for (int64_t k = 0; k < n; k++) {
        *state = *state * 1664525u + 1013904223u;
        out[k] = ((float)(*state >> 8) / 16777216.f - .5f) * .1f;
    }
    return 0;
}

/* Small numbers of both signs: zeros would be faster than weights are. */
static int fill(struct tune_model *m)
{
    const struct tune_parameters *p = tune_model_parameters(m);
    uint32_t state = 1;
    struct tune_weights_source drawn = {draw, &state};
    for (int i = 0; i < p->count; i++)
        if (!tune_parameter_is_norm(&p->at[i]) && tune_model_fill(m, &p->at[i], &drawn) < 0)
            return -1;
    return 0;
}

static int set_up(struct trainer *t, const struct tune_model_config *c, const struct size *s)
{
    int64_t N = (int64_t)s->B * s->T;
    int32_t *ids = malloc((size_t)N * 4), *labels = malloc((size_t)N * 4), *lengths = malloc((size_t)s->B * 4);
    t->dev = tune_device_open("cpu", 0);
    if (!t->dev || !ids || !labels || !lengths || !(t->m = tune_model_new(c, t->dev, TUNE_F32)) ||
        tune_model_reserve(t->m, s->B, s->T, TUNE_FOR_TRAINING) < 0 || !(t->loss = tune_loss_new(t->m, true)) ||
        !(t->sums = tune_record_new(t->dev, 1)) || fill(t->m) < 0)
        return -1;
    t->opt =
        tune_optimizer_new(t->m, &(struct tune_optimizer_options){.kind = TUNE_ADAMW, .beta1 = .9, .beta2 = .999, .eps = 1e-8});
    for (int64_t i = 0; i < N; i++) {
        ids[i] = (int32_t)(i * 7919 % c->vocabulary);
        labels[i] = (int32_t)((i + 1) * 7919 % c->vocabulary);
    }
    for (int b = 0; b < s->B; b++)
        lengths[b] = s->T;
    t->batch = (struct tune_batch){
        .B = s->B, .T = s->T, .ids = ids, .labels = labels, .lengths = lengths, .tokens = N, .label_count = N};
    return t->opt ? 0 : -1;
}

static int step(struct trainer *t)
{
    struct tune_tensor *hidden, *dhidden;
    const struct tune_done_step *steps;
    return tune_model_zero_grad(t->m, t->sums) < 0 || tune_model_forward(t->m, &t->batch, &hidden) < 0 ||
                   tune_loss_forward_backward(t->loss, hidden, &t->batch, t->sums, &dhidden) < 0 ||
                   tune_model_backward(t->m, &t->batch, dhidden) < 0 || tune_optimizer_scale(t->opt, 1, t->sums) < 0 ||
                   tune_optimizer_step(t->opt, 1e-5, t->sums) < 0 || tune_record_read(t->sums, &steps) < 0
               ? -1
               : 0;
}

static struct result measure(const struct tune_model_config *c, const struct size *s, double seconds)
{
    struct trainer t = {0};
    struct result r = {.step_s = 1e30};
    int status = set_up(&t, c, s);
    for (double begin = tune_clock_s(); status == 0 && (r.steps == 0 || tune_clock_s() - begin < seconds); r.steps++) {
        double from = tune_clock_s();
        status = step(&t);
        double took = tune_clock_s() - from;
        r.step_s = took < r.step_s ? took : r.step_s;
    }
    snprintf(r.why, sizeof r.why, "%.255s", status == 0 ? "" : tune_error_message());
    r.good = status == 0;
    r.anonymous = tune_memory_anonymous();
    r.tensors = t.dev ? t.dev->bytes_peak : 0;
    struct tune_model_bytes bytes;
    if (r.good && tune_model_bytes(&bytes, c, t.dev, TUNE_F32, NULL, s->B, s->T, TUNE_FOR_TRAINING) == 0)
        r.activations = bytes.activations;
    return r;
}

/* In a process of its own: its memory is its own, and is given back whole. */
static struct result measure_apart(const struct tune_model_config *c, const struct size *s, double seconds)
{
    struct result r = {.why = "the process died"};
    int ends[2];
    if (pipe(ends) < 0)
        return r;
    pid_t child = fork();
    if (child == 0) {
        r = measure(c, s, seconds);
        _exit(write(ends[1], &r, sizeof r) == sizeof r ? 0 : 1);
    }
    close(ends[1]);
    if (read(ends[0], &r, sizeof r) != sizeof r)
        r.good = false;
    close(ends[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return r;
}

int main(int argc, char **argv)
{
    struct tune_model_config config;
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 3, most = argc > 2 ? strtod(argv[2], NULL) : 300, begin = tune_clock_s();
    size_t count = sizeof sizes / sizeof *sizes;
    if (read_config(&config) < 0) {
        fprintf(stderr, "bench_size: %s\n", tune_error_message());
        return 1;
    }
    printf("size  %-9s %5s %5s %6s %9s %9s %9s %11s %11s %11s\n", "", "T", "B", "layers", "ms a step", "tokens/s", "GFLOP/s",
           "tensors MiB", "process MiB", "KiB a token");
    for (size_t i = 0; i < count; i++) {
        const struct size *s = &sizes[i];
        config.layers = s->layers;
        fprintf(stderr, "bench_size: %zu of %zu, %.0f s so far\r", i + 1, count, tune_clock_s() - begin);
        struct result r = {.why = "left out: the time is over"};
        if (tune_clock_s() - begin < most)
            r = measure_apart(&config, s, seconds);
        double tokens = (double)s->T * s->B, flops = tokens * tune_model_config_flops(&config, s->T);
        printf("size  %-9s %5d %5d %6d ", s->what ? s->what : "", s->T, s->B, s->layers);
        if (r.good)
            printf("%9.0f %9.1f %9.1f %11.1f %11.1f %11.1f\n", 1000 * r.step_s, tokens / r.step_s, flops / r.step_s / 1e9,
                   (double)r.tensors / (1 << 20), (double)r.anonymous / (1 << 20),
                   (double)r.activations / tokens / 1024);
        else
            printf("%s\n", r.why);
        fflush(stdout);
    }
    return 0;
}
