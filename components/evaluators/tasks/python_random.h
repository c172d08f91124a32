/* python_random.h - the draws of Python's random.Random(seed), number by number.
 *
 * lm-evaluation-harness draws examples and bootstrap samples with it; the same draws give the same
 * prompts and the same errors. Source: Matsumoto, Nishimura 1998 (MT19937, init_by_array); Python's
 * random.py for sample and choices. */
#ifndef TUNE_PYTHON_RANDOM_H
#define TUNE_PYTHON_RANDOM_H

#include <stdint.h>

struct python_random {
    uint32_t state[624];
    int at;
};

/* tune_python_random_seed - Random(seed).
 * tune_python_random_uniform - random(): in [0,1), 53 bits.
 * tune_python_random_below - a whole number below n, as sample and shuffle draw it.
 * tune_python_random_sample - sample(range(n), k) into chosen [k]. k is at most n. -1 with an
 * error: no memory. */
void tune_python_random_seed(struct python_random *r, uint64_t seed);
double tune_python_random_uniform(struct python_random *r);
int64_t tune_python_random_below(struct python_random *r, int64_t n);
int tune_python_random_sample(struct python_random *r, int64_t n, int64_t k, int64_t *chosen);

#endif
