/* decimal.h - print a double with the fewest decimal digits that read back as the same double.
 *
 *     char text[TUNE_DECIMAL_SIZE];
 *     tune_decimal_python(text, 1e-5);      1e-05
 *
 * Source: Giulietti 2020/2022, "The Schubfach way to render doubles". It does not depend on the
 * locale. */
#ifndef TUNE_CORE_DECIMAL_H
#define TUNE_CORE_DECIMAL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUNE_DECIMAL_SIZE 32

/* tune_decimal - find |value| = digits x 10^exponent, with digits that do not end in 0. It is the
 * shortest decimal that reads back as value, and the nearest one of that length. value must be
 * finite. For 0, both are 0. */
void tune_decimal(double value, uint64_t *digits, int *exponent);

/* tune_decimal_python - print like Python's repr(): 1.0, 2.5, 1e-05, 1e+16, nan, inf. Returns the
 * length.
 *
 * tune_decimal_json - the same without ".0": 1, 2.5, 1e-05, 1e+16. value must be finite, since JSON
 * has no spelling for others. */
int tune_decimal_python(char text[TUNE_DECIMAL_SIZE], double value);
int tune_decimal_json(char text[TUNE_DECIMAL_SIZE], double value);

#ifdef __cplusplus
}
#endif
#endif
