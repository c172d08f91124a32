/* sha256.c - SHA-256. Its constants are the fractional parts of roots of the first primes; they are
 * computed here in integers. */
#include "core/sha256.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK = 64, ROUNDS = 64 };

/* The largest integer below n^(1/root) * 2^32, modulo 2^32. root: 2 or 3. */
static uint32_t root_bits(int n, int root)
{
    uint64_t low = 0, high = (uint64_t)n << 32;
    while (low + 1 < high) {
        uint64_t middle = low + (high - low) / 2;
        __extension__ unsigned __int128 power = (unsigned __int128)middle * middle,
                                        most = (unsigned __int128)n << 32 * root;
        if ((root == 2 ? power : power * middle) <= most)
            low = middle;
        else
            high = middle;
    }
    return (uint32_t)low;
}

static void set_constants(uint32_t h[8], uint32_t k[ROUNDS])
{
    int count = 0;
    for (int n = 2; count < ROUNDS; n++) {
        int divisor = 2;
        while (divisor * divisor <= n && n % divisor != 0)
            divisor++;
        if (divisor * divisor <= n)
            continue;
        if (count < 8)
            h[count] = root_bits(n, 2);
        k[count++] = root_bits(n, 3);
    }
}

static uint32_t turn(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

static void add_block(uint32_t h[8], const uint32_t k[ROUNDS], const uint8_t *block)
{
    uint32_t w[ROUNDS], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < ROUNDS; i++) {
        uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3;
        w[i] =
            w[i - 16] + a + w[i - 7] + (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    }
    memcpy(s, h, sizeof s);
    for (int i = 0; i < ROUNDS; i++) {
        uint32_t choice = (s[4] & s[5]) ^ (~s[4] & s[6]),
                 majority = (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        uint32_t t =
            s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + choice + k[i] + w[i];
        uint32_t u = (turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22)) + majority;
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t;
        s[0] = t + u;
    }
    for (int i = 0; i < 8; i++)
        h[i] += s[i];
}

const char *tune_sha256(const void *data, size_t size, char text[TUNE_SHA256_TEXT])
{
    uint32_t h[8], k[ROUNDS];
    uint8_t last[2 * BLOCK] = {0};
    size_t rest = size % BLOCK, tail = rest < BLOCK - 8 ? BLOCK : 2 * BLOCK;
    set_constants(h, k);
    for (size_t at = 0; at + BLOCK <= size; at += BLOCK)
        add_block(h, k, (const uint8_t *)data + at);
    if (rest)
        memcpy(last, (const uint8_t *)data + size - rest, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++)
        last[tail - 1 - (size_t)i] = (uint8_t)((uint64_t)size * 8 >> (8 * i));
    for (size_t at = 0; at < tail; at += BLOCK)
        add_block(h, k, last + at);
    for (int i = 0; i < 8; i++)
        snprintf(text + 8 * i, 9, "%08x", h[i]);
    return text;
}
