/* test_choice.c - which processors take their bfloat16 instructions without being told. */
#include "test.h"

#include "devices/cpu/cpu.h"

static void who_takes_them(void **state)
{
    enum { ZEN4 = TUNE_CPU_AVX2 | TUNE_CPU_AVX512 | TUNE_CPU_AVX512_BF16 };
    (void)state;
    assert_true(tune_cpu_bf16_is_faster(ZEN4, true));
    assert_false(tune_cpu_bf16_is_faster(ZEN4, false)); /* Intel without AMX */
    assert_true(tune_cpu_bf16_is_faster(ZEN4 | TUNE_CPU_AMX_BF16, false));
    assert_true(tune_cpu_bf16_is_faster(TUNE_CPU_NEON_BF16, false));
    assert_false(tune_cpu_bf16_is_faster(TUNE_CPU_AVX2 | TUNE_CPU_AVX512, true));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(who_takes_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
