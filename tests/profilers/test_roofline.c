/* test_roofline.c - the estimate of tokens/s: FLOPs as the model itself counts them, bytes by hand, time by the formula. */
#include "test.h"

#include <math.h>

#include "profilers/roofline.h"

static void expect_near(double x, double y)
{
    if (fabs(x - y) > 1e-12 * fabs(y))
        fail_msg("%.17g, expected %.17g", x, y);
}

static struct tune_model_config shape(void)
{
    return (struct tune_model_config){.family = "llama", .hidden = 64, .ffn = 160, .layers = 3, .heads = 4, .kv_heads = 2, .head_dim = 16,
                                      .vocabulary = 501, .max_positions = 256, .norm_eps = 1e-5f, .rotary = {{.dims = 16, .theta = 10000}},
                                      .attention_scale = .25f, .embedding_multiplier = 1, .residual_multiplier = 1, .logits_scaling = 1,
                                      .initializer_range = .02f, .dtype = TUNE_F32};
}

/* Weights of matrices, with the output: q and o 64 x 64, k and v 64 x 32, three of 64 x 160. */
enum { MATRICES = 3 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 160) + 501 * 64, BATCH = 2, LENGTH = 32 };

static struct tune_memory_plan parts(int64_t trained)
{
    return (struct tune_memory_plan){.parts = {{"weights", 1000, true}, {"gradients", 4 * trained, true}, {"moments", 300, true},
                                               {"averages", 70, true}, {"activations", 2000, true}, {"loader", 9999, false}},
                                     .count = 6};
}

static void full_by_hand(void **state)
{
    (void)state;
    struct tune_model_config c = shape();
    struct tune_memory_plan plan = parts(10);
    struct tune_roofline_run run = {.config = &c, .plan = &plan, .batch = BATCH, .length = LENGTH};
    double model, N = BATCH * LENGTH, attention = 6.0 * 3 * LENGTH * 64;
    expect_near(tune_roofline_flops(&run, &model), N * (6.0 * MATRICES + attention));
    expect_near(model, N * tune_model_config_flops(&c, LENGTH));
    expect_near(tune_roofline_bytes(&run), 2 * 1000 + 6 * 40 + 2 * (300 + 70 + 2000));
    run.checkpointing = true;
    expect_near(tune_roofline_flops(&run, &model), N * (8.0 * MATRICES + attention * 4 / 3));
    expect_near(model, N * (6.0 * MATRICES + attention));
    expect_near(tune_roofline_bytes(&run), 3 * 1000 + 6 * 40 + 2 * (300 + 70 + 2000));
}

static void adapters_by_hand(void **state)
{
    (void)state;
    struct tune_model_config c = shape();
    struct tune_memory_plan plan = parts(500);
    struct tune_roofline_run run = {&c, &plan, BATCH, LENGTH, true, true, true};
    double model, N = BATCH * LENGTH, attention = 6.0 * 3 * LENGTH * 64;
    expect_near(tune_roofline_flops(&run, &model), N * (6.0 * MATRICES + 8.0 * 500 + attention * 4 / 3));
    expect_near(model, N * (4.0 * MATRICES + 6.0 * 500 + attention));
    expect_near(tune_roofline_bytes(&run), 3 * (1000 + 4.0 * MATRICES) + 6 * 2000 + 2 * (300 + 70 + 2000));
}

static void time_by_the_formula(void **state)
{
    (void)state;
    struct tune_model_config c = shape();
    struct tune_memory_plan plan = parts(10);
    struct tune_roofline_run run = {.config = &c, .plan = &plan, .batch = BATCH, .length = LENGTH};
    struct tune_known_gpu gpu = {.bandwidth = 1e9, .tensor_flops = 1e12, .major = 8};
    double model, seconds = tune_roofline_flops(&run, &model) / .5e12 + tune_roofline_bytes(&run) / .8e9;
    expect_near(tune_roofline_speed(&run, &gpu), BATCH * LENGTH / seconds);
    gpu.tensor_flops = 0;
    assert_true(tune_roofline_speed(&run, &gpu) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_by_hand),
        cmocka_unit_test(adapters_by_hand),
        cmocka_unit_test(time_by_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
