/* cuda_paper.cu - what a training step on one GPU should take, on paper. No GPU is needed, and
 * nothing is computed: the model's own code queues a step on the CUDA device, whose launches the
 * emulator only counts.
 *
 *     make cuda-paper                  the two cases of gpu_step.h on an H200, as a table
 *     cuda_paper BOUNDS [--gpu h200|h100|a100|rtx4090] [--logits MIB] [CASE...]
 *                                      BOUNDS: tests/cuda_compiled.txt
 *
 * FLOPs and bytes are those of ops.h. Registers and shared memory are those that nvcc gave each
 * kernel for sm_90a. The GPU's figures are public; the shares of them that a kernel reaches are
 * assumptions (assumptions.h), printed with the table. A measured run is to be held against it. */
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "assumptions.h"
#include "bench/gpu_step.h"
#include "kernel_bounds.h"
#include "profilers/costs.h"

/* Blocks of a kernel on one SM at a time. Registers go to warps, in units of 256. */
static int blocks_on_sm(const resources &r, int threads, size_t dynamic)
{
    int warps = (threads + 31) / 32, each = (r.registers * 32 + 255) / 256 * 256 * warps;
    size_t shared = ((size_t)r.shared + dynamic + 1024 + 127) / 128 * 128;
    int most = std::min<int>(on->blocks, on->threads / (warps * 32));
    most = std::min(most, each > 0 ? REGISTERS / each : most);
    return std::min<int>(most, (int)((size_t)on->shared / shared));
}

/* ---- the step's operations ---- */

struct launch {
    std::string kernel;
    unsigned blocks, threads;
    size_t dynamic;
};

/* Equal operations. */
struct row {
    std::string op, what, shape;
    double flops = 0, bytes = 0; /* of one */
    int64_t M = 0, N = 0, K = 0; /* gemm: of c, and what is summed */
    double floats = 0;           /* gemm: float32 numbers of a and b, which are rounded first */
    bool narrow = false;         /* gemm: operands are bfloat16 */
    double numbers = 0;          /* of the first output */
    double rows = 0;             /* of it */
    int times = 0;
    std::vector<launch> launches; /* of the first */
};

static std::vector<row> rows;
static row *current;
static bool first_of_its_kind;
static const struct tune_ops *real;
static const struct tune_batch *batch;
static int batch_text; /* positions of each text */

/* (query, key) pairs over all heads: the batch says which keys a query sees. */
static double pairs(struct tune_device *, const struct tune_tensor *q, const struct tune_tensor *,
                    const struct tune_tensor *, const struct tune_tensor *,
                    const struct tune_tensor *, const struct tune_attention *)
{
    double seen = 0;
    for (int64_t i = 0; i < (int64_t)batch->B * batch->T; i++)
        seen += (double)(i % batch->T - batch->starts[i] + 1);
    return seen * (double)q->shape[2];
}

static void begin_op(struct tune_device *dev, const char *op, const struct tune_tensor *shaped,
                     double flops, double moved, const char *way)
{
    row r;
    r.op = op;
    r.what = std::string(dev->doing.what) + (*way && *dev->doing.what ? " " : "") + way;
    for (int i = 0; shaped && i < shaped->ndim; i++)
        r.shape += (i ? "x" : "") + std::to_string(shaped->shape[i]);
    r.flops = flops;
    r.bytes = moved;
    r.rows = shaped && shaped->ndim > 1 ? (double)shaped->shape[0] : 1;
    r.numbers = shaped ? (double)tune_tensor_elements(shaped) : 0;
    for (row &old : rows)
        if (old.op == r.op && old.what == r.what && old.shape == r.shape && old.flops == flops &&
            old.bytes == moved) {
            current = &old;
            first_of_its_kind = false;
            current->times++;
            return;
        }
    r.times = 1;
    rows.push_back(r);
    current = &rows.back();
    first_of_its_kind = true;
}

#define COST(flops, moved, way) (double)(flops), (double)(moved), way
#define COUNTED(op)                                                                                \
    static int op(struct tune_device *dev TUNE_ARGS_##op(TUNE_PARAMETER))                          \
    {                                                                                              \
        const struct tune_tensor *shaped = nullptr;                                                \
        double all = 0 TUNE_ARGS_##op(TOUCHED);                                                    \
        TUNE_ARGS_##op(SHAPED)(void) all;                                                          \
        begin_op(dev, #op, shaped, TUNE_COST_##op);                                                \
        if (first_of_its_kind) {                                                                   \
            TUNE_ARGS_##op(NOTE)                                                                   \
        }                                                                                          \
        int status = real->op(dev TUNE_ARGS_##op(TUNE_ARGUMENT));                                  \
        current = nullptr;                                                                         \
        return status;                                                                             \
    }
/* A product's size, and what of its operands must be rounded first. What it adds to, r, is none. */
#define NOTE(kind, ...) NOTE_##kind(__VA_ARGS__)
#define NOTE_SET(x)
#define NOTE_EDIT(x, old)
#define NOTE_GET(x)                                                                                \
    current->floats += x && x->dtype == TUNE_F32 && strcmp(#x, "r") != 0 ? count(x) : 0;
#define NOTE_STEP(x)
#define NOTE_VALUE(x, T) note_value(#x, shaped, x);
static void note_value(const char *name, const struct tune_tensor *c, enum tune_dtype x)
{
    if (strcmp(name, "operands") != 0)
        return;
    current->narrow = x == TUNE_BF16;
    current->M = c->shape[0];
    current->N = c->shape[1];
    current->K = (int64_t)(current->flops / 2 / (double)(c->shape[0] * c->shape[1]) + 0.5);
}
template <class T> static void note_value(const char *, const struct tune_tensor *, const T &) {}
TUNE_OPS(COUNTED)

static void see(const void *kernel, const emu::grid &g)
{
    if (!current || !first_of_its_kind)
        return;
    launch l = {kernel_name(kernel), g.blocks.x * g.blocks.y * g.blocks.z,
                g.threads.x * g.threads.y * g.threads.z, g.shared};
    current->launches.push_back(l);
}

/* ---- time ---- */

struct fit {
    int on_sm;    /* blocks */
    double share; /* of an SM's warps */
    double waves;
};

static fit fit_of(const launch &l)
{
    auto found = compiled.find(l.kernel);
    if (found == compiled.end())
        return {0, 0, 0};
    int on_sm = blocks_on_sm(found->second, (int)l.threads, l.dynamic);
    int warps = (int)(l.threads + 31) / 32;
    return {on_sm, (double)on_sm * warps * 32 / on->threads,
            on_sm ? (double)l.blocks / on_sm / on->sms : 0};
}

/* The launch with most threads, among those of kernels for tensor cores if there are any. */
static const launch *largest(const row &r)
{
    const launch *most = nullptr;
    double weight = 0;
    for (const launch &l : r.launches) {
        auto found = compiled.find(l.kernel);
        bool products = found != compiled.end() && found->second.tensor_cores;
        double this_one = (double)l.blocks * l.threads * (products ? 1e6 : 1);
        if (this_one > weight) {
            most = &l;
            weight = this_one;
        }
    }
    return most;
}

static bool is_product(const row &r) { return r.op == "gemm" || r.op == "gemm_add"; }

/* Kernels of one operation: cuBLASLt's is not among the launches, nor is a copy or a fill. */
static int64_t kernels_of(const row &r)
{
    int64_t n = (int64_t)r.launches.size() + is_product(r);
    return n > 0 ? n : 1;
}

static double whole(double x, double of) { return std::ceil(x / of) * of; }

struct estimate {
    double bound_s, expected_s;
    const char *limit;
};

/* A product, behind the kernels that round its float32 operands. */
static estimate product_time(const row &r)
{
    double M = (double)r.M, N = (double)r.N, K = (double)r.K;
    bool thin = std::min({M, N, K}) <= THIN;
    double rate = r.narrow ? on->tensor_flops : on->float_flops;
    double share = std::min(N, K) < NARROW ? NARROW_SHARE : PRODUCT_SHARE;
    double flops = M > 0 ? 2 * K * whole(M, 64) * whole(N, 64) : r.flops;
    double casts = r.narrow ? (double)r.launches.size() : 0;
    double rounded = casts > 0 ? r.floats : 0;
    double arithmetic = flops / (rate * share);
    double memory = (r.bytes - 2 * rounded) / (on->bandwidth * (thin ? THIN_SHARE : STREAM_SHARE));
    double cast_s = std::max(6 * rounded / (on->bandwidth * ELEMENT_SHARE), casts * LEAST_S);
    return {std::max(r.flops / rate, r.bytes / on->bandwidth),
            std::max({arithmetic, memory, LEAST_S}) + cast_s,
            arithmetic > memory ? "arithmetic" : "memory"};
}

/* Of a pair of shares: for texts of 512, and of 2048. */
static double attention_share(const double share[2])
{
    double at = std::log2(batch_text / 512.0) / 2;
    return share[0] + (share[1] - share[0]) * std::min(1.0, std::max(0.0, at));
}

/* The bound is at the data sheet's rates. The expected time has the assumed shares, without the gap
 * in front of each kernel. Blocks that do not fill the GPU leave parts of it idle. */
static estimate time_of(const row &r)
{
    if (is_product(r))
        return product_time(r);
    bool forward = r.op == "attention_forward", attention = forward || r.op == "attention_backward";
    double rate = attention ? on->tensor_flops : on->float_flops, idle = 1, issued = 0;
    double share = attention ? attention_share(forward ? FORWARD_SHARE : BACKWARD_SHARE) : 0.5;
    const launch *most = largest(r);
    bool rows_wait = r.op == "cross_entropy_rows";
    if (most && most->blocks < (unsigned)on->sms && !rows_wait)
        idle = (double)on->sms / most->blocks;
    for (const auto &i : instructions)
        if (r.op == i.op)
            issued = r.numbers * i.each / (4 * 32 * on->sms * on->clock * ISSUE_SHARE);
    double arithmetic = std::max(r.flops / (rate * share) * idle, issued);
    double memory = r.bytes / (on->bandwidth * ELEMENT_SHARE) * idle;
    if (rows_wait && most) { /* each block has one row */
        int at_once = std::max(1, fit_of(*most).on_sm) * on->sms;
        double waits = std::max(1.0, r.rows / at_once);
        memory = std::max(memory, r.bytes / r.rows / ROW_RATE * waits);
    }
    estimate e = {std::max(r.flops / rate, r.bytes / on->bandwidth), std::max(arithmetic, memory),
                  arithmetic > memory ? "arithmetic" : "memory"};
    double least = LEAST_S * (double)kernels_of(r);
    if (least > e.expected_s) {
        e.expected_s = least;
        e.limit = "launch";
    }
    return e;
}

/* The part of a step that an operation belongs to. */
enum { PRODUCTS, ADAPTERS, LOSS, ATTENTION, REST, PARTS };
static const char *const part_names[PARTS] = {"products", "adapters", "loss", "attention",
                                              "norms, activations, casts, optimizer"};
static int part_of(const row &r)
{
    if (r.what.compare(0, 7, "lm_head") == 0 || r.op == "cross_entropy_rows" ||
        r.op == "gather" || r.op == "scatter")
        return LOSS;
    if (is_product(r))
        return std::min({r.M, r.N, r.K}) <= THIN ? ADAPTERS : PRODUCTS;
    return r.op.compare(0, 9, "attention") == 0 ? ATTENTION : REST;
}

/* ---- the tables ---- */

static void print_operations()
{
    printf("%9s %5s %9s %9s %9s %-10s %-4s %s\n", "ms a step", "times", "us each", "GFLOP", "MB",
           "limit", "occ.", "operation, of what, first output; kernels");
    std::vector<const row *> order;
    for (const row &r : rows)
        order.push_back(&r);
    std::stable_sort(order.begin(), order.end(), [](const row *a, const row *b) {
        return time_of(*a).expected_s * a->times > time_of(*b).expected_s * b->times;
    });
    for (const row *r : order) {
        estimate e = time_of(*r);
        const launch *most = largest(*r);
        char occupancy[16] = "-";
        if (most && !is_product(*r))
            snprintf(occupancy, sizeof occupancy, "%.0f%%", 100 * fit_of(*most).share);
        std::string names = is_product(*r) ? "; cuBLASLt" : "";
        for (const launch &l : r->launches)
            if (names.find(l.kernel) == std::string::npos)
                names += "; " + l.kernel;
        printf("%9.3f %5d %9.1f %9.2f %9.2f %-10s %-4s %s%s%s %s%s\n",
               1e3 * e.expected_s * r->times, r->times, 1e6 * e.expected_s, r->flops / 1e9,
               r->bytes / 1e6, e.limit, occupancy, r->op.c_str(), r->what.empty() ? "" : " ",
               r->what.c_str(), r->shape.c_str(), names.c_str());
    }
}

static bool print_kernels()
{
    std::map<std::string, launch> kernels;
    bool known = true;
    for (const row &r : rows)
        for (const launch &l : r.launches) {
            std::string key =
                l.kernel + " " + std::to_string(l.threads) + " " + std::to_string(l.dynamic);
            auto old = kernels.find(key);
            if (old == kernels.end() || old->second.blocks < l.blocks)
                kernels[key] = l;
        }
    printf("\n%9s %9s %7s %7s %9s %9s %6s %s\n", "registers", "shared B", "threads", "blocks",
           "blocks/SM", "occupancy", "waves", "kernel, with its largest grid");
    for (const auto &k : kernels) {
        const launch &l = k.second;
        auto found = compiled.find(l.kernel);
        if (found == compiled.end()) {
            printf("# %s is not among the compiled kernels\n", l.kernel.c_str());
            known = false;
            continue;
        }
        fit f = fit_of(l);
        printf("%9d %9zu %7u %7u %9d %8.0f%% %6.2f %s\n", found->second.registers,
               (size_t)found->second.shared + l.dynamic, l.threads, l.blocks, f.on_sm,
               100 * f.share, f.waves, l.kernel.c_str());
    }
    return known;
}

static void print_step(const gpu_step &s, const gpu_case &k)
{
    double bound = 0, flops = 0, moved = 0, part[PARTS] = {}, expected = 0;
    int64_t launches = 0;
    for (const row &r : rows) {
        estimate e = time_of(r);
        bound += e.bound_s * r.times;
        part[part_of(r)] += e.expected_s * r.times;
        expected += e.expected_s * r.times;
        flops += r.flops * r.times;
        moved += r.bytes * r.times;
        launches += kernels_of(r) * r.times;
    }
    double gaps = (double)launches * GAP_S, host = (double)launches * LAUNCH_S;
    double step = expected + gaps, model = tune_model_flops(s.m, k.text) * (double)s.batch.tokens;
    printf("\n# the step: %.1f TFLOP, %.1f GB moved, %.1f GiB of device memory\n", flops / 1e12,
           moved / 1e9, (double)s.dev->bytes_peak / (1 << 30));
    printf("# at the data sheet's rates: %.1f ms. expected, ms:", 1e3 * bound);
    for (int i = 0; i < PARTS; i++)
        printf(" %s %.1f;", part_names[i], 1e3 * part[i]);
    printf(" gaps %.1f\n# the host queues %lld kernels, without CUDA graphs: %.1f ms\n", 1e3 * gaps,
           (long long)launches, 1e3 * host);
    printf("expected %s, %s, logits of %lld rows at a time: %.1f ms a step, %.0f tokens/s, %.3f of "
           "the bfloat16 peak\n\n",
           k.name, on->name, (long long)tune_model_logit_rows(s.dev, &s.config, s.batch.tokens),
           1e3 * step, (double)s.batch.tokens / step, model / step / on->tensor_flops);
}

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, tune_error_message());
    return 1;
}

/* Tables and a step, or the step alone. */
static int paper(const gpu_case &k, bool tables)
{
    gpu_step s;
    struct tune_device *dev = tune_device_open("cuda", 1);
    if (!dev)
        return fail("the emulated device");
    emu::count_only(see);
    if (gpu_step_new(&s, dev, &k) < 0) {
        bool small = tune_error_kind() == TUNE_ERROR_CANNOT;
        printf("# %s cannot run on this GPU: %s\n\n", k.name, tune_error_message());
        gpu_step_free(&s);
        tune_device_close(dev);
        return small ? 0 : 1;
    }
    struct tune_ops table = *dev->ops;
    real = dev->ops;
#define ENTRY(op) table.op = op;
    TUNE_OPS(ENTRY)
    dev->ops = &table;
    batch = &s.batch;
    batch_text = k.text;
    rows.clear();
    if (gpu_step_run(&s) < 0)
        return fail(k.name);
    dev->ops = real;
    bool known = true;
    if (tables)
        printf("== %s: %d rows of %d positions, texts of %d; %s\n", k.name, k.B, k.T, k.text,
           k.lora ? "adapters of rank 16 on all linear layers, base in bfloat16"
                  : "all weights, float32 with bfloat16 products");
    if (tables) {
        print_operations();
        known = print_kernels();
    }
    print_step(s, k);
    gpu_step_free(&s);
    tune_device_close(dev);
    return known ? 0 : 1;
}

static void print_assumptions()
{
    printf("# On paper, not measured: %s (%.2f TB/s, %.0f TFLOP/s bfloat16, %.0f float32,\n"
           "# %d SMs). Assumptions of %s, before the first run on a GPU. Of the tensor cores'\n"
           "# rate: %.2f in products, %.2f in narrow ones; attention %.2f forward, %.2f back\n"
           "# at texts of 512, %.2f and %.2f at 2048. Of the bandwidth: %.2f for large matrices,\n"
           "# %.2f in products of rank 16, %.3f element by element. A kernel takes %.1f us or\n"
           "# more, and %.1f us lie before it; the host queues one in %.0f us. Registers and\n"
           "# shared memory are nvcc's for sm_90a. occ.: warps on an SM, of all that fit.\n\n",
           on->title, on->bandwidth / 1e12, on->tensor_flops / 1e12, on->float_flops / 1e12,
           on->sms, FROZEN, PRODUCT_SHARE, NARROW_SHARE, FORWARD_SHARE[0], BACKWARD_SHARE[0],
           FORWARD_SHARE[1], BACKWARD_SHARE[1], STREAM_SHARE, THIN_SHARE, ELEMENT_SHARE,
           1e6 * LEAST_S, 1e6 * GAP_S, 1e6 * LAUNCH_S);
}

static int usage(const char *wrong)
{
    fprintf(stderr,
            "cuda_paper: %s\ncuda_paper BOUNDS [--gpu h200|h100|a100|rtx4090] [--logits MIB] "
            "[CASE...]: BOUNDS is tests/cuda_compiled.txt\n",
            wrong);
    return 2;
}

int main(int argc, char **argv)
{
    setenv("TUNE_CUDA_GRAPHS", "0", 1); /* each launch when its operation is called */
    std::vector<const char *> names;
    if (argc < 2 || !read_bounds(argv[1]))
        return usage("no bounds");
    for (int i = 2; i < argc; i++) {
        std::string word = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
        if (word == "--gpu") {
            on = nullptr;
            for (const gpu &g : gpus)
                on = value == g.name ? &g : on;
            if (!on)
                return usage("no such GPU");
            i++;
        } else if (word == "--logits") {
            gpu_step_logits = (int64_t)(atof(value.c_str()) * 1048576);
            i++;
        } else if (!gpu_case_named(argv[i])) {
            return usage("no such case");
        } else {
            names.push_back(argv[i]);
        }
    }
    if (names.empty())
        names = {"llama3-8b-lora", "smollm2-135m-full"};
    print_assumptions();
    setenv("CUDA_ON_CPU_MEMORY", std::to_string((int64_t)on->memory).c_str(), 1);
    for (const char *name : names) {
        const gpu_case &k = *gpu_case_named(name);
        int status = paper(k, true);
        if (status == 0 && gpu_step_logits == 0) {
            printf("# with 48 MiB of logits at a time, as on %s:\n", FROZEN);
            gpu_step_logits = FROZEN_LOGITS;
            status = paper(k, false);
            gpu_step_logits = 0;
        }
        if (status != 0)
            return status;
    }
    return 0;
}
