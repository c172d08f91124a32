/* test_large.cu - tensors of over 2^34 elements: an index of 32 bits would be too small, even one
 * that counts packs of four. Only the last rows hold numbers, and only the last blocks run, so
 * little memory and time is used. The bits are those of a small tensor that has just these rows. */
#include "operations.h"

#include <sys/mman.h>

enum : int64_t { WIDE = 1 << 16, ROWS = 300000, LAST = 2 }; /* 2 10^10 elements */

/* A matrix [rows, columns], and a small one of its last rows. */
struct tall {
    struct tune_tensor large, small;
    size_t bytes;
    tall(enum tune_dtype dtype, int64_t rows, int64_t columns, uint64_t seed, int64_t last = LAST)
    {
        large = tune_tensor_2d({0}, dtype, rows, columns);
        small = tune_tensor_2d({0}, dtype, last, columns);
        bytes = (size_t)tune_tensor_bytes(&small);
        std::vector<float> v((size_t)(last * columns));
        for (size_t i = 0; i < v.size(); i++)
            v[i] = (float)tune_random_normal(seed, 1, i);
        ::bytes raw(bytes);
        if (tune_convert(raw.data(), dtype, v.data(), TUNE_F32, (int64_t)v.size()) < 0)
            abort();
        large.data.at = (uint64_t)device<char>((size_t)tune_tensor_bytes(&large));
        small.data.at = (uint64_t)device<char>(bytes);
        must(cudaMemcpy(end(), raw.data(), bytes, cudaMemcpyHostToDevice));
        must(cudaMemcpy((void *)small.data.at, raw.data(), bytes, cudaMemcpyHostToDevice));
    }
    tall(const tall &) = delete;
    tall &operator=(const tall &) = delete;
    ~tall()
    {
        must(cudaFree((void *)large.data.at));
        must(cudaFree((void *)small.data.at));
    }
    /* The last rows of the large one. */
    void *end() const
    {
        return (void *)(large.data.at + (uint64_t)tune_tensor_bytes(&large) - bytes);
    }
    bool same() const
    {
        must(cudaDeviceSynchronize());
        return download((const char *)end(), bytes) == download((const char *)small.data.at, bytes);
    }
};

/* The numbers of a row: a vector of one value. */
static tune_tensor vector(enum tune_dtype dtype, int64_t n, float value)
{
    std::vector<float> v((size_t)n, value);
    tune_tensor t = tune_tensor_1d({(uint64_t)upload(v)}, dtype, n);
    return t;
}

static tune_tensor indices(int64_t n, int value)
{
    return tune_tensor_1d({(uint64_t)upload(std::vector<int>((size_t)n, value))}, TUNE_I32, n);
}

/* Run the operation on large tensors, its last blocks alone, then on small ones. */
static void rows(const char *what, const std::function<int(bool)> &run,
                 std::initializer_list<const tall *> outs, uint64_t blocks = LAST)
{
    emu::order last;
    last.last_blocks = blocks;
    emu::set_order(last);
    bool good = run(true) == 0;
    must(cudaDeviceSynchronize());
    emu::set_order(emu::order());
    good = good && run(false) == 0;
    for (const tall *t : outs)
        good = good && t->same();
    check(std::string(what) + " of over 2^34 elements", good);
}

/* T: the large tensor or the small one. */
#define T(x) (large ? &x.large : &x.small)

static void row_operations(enum tune_dtype dtype)
{
    std::string name = dtype == TUNE_BF16 ? ", bfloat16" : "";
    tune_tensor w = vector(TUNE_F32, WIDE, 0.5f), many = vector(TUNE_F32, ROWS, 2);
    tune_tensor few = tune_tensor_1d(many.data, TUNE_F32, LAST);
    tall x(dtype, ROWS, WIDE, 1), y(dtype, ROWS, WIDE, 2);
    auto named = [&](const char *op) { return op + name; };
    rows(named("rmsnorm_forward").c_str(),
         [&](bool large) {
             return tune_cuda_rmsnorm_forward(&cuda, T(y), nullptr, T(x), &w, 1e-5f, 0);
         },
         {&y});
    rows(named("rmsnorm_backward").c_str(),
         [&](bool large) {
             return tune_cuda_rmsnorm_backward(&cuda, T(y), nullptr, T(y), T(x), &w,
                                               large ? &many : &few, 0);
         },
         {&y});
    rows(named("bias_forward").c_str(),
         [&](bool large) { return tune_cuda_bias_forward(&cuda, T(y), &w, 2); }, {&y});
    rows(named("scale_columns").c_str(),
         [&](bool large) { return tune_cuda_scale_columns(&cuda, T(y), T(x), &w, 1, 2, 1); }, {&y});
    tune_scalars s = a_step();
    tune_address step = {(uint64_t)upload(std::vector<tune_scalars>{s})};
    rows(named("dropout").c_str(),
         [&](bool large) {
             struct tune_dropout none = {1, 0, 1, 1, 0};
             return tune_cuda_dropout(&cuda, T(y), T(x), step, none, 1, 0, 2);
         },
         {&y});
    tune_tensor table = vector(TUNE_F32, 4 * 64, 0.6f);
    tune_tensor positions = indices(ROWS, 3), small_positions = indices(LAST, 3);
    rows(named("rope").c_str(),
         [&](bool large) {
             return tune_cuda_rope(&cuda, T(y), &table,
                                   large ? &positions : &small_positions, 4, 16, 64,
                                   false);
         },
         {&y});
    tall squares(TUNE_F32, ROWS, 1, 3);
    rows(named("row_squares").c_str(),
         [&](bool large) {
             tune_tensor out = *T(squares);
             out.ndim = 1;
             return tune_cuda_row_squares(&cuda, &out, T(x));
         },
         {&squares});
    tall norms(TUNE_F32, ROWS, 2, 4);
    tune_tensor head = tune_tensor_1d(w.data, TUNE_F32, 64);
    rows(
        named("headnorm_forward").c_str(),
        [&](bool large) {
            tune_tensor out = *T(norms);
            out = tune_tensor_1d(out.data, TUNE_F32, 2 * out.shape[0]);
            return tune_cuda_headnorm_forward(&cuda, T(y), &out, T(x), &head, 1, 2, 1e-5f, 0);
        },
        {&y, &norms}, 1);
    rows(
        named("headnorm_backward").c_str(),
        [&](bool large) {
            tune_tensor out = *T(norms);
            out = tune_tensor_1d(out.data, TUNE_F32, 2 * out.shape[0]);
            return tune_cuda_headnorm_backward(&cuda, T(y), nullptr, T(x), &head, &out, 1, 2, 0);
        },
        {&y}, 1);
    tall half(dtype, ROWS, WIDE / 2, 5);
    rows(named("glu_forward").c_str(),
         [&](bool large) { return tune_cuda_glu_forward(&cuda, T(half), T(x), TUNE_GATE_SILU); },
         {&half});
    rows(named("glu_backward").c_str(),
         [&](bool large) {
             return tune_cuda_glu_backward(&cuda, T(y), T(half), T(x), TUNE_GATE_SILU);
         },
         {&y});
    for (const tune_tensor *t : {&w, &many, &table, &positions, &small_positions})
        must(cudaFree((void *)t->data.at));
    must(cudaFree((void *)step.at));
}

/* Rows that move: the index is large, the number of rows is not. */
static void moved_rows(enum tune_dtype dtype)
{
    std::string name = dtype == TUNE_BF16 ? ", bfloat16" : "";
    tall w(dtype, ROWS, WIDE, 1, 1), x(dtype, 3, WIDE, 2, 1), gradient(TUNE_F32, ROWS, WIDE, 3, 1);
    tune_tensor last = indices(3, ROWS - 1), first = indices(3, 0);
    tune_tensor out = tune_tensor_2d({(uint64_t)device<float>(3 * WIDE)}, dtype, 3, WIDE);
    size_t size = (size_t)tune_tensor_bytes(&out);
    auto embedded = [&](const tune_tensor *from, const tune_tensor *ids) {
        int status = tune_cuda_embed_forward(&cuda, &out, from, ids, 2);
        must(cudaDeviceSynchronize());
        return status == 0 ? download((const char *)out.data.at, size) : std::vector<char>();
    };
    check("embed_forward from over 2^34 elements" + name,
          embedded(&w.large, &last) == embedded(&w.small, &first));
    int status = tune_cuda_embed_backward(&cuda, &gradient.large, &x.large, &last, 2) |
                 tune_cuda_embed_backward(&cuda, &gradient.small, &x.large, &first, 2);
    check("embed_backward into over 2^34 elements" + name, status == 0 && gradient.same());
    tune_tensor one = tune_tensor_1d(last.data, TUNE_I32, 1);
    tune_tensor none = tune_tensor_1d(first.data, TUNE_I32, 1);
    status = tune_cuda_scatter(&cuda, &w.large, &x.small, &one) |
             tune_cuda_scatter(&cuda, &w.small, &x.small, &none);
    check("scatter into over 2^34 elements" + name, status == 0 && w.same());
    for (const tune_tensor *t : {&last, &first, &out})
        must(cudaFree((void *)t->data.at));
}

/* A chunk of logits of llama 3's vocabulary. */
static void loss()
{
    enum : int64_t { VOCABULARY = 128256, M = 140000 };
    tall logits(TUNE_F32, M, VOCABULARY, 1), found(TUNE_F32, M, 1, 2);
    tune_tensor labels = indices(M, 128000), few = indices(LAST, 128000);
    tune_scalars s = a_step();
    tune_address step = {(uint64_t)upload(std::vector<tune_scalars>{s})};
    rows("cross_entropy_rows",
         [&](bool large) {
             tune_tensor out = *T(found);
             out.ndim = 1;
             return tune_cuda_cross_entropy_rows(
                 &cuda, T(logits), step, &out, large ? &labels : &few, nullptr, nullptr, 0.1, true);
         },
         {&logits, &found});
    must(cudaFree((void *)labels.data.at));
    must(cudaFree((void *)few.data.at));
    must(cudaFree((void *)step.at));
}

/* Queries, keys and values of one row, 300 positions that lie 67 million numbers apart. */
static void attention(enum tune_dtype dtype)
{
    enum : int64_t { POSITIONS = 300, D = 16, FAR = 1 << 26 };
    tune_attention params = {0, 0.25f};
    both near(dtype, POSITIONS, 3 * D, 1, 1), out(dtype, POSITIONS, D, NAN, 2);
    both dnear(dtype, POSITIONS, 3 * D, NAN, 3), dout(dtype, POSITIONS, D, 1, 4);
    both lse(TUNE_F32, 0, POSITIONS, NAN, 5);
    int64_t size = tune_dtype_bits(dtype) / 8;
    auto far_from = [&](const both &from, bool with) {
        char *at = device<char>((size_t)(POSITIONS * FAR * size));
        for (int64_t t = 0; with && t < POSITIONS; t++)
            must(cudaMemcpyAsync(at + t * FAR * size, (char *)from.g.data.at + t * 3 * D * size,
                                 (size_t)(3 * D * size), cudaMemcpyDeviceToDevice));
        return tune_tensor_2d({(uint64_t)at}, dtype, POSITIONS, FAR);
    };
    tune_tensor qkv = far_from(near, true), dqkv = far_from(dnear, false);
    auto view = [&](const tune_tensor &rows, int64_t i) {
        return tune_tensor_heads(&rows, 1, i * D, 1, D);
    };
    bytes forward[2], backward[2];
    bool good = true;
    for (int large = 0; large < 2; large++) {
        tune_tensor q = view(large ? qkv : near.g, 0), k = view(large ? qkv : near.g, 1);
        tune_tensor v = view(large ? qkv : near.g, 2), l = lse.g;
        tune_tensor dq = view(large ? dqkv : dnear.g, 0), dk = view(large ? dqkv : dnear.g, 1);
        tune_tensor dv = view(large ? dqkv : dnear.g, 2);
        l = tune_tensor_2d(l.data, TUNE_F32, POSITIONS, 1);
        good = good && tune_cuda_attention_forward(&cuda, &out.g, &l, &q, &k, &v, nullptr, nullptr,
                                                   nullptr, params) == 0;
        forward[large] = out.on_cuda();
        good = good && tune_cuda_attention_backward(&cuda, &dq, &dk, &dv, &dout.g, &q, &k, &v,
                                                    &out.g, &l, nullptr, params) == 0;
        for (int64_t t = 0; large && t < POSITIONS; t++)
            must(cudaMemcpyAsync((char *)dnear.g.data.at + t * 3 * D * size,
                                 (char *)dqkv.data.at + t * FAR * size, (size_t)(3 * D * size),
                                 cudaMemcpyDeviceToDevice, cuda_state.stream));
        backward[large] = dnear.on_cuda();
    }
    std::string name = dtype == TUNE_BF16 ? ", bfloat16" : "";
    check("attention_forward of over 2^34 elements" + name, good && forward[0] == forward[1]);
    check("attention_backward of over 2^34 elements" + name, good && backward[0] == backward[1]);
    must(cudaFree((void *)qkv.data.at));
    must(cudaFree((void *)dqkv.data.at));
}

/* A product whose result spans over 2^34 elements, since its rows lie far apart. */
static void product()
{
    enum : int64_t { FAR = 1 << 27, M = 130, K = 3 };
    both a(TUNE_F32, K, M, 1, 1), b(TUNE_F32, K, 2, 1, 2), c(TUNE_F32, M, 2, NAN, 3);
    float *far = device<float>(M * FAR);
    tune_tensor out = tune_tensor_2d({(uint64_t)far}, TUNE_F32, M, 2);
    out.stride = FAR;
    int status = tune_cuda_gemm(&cuda, &c.g, &a.g, true, &b.g, false, 1, 0, TUNE_F32) |
                 tune_cuda_gemm(&cuda, &out, &a.g, true, &b.g, false, 1, 0, TUNE_F32);
    must(cudaDeviceSynchronize());
    check("gemm into over 2^34 elements",
          status == 0 && raw(download(far + (M - 1) * FAR, 2)) ==
                             raw(download((float *)c.g.data.at + (M - 1) * 2, 2)));
    must(cudaFree(far));
}

/* More rows or heads than a grid has. */
static void grids()
{
    both x(TUNE_F32, 1, 70000, 0, 1), lse(TUNE_F32, 0, 70000, NAN, 2);
    tune_attention params = {0, 1};
    for (bool many_rows : {true, false}) {
        int64_t B = many_rows ? 70000 : 1, H = 70000 / B;
        tune_tensor rows = tune_tensor_2d(x.g.data, TUNE_F32, B, H);
        tune_tensor q = tune_tensor_heads(&rows, B, 0, H, 1);
        tune_tensor l = tune_tensor_2d(lse.g.data, TUNE_F32, B, H);
        const char *says = many_rows ? "a batch of 70000 rows; on a GPU it may have at most 65535"
                                     : "70000 heads; on a GPU a layer may have at most 65535";
        std::string name = many_rows ? " of 70000 rows" : " of 70000 heads";
        int status = tune_cuda_attention_forward(&cuda, &rows, &l, &q, &q, &q, nullptr, nullptr,
                                                 nullptr, params);
        check("attention_forward" + name + " is refused in words",
              status < 0 && strstr(tune_error_message(), says));
        status = tune_cuda_attention_backward(&cuda, &q, &q, &q, &rows, &q, &q, &q, &rows, &l,
                                              nullptr, params);
        check("attention_backward" + name + " is refused in words",
              status < 0 && strstr(tune_error_message(), says));
    }
}

int main()
{
    setenv("CUDA_ON_CPU_MEMORY", "549755813888", 1); /* addresses; few of them are used */
    void *memory = mmap(nullptr, (size_t)3 << 40, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        printf("ok 1 - large tensors # SKIP no 3 TiB of addresses here\n1..1\n");
        return 0;
    }
    munmap(memory, (size_t)3 << 40);
    begin_operations();
    for (enum tune_dtype t : types) {
        row_operations(t);
        moved_rows(t);
        attention(t);
    }
    loss();
    product();
    grids();
    return end_operations();
}
