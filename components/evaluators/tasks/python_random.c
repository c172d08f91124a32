/* python_random.c - MT19937 as Python seeds and uses it. */
#include "evaluators/tasks/python_random.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/array.h"

enum { N = 624, M = 397 };

static uint32_t next(struct python_random *r)
{
    if (r->at == N) {
        for (int i = 0; i < N; i++) {
            uint32_t y = (r->state[i] & 0x80000000u) | (r->state[(i + 1) % N] & 0x7fffffffu);
            r->state[i] = r->state[(i + M) % N] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
        }
        r->at = 0;
    }
    uint32_t y = r->state[r->at++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

void tune_python_random_seed(struct python_random *r, uint64_t seed)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    int words = key[1] ? 2 : 1, i = 1, j = 0;
    uint32_t *s = r->state;
    s[0] = 19650218u;
    for (int k = 1; k < N; k++)
        s[k] = 1812433253u * (s[k - 1] ^ s[k - 1] >> 30) + (uint32_t)k;
    for (int k = 0; k < N; k++) {
        s[i] = (s[i] ^ (s[i - 1] ^ s[i - 1] >> 30) * 1664525u) + key[j] + (uint32_t)j;
        j = (j + 1) % words;
        if (++i == N) {
            s[0] = s[N - 1];
            i = 1;
        }
    }
    for (int k = 0; k < N - 1; k++) {
        s[i] = (s[i] ^ (s[i - 1] ^ s[i - 1] >> 30) * 1566083941u) - (uint32_t)i;
        if (++i == N) {
            s[0] = s[N - 1];
            i = 1;
        }
    }
    s[0] = 0x80000000u;
    r->at = N;
}

double tune_python_random_uniform(struct python_random *r)
{
    uint32_t high = next(r) >> 5, low = next(r) >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
}

int64_t tune_python_random_below(struct python_random *r, int64_t n)
{
    int bits = 0;
    while (n >> bits)
        bits++;
    for (;;) {
        uint64_t drawn = 0;
        for (int at = 0; at < bits; at += 32) {
            int left = bits - at;
            drawn |= (uint64_t)(next(r) >> (left < 32 ? 32 - left : 0)) << at;
        }
        if ((int64_t)drawn < n)
            return (int64_t)drawn;
    }
}

static bool has(const int64_t *chosen, int64_t count, int64_t number)
{
    for (int64_t i = 0; i < count; i++)
        if (chosen[i] == number)
            return true;
    return false;
}

int tune_python_random_sample(struct python_random *r, int64_t n, int64_t k, int64_t *chosen)
{
    int64_t few = 21; /* up to here, sample moves a list of all in place of remembering the chosen */
    if (k > 5)
        few += (int64_t)pow(4, ceil(log((double)k * 3) / log(4)));
    if (n > few) {
        for (int64_t i = 0; i < k; i++) {
            do
                chosen[i] = tune_python_random_below(r, n);
            while (has(chosen, i, chosen[i]));
        }
        return 0;
    }
    int64_t *pool = tune_zeroed((size_t)n, sizeof *pool, "a sample of %lld", (long long)n);
    if (!pool)
        return -1;
    for (int64_t i = 0; i < n; i++)
        pool[i] = i;
    for (int64_t i = 0; i < k; i++) {
        int64_t j = tune_python_random_below(r, n - i);
        chosen[i] = pool[j];
        pool[j] = pool[n - i - 1];
    }
    free(pool);
    return 0;
}
