/* test_cache.c - tokens through a cache against one forward of all of them. */
#include "values.h"
#include "logits.h"
#include "far/far.h"

#include <dirent.h>

#include "models/cache.h"
#include "models/lora.h"

enum { T = 40, ROWS = 3 };

/* Rows of one text each; row b begins behind pads[b] positions of padding. */
struct text {
    int32_t ids[ROWS * T];
    int32_t pads[ROWS];
    int rows;
};

static void write_text(struct text *x, int rows, int V)
{
    static const int32_t pads[ROWS] = {0, 7, 26};
    uint32_t seed = 12345;
    *x = (struct text){.rows = rows};
    for (int b = 0; b < rows; b++) {
        x->pads[b] = rows > 1 ? pads[b] : 0;
        for (int t = x->pads[b]; t < T; t++) {
            seed = seed * 1664525 + 1013904223;
            x->ids[b * T + t] = (int32_t)((seed >> 8) % (uint32_t)V);
        }
    }
}

/* Logits of every token by tune_model_infer, row by row: [rows,T,V]; those of padding are 0. */
static float *whole(struct tune_model *m, const struct text *x, bool base)
{
    int64_t V = tune_model_vocabulary(m);
    float *all = calloc((size_t)(x->rows * T * V), sizeof *all);
    assert_non_null(all);
    for (int b = 0; b < x->rows; b++) {
        int32_t length = T - x->pads[b];
        struct tune_batch *batch = tune_batch_new(1, &length, x->ids + b * T + x->pads[b], NULL);
        struct tune_tensor *hidden;
        assert_got(batch);
        assert_ok(base ? tune_model_infer_base(m, batch, &hidden) : tune_model_infer(m, batch, &hidden));
        assert_ok(model_logits(m, hidden, 0, length, all + (b * T + x->pads[b]) * V));
        tune_batch_free(batch);
    }
    return all;
}

/* Feed [from,to) of all rows at once, and compare the logits of the last token. *worst: the largest
 * difference, as a share of the row's largest logit, or of 1. A sum in another order differs by some
 * roundings. */
static void feed(struct tune_cache *c, struct tune_model *m, const struct text *x, const int *rows,
                 int count, int from, int to, const float *want, double *worst)
{
    int32_t ids[ROWS * T];
    int64_t V = tune_model_vocabulary(m);
    float *got;
    for (int i = 0; i < count; i++)
        memcpy(ids + i * (to - from), x->ids + rows[i] * T + from, (size_t)(to - from) * sizeof *ids);
    assert_ok(tune_cache_forward(c, ids, to - from));
    assert_ok(tune_cache_logits(c, &got));
    for (int i = 0; i < count && to > x->pads[rows[i]]; i++) {
        const float *w = want + (rows[i] * T + to - 1) * V;
        double largest = 1;
        for (int64_t v = 0; v < V; v++)
            largest = fabs(w[v]) > largest ? fabs(w[v]) : largest;
        for (int64_t v = 0; v < V; v++)
            *worst = test_worse(*worst, fabs(got[i * V + v] - w[v]) / largest);
    }
}

/* Prompts of several lengths, then token by token. */
static double compare(struct tune_model *m, int rows, int capacity, bool base)
{
    static const int all[ROWS] = {0, 1, 2};
    struct text x;
    double worst = 0;
    write_text(&x, rows, (int)tune_model_vocabulary(m));
    float *want = whole(m, &x, base);
    struct tune_cache *c = tune_cache_new(m, ROWS, capacity);
    assert_got(c);
    tune_cache_base(c, base);
    for (int prompt = 1; prompt <= T; prompt += prompt < 3 ? 1 : 12) {
        assert_ok(tune_cache_begin(c, rows, x.pads));
        feed(c, m, &x, all, rows, 0, prompt, want, &worst);
        for (int t = prompt; t < T; t++)
            feed(c, m, &x, all, rows, t, t + 1, want, &worst);
        assert_int_equal(tune_cache_length(c), T);
    }
    tune_cache_free(c);
    free(want);
    return worst;
}

static struct tune_model *load(const char *folder, struct tune_device *dev, enum tune_dtype dtype, int B, int length)
{
    struct tune_model *m = tune_model_load_frozen(folder, dev, dtype, TUNE_F32);
    assert_got(m);
    assert_ok(tune_model_reserve(m, B, length, 0));
    return m;
}

static void every_family(void **state)
{
    (void)state;
    DIR *d = opendir("tests/reference");
    struct dirent *e;
    int count = 0;
    assert_non_null(d);
    while ((e = readdir(d))) {
        char folder[TUNE_PATH_MAX], reference[TUNE_PATH_MAX];
        snprintf(folder, sizeof folder, "tests/reference/%s", e->d_name);
        snprintf(reference, sizeof reference, "%.3900s/expected.safetensors", folder);
        if (e->d_name[0] == '.' || !tune_file_exists(reference))
            continue;
        struct tune_device *dev = test_device(2);
        assert_got(dev);
        struct tune_model *m = load(folder, dev, TUNE_F32, 1, T);
        double one = compare(m, 1, T, false), several = compare(m, ROWS, T + 5, false);
        print_message("# %s: alone %.1e, in a batch %.1e\n", e->d_name, one, several);
        /* longrope takes another table as a text grows, and the whole text has the last one: tests/peers/generate_peer.py compares */
        bool tables = tune_model_config(m)->long_from > 0 && tune_model_config(m)->long_from < T;
        assert_true((one <= 1e-5 && several <= 1e-5) || tables);
        tune_model_free(m);
        tune_device_close(dev);
        count++;
    }
    closedir(d);
    assert_true(count >= 10);
}

/* A prompt goes through a model that has room for fewer tokens, in pieces. */
static void pieces(void **state)
{
    (void)state;
    static const int all[ROWS] = {0, 1, 2};
    struct text x;
    double worst = 0;
    struct tune_device *dev = test_device(2);
    struct tune_model *large = load("tests/reference/qwen2-window", dev, TUNE_F32, 1, T);
    struct tune_model *m = load("tests/reference/qwen2-window", dev, TUNE_F32, 3, 7);
    write_text(&x, ROWS, (int)tune_model_vocabulary(m));
    float *want = whole(large, &x, false);
    struct tune_cache *c = tune_cache_new(m, ROWS, T), *other = tune_cache_new(m, 1, T);
    assert_got(c);
    assert_got(other);
    assert_ok(tune_cache_begin(c, ROWS, x.pads));
    assert_ok(tune_cache_begin(other, 1, NULL)); /* two caches on one model do not meet */
    int stop = 2;
    int32_t ids[ROWS * 5] = {0};
    float *logits;
    tune_cache_stop(c, &stop);
    assert_int_equal(tune_cache_forward(c, ids, 5), 1);
    stop = 0;
    assert_int_equal(tune_cache_logits(c, &logits), -1);
    feed(c, m, &x, all, ROWS, 0, 36, want, &worst);
    stop = 2; /* by the next signal nothing is lost either */
    assert_int_equal(tune_cache_forward(c, ids, 3), 1);
    assert_int_equal(tune_cache_length(c), 36);
    stop = 0;
    feed(other, m, &x, all, 1, 0, 20, want, &worst);
    for (int t = 36; t < T; t++) {
        feed(c, m, &x, all, ROWS, t, t + 1, want, &worst);
        feed(other, m, &x, all, 1, t - 16, t - 15, want, &worst);
    }
    assert_true(worst <= 1e-5);
    free(want);
    tune_cache_free(c);
    tune_cache_free(other);
    tune_model_free(m);
    tune_model_free(large);
    tune_device_close(dev);
}

/* Positions are forgotten, and rows that are done make room. */
static void cut_and_keep(void **state)
{
    (void)state;
    static const int all[ROWS] = {0, 1, 2}, two[] = {0, 2}, last[] = {2}, second[] = {1};
    struct text x;
    double worst = 0;
    struct tune_device *dev = test_device(2);
    struct tune_model *m = load("tests/reference/qwen3", dev, TUNE_F32, ROWS, T);
    write_text(&x, ROWS, (int)tune_model_vocabulary(m));
    float *want = whole(m, &x, false), *logits;
    struct tune_cache *c = tune_cache_new(m, ROWS, T);
    assert_got(c);
    assert_ok(tune_cache_begin(c, ROWS, x.pads));
    feed(c, m, &x, all, ROWS, 0, 34, want, &worst);
    tune_cache_cut(c, 30);
    assert_int_equal(tune_cache_length(c), 30);
    tune_cache_cut(c, 33);
    assert_int_equal(tune_cache_length(c), 30);
    assert_int_equal(tune_cache_logits(c, &logits), -1);
    assert_error_has("tune_cache_forward");
    feed(c, m, &x, all, ROWS, 30, 32, want, &worst);
    assert_ok(tune_cache_keep(c, two, 2));
    feed(c, m, &x, two, 2, 32, 36, want, &worst);
    assert_ok(tune_cache_keep(c, second, 1));
    feed(c, m, &x, last, 1, 36, 37, want, &worst);
    assert_true(worst <= 1e-5);
    assert_int_equal(tune_cache_keep(c, second, 1), -1);
    assert_int_equal(tune_cache_keep(c, second, 0), -1);
    free(want);
    tune_cache_free(c);
    tune_model_free(m);
    tune_device_close(dev);
}

/* A beginning that rows share, then rests of different lengths, padded on the right, then each goes on behind its own. */
static void trimmed(void **state)
{
    (void)state;
    enum { BEGIN = 11, REST = 9 };
    static const int same[ROWS] = {0, 0, 0}, lengths[ROWS] = {BEGIN + REST, BEGIN + 3, BEGIN + 6}, spread[] = {0, 1, 1};
    struct text x;
    struct tune_device *dev = test_device(2);
    struct tune_model *m = load("tests/reference/qwen3", dev, TUNE_F32, ROWS, T);
    int64_t V = tune_model_vocabulary(m);
    write_text(&x, ROWS, (int)V);
    for (int b = 0; b < ROWS; b++) {
        memcpy(x.ids + b * T, x.ids, BEGIN * sizeof *x.ids);
        x.pads[b] = 0;
    }
    float *want = whole(m, &x, false), *got;
    struct tune_cache *c = tune_cache_new(m, ROWS, T);
    assert_got(c);
    int32_t ids[ROWS * REST], at[ROWS];
    assert_ok(tune_cache_begin(c, 1, NULL));
    assert_ok(tune_cache_forward(c, x.ids, BEGIN));
    assert_ok(tune_cache_spread(c, same, ROWS));
    for (int b = 0; b < ROWS; b++) {
        memcpy(ids + b * REST, x.ids + b * T + BEGIN, REST * sizeof *ids);
        at[b] = b * REST + lengths[b] - BEGIN - 1;
    }
    assert_ok(tune_cache_forward(c, ids, REST));
    assert_ok(tune_cache_logits_of(c, at, ROWS, &got));
    for (int b = 0; b < ROWS; b++)
        for (int64_t v = 0; v < V; v++)
            assert_float_equal(got[b * V + v], want[(b * T + lengths[b] - 1) * V + v], 1e-4);
    assert_ok(tune_cache_trim(c, lengths));
    assert_int_equal(tune_cache_length(c), BEGIN + REST);
    for (int step = 0; step < 3; step++) { /* the last time row 1 twice, in place of row 2 */
        for (int b = 0; b < ROWS; b++)
            ids[b] = x.ids[(step == 2 ? spread[b] : b) * T + lengths[step == 2 ? spread[b] : b] + step];
        assert_ok(tune_cache_forward(c, ids, 1));
        assert_ok(tune_cache_logits(c, &got));
        for (int b = 0; b < ROWS; b++) {
            int row = step == 2 ? spread[b] : b;
            for (int64_t v = 0; v < V; v++)
                assert_float_equal(got[b * V + v], want[(row * T + lengths[row] + step) * V + v], 1e-4);
        }
        if (step == 1)
            assert_ok(tune_cache_spread(c, spread, ROWS));
    }
    assert_int_equal(tune_cache_trim(c, (int[]){1, BEGIN + 9, 1}), -1);
    assert_error_has("positions of row 1");
    free(want);
    tune_cache_free(c);
    tune_model_free(m);
    tune_device_close(dev);
}

/* Adapters count, and the base alone can be asked. */
static void adapters(void **state)
{
    (void)state;
    for (int dora = 0; dora < 2; dora++) {
        struct tune_device *dev = test_device(2);
        struct tune_model *m = tune_model_load_frozen("tests/reference/llama-tied", dev, TUNE_F32, TUNE_F32);
        assert_got(m);
        struct tune_lora_options o = {.r = 4, .alpha = 64, .targets = "all-linear", .dora = dora, .dropout = 0.5};
        assert_ok(tune_lora_add(m, &o, 1));
        struct tune_parameters *p = tune_model_parameters(m);
        for (int i = p->base; i < p->count; i++) {
            float *w = values(m, &p->at[i], TUNE_WEIGHT);
            for (int64_t k = 0; k < p->at[i].count; k++)
                w[k] += 0.03f * (float)((k * 7 + i) % 11 - 5);
            set_values(m, &p->at[i], TUNE_WEIGHT, w);
            free(w);
        }
        assert_ok(tune_model_reserve(m, 1, T, TUNE_FOR_TRAINING)); /* as a recipe's model is */
        double with = compare(m, 1, T, false), without = compare(m, 1, T, true);
        print_message("# %s: with %.1e, without %.1e\n", dora ? "DoRA" : "LoRA", with, without);
        assert_true(with <= 1e-5 && without <= 1e-5);
        struct text x;
        write_text(&x, 1, (int)tune_model_vocabulary(m));
        float *a = whole(m, &x, false), *b = whole(m, &x, true);
        assert_true(fabs(a[0] - b[0]) > 1e-3); /* else the above shows nothing */
        free(a);
        free(b);
        tune_model_free(m);
        tune_device_close(dev);
    }
}

/* Keys and values in bfloat16: within the rounding of activations. */
static void bfloat16(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    struct tune_model *m = load("tests/reference/granite", dev, TUNE_BF16, ROWS, T);
    double worst = compare(m, ROWS, T, false);
    print_message("# bfloat16: %.1e\n", worst);
    assert_true(worst <= 0.05);
    tune_model_free(m);
    tune_device_close(dev);
}

/* A text that begins like the one before costs only what is new. */
static void shared(void **state)
{
    (void)state;
    static const int all[] = {0};
    struct text x;
    double worst = 0;
    struct tune_device *dev = test_device(2);
    struct tune_model *m = load("tests/reference/llama-untied", dev, TUNE_F32, 1, T);
    struct tune_cache *c = tune_cache_new(m, ROWS, T);
    assert_got(c);
    write_text(&x, 1, (int)tune_model_vocabulary(m));
    assert_int_equal(tune_cache_share(c, x.ids, T), 0); /* empty */
    assert_ok(tune_cache_forward(c, x.ids, 20));
    x.ids[12] = x.ids[12] ? 0 : 1;
    float *want = whole(m, &x, false);
    assert_int_equal(tune_cache_share(c, x.ids, T), 12);
    assert_int_equal(tune_cache_length(c), 12);
    feed(c, m, &x, all, 1, 12, T, want, &worst);
    assert_int_equal(tune_cache_share(c, x.ids, 30), 29); /* a token to go on with is left */
    feed(c, m, &x, all, 1, 29, 30, want, &worst);
    assert_true(worst <= 1e-5);
    x.ids[0] = x.ids[0] ? 0 : 1;
    assert_int_equal(tune_cache_share(c, x.ids, T), 0);
    assert_int_equal(tune_cache_length(c), 0);
    assert_ok(tune_cache_begin(c, 2, NULL)); /* two rows share nothing */
    assert_ok(tune_cache_forward(c, x.ids, 4));
    assert_int_equal(tune_cache_share(c, x.ids, T), 0);
    assert_ok(tune_cache_begin(c, 2, NULL)); /* the second of two rows is not the first one */
    assert_ok(tune_cache_forward(c, x.ids, 4));
    assert_ok(tune_cache_keep(c, (int[]){1}, 1));
    assert_int_equal(tune_cache_share(c, x.ids, T), 0);
    assert_ok(tune_cache_begin(c, 1, (int32_t[]){3})); /* behind padding, tokens have other positions */
    assert_ok(tune_cache_forward(c, x.ids, 8));
    assert_int_equal(tune_cache_share(c, x.ids, T), 0);
    free(want);
    tune_cache_free(c);
    tune_model_free(m);
    tune_device_close(dev);
}

static void refusals(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(1);
    struct tune_model *bare = tune_model_load_frozen("tests/reference/llama-tied", dev, TUNE_F32, TUNE_F32);
    assert_null(tune_cache_new(bare, 1, 4));
    assert_error_has("not reserved");
    tune_model_free(bare);
    struct tune_model *m = load("tests/reference/llama-tied", dev, TUNE_F32, 1, 2);
    assert_null(tune_cache_new(m, 0, 4));
    assert_null(tune_cache_new(m, 1, 1 << 20));
    assert_error_has("above the model's context of");
    assert_null(tune_cache_new(m, 1 << 30, 4));
    assert_error_has("more than 2^31 - 1");
    struct tune_model_config config;
    assert_ok(tune_model_config_read(&config, "tests/reference/llama-tied"));
    int64_t kv = (int64_t)config.layers * 2 * 64 * 2 * config.kv_heads * config.head_dim;
    assert_in_range(tune_cache_bytes(&config, TUNE_F32, 2, 64, 8) - tune_cache_bytes(&config, TUNE_BF16, 2, 64, 8), 2 * kv, 2 * kv + 4 * config.hidden + 256);
    struct tune_cache *c = tune_cache_new(m, 2, 4);
    assert_got(c);
    int32_t ids[] = {1, 2, 3, 4, 5, 6}, strange[] = {1, 1 << 20};
    float *logits;
    assert_int_equal(tune_cache_forward(c, ids, 1), -1);
    assert_error_has("tune_cache_begin");
    assert_int_equal(tune_cache_begin(c, 3, NULL), -1);
    assert_int_equal(tune_cache_begin(c, 1, (int32_t[]){-1}), -1);
    assert_ok(tune_cache_begin(c, 1, NULL));
    assert_int_equal(tune_cache_logits(c, &logits), -1);
    assert_int_equal(tune_cache_forward(c, ids, 0), -1);
    assert_int_equal(tune_cache_forward(c, ids, 5), -1);
    assert_error_has("room for 4");
    assert_int_equal(tune_cache_forward(c, strange, 2), -1);
    assert_error_has("vocabulary");
    assert_int_equal(tune_cache_length(c), 0);
    assert_ok(tune_cache_forward(c, ids, 4));
    tune_cache_free(c);
    tune_cache_free(NULL);
    tune_model_free(m);
    tune_device_close(dev);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_family), cmocka_unit_test(pieces), cmocka_unit_test(cut_and_keep), cmocka_unit_test(trimmed), cmocka_unit_test(adapters),
        cmocka_unit_test(bfloat16), cmocka_unit_test(shared), cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
