/* array.h - memory for objects and arrays, and arrays that grow by one element at a time. */
#ifndef TUNE_CORE_ARRAY_H
#define TUNE_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

#include "core/error.h"

/* tune_zeroed - zeroed memory for count elements of size bytes. Free it with free. NULL with an
 * error of kind CANNOT: "no memory for " and what the format says. */
void *tune_zeroed(size_t count, size_t size, const char *format, ...) TUNE_PRINTF(3, 4);

/* tune_array_fit - room for one more element behind count ones, of size bytes each. array: the
 * address of the pointer, which is NULL or from this function, and is set. The room is not stored:
 * it is the next power of two, at least 8. false: no memory; the array stays as it is, and no error
 * is set. */
bool tune_array_fit(void *array, size_t count, size_t size);

#endif
