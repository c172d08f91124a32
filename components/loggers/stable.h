/* stable.h - the speed of steps after warm-up, and its confidence interval.
 *
 * MSER decides which steps are warm-up. It drops the steps whose removal gives the smallest
 * standard error of the mean, at most half of them. The speed is the tokens of the other steps over
 * their time. Its 95 % confidence interval uses the variance of a ratio and Student's t. Where a
 * step resembles the one before, there are fewer degrees of freedom. There is no answer with fewer
 * than ten steps after warm-up, or if warm-up may not be over.
 *
 * Sources. MSER: White 1997, Simulation 69(6). Ratio: Cochran 1977, chapter 6. Effective number of
 * correlated steps: Bayley & Hammersley 1946.
 *
 *     struct tune_stable s = {0};
 *     tune_stable_add(&s, tokens, seconds);                 each step
 *     struct tune_stable_speed v = tune_stable_speed(&s);
 *     if (v.steps > 0 && v.half_width <= 0.01 * v.mean) ... */
#ifndef TUNE_LOGGERS_STABLE_H
#define TUNE_LOGGERS_STABLE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { TUNE_STABLE_ROOM = 2048, TUNE_STABLE_LEAST = 10 };

/* Steps in order. When there is no room left, two become one entry, then four, ... */
struct tune_stable {
    /* number of entries; steps per entry; steps in the incomplete entry [count] */
    int count, steps_each, partial;
    double tokens[TUNE_STABLE_ROOM], seconds[TUNE_STABLE_ROOM];
};

struct tune_stable_speed {
    double mean, half_width; /* tokens/s; half of its 95 % confidence interval */
    int64_t warm_up, steps;  /* steps left out; steps counted, 0: no answer */
};

/* tune_stable_add - add a step. A step without time or tokens is left out.
 * tune_stable_speed - the speed so far. */
void tune_stable_add(struct tune_stable *s, double tokens, double seconds);
struct tune_stable_speed tune_stable_speed(const struct tune_stable *s);

#ifdef __cplusplus
}
#endif
#endif
