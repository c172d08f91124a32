/* fuzz.h - what every fuzz target shares: bytes as a file with a path, and a check that ends the program.
 *
 * A target is LLVMFuzzerTestOneInput: it opens the bytes the way the library opens a file, asks everything there is to
 * ask, and checks what must hold whatever the bytes are. `make fuzz` links targets with libFuzzer; replay.c is the main
 * of a plain build, which runs them over the archives of tests/fuzz/corpus in every `make test`. Run from the tree's root. */
#ifndef TUNE_FUZZ_H
#define TUNE_FUZZ_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.h"
#include "files/file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold. Not assert, which NDEBUG takes away; __builtin_trap is what libFuzzer and a shell both report. */
#define HOLDS(condition)                                                                                    \
    do {                                                                                                    \
        if (!(condition)) {                                                                                 \
            fprintf(stderr, "%s:%d: does not hold: %s (last error: %s)\n", __FILE__, __LINE__, #condition,  \
                    tune_error_message());                                                                  \
            __builtin_trap();                                                                               \
        }                                                                                                   \
    } while (0)

/* A file in memory: opened, mapped and measured like any other, through its path. */
struct fuzz_file {
    int fd;
    char path[64];
};

static inline struct fuzz_file fuzz_file(void)
{
    struct fuzz_file f = {.fd = memfd_create("fuzz", MFD_CLOEXEC)};
    HOLDS(f.fd >= 0);
    snprintf(f.path, sizeof f.path, "/proc/self/fd/%d", f.fd);
    return f;
}

static inline void fuzz_write(const struct fuzz_file *f, const void *data, size_t size, off_t at)
{
    HOLDS(size == 0 || pwrite(f->fd, data, size, at) == (ssize_t)size);
}

/* The file becomes exactly these bytes. */
static inline void fuzz_set(const struct fuzz_file *f, const void *data, size_t size)
{
    HOLDS(ftruncate(f->fd, 0) == 0);
    fuzz_write(f, data, size, 0);
}

/* Keep libyaml open: the reader opens and closes it for each input. */
static inline void fuzz_hold_libyaml(void)
{
    static void *held;
    if (!held)
        held = dlopen("libyaml-0.so.2", RTLD_NOW | RTLD_LOCAL);
    HOLDS(held);
}

/* A folder of this process in /tmp; it is removed at the end. */
static inline const char *fuzz_folder(void);
static inline void fuzz_remove_folder(void)
{
    (void)tune_file_remove_folder(fuzz_folder());
}
static inline const char *fuzz_folder(void)
{
    static char folder[] = "/tmp/tune-fuzz-XXXXXX";
    static bool made;
    if (!made)
        HOLDS((made = mkdtemp(folder) != NULL) && atexit(fuzz_remove_folder) == 0);
    return folder;
}

/* A file in that folder, for readers that take a folder: they refuse links that lead out of it. */
static inline struct fuzz_file fuzz_file_in_folder(const char *name)
{
    struct fuzz_file f;
    HOLDS((size_t)snprintf(f.path, sizeof f.path, "%s/%s", fuzz_folder(), name) < sizeof f.path);
    HOLDS((f.fd = open(f.path, O_RDWR | O_CREAT | O_CLOEXEC, 0600)) >= 0);
    return f;
}

/* How often fuzz_refused was called: replay.c looks whether an input was read to its end. */
__attribute__((weak)) unsigned fuzz_refusals;

/* What failed said why. */
static inline void fuzz_failed(void)
{
    HOLDS(tune_error_message()[0]);
    tune_error_clear();
}

/* ... and nothing of the input was used. */
static inline void fuzz_refused(void)
{
    fuzz_refusals++;
    fuzz_failed();
}

#endif
