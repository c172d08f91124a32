/* test_operations.cu - operations of the CUDA device on elements and rows against the CPU's. */
#include "operations.h"

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

static void exchange()
{
    verdict v;
    for (auto &s : sizes) {
        both x(TUNE_F32, 0, s[1], 1, 1), y(TUNE_F32, 0, s[1], 1, 2);
        tune_exchange(cpu, &x.c, &y.c);
        compare(&v, {&x, &y}, [&] { return tune_cuda_exchange(&cuda, &x.g, &y.g); });
    }
    judge("exchange", v);
}

static void glu(enum tune_gate kind)
{
    verdict forward, backward, in_place;
    for (auto &s : sizes)
        for (enum tune_dtype t : types)
            for (int offset = 0; offset < 2; offset++) {
                both h(t, s[0], s[1], NAN, 1), gate_up(t, s[0], 2 * s[1], 4, 2, offset);
                tune_glu_forward(cpu, &h.c, &gate_up.c, kind);
                compare(&forward, {&h},
                        [&] { return tune_cuda_glu_forward(&cuda, &h.g, &gate_up.g, kind); });
                both dh(t, s[0], s[1], 1, 3), d(t, s[0], 2 * s[1], NAN, 4);
                tune_glu_backward(cpu, &d.c, &dh.c, &gate_up.c, kind);
                compare(&backward, {&d},
                        [&] {
                            return tune_cuda_glu_backward(&cuda, &d.g, &dh.g, &gate_up.g, kind);
                        });
                tune_glu_backward(cpu, &gate_up.c, &dh.c, &gate_up.c, kind);
                compare(&in_place, {&gate_up}, [&] {
                    return tune_cuda_glu_backward(&cuda, &gate_up.g, &dh.g, &gate_up.g, kind);
                });
            }
    const char *name = kind == TUNE_GATE_GELU ? "gelu" : "silu";
    judge((std::string(name) + ", forward").c_str(), forward);
    judge((std::string(name) + ", backward").c_str(), backward);
    judge((std::string(name) + ", backward in place").c_str(), in_place);
}

static void bias()
{
    verdict forward, backward;
    for (auto &s : sizes)
        for (enum tune_dtype t : types) {
            both y(t, s[0], s[1], 1, 1), b(TUNE_F32, 0, s[1], 1, 2);
            tune_bias_forward(cpu, &y.c, &b.c, 0.5f);
            compare(&forward, {&y},
                    [&] { return tune_cuda_bias_forward(&cuda, &y.g, &b.g, 0.5f); });
            both dy(t, s[0], s[1], 1, 3);
            tune_bias_backward(cpu, &b.c, &dy.c, 0.5f);
            compare(&backward, {&b},
                    [&] { return tune_cuda_bias_backward(&cuda, &b.g, &dy.g, 0.5f); });
        }
    both b(TUNE_F32, 0, 40, 1, 2), dy(TUNE_F32, 500, 40, 1, 3); /* several slices of rows */
    tune_bias_backward(cpu, &b.c, &dy.c, 1);
    compare(&backward, {&b}, [&] { return tune_cuda_bias_backward(&cuda, &b.g, &dy.g, 1); });
    judge("bias_forward", forward);
    judge("bias_backward", backward);
}

static void rope()
{
    verdict v;
    const int N = 6, T = 3;
    for (int D : {2, 16, 96})
        for (int heads : {1, 5})
            for (enum tune_dtype t : types)
                for (bool backward : {false, true}) {
                    both x(t, N, heads * D + 8, 1, 1), table(TUNE_F32, 9, D, 1, 2);
                    both positions(std::vector<int>{8, 0, 3, 3, 1, 7});
                    tune_rope(cpu, &x.c, &table.c, nullptr, T, heads, D, backward);
                    compare(&v, {&x}, [&] {
                        return tune_cuda_rope(&cuda, &x.g, &table.g, nullptr, T, heads, D,
                                              backward);
                    });
                    x.reset();
                    tune_rope(cpu, &x.c, &table.c, &positions.c, T, heads, D, backward);
                    compare(&v, {&x}, [&] {
                        return tune_cuda_rope(&cuda, &x.g, &table.g, &positions.g, T, heads, D,
                                              backward);
                    });
                }
    judge("rope", v);
}

/* A view of the columns [first, first + n) of both. */
static struct tune_tensor view(const tune_tensor &t, int64_t first, int64_t n)
{
    return tune_tensor_columns(&t, first, n);
}

static void rows()
{
    verdict embed, gather, scatter, gradient;
    const std::vector<int> ids = {2, 0, 2, 2, 6, 0, 5};
    for (int C : {1, 7, 64, 1000})
        for (enum tune_dtype t : types)
            for (enum tune_dtype u : types) {
                both id(ids), w(t, 7, C, 1, 1), x(u, 7, C, NAN, 2);
                tune_embed_forward(cpu, &x.c, &w.c, &id.c, 1.5f);
                compare(&embed, {&x},
                        [&] { return tune_cuda_embed_forward(&cuda, &x.g, &w.g, &id.g, 1.5f); });
                both dw(TUNE_F32, 7, C, 1, 3);
                tune_embed_backward(cpu, &dw.c, &x.c, &id.c, 1.5f);
                compare(&gradient, {&dw},
                        [&] { return tune_cuda_embed_backward(&cuda, &dw.g, &x.g, &id.g, 1.5f); });
                both wide(t, 7, C + 4, 1, 4), y(u, 7, C + 8, 1, 5);
                both rows(std::vector<int>{4, 1, 6});
                tune_tensor from = view(wide.c, 4, C), to = view(y.c, 8, C), from_g, to_g;
                from_g = view(wide.g, 4, C);
                to_g = view(y.g, 8, C);
                to.shape[0] = to_g.shape[0] = 3;
                tune_gather(cpu, &to, &from, &rows.c);
                compare(&gather, {&y},
                        [&] { return tune_cuda_gather(&cuda, &to_g, &from_g, &rows.g); });
                to.shape[0] = to_g.shape[0] = 7;
                from.shape[0] = from_g.shape[0] = 3;
                y.reset();
                tune_scatter(cpu, &to, &from, &rows.c);
                compare(&scatter, {&y},
                        [&] { return tune_cuda_scatter(&cuda, &to_g, &from_g, &rows.g); });
            }
    /* more rows than a block has threads, and many of one token */
    std::vector<int> many(600);
    for (size_t i = 0; i < many.size(); i++)
        many[i] = i % 3 == 0 ? 1 : (int)(i % 11);
    both id(many), dw(TUNE_F32, 11, 20, 1, 3), dx(TUNE_BF16, 600, 20, 1, 4);
    tune_embed_backward(cpu, &dw.c, &dx.c, &id.c, 1);
    compare(&gradient, {&dw},
            [&] { return tune_cuda_embed_backward(&cuda, &dw.g, &dx.g, &id.g, 1); });
    judge("embed_forward", embed);
    judge("embed_backward", gradient);
    judge("gather", gather);
    judge("scatter", scatter);
}

int main()
{
    begin_operations();
    copies();
    axpby();
    exchange();
    glu(TUNE_GATE_SILU);
    glu(TUNE_GATE_GELU);
    bias();
    rope();
    rows();
    return end_operations();
}
