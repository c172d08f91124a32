/* try.h - relay an error: the short form components and tests use. Not included by any public
 * header. */
#ifndef TUNE_CORE_TRY_H
#define TUNE_CORE_TRY_H

#include "core/error.h"

/* TRY - evaluate a call that returns 0 or -1; on -1 return -1 at once. */
#define TRY(call)        \
    do {                 \
        if ((call) < 0)  \
            return -1;   \
    } while (0)

#endif
