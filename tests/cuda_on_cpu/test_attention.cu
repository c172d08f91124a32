/* test_attention.cu - attention of the CUDA device against the CPU's: groups of heads, widths,
 * packed texts, windows, caches, views. Outputs start as NaN; so does what a kernel must not read.
 */
#include "operations.h"

#include <chrono>

/* A view [B,T,heads,D] of columns on both devices. */
struct heads {
    struct tune_tensor c, g;
    heads(const both &rows, int64_t B, int64_t first, int64_t count, int64_t D)
        : c(tune_tensor_heads(&rows.c, B, first, count, D)),
          g(tune_tensor_heads(&rows.g, B, first, count, D))
    {
    }
};

/* The first positions [B,T] of packed rows: texts of `length` positions (0: one text). The first
 * text of row b is shorter by b. */
static std::vector<int32_t> text_starts(int64_t B, int64_t T, int length)
{
    std::vector<int32_t> first;
    for (int64_t b = 0; b < B; b++)
        for (int64_t t = 0; t < T; t++) {
            int64_t start = length ? (t + b) / length * length - b : 0;
            first.push_back((int32_t)(start > 0 ? start : 0));
        }
    return first;
}

struct training {
    int64_t B, T, H, K, D;
    int text, window, offset;
};

/* Queries, keys and values are views of one tensor; so are their gradients. */
static void trains(verdict *forward, verdict *backward, enum tune_dtype dtype, const training &t)
{
    int64_t rows = t.B * t.T, width = (t.H + 2 * t.K) * t.D;
    both qkv(dtype, rows, width, 1, 1, t.offset), out(dtype, rows, t.H * t.D, NAN, 2);
    both lse(TUNE_F32, rows, t.H, NAN, 3), dout(dtype, rows, t.H * t.D, 1, 4, t.offset);
    both dqkv(dtype, rows, width, NAN, 5, t.offset), starts(text_starts(t.B, t.T, t.text));
    heads q(qkv, t.B, 0, t.H, t.D), k(qkv, t.B, t.H * t.D, t.K, t.D),
        v(qkv, t.B, (t.H + t.K) * t.D, t.K, t.D);
    heads dq(dqkv, t.B, 0, t.H, t.D), dk(dqkv, t.B, t.H * t.D, t.K, t.D),
        dv(dqkv, t.B, (t.H + t.K) * t.D, t.K, t.D);
    struct tune_attention params = {t.window, 1 / sqrtf((float)t.D)};
    struct tune_tensor *starts_c = t.text ? &starts.c : nullptr;
    struct tune_tensor *starts_g = t.text ? &starts.g : nullptr;
    if (tune_attention_forward(cpu, &out.c, &lse.c, &q.c, &k.c, &v.c, starts_c, nullptr, nullptr,
                               params) < 0 ||
        tune_attention_backward(cpu, &dq.c, &dk.c, &dv.c, &dout.c, &q.c, &k.c, &v.c, &out.c, &lse.c,
                                starts_c, params) < 0) {
        check(std::string("the CPU computes it: ") + tune_error_message(), false);
        return;
    }
    compare(forward, {&out, &lse}, [&] {
        return tune_cuda_attention_forward(&cuda, &out.g, &lse.g, &q.g, &k.g, &v.g, starts_g,
                                           nullptr, nullptr, params);
    });
    out.take();
    lse.take();
    compare(backward, {&dqkv}, [&] {
        return tune_cuda_attention_backward(&cuda, &dq.g, &dk.g, &dv.g, &dout.g, &q.g, &k.g, &v.g,
                                            &out.g, &lse.g, starts_g, params);
    });
    note(backward, dtype, dqkv.apart(0, t.H * t.D));
    note(backward, dtype, dqkv.apart(t.H * t.D, (t.H + t.K) * t.D));
    note(backward, dtype, dqkv.apart((t.H + t.K) * t.D, width));
}

static void training_cases()
{
    static const training cases[] = {
        {1, 1, 1, 1, 64, 0, 0, 0},    {2, 7, 3, 1, 80, 0, 0, 0},     {1, 63, 3, 3, 96, 0, 0, 0},
        {1, 64, 8, 1, 16, 0, 0, 0},   {2, 65, 3, 1, 64, 13, 0, 0},   {1, 130, 1, 1, 64, 0, 20, 0},
        {1, 130, 3, 1, 32, 50, 7, 0}, {2, 65, 2, 1, 128, 40, 30, 0}, {1, 66, 2, 1, 256, 0, 0, 0},
        {1, 20, 2, 1, 20, 0, 0, 1},   {1, 70, 2, 2, 72, 0, 0, 0},    {1, 10, 1, 1, 7, 4, 0, 0},
    };
    verdict forward, backward;
    for (const training &t : cases)
        for (enum tune_dtype dtype : types)
            trains(&forward, &backward, dtype, t);
    judge("attention_forward", forward);
    judge("attention_backward", backward);
}

struct generation {
    int64_t B, T, capacity, H, K, D;
    std::vector<int32_t> kv_length, q_offset;
    int padding, window; /* padding: positions before the keys; 0: none */
};

/* Queries against a cache. Keys that are not there yet are NaN. */
static void generates(verdict *v, enum tune_dtype dtype, const generation &t)
{
    int64_t rows = t.B * t.T, between = t.capacity + 3, width = t.K * t.D;
    both q(dtype, rows, t.H * t.D, 1, 1), out(dtype, rows, t.H * t.D, NAN, 2);
    both lse(TUNE_F32, rows, t.H, NAN, 3), kv_length(t.kv_length), q_offset(t.q_offset);
    both k(dtype, t.B * between, width, 1, 4), values(dtype, t.B * between, width, 1, 5);
    both starts(std::vector<int32_t>((size_t)rows, t.padding));
    size_t element = dtype == TUNE_F32 ? 4 : 2, row = (size_t)width * element;
    for (int64_t b = 0; b < t.B; b++)
        for (int64_t i = t.kv_length[(size_t)b]; i < between; i++)
            for (both *x : {&k, &values})
                memset(x->first.data() + (size_t)(b * between + i) * row, 0xff, row);
    k.reset();
    values.reset();
    heads view_q(q, t.B, 0, t.H, t.D), view_k(k, t.B, 0, t.K, t.D),
        view_v(values, t.B, 0, t.K, t.D);
    for (struct tune_tensor *x : {&view_k.c, &view_k.g, &view_v.c, &view_v.g}) {
        x->outer = between * width;
        x->shape[1] = t.capacity;
    }
    struct tune_attention params = {t.window, 1 / sqrtf((float)t.D)};
    if (tune_attention_forward(cpu, &out.c, &lse.c, &view_q.c, &view_k.c, &view_v.c,
                               t.padding ? &starts.c : nullptr, &kv_length.c, &q_offset.c,
                               params) < 0) {
        check(std::string("the CPU computes it: ") + tune_error_message(), false);
        return;
    }
    compare(v, {&out, &lse}, [&] {
        return tune_cuda_attention_forward(&cuda, &out.g, &lse.g, &view_q.g, &view_k.g, &view_v.g,
                                           t.padding ? &starts.g : nullptr, &kv_length.g,
                                           &q_offset.g, params);
    });
}

static void generation_cases()
{
    static const generation cases[] = {
        {2, 1, 200, 9, 3, 64, {150, 200}, {149, 199}, 0, 0},
        {3, 1, 130, 8, 1, 128, {70, 0, 130}, {69, 0, 129}, 5, 0},
        {1, 1, 2200, 3, 1, 16, {2150}, {2149}, 0, 0},
        {2, 8, 140, 8, 1, 64, {120, 12}, {112, 4}, 3, 0},
        {1, 2, 100, 3, 3, 256, {100}, {98}, 0, 50},
        {1, 5, 70, 3, 1, 80, {40}, {35}, 0, 10},
        {2, 9, 150, 3, 1, 64, {140, 0}, {131, 0}, 2, 0},
        {1, 70, 150, 2, 1, 96, {150}, {80}, 0, 40},
        {1, 3, 40, 2, 1, 12, {33}, {30}, 0, 0},
    };
    verdict v;
    for (const generation &t : cases)
        for (enum tune_dtype dtype : types)
            generates(&v, dtype, t);
    judge("attention_forward of a cache", v);
}

/* One query over 100 keys; alone, and as the second row of a larger cache, after padding. */
static bytes alone_or_not(enum tune_dtype dtype, bool alone)
{
    const int64_t H = 6, K = 2, D = 64, width = K * D, pad = alone ? 0 : 37, B = alone ? 1 : 2;
    const int64_t capacity = alone ? 100 : 300, last = B - 1;
    both q(dtype, B, H * D, 1, 1), out(dtype, B, H * D, NAN, 2), lse(TUNE_F32, B, H, NAN, 3);
    both k(dtype, B * capacity, width, 1, 4), values(dtype, B * capacity, width, 1, 5);
    both same_q(dtype, 1, H * D, 1, 6), same_k(dtype, 100, width, 1, 7),
        same_v(dtype, 100, width, 1, 8);
    auto put = [](both *to, size_t at, const both &x) {
        memcpy(to->first.data() + at, x.first.data(), x.size);
        to->reset();
    };
    size_t row = (size_t)width * (dtype == TUNE_F32 ? 4 : 2);
    put(&q, (size_t)last * same_q.size, same_q);
    put(&k, (size_t)(last * capacity + pad) * row, same_k);
    put(&values, (size_t)(last * capacity + pad) * row, same_v);
    std::vector<int32_t> n(size_t(B), 50);
    n[(size_t)last] = (int32_t)pad + 100;
    both kv_length(n);
    n[(size_t)last]--;
    both q_offset(n), starts(std::vector<int32_t>((size_t)B, (int32_t)pad));
    heads view_q(q, B, 0, H, D), view_k(k, B, 0, K, D), view_v(values, B, 0, K, D);
    if (tune_cuda_attention_forward(&cuda, &out.g, &lse.g, &view_q.g, &view_k.g, &view_v.g,
                                    &starts.g, &kv_length.g, &q_offset.g, {0, 0.125f}) < 0)
        return bytes();
    bytes all = out.on_cuda(), more = lse.on_cuda();
    all.erase(all.begin(), all.begin() + (ptrdiff_t)((size_t)last * same_q.size));
    all.insert(all.end(), more.begin() + (ptrdiff_t)(last * H * 4), more.end());
    return all;
}

static void alone()
{
    for (enum tune_dtype dtype : types) {
        bytes one = alone_or_not(dtype, true);
        check(std::string("one query has the same bits in a larger cache: ") +
                  tune_dtype_name(dtype),
              !one.empty() && one == alone_or_not(dtype, false));
    }
}

/* A head that no kernel takes. */
static void too_wide()
{
    both x(TUNE_BF16, 4, 264, 1, 1), out(TUNE_BF16, 4, 264, NAN, 2), lse(TUNE_F32, 4, 1, NAN, 3);
    heads h(x, 1, 0, 1, 264);
    struct tune_attention params = {0, 1};
    check("a head of 264 numbers is refused, with a reason",
          tune_cuda_attention_forward(&cuda, &out.g, &lse.g, &h.g, &h.g, &h.g, nullptr, nullptr,
                                      nullptr, params) == -1 &&
              strstr(tune_error_message(), "264") && tune_error_kind() == TUNE_ERROR_CANNOT);
    check("so is its gradient",
          tune_cuda_attention_backward(&cuda, &h.g, &h.g, &h.g, &out.g, &h.g, &h.g, &h.g, &out.g,
                                       &lse.g, nullptr, params) == -1);
}

/* Working memory grows, and stays. */
static void scratch()
{
    tune_cuda_scratch_free(&cuda);
    int64_t floats = tune_cuda_attention_floats(2, 8, 70, 3, 20, true);
    float *at = tune_cuda_scratch(&cuda, floats);
    training small = {2, 70, 3, 1, 20, 0, 0, 0};
    generation few = {2, 8, 70, 3, 1, 20, {70, 30}, {62, 22}, 0, 0};
    verdict v;
    trains(&v, &v, TUNE_F32, small);
    generates(&v, TUNE_F32, few);
    check("scratch: what was reserved suffices", at && tune_cuda_scratch(&cuda, 1) == at &&
                                                     cuda_state.scratch_floats == floats);
    check("scratch: more than there is fails",
          !tune_cuda_scratch(&cuda, INT64_C(1) << 40) && tune_error_kind() == TUNE_ERROR_CANNOT);
    check("scratch: then it can be had again", tune_cuda_scratch(&cuda, 1) != nullptr);
    tune_cuda_scratch_free(&cuda);
}

int main()
{
    begin_operations();
    auto begin = std::chrono::steady_clock::now();
    training_cases();
    generation_cases();
    alone();
    too_wide();
    scratch();
    printf("# %.1f s\n", std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
                             .count());
    return end_operations();
}
