/* decimal.h - a double in the fewest decimal digits that read back as the same one.
 *
 *     char text[TUNE_DECIMAL_SIZE];
 *     tune_decimal_python(text, 1e-5);      1e-05
 *
 * Source: Giulietti 2020/2022, "The Schubfach way to render doubles"; no printing and reading back, no locale. */
#ifndef TUNE_CORE_DECIMAL_H
#define TUNE_CORE_DECIMAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_DECIMAL_SIZE 32

/* tune_decimal - |value| = digits x 10^exponent, digits without trailing zeros: of all decimals that read back as value those
 * with the fewest digits, of them the nearest. value is finite; of 0: digits 0, exponent 0. */
void tune_decimal(double value, uint64_t *digits, int *exponent);

/* tune_decimal_python - as Python's repr() spells a float: 1.0, 2.5, 1e-05, 1e+16, nan, inf. Returns its length.
 * tune_decimal_json - the same without ".0": 1, 2.5, 1e-05, 1e+16; what is not finite has no spelling in JSON. */
int tune_decimal_python(char text[TUNE_DECIMAL_SIZE], double value);
int tune_decimal_json(char text[TUNE_DECIMAL_SIZE], double value);

#ifdef __cplusplus
}
#endif
#endif
