/* exclusive.h - write files in a folder that several hosts share. Temporary files have random
 * names, because processes of two hosts may have the same pid. */
#ifndef TUNE_STORES_EXCLUSIVE_H
#define TUNE_STORES_EXCLUSIVE_H

#include <stdbool.h>
#include <stddef.h>

/* tune_exclusive_write - atomically write a file under a free name. 1: done. 0: the name is taken,
 * and nothing was changed. -1 with an error. sync: the file survives a power cut.
 * tune_replace_write - the same, but replace an existing file. 0, or -1 with an error. */
int tune_exclusive_write(const char *path, const void *data, size_t size, bool sync);
int tune_replace_write(const char *path, const void *data, size_t size, bool sync);

#endif
