/* array.h - arrays that grow by one element at a time. Their room is not stored: it follows from
 * their count. */
#ifndef TUNE_CORE_ARRAY_H
#define TUNE_CORE_ARRAY_H

#include <stdbool.h>
#include <stddef.h>

/* tune_array_fit - room for one more element behind count ones, of size bytes each. array: the
 * address of the pointer, which is NULL or from this function, and is set. Room is the next power
 * of two, at least 8. false: no memory; the array stays as it is, and no error is set. */
bool tune_array_fit(void *array, size_t count, size_t size);

#endif
