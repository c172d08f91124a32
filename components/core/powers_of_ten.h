/* powers_of_ten.h - 10^e as a number of 128 bits, {high, low}, for core/decimal.c. It is 10^e x
 * 2^(127 - p), rounded up, with p = floor(log2(10^e)). Its highest bit is set.
 *
 * Each 27th power is stored. The others are its product with a power of 5, which is off by at most
 * 1; two bits for each power correct it. Python made the tables with exact fractions.
 * tests/core/test_decimal.c proves every power again with whole numbers. */
#ifndef TUNE_CORE_POWERS_OF_TEN_H
#define TUNE_CORE_POWERS_OF_TEN_H

#include <stdint.h>

#include "core/hash.h"

enum { TUNE_TEN_FIRST = -292, TUNE_TEN_LAST = 324, TUNE_TEN_STEP = 27 };

/* tune_power_of_ten - 10^e into g, for e from TUNE_TEN_FIRST to TUNE_TEN_LAST. */
static inline void tune_power_of_ten(int e, uint64_t g[2])
{
    static const uint64_t stored[][2] = {
        {0xff77b1fcbebcdc4f, 0x25e8e89c13bb0f7b},
        {0xce5d73ff402d98e3, 0xfb0a3d212dc81290},
        {0xa6b34ad8c9dfc06f, 0xf42faa48c0ea481f},
        {0x86a8d39ef77164bc, 0xae5dff9c02033198},
        {0xd98ddaee19068c76, 0x3badd624dd9b0958},
        {0xafbd2350644eeacf, 0xe5d1929ef90898fb},
        {0x8df5efabc5979c8f, 0xca8d3ffa1ef463c2},
        {0xe55990879ddcaabd, 0xcc420a6a101d0516},
        {0xb94470938fa89bce, 0xf808e40e8d5b3e6a},
        {0x95a8637627989aad, 0xdde7001379a44aa9},
        {0xf1c90080baf72cb1, 0x5324c68b12dd6339},
        {0xc350000000000000, 0x0000000000000000},
        {0x9dc5ada82b70b59d, 0xf020000000000000},
        {0xfee50b7025c36a08, 0x02f236d04753d5b5},
        {0xcde6fd5e09abcf26, 0xed4c0226b55e6f87},
        {0xa6539930bf6bff45, 0x84db8346b786151d},
        {0x865b86925b9bc5c2, 0x0b8a2392ba45a9b3},
        {0xd910f7ff28069da4, 0x1b2ba1518094da05},
        {0xaf58416654a6babb, 0x387ac8d1970027b3},
        {0x8da471a9de737e24, 0x5ceaecfed289e5d3},
        {0xe4d5e82392a40515, 0x0fabaf3feaa5334b},
        {0xb8da1662e7b00a17, 0x3d6a751f3b936244},
        {0x95527a5202df0ccb, 0x0f37801e0c43ebc9},
    };
    static const uint64_t corrections[] = {
        0xa95aaa9aa965aa59, 0xaaaa996aaa5aa6aa, 0x50415106a5a6aaa6, 0x5965995aa5154114,
        0x5a559556aa565559, 0xa6959a96a6aaa999, 0x6aa9aa9aaa695aaa, 0x5654516aa9aaaaaa,
        0x5665696a95556955, 0x5555555555555559, 0x6a55555555555555, 0x9a9a9665699aaaa9,
        0xa59996a9aaaaa6aa, 0x155555956965566a, 0xaa9a69aaa9556555, 0x5545455555865aa6,
        0x6956aa96a9a695a4, 0xaa69656a695aaa66, 0x6a6a655aaaaaaaaa, 0x000000000002aaa9,
    };
    int i = e - TUNE_TEN_FIRST;
    uint64_t five = 1, carried, top;
    for (int k = i % TUNE_TEN_STEP; k > 0; k--)
        five *= 5;
    uint64_t low = tune_multiply(stored[i / TUNE_TEN_STEP][1], five, &carried);
    uint64_t middle = tune_multiply(stored[i / TUNE_TEN_STEP][0], five, &top) + carried;
    top += middle < carried;
    int free = top ? __builtin_clzll(top) : 64; /* bits above the product's highest */
    g[0] = top ? top << free | (free ? middle >> (64 - free) : 0) : middle;
    g[1] = top ? middle << free | (free ? low >> (64 - free) : 0) : low;
    uint64_t more = corrections[i / 32] >> (2 * (i % 32)) & 3; /* 1 more than what is to be added */
    g[0] += more == 2 && g[1] == UINT64_MAX ? 1 : more == 0 && g[1] == 0 ? UINT64_MAX : 0;
    g[1] += more - 1;
}

#endif
