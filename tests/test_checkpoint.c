/* test_checkpoint.c - a folder loaded and saved keeps every tensor's bytes; state holds what training needs. */
#include "test.h"

#include <dirent.h>
#include <sys/stat.h>

#include "checkpoints/checkpoint.h"
#include "core/safetensors.h"
#include "losses/loss.h"
#include "models/weights.h"
#include "optimizers/optimizer.h"

static struct tune_device *dev;

static int open_device(void **state)
{
    (void)state;
    dev = tune_device_open("cpu", 2);
    return dev ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    tune_device_close(dev);
    return 0;
}

/* Every tensor of the table has the same dtype and bytes in both folders. */
static void assert_same_tensors(struct tune_model *m, const char *a, const char *b)
{
    struct tune_weights *x = tune_weights_open(a), *y = tune_weights_open(b);
    assert_got(x);
    assert_got(y);
    const struct tune_parameters *p = tune_model_parameters(m);
    for (int i = 0; i < p->count; i++) {
        const struct tune_tensor *s = tune_weights_find(x, p->at[i].name), *t = tune_weights_find(y, p->at[i].name);
        assert_non_null(s);
        assert_non_null(t);
        assert_int_equal(s->dtype, t->dtype);
        assert_int_equal(tune_tensor_bytes(s), tune_tensor_bytes(t));
        assert_memory_equal(s->data, t->data, (size_t)tune_tensor_bytes(s));
    }
    tune_weights_close(x);
    tune_weights_close(y);
}

static void saved_as_read(void **state)
{
    (void)state;
    DIR *d = opendir("tests/reference");
    struct dirent *e;
    int count = 0;
    assert_non_null(d);
    while ((e = readdir(d))) {
        char folder[TUNE_PATH_MAX], config[TUNE_PATH_MAX], out[TUNE_PATH_MAX], again[TUNE_PATH_MAX];
        snprintf(folder, sizeof folder, "tests/reference/%s", e->d_name);
        snprintf(config, sizeof config, "%.3900s/config.json", folder);
        if (e->d_name[0] == '.' || !tune_file_exists(config))
            continue;
        const char *tmp = test_folder();
        struct tune_model *m = tune_model_load(folder, dev, TUNE_F32);
        assert_got(m);
        assert_ok(tune_path(out, "%s/out", tmp));
        assert_ok(tune_path(again, "%s/again", tmp));
        assert_ok(tune_checkpoint_write_model(m, out, folder, TUNE_DTYPES));
        assert_same_tensors(m, folder, out);
        struct tune_model *back = tune_model_load(out, dev, TUNE_F32);
        assert_got(back);
        tune_model_free(back);
        assert_ok(tune_checkpoint_write_model(m, again, folder, TUNE_F32)); /* and in another dtype it loads as well */
        back = tune_model_load(again, dev, TUNE_F32);
        assert_got(back);
        for (int i = 0; i < tune_model_parameters(m)->count; i++) {
            const struct tune_parameter *p = &tune_model_parameters(m)->at[i];
            assert_memory_equal(tune_model_weight(m, p), tune_model_weight(back, p), (size_t)p->count * 4);
        }
        tune_model_free(back);
        tune_model_free(m);
        assert_ok(tune_file_remove_folder(tmp));
        count++;
    }
    closedir(d);
    assert_true(count >= 10);
}

/* Shards of at most a few kB, an index, and back. */
static int read_weight(void *context, const struct tune_parameter *p, int64_t at, int64_t count, float *out)
{
    memcpy(out, tune_model_weight(context, p) + at, (size_t)count * 4);
    return 0;
}

static void sharded(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-tied";
    char path[TUNE_PATH_MAX];
    struct tune_model *m = tune_model_load(folder, dev, TUNE_F32);
    assert_got(m);
    struct tune_weights_source source = {read_weight, m};
    assert_ok(tune_weights_write(tmp, tune_model_parameters(m), TUNE_DTYPES, 8000, &source));
    assert_ok(tune_path(path, "%s/model.safetensors.index.json", tmp));
    assert_true(tune_file_exists(path));
    assert_ok(tune_path(path, "%s/model.safetensors", tmp));
    assert_false(tune_file_exists(path));
    assert_same_tensors(m, folder, tmp);
    tune_model_free(m);
    assert_ok(tune_file_remove_folder(tmp));
}

static void index_is_not_trusted(void **state)
{
    (void)state;
    static const struct {
        const char *index, *message;
    } cases[] = {
        {"{\"weight_map\": {\"a\": \"../x.safetensors\"}}", "not the name of a file"},
        {"{\"weight_map\": {\"a\": \"/etc/passwd\"}}", "not the name of a file"},
        {"{\"weight_map\": {\"a\": \"..\"}}", "not the name of a file"},
        {"{\"weight_map\": {\"a\": \"\"}}", "not the name of a file"},
        {"{\"weight_map\": {\"a\": 1}}", "string"},
        {"{\"weight_map\": {}}", "weight_map"},
        {"{}", "weight_map"},
        {"[", "model.safetensors.index.json:1:"},
        {"{\"weight_map\": {\"a\": \"absent.safetensors\"}}", "absent.safetensors"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *tmp = test_folder();
        test_write(tmp, "model.safetensors.index.json", cases[i].index, strlen(cases[i].index));
        assert_null(tune_weights_open(tmp));
        assert_error_has(cases[i].message);
        assert_ok(tune_file_remove_folder(tmp));
    }
}

static void one_tensor_in_two_files(void **state)
{
    (void)state;
    static const char index[] = "{\"weight_map\": {\"a\": \"1.safetensors\", \"b\": \"2.safetensors\"}}";
    const char *tmp = test_folder();
    char path[TUNE_PATH_MAX];
    test_write(tmp, "model.safetensors.index.json", index, sizeof index - 1);
    for (int twice = 0; twice < 2; twice++) {
        for (int i = 0; i < 2; i++) {
            assert_ok(tune_path(path, "%s/%d.safetensors", tmp, i + 1));
            struct tune_safetensors_writer *f = tune_safetensors_writer_new(path);
            assert_got(f);
            assert_ok(tune_safetensors_writer_declare(f, i ? "b" : "a", TUNE_U8, 0, NULL));
            if (i <= twice)
                assert_ok(tune_safetensors_writer_declare(f, "c", TUNE_U8, 0, NULL));
            assert_ok(tune_safetensors_writer_write(f, i ? "34" : "12", i <= twice ? 2 : 1));
            assert_ok(tune_safetensors_writer_finish(f));
            tune_safetensors_writer_free(f);
        }
        struct tune_weights *w = tune_weights_open(tmp);
        if (twice) {
            assert_null(w);
            assert_error_has("tensor \"c\" is in 1.safetensors and in 2.safetensors");
        } else {
            assert_got(w);
            assert_int_equal(*(const char *)tune_weights_find(w, "c")->data, '2');
            assert_int_equal(*(const char *)tune_weights_find(w, "b")->data, '3');
            assert_null(tune_weights_find(w, "d"));
        }
        tune_weights_close(w);
    }
    assert_ok(tune_file_remove_folder(tmp));
}

static void state_holds_moments_and_weights(void **state)
{
    (void)state;
    const char *folder = "tests/reference/llama-untied", *tmp = test_folder(); /* saved as bfloat16 */
    char path[TUNE_PATH_MAX], name[160];
    int32_t ids[4] = {1, 2, 3, 4}, labels[4] = {2, 3, 4, TUNE_NO_LABEL}, length = 4;
    struct tune_batch batch = {.B = 1, .T = 4, .ids = ids, .labels = labels, .lengths = &length, .tokens = 4, .label_count = 3};
    struct tune_tensor *hidden, *dhidden;
    struct tune_model *m = tune_model_load(folder, dev, TUNE_F32);
    assert_got(m);
    assert_ok(tune_model_reserve(m, 1, 4, TUNE_FOR_TRAINING));
    struct tune_loss *loss = tune_loss_new(m, true);
    struct tune_sums *sums = tune_sums_new(dev, 1);
    struct tune_optimizer *opt = tune_optimizer_new(m, &(struct tune_optimizer_options){
        .kind = TUNE_ADAMW, .beta1 = .9, .beta2 = .999, .eps = 1e-8});
    assert_got(opt);
    assert_ok(tune_model_zero_grad(m, sums));
    assert_ok(tune_model_forward(m, &batch, &hidden));
    assert_ok(tune_loss_forward_backward(loss, hidden, &batch, sums, &dhidden));
    assert_ok(tune_model_backward(m, &batch, dhidden));
    assert_ok(tune_optimizer_clip(opt, 1, sums));
    assert_ok(tune_optimizer_step(opt, 1e-3, sums));
    struct tune_checkpoint *c = tune_checkpoint_new(tmp, folder, TUNE_DTYPES);
    assert_got(c);
    struct tune_progress at = {.step = 1, .best = true, .finished = true};
    assert_ok(tune_checkpoint_save(c, m, opt, &at));
    at.eval_step = 1, at.eval_loss = at.best_loss = 2.5;
    assert_ok(tune_checkpoint_save(c, m, opt, &at)); /* once per step: again is what was found meanwhile */
    char *text;
    size_t size;
    assert_ok(tune_path(path, "%s/checkpoint-1/state/progress.json", tmp));
    assert_ok(tune_file_read(path, 4096, &text, &size));
    assert_non_null(strstr(text, "2.5"));
    free(text);
    assert_ok(tune_path(path, "%s/checkpoint-final/state/optimizer.safetensors", tmp));
    struct tune_safetensors *moments = tune_safetensors_open(path);
    assert_got(moments);
    assert_string_equal(tune_safetensors_metadata(moments, "steps"), "1");
    assert_ok(tune_path(path, "%s/checkpoint-best/state/weights.safetensors", tmp));
    struct tune_safetensors *weights = tune_safetensors_open(path);
    assert_got(weights);
    for (int i = 0; i < tune_model_parameters(m)->count; i++) {
        const struct tune_parameter *p = &tune_model_parameters(m)->at[i];
        for (int which = 0; which < 2; which++) {
            snprintf(name, sizeof name, "%c.%s", "mv"[which], p->name);
            const struct tune_tensor *t = tune_safetensors_find(moments, name);
            assert_non_null(t);
            assert_memory_equal(t->data, tune_optimizer_moment(opt, which) + p->gradient, (size_t)p->count * 4);
        }
        const struct tune_tensor *t = tune_safetensors_find(weights, p->name);
        assert_non_null(t);
        assert_memory_equal(t->data, tune_model_weight(m, p), (size_t)p->count * 4);
    }
    tune_safetensors_close(moments);
    tune_safetensors_close(weights);
    tune_checkpoint_free(c);
    tune_optimizer_free(opt);
    tune_sums_free(sums);
    tune_loss_free(loss);
    tune_model_free(m);
    assert_ok(tune_file_remove_folder(tmp));
}

/* A save that fails leaves nothing under the name and what was there in place. */
static void failed_save(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-tied";
    char path[TUNE_PATH_MAX];
    struct tune_model *m = tune_model_load(folder, dev, TUNE_F32);
    assert_got(m);
    struct tune_checkpoint *c = tune_checkpoint_new(tmp, "tests/no-such-source", TUNE_DTYPES);
    struct tune_progress at = {.step = 7, .finished = true};
    assert_int_equal(tune_checkpoint_save(c, m, NULL, &at), -1);
    assert_error_has("config.json");
    assert_ok(tune_path(path, "%s/checkpoint-7", tmp));
    assert_false(tune_file_exists(path));
    DIR *d = opendir(tmp);
    struct dirent *e;
    while ((e = readdir(d)))
        assert_true(e->d_name[0] == '.');
    closedir(d);
    tune_checkpoint_free(c);
    tune_model_free(m);
    assert_ok(tune_file_remove_folder(tmp));
}

/* What can be known to fail at the end of a run is said at its beginning. */
static void told_before_the_run(void **state)
{
    (void)state;
    const char *tmp = test_folder();
    char path[TUNE_PATH_MAX], *deep = malloc(TUNE_PATH_MAX);
    assert_ok(tune_path(path, "%s/merges.txt", tmp));
    assert_ok(tune_file_make_folder(path)); /* for root too no file that can be read */
    assert_null(tune_checkpoint_new("run", tmp, TUNE_DTYPES));
    assert_error_has("merges.txt");
    assert_ok(tune_file_remove_folder(path));
    memset(deep, 'x', TUNE_PATH_MAX);
    deep[TUNE_PATH_MAX - 80] = 0;
    assert_null(tune_checkpoint_new(deep, tmp, TUNE_DTYPES));
    assert_error_has("longer than 4095 bytes");
    free(deep);
    struct tune_checkpoint *c = tune_checkpoint_new("run", tmp, TUNE_DTYPES);
    assert_got(c);
    tune_checkpoint_free(c);
    assert_ok(tune_file_remove_folder(tmp));
}

/* A weight that only float32 can hold is not saved as infinity. */
static void narrow_dtypes_hold_the_weights(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-tied";
    char path[TUNE_PATH_MAX];
    struct tune_model *m = tune_model_load(folder, dev, TUNE_F32);
    assert_got(m);
    float *w = tune_model_weight(m, &tune_model_parameters(m)->at[1]), before = *w;
    assert_ok(tune_path(path, "%s/out", tmp));
    *w = -65519;
    assert_ok(tune_checkpoint_write_model(m, path, folder, TUNE_F16)); /* rounds to -65504 */
    *w = -65520;
    assert_int_equal(tune_checkpoint_write_model(m, path, folder, TUNE_F16), -1);
    assert_error_has(tune_model_parameters(m)->at[1].name);
    assert_error_has("65520, which does not fit float16 (at most 65504); save with --save-dtype float32");
    assert_ok(tune_checkpoint_write_model(m, path, folder, TUNE_BF16));
    *w = 0x1.fep127f;
    assert_ok(tune_checkpoint_write_model(m, path, folder, TUNE_BF16));
    *w = 0x1.ffp127f;
    assert_int_equal(tune_checkpoint_write_model(m, path, folder, TUNE_BF16), -1);
    assert_error_has("bfloat16");
    assert_ok(tune_checkpoint_write_model(m, path, folder, TUNE_F32));
    *w = before;
    tune_model_free(m);
    assert_ok(tune_file_remove_folder(tmp));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_as_read),
        cmocka_unit_test(sharded),
        cmocka_unit_test(index_is_not_trusted),
        cmocka_unit_test(one_tensor_in_two_files),
        cmocka_unit_test(state_holds_moments_and_weights),
        cmocka_unit_test(failed_save),
        cmocka_unit_test(told_before_the_run),
        cmocka_unit_test(narrow_dtypes_hold_the_weights),
    };
    return cmocka_run_group_tests(tests, open_device, close_device) != 0;
}
