/* array.c - room for one more. */
#include "core/array.h"

#include <stdlib.h>
#include <string.h>

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
