/* test_model_values.c - a model's numbers read, written and filled: every kind in every storage, whole
 * and in stretches; what is refused; and tune_weights_each, which hands numbers on in pieces.
 *
 * The model has odd sizes: matrices of NF4 end in the middle of a byte, of a block and of a block
 * of scales (64 and 16384 numbers), and some are longer than a piece. */
#include "values.h"
#include "far/far.h"

#include <cjson/cJSON.h>

#include "core/nf4.h"
#include "core/random.h"
#include "devices/ops.h"
#include "models/init.h"
#include "models/lora.h"
#include "models/weights.h"
#include "optimizers/optimizer.h"

#define DOWN "model.layers.0.mlp.down_proj.weight"
#define K "model.layers.0.self_attn.k_proj.weight"
#define EMBED "model.embed_tokens.weight"

enum { T = 3, LARGE = TUNE_NF4_BLOCK * TUNE_NF4_BLOCKS };
static const enum tune_dtype storages[] = {TUNE_F32, TUNE_BF16, TUNE_NF4};
static struct tune_device *dev;

static int begin(void **state)
{
    static const char text[] =
        "{\"model_type\": \"llama\", \"vocab_size\": 50, \"hidden_size\": 65, "
        "\"intermediate_size\": 16401, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
        "\"num_key_value_heads\": 1, \"head_dim\": 130, \"attention_bias\": true, "
        "\"tie_word_embeddings\": false, \"initializer_range\": 0.05}";
    if (test_home_begin(state) < 0 || !(dev = test_device(2)))
        return -1;
    cJSON *config = cJSON_Parse(text);
    int status = tune_model_init("model", config, "test", 11, TUNE_F32, NULL, NULL);
    cJSON_Delete(config);
    return status;
}

static int end(void **state)
{
    tune_device_close(dev);
    return test_home_end(state);
}

static struct tune_model *load_frozen(enum tune_dtype storage)
{
    struct tune_model *m = tune_model_load_frozen("model", dev, TUNE_F32, storage);
    assert_got(m);
    const struct tune_parameter *down = tune_parameters_find(tune_model_parameters(m), DOWN);
    assert_true(down->storage == storage && down->count > TUNE_PIECE && down->count % 2 == 1);
    return m;
}

static const struct tune_parameter *row(struct tune_model *m, const char *name)
{
    const struct tune_parameter *p = tune_parameters_find(tune_model_parameters(m), name);
    assert_non_null(p);
    return p;
}

/* ---- numbers ---- */

/* Other numbers in each row and for each seed. number - the one at place i, from -0.5 to 0.5. */
static uint64_t stream_of(const struct tune_parameter *p, uint64_t seed)
{
    return tune_hash64(p->name, strlen(p->name), seed);
}

static float number(uint64_t stream, int64_t i)
{
    uint64_t x = (stream + (uint64_t)i) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 29) * 0xbf58476d1ce4e5b9u;
    return (float)(int64_t)(x >> 40) * 0x1p-24f - 0.5f;
}

static float *numbers(const struct tune_parameter *p, uint64_t seed)
{
    float *x = malloc((size_t)p->count * sizeof *x);
    uint64_t stream = stream_of(p, seed);
    for (int64_t i = 0; i < p->count; i++)
        x[i] = number(stream, i);
    return x;
}

/* What a whole row's numbers are once they are kept in the row's storage. */
static void as_kept(const struct tune_parameter *p, float *x)
{
    void *narrow = aligned_alloc(64, (size_t)(p->count * 4 + 511) / 64 * 64);
    struct tune_nf4_writer w;
    struct tune_nf4 q;
    if (p->storage == TUNE_NF4) {
        assert_ok(tune_nf4_begin(&w, p->name, narrow, p->count));
        assert_ok(tune_nf4_write(&w, x, p->count));
        assert_ok(tune_nf4_finish(&w, &q));
        assert_ok(tune_nf4_read(&q, 0, p->count, x));
    } else {
        assert_ok(tune_convert(narrow, p->storage, x, TUNE_F32, p->count));
        assert_ok(tune_convert(x, TUNE_F32, narrow, p->storage, p->count));
    }
    free(narrow);
}

static void assert_numbers(struct tune_model *m, const struct tune_parameter *p, int which,
                           const float *want)
{
    float *got = values(m, p, which);
    if (memcmp(got, want, (size_t)p->count * sizeof *got))
        fail_msg("%s, kind %d: not the numbers it should have", p->name, which);
    free(got);
}

/* The numbers that were made for this seed, as the row keeps them. */
static void assert_seed(struct tune_model *m, const struct tune_parameter *p, int which,
                        uint64_t seed)
{
    float *want = numbers(p, seed);
    if (which == TUNE_WEIGHT)
        as_kept(p, want);
    assert_numbers(m, p, which, want);
    free(want);
}

/* Stretches that begin and end beside the borders of bytes, blocks, blocks of scales and pieces. */
static const int64_t offsets[] = {0,     1,         31,    63,        64,
                                 65,    LARGE - 1, LARGE, LARGE + 1, 2 * LARGE,
                                 40001, 3 * LARGE + 1, TUNE_PIECE - 1, TUNE_PIECE, TUNE_PIECE + 1};
static const int64_t lengths[] = {0,         1,     2,         63,    64,         65, 1000,
                                  LARGE - 1, LARGE, LARGE + 1, 40001, TUNE_PIECE, TUNE_PIECE + 1};
enum { OFFSETS = sizeof offsets / sizeof *offsets, LENGTHS = sizeof lengths / sizeof *lengths };

static void read_one(struct tune_model *m, const struct tune_parameter *p, int which, int64_t at,
                     int64_t n, const float *want)
{
    float *got = malloc((size_t)(n + 2) * sizeof *got);
    got[0] = got[n + 1] = 12345;
    assert_ok(tune_model_read(m, p, which, at, n, got + 1));
    if (memcmp(got + 1, want + at, (size_t)n * sizeof *got))
        fail_msg("%s, kind %d: other numbers from %lld, %lld of them", p->name, which,
                 (long long)at, (long long)n);
    assert_true(got[0] == 12345 && got[n + 1] == 12345);
    free(got);
}

static void read_stretches(struct tune_model *m, const struct tune_parameter *p, int which,
                           const float *want)
{
    for (int k = 0; k < LENGTHS; k++) {
        if (lengths[k] > p->count)
            continue;
        for (int i = 0; i < OFFSETS; i++)
            if (offsets[i] <= p->count - lengths[k])
                read_one(m, p, which, offsets[i], lengths[k], want);
        read_one(m, p, which, p->count - lengths[k], lengths[k], want); /* up to its end */
    }
}

/* ---- weights ---- */

/* What was loaded is what the files hold, rounded to the storage, whatever stretches are read. */
static void loaded(void **state)
{
    (void)state;
    struct tune_weights *files = tune_weights_open("model");
    assert_got(files);
    for (int s = 0; s < 3; s++) {
        struct tune_model *m = load_frozen(storages[s]);
        const struct tune_parameters *table = tune_model_parameters(m);
        for (int i = 0; i < table->count; i++) {
            const struct tune_parameter *p = &table->at[i];
            const struct tune_array *t = tune_weights_find(files, p->name);
            float *want = malloc((size_t)p->count * sizeof *want);
            assert_ok(tune_convert(want, TUNE_F32, t->data, t->dtype, p->count));
            as_kept(p, want);
            assert_numbers(m, p, TUNE_WEIGHT, want);
            read_stretches(m, p, TUNE_WEIGHT, want);
            free(want);
        }
        tune_model_free(m);
    }
    tune_weights_close(files);
}

/* Whole rows: each has its own numbers afterwards, rounded to its storage. */
static void written(void **state)
{
    (void)state;
    for (int s = 0; s < 3; s++) {
        struct tune_model *m = load_frozen(storages[s]);
        const struct tune_parameters *table = tune_model_parameters(m);
        for (int i = 0; i < table->count; i++) {
            float *x = numbers(&table->at[i], 1);
            set_values(m, &table->at[i], TUNE_WEIGHT, x);
            free(x);
        }
        for (int i = 0; i < table->count; i++)
            assert_seed(m, &table->at[i], TUNE_WEIGHT, 1);
        tune_model_free(m);
    }
}

/* A stretch of F32 or BF16 changes just its numbers. */
static void written_in_stretches(void **state)
{
    (void)state;
    for (int s = 0; s < 2; s++) {
        struct tune_model *m = load_frozen(storages[s]);
        const struct tune_parameter *p = row(m, DOWN);
        float *want = values(m, p, TUNE_WEIGHT), *other = numbers(p, 2);
        for (int k = 0; k < LENGTHS; k++)
            for (int i = 0; i < OFFSETS; i++) {
                int64_t at = offsets[i], n = lengths[k];
                if (at > p->count - n)
                    at = p->count - n;
                for (int64_t j = at; j < at + n; j++)
                    want[j] = other[j] += 1;
                assert_ok(tune_model_write(m, p, TUNE_WEIGHT, at, n, other + at));
                if (s == 1)
                    as_kept(p, want);
                assert_numbers(m, p, TUNE_WEIGHT, want);
            }
        free(want);
        free(other);
        tune_model_free(m);
    }
}

static float *infer(struct tune_model *m)
{
    static const int32_t ids[T] = {1, 7, 49};
    struct tune_batch batch = {.B = 1, .T = T, .ids = ids, .tokens = T};
    struct tune_tensor *hidden;
    assert_ok(tune_model_infer(m, &batch, &hidden));
    return get_tensor(dev, hidden);
}

/* What NF4 rows were given is what products multiply with; q, k and v are one matrix there. */
static void written_is_multiplied(void **state)
{
    (void)state;
    struct tune_model *m = load_frozen(TUNE_NF4), *wide = load_frozen(TUNE_F32);
    const struct tune_parameters *table = tune_model_parameters(m);
    for (int i = 0; i < table->count; i++) {
        const struct tune_parameter *p = &table->at[i];
        float *x = numbers(p, 3); /* larger than those loaded: the scales are others */
        for (int64_t k = 0; k < p->count && p->storage == TUNE_NF4; k++)
            x[k] *= 5;
        set_values(m, p, TUNE_WEIGHT, x);
        as_kept(p, x);
        set_values(wide, &tune_model_parameters(wide)->at[i], TUNE_WEIGHT, x);
        free(x);
    }
    assert_ok(tune_model_reserve(m, 1, T, 0));
    assert_ok(tune_model_reserve(wide, 1, T, 0));
    int64_t n = T * tune_model_config(m)->hidden;
    float *got = infer(m), *want = infer(wide);
    double d = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        d += ((double)got[i] - want[i]) * ((double)got[i] - want[i]);
        size += (double)want[i] * want[i];
    }
    assert_true(size > 0 && sqrt(d / size) < 1e-5);
    free(got);
    free(want);
    tune_model_free(m);
    tune_model_free(wide);
}

/* NF4 is written whole or not at all. */
static void nf4_is_whole(void **state)
{
    (void)state;
    static const char *const names[] = {DOWN, K};
    struct tune_model *m = load_frozen(TUNE_NF4);
    for (int i = 0; i < 2; i++) {
        const struct tune_parameter *p = row(m, names[i]);
        float *before = values(m, p, TUNE_WEIGHT), *x = numbers(p, 4);
        const int64_t stretches[][2] = {{0, 1}, {0, p->count - 1}, {1, p->count - 1}, {64, 64}};
        for (int k = 0; k < 4; k++) {
            int64_t at = stretches[k][0], n = stretches[k][1];
            assert_int_equal(tune_model_write(m, p, TUNE_WEIGHT, at, n, x), -1);
            assert_error_has(p->name);
            assert_error_has("NF4");
        }
        x[p->count - 1] = INFINITY; /* the last block: all before it is quantised already */
        assert_int_equal(tune_model_write(m, p, TUNE_WEIGHT, 0, p->count, x), -1);
        assert_error_has(p->name);
        assert_error_has("infinite");
        assert_numbers(m, p, TUNE_WEIGHT, before);
        free(before);
        free(x);
    }
    tune_model_free(m);
}

/* ---- what fills a weight ---- */

struct maker {
    uint64_t seed;
    int64_t next, most, limit; /* most: a piece at the longest; limit: from there on it fails */
};

static int make(void *context, const struct tune_parameter *p, int64_t at, int64_t n, float *out)
{
    struct maker *k = context;
    assert_int_equal(at, k->next);
    k->next = at + n;
    k->most = n > k->most ? n : k->most;
    if (at + n > k->limit) {
        tune_error_set("no more numbers for %s", p->name);
        return -1;
    }
    uint64_t stream = stream_of(p, k->seed);
    for (int64_t i = 0; i < n; i++)
        out[i] = number(stream, at + i);
    return 0;
}

static void filled(void **state)
{
    (void)state;
    for (int s = 0; s < 3; s++) {
        struct tune_model *m = load_frozen(storages[s]);
        const struct tune_parameters *table = tune_model_parameters(m);
        int64_t held = dev->bytes;
        for (int i = 0; i < table->count; i++) {
            const struct tune_parameter *p = &table->at[i];
            struct maker k = {.seed = 5, .limit = INT64_MAX};
            struct tune_weights_source source = {make, &k};
            assert_ok(tune_model_fill(m, p, &source));
            assert_int_equal(k.next, p->count);
            assert_int_equal(k.most, p->count < TUNE_PIECE ? p->count : TUNE_PIECE);
        }
        for (int i = 0; i < table->count; i++)
            assert_seed(m, &table->at[i], TUNE_WEIGHT, 5);
        struct maker fails = {.seed = 6, .limit = TUNE_PIECE}; /* in the second piece */
        struct tune_weights_source source = {make, &fails};
        assert_int_equal(tune_model_fill(m, row(m, DOWN), &source), -1);
        assert_error_has("no more numbers for " DOWN);
        if (storages[s] == TUNE_NF4) /* nothing is written before all is there */
            assert_seed(m, row(m, DOWN), TUNE_WEIGHT, 5);
        assert_int_equal(dev->bytes, held);
        tune_model_free(m);
    }
}

static void a_model_is_a_source(void **state)
{
    (void)state;
    for (int s = 0; s < 3; s++) {
        struct tune_model *m = load_frozen(storages[s]);
        struct tune_weights_source source = tune_model_source(m);
        float *want = values(m, row(m, DOWN), TUNE_WEIGHT), got[1001];
        assert_ok(source.read(source.context, row(m, DOWN), LARGE - 77, 1001, got));
        assert_memory_equal(got, want + LARGE - 77, sizeof got);
        assert_int_equal(source.read(source.context, row(m, DOWN), -1, 1, got), -1);
        free(want);
        tune_model_free(m);
    }
}

/* ---- gradients, moments ---- */

enum { MINE = TUNE_EXTRA + 1 };
static const int kinds[] = {TUNE_WEIGHT, TUNE_GRADIENT, TUNE_MOMENT_1, TUNE_MOMENT_2, MINE};
static const char *const kind_names[] = {"weight", "gradient", "first moment", "second moment",
                                         "extra tensor"};

/* A weight in each storage against arrays of each dtype: equal, and with the last bit of one number changed. */
static void compared(void **state)
{
    (void)state;
    static const enum tune_dtype dtypes[] = {TUNE_F32, TUNE_BF16, TUNE_F16, TUNE_F64};
    for (size_t s = 0; s < 3; s++) {
        struct tune_model *m = load_frozen(storages[s]);
        const struct tune_parameter *p = row(m, DOWN);
        float *x = values(m, p, TUNE_WEIGHT);
        char *file = malloc((size_t)p->count * 8);
        for (size_t d = 0; d < 4; d++) {
            struct tune_array t = {.dtype = dtypes[d], .ndim = 2, .shape = {p->shape[0], p->shape[1]}, .data = file};
            assert_ok(tune_convert(file, t.dtype, x, TUNE_F32, p->count));
            assert_ok(tune_model_compare(m, p, &t));
            int64_t size = tune_array_bytes(&t) / p->count;
            const int64_t numbers[] = {0, (1 << 14) - 1, 1 << 14, p->count - 1}; /* at the ends of pieces, too */
            for (int i = 0; i < 4; i++) {
                file[numbers[i] * size] ^= 1;
                assert_int_equal(tune_model_compare(m, p, &t), -1);
                assert_error_has(DOWN ", read again, is not what was saved");
                file[numbers[i] * size] ^= 1;
            }
        }
        free(file);
        free(x);
        tune_model_free(m);
    }
}

static void refused(struct tune_model *m, const struct tune_parameter *p, int which,
                    const char *name)
{
    char expected[256];
    float x = 12345;
    snprintf(expected, sizeof expected, "%s has no %s", p->name, name);
    assert_false(tune_model_has(m, p, which));
    assert_int_equal(tune_model_read(m, p, which, 0, 1, &x), -1);
    assert_string_equal(tune_error_message(), expected);
    assert_int_equal(tune_model_write(m, p, which, 0, 1, &x), -1);
    assert_string_equal(tune_error_message(), expected);
    assert_true(x == 12345);
}

/* Every kind in every row that has it: numbers of its own, and zeros between the rows. */
static void assert_kinds(struct tune_model *m)
{
    const struct tune_parameters *table = tune_model_parameters(m);
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < table->count; i++)
            if (tune_model_has(m, &table->at[i], kinds[k]))
                assert_seed(m, &table->at[i], kinds[k], 10 + (uint64_t)k);
    for (int k = 1; k < 5; k++) {
        struct tune_tensor kept = tune_model_state(m, kinds[k]);
        assert_int_equal(kept.shape[0], table->gradients);
        float *all = all_state(m, kinds[k]);
        for (int i = 0; i < table->count; i++) {
            const struct tune_parameter *p = &table->at[i];
            uint64_t stream = stream_of(p, 10 + (uint64_t)k);
            for (int64_t n = 0; n < p->count && p->gradient >= 0; n++) {
                if (all[p->gradient + n] != number(stream, n))
                    fail_msg("%s, kind %d: lies elsewhere", p->name, kinds[k]);
                all[p->gradient + n] = 0;
            }
        }
        for (int64_t n = 0; n < table->gradients; n++)
            if (all[n] != 0)
                fail_msg("kind %d: something was written between the rows", kinds[k]);
        free(all);
    }
}

static void write_kinds(struct tune_model *m)
{
    const struct tune_parameters *table = tune_model_parameters(m);
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < table->count; i++) {
            const struct tune_parameter *p = &table->at[i];
            if (!tune_model_has(m, p, kinds[k])) {
                refused(m, p, kinds[k], kind_names[k]);
                continue;
            }
            float *x = values(m, p, kinds[k]);
            for (int64_t n = 0; n < p->count && k > 0; n++)
                if (x[n] != 0)
                    fail_msg("%s, kind %d: does not begin as zeros", p->name, kinds[k]);
            free(x);
            x = numbers(p, 10 + (uint64_t)k);
            set_values(m, p, kinds[k], x);
            free(x);
        }
}

static struct tune_optimizer *optimizer(struct tune_model *m, enum tune_optimizer_kind kind)
{
    struct tune_optimizer *opt = tune_optimizer_new(m, &(struct tune_optimizer_options){
        .kind = kind, .beta1 = .9, .beta2 = .99, .eps = 1e-8, .momentum = .9});
    return opt;
}

/* A model that is trained but for two rows. */
static void every_kind(void **state)
{
    (void)state;
    struct tune_model *m = tune_model_load("model", dev, TUNE_F32);
    assert_got(m);
    struct tune_parameters *table = tune_model_parameters(m);
    tune_parameters_find(table, EMBED)->trainable = false;
    tune_parameters_find(table, "model.norm.weight")->trainable = false;
    for (int k = 1; k < 5; k++) {
        refused(m, row(m, DOWN), kinds[k], kind_names[k]);
        assert_int_equal(tune_model_state(m, kinds[k]).shape[0], 0);
    }
    int64_t held = dev->bytes;
    assert_ok(tune_model_allocate_state(m, MINE, "a test's numbers")); /* the gradients, too */
    assert_int_equal(dev->bytes, held + 2 * 4 * table->gradients);
    assert_true(tune_model_has(m, row(m, DOWN), TUNE_GRADIENT));
    refused(m, row(m, DOWN), MINE + 1, "extra tensor");
    struct tune_optimizer *opt = optimizer(m, TUNE_ADAMW);
    assert_got(opt);
    write_kinds(m);
    for (int k = 0; k < 5; k++) {
        assert_true(tune_model_has(m, row(m, EMBED), kinds[k]) == (k == 0));
        assert_true(tune_model_has(m, row(m, K), kinds[k]));
    }
    assert_kinds(m);
    float *want = values(m, row(m, DOWN), TUNE_MOMENT_2);
    read_stretches(m, row(m, DOWN), TUNE_MOMENT_2, want);
    free(want);
    assert_ok(tune_model_allocate_state(m, MINE, "a test's numbers")); /* again: nothing happens */
    assert_null(optimizer(m, TUNE_SGD));
    assert_error_has("another optimizer");
    assert_kinds(m);
    tune_optimizer_free(opt);
    refused(m, row(m, DOWN), TUNE_MOMENT_1, "first moment");
    refused(m, row(m, DOWN), TUNE_MOMENT_2, "second moment");
    opt = optimizer(m, TUNE_SGD);
    assert_got(opt);
    assert_true(tune_model_has(m, row(m, DOWN), TUNE_MOMENT_1));
    assert_null(optimizer(m, TUNE_SGD));
    assert_error_has("another optimizer");
    refused(m, row(m, DOWN), TUNE_MOMENT_2, "second moment");
    tune_optimizer_free(opt);
    tune_model_release_state(m, MINE);
    refused(m, row(m, DOWN), MINE, "extra tensor");
    refused(m, row(m, DOWN), -1, "extra tensor");
    refused(m, row(m, DOWN), TUNE_TENSOR_KINDS, "extra tensor");
    assert_int_equal(dev->bytes, held + 4 * table->gradients);
    tune_model_free(m);
}

/* Tensors of a recipe's own, by name. */
static void extras(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "a b", "a.b", "\xc3\xa9", "a_name_of_thirty_two_characters_"};
    struct tune_model *m = tune_model_load("model", dev, TUNE_F32);
    assert_got(m);
    const struct tune_parameter *p = row(m, DOWN);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(tune_model_extra(m, bad[i]), -1);
        assert_error_has("expected a name");
    }
    assert_null(tune_model_extra_name(m, TUNE_EXTRA));
    assert_int_equal(tune_model_tensor(m, p, TUNE_EXTRA).data.at, 0);
    for (int i = 0; i < TUNE_EXTRAS; i++) {
        char name[16];
        snprintf(name, sizeof name, "mine_%d", i);
        assert_int_equal(tune_model_extra(m, name), TUNE_EXTRA + i);
        assert_string_equal(tune_model_extra_name(m, TUNE_EXTRA + i), name);
        assert_true(tune_model_has(m, p, TUNE_EXTRA + i));
    }
    assert_int_equal(tune_model_extra(m, "mine_1"), TUNE_EXTRA + 1);
    assert_int_equal(tune_model_extra(m, "one_more"), -1);
    assert_error_has("room for 4 kinds");
    assert_null(tune_model_extra_name(m, TUNE_EXTRA - 1));
    assert_null(tune_model_extra_name(m, TUNE_TENSOR_KINDS));
    assert_int_equal(tune_model_tensor(m, p, TUNE_WEIGHT).data.at, 0); /* its unit is not taken */
    assert_ok(tune_unit_take(m, p->unit));
    struct tune_tensor w = tune_model_tensor(m, p, TUNE_WEIGHT), e = tune_model_tensor(m, p, TUNE_EXTRA + 2);
    assert_ok(tune_unit_done(m, p->unit, tune_axpby(dev, &e, &w, 2, 0)));
    float *want = values(m, p, TUNE_WEIGHT), *got = values(m, p, TUNE_EXTRA + 2);
    for (int64_t i = 0; i < p->count; i++)
        assert_true(got[i] == 2 * want[i]);
    float *untouched = values(m, p, TUNE_EXTRA + 1);
    for (int64_t i = 0; i < p->count; i++)
        assert_true(untouched[i] == 0);
    free(want), free(got), free(untouched);
    tune_model_free(m);
}

/* ---- units ---- */

static void weights_have_an_address_while_taken(void **state)
{
    (void)state;
    struct tune_model *m = load_frozen(TUNE_F32);
    const struct tune_parameter *down = row(m, DOWN), *embed = row(m, EMBED);
    assert_int_equal(tune_model_tensor(m, down, TUNE_WEIGHT).data.at, 0);
    assert_ok(tune_unit_take(m, down->unit));
    uint64_t at = tune_model_tensor(m, down, TUNE_WEIGHT).data.at;
    assert_true(at != 0 && tune_unit_taken(m, down->unit));
    assert_true(tune_model_tensor(m, embed, TUNE_WEIGHT).data.at == 0 && !tune_unit_taken(m, embed->unit));
    assert_int_equal(dev->doing.unit, down->unit);
    assert_ok(tune_unit_take(m, down->unit));
    assert_ok(tune_unit_release(m, down->unit));
    assert_true(tune_model_tensor(m, down, TUNE_WEIGHT).data.at == at);
    assert_ok(tune_unit_release(m, down->unit));
    assert_int_equal(dev->doing.unit, -1);
    assert_int_equal(tune_model_tensor(m, down, TUNE_WEIGHT).data.at, 0);
    tune_model_free(m);
}

static void units_are_refused(void **state)
{
    (void)state;
    static int32_t ids[T] = {1, 2, 3};
    struct tune_batch batch = {.B = 1, .T = T, .ids = ids, .tokens = T};
    struct tune_model *m = load_frozen(TUNE_BF16);
    struct tune_tensor *hidden, w = tune_model_tensor(m, row(m, DOWN), TUNE_WEIGHT);
    float *zeros = calloc((size_t)(w.shape[0] + w.shape[1]), sizeof *zeros);
    struct tune_tensor y = put_tensor(dev, 1, w.shape[0], zeros), x = put_tensor(dev, 1, w.shape[1], zeros);
    assert_int_equal(tune_unit_take(m, 3), -1);
    assert_error_has("unit 3 of a model with units 0 to 2");
    assert_int_equal(tune_unit_take(m, -1), -1);
    assert_int_equal(tune_unit_release(m, 1), -1);
    assert_error_has("unit 1 is released and was not taken");
    assert_int_equal(tune_gemm(dev, &y, &x, false, &w, true, 1, 0, TUNE_F32), -1);
    assert_error_has("gemm: its argument \"b\" has no address. A weight has one from tune_unit_take");
    assert_ok(tune_model_reserve(m, 1, T, 0));
    assert_ok(tune_unit_take(m, 2));
    assert_int_equal(tune_model_infer(m, &batch, &hidden), -1);
    assert_error_has("a pass begins while unit 2 of the model is taken");
    tune_error_set("what the operations said");
    assert_int_equal(tune_unit_done(m, 2, -1), -1);
    assert_error_has("what the operations said");
    assert_ok(tune_model_infer(m, &batch, &hidden));
    for (int unit = 0; unit < 3; unit++)
        assert_false(tune_unit_taken(m, unit));
    drop_tensor(dev, &x);
    drop_tensor(dev, &y);
    free(zeros);
    tune_model_free(m);
}

/* On the far device an address that was kept reads as NaN behind the release, for every storage, and the numbers come back. */
static void released_weights_are_poisoned(void **state)
{
    static const char *const names[] = {EMBED, K, DOWN};
    (void)state;
    bool far = !strcmp(dev->name, "far");
    for (size_t k = 0; k < 3 * sizeof storages / sizeof *storages; k++) {
        struct tune_model *m = load_frozen(storages[k / 3]);
        const struct tune_parameter *p = row(m, names[k % 3]);
        float *before = values(m, p, TUNE_WEIGHT), *kept = malloc((size_t)p->count * sizeof *kept);
        assert_ok(tune_unit_take(m, p->unit));
        struct tune_tensor w = tune_model_tensor(m, p, TUNE_WEIGHT);
        assert_ok(tune_to_host(dev, &w, kept));
        assert_memory_equal(kept, before, (size_t)p->count * sizeof *kept);
        assert_ok(tune_unit_release(m, p->unit));
        assert_ok(tune_to_host(dev, &w, kept));
        for (int64_t i = 0; i < p->count; i++)
            assert_true(far ? kept[i] != kept[i] : kept[i] == before[i]);
        float *after = values(m, p, TUNE_WEIGHT);
        assert_memory_equal(after, before, (size_t)p->count * sizeof *after);
        free(before), free(kept), free(after);
        tune_model_free(m);
    }
}

/* Adapters' rows have all kinds, and lie in a buffer of their own; the base has its weights. */
static void adapters(void **state)
{
    (void)state;
    struct tune_lora_options o = {.r = 3, .alpha = 6, .targets = "all-linear", .dora = true};
    for (int s = 0; s < 3; s++) {
        struct tune_model *m = load_frozen(storages[s]), *base = load_frozen(storages[s]);
        assert_ok(tune_lora_add(m, &o, 1));
        const struct tune_parameters *table = tune_model_parameters(m);
        struct tune_optimizer *opt = optimizer(m, TUNE_ADAMW);
        assert_got(opt);
        assert_ok(tune_model_allocate_state(m, MINE, "a test's numbers"));
        for (int i = table->base; i < table->count; i++)
            for (int k = 0; k < 5; k++) {
                float *x = numbers(&table->at[i], 10 + (uint64_t)k);
                set_values(m, &table->at[i], kinds[k], x);
                free(x);
            }
        assert_true(table->count == table->base + 3 * 7);
        for (int i = 0; i < table->base; i++) {
            assert_true(same_values(m, base, i, TUNE_WEIGHT));
            refused(m, &table->at[i], TUNE_GRADIENT, "gradient");
            refused(m, &table->at[i], TUNE_MOMENT_1, "first moment");
        }
        for (int i = 0; i < table->base; i++) { /* the numbers that assert_kinds expects */
            float *x = numbers(&table->at[i], 10);
            set_values(m, &table->at[i], TUNE_WEIGHT, x);
            free(x);
        }
        assert_kinds(m);
        tune_optimizer_free(opt);
        tune_model_free(m);
        tune_model_free(base);
    }
}

/* ---- bounds ---- */

static void out_of_bounds(void **state)
{
    (void)state;
    for (int s = 0; s < 3; s++) {
        struct tune_model *m = load_frozen(storages[s]);
        const struct tune_parameter *p = row(m, K);
        const int64_t c = p->count;
        const int64_t bad[][2] = {{-1, 1}, {0, -1},    {0, c + 1},  {1, c},         {c, 1},
                                  {-5, c}, {c + 1, 0}, {c + 1, -1}, {1, INT64_MAX}, {INT64_MAX, 1}};
        float x = 12345, *before = values(m, p, TUNE_WEIGHT), *zeros = calloc((size_t)c, 4);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            char expected[256];
            int64_t at = bad[i][0], n = bad[i][1];
            snprintf(expected, sizeof expected,
                     K " has %lld values; the call wants %lld from value %lld on", (long long)c,
                     (long long)n, (long long)at);
            assert_int_equal(tune_model_read(m, p, TUNE_WEIGHT, at, n, &x), -1);
            assert_string_equal(tune_error_message(), expected);
            assert_int_equal(tune_model_write(m, p, TUNE_WEIGHT, at, n, zeros), -1);
            assert_string_equal(tune_error_message(), expected);
        }
        assert_true(x == 12345);
        assert_ok(tune_model_read(m, p, TUNE_WEIGHT, c, 0, &x)); /* none, from its end: fine */
        assert_ok(tune_model_read(m, p, TUNE_WEIGHT, c - 1, 1, &x));
        assert_memory_equal(&x, &before[c - 1], sizeof x);
        assert_numbers(m, p, TUNE_WEIGHT, before);
        free(before);
        free(zeros);
        tune_model_free(m);
    }
}

/* ---- waiting ---- */

/* When a call returns, out holds the numbers, and in may be written over. */
static void wait_on(struct tune_device *there)
{
    struct tune_device *usual = dev;
    dev = there;
    for (int s = 0; s < 3; s++) {
        struct tune_model *m = load_frozen(storages[s]);
        const struct tune_parameter *p = row(m, DOWN);
        float *x = numbers(p, 7);
        set_values(m, p, TUNE_WEIGHT, x);
        memset(x, 0, (size_t)p->count * sizeof *x);
        assert_seed(m, p, TUNE_WEIGHT, 7);
        struct maker k = {.seed = 8, .limit = INT64_MAX};
        struct tune_weights_source source = {make, &k};
        assert_ok(tune_model_fill(m, p, &source));
        assert_seed(m, p, TUNE_WEIGHT, 8);
        free(x);
        tune_model_free(m);
    }
    dev = usual;
}

/* On the usual device, and on one whose queue runs late. */
static void waits(void **state)
{
    (void)state;
    struct tune_device *late = tune_far_open(2);
    assert_got(late);
    wait_on(dev);
    wait_on(late);
    tune_device_close(late);
}

/* ---- pieces ---- */

struct taker {
    const float *buffer;
    int64_t next, count;
    int pieces, limit; /* limit: that piece is refused */
};

static int take(void *context, const struct tune_parameter *p, int64_t at, int64_t n,
                const float *x)
{
    struct taker *t = context;
    assert_ptr_equal(x, t->buffer);
    assert_int_equal(at, t->next);
    assert_true(n > 0 && n <= TUNE_PIECE && at + n <= t->count);
    uint64_t stream = stream_of(p, 9);
    for (int64_t i = 0; i < n; i += 997)
        assert_true(x[i] == number(stream, at + i));
    assert_true(x[n - 1] == number(stream, at + n - 1));
    t->next += n;
    return t->pieces++ == t->limit ? -1 : 0;
}

/* A row cut into pieces, each read and handed on once, in a buffer that is no longer than it says. */
static void pieces(void **state)
{
    (void)state;
    static const int64_t counts[] = {0, 1, 1000, TUNE_PIECE - 1, TUNE_PIECE, TUNE_PIECE + 1,
                                     2 * TUNE_PIECE, 2 * TUNE_PIECE + 7};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        struct tune_parameter p = {.name = "a row", .count = counts[i], .ndim = 1};
        int64_t most = counts[i] < TUNE_PIECE ? counts[i] : TUNE_PIECE;
        int whole = (int)((counts[i] + TUNE_PIECE - 1) / TUNE_PIECE);
        float *buffer = malloc((size_t)(most + 1) * sizeof *buffer);
        buffer[most] = 12345;
        struct maker k = {.seed = 9, .limit = INT64_MAX};
        struct taker t = {.buffer = buffer, .count = counts[i], .limit = -1};
        struct tune_weights_source source = {make, &k};
        assert_ok(tune_weights_each(&source, &p, buffer, take, &t));
        assert_true(k.next == counts[i] && t.next == counts[i] && t.pieces == whole);
        assert_true(k.most == most && buffer[most] == 12345);
        for (int bad = 0; bad < whole; bad++) { /* it ends with the piece that fails */
            k = (struct maker){.seed = 9, .limit = INT64_MAX};
            t = (struct taker){.buffer = buffer, .count = counts[i], .limit = bad};
            assert_int_equal(tune_weights_each(&source, &p, buffer, take, &t), -1);
            assert_true(t.pieces == bad + 1 && k.next == t.next);
            k = (struct maker){.seed = 9, .limit = (int64_t)bad * TUNE_PIECE};
            t = (struct taker){.buffer = buffer, .count = counts[i], .limit = -1};
            assert_int_equal(tune_weights_each(&source, &p, buffer, take, &t), -1);
            assert_error_has("no more numbers for a row");
            assert_int_equal(t.pieces, bad);
        }
        free(buffer);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loaded),
        cmocka_unit_test(written),
        cmocka_unit_test(written_in_stretches),
        cmocka_unit_test(written_is_multiplied),
        cmocka_unit_test(nf4_is_whole),
        cmocka_unit_test(filled),
        cmocka_unit_test(a_model_is_a_source), cmocka_unit_test(compared),
        cmocka_unit_test(every_kind),
        cmocka_unit_test(extras),
        cmocka_unit_test(adapters),
        cmocka_unit_test(out_of_bounds),
        cmocka_unit_test(waits),
        cmocka_unit_test(pieces),
        cmocka_unit_test(weights_have_an_address_while_taken), cmocka_unit_test(units_are_refused),
        cmocka_unit_test(released_weights_are_poisoned),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
