/* test_operations.cu - each operation of the CUDA device against the CPU's, in every order of lanes
 * and blocks. Outputs that are set start as NaN. Limits: 1e-5 in float32, 1e-2 in bfloat16. */
#include "prove.h"

#include "core/error.h"
#include "core/random.h"
#include "devices/cuda/cuda.h"

static struct tune_device *cpu;
static struct tune_cuda cuda_state;
static struct tune_device cuda;

/* A tensor on both devices. */
struct both {
    struct tune_tensor c, g; /* CPU, CUDA */
    size_t size;
    bytes first;

    /* rows 0: a vector. offset: elements that the numbers are moved by, so that they are not
     * aligned. */
    both(enum tune_dtype dtype, int64_t rows, int64_t columns, float scale, uint64_t seed,
         int offset = 0)
    {
        tune_address none = {0};
        c = rows ? tune_tensor_2d(none, dtype, rows, columns)
                 : tune_tensor_1d(none, dtype, columns);
        size = (size_t)tune_tensor_bytes(&c);
        int64_t n = tune_tensor_elements(&c), shift = offset * tune_dtype_bits(dtype) / 8;
        std::vector<float> v((size_t)n);
        for (int64_t i = 0; i < n; i++)
            v[(size_t)i] = scale * (float)tune_random_normal(seed, 1, (uint64_t)i);
        first.resize(size);
        if (tune_convert(first.data(), dtype, v.data(), TUNE_F32, n) < 0)
            abort();
        g = c;
        c.data = tune_device_alloc(cpu, (int64_t)size + 64, "a test's tensor");
        g.data.at = (uint64_t)device<char>(size + (size_t)shift) + (uint64_t)shift;
        base = (char *)g.data.at - shift;
        reset();
    }
    ~both()
    {
        tune_device_free(cpu, c.data, (int64_t)size + 64);
        must(cudaFree(base));
    }
    void reset()
    {
        tune_device_upload(cpu, c.data, first.data(), (int64_t)size);
        must(cudaMemcpy((void *)g.data.at, first.data(), size, cudaMemcpyHostToDevice));
    }
    bytes on_cuda() const
    {
        must(cudaDeviceSynchronize());
        return download((const unsigned char *)g.data.at, size);
    }

    /* ||CUDA - CPU|| / ||CPU||; NaN if either has one. */
    double apart() const
    {
        int64_t n = tune_tensor_elements(&c);
        std::vector<double> a((size_t)n), b((size_t)n);
        bytes here(size), there = on_cuda();
        tune_device_download(cpu, here.data(), c.data, (int64_t)size);
        tune_device_sync(cpu);
        tune_convert(a.data(), TUNE_F64, there.data(), c.dtype, n);
        tune_convert(b.data(), TUNE_F64, here.data(), c.dtype, n);
        double d = 0, s = 0;
        for (size_t i = 0; i < a.size(); i++) {
            d += (a[i] - b[i]) * (a[i] - b[i]);
            s += b[i] * b[i];
        }
        return s > 0 ? sqrt(d / s) : sqrt(d);
    }

  private:
    char *base;
};

static const enum tune_dtype types[] = {TUNE_F32, TUNE_BF16};
/* One row, odd rows, whole packs, more columns than a block has threads. */
static const int64_t sizes[][2] = {{1, 1}, {3, 7}, {5, 64}, {2, 1000}, {17, 257}, {4, 2056}};

struct verdict {
    double worst[2] = {0, 0}; /* float32, bfloat16 */
    bool same = true;
};

/* Run the operation on CUDA in each order. outs: what it writes. */
static void compare(verdict *v, const std::vector<both *> &outs, const std::function<int()> &run)
{
    bytes first;
    for (const emu::order &o : all_orders()) {
        bytes all;
        emu::set_order(o);
        for (both *b : outs)
            must(
                cudaMemcpy((void *)b->g.data.at, b->first.data(), b->size, cudaMemcpyHostToDevice));
        v->same = v->same && run() == 0;
        for (both *b : outs) {
            bytes more = b->on_cuda();
            all.insert(all.end(), more.begin(), more.end());
        }
        v->same = v->same && (first.empty() || all == first);
        first = all;
    }
    emu::set_order(emu::order());
    for (both *b : outs) {
        double e = b->apart(), *most = &v->worst[b->c.dtype == TUNE_BF16];
        *most = e <= *most ? *most : e; /* NaN too */
    }
}

static void judge(const char *name, const verdict &v)
{
    printf("# %s: float32 %.2g, bfloat16 %.2g\n", name, v.worst[0], v.worst[1]);
    check(std::string(name) + " is the CPU's", v.worst[0] <= 1e-5 && v.worst[1] <= 1e-2);
    check(std::string(name) + ": the same bits in every order", v.same);
}

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
    cpu = tune_device_open("cpu", 1);
    if (!cpu) {
        printf("not ok 1 - the CPU device: %s\n", tune_error_message());
        return 1;
    }
    must(cudaStreamCreateWithFlags(&cuda_state.stream, cudaStreamNonBlocking));
    cuda.state = &cuda_state;
    copies();
    axpby();
    rmsnorm();
    swiglu();
    tune_device_close(cpu);
    return done();
}
