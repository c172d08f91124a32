/* generate_rates.c - how fast a model folder generates, beside what memory and products reach.
 *
 *     generate_rates FOLDER [ROUNDS] [TOKENS] [CONTEXT]
 *
 * Two models stand in memory, float32 and bfloat16. Rounds take turns between all measurements, and
 * the best of each counts: a plain sum over memory; TOKENS tokens (default 16) behind a prompt of
 * CONTEXT tokens (default 64), of one row and of eight; a prompt of 512 tokens; the products of
 * that prompt alone. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "../bench/plain_sum.h"
#include "devices/ops.h"
#include "tune.h"

enum { KINDS = 2, SIZES = 2, PROMPT = 512, ROWS = 8 };
static const enum tune_dtype storage[KINDS] = {TUNE_F32, TUNE_BF16};
static const char *const names[KINDS] = {"float32", "bfloat16"};
static const int sizes[SIZES] = {1, ROWS};

static void must(int status)
{
    if (status >= 0)
        return;
    fprintf(stderr, "generate_rates: %s\n", tune_error_message());
    exit(1);
}

static void keep(double *best, double took)
{
    *best = *best == 0 || took < *best ? took : *best;
}

/* Seconds of one token of each row, behind a prompt. The token is chosen greedily each time. */
static double decode(struct tune_model *m, struct tune_cache *c, int rows, int context, int tokens)
{
    static int32_t ids[ROWS * PROMPT];
    struct tune_sampling_options greedy = {.top_p = 1, .repetition_penalty = 1};
    struct tune_token_sampler *s = tune_token_sampler_new(&greedy, 0, (int)tune_model_vocabulary(m), rows);
    int32_t next[ROWS];
    float *logits;
    must(s ? 0 : -1);
    for (int i = 0; i < rows * context; i++)
        ids[i] = i * 31 % 1000;
    must(tune_cache_begin(c, rows, NULL));
    must(tune_cache_forward(c, ids, context));
    double begin = tune_clock_s();
    for (int t = 0; t < tokens; t++) {
        must(tune_cache_logits(c, &logits));
        for (int b = 0; b < rows; b++)
            must(tune_token_sampler_next(s, b, t, logits + b * tune_model_vocabulary(m), &next[b], NULL));
        must(tune_cache_forward(c, next, 1));
    }
    double took = (tune_clock_s() - begin) / tokens;
    tune_token_sampler_free(s);
    return took;
}

static double prompt(struct tune_model *m, struct tune_cache *c)
{
    static int32_t ids[PROMPT];
    (void)m;
    for (int i = 0; i < PROMPT; i++)
        ids[i] = i * 31 % 1000;
    must(tune_cache_begin(c, 1, NULL));
    double begin = tune_clock_s();
    must(tune_cache_forward(c, ids, PROMPT));
    return tune_clock_s() - begin;
}

/* Seconds of the layers' products for such a prompt, alone; *flops: theirs. */
static double products(struct tune_model *m, struct tune_tensor *x, struct tune_tensor *y, double *flops)
{
    const struct tune_parameters *p = tune_model_parameters(m);
    double begin = tune_clock_s();
    *flops = 0;
    for (int i = 0; i < p->count; i++) {
        if (p->at[i].ndim != 2 || p->at[i].role == TUNE_EMBEDDING || p->at[i].role == TUNE_OUTPUT)
            continue;
        must(tune_unit_take(m, p->at[i].unit));
        struct tune_tensor w = tune_model_tensor(m, &p->at[i], TUNE_WEIGHT);
        struct tune_tensor in = tune_tensor_2d(x->data, TUNE_F32, PROMPT, w.shape[1]);
        struct tune_tensor out = tune_tensor_2d(y->data, TUNE_F32, PROMPT, w.shape[0]);
        must(tune_unit_done(m, p->at[i].unit, tune_gemm(tune_model_device(m), &out, &in, false, &w, true, 1, 0, TUNE_F32)));
        *flops += 2.0 * PROMPT * (double)p->at[i].count;
    }
    return tune_clock_s() - begin;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 5, tokens = argc > 3 ? atoi(argv[3]) : 16;
    int context = argc > 4 ? atoi(argv[4]) : 64;
    struct tune_model *m[KINDS];
    struct tune_cache *c[KINDS];
    double plain = 0, best[KINDS][SIZES] = {{0}}, prompts[KINDS] = {0}, alone[KINDS] = {0}, flops = 0;
    int64_t n = (int64_t)1 << 27;
    if (argc < 2 || context > PROMPT)
        return 2;
    struct tune_device *dev = tune_device_open("cpu", 0);
    must(dev ? 0 : -1);
    const float *memory = calloc((size_t)n, sizeof *memory);
    for (int64_t i = 0; memory && i < n; i += 1024)
        ((float *)memory)[i] = 1; /* pages of its own */
    for (int k = 0; k < KINDS; k++) {
        m[k] = tune_model_load_frozen(argv[1], dev, TUNE_F32, storage[k]);
        must(m[k] && memory ? tune_model_reserve(m[k], 1, PROMPT, 0) : -1);
        c[k] = tune_cache_new(m[k], ROWS, context + tokens > PROMPT ? context + tokens : PROMPT);
        must(c[k] ? 0 : -1);
    }
    const struct tune_model_config *g = tune_model_config(m[0]);
    int64_t width = 2 * (int64_t)(g->ffn > g->hidden ? g->ffn : g->hidden);
    struct tune_tensor x = tune_tensor_2d(tune_device_alloc(dev, PROMPT * width * 4, "x"), TUNE_F32, PROMPT, width);
    struct tune_tensor y = tune_tensor_2d(tune_device_alloc(dev, PROMPT * width * 4, "y"), TUNE_F32, PROMPT, width);
    must(x.data.at && y.data.at ? 0 : -1);
    for (int round = 0; round < rounds; round++)
        for (int k = 0; k < KINDS; k++) {
            for (int b = 0; b < SIZES; b++) {
                keep(&plain, plain_sum(dev, memory, n));
                keep(&best[k][b], decode(m[k], c[k], sizes[b], context, tokens));
            }
            keep(&prompts[k], prompt(m[k], c[k]));
            keep(&alone[k], products(m[k], &x, &y, &flops));
        }
    double bandwidth = (double)n * 4 / plain;
    printf("# %s; a plain sum reads %.1f GB/s\n", dev->description, bandwidth / 1e9);
    for (int k = 0; k < KINDS; k++) {
        double bytes = (double)tune_parameters_total(tune_model_parameters(m[k])) * (k ? 2 : 4);
        double cache = (double)g->layers * 2 * g->kv_heads * g->head_dim * 4;
        for (int b = 0; b < SIZES; b++)
            printf("%-9s %d row%s %8.1f tokens/s  %5.3f of the bandwidth  %.2f of 1 row  %.2f of float32\n", names[k], sizes[b],
                   sizes[b] > 1 ? "s" : " ", sizes[b] / best[k][b],
                   (bytes + cache * sizes[b] * (context + tokens / 2.0)) / best[k][b] / bandwidth,
                   sizes[b] * best[k][0] / best[k][b], best[0][b] / best[k][b]);
        printf("%-9s prompt %7.1f tokens/s  %5.3f of its products alone (%.1f GFLOP/s)\n", names[k], PROMPT / prompts[k],
               alone[k] / prompts[k], flops / alone[k] / 1e9);
    }
    return 0;
}
