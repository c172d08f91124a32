/* library.c - open a library of the system when a file needs it. */
#include "files/library.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/try.h"

int tune_library_open(struct tune_library *library, const char *name, const char *package, const char *format, ...)
{
    library->name = name;
    if (library->handle || (library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)))
        return 0;
    char text[sizeof((struct tune_error *)0)->text];
    const char *why = dlerror();
    FORMAT(text, format);
    if (why && !strstr(why, "No such file"))
        return tune_error_cannot("%s, and %s, which reads it, cannot be opened: %s", text, name, why);
    return tune_error_cannot("%s, and %s, which reads it, is not on this machine (Debian: apt-get install %s)", text, name,
                             package);
}

/* C has no cast from dlsym's pointer to a pointer to a function. */
int tune_library_find(const struct tune_library *library, const char *name, void *function)
{
    void *at = dlsym(library->handle, name);
    memcpy(function, &at, sizeof at);
    return at ? 0 : tune_error_cannot("%s has no function %s; it is another version than is known here", library->name, name);
}

void tune_library_close(struct tune_library *library)
{
    if (library->handle)
        dlclose(library->handle);
    library->handle = NULL;
}

const char *tune_library_beside(const char *file, const char *variable, char *path, size_t size)
{
    static const char *const folders[] = {"", "../", "../lib/"};
    char program[PATH_MAX];
    const char *set = getenv(variable);
    ssize_t n = set ? -1 : readlink("/proc/self/exe", program, sizeof program);
    const char *slash = n > 0 ? memrchr(program, '/', (size_t)n) : NULL;
    for (size_t i = 0; !set && slash && i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, size, "%.*s/%s%s", (int)(slash - program), program, folders[i], file);
        set = access(path, F_OK) == 0 ? path : NULL;
    }
    return set;
}
