/* library.h - open a library of the system when a file needs it.
 *
 * So a program starts, and is built, without the libraries that only some files need: snappy and
 * zstd for Parquet files, libyaml for YAML. Example:
 *
 *     struct tune_library z = {0};
 *     size_t (*decompress)(void *, size_t, const void *, size_t);
 *     TRY(tune_library_open(&z, "libzstd.so.1", "libzstd1", "%s: this file is compressed", path));
 *     TRY(tune_library_find(&z, "ZSTD_decompress", &decompress));
 *     ...
 *     tune_library_close(&z); */
#ifndef TUNE_FILES_LIBRARY_H
#define TUNE_FILES_LIBRARY_H

#include <stddef.h>

#include "core/error.h"

struct tune_library {
    const char *name; /* borrowed */
    void *handle;     /* NULL: not open */
};

/* tune_library_open - open the library of this name, unless it is open. format says which file
 * needs it and why. -1 with an error of kind CANNOT: the library is not on this machine, or it
 * cannot be opened. If it is not there, the error names Debian's package of it. */
int tune_library_open(struct tune_library *library, const char *name, const char *package,
                      const char *format, ...) TUNE_PRINTF(4, 5);

/* tune_library_find - write the address of a function. function: the address of a pointer to a
 * function. -1 with an error of kind CANNOT: the library has no such function. */
int tune_library_find(const struct tune_library *library, const char *name, void *function);

/* tune_library_close - close it; fine if it is not open. */
void tune_library_close(struct tune_library *library);

/* tune_library_beside - the path of a library of tune.c that programs open when they need it. The
 * environment variable names it. Else it is in the program's folder, in the one above, or in
 * ../lib. path: size bytes. NULL: there is none; no error is set. */
const char *tune_library_beside(const char *file, const char *variable, char *path, size_t size);

#endif
