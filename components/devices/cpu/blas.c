/* blas.c - matrix products with OpenBLAS's single-thread kernels, split over our own threads.
 *
 * Used where gemm.c has no wide vectors, or with TUNE_MATMUL=openblas. OpenBLAS's own
 * threads do not fit: its pthread build competes with OpenMP for the cores, and its OpenMP build
 * would fork inside our parallel region. So each of our threads calls a one-thread sgemm on its own
 * panel. */
#include <cblas.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "devices/cpu/cpu.h"

/* Generation of a set of kernels: 0 before AVX, 2 AVX, 3 AVX2 and FMA, 4 AVX-512; -1: unknown. */
static int kernel_rank(const char *core)
{
    static const struct {
        const char *name;
        int rank;
    } known[] = {{"Katmai", 0},      {"Coppermine", 0}, {"Northwood", 0}, {"Prescott", 0},   {"Banias", 0},
                 {"Atom", 0},        {"Core2", 0},      {"Penryn", 0},    {"Dunnington", 0}, {"Nehalem", 0},
                 {"Athlon", 0},      {"Opteron", 0},    {"Barcelona", 0}, {"Nano", 0},       {"Bobcat", 0},
                 {"Sandybridge", 2}, {"Bulldozer", 2},  {"Piledriver", 2}, {"Steamroller", 2}, {"Excavator", 3},
                 {"Haswell", 3},     {"Zen", 3},        {"SkylakeX", 4},  {"Cooperlake", 4}, {"SapphireRapids", 4}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcasecmp(core, known[i].name) == 0)
            return known[i].rank;
    return -1;
}

/* The best set of kernels for this CPU. NULL: no choice. */
static const char *best_kernel(int *rank)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512cd")) {
        *rank = 4;
        return "SKYLAKEX";
    }
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        *rank = 3;
        return "HASWELL";
    }
    if (__builtin_cpu_supports("avx")) {
        *rank = 2;
        return "SANDYBRIDGE";
    }
#endif
    *rank = -1;
    return NULL;
}

/* OpenBLAS chooses its kernels when it is loaded, before our code runs. Two functions that its
 * dynamic-architecture builds export make it choose again. */
static void choose_kernel(struct tune_device *dev)
{
    int have = kernel_rank(openblas_get_corename()), rank;
    const char *best = best_kernel(&rank);
    if (!best || have < 0 || have >= rank || getenv("OPENBLAS_CORETYPE"))
        return;
    void (*quit)(void), (*init)(void);
    *(void **)&quit = dlsym(RTLD_DEFAULT, "gotoblas_dynamic_quit");
    *(void **)&init = dlsym(RTLD_DEFAULT, "gotoblas_dynamic_init");
    if (quit && init && setenv("OPENBLAS_CORETYPE", best, 1) == 0) {
        quit();
        init();
        unsetenv("OPENBLAS_CORETYPE");
    }
    if (kernel_rank(openblas_get_corename()) < rank)
        snprintf(dev->warning, sizeof dev->warning,
                 "OpenBLAS uses its %s kernel, older than this CPU, several times slower; set OPENBLAS_CORETYPE=%s",
                 openblas_get_corename(), best);
}

void tune_cpu_use_blas(struct tune_device *dev, char *text, size_t size)
{
    static const char *const pools[] = {"serial", "pthread", "openmp"};
    int parallel = openblas_get_parallel();
    choose_kernel(dev);
    if (parallel == 1)
        openblas_set_num_threads(1);
    if (parallel == 0 && dev->threads > 1)
        snprintf(dev->warning, sizeof dev->warning,
                 "this OpenBLAS is its serial build, which only one thread may call: products use one "
                 "thread; install its pthread or OpenMP build");
    snprintf(text, size, "OpenBLAS %s (%s)", openblas_get_corename(), pools[parallel]);
}

/* The part [r0,r1) x [c0,c1) of c that one thread computes. bfloat16 and NF4 operands are widened
 * into work, block by block. */
struct product {
    struct tune_tensor *c;
    const struct tune_tensor *a, *b;
    bool trans_a, trans_b, round; /* round: round operands to bfloat16 */
    float alpha, beta;
    int64_t M, N, K;
};

enum { BLOCK = 256 }; /* rows, columns and depth of a widened block */

static void f32_piece(const struct product *p, int64_t r0, int64_t r1, int64_t c0, int64_t c1)
{
    int64_t lda = tune_tensor_stride(p->a), ldb = tune_tensor_stride(p->b), ldc = tune_tensor_stride(p->c);
    const float *a = (const float *)tune_cpu_data(p->a) + (p->trans_a ? r0 : r0 * lda);
    const float *b = (const float *)tune_cpu_data(p->b) + (p->trans_b ? c0 * ldb : c0);
    cblas_sgemm(CblasRowMajor, p->trans_a ? CblasTrans : CblasNoTrans, p->trans_b ? CblasTrans : CblasNoTrans, (blasint)(r1 - r0),
                (blasint)(c1 - c0), (blasint)p->K, p->alpha, a, (blasint)lda, b, (blasint)ldb, p->beta,
                (float *)tune_cpu_data(p->c) + r0 * ldc + c0, (blasint)ldc);
}

/* A block of rows x columns of t from (r,c) as float32, in place or in the buffer. *ld: its leading
 * dimension. */
static const float *block(const struct tune_tensor *t, bool round, int64_t r, int64_t c, int64_t rows, int64_t columns, float *buffer,
                          int64_t *ld)
{
    int64_t width = tune_tensor_stride(t);
    if (t->dtype == TUNE_F32 && !round) {
        *ld = width;
        return (const float *)tune_cpu_data(t) + r * width + c;
    }
    for (int64_t i = 0; i < rows; i++) {
        const float *row = tune_cpu_in(t, (r + i) * width + c, columns, buffer + i * columns);
        if (t->dtype == TUNE_F32)
            memcpy(buffer + i * columns, row, (size_t)columns * sizeof *buffer);
        if (round && t->dtype != TUNE_BF16)
            tune_cpu_round(buffer + i * columns, columns);
    }
    *ld = columns;
    return buffer;
}

static void mixed_piece(const struct product *p, int64_t r0, int64_t r1, int64_t c0, int64_t c1, float *work)
{
    float *wa = work, *wb = wa + BLOCK * BLOCK, *wc = wb + BLOCK * BLOCK;
    bool narrow = p->c->dtype != TUNE_F32;
    int64_t apart = tune_tensor_stride(p->c);
    for (int64_t r = r0; r < r1; r += BLOCK)
        for (int64_t c = c0; c < c1; c += BLOCK) {
            int64_t rows = r1 - r < BLOCK ? r1 - r : BLOCK, columns = c1 - c < BLOCK ? c1 - c : BLOCK;
            int64_t ldc = narrow ? columns : apart, lda, ldb;
            float *out = narrow ? wc : (float *)tune_cpu_data(p->c) + r * apart + c;
            if (narrow && p->beta != 0)
                for (int64_t i = 0; i < rows; i++)
                    tune_cpu_in(p->c, (r + i) * apart + c, columns, out + i * columns);
            for (int64_t k = 0; k < p->K; k += BLOCK) {
                int64_t depth = p->K - k < BLOCK ? p->K - k : BLOCK;
                const float *a = p->trans_a ? block(p->a, p->round, k, r, depth, rows, wa, &lda) : block(p->a, p->round, r, k, rows, depth, wa, &lda);
                const float *b =
                    p->trans_b ? block(p->b, p->round, c, k, columns, depth, wb, &ldb) : block(p->b, p->round, k, c, depth, columns, wb, &ldb);
                cblas_sgemm(CblasRowMajor, p->trans_a ? CblasTrans : CblasNoTrans, p->trans_b ? CblasTrans : CblasNoTrans,
                            (blasint)rows, (blasint)columns, (blasint)depth, p->alpha, a, (blasint)lda, b, (blasint)ldb,
                            k == 0 ? p->beta : 1, out, (blasint)ldc);
            }
            for (int64_t i = 0; narrow && i < rows; i++)
                tune_cpu_out(p->c, (r + i) * apart + c, columns, out + i * columns);
        }
}

int64_t tune_cpu_blas_floats(void)
{
    return 3 * BLOCK * BLOCK;
}

int tune_cpu_blas_gemm(struct tune_device *dev, struct tune_tensor *c, const struct tune_tensor *a, bool trans_a,
                       const struct tune_tensor *b, bool trans_b, float alpha, float beta, enum tune_dtype operands)
{
    struct product p = {c, a, b, trans_a, trans_b, operands == TUNE_BF16, alpha, beta, c->shape[0], c->shape[1], a->shape[!trans_a]};
    bool mixed = p.round || a->dtype != TUNE_F32 || b->dtype != TUNE_F32 || c->dtype != TUNE_F32;
    if (p.M == 0 || p.N == 0)
        return 0;
    if (mixed && tune_cpu_reserve(dev, tune_cpu_blas_floats()) < 0)
        return -1;
    /* The serial build shares a buffer between callers without a lock, so only one thread may call
     * it. */
    int threads = openblas_get_parallel() == 0 ? 1 : tune_cpu_threads(dev, p.M * p.N * p.K / 16);
#pragma omp parallel num_threads(threads)
    {
        omp_set_num_threads(1); /* OpenBLAS's OpenMP build reads this setting of the task */
        int64_t r0 = 0, r1 = p.M, c0 = 0, c1 = p.N;
        if (p.M >= p.N) /* split the longer side */
            tune_cpu_piece(p.M, 16, &r0, &r1);
        else
            tune_cpu_piece(p.N, 16, &c0, &c1);
        if (r1 > r0 && c1 > c0) {
            if (mixed)
                mixed_piece(&p, r0, r1, c0, c1, tune_cpu_work(dev));
            else
                f32_piece(&p, r0, r1, c0, c1);
        }
    }
    return 0;
}
