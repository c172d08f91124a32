/* cuda_paper.cu - what a training step on one GPU should take, on paper. No GPU is needed, and
 * nothing is computed: the model's own code queues a step on the CUDA device, whose launches the
 * emulator only counts.
 *
 *     make cuda-paper                  the two cases of gpu_step.h, as a table
 *     cuda_paper BOUNDS [CASE...]      BOUNDS: tests/cuda_compiled.txt
 *
 * FLOPs and bytes are those of ops.h. Registers and shared memory are those that nvcc gave each
 * kernel for sm_90a. The GPU's figures are public; the shares of them that a kernel reaches are
 * assumptions, printed with the table. A measured run is to be held against it. */
#include <cuda_runtime.h>

#include <cxxabi.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "bench/gpu_step.h"
#include "profilers/costs.h"

/* An H200: its data sheet, and the CUDA Programming Guide's table for compute capability 9.0. */
static const double BANDWIDTH = 4.8e12, TENSOR_FLOPS = 989e12, FLOAT_FLOPS = 67e12;
enum { SMS = 132, REGISTERS = 65536, THREADS = 2048, BLOCKS = 32, SHARED = 228 * 1024 };

/* Assumed shares of these rates, and the shortest time of a kernel. */
static const double MEMORY_SHARE = 0.80, PRODUCT_SHARE = 0.70, FORWARD_SHARE = 0.30,
                    BACKWARD_SHARE = 0.20, LEAST_S = 2.5e-6, LAUNCH_S = 4e-6;

/* ---- what nvcc made of a kernel ---- */

struct resources {
    int registers, stack, shared;
    bool tensor_cores;
};

static std::map<std::string, resources> compiled;

static void replace_all(std::string *s, const std::string &from, const std::string &to)
{
    for (size_t at; (at = s->find(from)) != std::string::npos;)
        s->replace(at, from.size(), to);
}

/* The name of a kernel, as the table of bounds writes it. */
static std::string kernel_name(const void *kernel)
{
    Dl_info info;
    int status;
    if (!dladdr(kernel, &info) || !info.dli_sname)
        return "?";
    char *plain = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    std::string name = plain ? plain : info.dli_sname;
    free(plain);
    name = name.substr(0, name.find('('));
    if (name.compare(0, 5, "void ") == 0)
        name = name.substr(5);
    replace_all(&name, "__nv_bfloat16", "bf16");
    replace_all(&name, "> >", ">>");
    return name;
}

/* Read the column of sm_90a. */
static bool read_bounds(const char *path)
{
    std::ifstream file(path);
    std::string line, word;
    size_t column = 0, columns = 0;
    while (std::getline(file, line)) {
        std::istringstream words(line);
        if (line.compare(0, 11, "# columns: ") == 0) {
            words >> word >> word;
            while (words >> word && word != "kernel") {
                column = word == "sm_90a" ? columns : column;
                columns++;
            }
        }
        if (line.empty() || line[0] == '#')
            continue;
        resources r = {};
        for (size_t i = 0; i < columns && words >> word; i++)
            if (i == column) {
                sscanf(word.c_str(), "%d/%d/%d", &r.registers, &r.stack, &r.shared);
                r.tensor_cores = word.find("/mma") != std::string::npos;
            }
        std::getline(words >> std::ws, word);
        compiled[word] = r;
    }
    return !compiled.empty();
}

/* Blocks of a kernel on one SM at a time. Registers go to warps, in units of 256. */
static int blocks_on_sm(const resources &r, int threads, size_t dynamic)
{
    int warps = (threads + 31) / 32, each = (r.registers * 32 + 255) / 256 * 256 * warps;
    size_t shared = ((size_t)r.shared + dynamic + 1024 + 127) / 128 * 128;
    int most = std::min<int>(BLOCKS, THREADS / (warps * 32));
    most = std::min(most, each > 0 ? REGISTERS / each : most);
    return std::min<int>(most, (int)(SHARED / shared));
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
    int64_t M = 0, N = 0;        /* gemm: of c */
    double floats = 0;           /* gemm: float32 numbers of a and b */
    double extra = 0;            /* gemm: bytes moved to round them */
    bool narrow = false;         /* gemm: operands are bfloat16 */
    int times = 0;
    std::vector<launch> launches; /* of the first */
};

static std::vector<row> rows;
static row *current;
static bool first_of_its_kind;
static const struct tune_ops *real;
static const struct tune_batch *batch;

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
    if (current->narrow)
        current->extra = 4 * current->floats; /* read 4 bytes, write 2 and read 2, not read 4 */
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
    return {on_sm, (double)on_sm * warps * 32 / THREADS,
            on_sm ? (double)l.blocks / on_sm / SMS : 0};
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

/* The bound is at the data sheet's rates. The expected time has the assumed shares. Blocks that do
 * not fill the GPU, or its last wave, leave parts of it idle. */
static estimate time_of(const row &r)
{
    bool product = is_product(r), attention = r.op.compare(0, 9, "attention") == 0;
    double rate = attention || (product && r.narrow) ? TENSOR_FLOPS : FLOAT_FLOPS;
    double share = product                        ? PRODUCT_SHARE
                   : r.op == "attention_forward"  ? FORWARD_SHARE
                   : r.op == "attention_backward" ? BACKWARD_SHARE
                                                  : 0.5;
    double flops = product && r.M > 0 ? r.flops / (double)(r.M * r.N) * whole((double)r.M, 64) *
                                            whole((double)r.N, 64)
                                      : r.flops;
    double idle = 1;
    const launch *most = largest(r);
    if (most && !product) {
        double waves = fit_of(*most).waves;
        if (most->blocks < SMS)
            idle = (double)SMS / most->blocks;
        else if (attention && waves > 1)
            idle = std::ceil(waves) / waves;
    }
    double arithmetic = flops / (rate * share) * idle;
    double memory = (r.bytes + r.extra) / (BANDWIDTH * MEMORY_SHARE) * idle;
    double least = LEAST_S * (double)kernels_of(r);
    estimate e = {std::max(r.flops / rate, r.bytes / BANDWIDTH), std::max(arithmetic, memory),
                  arithmetic > memory ? "arithmetic" : "memory"};
    if (least > e.expected_s) {
        e.expected_s = least;
        e.limit = "launch";
    }
    return e;
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
    double bound = 0, expected = 0, flops = 0, moved = 0;
    int64_t launches = 0;
    for (const row &r : rows) {
        estimate e = time_of(r);
        bound += e.bound_s * r.times;
        expected += e.expected_s * r.times;
        flops += r.flops * r.times;
        moved += r.bytes * r.times;
        launches += kernels_of(r) * r.times;
    }
    double host = (double)launches * LAUNCH_S, step = std::max(expected, host);
    double model = tune_model_flops(s.m, k.text) * (double)s.batch.tokens;
    printf("\n# the step: %.1f TFLOP, %.1f GB moved, %.1f GiB of device memory\n", flops / 1e12,
           moved / 1e9, (double)s.dev->bytes_peak / (1 << 30));
    printf("# at the data sheet's rates: %.1f ms. expected of the GPU: %.1f ms\n", 1e3 * bound,
           1e3 * expected);
    printf("# the host queues %lld kernels, without CUDA graphs: %.1f ms\n", (long long)launches,
           1e3 * host);
    printf("expected %s: %.1f ms a step, %.0f tokens/s, %.3f of the bfloat16 peak\n\n", k.name,
           1e3 * step, (double)s.batch.tokens / step, model / step / TENSOR_FLOPS);
}

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, tune_error_message());
    return 1;
}

static int paper(const gpu_case &k)
{
    gpu_step s;
    struct tune_device *dev = tune_device_open("cuda", 1);
    if (!dev)
        return fail("the emulated device");
    emu::count_only(see);
    if (gpu_step_new(&s, dev, &k) < 0)
        return fail(k.name);
    struct tune_ops table = *dev->ops;
    real = dev->ops;
#define ENTRY(op) table.op = op;
    TUNE_OPS(ENTRY)
    dev->ops = &table;
    batch = &s.batch;
    rows.clear();
    if (gpu_step_run(&s) < 0)
        return fail(k.name);
    dev->ops = real;
    printf("== %s: %d rows of %d positions, texts of %d; %s\n", k.name, k.B, k.T, k.text,
           k.lora ? "adapters of rank 16 on all linear layers, base in bfloat16"
                  : "all weights, float32 with bfloat16 products");
    print_operations();
    bool known = print_kernels();
    print_step(s, k);
    gpu_step_free(&s);
    tune_device_close(dev);
    return known ? 0 : 1;
}

int main(int argc, char **argv)
{
    setenv("TUNE_CUDA_GRAPHS", "0", 1); /* each launch when its operation is called */
    std::vector<const char *> names(argv + std::min(argc, 2), argv + argc);
    if (argc < 2 || !read_bounds(argv[1])) {
        fprintf(stderr, "cuda_paper BOUNDS [CASE...]: BOUNDS is tests/cuda_compiled.txt\n");
        return 2;
    }
    if (names.empty())
        names = {"llama3-8b-lora", "smollm2-135m-full"};
    printf(
        "# On paper, not measured: an H200 (%.1f TB/s, %.0f TFLOP/s bfloat16, %.0f float32, "
        "%d SMs).\n# Assumed: %.2f of the bandwidth; of the tensor cores' rate %.2f in products, "
        "%.2f in attention\n# forward, %.2f backward; a kernel takes %.1f us at least; the host "
        "queues one in %.0f us.\n# Registers and shared memory are nvcc's for sm_90a. occ.: "
        "warps on an SM / 64.\n\n",
        BANDWIDTH / 1e12, TENSOR_FLOPS / 1e12, FLOAT_FLOPS / 1e12, (int)SMS, MEMORY_SHARE,
        PRODUCT_SHARE, FORWARD_SHARE, BACKWARD_SHARE, 1e6 * LEAST_S, 1e6 * LAUNCH_S);
    for (const char *name : names) {
        const gpu_case *k = gpu_case_named(name);
        if (!k) {
            fprintf(stderr, "no case \"%s\"\n", name);
            return 2;
        }
        if (int status = paper(*k))
            return status;
    }
    return 0;
}
