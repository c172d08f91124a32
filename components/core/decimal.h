/* decimal.h - a double as the fewest decimal digits that read back as the same double, and back.
 *
 *     char text[TUNE_DECIMAL_SIZE];
 *     tune_decimal_python(text, 1e-5);      1e-05
 *
 * Source: Giulietti 2020/2022, "The Schubfach way to render doubles". The locale has no effect. */
#ifndef TUNE_CORE_DECIMAL_H
#define TUNE_CORE_DECIMAL_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_DECIMAL_SIZE 32

/* tune_decimal - |value| = digits x 10^exponent, without trailing zeros. It has the fewest digits
 * that read back as value, and is the nearest of those. value must be finite; for 0, digits and
 * exponent are 0. */
void tune_decimal(double value, uint64_t *digits, int *exponent);

/* tune_decimal_value - the double nearest to digits x 10^exponent, as strtod gives it, in *value.
 * False if that takes exact arithmetic; ask strtod then. That is so for exponents outside -280 to
 * 280, and for numbers too near to a double or to the middle between two. */
bool tune_decimal_value(uint64_t digits, int exponent, double *value);

/* tune_decimal_python - write value as Python's repr() does: 1.0, 2.5, 1e-05, 1e+16, nan, inf.
 * Returns the length.
 * tune_decimal_json - the same without ".0": 1, 2.5, 1e-05. value must be finite, because JSON has
 * no other numbers. */
int tune_decimal_python(char text[TUNE_DECIMAL_SIZE], double value);
int tune_decimal_json(char text[TUNE_DECIMAL_SIZE], double value);

#ifdef __cplusplus
}
#endif
#endif
