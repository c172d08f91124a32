/* clock.h - a moment: the monotonic clock and the processor time this process had used by then. */
#ifndef TUNE_CORE_CLOCK_H
#define TUNE_CORE_CLOCK_H

#include <time.h>

struct tune_moment {
    double wall_s; /* CLOCK_MONOTONIC */
    double cpu_s;  /* of all threads of the process */
};

static inline struct tune_moment tune_moment_now(void)
{
    struct timespec wall, cpu;
    clock_gettime(CLOCK_MONOTONIC, &wall);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    struct tune_moment m;
    m.wall_s = (double)wall.tv_sec + 1e-9 * (double)wall.tv_nsec;
    m.cpu_s = (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec;
    return m;
}

#endif
