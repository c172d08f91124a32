/* cpu.c - the CPU's table, its memory and its threads' working memory. */
#include "devices/cpu/cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/try.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { HUGE_PAGE = 2 << 20 };
enum { THREAD_BYTES = 1 << 17, BLAS_BYTES = 3 << 19 }; /* of a thread: its stack and heap; with packed blocks inside OpenBLAS */

/* Every page gets its memory now, by all threads at once: the first step is as fast as the others, and what is too much is
 * too much before the run. Measured: 1 GiB takes 0.4 s by one thread in small pages, 0.05 s so. */
static void touch(struct tune_device *dev, char *memory, int64_t bytes)
{
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t begin, end;
        tune_cpu_piece(bytes, HUGE_PAGE, &begin, &end);
        if (begin < end && madvise(memory + begin, (size_t)(end - begin), MADV_POPULATE_WRITE) < 0) /* Linux before 5.14 */
            for (int64_t i = begin; i < end; i += 4096)
                ((volatile char *)memory)[i] = 0;
    }
}

/* Anonymous pages come zeroed and are given back whole; large ones may become huge pages, which matrix products like. */
static void *cpu_alloc(struct tune_device *dev, int64_t bytes)
{
    void *memory = mmap(NULL, bytes > 0 ? (size_t)bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    if (bytes >= HUGE_PAGE) {
        madvise(memory, (size_t)bytes, MADV_HUGEPAGE); /* a wish: failing is fine */
        touch(dev, memory, bytes);
    }
    return memory;
}

static void cpu_free(struct tune_device *dev, void *memory, int64_t bytes)
{
    (void)dev;
    munmap(memory, bytes > 0 ? (size_t)bytes : 1);
}

static int64_t whole_pages(int64_t floats)
{
    return (floats + 1023) / 1024 * 1024; /* no two threads share one */
}

int tune_cpu_reserve(struct tune_device *dev, int64_t floats)
{
    struct tune_cpu *cpu = dev->state;
    floats = whole_pages(floats);
    if (floats <= cpu->floats)
        return 0;
    float *work = tune_device_alloc(dev, floats * 4 * dev->threads, "working memory of the threads");
    if (!work)
        return -1;
    tune_device_free(dev, cpu->work, cpu->floats * 4 * dev->threads);
    cpu->work = work;
    cpu->floats = floats;
    return 0;
}

float *tune_cpu_shared(struct tune_device *dev, int64_t floats)
{
    struct tune_cpu *cpu = dev->state;
    if (floats > cpu->shared_floats) {
        float *shared = tune_device_alloc(dev, floats * 4, "packed matrices");
        if (!shared)
            return NULL;
        tune_device_free(dev, cpu->shared, cpu->shared_floats * 4);
        cpu->shared = shared;
        cpu->shared_floats = floats;
    }
    return cpu->shared;
}

/* What one thread needs at most, what all of them share. The kernels of rows take five of them. */
static int64_t thread_floats(const struct tune_device *dev, const struct tune_attention *largest, int64_t width, bool narrow)
{
    const struct tune_cpu *cpu = dev->state;
    int64_t floats = 5 * width, attention = tune_cpu_attention_floats(largest);
    int64_t gemm = cpu->blas ? tune_cpu_blas_floats() : tune_cpu_gemm_floats(narrow); /* weights may be narrow */
    floats = floats > attention ? floats : attention;
    return floats > gemm ? floats : gemm;
}

static int64_t shared_floats(const struct tune_device *dev, int64_t depth, bool narrow)
{
    return ((const struct tune_cpu *)dev->state)->blas ? 0 : tune_cpu_gemm_shared_floats(narrow, depth);
}

static int cpu_reserve(struct tune_device *dev, const struct tune_attention *largest, int64_t width, int64_t depth,
                       enum tune_dtype activations)
{
    bool narrow = activations != TUNE_F32;
    if (shared_floats(dev, depth, narrow) > 0 && !tune_cpu_shared(dev, shared_floats(dev, depth, narrow)))
        return -1;
    return tune_cpu_reserve(dev, thread_floats(dev, largest, width, narrow));
}

static int64_t cpu_reserve_bytes(const struct tune_device *dev, const struct tune_attention *largest, int64_t width,
                                 int64_t depth, enum tune_dtype activations, int64_t *library)
{
    const struct tune_cpu *cpu = dev->state;
    bool narrow = activations != TUNE_F32;
    *library = (int64_t)dev->threads * (cpu->blas ? BLAS_BYTES : THREAD_BYTES);
    return (whole_pages(thread_floats(dev, largest, width, narrow)) * dev->threads + shared_floats(dev, depth, narrow)) * 4;
}

static int cpu_copy(struct tune_device *dev, void *to, const void *from, int64_t bytes)
{
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t begin, end;
        tune_cpu_piece(bytes, 4096, &begin, &end);
        if (end > begin)
            memcpy((char *)to + begin, (const char *)from + begin, (size_t)(end - begin));
    }
    return 0;
}

static int cpu_zero(struct tune_device *dev, void *to, int64_t bytes)
{
#pragma omp parallel num_threads(dev->threads)
    {
        int64_t begin, end;
        tune_cpu_piece(bytes, 4096, &begin, &end);
        if (end > begin)
            memset((char *)to + begin, 0, (size_t)(end - begin));
    }
    return 0;
}

static int cpu_sync(struct tune_device *dev)
{
    (void)dev;
    return 0;
}

static void cpu_close(struct tune_device *dev)
{
    struct tune_cpu *cpu = dev->state;
    tune_device_free(dev, cpu->work, cpu->floats * 4 * dev->threads);
    tune_device_free(dev, cpu->shared, cpu->shared_floats * 4);
    free(cpu->partial);
    free(cpu);
}

static const struct tune_kernels cpu_kernels = {
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .reserve = cpu_reserve,
    .reserve_bytes = cpu_reserve_bytes,
    .ceilings = tune_cpu_ceilings,
    .upload = cpu_copy,
    .download = cpu_copy,
    .copy = cpu_copy,
    .zero = cpu_zero,
    .sync = cpu_sync,
    .gemm = tune_cpu_gemm,
    .bias_forward = tune_cpu_bias_forward,
    .bias_backward = tune_cpu_bias_backward,
    .embed_forward = tune_cpu_embed_forward,
    .embed_backward = tune_cpu_embed_backward,
    .rmsnorm_forward = tune_cpu_rmsnorm_forward,
    .rmsnorm_backward = tune_cpu_rmsnorm_backward,
    .headnorm_forward = tune_cpu_headnorm_forward,
    .headnorm_backward = tune_cpu_headnorm_backward,
    .rope = tune_cpu_rope,
    .attention_forward = tune_cpu_attention_forward,
    .attention_backward = tune_cpu_attention_backward,
    .swiglu_forward = tune_cpu_swiglu_forward,
    .swiglu_backward = tune_cpu_swiglu_backward,
    .gather = tune_cpu_gather,
    .scatter = tune_cpu_scatter,
    .cross_entropy = tune_cpu_cross_entropy,
    .dropout = tune_cpu_dropout,
    .scale_columns = tune_cpu_scale_columns,
    .dot_columns = tune_cpu_dot_columns,
    .row_squares = tune_cpu_row_squares,
    .dora_scale = tune_cpu_dora_scale,
    .sum_squares = tune_cpu_sum_squares,
    .add_scalar = tune_cpu_add_scalar,
    .finish_step = tune_cpu_finish_step,
    .adamw = tune_cpu_adamw,
    .sgd = tune_cpu_sgd,
};

static void processor_name(char *name, size_t size)
{
    char line[256];
    snprintf(name, size, "CPU");
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
            snprintf(name, size, "%.100s", strchr(line, ':') + 2);
            name[strcspn(name, "\n")] = 0;
            break;
        }
    if (f)
        fclose(f);
}

/* Our own products where this was compiled for vectors of 256 bits and more (or NEON), else OpenBLAS's; TUNE_MATMUL, own or
 * openblas, says otherwise. */
static int choose_matmul(struct tune_device *dev)
{
    struct tune_cpu *cpu = dev->state;
    const char *wish = getenv("TUNE_MATMUL");
    char name[112], matmul[64];
    if (wish && strcmp(wish, "own") && strcmp(wish, "openblas")) {
        tune_error_set_kind(TUNE_ERROR_USAGE, "TUNE_MATMUL=%s: expected own or openblas", wish);
        return -1;
    }
    cpu->blas = wish ? !strcmp(wish, "openblas") : !tune_cpu_gemm_is_fast();
    if (cpu->blas)
        tune_cpu_blas_start(dev, matmul, sizeof matmul);
    else
        snprintf(matmul, sizeof matmul, "own matmul, %s", tune_cpu_gemm_vectors());
    processor_name(name, sizeof name);
    snprintf(dev->description, sizeof dev->description, "%s, %d thread%s, %s", name, dev->threads, dev->threads == 1 ? "" : "s",
             matmul);
    return 0;
}

/* As many threads as OpenMP will really give: OMP_THREAD_LIMIT and the like allow fewer than are asked for. Where it finds
 * no memory for one, its library ends the process: so that is looked at before. */
static int start_threads(struct tune_device *dev)
{
    int wanted = dev->threads;
    struct tune_memory_limit limits[TUNE_MEMORY_LIMITS];
    for (int i = tune_memory_limits(limits) - 1; i >= 0; i--) {
        int64_t each = tune_memory_thread(limits[i].counts);
        if (each * (wanted - 1) <= limits[i].bytes)
            continue;
        tune_error_set_kind(TUNE_ERROR_CANNOT, "not enough memory to start %d threads, %.1f MiB each: %.1f MiB are %s; "
                            "lower --threads, or raise the limit", wanted, (double)each / 1048576,
                            (double)limits[i].bytes / 1048576, limits[i].what);
        return -1;
    }
    omp_set_dynamic(0); /* else every region may have another number */
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
    struct tune_cpu *cpu = calloc(1, sizeof *cpu);
    if (cpu)
        cpu->partial = calloc((size_t)dev->threads, sizeof *cpu->partial);
    if (!cpu || !cpu->partial) {
        free(cpu);
        tune_error_set_kind(TUNE_ERROR_CANNOT, "no memory for the CPU device");
        return -1;
    }
    dev->state = cpu;
    dev->kernels = &cpu_kernels;
    dev->name = "cpu";
    if (choose_matmul(dev) == 0)
        return 0;
    free(cpu->partial);
    free(cpu);
    return -1;
}
