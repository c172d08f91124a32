/* test_norms.cu - norms, adapters' operations and the loss of the CUDA device against the CPU's. */
#include "operations.h"

#include "devices/cuda/reduce.h"

static void rmsnorm()
{
    verdict forward, backward;
    for (auto &s : sizes)
        for (enum tune_dtype t : types)
            for (enum tune_dtype u : types)
                for (int offset = 0; offset < 2; offset++) {
                    float plus = offset ? 1 : 0;
                    both y(t, s[0], s[1], NAN, 1), x(u, s[0], s[1], 3, 2, offset);
                    both w(TUNE_F32, 0, s[1], 1, 3), rstd(TUNE_F32, 0, s[0], NAN, 4);
                    tune_rmsnorm_forward(cpu, &y.c, &rstd.c, &x.c, &w.c, 1e-5f, plus);
                    compare(&forward, {&y, &rstd}, [&] {
                        return tune_cuda_rmsnorm_forward(&cuda, &y.g, &rstd.g, &x.g, &w.g, 1e-5f,
                                                         plus);
                    });
                    compare(&forward, {&y}, [&] {
                        return tune_cuda_rmsnorm_forward(&cuda, &y.g, nullptr, &x.g, &w.g, 1e-5f,
                                                         plus);
                    });
                    both dx(u, s[0], s[1], 1, 5, offset), dy(t, s[0], s[1], 1, 6);
                    both dw(TUNE_F32, 0, s[1], 1, 7);
                    tune_rmsnorm_backward(cpu, &dx.c, &dw.c, &dy.c, &x.c, &w.c, &rstd.c, plus);
                    compare(&backward, {&dx, &dw}, [&] {
                        return tune_cuda_rmsnorm_backward(&cuda, &dx.g, &dw.g, &dy.g, &x.g, &w.g,
                                                          &rstd.g, plus);
                    });
                    compare(&backward, {&dx}, [&] {
                        return tune_cuda_rmsnorm_backward(&cuda, &dx.g, nullptr, &dy.g, &x.g, &w.g,
                                                          &rstd.g, plus);
                    });
                }
    judge("rmsnorm_forward", forward);
    judge("rmsnorm_backward", backward);
}

static void headnorm()
{
    verdict forward, backward;
    for (int D : {1, 16, 80})
        for (int heads : {1, 3, 9})
            for (enum tune_dtype t : types) {
                float plus = D == 16 ? 1 : 0;
                const int N = 5, first = 2, Q = (first + heads) * D + 4;
                both y(t, N, Q, 1, 1), x(t, N, Q, 2, 2), w(TUNE_F32, 0, D, 1, 3);
                both rstd(TUNE_F32, N, heads, NAN, 4), dw(TUNE_F32, 0, D, 1, 5), dy(t, N, Q, 1, 6);
                tune_headnorm_forward(cpu, &y.c, &rstd.c, &x.c, &w.c, first, heads, 1e-6f, plus);
                compare(&forward, {&y, &rstd}, [&] {
                    return tune_cuda_headnorm_forward(&cuda, &y.g, &rstd.g, &x.g, &w.g, first,
                                                      heads, 1e-6f, plus);
                });
                tune_headnorm_backward(cpu, &dy.c, &dw.c, &x.c, &w.c, &rstd.c, first, heads, plus);
                compare(&backward, {&dy, &dw}, [&] {
                    return tune_cuda_headnorm_backward(&cuda, &dy.g, &dw.g, &x.g, &w.g, &rstd.g,
                                                       first, heads, plus);
                });
            }
    judge("headnorm_forward", forward);
    judge("headnorm_backward", backward);
}

static void dropout()
{
    verdict v, noise;
    const float ways[][3] = {{0, 0, 1}, {1, 0, 1}, {0, 1, -1}};
    both s(a_step());
    struct tune_dropout drop = {7, 5, 3, 2, 0.3};
    for (auto &size : sizes)
        for (enum tune_dtype t : types)
            for (enum tune_dtype u : types)
                for (auto &way : ways) {
                    both y(t, size[0], size[1], way[0] == 0 ? NAN : 1, 1),
                        x(u, size[0], size[1], 1, 2);
                    tune_dropout(cpu, &y.c, &x.c, s.c.data, drop, way[0], way[1], way[2]);
                    compare(&v, {&y}, [&] {
                        return tune_cuda_dropout(&cuda, &y.g, &x.g, s.g.data, drop, way[0], way[1],
                                                 way[2]);
                    });
                }
    for (auto &size : sizes) {
        both y(TUNE_F32, size[0], size[1], 1, 1);
        tune_noise(cpu, &y.c, s.c.data, drop, 0.25f);
        compare(&noise, {&y}, [&] { return tune_cuda_noise(&cuda, &y.g, s.g.data, drop, 0.25f); });
    }
    judge("dropout", v);
    judge("noise", noise);
}

static void columns()
{
    verdict scale, dots;
    for (auto &s : sizes)
        for (enum tune_dtype t : types)
            for (enum tune_dtype u : types) {
                both x(u, s[0], s[1], 1, 2), g(TUNE_F32, 0, s[1], 1, 3);
                for (float beta : {0.0f, 0.5f}) {
                    both y(t, s[0], s[1], beta == 0 ? NAN : 1, 1);
                    tune_scale_columns(cpu, &y.c, &x.c, &g.c, -1, 2, beta);
                    compare(&scale, {&y}, [&] {
                        return tune_cuda_scale_columns(&cuda, &y.g, &x.g, &g.g, -1, 2, beta);
                    });
                }
                int64_t first = s[1] / 3, n = s[1] - first;
                both y(t, s[0], s[1], 1, 4), some(TUNE_F32, 0, n, 1, 5), sums(TUNE_F32, 0, n, 1, 6);
                tune_dot_columns(cpu, &sums.c, &x.c, &y.c, &some.c, first, 0.5f);
                compare(&dots, {&sums}, [&] {
                    return tune_cuda_dot_columns(&cuda, &sums.g, &x.g, &y.g, &some.g, first, 0.5f);
                });
            }
    judge("scale_columns", scale);
    judge("dot_columns", dots);
}

static void dora()
{
    verdict v;
    for (int M : {1, 9})
        for (int r : {1, 4, 40}) {
            both g(TUNE_F32, 0, M, NAN, 1), inverse(TUNE_F32, 0, M, NAN, 2);
            both magnitude(TUNE_F32, 0, M, 1, 3), squares(TUNE_F32, 0, M, 0, 4);
            both b(TUNE_F32, M, r, 0.1f, 5), p(TUNE_F32, M, r, 0.1f, 6),
                a(TUNE_F32, r, r, 0.01f, 7);
            both w(TUNE_F32, M, 50, 1, 8);
            if (M > 1) { /* a row of zeros has no direction */
                memset(w.first.data(), 0, 50 * 4);
                memset(b.first.data(), 0, (size_t)r * 4);
                w.reset(), b.reset();
            }
            tune_row_squares(cpu, &squares.c, &w.c);
            must(cudaMemcpy((void *)squares.g.data.at, (void *)squares.c.data.at, squares.size,
                            cudaMemcpyHostToDevice));
            tune_dora_scale(cpu, &g.c, &inverse.c, &magnitude.c, &squares.c, &b.c, &p.c, &a.c, 2);
            compare(&v, {&g, &inverse}, [&] {
                return tune_cuda_dora_scale(&cuda, &g.g, &inverse.g, &magnitude.g, &squares.g, &b.g,
                                            &p.g, &a.g, 2);
            });
            tune_dora_scale(cpu, &g.c, &inverse.c, nullptr, nullptr, nullptr, nullptr, nullptr, 2);
            compare(&v, {&g, &inverse}, [&] {
                return tune_cuda_dora_scale(&cuda, &g.g, &inverse.g, nullptr, nullptr, nullptr,
                                            nullptr, nullptr, 2);
            });
        }
    judge("dora_scale", v);
}

static void losses()
{
    verdict v;
    const int M = 5;
    for (int V : {3, 64, 1001, 4096})
        for (bool backward : {false, true})
            for (double smoothing : {0.0, 0.1})
                for (bool weighted : {false, true}) {
                    both logits(TUNE_F32, M, V, 5, 1), probs(TUNE_F32, 0, M, NAN, 2), s(a_step());
                    both labels(std::vector<int>{0, V - 1, 1, 2, V / 2}),
                        weights(TUNE_F32, 0, 9, 1, 3);
                    both rows(std::vector<int>{8, 0, 3, 3, 1});
                    const tune_tensor *wc = weighted ? &weights.c : nullptr;
                    const tune_tensor *wg = weighted ? &weights.g : nullptr;
                    tune_cross_entropy_rows(cpu, &logits.c, s.c.data, &probs.c, &labels.c, wc,
                                            weighted ? &rows.c : nullptr, smoothing, backward);
                    std::vector<both *> outs = {&probs, &s};
                    if (backward)
                        outs.push_back(&logits);
                    compare(&v, outs, [&] {
                        logits.upload(); /* they are lost without backward */
                        return tune_cuda_cross_entropy_rows(
                            &cuda, &logits.g, s.g.data, &probs.g, &labels.g, wg,
                            weighted ? &rows.g : nullptr, smoothing, backward);
                    });
                }
    judge("cross_entropy_rows", v);
}

/* ---- sums of a block, one after the other ---- */

__global__ void two_results(float *out)
{
    float x = static_cast<float>(threadIdx.x), sum = tune_cuda_block_sum(x);
    float again = tune_cuda_block_sum(sum + x), max = tune_cuda_block_max(x);
    out[threadIdx.x] = again + tune_cuda_block_max(max + x);
}

static void reductions()
{
    enum { N = 128 };
    float *out = device<float>(N), sum = N * (N - 1) / 2, want = N * sum + sum + 2 * (N - 1);
    in_every_order("block_sum and block_max, twice each", [&] {
        LAUNCH(two_results, 1, N, 0, nullptr, out);
        return raw(download(out, N));
    });
    check("... are right", download(out, N) == std::vector<float>(N, want));
    must(cudaFree(out));
}

int main()
{
    begin_operations();
    reductions();
    rmsnorm();
    headnorm();
    dropout();
    columns();
    dora();
    losses();
    return end_operations();
}
