/* exclusive.h - make a file that only one of many processes can make. */
#ifndef TUNE_STORES_EXCLUSIVE_H
#define TUNE_STORES_EXCLUSIVE_H

#include <stdbool.h>
#include <stddef.h>

/* tune_exclusive_write - write size bytes under a name that is free, whole or not at all. 1: done.
 * 0: something has that name already, and stays as it is. -1 with an error. sync: it outlives a
 * power cut. */
int tune_exclusive_write(const char *path, const void *data, size_t size, bool sync);

#endif
