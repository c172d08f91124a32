/* siphash.c - SipHash-2-4. */
#include "core/hash.h"

static uint64_t word(const uint8_t *bytes, size_t count)
{
    uint64_t w = 0;
    for (size_t i = 0; i < count; i++)
        w |= (uint64_t)bytes[i] << (8 * i);
    return w;
}

static uint64_t rotate_left(uint64_t x, int bits)
{
    return x << bits | x >> (64 - bits);
}

static void rounds(uint64_t v[4], int count)
{
    while (count-- > 0) {
        v[0] += v[1];
        v[1] = rotate_left(v[1], 13) ^ v[0];
        v[0] = rotate_left(v[0], 32);
        v[2] += v[3];
        v[3] = rotate_left(v[3], 16) ^ v[2];
        v[0] += v[3];
        v[3] = rotate_left(v[3], 21) ^ v[0];
        v[2] += v[1];
        v[1] = rotate_left(v[1], 17) ^ v[2];
        v[2] = rotate_left(v[2], 32);
    }
}

static void absorb_word(uint64_t v[4], uint64_t w)
{
    v[3] ^= w;
    rounds(v, 2);
    v[0] ^= w;
}

uint64_t tune_siphash(const void *data, size_t size, const uint8_t key[16])
{
    const uint8_t *at = data;
    uint64_t a = word(key, 8), b = word(key + 8, 8);
    uint64_t v[4] = {a ^ 0x736f6d6570736575, b ^ 0x646f72616e646f6d, a ^ 0x6c7967656e657261, b ^ 0x7465646279746573};
    size_t left = size;
    for (; left >= 8; left -= 8, at += 8)
        absorb_word(v, word(at, 8));
    absorb_word(v, word(at, left) | (uint64_t)size << 56);
    v[2] ^= 0xff;
    rounds(v, 4);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}
