/* peak_rates.c - measure this machine's peak rates: multiply-adds in registers, of bfloat16
 * operands if products take those, and memory streaming. */
#include "devices/cpu/tiles.h"

#include "core/clock.h"
#ifdef TUNE_BF16_TILES
#include "devices/cpu/bf16.h"
#endif

/* independent sums: enough to fill two pipelines of latency 5 */
enum { CHAINS = 12, ROUNDS = 20000 };
#define SECONDS 0.06                  /* seconds for each measurement; the best of three counts */

/* The loop of multiply-adds in vectors of `bytes`, for processors with the given features. The sums
 * are variables, not an array, so that they stay in registers. Returns FLOPs. */
#define EACH(does) does(0) does(1) does(2) does(3) does(4) does(5) does(6) does(7) does(8) does(9) does(10) does(11)
#define BEGIN(i) vec sum##i = y * (float)i;
#define STEP(i) sum##i = sum##i * x + y;
#define COLLECT(i) y += sum##i;
#define MULTIPLY_ADD(name, width, features)                           \
    features static double name(float start, float *out)              \
    {                                                                 \
        typedef float vec __attribute__((vector_size(width)));        \
        vec x = (vec){0} + start, y = (vec){0} + (1 - start);         \
        EACH(BEGIN)                                                   \
        for (int i = 0; i < ROUNDS; i++) {                            \
            EACH(STEP)                                                \
        }                                                             \
        EACH(COLLECT)                                                 \
        *out = y[0];                                                  \
        return 2.0 * (double)(width / 4) * CHAINS * ROUNDS;           \
    }

#if defined(__x86_64__)
MULTIPLY_ADD(multiply_add_64, 64, __attribute__((target("avx512f,fma"))))
MULTIPLY_ADD(multiply_add_32, 32, __attribute__((target("avx2,fma"))))
#endif
MULTIPLY_ADD(multiply_add_16, 16, )

/* The same for the bfloat16 instructions of this set. */
#ifdef TUNE_BF16_TILES
static double bf16_products(float start, float *out)
{
#if defined(__AMX_BF16__) || defined(AMX_IN_C)
    float zeros[16 * 16] = {start - start};
    tiles_begin();
    tile_load(4, zeros, 64);
    tile_load(5, zeros, 64);
    for (int i = 0; i < ROUNDS / 16; i++) {
        tile_multiply(0, 4, 5);
        tile_multiply(1, 4, 5);
        tile_multiply(2, 4, 5);
        tile_multiply(3, 4, 5);
    }
    tile_store(0, zeros, 64);
    tiles_end();
    *out = zeros[0];
    return 2.0 * 4 * 16 * 16 * 32 * (ROUNDS / 16);
#else
    vec x = (vec){0} + start, y = (vec){0} + (1 - start);
    EACH(BEGIN)
#if defined(__AVX512BF16__) || defined(AVX512_BF16_IN_C)
#define STEP_BF16(i) sum##i = add_pairs(x, y, sum##i);
    const double each = 2 * 2 * VL;
#else
#define STEP_BF16(i) sum##i = add_squares((const float *)&x, (const float *)&y, sum##i);
    const double each = 2 * 16;
#endif
    for (int i = 0; i < ROUNDS; i++) {
        EACH(STEP_BF16)
    }
    EACH(COLLECT)
    *out = y[0];
    return each * CHAINS * ROUNDS;
#endif
}
#endif

/* The fastest multiply-adds that products of this dtype may use. */
static double (*fastest(bool bf16))(float, float *)
{
#ifdef TUNE_BF16_TILES
    if (bf16)
        return bf16_products;
#endif
    (void)bf16;
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return multiply_add_64;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return multiply_add_32;
#endif
    return multiply_add_16;
}

/* FLOP/s of this many threads: their FLOPs divided by the time from first begin to last end. */
static double flops_once(struct tune_device *dev, int threads)
{
    struct tune_cpu *cpu = dev->state;
    double (*loop)(float, float *) = fastest(cpu->bf16), begin = 0, done = 0;
#pragma omp parallel num_threads(threads) reduction(+ : done)
    {
        float kept = 0, sum = 0;
#pragma omp barrier
#pragma omp single
        begin = tune_clock_s();
        while (tune_clock_s() - begin < SECONDS / 3) {
            done += loop(0.5f, &kept);
            sum += kept;
        }
        cpu->partial[omp_get_thread_num()] = sum;
    }
    return done / (tune_clock_s() - begin);
}

static double flops(struct tune_device *dev, int threads)
{
    double best = 0;
    for (int i = 0; i < 3; i++) {
        double rate = flops_once(dev, threads);
        best = rate > best ? rate : best;
    }
    return best;
}

/* This thread's share of a += b, of reading a, or of zeroing a. Returns the bytes read and
 * written. */
static double stream_piece(float *a, int64_t n, int kind, double *kept)
{
    int64_t from, to;
    const float *b = a + n / 2;
    float sum = 0;
    tune_cpu_piece(kind == 0 ? n / 2 : n, 4096, &from, &to);
    if (kind == 0) {
#pragma omp simd
        for (int64_t i = from; i < to; i++)
            a[i] += b[i];
    } else if (kind == 1) {
#pragma omp simd reduction(+ : sum)
        for (int64_t i = from; i < to; i++)
            sum += a[i];
        *kept = sum;
    } else {
        memset(a + from, 0, (size_t)(to - from) * 4);
    }
    return (kind == 0 ? 12.0 : 4.0) * (double)(to - from);
}

/* Memory bandwidth in bytes/s: the best pass of the three kinds. The values stay zero. */
static double stream(struct tune_device *dev, float *a, int64_t n, int threads)
{
    struct tune_cpu *cpu = dev->state;
    double best = 0;
    for (int kind = 0; kind < 3; kind++) {
        double begin = tune_clock_s(), pass = begin, now;
        do {
            double bytes = 0;
#pragma omp parallel num_threads(threads) reduction(+ : bytes)
            bytes += stream_piece(a, n, kind, &cpu->partial[omp_get_thread_num()]);
            now = tune_clock_s();
            best = bytes / (now - pass) > best ? bytes / (now - pass) : best;
            pass = now;
        } while (now - begin < SECONDS / 3);
    }
    return best;
}

int tune_cpu_peak_rates(struct tune_device *dev, struct tune_peak_rates *peak_rates, tune_address zeros, int64_t n)
{
    float *memory = tune_cpu_pointer(zeros);
    *peak_rates = (struct tune_peak_rates){
        .flops_one = flops(dev, 1),
        .flops_all = flops(dev, dev->threads),
        .bytes_one = stream(dev, memory, n, 1),
        .bytes_all = stream(dev, memory, n, dev->threads),
    };
    return 0;
}
