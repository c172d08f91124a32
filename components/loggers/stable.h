/* stable.h - how fast steps are once they have warmed up, and how surely that is known.
 *
 * Which steps are warm-up: those whose removal leaves the mean of the others best known (MSER), at most half of them. The
 * speed is the tokens of the others over their time, which is their mean weighted by time, with a 95 % confidence
 * interval: the variance of a ratio, Student's t, and fewer degrees of freedom where a step is like the one before. With
 * fewer than ten steps behind the warm-up, or where it may not be over, there is no answer.
 *
 * Sources: MSER: White 1997, Simulation 69(6). Ratio: Cochran 1977, chapter 6. Effective number of correlated steps:
 * Bayley & Hammersley 1946.
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

/* Steps as they came; when there is no room left, two together, then four, ... */
struct tune_stable {
    int count, steps_each, partial; /* entries; steps in each; steps in the one that is not full yet, entry [count] */
    double tokens[TUNE_STABLE_ROOM], seconds[TUNE_STABLE_ROOM];
};

struct tune_stable_speed {
    double mean, half_width; /* tokens/s; of the 95 % confidence interval */
    int64_t warm_up, steps;  /* left out, counted; steps 0: no answer */
};

/* tune_stable_add - a step; one of no time or no tokens is left out. tune_stable_speed - what is known now. */
void tune_stable_add(struct tune_stable *s, double tokens, double seconds);
struct tune_stable_speed tune_stable_speed(const struct tune_stable *s);

/* tune_student_t - the two-sided 95 % quantile of Student's t with that many degrees of freedom, at least 1. */
double tune_student_t(int freedom);

#ifdef __cplusplus
}
#endif
#endif
