/* array.c - memory for objects and arrays. */
#include "core/array.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *tune_zeroed(size_t count, size_t size, const char *format, ...)
{
    char what[512];
    void *memory = calloc(count, size);
    if (!memory) {
        va_list args;
        va_start(args, format);
        vsnprintf(what, sizeof what, format, args);
        va_end(args);
        tune_error_no_memory("%s", what);
    }
    return memory;
}

bool tune_array_fit(void *array, size_t count, size_t size)
{
    void *old, *grown;
    if (count > 0 && (count < 8 || (count & (count - 1))))
        return true;
    memcpy(&old, array, sizeof old); /* any type of pointer */
    if (!(grown = reallocarray(old, count ? 2 * count : 8, size)))
        return false;
    memcpy(array, &grown, sizeof grown);
    return true;
}
