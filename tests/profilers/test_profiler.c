/* test_profiler.c - what is counted is what ran: calls, FLOPs and phases by hand, seconds that add up, the same bits as
 * without a profiler, a trace that is whole. */
#include "values.h"
#include "fake_nvml.h"
#include "far/far.h"

#include <cjson/cJSON.h>
#include <sys/stat.h>

#include "devices/ops.h"
#include "files/cjson.h"
#include "core/clock.h"
#include "machine/memory.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "losses/loss.h"
#include "optimizers/optimizer.h"
#include "profilers/profiler.h"
#include "profilers/sampler.h"

enum { ROWS = 12, LENGTH = 16, LAYERS = 3, BATCH = 2, MICROS = 3 };

static int get(void *context, int64_t row, struct tune_example *x)
{
    (void)context;
    if (tune_example_reserve(x, LENGTH) < 0)
        return -1;
    for (int i = 0; i < LENGTH; i++) {
        x->ids[i] = (int32_t)((row * 31 + i * 7) % 61);
        x->trained[i] = 1;
    }
    x->count = LENGTH;
    return 0;
}

struct trainer {
    struct tune_device *dev;
    struct tune_model *m;
    struct tune_dataset *data;
    struct tune_loader *load;
    struct tune_loss *loss;
    struct tune_optimizer *opt;
    struct tune_record *sums;
    struct tune_progress at;
};

static void setup(struct trainer *t, int threads, bool checkpointing, int64_t max_steps)
{
    struct tune_model_config c = {.family = "llama",
                                  .hidden = 24,
                                  .ffn = 40,
                                  .layers = LAYERS,
                                  .heads = 4,
                                  .kv_heads = 2,
                                  .head_dim = 6,
                                  .vocabulary = 61,
                                  .max_positions = 128,
                                  .norm_eps = 1e-5f,
                                  .rotary = {{.dims = 6, .theta = 10000}},
                                  .attention_scale = .4f,
                                  .embedding_multiplier = 1,
                                  .residual_multiplier = 1,
                                  .logits_scaling = 1,
                                  .qkv_bias = true};
    memset(t, 0, sizeof *t);
    t->dev = test_device(threads);
    assert_got(t->dev);
    t->m = tune_model_new(&c, t->dev, TUNE_F32);
    assert_got(t->m);
    const struct tune_parameters *p = tune_model_parameters(t->m);
    for (int i = 0; i < p->count; i++) { /* weights of some size, so that steps differ */
        float *w = values(t->m, &p->at[i], TUNE_WEIGHT);
        for (int64_t k = 0; k < p->at[i].count && !tune_parameter_is_norm(&p->at[i]); k++)
            w[k] = .3f * sinf((float)(k * 7 + i));
        set_values(t->m, &p->at[i], TUNE_WEIGHT, w);
        free(w);
    }
    assert_ok(tune_model_reserve(t->m, BATCH, LENGTH, TUNE_FOR_TRAINING | (checkpointing ? TUNE_CHECKPOINTING : 0)));
    t->data = tune_dataset_from(ROWS, get, NULL, LENGTH);
    assert_got(t->data);
    t->load = tune_loader_new(t->data, &(struct tune_loader_options){.part = TUNE_ALL, .batch_size = BATCH, .accumulate = MICROS,
                              .max_length = LENGTH, .epochs = 1, .max_steps = max_steps, .stop_after_seconds = -1, .prefetch = true});
    assert_got(t->load);
    t->loss = tune_loss_new(t->m, true);
    assert_got(t->loss);
    t->opt =
        tune_optimizer_new(t->m, &(struct tune_optimizer_options){.kind = TUNE_ADAMW, .beta1 = .9, .beta2 = .99, .eps = 1e-8});
    assert_got(t->opt);
    t->sums = tune_record_new(t->dev, 1);
    assert_got(t->sums);
}

static void teardown(struct trainer *t)
{
    tune_record_free(t->sums);
    tune_optimizer_free(t->opt);
    tune_loss_free(t->loss);
    tune_loader_free(t->load);
    tune_dataset_free(t->data);
    tune_model_free(t->m);
    tune_device_close(t->dev);
}

static double one_step(struct trainer *t)
{
    int micros = tune_loader_more(t->load, &t->at);
    const struct tune_done_step *steps;
    assert_true(micros > 0);
    assert_ok(tune_model_zero_grad(t->m, t->sums));
    while (micros-- > 0) {
        struct tune_batch batch;
        struct tune_tensor *hidden, *dhidden;
        assert_ok(tune_loader_next(t->load, &batch));
        assert_ok(tune_model_forward(t->m, &batch, &hidden));
        assert_ok(tune_loss_forward_backward(t->loss, hidden, &batch, t->sums, &dhidden));
        assert_ok(tune_model_backward(t->m, &batch, dhidden));
    }
    assert_ok(tune_optimizer_scale(t->opt, 1, t->sums));
    assert_ok(tune_optimizer_step(t->opt, 1e-2, t->sums));
    assert_int_equal(tune_record_read(t->sums, &steps), 1);
    tune_progress_step(&t->at, t->load);
    return steps[0].scalars.loss_sum;
}

static const struct tune_profile_row *row(const struct tune_profile *r, const char *phase, const char *name)
{
    for (int i = 0; i < r->count; i++)
        if (!strcmp(r->rows[i].phase, phase) && !strcmp(r->rows[i].name, name))
            return &r->rows[i];
    fail_msg("no row \"%s\" in phase \"%s\"", name, phase);
    return NULL;
}

static void calls(const struct tune_profile *r, const char *phase, const char *name, int64_t expected)
{
    const struct tune_profile_row *found = row(r, phase, name);
    if (found->calls != expected || found->outside)
        fail_msg("%s, %s: %lld calls, expected %lld", phase, name, (long long)found->calls, (long long)expected);
}

/* FLOPs of the rows whose names begin so. */
static double flops(const struct tune_profile *r, const char *begin)
{
    double sum = 0;
    for (int i = 0; i < r->count; i++)
        if (!strncmp(r->rows[i].name, begin, strlen(begin)))
            sum += r->rows[i].flops;
    return sum;
}

static void counts(const struct tune_profile *r, int64_t steps, bool checkpointing)
{
    int64_t micros = steps * MICROS, layers = micros * LAYERS;
    static const char *const matrices[] = {"qkv", "o", "gate_up", "down"};
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "gemm %s%s", i % 2 ? "add " : "", matrices[i]); /* onto the residual stream */
        calls(r, "forward", name, layers);
        if (checkpointing && i < 3) /* what backward does not read is not computed again */
            calls(r, "backward", name, layers);
        snprintf(name, sizeof name, "gemm %s dx", matrices[i]);
        calls(r, "backward", name, layers);
        snprintf(name, sizeof name, "gemm %s dW", matrices[i]);
        calls(r, "backward", name, layers);
    }
    calls(r, "loss", "gemm lm_head", micros);
    calls(r, "loss", "gemm lm_head dx", micros);
    calls(r, "loss", "gemm lm_head dW", micros);
    calls(r, "loss", "cross entropy rows dx", micros);
    calls(r, "forward", "bias qkv", layers);
    calls(r, "backward", "bias qkv dW", layers);
    calls(r, "forward", "embed", micros);
    calls(r, "backward", "embed dW", micros);
    calls(r, "forward", "attention", layers);
    calls(r, "backward", "attention dx", layers);
    calls(r, "forward", "rmsnorm 1", layers);
    calls(r, "forward", "rmsnorm 2", layers);
    calls(r, "forward", "rmsnorm final", micros);
    calls(r, "backward", "rmsnorm final dx", micros);
    calls(r, "clip", "sum squares", steps);
    calls(r, "data", "zero gradients", steps);
    calls(r, "log, save", "download", steps);
    assert_true(row(r, "update", "adamw")->calls > 0);
    assert_true(row(r, "data", "making batches")->outside && row(r, "data", "waiting for rows")->outside);
}

static void adds_up(const struct tune_profile *r)
{
    double sum = 0;
    for (int i = 0; i < r->count; i++) {
        assert_true(r->rows[i].seconds >= 0);
        sum += r->rows[i].seconds;
    }
    assert_true(r->seconds > 0 && fabs(sum - r->seconds) < 1e-6 * r->seconds + 1e-9 * r->count);
}

/* While it measures, every entry of the table is another but those that are no operations: a new kernel wants its wrapper. */
static void all_timed(const struct tune_ops *own, const struct tune_ops *timed)
{
    typedef void (*entry)(void);
    entry a[sizeof *own / sizeof(entry)], b[sizeof *own / sizeof(entry)];
    size_t same = 0;
    memcpy(a, own, sizeof a);
    memcpy(b, timed, sizeof b);
    for (size_t i = 0; i < sizeof a / sizeof *a; i++)
        same += a[i] == b[i];
    /* close, alloc, free, memory, reserve, reserve_bytes, peak_rates, in_place; the CPU lacks nine entries: group_begin, group_end,
     * acquire, release, beside, done, mark, reached, unmark */
    assert_int_equal(same, 17);
}

static void what_ran(bool checkpointing, bool packing)
{
    struct trainer t;
    setup(&t, 2, checkpointing, 10);
    if (packing) { /* a row is as long as a pack: the same batches, by positions and starts */
        tune_loader_free(t.load);
        t.load = tune_loader_new(t.data, &(struct tune_loader_options){.part = TUNE_ALL, .batch_size = BATCH, .accumulate = MICROS,
                                 .max_length = LENGTH, .max_steps = 10, .stop_after_seconds = -1, .packing = true});
        assert_got(t.load);
    }
    struct tune_profiler *p = tune_profiler_new(t.dev, t.m, t.load, 3);
    assert_got(p);
    const struct tune_ops *own = t.dev->ops;
    for (int step = 1; step <= 6; step++) {
        one_step(&t);
        assert_int_equal(tune_profiler_step(p, &t.at), step == 5);
        assert_int_equal(t.dev->ops != own, step >= 2 && step < 5); /* from the third on, and put back */
        if (step == 3)
            all_timed(own, t.dev->ops);
    }
    assert_int_equal(tune_profiler_end(p), 0);
    const struct tune_profile *r = tune_profiler_result(p);
    assert_true(r->first == 3 && r->last == 5 && r->threads == 2);
    counts(r, 3, checkpointing);
    calls(r, "forward", "upload", 3 * MICROS); /* one for each micro-batch, packed or not */
    adds_up(r);
    const struct tune_profile_row *adamw = row(r, "update", "adamw"), *squares = row(r, "clip", "sum squares");
    assert_true(adamw->bytes == 2 * adamw->flops); /* 28 and 14 a number: w, m and v are read and written, g is read */
    assert_true(squares->bytes == 3.0 * 4 * (double)tune_model_parameters(t.m)->gradients);
    double tokens = 3.0 * MICROS * BATCH * LENGTH,
           labels = 3.0 * MICROS * BATCH * (LENGTH - 1); /* a row's last token predicts nothing */
    double layer = (4 + 2 * 2) * 6 * 24 + 24 * 24 + 3 * 24 * 40, head = 24 * 61, again = checkpointing ? 2 * (layer - 24 * 40) : 0;
    assert_float_equal(flops(r, "gemm"), tokens * LAYERS * (6 * layer + again) + 6 * labels * head, 1);
    double pairs = LENGTH * (LENGTH + 1) / 2. * BATCH * 4 * MICROS * 3 * LAYERS;
    assert_float_equal(flops(r, "attention"), pairs * 6 * (4 + 10 + (checkpointing ? 4 : 0)), 1);
    assert_float_equal(r->model_flops, tokens * tune_model_config_flops(tune_model_config(t.m), LENGTH), 1);
    assert_true(r->peak_rates.flops_one > 1e8 && r->peak_rates.flops_all > 1e8 && r->peak_rates.bytes_all > 1e7 &&
                r->peak_rates.bytes_one > 1e7);
    tune_profiler_free(p);
    teardown(&t);
}

/* An attention costs what its queries see: of a cache that is filled to different lengths, with texts and a window. */
static void pairs_are_counted(void **state)
{
    (void)state;
    enum { B = 2, T = 3, ALL = 8, HEADS = 2, WIDE = 4, WINDOW = 3 };
    static const int32_t keys[B] = {8, 4}, begin[B] = {5, 2}, first[B * T] = {0, 4, 6, 1, 1, 1};
    struct tune_device *dev = test_device(1);
    struct tune_profiler *p = tune_profiler_new(dev, NULL, NULL, 1);
    struct tune_progress at = {.planned_steps = 100};
    float zeros[B * ALL * HEADS * WIDE] = {0};
    int seen = 0;
    assert_got(p);
    for (int i = 0; i < B * T * ALL; i++) {
        int key = i % ALL, query = i / ALL, b = query / T, position = begin[b] + query % T;
        seen += key <= position && key < keys[b] && key >= first[query] && key > position - WINDOW;
    }
    struct tune_tensor rows = put_tensor(dev, B * ALL, HEADS * WIDE, zeros), out = put_tensor(dev, B * T, HEADS * WIDE, zeros);
    struct tune_tensor lse = put_tensor(dev, B * T, HEADS, zeros), k = tune_tensor_heads(&rows, B, 0, HEADS, WIDE), q = k;
    struct tune_tensor index[3] = {put_index(dev, first, B * T), put_index(dev, keys, B), put_index(dev, begin, B)};
    q.shape[1] = T;
    for (at.step = 1; at.step <= 2; at.step++)
        assert_int_equal(tune_profiler_step(p, &at), 0);
    assert_ok(tune_attention_forward(dev, &out, &lse, &q, &k, &k, &index[0], &index[1], &index[2], (struct tune_attention){WINDOW, 1}));
    assert_int_equal(tune_profiler_step(p, &at), 1);
    assert_float_equal(flops(tune_profiler_result(p), "attention"), 4.0 * seen * HEADS * WIDE, 0);
    tune_profiler_free(p);
    drop_tensor(dev, &rows), drop_tensor(dev, &out), drop_tensor(dev, &lse);
    for (int i = 0; i < 3; i++)
        drop_tensor(dev, &index[i]);
    tune_device_close(dev);
}

static void what_ran_is_counted(void **state)
{
    (void)state;
    what_ran(false, false);
    what_ran(false, true);
}

static void what_ran_again_is_counted(void **state)
{
    (void)state;
    what_ran(true, false);
}

/* The same losses and weights, to the bit, with and without; freed in the midst of a measurement. */
static void nothing_changes(void **state)
{
    (void)state;
    struct trainer plain, timed;
    setup(&plain, 2, false, 6);
    setup(&timed, 2, false, 6);
    struct tune_profiler *off = tune_profiler_new(plain.dev, plain.m, plain.load, 0);
    struct tune_profiler *on = tune_profiler_new(timed.dev, timed.m, timed.load, 100);
    assert_got(off);
    assert_got(on);
    const struct tune_ops *own = plain.dev->ops;
    assert_true(tune_profiler_bytes(0).device == 0 && tune_profiler_bytes(0).heap == 0);
    for (int step = 0; step < 5; step++) {
        double a = one_step(&plain), b = one_step(&timed);
        assert_memory_equal(&a, &b, sizeof a);
        assert_int_equal(tune_profiler_step(off, &plain.at), 0);
        assert_int_equal(tune_profiler_step(on, &timed.at), 0);
        assert_ptr_equal(plain.dev->ops, own);
    }
    assert_ptr_not_equal(timed.dev->ops, own);
    tune_profiler_free(on);
    assert_ptr_equal(timed.dev->ops, own);
    for (int i = 0; i < tune_model_parameters(plain.m)->count; i++)
        assert_true(same_values(plain.m, timed.m, i, TUNE_WEIGHT));
    one_step(&timed);
    tune_profiler_free(off);
    teardown(&plain);
    teardown(&timed);
}

/* A run of two steps: the second is measured; of one: none, and the table says so. */
static void short_runs(void **state)
{
    (void)state;
    struct trainer t;
    for (int steps = 1; steps <= 2; steps++) {
        setup(&t, 1, false, steps);
        struct tune_profiler *p = tune_profiler_new(t.dev, t.m, t.load, 5);
        assert_got(p);
        for (int i = 0; i < steps; i++) {
            one_step(&t);
            assert_int_equal(tune_profiler_step(p, &t.at), 0);
        }
        assert_int_equal(tune_profiler_end(p), steps == 2);
        char *table = tune_profiler_table(p);
        assert_got(table);
        assert_int_equal(strstr(table, "no step: the first") != NULL, steps == 1);
        assert_int_equal(strstr(table, "gemm gate_up dW") != NULL, steps == 2);
        free(table);
        if (steps == 2)
            adds_up(tune_profiler_result(p));
        tune_profiler_free(p);
        teardown(&t);
    }
}

/* The number behind the key; an error if there is none. */
static double number(const cJSON *object, const char *key)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(object, key);
    assert_true(cJSON_IsNumber(n));
    return n->valuedouble;
}

/* Each track's events follow one another; steps, phases and operations fill each other. */
static void check_trace(const char *folder, const struct tune_profile *r)
{
    char path[TUNE_PATH_MAX];
    double end[5] = {0}, sum[5] = {0};
    int count[5] = {0};
    snprintf(path, sizeof path, "%s/profile.trace.json", folder);
    cJSON *json = tune_cjson_read(path, (size_t)64 << 20);
    assert_got(json);
    const cJSON *e;
    cJSON_ArrayForEach(e, cJSON_GetObjectItemCaseSensitive(json, "traceEvents"))
    {
        if (strcmp(cJSON_GetObjectItemCaseSensitive(e, "ph")->valuestring, "X"))
            continue;
        int track = (int)number(e, "tid");
        double begin = number(e, "ts"), length = number(e, "dur");
        assert_in_range(track, 1, 4);
        assert_true(length >= 0 && begin >= end[track] - .0021); /* rounded to nanoseconds */
        end[track] = begin + length;
        sum[track] += length;
        count[track]++;
        if (track == 3)
            assert_true(number(cJSON_GetObjectItemCaseSensitive(e, "args"), "flops") >= 0);
    }
    assert_int_equal(count[1], r->last - r->first + 1);
    assert_int_equal(count[3] + count[1], r->events);
    assert_true(fabs(sum[1] - 1e6 * r->seconds) < 1 && sum[2] <= sum[1] + 1 && sum[3] <= sum[2] + 1);
    assert_true(sum[3] + sum[4] <= sum[1] + 1 && sum[3] + sum[4] > .3 * sum[1]);
    cJSON_Delete(json);
}

static void files(void **state)
{
    (void)state;
    struct trainer t;
    const char *folder = test_folder();
    char path[TUNE_PATH_MAX], *text;
    size_t size;
    setup(&t, 1, false, 4);
    struct tune_profiler *p = tune_profiler_new(t.dev, t.m, t.load, 2);
    assert_got(p);
    for (int i = 0; i < 4; i++) {
        one_step(&t);
        tune_profiler_step(p, &t.at);
    }
    const struct tune_profile *r = tune_profiler_result(p);
    assert_ok(tune_profiler_write(p, folder));
    check_trace(folder, r);
    snprintf(path, sizeof path, "%s/profile.txt", folder);
    assert_ok(tune_file_read(path, 1 << 20, &text, &size));
    assert_non_null(strstr(text, "steps 3 to 4"));
    assert_non_null(strstr(text, "of it outside operations"));
    free(text);
    snprintf(path, sizeof path, "%s/profile.json", folder);
    cJSON *json = tune_cjson_read(path, 1 << 20);
    assert_got(json);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(json, "rows")), r->count);
    assert_true(number(json, "first_step") == 3 && number(json, "seconds") == r->seconds);
    cJSON_Delete(json);
    assert_int_equal(tune_profiler_write(p, "/nowhere/at/all"), -1);
    assert_error_has("/nowhere/at/all");
    tune_profiler_free(p);
    teardown(&t);
    assert_ok(tune_file_remove_folder(folder));
}

/* The trace has room for so many operations; the sums go on. */
static void long_profiles(void **state)
{
    (void)state;
    struct trainer t;
    const char *folder = test_folder();
    enum { STEPS = 200 };
    setup(&t, 1, true, STEPS + 2);
    struct tune_profiler *p = tune_profiler_new(t.dev, t.m, t.load, STEPS);
    assert_got(p);
    for (int i = 0; i < STEPS + 2; i++) {
        one_step(&t);
        tune_profiler_step(p, &t.at);
    }
    const struct tune_profile *r = tune_profiler_result(p);
    assert_int_equal(r->last - r->first + 1, STEPS);
    counts(r, STEPS, true);
    adds_up(r);
    assert_true(r->dropped > 0 && r->events < r->dropped + r->events);
    assert_ok(tune_profiler_write(p, folder));
    struct stat s;
    char path[TUNE_PATH_MAX];
    snprintf(path, sizeof path, "%s/profile.trace.json", folder);
    assert_int_equal(stat(path, &s), 0);
    assert_true(s.st_size < 32 << 20);
    cJSON *json = tune_cjson_read(path, (size_t)64 << 20);
    assert_got(json);
    cJSON_Delete(json);
    tune_profiler_free(p);
    teardown(&t);
    assert_ok(tune_file_remove_folder(folder));
}

#define BOTH "0000:01:00.0,0000:02:00.0"

static void gpus(void **state)
{
    (void)state;
    struct tune_gpu_reading now;
    assert_int_equal(tune_gpus_listed(NULL), 0);
    assert_int_equal(tune_gpus_listed(""), 0);
    assert_int_equal(tune_gpus_listed("0000:01:00.0"), 1);
    assert_int_equal(tune_gpus_listed(BOTH), 2);
    void *real = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!real) {
        assert_null(tune_gpus_open(BOTH));
        assert_error_has("libnvidia-ml.so.1");
    } else {
        dlclose(real);
    }
    if (!fake_nvml_load("tests/fake_nvml.c"))
        skip();
    assert_null(tune_gpus_open("0000:01:00.0,0000:03:00.0"));
    assert_error_has("no GPU 0000:03:00.0: Not Found");
    assert_int_equal(*fake.begun, 0);
    struct tune_gpus *g = tune_gpus_open(BOTH);
    assert_got(g);
    assert_int_equal(tune_gpus_count(g), 2);
    tune_gpus_read(g, 0, &now);
    assert_true(now.compute == 30 && now.memory == 25 && now.watts == 100 && now.power == 25 && now.clock == 1200);
    tune_gpus_read(g, 1, &now);
    assert_true(now.compute == 50 && now.memory == 75 && now.watts == 300 && now.power == 75 && now.clock == 1800);
    *fake.broken = 1; /* as of a part of a GPU */
    tune_gpus_read(g, 1, &now);
    assert_true(isnan(now.compute) && now.memory == 75 && isnan(now.watts) && isnan(now.power) && isnan(now.clock));
    *fake.broken = 0;
    tune_gpus_close(g);
    assert_int_equal(*fake.begun, 0);
}

/* Which GPUs a list names, with the library that stands for NVIDIA's. */
static void found(void **state)
{
    (void)state;
    static struct tune_gpu gpus[TUNE_GPUS];
    int machine;
    if (!fake.library)
        skip();
    assert_int_equal(tune_gpus_find(NULL, gpus, &machine), 2);
    assert_true(machine == 2 && gpus[0].index == 0 && gpus[1].index == 1);
    assert_string_equal(gpus[0].name, "GPU-aaaa");
    assert_int_equal(tune_gpus_find("0000:02:00.0", gpus, &machine), 1);
    assert_true(machine == 2 && gpus[0].index == 1);
    assert_string_equal(gpus[0].name, "GPU-bbbb");
    assert_int_equal(tune_gpus_find("1,0", gpus, &machine), 2);
    assert_string_equal(gpus[0].name, "GPU-bbbb");
    assert_int_equal(tune_gpus_find("", gpus, &machine), 0);
    static const char *const bad[] = {"2", "GPU-cccc", "0000:03:00.0", "0,GPU-aaaa", "0x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tune_gpus_find(bad[i], gpus, &machine), -1);
        assert_error_has("GPU ");
    }
    assert_int_equal(*fake.begun, 0);
}

static void is_spread(struct tune_sampler_spread s, double min, double avg, double max)
{
    if (!(fabs(s.min - min) < 1e-9 && fabs(s.avg - avg) < 1e-9 && fabs(s.max - max) < 1e-9))
        fail_msg("%g %g %g, expected %g %g %g", s.min, s.avg, s.max, min, avg, max);
}

/* Each look's value stands for the time since the look before: what was looked at by tune_sampler_read is known exactly. */
static void averages(void **state)
{
    (void)state;
    struct tune_sampler_seen seen;
    if (!fake.library)
        skip();
    double begin = tune_clock_s();
    struct tune_sampler *s = tune_sampler_new(tune_gpus_open(BOTH));
    assert_got(s);
    usleep(20000);
    double first_end = tune_clock_s();
    tune_sampler_read(s, begin, first_end, &seen);
    assert_int_equal(seen.gpus, 2);
    assert_true(seen.memory > 0 && seen.memory < 100);
    is_spread(seen.gpu_compute, 30, 40, 50);
    is_spread(seen.gpu_memory, 25, 50, 75);
    is_spread(seen.gpu_watts, 100, 200, 300);
    is_spread(seen.gpu_power, 25, 50, 75);
    is_spread(seen.gpu_clock, 1200, 1500, 1800);
    assert_true(seen.gpu_memory_peak == 75);
    fake.compute[0] = 90, fake.used[0] = 80;
    double second_begin = tune_clock_s();
    usleep(20000);
    double second_end = tune_clock_s();
    tune_sampler_read(s, second_begin, second_end, &seen);
    is_spread(seen.gpu_compute, 50, 70, 90);
    assert_true(seen.gpu_memory_peak == 100);
    tune_sampler_read(s, begin, first_end, &seen); /* of the past, as it was */
    is_spread(seen.gpu_compute, 30, 40, 50);
    assert_true(seen.gpu_memory_peak == 75);
    tune_sampler_read(s, begin, second_end, &seen); /* of both */
    assert_true(seen.gpu_compute.max > 50 && seen.gpu_compute.max < 90 && seen.gpu_memory_peak == 100);
    *fake.broken = 1; /* what is not known takes no part */
    usleep(20000);
    tune_sampler_read(s, second_begin, tune_clock_s(), &seen);
    is_spread(seen.gpu_compute, 50, 70, 90);
    *fake.broken = 0;
    fake.compute[0] = 10, fake.used[0] = 20;
    tune_sampler_read(s, 5, 5, &seen); /* of no time: what is seen now */
    is_spread(seen.gpu_compute, 10, 30, 50);
    assert_true(seen.gpu_memory_peak == 75);
    tune_sampler_free(s);
    assert_int_equal(*fake.begun, 0);
    fake.compute[0] = 30;
}

/* A long run's spans are long, and all it saw is in them. */
static void many_looks(void **state)
{
    (void)state;
    enum { LOOKS = 3000 };
    struct tune_sampler_seen seen, part[3];
    if (!fake.library)
        skip();
    double at[4];
    struct tune_sampler *s = tune_sampler_new(tune_gpus_open("0000:02:00.0"));
    assert_got(s);
    fake.used[1] = 40;
    at[0] = tune_clock_s();
    for (int i = 0; i < LOOKS; i++) {
        fake.milliwatts[1] = (unsigned)i * 100;
        if (i == LOOKS / 3 || i == 2 * LOOKS / 3)
            at[i / (LOOKS / 3)] = tune_clock_s();
        fake.used[1] = i == LOOKS / 2 ? 79 : 40;
        tune_sampler_read(s, at[0], tune_clock_s(), &seen);
        is_spread(seen.gpu_compute, 50, 50, 50);
    }
    at[3] = tune_clock_s();
    for (int i = 0; i < 3; i++)
        tune_sampler_read(s, at[i], at[i + 1], &part[i]);
    assert_true(part[0].gpu_watts.avg < part[1].gpu_watts.avg && part[1].gpu_watts.avg < part[2].gpu_watts.avg);
    assert_true(part[0].gpu_watts.avg > 0 && part[2].gpu_watts.avg < LOOKS / 10);
    assert_true(part[0].gpu_memory_peak == 50 && part[1].gpu_memory_peak == 98.75 && part[2].gpu_memory_peak == 50);
    tune_sampler_free(s);
    fake.milliwatts[1] = 300000, fake.used[1] = 60;
}

/* By itself, four times a second, whoever asks or not. */
static void looks_by_itself(void **state)
{
    (void)state;
    if (!fake.library)
        skip();
    struct tune_sampler *s = tune_sampler_new(tune_gpus_open(BOTH));
    assert_got(s);
    int before = *fake.calls;
    for (int i = 0; i < 30000 && *(volatile int *)fake.calls == before; i++)
        usleep(10000);
    assert_true(*(volatile int *)fake.calls > before);
    tune_sampler_free(s);
    s = tune_sampler_new(NULL); /* no GPU */
    assert_got(s);
    struct tune_sampler_seen seen;
    tune_sampler_read(s, 0, tune_clock_s(), &seen);
    assert_true(seen.gpus == 0 && isnan(seen.gpu_compute.avg) && isnan(seen.gpu_memory_peak));
    assert_true(fabs(seen.memory - tune_memory_used()) < 20);
    tune_sampler_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_counted), cmocka_unit_test(what_ran_is_counted), cmocka_unit_test(what_ran_again_is_counted), cmocka_unit_test(nothing_changes),
        cmocka_unit_test(short_runs),          cmocka_unit_test(files),                     cmocka_unit_test(long_profiles),
        cmocka_unit_test(gpus),                cmocka_unit_test(found),                cmocka_unit_test(averages),                  cmocka_unit_test(many_looks),
        cmocka_unit_test(looks_by_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
