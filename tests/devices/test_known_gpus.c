/* test_known_gpus.c - the table of GPUs: names that are one GPU's alone, names as drivers and ado write them, their order. */
#include "test.h"

#include "devices/known_gpus.h"

static void names_are_unique(void **state)
{
    (void)state;
    int count;
    const struct tune_known_gpu *gpus = tune_known_gpus(&count);
    assert_true(count > 20);
    for (int i = 0; i < count; i++) {
        char others[128];
        assert_ptr_equal(tune_known_gpu(gpus[i].name), &gpus[i]);
        snprintf(others, sizeof others, "%s", gpus[i].others);
        for (char *rest = NULL, *name = strtok_r(others, " ", &rest); name; name = strtok_r(NULL, " ", &rest))
            assert_ptr_equal(tune_known_gpu(name), &gpus[i]);
    }
}

static void names_of_others_are_found(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"NVIDIA H100 80GB HBM3", "h100-80gb"}, {"NVIDIA-H100-80GB-HBM3", "h100-80gb"}, {"NVIDIA H100 PCIe", "h100-pcie"},
        {"NVIDIA-A100-SXM4-80GB", "a100-80gb"}, {"NVIDIA A100 80GB PCIe", "a100-80gb-pcie"}, {"NVIDIA-A100-80GB-PCIe", "a100-80gb-pcie"},
        {"NVIDIA A100-PCIE-40GB", "a100-40gb"}, {"Tesla-T4", "t4"}, {"Tesla T4", "t4"}, {"L40S", "l40s"},
        {"Tesla-V100-PCIE-16GB", "v100-16gb"}, {"NVIDIA GeForce RTX 4090", "rtx-4090"}, {"RTX_5090", "rtx-5090"},
        {"NVIDIA H100 NVL", "h100-nvl"}, {"NVIDIA H20", "h20"}, {"h100", "h100-80gb"}, {"NVIDIA RTX A6000", "rtx-a6000"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct tune_known_gpu *g = tune_known_gpu(names[i][0]);
        assert_non_null(g);
        assert_string_equal(g->name, names[i][1]);
    }
    /* two GPUs, or another one */
    static const char *const none[] = {"", "a100", "v100", "NVIDIA", "NVIDIA GeForce RTX 4090 Laptop GPU", "gtx-1", "h2"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        assert_null(tune_known_gpu(none[i]));
}

static void facts_fit_together(void **state)
{
    (void)state;
    int count;
    char text[128];
    const struct tune_known_gpu *gpus = tune_known_gpus(&count);
    for (int i = 0; i < count; i++) {
        bool old = gpus[i].major < 8;
        assert_true(i == 0 || gpus[i].gib >= gpus[i - 1].gib);
        assert_true(old == (gpus[i].tensor_flops == 0));
        assert_true(old == (*tune_known_gpu_old(&gpus[i], text, sizeof text) != 0));
        assert_true(gpus[i].bandwidth >= 300e9 && gpus[i].bandwidth <= 8000e9);
        assert_true(gpus[i].link >= 16e9 && gpus[i].link < gpus[i].bandwidth); /* PCIe 3.0 at least */
        assert_true(tune_known_gpu_bytes(&gpus[i]) <= (int64_t)(gpus[i].gib * 1073741824));
    }
    assert_string_equal(tune_known_gpu_old(tune_known_gpu("t4"), text, sizeof text),
                        "compute capability 7.5; the kernels need 8.0, for bfloat16");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique),
        cmocka_unit_test(names_of_others_are_found),
        cmocka_unit_test(facts_fit_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
