/* test_operations.cu - each operation of the CUDA device against the CPU's, in every order of lanes
 * and blocks. Outputs that are set start as NaN. test_attention.cu has attention. */
#include "operations.h"

/* One row, odd rows, whole packs, more columns than a block has threads. */
static const int64_t sizes[][2] = {{1, 1}, {3, 7}, {5, 64}, {2, 1000}, {17, 257}, {4, 2056}};

static void copies()
{
    verdict copy, zero;
    bool bits = true;
    for (auto &s : sizes)
        for (enum tune_dtype t : types) {
            both y(t, s[0], s[1], NAN, 1), x(t, s[0], s[1], 1, 2);
            tune_copy(cpu, &y.c, &x.c);
            compare(&copy, {&y}, [&] { return tune_cuda_copy(&cuda, &y.g, &x.g); });
            bits = bits && y.on_cuda() == x.first;
            tune_zero(cpu, &y.c);
            compare(&zero, {&y}, [&] { return tune_cuda_zero(&cuda, &y.g); });
        }
    judge("copy", copy);
    check("copy: each bit", bits);
    judge("zero", zero);
}

static void axpby()
{
    verdict v;
    for (auto &s : sizes)
        for (float beta : {0.0f, 1.0f, -0.5f})
            for (int offset = 0; offset < 2; offset++) {
                both y(TUNE_F32, s[0], s[1], beta == 0 ? NAN : 1, 1),
                    x(TUNE_F32, s[0], s[1], 1, 2, offset);
                tune_axpby(cpu, &y.c, &x.c, 0.75f, beta);
                compare(&v, {&y}, [&] { return tune_cuda_axpby(&cuda, &y.g, &x.g, 0.75f, beta); });
            }
    judge("axpby", v);
}

static void rmsnorm()
{
    verdict v;
    for (auto &s : sizes)
        for (enum tune_dtype t : types)
            for (int offset = 0; offset < 2; offset++) {
                both y(t, s[0], s[1], NAN, 1), x(t, s[0], s[1], 3, 2, offset),
                    w(TUNE_F32, 0, s[1], 1, 3);
                both rstd(TUNE_F32, 0, s[0], NAN, 4);
                tune_rmsnorm_forward(cpu, &y.c, &rstd.c, &x.c, &w.c, 1e-5f);
                compare(&v, {&y, &rstd}, [&] {
                    return tune_cuda_rmsnorm_forward(&cuda, &y.g, &rstd.g, &x.g, &w.g, 1e-5f);
                });
                compare(&v, {&y}, [&] {
                    return tune_cuda_rmsnorm_forward(&cuda, &y.g, nullptr, &x.g, &w.g, 1e-5f);
                });
            }
    judge("rmsnorm_forward", v);
}

static void swiglu()
{
    verdict v;
    for (auto &s : sizes)
        for (enum tune_dtype t : types)
            for (int offset = 0; offset < 2; offset++) {
                both h(t, s[0], s[1], NAN, 1), gate_up(t, s[0], 2 * s[1], 4, 2, offset);
                tune_swiglu_forward(cpu, &h.c, &gate_up.c);
                compare(&v, {&h},
                        [&] { return tune_cuda_swiglu_forward(&cuda, &h.g, &gate_up.g); });
            }
    judge("swiglu_forward", v);
}

int main()
{
    if (!open_devices())
        return done();
    copies();
    axpby();
    rmsnorm();
    swiglu();
    tune_device_close(cpu);
    return done();
}
