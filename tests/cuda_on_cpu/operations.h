/* operations.h - an operation of the CUDA device against the CPU's, in every order of lanes and
 * blocks. Outputs that are set start as NaN. Limits: 1e-5 in float32, 1e-2 in bfloat16.
 *
 *     int main()
 *     {
 *         begin_operations();
 *         verdict v;
 *         both y(TUNE_F32, 3, 7, NAN, 1), x(TUNE_F32, 3, 7, 1, 2);
 *         tune_copy(cpu, &y.c, &x.c);
 *         compare(&v, {&y}, [&] { return tune_cuda_copy(&cuda, &y.g, &x.g); });
 *         judge("copy", v);
 *         return end_operations();
 *     } */
#ifndef CUDA_ON_CPU_OPERATIONS_H
#define CUDA_ON_CPU_OPERATIONS_H

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
        int64_t n = tune_tensor_elements(&c);
        std::vector<float> v((size_t)n);
        for (int64_t i = 0; i < n; i++)
            v[(size_t)i] = scale * (float)tune_random_normal(seed, 1, (uint64_t)i);
        first.resize((size_t)tune_tensor_bytes(&c));
        if (tune_convert(first.data(), dtype, v.data(), TUNE_F32, n) < 0)
            abort();
        allocate(offset);
    }
    /* A vector of indices. */
    explicit both(const std::vector<int> &numbers)
    {
        tune_address none = {0};
        c = tune_tensor_1d(none, TUNE_I32, (int64_t)numbers.size());
        first = raw(numbers);
        allocate(0);
    }
    /* The scalars of a step. */
    explicit both(const tune_scalars &s)
    {
        tune_address none = {0};
        c = tune_tensor_1d(none, TUNE_F64, (int64_t)(sizeof s / 8));
        first = raw(std::vector<tune_scalars>{s});
        allocate(0);
    }
    both(const both &) = delete;
    both &operator=(const both &) = delete;
    ~both()
    {
        tune_device_free(cpu, c.data, (int64_t)size + 64);
        must(cudaFree(base));
    }
    void upload()
    {
        send((void *)g.data.at, first.data(), size);
    }
    void reset()
    {
        tune_device_upload(cpu, c.data, first.data(), (int64_t)size);
        upload();
    }
    bytes on_cuda() const
    {
        must(cudaDeviceSynchronize());
        return download((const unsigned char *)g.data.at, size);
    }

    bytes on_cpu() const
    {
        bytes all(size);
        tune_device_download(cpu, all.data(), c.data, (int64_t)size);
        tune_device_sync(cpu);
        return all;
    }
    /* Give CUDA the CPU's numbers. */
    void take()
    {
        bytes all = on_cpu();
        send((void *)g.data.at, all.data(), size);
    }

    /* ||CUDA - CPU|| / ||CPU|| of the columns [from, to); NaN if either has one. Equal infinities
     * are no difference. */
    double apart(int64_t from = 0, int64_t to = INT64_MAX) const
    {
        int64_t n = tune_tensor_elements(&c), width = c.shape[c.ndim - 1];
        std::vector<double> a((size_t)n), b((size_t)n);
        bytes here = on_cpu(), there = on_cuda();
        tune_convert(a.data(), TUNE_F64, there.data(), c.dtype, n);
        tune_convert(b.data(), TUNE_F64, here.data(), c.dtype, n);
        double d = 0, s = 0;
        for (size_t i = 0; i < a.size(); i++) {
            int64_t column = (int64_t)i % width;
            if (column < from || column >= to || (std::isinf(a[i]) && a[i] == b[i]))
                continue;
            d += (a[i] - b[i]) * (a[i] - b[i]);
            s += b[i] * b[i];
        }
        return s > 0 ? sqrt(d / s) : sqrt(d);
    }

  private:
    char *base;
    void allocate(int offset)
    {
        int64_t shift = offset * tune_dtype_bits(c.dtype) / 8;
        size = first.size();
        g = c;
        c.data = tune_device_alloc(cpu, (int64_t)size + 64, "a test's tensor");
        g.data.at = (uint64_t)device<char>(size + (size_t)shift) + (uint64_t)shift;
        base = (char *)g.data.at - shift;
        reset();
    }
};

static const enum tune_dtype types[] = {TUNE_F32, TUNE_BF16};
/* One row, odd rows, whole packs, more columns than a block has threads. */
static const int64_t sizes[][2] = {{1, 1}, {3, 7}, {5, 64}, {2, 1000}, {17, 257}, {4, 2056}};

/* A step in the middle of a run. */
static inline tune_scalars a_step()
{
    tune_scalars s = {};
    s.loss_sum = 12.5;
    s.labels = 40;
    s.square_sum = 3;
    s.gradient_scale = 0.025;
    s.updates = 7;
    s.lr = 0.01;
    s.step = 8;
    s.pass = 2;
    return s;
}

struct verdict {
    double worst[2] = {0, 0}; /* float32, bfloat16 */
    bool same = true;
};

static inline void note(verdict *v, enum tune_dtype dtype, double error)
{
    double *most = &v->worst[dtype == TUNE_BF16];
    *most = std::isnan(*most) || error <= *most ? *most : error; /* NaN stays */
}

/* Run the operation on CUDA in each order. outs: what it writes. */
static inline void compare(verdict *v, const std::vector<both *> &outs,
                           const std::function<int()> &run)
{
    bytes first;
    for (const emu::order &o : all_orders()) {
        bytes all;
        emu::set_order(o);
        for (both *b : outs)
            b->upload();
        v->same = v->same && run() == 0;
        for (both *b : outs) {
            bytes more = b->on_cuda();
            all.insert(all.end(), more.begin(), more.end());
        }
        v->same = v->same && (first.empty() || all == first);
        first = all;
    }
    emu::set_order(emu::order());
    for (both *b : outs)
        note(v, b->c.dtype, b->apart());
}

static inline void judge(const char *name, const verdict &v)
{
    printf("# %s: float32 %.2g, bfloat16 %.2g\n", name, v.worst[0], v.worst[1]);
    check(std::string(name) + " is the CPU's", v.worst[0] <= 1e-5 && v.worst[1] <= 1e-2);
    check(std::string(name) + ": the same bits in every order", v.same);
}

static inline void begin_operations()
{
    cpu = tune_device_open("cpu", 1);
    if (!cpu) {
        printf("not ok 1 - the CPU device: %s\n", tune_error_message());
        exit(1);
    }
    must(cudaStreamCreateWithFlags(&cuda_state.stream, cudaStreamNonBlocking));
    cuda.state = &cuda_state;
    cuda.name = "cuda";
}

static inline int end_operations()
{
    tune_cuda_products_free(&cuda_state);
    tune_cuda_scratch_free(&cuda);
    tune_device_close(cpu);
    return done();
}

#endif
