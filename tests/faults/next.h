/* next.h - for libraries that are preloaded: the function that a function of theirs replaces. */
#ifndef TUNE_TESTS_FAULTS_NEXT_H
#define TUNE_TESTS_FAULTS_NEXT_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>

#define NEXT(name) static __typeof__(&name) next; next = next ? next : (__typeof__(&name))dlsym(RTLD_NEXT, #name)

/* The mode of open(path, flags, ...); 0 if the flags want none. */
#define MODE_OF(mode, flags)                             \
    mode_t mode = 0;                                     \
    if ((flags) & (O_CREAT | __O_TMPFILE)) {             \
        va_list more;                                    \
        va_start(more, flags);                           \
        mode = va_arg(more, mode_t);                     \
        va_end(more);                                    \
    }

#endif
