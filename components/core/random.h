/* random.h - numbers that are a function of (seed, stream, counter): nothing to save, nothing to share.
 *
 * The same three give the same bits on every machine, in any order, from any thread; so a
 * resumed or recomputed step draws what the first one drew. */
#ifndef TUNE_CORE_RANDOM_H
#define TUNE_CORE_RANDOM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* tune_random_u64 - 64 even bits. tune_random_uniform - [0,1), 53 bits. tune_random_normal - mean 0, variance 1.
 * Source: Salmon et al. 2011, Philox 2x64-10, key = seed, counter = (counter, stream). */
uint64_t tune_random_u64(uint64_t seed, uint64_t stream, uint64_t counter);
double tune_random_uniform(uint64_t seed, uint64_t stream, uint64_t counter);
double tune_random_normal(uint64_t seed, uint64_t stream, uint64_t counter);

/* tune_random_permute - where index (0 <= index < n) goes in a permutation of 0..n-1 drawn by (seed, stream):
 * a bijection computed, not stored. Source: Black & Rogaway 2002, a Feistel network with cycle walking. */
uint64_t tune_random_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t index);

/* tune_random_permute_wide - the same for n of up to 128 bits, another permutation: of more rounds, so that small sets too
 * come in every order about equally often. */
__extension__ typedef unsigned __int128 tune_wide;
tune_wide tune_random_permute_wide(uint64_t seed, uint64_t stream, tune_wide n, tune_wide index);

#ifdef __cplusplus
}
#endif
#endif
