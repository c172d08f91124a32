/* hash.h - the 64 x 64 -> 128 bit product for random numbers and hashes, and a hash with a key. */
#ifndef TUNE_CORE_HASH_H
#define TUNE_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

static inline uint64_t tune_multiply(uint64_t a, uint64_t b, uint64_t *high)
{
    __extension__ unsigned __int128 product = (unsigned __int128)a * b;
    *high = (uint64_t)(product >> 64);
    return (uint64_t)product;
}

/* tune_siphash - SipHash-2-4 of data. Without the key nobody can guess the data from the hash, even
 * by trying likely data. Source: Aumasson, Bernstein 2012, "SipHash: a fast short-input PRF". */
uint64_t tune_siphash(const void *data, size_t size, const uint8_t key[16]);

#endif
