/* clock.h - a moment: the monotonic clock and the processor time this process had used by then.
 *
 * The reading stands in clock.c: public headers must do without POSIX names, which a
 * program's plain -std=c11 hides. */
#ifndef TUNE_CORE_CLOCK_H
#define TUNE_CORE_CLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

struct tune_moment {
    double wall_s; /* CLOCK_MONOTONIC */
    double cpu_s;  /* of all threads of the process */
};

struct tune_moment tune_moment_now(void);

/* tune_clock_s - the monotonic clock alone, in some 30 ns. */
double tune_clock_s(void);

#ifdef __cplusplus
}
#endif
#endif
