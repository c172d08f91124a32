/* open.c - open the CPU device: start its threads and choose its kernels.
 *
 * The other files of this folder are compiled once for each instruction set (CPU_SETS in the
 * Makefile). Each time they become one object with one name that others can see, a struct
 * tune_cpu_isa. So one program runs on every processor of its kind, and at its full speed. */
#include "devices/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/array.h"
#include "core/error.h"
#include "core/try.h"
#include "machine/memory.h"

#define DECLARE(isa) extern const struct tune_cpu_isa tune_cpu_isa_##isa;
TUNE_CPU_ISAS(DECLARE)
#define ADDRESS(isa) &tune_cpu_isa_##isa,
/* from the oldest instructions to the newest */
static const struct tune_cpu_isa *const isas[] = {TUNE_CPU_ISAS(ADDRESS)};
enum { ISAS = sizeof isas / sizeof *isas };

/* ---- the processor ---- */

static const char *const features[] = {"SSE4.2", "AVX2 and FMA", "AVX-512", "AVX512_BF16", "AMX-BF16", "BFMMLA"};

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The system lets a process use AMX only after it has asked. Its threads may then, too. */
static bool may_use_amx(void)
{
    enum { REQUEST = 0x1023, TILE_DATA = 18, TILES = 1 << 24, BF16 = 1 << 22 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & TILES) && (d & BF16) &&
           syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

static unsigned processor_has(void)
{
    unsigned has = 0;
    __builtin_cpu_init();
    if (__builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt"))
        has |= TUNE_CPU_SSE42;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
        __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2"))
        has |= TUNE_CPU_AVX2;
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
        has |= TUNE_CPU_AVX512;
    if (__builtin_cpu_supports("avx512bf16"))
        has |= TUNE_CPU_AVX512_BF16;
    if (may_use_amx())
        has |= TUNE_CPU_AMX_BF16;
    return has;
}
#elif defined(__aarch64__)
#include <sys/auxv.h>

static unsigned processor_has(void)
{
    enum { BF16 = 1 << 14 }; /* HWCAP2_BF16, which older headers lack */
    return getauxval(AT_HWCAP2) & BF16 ? TUNE_CPU_NEON_BF16 : 0;
}
#else
static unsigned processor_has(void)
{
    return 0;
}
#endif

static void processor_name(char *name, size_t size)
{
    char line[256];
    snprintf(name, size, "CPU");
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            snprintf(name, size, "%.*s", (int)size - 1, strchr(line, ':') + 2);
            name[strcspn(name, "\n")] = 0;
            break;
        }
    if (f)
        fclose(f);
}

/* ---- its kernels ---- */

/* The names of the sets that this processor can run. */
static void names(unsigned has, char *text, size_t size)
{
    size_t at = 0;
    *text = 0;
    for (int i = 0; i < ISAS && at < size; i++)
        if (!(isas[i]->needs & ~has))
            at += (size_t)snprintf(text + at, size - at, "%s%s", at > 0 ? ", " : "", isas[i]->name);
}

static const struct tune_cpu_isa *find_isa(const char *name, unsigned has)
{
    char runs[160];
    names(has, runs, sizeof runs);
    for (int i = 0; i < ISAS; i++) {
        unsigned lacks = isas[i]->needs & ~has;
        if (strcmp(isas[i]->name, name) != 0)
            continue;
        if (lacks)
            tune_error_cannot("TUNE_CPU=%s: this processor has no %s; it can run: %s", name,
                              features[__builtin_ctz(lacks)], runs);
        return lacks ? NULL : isas[i];
    }
    tune_error_usage("TUNE_CPU=%s: expected one of: %s", name, runs);
    return NULL;
}

/* Nothing is timed here. Otherwise other programs on the cores could change the choice, and with it
 * the last bits of a run. AMX and BFMMLA have a unit of their own for products. AVX512_BF16 is twice
 * as fast as float32 on AMD's Zen 4 and 5, and no faster on Intel's processors without AMX. */
bool tune_cpu_bf16_is_faster(unsigned needs, bool amd)
{
    return needs & (TUNE_CPU_AMX_BF16 | TUNE_CPU_NEON_BF16) || (needs & TUNE_CPU_AVX512_BF16 && amd);
}

static bool is_amd(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_is("amd");
#else
    return false;
#endif
}

/* The newest set that this processor runs; those with bfloat16 instructions only where these are
 * faster than float32 products. */
static const struct tune_cpu_isa *best_isa(unsigned has)
{
    const struct tune_cpu_isa *best = NULL;
    for (int i = 0; i < ISAS; i++) {
        bool runs = !(isas[i]->needs & ~has);
        if (runs && (!isas[i]->bf16_tiles || !best || tune_cpu_bf16_is_faster(isas[i]->needs, is_amd())))
            best = isas[i];
    }
    if (!best)
        tune_error_cannot("this processor has no %s, which the oldest of these kernels needs; build "
                          "with CPU_SETS=generic", features[__builtin_ctz(isas[0]->needs & ~has)]);
    return best;
}

/* TUNE_CPU in the environment names a set, instead of the best. TUNE_MATMUL (own, openblas) says
 * whose matrix products are used; OpenBLAS's are the default where ours have no wide vectors. */
static int choose_kernels(struct tune_device *dev)
{
    struct tune_cpu *cpu = dev->state;
    const char *name = getenv("TUNE_CPU"), *matmul = getenv("TUNE_MATMUL");
    unsigned has = processor_has();
    const struct tune_cpu_isa *isa = name && *name ? find_isa(name, has) : best_isa(has);
    char processor[80], blas[64] = "own matmul";
    if (!isa)
        return -1;
    matmul = matmul && *matmul ? matmul : NULL;
    if (matmul && strcmp(matmul, "own") && strcmp(matmul, "openblas"))
        return tune_error_usage("TUNE_MATMUL=%s: expected own or openblas", matmul);
    cpu->blas = matmul ? !strcmp(matmul, "openblas") : !isa->wide;
    if (cpu->blas)
        isa->use_blas(dev, blas, sizeof blas);
    dev->ops = isa->ops;
    cpu->isa = isa;
    processor_name(processor, sizeof processor);
    snprintf(dev->description, sizeof dev->description, "%s, %d thread%s, %s kernels, %s", processor,
             dev->threads, dev->threads == 1 ? "" : "s", isa->name, blas);
    return 0;
}

/* Count the threads that OpenMP really provides; OMP_THREAD_LIMIT and the like may allow fewer.
 * OpenMP ends the process if it lacks memory for a thread, so memory is checked first. */
static int start_threads(struct tune_device *dev)
{
    int wanted = dev->threads;
    struct tune_memory_limit limits[TUNE_MEMORY_LIMITS];
    for (int i = tune_memory_limits(limits) - 1; i >= 0; i--) {
        int64_t each = tune_memory_thread(limits[i].counts);
        if (each * (wanted - 1) <= limits[i].bytes)
            continue;
        return tune_error_cannot("not enough memory to start %d threads, %.1f MiB each: %.1f MiB are %s; "
                                   "lower `threads`, or raise the limit", wanted, (double)each / 1048576,
                                   (double)limits[i].bytes / 1048576, limits[i].what);
    }
    omp_set_dynamic(0); /* otherwise each region may get another number of threads */
#pragma omp parallel num_threads(wanted)
#pragma omp single
    dev->threads = omp_get_num_threads();
    if (dev->threads < wanted)
        snprintf(dev->warning, sizeof dev->warning,
                 "OpenMP gives %d of %d threads; look for OMP_THREAD_LIMIT or OMP_MAX_ACTIVE_LEVELS in the environment",
                 dev->threads, wanted);
    return 0;
}

int tune_cpu_open(struct tune_device *dev)
{
    TRY(start_threads(dev));
    struct tune_cpu *cpu = tune_zeroed(1, sizeof *cpu, "the CPU device");
    if (cpu) {
        cpu->small = TUNE_CPU_SMALL;
        cpu->partial = tune_zeroed((size_t)dev->threads, sizeof *cpu->partial, "the CPU device");
    }
    dev->state = cpu;
    dev->name = "cpu";
    if (cpu && cpu->partial && choose_kernels(dev) == 0)
        return 0;
    if (cpu)
        free(cpu->partial);
    free(cpu);
    return -1;
}
