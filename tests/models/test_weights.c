/* test_weights.c - a folder's weight files: which tensors they must have, in which shapes, and how they are cut into shards. */
#include "test.h"

#include <cjson/cJSON.h>

#include "files/file.h"
#include "files/safetensors.h"
#include "models/init.h"
#include "models/weights.h"

static const char text[] = "{\"model_type\": \"llama\", \"vocab_size\": 10, \"hidden_size\": 8, \"intermediate_size\": 12, "
                           "\"num_hidden_layers\": 1, \"num_attention_heads\": 2, \"num_key_value_heads\": 1, "
                           "\"tie_word_embeddings\": %s}";

static cJSON *config_of(bool tied)
{
    char all[512];
    snprintf(all, sizeof all, text, tied ? "true" : "false");
    cJSON *config = cJSON_Parse(all);
    assert_non_null(config);
    return config;
}

static void make(const char *folder, bool tied, struct tune_parameters *table, struct tune_model_config *c)
{
    cJSON *config = config_of(tied);
    assert_ok(tune_model_init(folder, config, "test", 1, TUNE_F32, NULL, NULL));
    assert_ok(tune_model_config_parse(c, config, "config.json"));
    assert_ok(tune_parameters_new(table, c));
    cJSON_Delete(config);
}

/* The files of "model" again in "other": one tensor of another shape, one left out or renamed. */
static void rewrite(const char *changed, int64_t rows, int64_t columns, const char *from, const char *to)
{
    struct tune_safetensors *f = tune_safetensors_open("model/model.safetensors");
    assert_got(f);
    assert_ok(tune_file_make_folder("other"));
    struct tune_safetensors_writer *w = tune_safetensors_writer_new("other/model.safetensors");
    assert_got(w);
    static float zeros[1000];
    int64_t sizes[40], n = tune_safetensors_count(f);
    for (int64_t i = 0; i < n; i++) {
        const char *name = tune_safetensors_name(f, i);
        struct tune_array t = *tune_safetensors_at(f, i);
        if (changed && !strcmp(name, changed)) {
            t.shape[0] = rows;
            t.shape[1] = columns;
            t.ndim = columns ? 2 : 1;
        }
        sizes[i] = tune_array_bytes(&t);
        if (from && !strcmp(name, from)) {
            sizes[i] = to ? sizes[i] : 0;
            name = to;
        }
        if (name)
            assert_ok(tune_safetensors_writer_declare(w, name, TUNE_F32, t.ndim, t.shape));
    }
    for (int64_t i = 0; i < n; i++)
        assert_ok(tune_safetensors_writer_write(w, zeros, sizes[i]));
    assert_ok(tune_safetensors_writer_finish(w));
    tune_safetensors_writer_free(w);
    tune_safetensors_close(f);
}

static void checked(struct tune_parameters *table, bool tied, const char *message)
{
    struct tune_weights *w = tune_weights_open("other");
    assert_got(w);
    assert_int_equal(tune_weights_check(w, table, tied), message ? -1 : 0);
    if (message)
        assert_error_has(message);
    tune_weights_close(w);
}

static void tensors(void **state)
{
    (void)state;
    static const char q[] = "model.layers.0.self_attn.q_proj.weight", norm[] = "model.norm.weight";
    struct tune_parameters table;
    struct tune_model_config c;
    make("model", false, &table, &c);
    rewrite(NULL, 0, 0, NULL, NULL);
    checked(&table, false, NULL);
    rewrite(q, 7, 8, NULL, NULL);
    checked(&table, false, "q_proj.weight\" is [7, 8], config.json says [8, 8]");
    rewrite(q, 8, 9, NULL, NULL);
    checked(&table, false, "q_proj.weight\" is [8, 9], config.json says [8, 8]");
    rewrite(norm, 8, 1, NULL, NULL);
    checked(&table, false, "model.norm.weight\" is [8, 1], config.json says [8]");
    rewrite(NULL, 0, 0, norm, NULL);
    checked(&table, false, "no tensor \"model.norm.weight\"");
    rewrite(NULL, 0, 0, "lm_head.weight", NULL);
    checked(&table, false, "because \"tie_word_embeddings\" is not true");
    rewrite(NULL, 0, 0, norm, "norm.weight"); /* as a saved LlamaModel names it */
    checked(&table, false, NULL);
    rewrite(NULL, 0, 0, norm, "language_model.model.norm.weight");
    checked(&table, false, "the file has it as \"language_model.model.norm.weight\": take \"language_model.\" away");
    tune_parameters_free(&table);
    /* the same files for a tied model: its lm_head is not read; any other tensor of the model has no place */
    assert_ok(tune_file_remove_folder("tied"));
    make("tied", true, &table, &c);
    rewrite(NULL, 0, 0, NULL, NULL);
    checked(&table, true, NULL);
    rewrite(NULL, 0, 0, "lm_head.weight", "score.weight"); /* a classifier's is left out, and told */
    checked(&table, true, NULL);
    struct tune_weights *w = tune_weights_open("other");
    assert_ok(tune_weights_check(w, &table, true));
    tune_weights_remark(w, &c);
    assert_non_null(strstr(c.remarks, "not saved again: score.weight"));
    tune_weights_close(w);
    rewrite(NULL, 0, 0, "model.embed_tokens.weight", NULL); /* tied, stored as lm_head.weight alone */
    checked(&table, true, NULL);
    checked(&table, false, "no tensor \"model.embed_tokens.weight\"");
    rewrite(NULL, 0, 0, "lm_head.weight", "lm_head.bias");
    checked(&table, true, "tensor \"lm_head.bias\" has no place in the model");
    rewrite(NULL, 0, 0, "lm_head.weight", "model.layers.0.self_attn.rotary_emb.inv_freq");
    checked(&table, true, NULL);
    tune_parameters_free(&table);
}

/* The folder "model", whose two matrices differ, with a config.json that ties them: they are not tied. */
static void a_head_of_its_own(void **state)
{
    (void)state;
    struct tune_parameters table;
    struct tune_model_config c;
    assert_ok(tune_file_remove_folder("own"));
    make("own", false, &table, &c);
    tune_parameters_free(&table);
    cJSON *config = config_of(true);
    char *tied = cJSON_Print(config);
    assert_ok(tune_file_write("own/config.json", tied, strlen(tied)));
    rewrite(NULL, 0, 0, NULL, NULL); /* all zeros: equal matrices stay tied */
    assert_ok(tune_file_write("other/config.json", tied, strlen(tied)));
    assert_ok(tune_model_config_read(&c, "other"));
    assert_true(c.tied && !*c.remarks);
    cJSON_free(tied);
    cJSON_Delete(config);
    assert_ok(tune_model_config_read(&c, "own"));
    assert_false(c.tied);
    assert_non_null(strstr(c.remarks, "lm_head.weight is stored and is another"));
    assert_true(tune_weights_own_head("own") && !tune_weights_own_head("other"));
}

static int zeros(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    (void)context, (void)p, (void)at;
    memset(out, 0, (size_t)count * sizeof *out);
    return 0;
}

/* A shard takes as many tensors as its limit holds, to the byte. */
static void shards(void **state)
{
    (void)state;
    struct tune_parameters table;
    struct tune_model_config c;
    struct tune_weights_source source = {zeros, NULL};
    char *index;
    size_t size;
    make("model", false, &table, &c);
    int64_t all = 4 * tune_parameters_total(&table);
    assert_ok(tune_file_make_folder("whole"));
    assert_ok(tune_weights_write("whole", &table, TUNE_F32, all, &source));
    assert_true(tune_file_exists("whole/model.safetensors"));
    assert_ok(tune_file_make_folder("halves"));
    assert_ok(tune_weights_write("halves", &table, TUNE_F32, all - 1, &source));
    assert_true(tune_file_exists("halves/model-00001-of-00002.safetensors"));
    assert_true(tune_file_exists("halves/model-00002-of-00002.safetensors"));
    assert_ok(tune_file_read("halves/model.safetensors.index.json", 1 << 16, &index, &size));
    cJSON *json = cJSON_Parse(index), *total = cJSON_GetObjectItem(cJSON_GetObjectItem(json, "metadata"), "total_size");
    assert_true(total && total->valuedouble == (double)all);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "weight_map")), table.base);
    cJSON_Delete(json);
    free(index);
    struct tune_weights *w = tune_weights_open("halves");
    assert_got(w);
    assert_ok(tune_weights_check(w, &table, false));
    tune_weights_close(w);
    tune_parameters_free(&table);
}

/* A number of the embedding or the head, which differ; others are not asked for a row that is not there. */
static int some_numbers(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    (void)context;
    for (int64_t i = 0; i < count; i++)
        out[i] = (float)((at + i) * (at + i) % 31) + (p->role == TUNE_OUTPUT ? 100 : 0);
    return 0;
}

/* Rows that the files lack are the mean of those before, whatever pieces they are read in. */
static void more_rows(void **state)
{
    (void)state;
    enum { ROWS = 5, ALL = 8, COLUMNS = 3 };
    float mean[COLUMNS];
    struct tune_weights_grown g = {{some_numbers, NULL}, ROWS, COLUMNS, mean, NULL};
    struct tune_weights_source grown = tune_weights_grown(&g);
    struct tune_parameter p = {.name = "a", .ndim = 2, .shape = {ALL, COLUMNS}, .count = ALL * COLUMNS}, kinds[3] = {p, p, p};
    kinds[0].role = TUNE_EMBEDDING;
    kinds[1].role = TUNE_OUTPUT;
    kinds[2].role = TUNE_DOWN;
    for (int k = 0; k < 3; k++)
        for (int64_t piece = 1; piece <= ALL * COLUMNS; piece++) {
            float all[ALL * COLUMNS], want[ALL * COLUMNS];
            assert_ok(some_numbers(NULL, &kinds[k], 0, ALL * COLUMNS, want));
            for (int i = ROWS * COLUMNS; i < ALL * COLUMNS && k < 2; i++) {
                double sum = 0;
                for (int row = 0; row < ROWS; row++)
                    sum += (double)want[row * COLUMNS + i % COLUMNS];
                want[i] = (float)(sum / ROWS);
            }
            for (int64_t at = 0; at < ALL * COLUMNS; at += piece)
                assert_ok(grown.read(grown.context, &kinds[k], at, ALL * COLUMNS - at < piece ? ALL * COLUMNS - at : piece, all + at));
            assert_memory_equal(all, want, sizeof all);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(tensors), cmocka_unit_test(a_head_of_its_own), cmocka_unit_test(shards),
                                       cmocka_unit_test(more_rows)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
