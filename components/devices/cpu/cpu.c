/* cpu.c - the CPU's table of operations, its memory and its threads' working memory. */
#include "devices/cpu/cpu.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "devices/cpu/tiles.h"
#include "machine/memory.h"
#include "core/try.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { HUGE_PAGE = 2 << 20 };
/* per thread: stack and heap; with OpenBLAS also its packed blocks */
enum { THREAD_BYTES = 1 << 17, BLAS_BYTES = 3 << 19 };

/* Make the kernel provide every page now, with all threads. The first step is then as fast as later
 * ones, and lack of memory shows before training. 1 GiB takes 0.05 s; one thread with small pages
 * takes 0.4 s. */
static void touch(struct tune_device *dev, char *memory, int64_t bytes)
{
#pragma omp parallel num_threads(tune_cpu_threads(dev, bytes / 64))
    {
        int64_t begin, end;
        tune_cpu_piece(bytes, HUGE_PAGE, &begin, &end);
        /* fails on Linux before 5.14 */
        if (begin < end && madvise(memory + begin, (size_t)(end - begin), MADV_POPULATE_WRITE) < 0)
            for (int64_t i = begin; i < end; i += 4096)
                ((volatile char *)memory)[i] = 0;
    }
}

/* Memory of mmap is zeroed, and munmap returns it whole. Large blocks ask for huge pages. */
static tune_address cpu_alloc(struct tune_device *dev, int64_t bytes)
{
    void *memory = mmap(NULL, bytes > 0 ? (size_t)bytes : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return (tune_address){0};
    if (bytes >= HUGE_PAGE) {
        madvise(memory, (size_t)bytes, MADV_HUGEPAGE); /* a hint; failure does no harm */
        touch(dev, memory, bytes);
    }
    return (tune_address){(uint64_t)(uintptr_t)memory};
}

static void cpu_free(struct tune_device *dev, tune_address memory, int64_t bytes)
{
    (void)dev;
    munmap(tune_cpu_pointer(memory), bytes > 0 ? (size_t)bytes : 1);
}

static int64_t whole_pages(int64_t floats)
{
    return (floats + 1023) / 1024 * 1024; /* whole pages, so that no two threads share one */
}

/* Enlarge a buffer; it never shrinks. Its contents are lost. */
static int grow(struct tune_device *dev, float **memory, int64_t *floats, int64_t wanted, const char *what)
{
    if (wanted <= *floats)
        return 0;
    float *more = tune_cpu_pointer(tune_device_alloc(dev, wanted * 4, what));
    if (!more)
        return -1;
    tune_device_free(dev, (tune_address){(uint64_t)(uintptr_t)*memory}, *floats * 4);
    *memory = more;
    *floats = wanted;
    return 0;
}

int tune_cpu_reserve(struct tune_device *dev, int64_t floats)
{
    struct tune_cpu *cpu = dev->state;
    int64_t all = cpu->floats * dev->threads;
    TRY(grow(dev, &cpu->work, &all, whole_pages(floats) * dev->threads, "working memory of the threads"));
    cpu->floats = all / dev->threads;
    return 0;
}

float *tune_cpu_shared(struct tune_device *dev, int64_t floats)
{
    struct tune_cpu *cpu = dev->state;
    return grow(dev, &cpu->shared, &cpu->shared_floats, floats, "packed matrices") == 0 ? cpu->shared : NULL;
}

float *tune_cpu_sums(struct tune_device *dev, int64_t floats)
{
    struct tune_cpu *cpu = dev->state;
    return grow(dev, &cpu->sums, &cpu->sums_floats, floats, "an attention's gradients") == 0 ? cpu->sums : NULL;
}

/* Most floats one thread needs, then those all threads share. Row kernels need five rows. */
static int64_t thread_floats(const struct tune_device *dev, const struct tune_max_sizes *l)
{
    const struct tune_cpu *cpu = dev->state;
    int64_t floats = 5 * l->width, attention = tune_cpu_attention_floats(l->T, l->D);
    /* frozen weights may be BF16 or NF4 */
    int64_t gemm = cpu->blas ? tune_cpu_blas_floats() : tune_cpu_gemm_floats(l->activations != TUNE_F32);
    floats = floats > attention ? floats : attention;
    return floats > gemm ? floats : gemm;
}

static int64_t shared_floats(const struct tune_device *dev, const struct tune_max_sizes *l)
{
    const struct tune_cpu *cpu = dev->state;
    int64_t gemm = cpu->blas ? 0 : tune_cpu_gemm_shared_floats(l->activations != TUNE_F32, l->depth);
    int64_t queries = tune_cpu_decode_attention_floats(l->B, l->T, l->H, l->D);
    return gemm > queries ? gemm : queries;
}

static int64_t sums_floats(const struct tune_max_sizes *l)
{
    return l->training ? tune_cpu_attention_sums(l->B, l->T, l->H, l->K, l->D) : 0;
}

static int cpu_reserve(struct tune_device *dev, const struct tune_max_sizes *l)
{
    ((struct tune_cpu *)dev->state)->bf16 = l->activations == TUNE_BF16;
    if (shared_floats(dev, l) > 0 && !tune_cpu_shared(dev, shared_floats(dev, l)))
        return -1;
    if (sums_floats(l) > 0 && !tune_cpu_sums(dev, sums_floats(l)))
        return -1;
    return tune_cpu_reserve(dev, thread_floats(dev, l));
}

static int64_t cpu_reserve_bytes(const struct tune_device *dev, const struct tune_max_sizes *l, int64_t *library)
{
    const struct tune_cpu *cpu = dev->state;
    int64_t threads = whole_pages(thread_floats(dev, l)) * dev->threads, floats, bytes;
    *library = (int64_t)dev->threads * (cpu->blas ? BLAS_BYTES : THREAD_BYTES);
    bool fits = !__builtin_add_overflow(sums_floats(l), threads, &floats) &&
                !__builtin_add_overflow(floats, shared_floats(dev, l), &floats) &&
                !__builtin_mul_overflow(floats, 4, &bytes);
    return fits ? bytes : INT64_MAX;
}

/* Tensors are in host memory, so the host's tightest limit applies. */
static int cpu_memory(const struct tune_device *dev, struct tune_device_memory *memory)
{
    struct tune_memory_limit limits[TUNE_MEMORY_LIMITS];
    int64_t machine = tune_memory_machine(), least = INT64_MAX;
    (void)dev;
    for (int i = tune_memory_limits(limits) - 1; i >= 0; i--)
        least = limits[i].bytes < least ? limits[i].bytes : least;
    least = least < machine ? least : machine; /* no limit: all memory; unknown machine: 0 */
    *memory = (struct tune_device_memory){.free = least, .total = machine, .shared = true};
    return 0;
}

/* Copy bytes; from NULL: set them to 0. */
static int move_bytes(struct tune_device *dev, void *to, const void *from, int64_t bytes)
{
#pragma omp parallel num_threads(tune_cpu_threads(dev, bytes / 4))
    {
        int64_t begin, end;
        tune_cpu_piece(bytes, 4096, &begin, &end);
        if (end > begin && from)
            memcpy((char *)to + begin, (const char *)from + begin, (size_t)(end - begin));
        else if (end > begin)
            memset((char *)to + begin, 0, (size_t)(end - begin));
    }
    return 0;
}

static int cpu_upload(struct tune_device *dev, tune_address to, const void *from, int64_t bytes)
{
    return move_bytes(dev, tune_cpu_pointer(to), from, bytes);
}

static int cpu_download(struct tune_device *dev, void *to, tune_address from, int64_t bytes)
{
    return move_bytes(dev, to, tune_cpu_pointer(from), bytes);
}

int tune_cpu_copy(struct tune_device *dev, struct tune_tensor *y, const struct tune_tensor *x)
{
    return move_bytes(dev, tune_cpu_data(y), tune_cpu_data(x), tune_tensor_bytes(x));
}

int tune_cpu_zero(struct tune_device *dev, struct tune_tensor *y)
{
    return move_bytes(dev, tune_cpu_data(y), NULL, tune_tensor_bytes(y));
}

static int cpu_sync(struct tune_device *dev)
{
    (void)dev;
    return 0;
}

static void *cpu_in_place(struct tune_device *dev, tune_address memory)
{
    (void)dev;
    return tune_cpu_pointer(memory);
}

static void cpu_close(struct tune_device *dev)
{
    struct tune_cpu *cpu = dev->state;
    tune_device_free(dev, (tune_address){(uint64_t)(uintptr_t)cpu->work}, cpu->floats * 4 * dev->threads);
    tune_device_free(dev, (tune_address){(uint64_t)(uintptr_t)cpu->shared}, cpu->shared_floats * 4);
    tune_device_free(dev, (tune_address){(uint64_t)(uintptr_t)cpu->sums}, cpu->sums_floats * 4);
    free(cpu->partial);
    free(cpu);
}

static const struct tune_ops cpu_ops = {
    .close = cpu_close,
    .alloc = cpu_alloc,
    .free = cpu_free,
    .memory = cpu_memory,
    .reserve = cpu_reserve,
    .reserve_bytes = cpu_reserve_bytes,
    .peak_rates = tune_cpu_peak_rates,
    .upload = cpu_upload,
    .download = cpu_download,
    .sync = cpu_sync,
    .in_place = cpu_in_place,
#define CPU_ENTRY(op) .op = tune_cpu_##op,
    TUNE_OPS(CPU_ENTRY)
};

/* Features that the compiler may use for this instruction set. */
static const unsigned needs = 0
#if defined(__SSE4_2__) && defined(__POPCNT__)
                              | TUNE_CPU_SSE42
#endif
#if defined(__AVX2__) && defined(__FMA__)
                              | TUNE_CPU_AVX2
#endif
#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
                              | TUNE_CPU_AVX512
#endif
#if defined(__AVX512BF16__)
                              | TUNE_CPU_AVX512_BF16
#endif
#if defined(__AMX_BF16__)
                              | TUNE_CPU_AMX_BF16
#endif
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
                              | TUNE_CPU_NEON_BF16
#endif
    ;

static struct tune_cpu_rates rates(void)
{
#ifdef TUNE_BF16_TILES
    return tune_cpu_tiles_rates(&tune_cpu_bf16_tiles);
#else
    return tune_cpu_tiles_rates(NULL);
#endif
}

const struct tune_cpu_isa TUNE_CPU_ISA = {
    .name = TUNE_CPU_NAME,
    .needs = needs,
    .ops = &cpu_ops,
#if defined(__AVX2__) || defined(__aarch64__)
    .wide = true,
#endif
#ifdef TUNE_BF16_TILES
    .bf16_tiles = true,
#endif
    .rates = rates,
    .use_blas = tune_cpu_use_blas,
};
