/* random.c - Philox 2x64-10 and a Feistel permutation on it. */
#include "core/random.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "core/error.h"

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

/* A Feistel network of so many rounds. */
static tune_wide permute(uint64_t seed, uint64_t stream, tune_wide n, tune_wide index,
                         uint64_t rounds)
{
    int half = 1; /* the network permutes 2*half bits, the least even number that holds n-1 */
    while (half < 64 && (n - 1) >> (2 * half) != 0)
        half++;
    uint64_t mask = half == 64 ? UINT64_MAX : ((uint64_t)1 << half) - 1;
    do { /* walk the cycle until it is back inside 0..n-1: at most 4 turns on average */
        uint64_t left = (uint64_t)(index >> half), right = (uint64_t)index & mask;
        for (uint64_t round = 0; round < rounds; round++) {
            uint64_t next = left ^ (tune_random_u64(seed, stream ^ (round + 1) << 56, right) & mask);
            left = right;
            right = next;
        }
        index = (tune_wide)left << half | right;
    } while (index >= n);
    return index;
}

uint64_t tune_random_permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t index)
{
    return (uint64_t)permute(seed, stream, n, index, 6);
}

tune_wide tune_random_permute_wide(uint64_t seed, uint64_t stream, tune_wide n, tune_wide index)
{
    return permute(seed, stream, n, index, 12);
}

int tune_random_fresh(void *bytes, size_t size)
{
    if (getrandom(bytes, size, 0) == (ssize_t)size)
        return 0;
    return tune_error_set("no random bytes from the kernel: %s", strerror(errno));
}
