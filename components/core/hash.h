/* hash.h - the 64 x 64 -> 128 bit product that the random numbers and hashes are made of. */
#ifndef TUNE_CORE_HASH_H
#define TUNE_CORE_HASH_H

#include <stdint.h>

static inline uint64_t tune_multiply(uint64_t a, uint64_t b, uint64_t *high)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    *high = (uint64_t)(product >> 64);
    return (uint64_t)product;
}

#endif
