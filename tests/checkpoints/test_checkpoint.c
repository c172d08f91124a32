/* test_checkpoint.c - a folder loaded and saved keeps every tensor's bytes; state holds what training needs. */
#include "values.h"
#include "far/far.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <sys/stat.h>

#include "adapters/adapter_file.h"
#include "devices/ops.h"
#include "checkpoints/checkpoint.h"
#include "checkpoints/disk.h"
#include "core/failure.h"
#include "files/cjson.h"
#include "files/file.h"
#include "files/safetensors.h"
#include "datasets/dataset.h"
#include "datasets/loader.h"
#include "loggers/logger.h"
#include "losses/loss.h"
#include "models/init.h"
#include "models/lora.h"
#include "models/weights.h"
#include "optimizers/optimizer.h"

static struct tune_device *dev;

static int open_device(void **state)
{
    (void)state;
    dev = test_device(2);
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
        const struct tune_array *s = tune_weights_find(x, p->at[i].name), *t = tune_weights_find(y, p->at[i].name);
        assert_non_null(s);
        assert_non_null(t);
        assert_int_equal(s->dtype, t->dtype);
        assert_int_equal(tune_array_bytes(s), tune_array_bytes(t));
        assert_memory_equal(s->data, t->data, (size_t)tune_array_bytes(s));
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
        assert_ok(tune_checkpoint_write_model(m, out, folder, TUNE_AS_READ));
        assert_same_tensors(m, folder, out);
        struct tune_model *back = tune_model_load(out, dev, TUNE_F32);
        assert_got(back);
        tune_model_free(back);
        assert_ok(tune_checkpoint_write_model(m, again, folder, TUNE_F32)); /* and in another dtype it loads as well */
        back = tune_model_load(again, dev, TUNE_F32);
        assert_got(back);
        for (int i = 0; i < tune_model_parameters(m)->count; i++)
            assert_true(same_values(m, back, i, TUNE_WEIGHT));
        tune_model_free(back);
        tune_model_free(m);
        assert_ok(tune_file_remove_folder(tmp));
        count++;
    }
    closedir(d);
    assert_true(count >= 10);
}

/* Shards of at most a few kB, an index, and back. */
static void sharded(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-tied";
    char path[TUNE_PATH_MAX];
    struct tune_model *m = tune_model_load(folder, dev, TUNE_F32);
    assert_got(m);
    struct tune_weights_source source = tune_model_source(m);
    assert_ok(tune_weights_write(tmp, tune_model_parameters(m), TUNE_AS_READ, 8000, &source));
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

static struct tune_checkpoint *checkpoints(const char *run, const char *source)
{
    return tune_checkpoint_new(&(struct tune_checkpoint_options){.run_folder = run, .source = source, .save_dtype = TUNE_AS_READ});
}

/* A model in training, on eight rows of a set of our own. */
struct trainer {
    struct tune_model *m;
    struct tune_loss *loss;
    struct tune_record *sums;
    struct tune_optimizer *opt;
    struct tune_dataset *data;
    struct tune_loader *load;
    struct tune_progress at;
};

static int own_row(void *context, int64_t row, struct tune_example *x)
{
    (void)context;
    if (tune_example_reserve(x, 4) < 0)
        return -1;
    for (int t = 0; t < 4; t++)
        x->ids[t] = (int32_t)(1 + (5 * row + 3 * t) % 17), x->trained[t] = 1;
    x->count = 4;
    return 0;
}

/* lora NULL: all is trained. ema: decay of the averages; 0: none. */
static struct trainer open_averaging(const char *folder, enum tune_optimizer_kind kind, const struct tune_lora_options *lora, double ema)
{
    struct trainer t = {0};
    t.m = lora ? tune_model_load_frozen(folder, dev, TUNE_F32, TUNE_BF16) : tune_model_load(folder, dev, TUNE_F32);
    assert_got(t.m);
    if (lora)
        assert_ok(tune_lora_add(t.m, lora, 7));
    assert_ok(tune_model_reserve(t.m, 2, 4, TUNE_FOR_TRAINING));
    assert_got(t.loss = tune_loss_new(t.m, true));
    assert_got(t.sums = tune_record_new(dev, 1));
    assert_got(t.opt = tune_optimizer_new(t.m, &(struct tune_optimizer_options){
                   .kind = kind, .beta1 = .9, .beta2 = .999, .eps = 1e-8, .weight_decay = .1, .muon_momentum = .9, .ema = ema}));
    assert_got(t.data = tune_dataset_from(8, own_row, NULL, 4));
    assert_got(t.load = tune_loader_new(t.data, &(struct tune_loader_options){.part = TUNE_ALL, .shuffle = true, .batch_size = 2,
                   .accumulate = 1, .max_length = 4, .epochs = 3, .max_steps = -1, .stop_after_seconds = -1}));
    return t;
}

static struct trainer open_with(const char *folder, enum tune_optimizer_kind kind, const struct tune_lora_options *lora)
{
    return open_averaging(folder, kind, lora, 0);
}

static struct trainer open_trainer(const char *folder, enum tune_optimizer_kind kind)
{
    return open_with(folder, kind, NULL);
}

static void close_trainer(struct trainer *t)
{
    tune_loader_free(t->load);
    tune_dataset_free(t->data);
    tune_optimizer_free(t->opt);
    tune_record_free(t->sums);
    tune_loss_free(t->loss);
    tune_model_free(t->m);
}

static void train(struct trainer *t, int steps)
{
    while (steps-- > 0) {
        struct tune_batch batch;
        struct tune_tensor *hidden, *dhidden;
        const struct tune_done_step *records;
        assert_int_equal(tune_loader_more(t->load, &t->at), 1);
        assert_ok(tune_loader_next(t->load, &batch));
        assert_ok(tune_model_zero_grad(t->m, t->sums));
        assert_ok(tune_model_forward(t->m, &batch, &hidden));
        assert_ok(tune_loss_forward_backward(t->loss, hidden, &batch, t->sums, &dhidden));
        assert_ok(tune_model_backward(t->m, &batch, dhidden));
        assert_ok(tune_optimizer_scale(t->opt, 1, t->sums));
        assert_ok(tune_optimizer_step(t->opt, 1e-3, t->sums));
        assert_ok(tune_record_read(t->sums, &records));
        tune_progress_step(&t->at, t->load);
    }
}

static void assert_same(struct trainer *a, struct trainer *b)
{
    const struct tune_parameters *p = tune_model_parameters(a->m);
    for (int i = 0; i < p->count; i++) {
        assert_int_equal(p->at[i].storage, tune_model_parameters(b->m)->at[i].storage);
        assert_true(same_values(a->m, b->m, i, TUNE_WEIGHT));
        for (int which = TUNE_MOMENT_1; which <= TUNE_MOMENT_2 && p->at[i].trainable; which++)
            if (tune_model_state(a->m, which).shape[0] > 0)
                assert_true(same_values(a->m, b->m, i, which));
    }
    assert_int_equal(tune_optimizer_steps(a->opt), tune_optimizer_steps(b->opt));
    assert_int_equal(a->at.step, b->at.step);
    assert_int_equal(a->at.rows, b->at.rows);
    assert_int_equal(a->at.tokens, b->at.tokens);
    assert_true(a->at.epoch == b->at.epoch && a->at.fraction == b->at.fraction);
}

static struct tune_checkpoint *going_on(const char *run, const char *source, const char *from, bool overwrite)
{
    return tune_checkpoint_new(&(struct tune_checkpoint_options){
        .run_folder = run, .source = source, .save_dtype = TUNE_AS_READ, .resume = from, .overwrite = overwrite});
}

/* What is saved is what is in memory, and what goes on from it in a new process is what would have gone on here. */
static void goes_on_bit_for_bit(void **state)
{
    (void)state;
    static const char *const folders[] = {"tests/reference/llama-untied", "tests/reference/llama-tied"}; /* bfloat16; float32 */
    for (int f = 0; f < 2; f++)
        for (int kind = TUNE_ADAMW; kind <= TUNE_MUON; kind++) {
            const char *tmp = test_folder();
            char path[TUNE_PATH_MAX];
            struct trainer a = open_trainer(folders[f], (enum tune_optimizer_kind)kind), b;
            struct tune_checkpoint *c = checkpoints(tmp, folders[f]);
            assert_got(c);
            train(&a, 5); /* in the second epoch */
            a.at.evaluated = true, a.at.eval_step = a.at.best_step = 5, a.at.eval_loss = a.at.best_loss = a.at.patience_loss = 1. / 3, a.at.stale = 2;
            a.at.best = true;
            assert_ok(tune_checkpoint_save(c, a.m, a.opt, &a.at));
            tune_checkpoint_free(c);
            assert_ok(tune_path(path, "%s/checkpoint-5/state/weights.safetensors", tmp));
            assert_int_equal(tune_file_exists(path), f == 0); /* no second copy of float32 weights */
            b = open_trainer(folders[f], (enum tune_optimizer_kind)kind);
            assert_ok(tune_path(path, "%s/checkpoint-5", tmp));
            assert_got(c = going_on(tmp, folders[f], path, false));
            assert_ok(tune_checkpoint_resume(c, b.m, b.opt, b.load, NULL, &b.at));
            assert_same(&a, &b);
            assert_true(b.at.evaluated && b.at.best && b.at.best_step == 5 && b.at.best_loss == 1. / 3 && b.at.eval_loss == 1. / 3 &&
                        b.at.patience_loss == 1. / 3 && b.at.stale == 2 && b.at.eval_step == 5);
            train(&a, 7);
            train(&b, 7);
            assert_same(&a, &b);
            assert_int_equal(tune_loader_more(b.load, &b.at), 0);
            assert_true(b.at.finished);
            tune_checkpoint_free(c);
            close_trainer(&a);
            close_trainer(&b);
            assert_ok(tune_file_remove_folder(tmp));
        }
}

/* True if the weights that were saved in folder are these numbers of the model, rounded as in the file. */
static bool saved_is(struct trainer *t, const char *folder, int which)
{
    const struct tune_parameters *p = tune_model_parameters(t->m);
    struct tune_weights *w = tune_model_lora(t->m) ? NULL : tune_weights_open(folder);
    struct tune_adapter_file *f = tune_model_lora(t->m) ? tune_adapter_file_open(folder) : NULL;
    bool same = w || f;
    for (int i = f ? p->base : 0; i < p->count; i++) {
        const struct tune_array *x = f ? tune_adapter_file_find(f, p->at[i].name, "") : tune_weights_find(w, p->at[i].name);
        float *have = values(t->m, &p->at[i], which);
        void *rounded = calloc((size_t)p->at[i].count, sizeof *have);
        assert_ok(tune_convert(rounded, x->dtype, have, TUNE_F32, p->at[i].count));
        same = same && memcmp(rounded, x->data, (size_t)tune_array_bytes(x)) == 0;
        free(have), free(rounded);
    }
    tune_weights_close(w);
    tune_adapter_file_close(f);
    return same;
}

/* The averages are saved as the model, also of adapters; the weights go on from state/. */
static void averages_are_saved(void **state)
{
    (void)state;
    static const char *const folders[] = {"tests/reference/llama-untied", "tests/reference/llama-tied", "tests/reference/llama-tied"};
    static const struct tune_lora_options lora = {.r = 2, .alpha = 4, .targets = "all-linear", .dora = true};
    for (int f = 0; f < 3; f++) {
        const char *tmp = test_folder();
        char path[TUNE_PATH_MAX];
        const struct tune_lora_options *adapters = f == 2 ? &lora : NULL;
        struct trainer a = open_averaging(folders[f], TUNE_ADAMW, adapters, .6), b, plain = open_with(folders[f], TUNE_ADAMW, adapters);
        struct tune_checkpoint *c = checkpoints(tmp, folders[f]);
        assert_got(c);
        assert_ok(tune_model_exchange(a.m)); /* there are no averages yet */
        train(&a, 5), train(&plain, 5);
        int ema = tune_model_averages_kind(a.m);
        assert_string_equal(tune_model_extra_name(a.m, ema), "ema");
        assert_same(&a, &plain); /* the weights do not depend on them */
        assert_int_equal(tune_model_averages_kind(plain.m), 0);
        assert_ok(tune_model_exchange(plain.m));
        assert_ok(tune_checkpoint_save(c, a.m, a.opt, &a.at));
        tune_checkpoint_free(c);
        assert_same(&a, &plain);
        assert_ok(tune_path(path, "%s/checkpoint-5", tmp));
        assert_true(saved_is(&a, path, ema) && !saved_is(&a, path, TUNE_WEIGHT));
        b = open_averaging(folders[f], TUNE_ADAMW, adapters, .6);
        assert_got(c = going_on(tmp, folders[f], path, false));
        assert_ok(tune_checkpoint_resume(c, b.m, b.opt, b.load, NULL, &b.at));
        tune_checkpoint_free(c);
        for (int step = 0; step < 2; step++) {
            assert_same(&a, &b);
            for (int i = adapters ? tune_model_parameters(a.m)->base : 0; i < tune_model_parameters(a.m)->count; i++)
                assert_true(same_values(a.m, b.m, i, ema));
            train(&a, 3), train(&b, 3);
        }
        close_trainer(&a), close_trainer(&b), close_trainer(&plain);
        assert_ok(tune_file_remove_folder(tmp));
    }
}

static const struct tune_ops *real_ops;

static int no_exchange(struct tune_device *device, struct tune_tensor *x, struct tune_tensor *y)
{
    static int calls;
    return ++calls % 3 == 0 ? tune_error_set("the third one fails") : real_ops->exchange(device, x, y);
}

/* An exchange that failed amidst: nothing is saved of what it left, nor evaluated. */
static void averages_torn(void **state)
{
    (void)state;
    const char *tmp = test_folder();
    struct trainer a = open_averaging("tests/reference/llama-tied", TUNE_ADAMW, NULL, .6);
    struct tune_checkpoint *c = checkpoints(tmp, "tests/reference/llama-tied");
    assert_got(c);
    train(&a, 1);
    real_ops = dev->ops;
    struct tune_ops ops = *real_ops;
    ops.exchange = no_exchange;
    dev->ops = &ops;
    assert_int_equal(tune_checkpoint_save(c, a.m, a.opt, &a.at), -1);
    assert_error_has("the third one fails");
    dev->ops = real_ops;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(tune_checkpoint_save(c, a.m, a.opt, &a.at), -1);
        assert_error_has("an exchange of the weights and their averages failed earlier");
    }
    tune_checkpoint_free(c);
    close_trainer(&a);
    assert_ok(tune_file_remove_folder(tmp));
}

/* The same of a parameter that is longer than the pieces it is written in. */
static void long_tensors(void **state)
{
    (void)state;
    static const char text[] =
        "{\"model_type\": \"llama\", \"vocab_size\": 140000, \"hidden_size\": 8, "
        "\"intermediate_size\": 8, \"num_hidden_layers\": 1, \"num_attention_heads\": 2, "
        "\"tie_word_embeddings\": true, \"initializer_range\": 0.05}";
    const char *tmp = test_folder();
    char folder[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    assert_ok(tune_path(folder, "%s/model", tmp));
    assert_ok(tune_path(path, "%s/checkpoint-2", tmp));
    cJSON *config = cJSON_Parse(text);
    assert_ok(tune_model_init(folder, config, "test", 1, TUNE_BF16, NULL, NULL));
    cJSON_Delete(config);
    struct trainer a = open_trainer(folder, TUNE_ADAMW), b = open_trainer(folder, TUNE_ADAMW);
    assert_true(tune_model_parameters(a.m)->at[0].count > TUNE_PIECE);
    struct tune_checkpoint *c = checkpoints(tmp, folder);
    assert_got(c);
    train(&a, 2);
    assert_ok(tune_checkpoint_save(c, a.m, a.opt, &a.at));
    tune_checkpoint_free(c);
    assert_got(c = going_on(tmp, folder, path, false));
    assert_ok(tune_checkpoint_resume(c, b.m, b.opt, b.load, NULL, &b.at));
    assert_same(&a, &b);
    tune_checkpoint_free(c);
    close_trainer(&a);
    close_trainer(&b);
    assert_ok(tune_file_remove_folder(tmp));
}

/* The same of adapters, dropout among it, saved as they are or narrower; what is in the folder is what they are. */
static void adapters_go_on_bit_for_bit(void **state)
{
    (void)state;
    static const char folder[] = "tests/reference/llama-tied";
    struct tune_lora_options lora = {.r = 2, .alpha = 6, .dropout = .25, .targets = "q_proj,v_proj,down_proj",
                                     .rank_pattern = "down_proj=3"};
    for (int narrow = 0; narrow < 2; narrow++)
        for (int dora = 0; dora < 2; dora++) {
            const char *tmp = test_folder();
            char path[TUNE_PATH_MAX];
            struct tune_checkpoint_options o = {.run_folder = tmp, .source = folder,
                                                .save_dtype = narrow ? TUNE_BF16 : TUNE_AS_READ, .resume = NULL};
            lora.dora = dora;
            struct trainer a = open_with(folder, TUNE_ADAMW, &lora), b;
            struct tune_checkpoint *c = tune_checkpoint_new(&o);
            assert_got(c);
            train(&a, 5);
            assert_ok(tune_checkpoint_save(c, a.m, a.opt, &a.at));
            tune_checkpoint_free(c);
            assert_ok(tune_path(path, "%s/checkpoint-5/state/weights.safetensors", tmp));
            assert_int_equal(tune_file_exists(path), narrow);
            if (narrow) { /* the adapters' numbers alone */
                struct tune_safetensors *f = tune_safetensors_open(path);
                const struct tune_parameters *p = tune_model_parameters(a.m);
                assert_got(f);
                assert_int_equal(tune_safetensors_count(f), p->count - p->base);
                tune_safetensors_close(f);
            }
            assert_ok(tune_path(path, "%s/checkpoint-5/model.safetensors", tmp));
            assert_false(tune_file_exists(path));
            assert_ok(tune_path(path, "%s/checkpoint-5", tmp));
            o.resume = path;
            b = open_with(folder, TUNE_ADAMW, &lora);
            assert_got(c = tune_checkpoint_new(&o));
            assert_ok(tune_checkpoint_resume(c, b.m, b.opt, b.load, NULL, &b.at));
            assert_same(&a, &b);
            train(&a, 7);
            train(&b, 7);
            assert_same(&a, &b);
            tune_checkpoint_free(c);
            close_trainer(&b);
            b = open_with(folder, TUNE_ADAMW, &lora); /* and as somebody's adapter, its numbers alone */
            o.resume = NULL;
            o.adapter = path;
            assert_got(c = tune_checkpoint_new(&o));
            assert_ok(tune_checkpoint_resume(c, b.m, b.opt, b.load, NULL, &b.at));
            assert_int_equal(b.at.step, 0);
            train(&b, 1);
            assert_ok(tune_checkpoint_save(c, b.m, NULL, &b.at));
            tune_checkpoint_free(c);
            close_trainer(&a);
            close_trainer(&b);
            assert_ok(tune_file_remove_folder(tmp));
        }
}

static int updates;
static const struct tune_ops *whole;

/* The second run of weights cannot be updated. */
static int broken_adamw(struct tune_device *d, struct tune_tensor *w, const struct tune_tensor *g, struct tune_tensor *m,
                        struct tune_tensor *v, tune_address step, struct tune_update how)
{
    if (++updates == 1)
        return whole->adamw(d, w, g, m, v, step, how);
    tune_error_set("the device is gone");
    return -1;
}

/* Rows 2 and 3 have nothing to train on. */
static int mute_rows(void *context, int64_t row, struct tune_example *x)
{
    int status = own_row(context, row, x);
    for (int t = 0; t < 4; t++)
        x->trained[t] = row != 2 && row != 3;
    return status;
}

/* An error in a step that left rows out: what is saved has the plan from before that step, as resuming computes it. */
static void plan_of_a_rescue(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-tied";
    char run[TUNE_PATH_MAX], path[TUNE_PATH_MAX], text[512];
    struct trainer t = open_trainer(folder, TUNE_ADAMW);
    tune_loader_free(t.load);
    tune_dataset_free(t.data);
    assert_got(t.data = tune_dataset_from(8, mute_rows, NULL, 4));
    assert_got(t.load = tune_loader_new(t.data, &(struct tune_loader_options){.part = TUNE_ALL, .batch_size = 2, .accumulate = 1,
                   .max_length = 4, .epochs = 3, .max_steps = -1, .stop_after_seconds = -1}));
    assert_ok(tune_path(run, "%s/run", tmp));
    struct tune_logger *log = tune_logger_new(&(struct tune_logger_options){.program = "test", .folder = run, .quiet = true});
    assert_got(log);
    struct tune_failure failure = {.tell = NULL};
    struct tune_checkpoint *c = tune_checkpoint_new(&(struct tune_checkpoint_options){.run_folder = run, .source = folder,
                                                    .save_dtype = TUNE_AS_READ, .log = log, .failure = &failure});
    assert_got(c);
    assert_ok(tune_checkpoint_rescue(c, text, sizeof text));
    assert_string_equal(text, ""); /* nothing to save yet */
    assert_ok(tune_checkpoint_resume(c, t.m, t.opt, t.load, NULL, &t.at));
    assert_ok(failure.save(failure.work, text, sizeof text));
    assert_string_equal(text, "");
    struct tune_batch batch;
    for (int step = 1; step <= 2; step++) {
        struct tune_tensor *hidden, *dhidden;
        assert_int_equal(tune_loader_more(t.load, &t.at), 1);
        assert_int_equal(t.at.planned_steps, step == 1 ? 12 : 11); /* rows 2 to 5 are one step's */
        assert_ok(tune_loader_next(t.load, &batch));
        assert_ok(tune_model_zero_grad(t.m, t.sums));
        if (step == 2)
            break;
        assert_ok(tune_model_forward(t.m, &batch, &hidden));
        assert_ok(tune_loss_forward_backward(t.loss, hidden, &batch, t.sums, &dhidden));
        assert_ok(tune_model_backward(t.m, &batch, dhidden));
        assert_ok(tune_optimizer_scale(t.opt, 1, t.sums));
        assert_ok(tune_optimizer_step(t.opt, 1e-3, t.sums));
        tune_progress_step(&t.at, t.load);
        assert_ok(tune_logger_step(log, &t.at, t.sums));
    }
    assert_ok(failure.save(failure.work, text, sizeof text));
    assert_non_null(strstr(text, "checkpoint-1"));
    assert_ok(tune_path(path, "%s/checkpoint-1/state/progress.json", run));
    char *json;
    size_t size;
    assert_ok(tune_file_read(path, 10000, &json, &size));
    const char *planned = strstr(json, "\"planned_steps\":");
    assert_non_null(planned);
    assert_int_equal(atoi(planned + strlen("\"planned_steps\":")), 12);
    free(json);
    tune_checkpoint_free(c);
    assert_null(failure.save);
    tune_logger_free(log);
    close_trainer(&t);
}

/* A row's numbers of that kind, all of them x. */
static void fill_with(struct tune_model *m, int i, int which, float x)
{
    const struct tune_parameter *p = &tune_model_parameters(m)->at[i];
    float *room = malloc((size_t)p->count * sizeof *room);
    for (int64_t k = 0; k < p->count; k++)
        room[k] = x + (float)k;
    set_values(m, p, which, room);
    free(room);
}

/* Extra tensors are saved and restored under their names, of adapters too. What the checkpoint and the recipe do not agree on
 * is refused. */
static void extras_go_on(void **state)
{
    (void)state;
    const char *folder = "tests/reference/llama-untied";
    struct tune_lora_options lora = {.r = 2, .alpha = 4, .targets = "q_proj,v_proj"};
    for (int adapters = 0; adapters < 2; adapters++) {
        const char *tmp = test_folder();
        char path[TUNE_PATH_MAX];
        struct trainer a = open_with(folder, TUNE_SGD, adapters ? &lora : NULL), b, without;
        const struct tune_parameters *p = tune_model_parameters(a.m);
        int ema = tune_model_extra(a.m, "ema"), sum = tune_model_extra(a.m, "sum");
        assert_true(ema >= 0 && sum >= 0);
        for (int i = 0; i < p->count; i++)
            if (tune_model_has(a.m, &p->at[i], ema))
                fill_with(a.m, i, ema, (float)i), fill_with(a.m, i, sum, -(float)i);
        struct tune_checkpoint *c = checkpoints(tmp, folder);
        assert_got(c);
        train(&a, 2);
        assert_ok(tune_checkpoint_save(c, a.m, a.opt, &a.at));
        tune_checkpoint_free(c);
        b = open_with(folder, TUNE_SGD, adapters ? &lora : NULL);
        assert_int_equal(tune_model_extra(b.m, "sum"), TUNE_EXTRA); /* in another order */
        assert_int_equal(tune_model_extra(b.m, "ema"), TUNE_EXTRA + 1);
        assert_ok(tune_path(path, "%s/checkpoint-2", tmp));
        assert_got(c = going_on(tmp, folder, path, false));
        assert_ok(tune_checkpoint_resume(c, b.m, b.opt, b.load, NULL, &b.at));
        assert_same(&a, &b);
        int compared = 0;
        for (int i = 0; i < p->count; i++) {
            if (!tune_model_has(a.m, &p->at[i], ema))
                continue;
            float *x = values(a.m, &p->at[i], ema), *y = values(b.m, &tune_model_parameters(b.m)->at[i], TUNE_EXTRA + 1);
            assert_memory_equal(x, y, (size_t)p->at[i].count * sizeof *x);
            assert_true(x[0] == (float)i);
            free(x), free(y);
            compared++;
        }
        assert_true(compared > 3);
        without = open_with(folder, TUNE_SGD, adapters ? &lora : NULL);
        assert_int_equal(tune_checkpoint_resume(c, without.m, without.opt, without.load, NULL, &without.at), -1);
        assert_error_has("the recipe does not keep");
        assert_int_equal(tune_model_extra(without.m, "ema"), TUNE_EXTRA);
        assert_int_equal(tune_checkpoint_resume(c, without.m, without.opt, without.load, NULL, &without.at), -1);
        assert_error_has("the recipe does not keep");
        assert_int_equal(tune_model_extra(without.m, "other"), TUNE_EXTRA + 1);
        assert_int_equal(tune_checkpoint_resume(c, without.m, without.opt, without.load, NULL, &without.at), -1);
        assert_error_has("other.");
        assert_ok(tune_path(path, "%s/checkpoint-2/state/extra.safetensors", tmp));
        char kept_file[TUNE_PATH_MAX];
        assert_ok(tune_path(kept_file, "%s/kept", tmp));
        assert_int_equal(link(path, kept_file), 0);
        FILE *f = fopen(path, "r+");
        assert_non_null(f);
        assert_int_equal(fseek(f, -1, SEEK_END), 0);
        int last = fgetc(f);
        assert_int_equal(fseek(f, -1, SEEK_END), 0);
        assert_true(fputc(last ^ 1, f) != EOF && fclose(f) == 0);
        assert_int_equal(tune_checkpoint_resume(c, b.m, b.opt, b.load, NULL, &b.at), -1);
        assert_error_has("\"extra_hash\"");
        assert_int_equal(unlink(path), 0);
        assert_int_equal(tune_checkpoint_resume(c, b.m, b.opt, b.load, NULL, &b.at), -1);
        assert_error_has("extra.safetensors");
        char kept[TUNE_PATH_MAX]; /* one that progress.json does not know */
        assert_ok(tune_path(kept, "%s/checkpoint-2/state/progress.json", tmp));
        char *text, *hash;
        size_t size;
        assert_ok(tune_file_read(kept, 1 << 20, &text, &size));
        assert_non_null(hash = strstr(text, "extra_hash"));
        memcpy(hash, "other_hash", 10);
        assert_ok(tune_file_write(kept, text, size));
        free(text);
        assert_int_equal(link(kept_file, path), 0);
        assert_int_equal(tune_checkpoint_resume(c, b.m, b.opt, b.load, NULL, &b.at), -1);
        assert_error_has("\"extra_hash\" is missing");
        tune_checkpoint_free(c);
        close_trainer(&a), close_trainer(&b), close_trainer(&without);
        assert_ok(tune_file_remove_folder(tmp));
    }
}

/* An error in the middle of an update: half of the weights are of the next step, and nothing of it may be saved. */
static void half_a_step(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-tied";
    char path[TUNE_PATH_MAX];
    struct trainer t = open_trainer(folder, TUNE_ADAMW);
    struct tune_checkpoint *c = checkpoints(tmp, folder);
    assert_got(c);
    train(&t, 1);
    assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at));
    train(&t, 1);
    struct tune_batch batch;
    struct tune_tensor *hidden, *dhidden;
    assert_int_equal(tune_loader_more(t.load, &t.at), 1);
    assert_ok(tune_loader_next(t.load, &batch));
    assert_ok(tune_model_zero_grad(t.m, t.sums));
    assert_ok(tune_model_forward(t.m, &batch, &hidden));
    assert_ok(tune_loss_forward_backward(t.loss, hidden, &batch, t.sums, &dhidden));
    assert_ok(tune_model_backward(t.m, &batch, dhidden));
    assert_ok(tune_optimizer_scale(t.opt, 1, t.sums));
    struct tune_ops broken = *dev->ops;
    broken.adamw = broken_adamw;
    whole = dev->ops;
    dev->ops = &broken;
    int status = tune_optimizer_step(t.opt, 1e-3, t.sums);
    dev->ops = whole;
    assert_int_equal(status, -1);
    assert_int_equal(updates, 2);
    assert_int_equal(tune_checkpoint_save(c, t.m, t.opt, &t.at), -1);
    assert_error_has("failed after it had updated some weights");
    assert_ok(tune_path(path, "%s/checkpoint-2", tmp));
    assert_false(tune_file_exists(path));
    assert_ok(tune_path(path, "%s/checkpoint-1/state/progress.json", tmp));
    assert_true(tune_file_exists(path));
    tune_checkpoint_free(c);
    close_trainer(&t);
    assert_ok(tune_file_remove_folder(tmp));
}

/* A save that fails leaves nothing under the name and what was there in place. */
static void failed_save(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-tied";
    char path[TUNE_PATH_MAX];
    struct trainer t = open_trainer(folder, TUNE_ADAMW);
    assert_null(checkpoints(tmp, "tests/no-such-source"));
    assert_error_has("config.json");
    struct tune_checkpoint *c = checkpoints(tmp, folder);
    assert_got(c);
    train(&t, 1);
    assert_ok(tune_path(path, "%s/checkpoint-1", tmp));
    assert_ok(tune_file_make_folder(path));
    assert_ok(tune_path(path, "%s/checkpoint-1/mine", tmp));
    assert_ok(tune_file_write(path, "x", 1)); /* somebody's folder of that name is not replaced */
    t.at.finished = true;
    assert_int_equal(tune_checkpoint_save(c, t.m, t.opt, &t.at), -1);
    assert_error_has("checkpoint-1");
    assert_error_has("the weights of step 1 are whole and kept in");
    assert_ok(tune_path(path, "%s/weights-1/model.safetensors", tmp));
    assert_true(tune_file_exists(path));
    assert_ok(tune_path(path, "%s/weights-1/state", tmp));
    assert_false(tune_file_exists(path));
    int entries = 0;
    DIR *d = opendir(tmp);
    for (struct dirent *e; (e = readdir(d));)
        entries += e->d_name[0] != '.';
    closedir(d);
    assert_int_equal(entries, 2); /* no half-written folder, no link */
    tune_checkpoint_free(c);
    close_trainer(&t);
    assert_ok(tune_file_remove_folder(tmp));
}

/* What config.json of a folder says about tying. */
static bool says_untied(const char *folder)
{
    cJSON *json = tune_cjson_read_in(folder, "config.json", 1 << 16);
    assert_got(json);
    bool untied = cJSON_IsFalse(cJSON_GetObjectItem(json, "tie_word_embeddings"));
    cJSON_Delete(json);
    return untied;
}

/* A config.json that ties two matrices that differ: a saved one says that they are not tied. */
static void a_head_of_its_own(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-untied";
    char source[TUNE_PATH_MAX], run[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    struct trainer t = open_trainer(folder, TUNE_ADAMW);
    assert_ok(tune_path(source, "%s/source", tmp));
    assert_ok(tune_checkpoint_write_model(t.m, source, folder, TUNE_AS_READ));
    cJSON *config = tune_cjson_read_in(source, "config.json", 1 << 16);
    assert_true(cJSON_ReplaceItemInObject(config, "tie_word_embeddings", cJSON_CreateTrue()));
    assert_ok(tune_cjson_write(source, "config.json", config, true));
    cJSON_Delete(config);
    assert_false(says_untied(source));
    assert_ok(tune_path(path, "%s/again", tmp));
    assert_ok(tune_checkpoint_write_model(t.m, path, source, TUNE_AS_READ));
    assert_true(says_untied(path));
    assert_ok(tune_path(run, "%s/run", tmp));
    assert_ok(tune_file_make_folder(run));
    struct tune_checkpoint *c = checkpoints(run, source);
    assert_got(c);
    train(&t, 1);
    assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at));
    assert_ok(tune_path(path, "%s/checkpoint-1", run));
    assert_true(says_untied(path));
    tune_checkpoint_free(c);
    close_trainer(&t);
    assert_ok(tune_file_remove_folder(tmp));
}

/* The folder the model came from may go while it is trained. */
static void needs_no_source(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-tied";
    char source[TUNE_PATH_MAX], run[TUNE_PATH_MAX], path[TUNE_PATH_MAX];
    struct trainer t = open_trainer(folder, TUNE_ADAMW);
    assert_ok(tune_path(source, "%s/source", tmp));
    assert_ok(tune_path(run, "%s/run", tmp));
    assert_ok(tune_file_make_folder(run));
    assert_ok(tune_checkpoint_write_model(t.m, source, folder, TUNE_AS_READ));
    struct tune_checkpoint *c = checkpoints(run, source);
    assert_got(c);
    assert_ok(tune_file_remove_folder(source));
    train(&t, 1);
    assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at));
    assert_ok(tune_path(path, "%s/checkpoint-1", run));
    struct tune_model *back = tune_model_load(path, dev, TUNE_F32);
    assert_got(back);
    tune_model_free(back);
    tune_checkpoint_free(c);
    close_trainer(&t);
    assert_ok(tune_file_remove_folder(tmp));
}

static bool there(const char *run, int step)
{
    char path[TUNE_PATH_MAX];
    assert_ok(tune_path(path, "%s/checkpoint-%d", run, step));
    return tune_file_is_folder(path);
}

static void assert_link(const char *run, const char *link, const char *target)
{
    char path[TUNE_PATH_MAX], text[64];
    assert_ok(tune_path(path, "%s/%s", run, link));
    ssize_t n = readlink(path, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    assert_string_equal(text, target);
}

/* The newest ones stay, and those that have another name. Going back takes what came after, if that is asked for. */
static void keeps_the_last(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-tied";
    char path[TUNE_PATH_MAX];
    struct trainer t = open_trainer(folder, TUNE_ADAMW);
    struct tune_checkpoint *c = tune_checkpoint_new(&(struct tune_checkpoint_options){
        .run_folder = tmp, .source = folder, .save_dtype = TUNE_AS_READ, .keep_last = 2});
    assert_got(c);
    for (int i = 1; i <= 6; i++) {
        train(&t, 1);
        t.at.best = i == 2;
        if (i == 2)
            t.at.evaluated = true, t.at.eval_step = t.at.best_step = 2, t.at.eval_loss = t.at.best_loss = 1;
        assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at));
        for (int k = 1; k <= 6; k++)
            assert_int_equal(there(tmp, k), k <= i && (k > i - 2 || (k == 2 && i >= 2)));
    }
    assert_link(tmp, "checkpoint-best", "checkpoint-2");
    tune_checkpoint_free(c);
    assert_ok(tune_path(path, "%s/checkpoint-5", tmp));
    assert_got(c = going_on(tmp, folder, path, false));
    assert_int_equal(tune_checkpoint_resume(c, t.m, t.opt, t.load, NULL, &t.at), -1);
    assert_int_equal(tune_error_kind(), TUNE_ERROR_USAGE);
    assert_error_has("checkpoint-6");
    assert_true(there(tmp, 6) && t.at.step == 6);
    tune_checkpoint_free(c);
    char link[TUNE_PATH_MAX];
    assert_ok(tune_path(link, "%s/checkpoint-best", tmp));
    assert_ok(tune_file_link(link, "checkpoint-6")); /* of what is gone back behind */
    assert_ok(tune_path(link, "%s/checkpoint-final", tmp));
    assert_ok(tune_file_link(link, "checkpoint-6"));
    t.at.finished = true;
    assert_got(c = going_on(tmp, folder, path, true));
    assert_ok(tune_checkpoint_resume(c, t.m, t.opt, t.load, NULL, &t.at));
    assert_true(!there(tmp, 6) && there(tmp, 5) && there(tmp, 2) && t.at.step == 5 && !t.at.finished);
    assert_link(tmp, "checkpoint-best", "checkpoint-2");
    assert_link(tmp, "checkpoint-final", "");
    assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at)); /* of the step it came from: the same again */
    train(&t, 1);
    assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at));
    assert_true(there(tmp, 6) && there(tmp, 5));
    tune_checkpoint_free(c);
    assert_got(c = tune_checkpoint_new(&(struct tune_checkpoint_options){
        .run_folder = tmp, .source = folder, .save_dtype = TUNE_AS_READ, .keep_last = 1}));
    for (int i = 7; i <= 9; i++) { /* the end of a plan, and steps behind it */
        train(&t, 1);
        t.at.finished = i == 7;
        assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at));
    }
    assert_link(tmp, "checkpoint-final", "checkpoint-7");
    assert_true(there(tmp, 2) && there(tmp, 7) && !there(tmp, 6) && !there(tmp, 8) && there(tmp, 9));
    tune_checkpoint_free(c);
    close_trainer(&t);
    assert_ok(tune_file_remove_folder(tmp));
}

/* --no-save: nothing where the run ends, the source's files not read before they are needed; else as ever. */
static void unsaved_end(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-tied";
    struct tune_checkpoint_options o = {.run_folder = tmp, .source = "/nowhere", .save_dtype = TUNE_AS_READ, .unsaved = true};
    struct trainer t = open_trainer(folder, TUNE_ADAMW);
    assert_null(tune_checkpoint_new(&o));
    o.late = true;
    struct tune_checkpoint *c = tune_checkpoint_new(&o);
    assert_got(c);
    train(&t, 1);
    t.at.stopped = "`stop_at_step`";
    assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at));
    assert_false(there(tmp, 1));
    t.at.stopped = NULL;
    assert_int_equal(tune_checkpoint_save(c, t.m, t.opt, &t.at), -1); /* in the middle it wants what it did not read */
    assert_error_has("/nowhere");
    tune_checkpoint_free(c);
    o.source = folder;
    assert_got(c = tune_checkpoint_new(&o));
    assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at));
    assert_true(there(tmp, 1));
    t.at.finished = true; /* at the step that --save-every saved: only its link */
    assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at));
    assert_link(tmp, "checkpoint-final", "checkpoint-1");
    train(&t, 1);
    t.at.finished = t.at.best = true;
    assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at));
    assert_false(there(tmp, 2));
    assert_link(tmp, "checkpoint-best", "");
    tune_checkpoint_free(c);
    close_trainer(&t);
    assert_ok(tune_file_remove_folder(tmp));
}

#define PROGRESS(step, rows)                                                                                    \
    "{\"step\": " step ", \"planned_steps\": 12, \"rows\": " rows ", \"tokens\": 9, \"labels\": 8, \"padded_tokens\": 9, " \
    "\"epoch\": 0.3, \"finished\": false}"

/* A state that is not this model's, or not whole, is named; the folder stays as it is. */
static void refuses_what_is_broken(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-untied";
    static const struct {
        const char *file, *text, *message; /* text NULL: the file is cut in half, "": its last byte is another */
    } cases[] = {
        {"config.json", "{}", "config.json is not what it was"},
        {"state/progress.json", "{}", "\"step\" is missing"},
        {"state/progress.json", "{\"step\": 1.5}", "\"step\" is missing or makes no sense"},
        {"state/progress.json", "{\"step\": 1,", "progress.json:1:12: the JSON ends here"},
        {"state/progress.json", PROGRESS("1", "5"), "\"rows\" is missing or makes no sense"},
        {"state/progress.json", PROGRESS("1", "3"), "\"weights_hash\" is missing there"},
        {"state/progress.json", PROGRESS("2", "3"), "\"step\" in its state/progress.json is 2"},
        {"state/weights.safetensors", NULL, "weights.safetensors"},
        {"state/optimizer.safetensors", NULL, "optimizer.safetensors"},
        {"state/weights.safetensors", "", "weights.safetensors is not the file that was saved with"},
        {"state/optimizer.safetensors", "", "optimizer.safetensors is not the file that was saved with"},
        {"state/optimizer.safetensors", "\10\0\0\0\0\0\0\0{}      ", "tensor m.model.embed_tokens.weight is missing"},
    };
    struct trainer t = open_trainer(folder, TUNE_ADAMW);
    train(&t, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char path[TUNE_PATH_MAX], *whole;
        size_t size;
        struct tune_checkpoint *c = checkpoints(tmp, folder);
        assert_got(c);
        assert_ok(tune_checkpoint_save(c, t.m, t.opt, &t.at));
        tune_checkpoint_free(c);
        assert_ok(tune_path(path, "%s/checkpoint-1/%s", tmp, cases[i].file));
        assert_ok(tune_file_read(path, 1 << 24, &whole, &size));
        const char *text = cases[i].text && *cases[i].text ? cases[i].text : whole;
        size_t written = !cases[i].text ? size / 2 : text == whole ? size : *text == 8 ? 16 : strlen(text);
        whole[size - 1] ^= 1;
        assert_ok(tune_file_write(path, text, written));
        assert_ok(tune_path(path, "%s/checkpoint-1", tmp));
        assert_got(c = going_on(tmp, folder, path, false));
        struct tune_progress at = {.step = 77};
        assert_int_equal(tune_checkpoint_resume(c, t.m, t.opt, t.load, NULL, &at), -1);
        assert_error_has(cases[i].message);
        assert_int_equal(at.step, 77);
        tune_checkpoint_free(c);
        free(whole);
        assert_ok(tune_file_remove_folder(path));
    }
    close_trainer(&t);
    assert_ok(tune_file_remove_folder(tmp));
}

/* What can be known to fail at the end of a run is said at its beginning. */
static void told_before_the_run(void **state)
{
    (void)state;
    const char *tmp = test_folder();
    char path[TUNE_PATH_MAX], *deep = malloc(TUNE_PATH_MAX);
    test_write(tmp, "config.json", "{}", 2);
    assert_ok(tune_path(path, "%s/merges.txt", tmp));
    assert_ok(tune_file_make_folder(path)); /* for root too no file that can be read */
    assert_null(checkpoints("run", tmp));
    assert_error_has("merges.txt");
    assert_ok(tune_file_remove_folder(path));
    memset(deep, 'x', TUNE_PATH_MAX);
    deep[TUNE_PATH_MAX - 80] = 0;
    assert_null(checkpoints(deep, tmp));
    assert_error_has("longer than 4095 bytes");
    free(deep);
    struct tune_checkpoint *c = checkpoints("run", tmp);
    assert_got(c);
    tune_checkpoint_free(c);
    assert_ok(tune_file_remove_folder(tmp));
}

/* The first number of the second parameter. */
static void set_first(struct tune_model *m, float x)
{
    assert_ok(tune_model_write(m, &tune_model_parameters(m)->at[1], TUNE_WEIGHT, 0, 1, &x));
}

/* A weight that only float32 can hold is not saved as infinity. */
static void narrow_dtypes_hold_the_weights(void **state)
{
    (void)state;
    const char *tmp = test_folder(), *folder = "tests/reference/llama-tied";
    char path[TUNE_PATH_MAX];
    struct tune_model *m = tune_model_load(folder, dev, TUNE_F32);
    assert_got(m);
    assert_ok(tune_path(path, "%s/out", tmp));
    set_first(m, -65519);
    assert_ok(tune_checkpoint_write_model(m, path, folder, TUNE_F16)); /* rounds to -65504 */
    set_first(m, -65520);
    assert_int_equal(tune_checkpoint_write_model(m, path, folder, TUNE_F16), -1);
    assert_error_has(tune_model_parameters(m)->at[1].name);
    assert_error_has("65520, which does not fit float16 (at most 65504); save with `save_dtype` float32");
    assert_ok(tune_checkpoint_write_model(m, path, folder, TUNE_BF16));
    set_first(m, 0x1.fep127f);
    assert_ok(tune_checkpoint_write_model(m, path, folder, TUNE_BF16));
    set_first(m, 0x1.ffp127f);
    assert_int_equal(tune_checkpoint_write_model(m, path, folder, TUNE_BF16), -1);
    assert_error_has("bfloat16");
    assert_ok(tune_checkpoint_write_model(m, path, folder, TUNE_F32));
    tune_model_free(m);
    assert_ok(tune_file_remove_folder(tmp));
}

/* How many checkpoints lie on the disk at once, by the plan. */
static void disk_plans(void **state)
{
    (void)state;
    static const struct {
        struct tune_disk_plan plan;
        int64_t count;
    } cases[] = {
        {{.steps = 34, .at_end = true}, 1},
        {{.steps = 34, .at_end = true, .eval_every = 4}, 2},
        {{.steps = 34, .eval_every = 4}, 2},
        {{.steps = 34}, 0},
        {{.steps = 34, .from = 34, .save_every = 10, .at_end = true}, 0},
        {{.steps = 34, .save_every = 10, .at_end = true}, 4},
        {{.steps = 34, .save_every = 10}, 3},
        {{.steps = 34, .save_every = 10, .at_end = true, .eval_every = 4}, 5}, /* the last one has room for a new best */
        {{.steps = 30, .save_every = 10, .at_end = true}, 3}, /* the last one is one of them */
        {{.steps = 30, .save_every = 10, .at_end = true, .eval_every = 4}, 5},
        {{.steps = 34, .from = 15, .save_every = 10, .at_end = true}, 3},
        {{.steps = 34, .save_every = 10, .keep_last = 2, .at_end = true}, 3}, /* and the new one, before the oldest goes */
        {{.steps = 34, .save_every = 10, .keep_last = 4, .at_end = true}, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tune_disk_plan_count(&cases[i].plan), cases[i].count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_as_read),
        cmocka_unit_test(sharded),
        cmocka_unit_test(index_is_not_trusted),
        cmocka_unit_test(one_tensor_in_two_files),
        cmocka_unit_test(goes_on_bit_for_bit),
        cmocka_unit_test(averages_are_saved), cmocka_unit_test(averages_torn),
        cmocka_unit_test(long_tensors),
        cmocka_unit_test(adapters_go_on_bit_for_bit),
        cmocka_unit_test(extras_go_on),
        cmocka_unit_test(half_a_step), cmocka_unit_test(disk_plans), cmocka_unit_test(plan_of_a_rescue),
        cmocka_unit_test(failed_save),
        cmocka_unit_test(a_head_of_its_own), cmocka_unit_test(needs_no_source),
        cmocka_unit_test(keeps_the_last),
        cmocka_unit_test(unsaved_end),
        cmocka_unit_test(refuses_what_is_broken),
        cmocka_unit_test(told_before_the_run),
        cmocka_unit_test(narrow_dtypes_hold_the_weights),
    };
    return cmocka_run_group_tests(tests, open_device, close_device) != 0;
}
