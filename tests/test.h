/* test.h - what every test program includes: cmocka, folders of its own, where the real material lies. */
#ifndef TUNE_TEST_H
#define TUNE_TEST_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/error.h"
#include "files/file.h"

/* The message of a call that must succeed, when it does not. */
#define assert_ok(call)                                                       \
    do {                                                                      \
        if ((call) < 0)                                                       \
            fail_msg("%s: %s", #call, tune_error_message());                  \
    } while (0)
#define assert_got(pointer)                                                   \
    do {                                                                      \
        if (!(pointer))                                                       \
            fail_msg("%s: %s", #pointer, tune_error_message());               \
    } while (0)
/* The last error's message holds this text. */
#define assert_error_has(text)                                                \
    do {                                                                      \
        if (!strstr(tune_error_message(), text))                              \
            fail_msg("message \"%s\" lacks \"%s\"", tune_error_message(), text); \
    } while (0)

/* TUNE_TEST_ONLY: a pattern of names; the other tests of the program are skipped. */
static void __attribute__((constructor)) test_only(void)
{
    const char *pattern = getenv("TUNE_TEST_ONLY");
    if (pattern)
        cmocka_set_test_filter(pattern);
}

/* A fresh folder of this test, removed by test_folder_remove; in $TMPDIR where that is a short path. */
static inline const char *test_folder(void)
{
    static char folder[64];
    const char *inside = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/tune-test-XXXXXX", inside && strlen(inside) < 40 ? inside : "/tmp");
    if (!mkdtemp(folder))
        abort();
    return folder;
}

/* Fixtures of a test that works in a folder of its own. */
static char test_home[64];
static inline int test_home_begin(void **state)
{
    (void)state;
    snprintf(test_home, sizeof test_home, "%s", test_folder());
    return chdir(test_home);
}
static inline int test_home_end(void **state)
{
    (void)state;
    return chdir("/") < 0 ? -1 : tune_file_remove_folder(test_home);
}

static inline void test_write(const char *folder, const char *name, const void *data, size_t size)
{
    char path[TUNE_PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f))
        fail_msg("cannot write %s", path);
}

/* The folder of real material, $TUNE_SHARED or ../shared/data; NULL: absent, the test says so and skips. */
static inline const char *test_shared(void)
{
    const char *folder = getenv("TUNE_SHARED");
    if (!folder)
        folder = "../shared/data";
    return access(folder, R_OK) == 0 ? folder : NULL;
}

/* Under an emulator of another processor (tests/aarch64.sh): slow, and not all of the kernel's doings are emulated. */
static inline bool emulated(void)
{
    return getenv("TUNE_TEST_EMULATED") != NULL;
}

/* The larger of two errors; one that is no number is the largest, which fmax would pass over. */
static inline double test_worse(double a, double b)
{
    return isnan(a) || b <= a ? a : b;
}

/* ||a-b|| / ||b|| in float64. */
static inline double test_error(const float *a, const double *b, int64_t n)
{
    double d = 0, s = 0;
    for (int64_t i = 0; i < n; i++) {
        d += (a[i] - b[i]) * (a[i] - b[i]);
        s += b[i] * b[i];
    }
    return s > 0 ? sqrt(d / s) : sqrt(d);
}

#endif
