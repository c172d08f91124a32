/* clock.c - read the clocks. */
#include "core/clock.h"

#include <time.h>

static double seconds(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

struct tune_moment tune_moment_now(void)
{
    return (struct tune_moment){.wall_s = seconds(CLOCK_MONOTONIC), .cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

double tune_clock_s(void)
{
    return seconds(CLOCK_MONOTONIC);
}

double tune_clock_date_s(void)
{
    return seconds(CLOCK_REALTIME);
}
