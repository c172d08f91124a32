/* fake_nvml.h - the library of fake_nvml.c, built by the compiler of this machine and loaded under the real one's name: whoever
 * opens libnvidia-ml.so.1 from then on gets it. */
#ifndef TUNE_TEST_FAKE_NVML_H
#define TUNE_TEST_FAKE_NVML_H

#include <dlfcn.h>

#include "test.h"

static struct {
    void *library;
    unsigned *compute, *milliwatts;
    unsigned long long *used;
    int *begun, *broken, *calls;
} fake;

/* With source the path of fake_nvml.c; false: there is no compiler. */
static inline bool fake_nvml_load(const char *source)
{
    char command[2 * TUNE_PATH_MAX], path[64] = "/tmp/tune-fake-nvml-XXXXXX";
    const char *cc = getenv("CC");
    int fd = mkstemp(path);
    if (fd < 0)
        return false;
    close(fd);
    snprintf(command, sizeof command, "%s -shared -fPIC -Wl,-soname,libnvidia-ml.so.1 -o %s '%s' 2>/dev/null", cc && *cc ? cc : "cc",
             path, source);
    fake.library = system(command) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    unlink(path);
    if (!fake.library)
        return false;
    fake.compute = dlsym(fake.library, "fake_compute");
    fake.milliwatts = dlsym(fake.library, "fake_milliwatts");
    fake.used = dlsym(fake.library, "fake_used");
    fake.begun = dlsym(fake.library, "fake_begun");
    fake.broken = dlsym(fake.library, "fake_broken");
    fake.calls = dlsym(fake.library, "fake_calls");
    return true;
}

#endif
