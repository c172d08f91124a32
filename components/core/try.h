/* try.h - pass an error on, for components and tests. No public header includes it. */
#ifndef TUNE_CORE_TRY_H
#define TUNE_CORE_TRY_H

#include "core/error.h"

/* TRY - evaluate a call that returns 0 or -1. If it fails, return -1 from this function. */
#define TRY(call)        \
    do {                 \
        if ((call) < 0)  \
            return -1;   \
    } while (0)

#endif
