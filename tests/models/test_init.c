/* test_init.c - first values: of models made of random numbers, of adapters. The model has matrices longer than any piece that is
 * drawn or written at a time. */
#include "values.h"
#include "far/far.h"

#include <cjson/cJSON.h>

#include "files/cjson.h"
#include "files/file.h"
#include "flags/known.h"
#include "core/random.h"
#include "models/activations.h"
#include "models/init.h"
#include "models/lora.h"
#include "models/weights.h"

enum { HIDDEN = 64, FFN = 16400, SEED = 11 };
#define RANGE ((double)0.05f)

static void make_model(const char *folder, uint64_t seed)
{
    cJSON *config = cJSON_Parse("{\"model_type\": \"granite\", \"vocab_size\": 50, \"hidden_size\": 64, \"intermediate_size\": 16400, "
                                "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, "
                                "\"attention_bias\": true, \"mlp_bias\": true, \"tie_word_embeddings\": false, "
                                "\"residual_multiplier\": 0.3, \"initializer_range\": 0.05}");
    assert_non_null(config);
    assert_ok(tune_model_init(folder, config, "test", seed, TUNE_F32, NULL, NULL));
    cJSON_Delete(config);
}

static uint64_t stream_of(const struct tune_parameter *p)
{
    return tune_hash64(p->name, strlen(p->name), 0);
}

/* Norms of ones, biases of zeros, matrices of a normal distribution: each number a function of seed, name and place. */
static void of_models(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    make_model("first", SEED);
    struct tune_model *m = tune_model_load("first", dev, TUNE_F32);
    assert_got(m);
    for (int i = 0; i < m->parameters.count; i++) {
        const struct tune_parameter *p = &m->parameters.at[i];
        float *w = values(m, p, TUNE_WEIGHT);
        double sum = 0, squares = 0;
        for (int64_t k = 0; k < p->count; k++) {
            if (p->ndim == 1)
                assert_true(w[k] == (strstr(p->name, "norm") ? 1 : 0));
            else if (k % 997 == 0 || k > p->count - 9)
                assert_true(w[k] == (float)(RANGE * tune_random_normal(SEED, stream_of(p), (uint64_t)k)));
            sum += w[k];
            squares += w[k] * w[k];
        }
        free(w);
        if (p->ndim != 2)
            continue;
        double n = (double)p->count;
        assert_true(fabs(sum / n) < 5 * RANGE / sqrt(n));
        assert_true(fabs(squares / n / (RANGE * RANGE) - 1) < 5 * sqrt(2 / n));
    }
    tune_model_free(m);
    tune_device_close(dev);
}

/* A between -1/sqrt(in) and 1/sqrt(in), B of zeros; the base is not trained, however it was loaded. */
static void of_adapters(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    struct tune_lora_options o = {.r = 5, .alpha = 10, .targets = "all-linear",
                                  .rank_pattern = "down_proj=64"};
    struct tune_model *m = tune_model_load("first", dev, TUNE_F32);
    assert_got(m);
    assert_ok(tune_lora_add(m, &o, SEED));
    for (int i = 0; i < m->parameters.base; i++)
        assert_false(m->parameters.at[i].trainable);
    int64_t longest = 0;
    for (int i = m->parameters.base; i < m->parameters.count; i++) {
        const struct tune_parameter *p = &m->parameters.at[i];
        float *w = values(m, p, TUNE_WEIGHT);
        double bound = 1 / sqrt((double)p->shape[1]), least = 1, most = -1, squares = 0;
        bool a = strstr(p->name, "lora_A") != NULL;
        for (int64_t k = 0; k < p->count; k++) {
            if (!a)
                assert_true(w[k] == 0);
            else if (k % 499 == 0 || k > p->count - 9)
                assert_true(w[k] == (float)(bound * (2 * tune_random_uniform(SEED, stream_of(p), (uint64_t)k) - 1)));
            least = fmin(least, w[k]);
            most = fmax(most, w[k]);
            squares += w[k] * w[k];
        }
        free(w);
        if (!a)
            continue;
        longest = p->count > longest ? p->count : longest;
        assert_true(least >= -bound && least < -0.95 * bound && most <= bound && most > 0.95 * bound);
        assert_true(fabs(3 * squares / (double)p->count / (bound * bound) - 1) < 5 / sqrt((double)p->count));
    }
    assert_true(longest > TUNE_PIECE);
    tune_model_free(m);
    tune_device_close(dev);
}

/* Each config of defaults/models makes the parameters that its file and, for some, the Hub's page count. */
static void of_known_models(void **state)
{
    (void)state;
    static const struct { const char *name; int64_t parameters; } hub[] = {
        {"qwen3-1.7b", 1720574976}, {"qwen3-4b", 4022468096}, {"qwen3-8b", 8190735360}, {"qwen3-14b", 14768307200},
        {"qwen3-32b", 32762123264}, {"llama-3.1-8b", 8030261248}, {"llama-3.2-3b", 3212749824}, {"mistral-nemo-12b", 12247782400},
        {"smollm3-3b", 3075098624}, {"phi-3-mini-4k", 3821079552}, {"olmo2-1b", 1484916736}, {"gemma-3-270m", 268098176},
        {"gemma-3-1b", 999885952}, {"llama2-7b", 6738415616}, {"llama2-13b", 13015864320}, {"llama2-70b", 68976648192},
        {"llama3-70b", 70553706496}, {"llama-3.1-70b", 70553706496}, {"llama-3.3-70b", 70553706496}, {"qwen2.5-1.5b", 1543714304},
        {"qwen2.5-3b", 3085938688}, {"qwen2.5-7b", 7615616512}, {"qwen2.5-14b", 14770033664}, {"qwen2.5-32b", 32763876352},
        {"qwen2.5-72b", 72706203648}, {"mistral-small-24b", 23572403200}, {"phi-4", 14659507200}, {"olmo2-7b", 7298617344},
        {"olmo2-13b", 13716198400}, {"olmo2-32b", 32234279936}};
    struct tune_known_model *models;
    int count = tune_known_models(&models), found = 0;
    if (count == 0)
        skip();
    for (int i = 0; i < count; i++) {
        char path[TUNE_PATH_MAX], name[96];
        struct tune_model_config c;
        struct tune_parameters p;
        snprintf(name, sizeof name, "models/%s.json", models[i].name);
        assert_ok(tune_defaults_path(path, name));
        cJSON *json = tune_cjson_read(path, 1 << 20);
        assert_non_null(json);
        assert_ok(tune_model_config_parse(&c, cJSON_GetObjectItemCaseSensitive(json, "config"), path));
        assert_ok(tune_parameters_new(&p, &c));
        if (tune_parameters_total(&p) != models[i].parameters)
            fail_msg("%s: %lld parameters, its file says %lld", models[i].name, (long long)tune_parameters_total(&p),
                     (long long)models[i].parameters);
        for (size_t k = 0; k < sizeof hub / sizeof *hub; k++)
            if (!strcmp(hub[k].name, models[i].name)) {
                assert_int_equal(models[i].parameters, hub[k].parameters);
                found++;
            }
        tune_parameters_free(&p);
        cJSON_Delete(json);
    }
    assert_int_equal(found, sizeof hub / sizeof *hub);
    free(models);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(of_models), cmocka_unit_test(of_adapters),
                                       cmocka_unit_test(of_known_models)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
