/* test_qlora.c - adapters on a base kept in NF4: the bits of the same base with its numbers dequantised, forward and backward. */
#include "values.h"
#include "far/far.h"

#include "adapters/adapter.h"
#include "core/float16.h"
#include "core/nf4.h"
#include "core/random.h"
#include "losses/loss.h"
#include "models/activations.h"
#include "models/lora.h"

static const char *const folders[] = {"tests/reference/llama-biases", "tests/reference/llama-untied", "tests/reference/qwen2",
                                      "tests/reference/qwen3", "tests/reference/granite", "tests/reference/smollm3",
                                      "tests/reference/olmo2", "tests/reference/gemma3", "tests/reference/phi3"};
enum { FOLDERS = sizeof folders / sizeof *folders, B = 2, T = 7, N = B * T };

static const struct tune_lora_options cases[] = {
    {.r = 4, .alpha = 8, .targets = "all-linear"},
    {.r = 3, .alpha = 8, .targets = "q_proj,k_proj,up_proj", .dropout = .25, .rslora = true},
    {.r = 4, .alpha = 8, .targets = "all-linear", .dora = true},
    {.r = 3, .alpha = 5, .targets = "v_proj,gate_proj,down_proj", .dora = true, .dropout = .25},
};
enum { CASES = sizeof cases / sizeof *cases };
/* The same for phi3, whose modules are fused. */
static const struct tune_lora_options fused_cases[CASES] = {
    {.r = 4, .alpha = 8, .targets = "all-linear"},
    {.r = 3, .alpha = 8, .targets = "qkv_proj,down_proj", .dropout = .25, .rslora = true},
    {.r = 4, .alpha = 8, .targets = "all-linear", .dora = true},
    {.r = 3, .alpha = 5, .targets = "gate_up_proj,down_proj", .dora = true, .dropout = .25},
};

static bool is_fused(int folder)
{
    return strstr(folders[folder], "phi3") != NULL;
}

static const struct tune_lora_options *case_of(int folder, int c)
{
    return is_fused(folder) ? &fused_cases[c] : &cases[c];
}

/* What is in which storage, and each linear layer what quantising its numbers at once gives. */
static void storage(void **state)
{
    (void)state;
    struct tune_device *dev = test_device(2);
    for (int f = 0; f < FOLDERS; f++) {
        struct tune_model *m = tune_model_load_frozen(folders[f], dev, TUNE_F32, TUNE_NF4);
        struct tune_model *wide = tune_model_load_frozen(folders[f], dev, TUNE_F32, TUNE_F32);
        int linear = 0;
        assert_got(m);
        assert_got(wide);
        for (int i = 0; i < m->parameters.base; i++) {
            const struct tune_parameter *p = &m->parameters.at[i];
            bool nf4 = strstr(p->name, "_proj.weight") != NULL;
            assert_int_equal(p->storage, nf4 ? TUNE_NF4 : p->ndim == 2 ? TUNE_BF16 : TUNE_F32);
            assert_false(p->trainable);
            linear += nf4;
            if (!nf4)
                continue;
            struct tune_nf4_writer w;
            struct tune_nf4 q;
            assert_ok(tune_unit_take(m, p->unit));
            struct tune_tensor t = tune_model_tensor(m, p, TUNE_WEIGHT);
            assert_ok(tune_unit_release(m, p->unit));
            int64_t bytes = tune_nf4_bytes(p->count);
            void *memory = aligned_alloc(64, (size_t)bytes);
            float *x = values(wide, &wide->parameters.at[i], TUNE_WEIGHT);
            float *y = values(m, p, TUNE_WEIGHT);
            assert_true(tune_nf4_is_matrix(&t) && !t.nf4->below);
            assert_ok(tune_nf4_begin(&w, p->name, memory, p->count));
            assert_ok(tune_nf4_write(&w, x, p->count));
            assert_ok(tune_nf4_finish(&w, &q));
            tune_nf4_read(&q, 0, p->count, x);
            assert_memory_equal(x, y, (size_t)p->count * 4);
            free(x);
            free(y);
            free(memory);
        }
        assert_int_equal(linear, (is_fused(f) ? 4 : 7) * m->config.layers);
        assert_true(m->parameters.weights < wide->parameters.weights / 2);
        tune_model_free(m);
        tune_model_free(wide);
    }
    tune_device_close(dev);
}

/* Adapters with numbers of their own. */
static void adapt(struct tune_model *m, const struct tune_lora_options *o, int what)
{
    assert_ok(tune_lora_add(m, o, 42));
    assert_ok(tune_model_reserve(m, B, T, what));
    for (int i = m->parameters.base; i < m->parameters.count; i++) {
        const struct tune_parameter *p = &m->parameters.at[i];
        float *w = values(m, p, TUNE_WEIGHT);
        for (int64_t k = 0; k < p->count; k++)
            w[k] = (float)(p->ndim == 2 ? .2 * tune_random_normal(7, (uint64_t)i, (uint64_t)k) : w[k] * 1.1);
        set_values(m, p, TUNE_WEIGHT, w);
        free(w);
    }
}

/* The loss, and two passes' gradients in m. */
static double pass(struct tune_model *m)
{
    int32_t ids[N], labels[N], lengths[B] = {T, T};
    struct tune_batch batch = {.B = B, .T = T, .ids = ids, .labels = labels, .lengths = lengths, .tokens = N, .label_count = N};
    struct tune_tensor *hidden, *dhidden;
    struct tune_loss *loss = tune_loss_new(m, true);
    double sum = 0;
    assert_got(loss);
    for (int i = 0; i < N; i++) {
        ids[i] = (int32_t)(tune_random_u64(5, 0, (uint64_t)i) % (uint64_t)m->config.vocabulary);
        labels[i] = (int32_t)(tune_random_u64(5, 1, (uint64_t)i) % (uint64_t)m->config.vocabulary);
    }
    assert_ok(tune_model_zero_grad(m, NULL));
    for (int i = 0; i < 2; i++) {
        assert_ok(tune_model_forward(m, &batch, &hidden));
        assert_ok(tune_loss_forward_backward(loss, hidden, &batch, NULL, &dhidden));
        assert_ok(tune_model_backward(m, &batch, dhidden));
    }
    assert_ok(tune_model_infer(m, &batch, &hidden));
    assert_ok(tune_loss_forward(loss, hidden, &batch, &sum));
    tune_loss_free(loss);
    return sum;
}

static void same_bits_as_dequantised(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++) {
        struct tune_device *dev = test_device(threads);
        for (int f = 0; f < FOLDERS; f++)
            for (int c = 0; c < 2 * CASES; c++) {
                enum tune_dtype activations = c < CASES ? TUNE_F32 : TUNE_BF16;
                struct tune_model *m[3];
                double loss[3];
                for (int i = 0; i < 3; i++) /* the third recomputes */
                    assert_got(m[i] = tune_model_load_frozen(folders[f], dev, activations, i == 1 ? TUNE_F32 : TUNE_NF4));
                for (int i = 0; i < m[1]->parameters.base; i++) {
                    float *x = values(m[0], &m[0]->parameters.at[i], TUNE_WEIGHT);
                    set_values(m[1], &m[1]->parameters.at[i], TUNE_WEIGHT, x);
                    free(x);
                }
                for (int i = 0; i < 3; i++) {
                    adapt(m[i], case_of(f, c % CASES), TUNE_FOR_TRAINING | (i == 2 ? TUNE_CHECKPOINTING : 0));
                    loss[i] = pass(m[i]);
                }
                for (int i = 1; i < 3; i++) {
                    float *x = all_state(m[0], TUNE_GRADIENT), *y = all_state(m[i], TUNE_GRADIENT);
                    assert_true(loss[0] == loss[i]);
                    assert_int_equal(m[0]->parameters.gradients, m[i]->parameters.gradients);
                    assert_memory_equal(x, y, (size_t)m[0]->parameters.gradients * 4);
                    free(x), free(y);
                }
                for (int i = 0; i < 3; i++)
                    tune_model_free(m[i]);
            }
        tune_device_close(dev);
    }
}

/* The model takes as much memory as is planned. Comparing a saved adapter takes none of the device. */
static void planned_and_saved(void **state)
{
    (void)state;
    for (int f = 0; f < FOLDERS; f++)
        for (int c = 0; c < CASES; c++) {
            struct tune_device *dev = test_device(2);
            const char *tmp = test_folder();
            struct tune_model_bytes bytes;
            struct tune_model_adapted adapted = {case_of(f, c), TUNE_NF4};
            struct tune_model *m = tune_model_load_frozen(folders[f], dev, TUNE_F32, TUNE_NF4);
            assert_got(m);
            assert_ok(tune_model_bytes(&bytes, tune_model_config(m), dev, TUNE_F32, &adapted, B, T, TUNE_FOR_TRAINING));
            adapt(m, case_of(f, c), TUNE_FOR_TRAINING);
            assert_ok(tune_model_gradients(m));
            int64_t held = bytes.weights + bytes.gradients + bytes.activations + bytes.working;
            assert_int_equal(dev->bytes, held);
            assert_ok(tune_adapter_write(m, tmp, NULL, TUNE_F32));
            int64_t before = dev->bytes_peak;
            assert_ok(tune_adapter_compare(m, tmp));
            assert_int_equal(dev->bytes, held);
            assert_int_equal(dev->bytes_peak, before);
            tune_model_free(m);
            tune_device_close(dev);
            assert_ok(tune_file_remove_folder(tmp));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(storage),
        cmocka_unit_test(same_bits_as_dequantised),
        cmocka_unit_test(planned_and_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
