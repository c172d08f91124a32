/* bench_gemm.c - the matrix products of one training step, ours beside OpenBLAS's, beside the cores' FMA peak.
 *
 *     bench_gemm [seconds] [threads] [rank]      about that long (default 20); threads default (0): as many as may be used
 *
 * The list is smollm2-135m's: length 512, batch 1, forward, and backward to inputs and weights, 30 layers and the output
 * projection in the loss's chunks. With a rank the list is that of a step with adapters of that rank on all linear layers: no
 * gradient of a weight but the adapters', whose A's of one product are one matrix.
 *
 * OpenBLAS runs at its best: every kernel it may have for this kind of processor is tried over the whole list for TRY_S seconds,
 * in a process of its own, and the fastest one once more with OpenBLAS's own threads in the place of ours. A kernel that the
 * processor cannot run ends that process, one that OpenBLAS does not have is passed over. What was tried is printed. With
 * OPENBLAS_CORETYPE set there is no choice. Rounds of ours and OpenBLAS's take turns; each product's fastest round counts. The
 * last column is ours with bfloat16 operands. The last line: total FLOPs / total time of each, and the float32 ratio. A "tile" is
 * the inner part of our products alone, on operands in a near cache, by one thread. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "devices/cpu/cpu.h"

enum { C = 576, Q = 960, F = 1536, V = 49152, T = 512, LAYERS = 30, CHUNKS = 2 };

struct shape {
    const char *name;
    int64_t rows, in, out; /* y [rows,out] = x [rows,in] w' */
    int times;             /* in a step of one micro-batch */
    bool frozen;           /* no product to the weight */
    double best[3][3];     /* seconds; of each who; forward, to the input, to the weight */
};
enum { OPENBLAS, OURS, OURS_BF16 };

static struct shape shapes[16] = {
    {.name = "q,k,v", .rows = T, .in = C, .out = Q, .times = LAYERS},
    {.name = "o", .rows = T, .in = C, .out = C, .times = LAYERS},
    {.name = "gate,up", .rows = T, .in = C, .out = 2 * F, .times = LAYERS},
    {.name = "down", .rows = T, .in = F, .out = C, .times = LAYERS},
    {.name = "output", .rows = T / CHUNKS, .in = C, .out = V, .times = CHUNKS},
};
enum { BASE = 5 };
static int count = BASE;
enum { TRY_S = 2 };

/* As OpenBLAS spells them: those of x86-64 from AVX on, those of aarch64. */
static const char *const cores[] = {
#if defined(__x86_64__)
    "SkylakeX", "Cooperlake", "SapphireRapids", "Haswell", "Zen", "Excavator", "Sandybridge",
#elif defined(__aarch64__)
    "armv8", "armv8sve", "neoversen1", "neoversen2", "neoversev1", "a64fx", "cortexa57", "cortexa72", "cortexx1", "thunderx2t99",
    "thunderx3t110", "tsv110", "emag8180", "falkor", "vortex",
#endif
    NULL};

static int fail(void)
{
    fprintf(stderr, "bench_gemm: %s\n", tune_error_message());
    exit(1);
}

/* The same step with adapters. */
static void adapt(int64_t r)
{
    const struct shape adapters[] = {
        {.name = "A q,k,v", .rows = T, .in = C, .out = 3 * r, .times = LAYERS},
        {.name = "B q", .rows = T, .in = r, .out = C, .times = LAYERS},
        {.name = "B k or v", .rows = T, .in = r, .out = (Q - C) / 2, .times = 2 * LAYERS},
        {.name = "A o", .rows = T, .in = C, .out = r, .times = LAYERS},
        {.name = "B o", .rows = T, .in = r, .out = C, .times = LAYERS},
        {.name = "A gate,up", .rows = T, .in = C, .out = 2 * r, .times = LAYERS},
        {.name = "B of them", .rows = T, .in = r, .out = F, .times = 2 * LAYERS},
        {.name = "A down", .rows = T, .in = F, .out = r, .times = LAYERS},
        {.name = "B down", .rows = T, .in = r, .out = C, .times = LAYERS},
    };
    for (int i = 0; i < BASE; i++)
        shapes[i].frozen = true;
    memcpy(shapes + BASE, adapters, sizeof adapters);
    count = BASE + (int)(sizeof adapters / sizeof *adapters);
}

static double flops(const struct shape *s)
{
    return 2.0 * (double)s->rows * (double)s->in * (double)s->out;
}

/* One of the three products of a linear layer. Each layer has weights of its own: they come from memory, not from cache. */
static void product(struct tune_device *dev, enum tune_dtype dtype, const struct shape *s, int which, tune_address x, tune_address y, tune_address w)
{
    struct tune_tensor tx = tune_tensor_2d(x, dtype, s->rows, s->in), ty = tune_tensor_2d(y, dtype, s->rows, s->out);
    struct tune_tensor tw = tune_tensor_2d(w, which == 2 ? TUNE_F32 : dtype, s->out, s->in); /* gradients are float32 */
    int status = which == 0   ? tune_gemm(dev, &ty, &tx, false, &tw, true, 1, 0, dtype)
                 : which == 1 ? tune_gemm(dev, &tx, &ty, false, &tw, false, 1, 0, dtype)
                              : tune_gemm(dev, &tw, &ty, true, &tx, false, 1, 1, dtype);
    if (status < 0)
        fail();
}

static void round_of(struct tune_device *dev, int who, tune_address x, tune_address y, tune_address w, int64_t weights, int which)
{
    static int64_t at;
    for (int i = 0; i < count; i++) {
        struct shape *s = &shapes[i];
        if (s->frozen && which == 2)
            continue;
        if (at + s->in * s->out > weights)
            at = 0;
        double begin = tune_moment_now().wall_s;
        product(dev, who == OURS_BF16 ? TUNE_BF16 : TUNE_F32, s, which, x, y, tune_address_plus(w, at * 4));
        double took = tune_moment_now().wall_s - begin;
        at += s->in * s->out;
        if (took < s->best[who][which] || s->best[who][which] == 0)
            s->best[who][which] = took;
    }
}

static void total(int who, double *work, double *time)
{
    *work = *time = 0;
    for (int i = 0; i < count; i++)
        for (int which = 0; which < (shapes[i].frozen ? 2 : 3); which++) {
            *work += flops(&shapes[i]) * shapes[i].times;
            *time += shapes[i].best[who][which] * shapes[i].times;
        }
}

/* The cores' multiply-adds in registers, GFLOP/s. */
static double peak_rate(struct tune_device *dev, tune_address zeros, int64_t n)
{
    struct tune_peak_rates c = {0};
    if (tune_device_peak_rates(dev, &c, zeros, n) < 0)
        fail();
    return c.flops_all / 1e9;
}

/* One thread of ours calls OpenBLAS, which then has all of its own. */
static void use_own_threads(int threads)
{
    void (*set)(int);
    *(void **)&set = dlsym(RTLD_DEFAULT, "openblas_set_num_threads");
    if (set)
        set(threads);
}

static void measure(double seconds, int threads, bool both, bool own)
{
    struct tune_device *dev[2];
    for (int who = 0; who < 2; who++) {
        setenv("TUNE_MATMUL", who == 0 ? "openblas" : "own", 1);
        dev[who] = tune_device_open("cpu", who == 0 && own ? 1 : threads);
        if (!dev[who])
            fail();
    }
    if (own)
        use_own_threads(dev[1]->threads);
    int64_t big = (int64_t)T / CHUNKS * V > (int64_t)T * 2 * F ? (int64_t)T / CHUNKS * V : (int64_t)T * 2 * F, weights = 2 * (int64_t)V * C;
    tune_address x = tune_device_alloc(dev[0], (int64_t)T * F * 4, "x"), y = tune_device_alloc(dev[0], big * 4, "y");
    tune_address w = tune_device_alloc(dev[0], weights * 4, "w");
    if (!x.at || !y.at || !w.at)
        fail();
    double end = tune_moment_now().wall_s + seconds;
    do
        for (int which = 0; which < 3; which++)
            for (int who = both ? OURS_BF16 : OPENBLAS; who >= 0; who--)
                round_of(dev[who == OPENBLAS ? 0 : 1], who, x, y, w, weights, which);
    while (tune_moment_now().wall_s < end);
    if (both)
        printf("# %s%s\n# %s\n", dev[0]->description, own ? ", its own threads" : "", dev[1]->description);
    if (both) {
        struct tune_tensor all = tune_tensor_1d(w, TUNE_F32, weights);
        if (tune_zero(dev[0], &all) < 0)
            fail();
        printf("# FMA peak %.1f GFLOP/s\n", peak_rate(dev[1], w, weights));
        struct tune_max_sizes l = {.B = 1, .T = 1, .H = 1, .K = 1, .D = 1, .width = F, .depth = T, .activations = TUNE_BF16};
        if (tune_device_reserve(dev[1], &l) < 0) /* now its peak is that of bfloat16 products */
            fail();
        printf("# bfloat16 peak %.1f GFLOP/s\n", peak_rate(dev[1], w, weights));
        struct tune_cpu_rates rates = ((struct tune_cpu *)dev[1]->state)->isa->rates();
        printf("# tile, one thread: float32 %.1f GFLOP/s, bfloat16 %.1f\n", rates.f32 / 1e9, rates.bf16 / 1e9);
    }
    tune_device_free(dev[0], x, (int64_t)T * F * 4);
    tune_device_free(dev[0], y, big * 4);
    tune_device_free(dev[0], w, weights * 4);
    tune_device_close(dev[1]);
    tune_device_close(dev[0]);
}

/* Environment variables for our own child processes: use OpenBLAS's threads; the kernels tried. */
static const char own_threads[] = "BENCH_GEMM_OWN_THREADS", tried[] = "BENCH_GEMM_TRIED";

/* The rate of one kernel in a process of its own, 0 if it does not run here. */
static double rate_of(const char *core, bool own, const char *self, const char *threads, const char *rank)
{
    char command[512], line[64];
    snprintf(command, sizeof command, "%s=%d OPENBLAS_CORETYPE=%s '%s' try %s %s 2>/dev/null", own_threads, own, core, self,
             threads, rank);
    FILE *f = popen(command, "r");
    bool got = f && fgets(line, sizeof line, f);
    return f && pclose(f) == 0 && got ? atof(line) : 0;
}

/* Sets the environment to the fastest way. */
static void choose_core(const char *self, const char *threads, const char *rank)
{
    char text[1024];
    const char *chosen = NULL;
    double best = 0;
    int at = snprintf(text, sizeof text, "OpenBLAS kernels tried, GFLOP/s:");
    for (int i = 0; cores[i]; i++) {
        double rate = rate_of(cores[i], false, self, threads, rank);
        if (rate > 0)
            at += snprintf(text + at, sizeof text - (size_t)at, " %s %.1f,", cores[i], rate);
        if (rate > best) {
            best = rate;
            chosen = cores[i];
        }
    }
    if (!chosen)
        return;
    double rate = rate_of(chosen, true, self, threads, rank);
    snprintf(text + at, sizeof text - (size_t)at, " %s with its own threads %.1f", chosen, rate);
    setenv("OPENBLAS_CORETYPE", chosen, 1);
    setenv(own_threads, rate > best ? "1" : "0", 1);
    setenv(tried, text, 1);
}

/* True if OpenBLAS runs with that kernel in this process. */
static bool has_core(const char *core)
{
    char *(*name)(void);
    *(void **)&name = dlsym(RTLD_DEFAULT, "openblas_get_corename");
    return !name || strcasecmp(name(), core) == 0;
}

int main(int argc, char **argv)
{
    static const char *const to[] = {"forward", "to input", "to weight"};
    double work, time[3];
    bool try = argc > 1 && strcmp(argv[1], "try") == 0;
    int threads = argc > 2 ? atoi(argv[2]) : 0, rank = argc > 3 ? atoi(argv[3]) : 0;
    if (rank > 0 && rank <= 256)
        adapt(rank);
    if (!try && !getenv("OPENBLAS_CORETYPE")) {
        choose_core(argv[0], argc > 2 ? argv[2] : "0", argc > 3 ? argv[3] : "0");
        if (getenv("OPENBLAS_CORETYPE"))
            execv(argv[0], argv); /* OpenBLAS reads it when it is loaded */
    }
    const char *core = getenv("OPENBLAS_CORETYPE"), *own = getenv(own_threads);
    if (try && (!core || !has_core(core)))
        return 1;
    if (!try && getenv(tried))
        printf("# %s\n", getenv(tried));
    else if (!try && core)
        printf("# OPENBLAS_CORETYPE=%s is set, so no other kernel of OpenBLAS was tried\n", core);
    measure(try ? TRY_S : argc > 1 ? atof(argv[1]) : 20, threads, !try, own && atoi(own));
    if (try) {
        total(OPENBLAS, &work, &time[OPENBLAS]);
        printf("%.3f\n", work / time[0] / 1e9);
        return 0;
    }
    printf("%-10s %6s %6s %6s  %-10s %14s %14s %7s %14s\n", "product", "rows", "in", "out", "", "OpenBLAS GF/s", "ours GF/s", "ratio", "ours bfloat16");
    for (int i = 0; i < count; i++)
        for (int which = 0; which < (shapes[i].frozen ? 2 : 3); which++) {
            const struct shape *s = &shapes[i];
            printf("%-10s %6d %6d %6d  %-10s %14.1f %14.1f %7.3f %14.1f\n", s->name, (int)s->rows, (int)s->in, (int)s->out, to[which],
                   flops(s) / s->best[OPENBLAS][which] / 1e9, flops(s) / s->best[OURS][which] / 1e9, s->best[OPENBLAS][which] / s->best[OURS][which],
                   flops(s) / s->best[OURS_BF16][which] / 1e9);
        }
    for (int who = 0; who < 3; who++)
        total(who, &work, &time[who]);
    printf("%-34s  %-10s %14.1f %14.1f %7.3f %14.1f\n", "FLOP-weighted", "", work / time[OPENBLAS] / 1e9, work / time[OURS] / 1e9,
           time[OPENBLAS] / time[OURS], work / time[OURS_BF16] / 1e9);
    return 0;
}
