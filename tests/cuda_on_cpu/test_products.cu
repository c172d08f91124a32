/* test_products.cu - matrix products and NF4 weights of the CUDA device against the CPU's. */
#include "operations.h"

#include "core/nf4.h"

/* Rows, columns, depth. */
static const int64_t shapes[][3] = {{1, 1, 1}, {3, 5, 7}, {8, 16, 24}, {2, 33, 64}, {40, 24, 8}};

static void gemm()
{
    verdict v;
    for (auto &s : shapes)
        for (int bits = 0; bits < 32; bits++) {
            enum tune_dtype ta = types[bits & 1], tb = types[bits >> 1 & 1],
                            tc = types[bits >> 2 & 1];
            enum tune_dtype operands = types[bits >> 3 & 1];
            bool trans_a = bits & 16, trans_b = bits % 3 == 0;
            float beta = bits % 5 < 3 ? 0.0f : 0.5f;
            both a(ta, trans_a ? s[2] : s[0], trans_a ? s[0] : s[2], 1, 1);
            both b(tb, trans_b ? s[1] : s[2], trans_b ? s[2] : s[1], 1, 2);
            both c(tc, s[0], s[1], beta == 0 ? NAN : 1, 3);
            tune_gemm(cpu, &c.c, &a.c, trans_a, &b.c, trans_b, 0.75f, beta, operands);
            compare(&v, {&c}, [&] {
                return tune_cuda_gemm(&cuda, &c.g, &a.g, trans_a, &b.g, trans_b, 0.75f, beta,
                                      operands);
            });
        }
    judge("gemm", v);
}

static void columns()
{
    verdict v;
    for (enum tune_dtype t : types)
        for (enum tune_dtype operands : types) {
            both a(t, 6, 20, 1, 1), b(TUNE_F32, 9, 30, 1, 2), c(TUNE_F32, 6, 15, 1, 3);
            tune_tensor ac = tune_tensor_columns(&a.c, 3, 11),
                        ag = tune_tensor_columns(&a.g, 3, 11);
            tune_tensor bc = tune_tensor_columns(&b.c, 1, 11),
                        bg = tune_tensor_columns(&b.g, 1, 11);
            tune_tensor cc = tune_tensor_columns(&c.c, 5, 9), cg = tune_tensor_columns(&c.g, 5, 9);
            tune_gemm(cpu, &cc, &ac, false, &bc, true, 1, 1, operands);
            compare(&v, {&c}, [&] {
                return tune_cuda_gemm(&cuda, &cg, &ag, false, &bg, true, 1, 1, operands);
            });
        }
    judge("gemm of some columns", v);
}

/* y = r + scale x w^T; r stays. Nothing is copied: one product, and casts of its operands. */
static void gemm_add()
{
    verdict v;
    bool alone = true;
    for (auto &s : shapes)
        for (enum tune_dtype t : types)
            for (enum tune_dtype tw : types)
                for (enum tune_dtype operands : types) {
                    both x(t, s[0], s[2], 1, 1), w(tw, s[1], s[2], 1, 2);
                    both r(TUNE_F32, s[0], s[1], 1, 3), y(TUNE_F32, s[0], s[1], NAN, 4);
                    tune_gemm_add(cpu, &y.c, &r.c, &x.c, &w.c, 0.75f, operands);
                    compare(&v, {&y, &r}, [&] {
                        uint64_t before = emu::queued();
                        int status = tune_cuda_gemm_add(&cuda, &y.g, &r.g, &x.g, &w.g, 0.75f,
                                                        operands);
                        uint64_t casts = uint64_t(t != operands) + uint64_t(tw != operands);
                        alone = alone && emu::queued() - before <= 1 + casts;
                        return status;
                    });
                }
    judge("gemm_add", v);
    if (emulated)
        check("gemm_add: a product and no copy", alone);
}

/* NF4 on both devices, in parts one below the other. */
struct nf4_both {
    std::vector<tune_nf4_part> host, gpu;
    tune_tensor c, g;
    nf4_both(const std::vector<int64_t> &rows, int64_t columns)
    {
        int64_t all = 0;
        host.resize(rows.size());
        gpu.resize(rows.size());
        for (size_t i = 0; i < rows.size(); i++) {
            int64_t n = rows[i] * columns, size = tune_nf4_bytes(n);
            std::vector<float> numbers((size_t)n);
            for (int64_t j = 0; j < n; j++)
                numbers[(size_t)j] = (float)tune_random_normal(9, i, (uint64_t)j);
            tune_nf4_writer w;
            tune_nf4 q;
            tune_address at = tune_device_alloc(cpu, size, "a test's NF4");
            if (tune_nf4_begin(&w, "test", (void *)at.at, n) < 0 ||
                tune_nf4_write(&w, numbers.data(), n) < 0 || tune_nf4_finish(&w, &q) < 0)
                abort();
            bool last = i + 1 == rows.size();
            host[i] = {at, q.offset, n, last ? nullptr : &host[i + 1]};
            char *there = device<char>((size_t)size);
            send(there, (void *)at.at, (size_t)size);
            gpu[i] = {{(uint64_t)there}, q.offset, n, last ? nullptr : &gpu[i + 1]};
            all += rows[i];
        }
        c = tune_nf4_matrix(host.data(), all, columns);
        g = tune_nf4_matrix(gpu.data(), all, columns);
    }
};

static void nf4()
{
    verdict product, sum, squares;
    const std::vector<std::vector<int64_t>> parts = {{5}, {3, 1, 4}, {200}};
    for (auto &rows : parts)
        for (int64_t columns : {7, 64, 130})
            for (enum tune_dtype t : types)
                for (bool trans_b : {false, true}) {
                    nf4_both w(rows, columns);
                    int64_t M = w.c.shape[0];
                    both x(t, 3, trans_b ? columns : M, 1, 1);
                    both y(t, 3, trans_b ? M : columns, NAN, 2);
                    tune_gemm(cpu, &y.c, &x.c, false, &w.c, trans_b, 1, 0, t);
                    compare(&product, {&y}, [&] {
                        return tune_cuda_gemm(&cuda, &y.g, &x.g, false, &w.g, trans_b, 1, 0, t);
                    });
                    both r(TUNE_F32, 3, M, 1, 4), z(TUNE_F32, 3, M, NAN, 5);
                    if (trans_b) {
                        tune_gemm_add(cpu, &z.c, &r.c, &x.c, &w.c, 0.75f, t);
                        compare(&sum, {&z}, [&] {
                            return tune_cuda_gemm_add(&cuda, &z.g, &r.g, &x.g, &w.g, 0.75f, t);
                        });
                    }
                    both s(TUNE_F32, 0, M, NAN, 3);
                    tune_row_squares(cpu, &s.c, &w.c);
                    compare(&squares, {&s},
                            [&] { return tune_cuda_row_squares(&cuda, &s.g, &w.g); });
                    for (const tune_nf4_part &p : w.gpu)
                        must(cudaFree((void *)p.memory.at));
                    for (const tune_nf4_part &p : w.host)
                        tune_device_free(cpu, p.memory, tune_nf4_bytes(p.count));
                }
    for (enum tune_dtype t : types) {
        both w(t, 5, 130, 1, 1), s(TUNE_F32, 0, 5, NAN, 2);
        tune_row_squares(cpu, &s.c, &w.c);
        compare(&squares, {&s}, [&] { return tune_cuda_row_squares(&cuda, &s.g, &w.g); });
    }
    judge("gemm of NF4", product);
    judge("gemm_add of NF4", sum);
    judge("row_squares", squares);
}

int main()
{
    begin_operations();
    gemm();
    columns();
    gemm_add();
    nf4();
    return end_operations();
}
