/* random.h - random numbers as a function of (seed, stream, counter). There is no state to save or
 * share.
 *
 * The same arguments give the same bits on every machine, in any order, from any thread. So a
 * resumed or recomputed step draws the same numbers. */
#ifndef TUNE_CORE_RANDOM_H
#define TUNE_CORE_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_random_u64 - 64 uniform bits.
 * tune_random_uniform - uniform in [0,1), 53 bits.
 * tune_random_normal - normal with mean 0 and variance 1.
 *
 * Source: Salmon et al. 2011, Philox 2x64-10, key = seed, counter = (counter, stream). */
uint64_t tune_random_u64(uint64_t seed, uint64_t stream, uint64_t counter);
double tune_random_uniform(uint64_t seed, uint64_t stream, uint64_t counter);
double tune_random_normal(uint64_t seed, uint64_t stream, uint64_t counter);

/* tune_random_permute - the image of index (0 <= index < n) in a random permutation of 0..n-1,
 * given by (seed, stream). Nothing is stored. Source: Black & Rogaway 2002, a Feistel network with
 * cycle walking. */
uint64_t tune_random_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t index);

/* tune_random_permute_wide - the same for n up to 128 bits. It is another permutation with more
 * rounds, so that all orders of a small set are about equally likely. */
__extension__ typedef unsigned __int128 tune_wide;
tune_wide tune_random_permute_wide(uint64_t seed, uint64_t stream, tune_wide n, tune_wide index);

#ifdef __cplusplus
}
#endif
#endif
