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
        tune_error_no_memory("%s (%zu times %zu bytes)", what, count, size);
    }
    return memory;
}

int tune_array_reserve(void *array, size_t *capacity, size_t need, size_t size, const char *what)
{
    void *old, *grown;
    size_t more = need + need / 2 + 64;
    if (need <= *capacity)
        return 0;
    memcpy(&old, array, sizeof old); /* any type of pointer */
    if (!(grown = reallocarray(old, more, size)))
        return tune_error_no_memory("%s (%zu times %zu bytes)", what, more, size);
    memcpy(array, &grown, sizeof grown);
    *capacity = more;
    return 0;
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
