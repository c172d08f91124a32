/* exclusive.h - write files that processes of several hosts write, too. Temporary files have names
 * drawn at random, because processes of two hosts may have the same pid. */
#ifndef TUNE_STORES_EXCLUSIVE_H
#define TUNE_STORES_EXCLUSIVE_H

#include <stdbool.h>
#include <stddef.h>

/* tune_exclusive_write - write size bytes under a name that is free, whole or not at all. 1: done.
 * 0: something has that name already, and stays as it is. -1 with an error. sync: it outlives a
 * power cut.
 * tune_replace_write - the same in place of a file that may be there. 0, or -1 with an error. */
int tune_exclusive_write(const char *path, const void *data, size_t size, bool sync);
int tune_replace_write(const char *path, const void *data, size_t size, bool sync);

#endif
