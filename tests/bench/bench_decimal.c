/* bench_decimal.c - ns to spell a double in the fewest digits that read back, beside snprintf's %.17g (which gives 17 and
 * seldom the fewest) and beside printing with 15, 16, 17 digits until one reads back. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/decimal.h"

enum { COUNT = 1 << 16, PASSES = 5 };
static double values[COUNT];
static int total; /* so that nothing is left out */

static void ours(double value)
{
    char text[TUNE_DECIMAL_SIZE];
    total += tune_decimal_python(text, value);
}

static void seventeen(double value)
{
    char text[64];
    total += snprintf(text, sizeof text, "%.17g", value);
}

static void until_it_reads_back(double value)
{
    char text[64];
    for (int digits = 15; digits <= 17; digits++) {
        total += snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
}

static double best_ns(void (*spell)(double))
{
    double best = INFINITY;
    for (int pass = 0; pass < PASSES; pass++) {
        double begin = tune_moment_now().wall_s;
        for (int i = 0; i < COUNT; i++)
            spell(values[i]);
        best = fmin(best, (tune_moment_now().wall_s - begin) / COUNT * 1e9);
    }
    return best;
}

int main(void)
{
    static const char *const kinds[] = {"random bits", "random in [0,1)", "figures with 4 decimals", "whole numbers"};
    for (int kind = 0; kind < 4; kind++) {
        uint64_t x = 1;
        for (int i = 0; i < COUNT; i++) {
            x = x * 6364136223846793005u + 1442695040888963407u;
            if (kind == 0) {
                memcpy(values + i, &x, sizeof x);
                values[i] = isfinite(values[i]) ? values[i] : 0.5;
            } else {
                values[i] = kind == 1 ? (double)(x >> 11) * 0x1p-53 : kind == 2 ? (double)(x >> 44) / 10000 : (double)(x >> 40);
            }
        }
        double a = best_ns(ours), b = best_ns(seventeen), c = best_ns(until_it_reads_back);
        printf("decimal %-24s %6.1f ns   %%.17g %6.1f ns   15..17 until it reads back %6.1f ns (best of %d)\n", kinds[kind], a, b, c, PASSES);
    }
    return total == 0;
}
