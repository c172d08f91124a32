/* clock.h - readings of two clocks: the monotonic clock and the process's processor time.
 *
 * The system calls are in clock.c, because a program compiled with plain -std=c11 has no POSIX
 * names. */
#ifndef TUNE_CORE_CLOCK_H
#define TUNE_CORE_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

struct tune_moment {
    double wall_s; /* CLOCK_MONOTONIC, seconds */
    double cpu_s;  /* processor time of all threads of the process, seconds */
};

/* tune_moment_now - read both clocks.
 * tune_clock_s - read the monotonic clock alone, in seconds; takes about 30 ns. */
struct tune_moment tune_moment_now(void);
double tune_clock_s(void);

/* tune_clock_date_s - seconds since 1970. */
double tune_clock_date_s(void);

#ifdef __cplusplus
}
#endif
#endif
