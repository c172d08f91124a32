/* clock.h - wall time and processor time.
 *
 * clock.c reads the clocks. A public header must not use POSIX names, because plain -std=c11 hides
 * them. */
#ifndef TUNE_CORE_CLOCK_H
#define TUNE_CORE_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

struct tune_moment {
    double wall_s; /* CLOCK_MONOTONIC, seconds */
    double cpu_s;  /* processor time of all threads of the process, seconds */
};

struct tune_moment tune_moment_now(void);

/* tune_clock_s - the monotonic clock in seconds. A call takes about 30 ns. */
double tune_clock_s(void);

#ifdef __cplusplus
}
#endif
#endif
