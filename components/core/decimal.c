/* decimal.c - the shortest decimal of a double, with the Schubfach algorithm; and back.
 *
 * A double v = c x 2^q is the result of reading any decimal between its two half-way points:
 *
 *        (4c-2) 2^(q-2)          4c 2^(q-2)          (4c+2) 2^(q-2)
 *     ---------|----------------------|----------------------|---------
 *           lower                     v                    upper
 *
 * The ends belong to the interval if c is even. For c = 2^52 the lower end is (4c-1) 2^(q-2).
 *
 * Choose k with 10^k <= 2^q < 10^(k+1); for c = 2^52, 10^k <= 3/4 2^q. The interval then has at
 * most one multiple of 10^(k+1). If there is one, it is the shortest decimal. Otherwise it is the
 * nearest multiple of 10^k. This needs v, lower and upper times 4/10^k, rounded down, with the
 * lowest bit set if they were not exact. */
#include "core/decimal.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "core/hash.h"
#include "core/powers_of_ten.h"

/* floor(q log10(2)), floor(q log10(2) + log10(3/4)) and floor(e log2(10)). Tests check them for all
 * exponents. */
static int log10_of_power_of_2(int q, bool three_quarters)
{
    return (q * 1262611 - (three_quarters ? 524031 : 0)) >> 22;
}

static int log2_of_power_of_10(int e)
{
    return (e * 1741647) >> 19;
}

/* g x c / 2^128, rounded down; the lowest bit is set if that was not exact. g is rounded up by less
 * than 1, which adds less than 2^64 to the product. So an exact integer stays one, and no other
 * product reaches the next integer. This was checked for each q over all c with continued
 * fractions. Two products exceed an integer by too little to be seen as inexact. Those integers are
 * odd, so the lowest bit is set anyway. */
static uint64_t scaled(const uint64_t g[2], uint64_t c)
{
    uint64_t carried, high;
    tune_multiply(g[1], c, &carried);
    uint64_t middle = tune_multiply(g[0], c, &high) + carried;
    return (high + (middle < carried)) | (middle != 0);
}

void tune_decimal(double value, uint64_t *digits, int *exponent)
{
    uint64_t bits, s, g[2];
    memcpy(&bits, &value, sizeof bits);
    uint64_t c = bits & 0xFFFFFFFFFFFFF;
    int biased = (int)(bits >> 52 & 0x7FF), q = (biased ? biased : 1) - 1075;
    bool narrow = c == 0 && biased > 1; /* a power of two: the double below is nearer */
    c |= biased ? (uint64_t)1 << 52 : 0;
    *digits = 0;
    *exponent = 0;
    if (c == 0)
        return;
    int k = log10_of_power_of_2(q, narrow), shift = q + log2_of_power_of_10(-k) + 1; /* 1 to 4 */
    tune_power_of_ten(-k, g);
    uint64_t outside = c & 1; /* the ends */
    uint64_t lower = scaled(g, (4 * c - (narrow ? 1 : 2)) << shift) + outside;
    uint64_t here = scaled(g, 4 * c << shift);
    uint64_t upper = scaled(g, (4 * c + 2) << shift) - outside;
    uint64_t tens = here / 40;
    bool below = lower <= 40 * tens, above = 40 * tens + 40 <= upper;
    if (below != above && tens > 0) {
        s = tens + above;
        k++;
    } else {
        s = here / 4;
        below = lower <= 4 * s;
        above = 4 * s + 4 <= upper;
        uint64_t half = 4 * s + 2;
        s += below != above ? above : here > half || (here == half && s % 2);
    }
    for (; s % 10 == 0; k++)
        s /= 10;
    *digits = s;
    *exponent = k;
}

/* Up to 2^53 and 10^22, digits and power are exact doubles, and one division or product rounds once.
 * Source: Clinger, "How to read floating point numbers accurately", 1990.
 *
 * Otherwise take the highest 128 bits of the product. The power is rounded up by less than 1, which
 * adds less than 2^64 to the product's 192 bits. So the 128 bits are too high by at most 1, and never
 * too low. That matters only if all bits behind the half bit are 0. */
bool tune_decimal_value(uint64_t digits, int exponent, double *value)
{
    static const double powers[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
                                    1e18, 1e19, 1e20, 1e21, 1e22};
    uint64_t g[2], high, low, carried;
    if (digits <= (uint64_t)1 << 53 && exponent >= -22 && exponent <= 22) {
        *value = exponent < 0 ? (double)digits / powers[-exponent] : (double)digits * powers[exponent];
        return true;
    }
    if (digits == 0 || exponent < -280 || exponent > 280)
        return false;
    int up = __builtin_clzll(digits);
    tune_power_of_ten(exponent, g);
    tune_multiply(g[1], digits << up, &carried);
    low = tune_multiply(g[0], digits << up, &high) + carried;
    high += low < carried;
    int drop = 9 + (int)(high >> 63); /* 54 bits remain: the double's and the half bit */
    if (low == 0 && high << (64 - drop) == 0)
        return false;
    uint64_t c = ((high >> drop) + 1) >> 1;
    int q = drop + 2 - up + log2_of_power_of_10(exponent); /* the value is c x 2^q */
    uint64_t bits = ((uint64_t)(q + 1074) << 52) + c;
    memcpy(value, &bits, sizeof bits);
    return true;
}

/* Write value as Python's repr() does. point: write ".0" after an integer. */
static int spell(char *text, double value, bool point)
{
    char reversed[20], *to = text;
    uint64_t digits;
    int exponent, n = 0;
    if (isnan(value))
        return (int)strlen(strcpy(text, "nan"));
    if (signbit(value))
        *to++ = '-';
    if (isinf(value))
        return (int)(to - text) + (int)strlen(strcpy(to, "inf"));
    tune_decimal(value, &digits, &exponent);
    do
        reversed[n++] = (char)('0' + digits % 10);
    while ((digits /= 10) > 0);
    int whole = n + exponent; /* digits before the point */
    bool plain = whole > -4 && whole <= 16;
    if (plain && whole <= 0) {
        *to++ = '0';
        *to++ = '.';
        for (int i = whole; i < 0; i++)
            *to++ = '0';
    }
    for (int i = 0; i < n; i++) {
        if (i > 0 && i == (plain ? whole : 1))
            *to++ = '.';
        *to++ = reversed[n - 1 - i];
    }
    for (int i = n; plain && i < whole; i++)
        *to++ = '0';
    if (plain && whole >= n && point) {
        *to++ = '.';
        *to++ = '0';
    } else if (!plain) {
        int e = whole - 1, size = e < 0 ? -e : e;
        *to++ = 'e';
        *to++ = e < 0 ? '-' : '+';
        if (size >= 100)
            *to++ = (char)('0' + size / 100);
        *to++ = (char)('0' + size / 10 % 10);
        *to++ = (char)('0' + size % 10);
    }
    *to = 0;
    return (int)(to - text);
}

int tune_decimal_python(char text[TUNE_DECIMAL_SIZE], double value)
{
    return spell(text, value, true);
}

int tune_decimal_json(char text[TUNE_DECIMAL_SIZE], double value)
{
    return spell(text, value, false);
}
