/* random.h - random numbers as a function of (seed, stream, counter). There is no state to save or
 * share.
 *
 * The same three numbers give the same bits on every machine, in any order, from any thread. A
 * resumed or recomputed step therefore draws the same numbers. */
#ifndef TUNE_CORE_RANDOM_H
#define TUNE_CORE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_random_u64 - 64 uniform bits.
 * tune_random_uniform - uniform in [0,1), 53 bits.
 * tune_random_normal - mean 0, variance 1.
 * Source: Salmon et al. 2011, Philox 2x64-10, key = seed, counter = (counter, stream). */
uint64_t tune_random_u64(uint64_t seed, uint64_t stream, uint64_t counter);
double tune_random_uniform(uint64_t seed, uint64_t stream, uint64_t counter);
double tune_random_normal(uint64_t seed, uint64_t stream, uint64_t counter);

/* tune_random_permute - the place of index (0 <= index < n) in a permutation of 0..n-1 that (seed,
 * stream) selects. It is computed, not stored. Source: Black & Rogaway 2002, Feistel network with
 * cycle walking. */
uint64_t tune_random_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t index);

/* tune_random_permute_wide - the same for n up to 2^128, with another permutation. It has more
 * rounds, so that every order of a small set is about equally likely. */
__extension__ typedef unsigned __int128 tune_wide;
tune_wide tune_random_permute_wide(uint64_t seed, uint64_t stream, tune_wide n, tune_wide index);

/* tune_random_fresh - bytes from the kernel, others at each call: for names and keys. -1 with an
 * error. */
int tune_random_fresh(void *bytes, size_t size);

#ifdef __cplusplus
}
#endif
#endif
