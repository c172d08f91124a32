/* try.h - pass an error on, for components and tests. No public header includes it. */
#ifndef TUNE_CORE_TRY_H
#define TUNE_CORE_TRY_H

#include <stdarg.h>
#include <stdio.h>

#include "core/error.h"

/* TRY - evaluate a call that returns 0 or -1. If it fails, return -1 from this function. */
#define TRY(call)        \
    do {                 \
        if ((call) < 0)  \
            return -1;   \
    } while (0)

/* FORMAT - in a function like printf: its last named parameter and the arguments behind it, as text
 * into an array. */
#define FORMAT(text, format)                              \
    do {                                                  \
        va_list arguments;                                \
        va_start(arguments, format);                      \
        vsnprintf(text, sizeof(text), format, arguments); \
        va_end(arguments);                                \
    } while (0)

#endif
