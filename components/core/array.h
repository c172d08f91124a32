/* array.h - memory for objects and arrays, and arrays that grow by one element at a time. */
#ifndef TUNE_CORE_ARRAY_H
#define TUNE_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* tune_zeroed - zeroed memory for count elements of size bytes. Free it with free. NULL with an
 * error of kind CANNOT: "no memory for ", what the format says, and how many bytes. */
void *tune_zeroed(size_t count, size_t size, const char *format, ...) TUNE_PRINTF(3, 4);

/* tune_array_reserve - make the capacity at least `need` elements of size bytes, and half as much
 * again. array: the address of the pointer, which is NULL or from malloc, and is set, as *capacity
 * is. -1 with an error that says what there is no memory for; the array stays as it is. */
int tune_array_reserve(void *array, size_t *capacity, size_t need, size_t size, const char *what);

/* tune_array_fit - make the array hold one more element behind count ones, of size bytes each.
 * array: the address of the pointer, which is NULL or from this function, and is set. The capacity
 * is not stored: it is the next power of two, at least 8. false: no memory; the array stays as it
 * is, and no error is set. */
bool tune_array_fit(void *array, size_t count, size_t size);

#endif
