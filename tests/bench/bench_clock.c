/* bench_clock.c - the clock of the core that this runs on, in GHz, under the load that it has now.
 *
 *     bench_clock        prints one number
 *
 * In a chain of additions each needs the one before and takes one cycle. The chain is divided by
 * the thread's own CPU time, so that other programs on the core do not count. Median of CHUNKS. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CHUNKS = 41, ADDS = 160000 };

static double cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* The compiler must not join additions, and the processor cannot: what is added is in a register. */
#define ADD x += y; __asm__ volatile("" : "+r"(x));

static double chunk(uint64_t x, uint64_t y)
{
    __asm__ volatile("" : "+r"(x), "+r"(y));
    double begin = cpu_ns();
    for (int i = 0; i < ADDS; i += 16) {
        ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD ADD
    }
    return ADDS / (cpu_ns() - begin);
}

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(void)
{
    double ghz[CHUNKS];
    for (int i = 0; i < CHUNKS; i++)
        ghz[i] = chunk(1, 3);
    qsort(ghz, CHUNKS, sizeof *ghz, order);
    printf("%.3f\n", ghz[CHUNKS / 2]);
    return 0;
}
