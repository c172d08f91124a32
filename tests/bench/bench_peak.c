/* bench_peak.c - what multiply-adds in registers reach over a while, as a training step runs, and not at their best.
 *
 *     bench_peak [seconds] [threads]      default 2 s, and 0: one a core
 *
 * Prints the sum of the threads' mean rates and of their best tenths of a millisecond, in GFLOP/s. Where others share the
 * processor, or its clock moves, the mean is what a step can be held against. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/clock.h"
#include "machine/cpus.h"

/* Independent sums: enough for two pipelines of latency 5. 16 numbers: as many instructions as the processor needs for them. */
#define EACH(does) does(0) does(1) does(2) does(3) does(4) does(5) does(6) does(7) does(8) does(9) does(10) does(11)
#define BEGIN(i) vec sum##i = y * (float)i;
#define STEP(i) sum##i = sum##i * x + y;
#define COLLECT(i) y += sum##i;
#define LOOP(name, width, features)                                   \
    features static double name(float start, float *out)              \
    {                                                                 \
        typedef float vec __attribute__((vector_size(width)));        \
        vec x = (vec){0} + start, y = (vec){0} + (1 - start);         \
        EACH(BEGIN)                                                   \
        for (int i = 0; i < 1000; i++) {                              \
            EACH(STEP)                                                \
        }                                                             \
        EACH(COLLECT)                                                 \
        *out += y[0];                                                 \
        return 2.0 * (width / 4) * 12 * 1000;                         \
    }
#if defined(__x86_64__)
LOOP(loop_64, 64, __attribute__((target("avx512f,fma"))))
LOOP(loop_32, 32, __attribute__((target("avx2,fma"))))
#endif
LOOP(loop_16, 16, )

static double (*widest(void))(float, float *)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f"))
        return loop_64;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return loop_32;
#endif
    return loop_16;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 2, mean = 0, best = 0;
    int threads = tune_cpus_threads(argc > 2 ? atoi(argv[2]) : 0);
    double (*loop)(float, float *) = widest();
    float kept = 0;
    if (threads < 0)
        return 2;
#pragma omp parallel num_threads(threads) reduction(+ : mean, best, kept)
    {
        double begin = tune_clock_s(), now = begin, all = 0, most = 0;
        while (now - begin < seconds) {
            double from = now, done = 0;
            while (now - from < 1e-4) {
                done += loop(0.5f, &kept);
                now = tune_clock_s();
            }
            all += done;
            most = done / (now - from) > most ? done / (now - from) : most;
        }
        mean += all / (now - begin);
        best += most;
    }
    printf("%.1f %.1f\n", mean / 1e9, best / 1e9);
    return kept == 1; /* the sums are used */
}
