/* hidden_library.h - a machine without one library: dlopen does not find the name in hidden_library. For tests of what
 * the components say then. */
#ifndef TUNE_HIDDEN_LIBRARY_H
#define TUNE_HIDDEN_LIBRARY_H

#include <dlfcn.h>
#include <string.h>

static const char *hidden_library; /* NULL: none */

void *dlopen(const char *name, int flags)
{
    void *(*real)(const char *, int), *at = dlsym(RTLD_NEXT, "dlopen");
    memcpy(&real, &at, sizeof at);
    return name && hidden_library && !strcmp(name, hidden_library) ? NULL : real(name, flags);
}

#endif
