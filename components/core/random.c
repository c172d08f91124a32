/* random.c - Philox 2x64-10 and a Feistel permutation on it. */
#include "core/random.h"

#include <math.h>

#include "core/hash.h"

uint64_t tune_random_u64(uint64_t seed, uint64_t stream, uint64_t counter)
{
    uint64_t key = seed, left = counter, right = stream;
    for (int round = 0; round < 10; round++) {
        uint64_t high, low = tune_multiply(0xD2B74407B1CE6E93u, left, &high);
        left = high ^ key ^ right;
        right = low;
        key += 0x9E3779B97F4A7C15u;
    }
    return left;
}

double tune_random_uniform(uint64_t seed, uint64_t stream, uint64_t counter)
{
    return (double)(tune_random_u64(seed, stream, counter) >> 11) * 0x1p-53;
}

double tune_random_normal(uint64_t seed, uint64_t stream, uint64_t counter)
{
    /* Box & Muller 1958. 1-u is in (0,1], so the logarithm is finite. */
    double u = 1.0 - tune_random_uniform(seed, stream, 2 * counter);
    double v = tune_random_uniform(seed, stream, 2 * counter + 1);
    return sqrt(-2.0 * log(u)) * cos(6.283185307179586 * v);
}

uint64_t tune_random_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t index)
{
    int half = 1; /* the network permutes 2*half bits, the smallest even number that holds n-1 */
    while (half < 32 && (n - 1) >> (2 * half) != 0)
        half++;
    uint64_t mask = half == 32 ? 0xffffffffu : ((uint64_t)1 << half) - 1;
    do { /* repeat until the result is in 0..n-1: at most 4 rounds on average */
        uint64_t left = index >> half, right = index & mask;
        for (uint64_t round = 0; round < 6; round++) {
            uint64_t next = left ^ (tune_random_u64(seed, stream ^ (round + 1) << 56, right) & mask);
            left = right;
            right = next;
        }
        index = left << half | right;
    } while (index >= n);
    return index;
}

tune_wide tune_random_permute_wide(uint64_t seed, uint64_t stream, tune_wide n, tune_wide index)
{
    int half = 1;
    while (half < 64 && (n - 1) >> (2 * half) != 0)
        half++;
    uint64_t mask = half == 64 ? UINT64_MAX : ((uint64_t)1 << half) - 1;
    do {
        uint64_t left = (uint64_t)(index >> half), right = (uint64_t)index & mask;
        for (uint64_t round = 0; round < 12; round++) {
            uint64_t next = left ^ (tune_random_u64(seed, stream ^ (round + 1) << 56, right) & mask);
            left = right;
            right = next;
        }
        index = (tune_wide)left << half | right;
    } while (index >= n);
    return index;
}
