/* test_peft.c - adapters that PEFT made (tests/reference/adapters), read into models: logits, loss, gradients and twenty AdamW
 * steps against what PEFT and PyTorch compute in float64; written again; hostile folders. */
#include "adapter_folders.h"
#include "adapters/adapter.h"
#include "files/safetensors.h"
#include "devices/ops.h"
#include "losses/loss.h"
#include "optimizers/optimizer.h"
#include "values.h"
#include "logits.h"

static const char *const made_by_peft[] = {"lora",       "lora-biases", "lora-untied", "lora-granite", "lora-embedding", "lora-head", "dora-whole",
                                           "lora-layer", "dora",        "dora-biases", "rslora-patterns",
                                           "qlora",      "qlora-dora"};
enum { MADE = sizeof made_by_peft / sizeof *made_by_peft, STEPS = 20 };

static double real(const struct tune_array *t, int64_t i)
{
    double x;
    float f;
    assert_non_null(t);
    if (t->dtype == TUNE_F64) {
        memcpy(&x, (char *)t->data + 8 * i, 8);
        return x;
    }
    assert_int_equal(t->dtype, TUNE_F32);
    memcpy(&f, (char *)t->data + 4 * i, 4);
    return f;
}

static int32_t whole(const struct tune_array *t, int64_t i)
{
    int64_t x;
    assert_non_null(t);
    memcpy(&x, (char *)t->data + 8 * i, 8);
    return (int32_t)x;
}

/* An adapter, its base's tokens, what they must give. */
struct reference {
    char folder[128], base[160];
    struct tune_adapter_config config;
    struct tune_safetensors *inputs, *expected;
    struct tune_batch batch;
    int32_t *ids, *labels, *lengths;
};

static struct tune_safetensors *expected_of(const char *folder)
{
    char path[TUNE_PATH_MAX];
    assert_ok(tune_path(path, "%s/expected.safetensors", folder));
    struct tune_safetensors *f = tune_safetensors_open(path);
    assert_got(f);
    return f;
}

static void reference_open(struct reference *r, const char *name)
{
    snprintf(r->folder, sizeof r->folder, "tests/reference/adapters/%s", name);
    assert_ok(tune_adapter_config_read(&r->config, r->folder));
    snprintf(r->base, sizeof r->base, "tests/reference/%s", r->config.base);
    r->inputs = expected_of(r->base);
    r->expected = expected_of(r->folder);
    const struct tune_array *ids = tune_safetensors_find(r->inputs, "input_ids");
    int B = (int)ids->shape[0], T = (int)ids->shape[1], count = 0;
    r->ids = malloc(4 * (size_t)(B * T));
    r->labels = malloc(4 * (size_t)(B * T));
    r->lengths = malloc(4 * (size_t)B);
    for (int i = 0; i < B * T; i++) {
        r->ids[i] = whole(ids, i);
        r->labels[i] = whole(tune_safetensors_find(r->inputs, "labels_shifted"), i);
        count += r->labels[i] != TUNE_NO_LABEL;
    }
    for (int b = 0; b < B; b++)
        r->lengths[b] = T;
    r->batch = (struct tune_batch){.B = B, .T = T, .ids = r->ids, .labels = r->labels, .lengths = r->lengths, .tokens = B * T,
                                   .label_count = count};
}

static void reference_close(struct reference *r)
{
    tune_safetensors_close(r->inputs);
    tune_safetensors_close(r->expected);
    tune_adapter_config_free(&r->config);
    free(r->ids);
    free(r->labels);
    free(r->lengths);
}

/* The base, frozen, kept as it was when PEFT trained on it, with the adapter of the folder. */
static struct tune_model *load(const struct reference *r, int what)
{
    enum tune_dtype storage = strstr(r->folder, "/qlora") ? TUNE_NF4 : TUNE_F32;
    struct tune_model *m = tune_model_load_frozen(r->base, device, TUNE_F32, storage);
    assert_got(m);
    assert_ok(tune_lora_add(m, &r->config.lora, 1));
    assert_ok(tune_model_reserve(m, r->batch.B, r->batch.T, what));
    assert_ok(tune_adapter_read(m, r->folder));
    return m;
}

/* Distances, relative to the norm of what is expected. */
struct distance {
    double logits, loss, gradient, adamw;
};

static double logits_error(struct tune_model *m, const struct reference *r)
{
    struct tune_tensor *hidden;
    int64_t N = r->batch.tokens, V = tune_model_vocabulary(m);
    float *got = malloc(sizeof *got * (size_t)(N * V));
    double d = 0, size = 0;
    assert_ok(tune_model_infer(m, &r->batch, &hidden));
    assert_ok(model_logits(m, hidden, 0, N, got));
    const struct tune_array *logits = tune_safetensors_find(r->expected, "logits");
    for (int64_t i = 0; i < N * V; i++) {
        double x = real(logits, i);
        d += (got[i] - x) * (got[i] - x);
        size += x * x;
    }
    free(got);
    return sqrt(d / size);
}

/* The worst of all adapter tensors' gradients. */
static double gradient_error(struct tune_model *m, const struct reference *r)
{
    const struct tune_parameters *t = tune_model_parameters(m);
    double worst = 0;
    assert_true(t->count > t->base);
    for (int i = t->base; i < t->count; i++) {
        char name[160];
        double d = 0, size = 0;
        snprintf(name, sizeof name, "grad." TUNE_ADAPTER_PREFIX "%s", t->at[i].name);
        const struct tune_array *want = tune_safetensors_find(r->expected, name);
        float *got = values(m, &t->at[i], TUNE_GRADIENT);
        for (int64_t k = 0; k < t->at[i].count; k++) {
            double x = real(want, k), e = got[k] / (double)r->batch.label_count - x;
            d += e * e;
            size += x * x;
        }
        free(got);
        worst = test_worse(worst, sqrt(d / size));
    }
    return worst;
}

static double mean_loss(struct tune_model *m, struct tune_loss *loss, const struct reference *r)
{
    struct tune_tensor *hidden;
    double sum = 0;
    assert_ok(tune_model_infer(m, &r->batch, &hidden));
    assert_ok(tune_loss_forward(loss, hidden, &r->batch, &sum));
    return sum / (double)r->batch.label_count;
}

static void backward(struct tune_model *m, struct tune_loss *loss, struct tune_record *sums, const struct reference *r)
{
    struct tune_tensor *hidden, *dhidden;
    assert_ok(tune_model_zero_grad(m, sums));
    assert_ok(tune_model_forward(m, &r->batch, &hidden));
    assert_ok(tune_loss_forward_backward(loss, hidden, &r->batch, sums, &dhidden));
    assert_ok(tune_model_backward(m, &r->batch, dhidden));
}

static struct distance compare(const char *name, int what)
{
    struct reference r;
    struct distance d = {0};
    reference_open(&r, name);
    struct tune_model *m = load(&r, what);
    struct tune_loss *loss = tune_loss_new(m, true);
    struct tune_record *sums = tune_record_new(device, 1);
    struct tune_optimizer *opt = tune_optimizer_new(m, &(struct tune_optimizer_options){
        .kind = TUNE_ADAMW, .beta1 = .9, .beta2 = .999, .eps = 1e-8, .weight_decay = .01, .decay = TUNE_DECAY_ALL});
    assert_got(loss);
    assert_got(sums);
    assert_got(opt);
    d.logits = logits_error(m, &r);
    const struct tune_array *losses = tune_safetensors_find(r.expected, "adamw_losses");
    for (int step = 0; step <= STEPS; step++) {
        const struct tune_done_step *records;
        double want = real(losses, step), error = fabs(mean_loss(m, loss, &r) - want) / want;
        d.adamw = test_worse(d.adamw, error);
        d.loss = step == 0 ? error : d.loss;
        backward(m, loss, sums, &r);
        d.gradient = step == 0 ? gradient_error(m, &r) : d.gradient;
        assert_ok(tune_optimizer_scale(opt, 0, sums));
        assert_ok(tune_optimizer_step(opt, 1e-2, sums));
        assert_ok(tune_record_read(sums, &records));
    }
    tune_optimizer_free(opt);
    tune_record_free(sums);
    tune_loss_free(loss);
    tune_model_free(m);
    reference_close(&r);
    return d;
}

static void numbers_are_pefts(void **state)
{
    (void)state;
    for (int i = 0; i < MADE; i++)
        for (int checkpointing = 0; checkpointing < 2; checkpointing++) {
            struct distance d = compare(made_by_peft[i], TUNE_FOR_TRAINING | (checkpointing ? TUNE_CHECKPOINTING : 0));
            print_message("# %s: logits %.1e, loss %.1e, gradients %.1e, losses of %d AdamW steps %.1e\n", made_by_peft[i],
                          d.logits, d.loss, d.gradient, STEPS, d.adamw);
            assert_true(d.logits < 2e-6 && d.loss < 1e-6 && d.gradient < 1e-5 && d.adamw < 1e-5);
        }
}

/* Tensors of the two files: the same names, shapes and bits, in the same order. */
static void assert_same_tensors(const char *a, const char *b)
{
    char path[TUNE_PATH_MAX];
    struct tune_safetensors *f[2];
    for (int i = 0; i < 2; i++) {
        assert_ok(tune_path(path, "%s/adapter_model.safetensors", i ? b : a));
        f[i] = tune_safetensors_open(path);
        assert_got(f[i]);
    }
    assert_int_equal(tune_safetensors_count(f[0]), tune_safetensors_count(f[1]));
    for (int64_t i = 0; i < tune_safetensors_count(f[0]); i++) {
        const struct tune_array *x = tune_safetensors_at(f[0], i), *y = tune_safetensors_at(f[1], i);
        assert_string_equal(tune_safetensors_name(f[0], i), tune_safetensors_name(f[1], i));
        assert_int_equal(x->dtype, y->dtype);
        assert_int_equal(x->ndim, y->ndim);
        assert_memory_equal(x->shape, y->shape, sizeof *x->shape * (size_t)x->ndim);
        assert_memory_equal(x->data, y->data, (size_t)tune_array_bytes(x));
    }
    tune_safetensors_close(f[0]);
    tune_safetensors_close(f[1]);
}

static void what_was_read_is_written_again(void **state)
{
    (void)state;
    for (int i = 0; i < MADE; i++) {
        struct reference r;
        struct tune_adapter_config c;
        reference_open(&r, made_by_peft[i]);
        struct tune_model *m = load(&r, 0);
        assert_ok(tune_adapter_write(m, home, r.config.base, TUNE_F32));
        assert_same_tensors(r.folder, home);
        assert_ok(tune_adapter_config_read(&c, home));
        assert_string_equal(c.lora.targets, r.config.lora.targets);
        assert_int_equal(c.lora.r, r.config.lora.r);
        tune_adapter_config_free(&c);
        /* half precision is read as what it holds */
        assert_ok(tune_adapter_write(m, home, NULL, TUNE_BF16));
        assert_ok(tune_adapter_read(m, home));
        double error = logits_error(m, &r);
        assert_true(error > 1e-5 && error < 3e-2);
        tune_model_free(m);
        reference_close(&r);
    }
}

static void a_folder_is_compared(void **state)
{
    (void)state;
    for (int i = 0; i < MADE; i++)
        for (int storage = 0; storage < 2; storage++) {
            struct reference r;
            reference_open(&r, made_by_peft[i]);
            struct tune_model *m = tune_model_load_frozen(r.base, device, TUNE_F32, storage ? TUNE_BF16 : TUNE_F32);
            assert_got(m);
            assert_ok(tune_lora_add(m, &r.config.lora, 1));
            assert_ok(tune_model_reserve(m, r.batch.B, r.batch.T, 0));
            assert_ok(tune_adapter_read(m, r.folder));
            assert_ok(tune_adapter_compare(m, r.folder));
            assert_ok(tune_adapter_write(m, home, NULL, TUNE_BF16)); /* rounded, as what it is compared with is */
            assert_ok(tune_adapter_compare(m, home));

            struct tune_model *kept = tune_model_load_frozen(r.base, device, TUNE_F32, TUNE_NF4); /* another base than the file says */
            assert_got(kept);
            assert_ok(tune_lora_add(kept, &r.config.lora, 1));
            assert_ok(tune_adapter_read(kept, home));
            assert_int_equal(tune_adapter_compare(kept, home), -1);
            assert_error_has(storage ? "says of its base \"bfloat16\", not \"nf4\"" : "says of its base \"float32\", not \"nf4\"");
            tune_model_free(kept);
            const struct tune_parameters *table = tune_model_parameters(m);
            const struct tune_parameter *first = &table->at[table->base];
            float x;
            assert_ok(tune_model_read(m, first, TUNE_WEIGHT, 0, 1, &x));
            x += 1;
            assert_ok(tune_model_write(m, first, TUNE_WEIGHT, 0, 1, &x));
            assert_int_equal(tune_adapter_compare(m, home), -1);
            assert_error_has("read again, is not what was saved");
            tune_model_free(m);
            reference_close(&r);
        }
}

/* "all-linear" is written as the modules that this model has. */
static void modules_of_fused_matrices(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(1);
    struct tune_model *m = tune_model_load_frozen("tests/reference/phi3", dev, TUNE_F32, TUNE_F32);
    struct tune_lora_options o = {.r = 2, .alpha = 4, .targets = "all-linear"};
    struct tune_adapter_config c;
    assert_got(m);
    assert_ok(tune_lora_add(m, &o, 1));
    assert_ok(tune_adapter_write(m, home, "base", TUNE_F32));
    assert_ok(tune_adapter_config_read(&c, home));
    assert_string_equal(c.lora.targets, "down_proj,gate_up_proj,o_proj,qkv_proj");
    assert_ok(tune_adapter_read(m, home));
    tune_adapter_config_free(&c);
    tune_model_free(m);
    tune_device_close(dev);
}

static void an_adapter_of_other_options_is_not_read(void **state)
{
    (void)state;
    struct reference r, other;
    reference_open(&r, "lora-biases");
    struct tune_model *m = load(&r, 0);
    assert_int_equal(tune_adapter_read(m, "tests/reference/adapters/dora"), -1);
    assert_int_equal(tune_adapter_read(m, "tests/reference/adapters/lora"), -1);
    assert_error_has("asks for rank 4 and scale 2 in model.layers.0.self_attn.q_proj, the model has rank 3");
    assert_true(logits_error(m, &r) < 2e-6); /* nothing was changed */
    tune_model_free(m);
    reference_open(&other, "lora-untied");
    m = tune_model_load_frozen(other.base, device, TUNE_F32, TUNE_F32);
    assert_got(m);
    assert_int_equal(tune_adapter_read(m, other.folder), -1);
    assert_error_has("no adapters");
    assert_int_equal(tune_adapter_write(m, home, NULL, TUNE_F32), -1);
    tune_model_free(m);
    reference_close(&r);
    reference_close(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_pefts),
        cmocka_unit_test(what_was_read_is_written_again),
        cmocka_unit_test(modules_of_fused_matrices),
        cmocka_unit_test(a_folder_is_compared),
        cmocka_unit_test(an_adapter_of_other_options_is_not_read),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
