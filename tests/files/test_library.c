/* test_library.c - libraries that are opened when they are needed: one that is there, one that is not, a function that is
 * not in it. */
#include "test.h"

#include "files/library.h"

static void opens(void **state)
{
    (void)state;
    struct tune_library l = {0};
    size_t (*length)(const char *);
    assert_ok(tune_library_open(&l, "libc.so.6", "libc6", "f.txt: a text"));
    void *handle = l.handle;
    assert_ok(tune_library_open(&l, "libc.so.6", "libc6", "f.txt: a text"));
    assert_ptr_equal(l.handle, handle);
    assert_ok(tune_library_find(&l, "strlen", &length));
    assert_int_equal(length("seven m"), 7);
    assert_int_equal(tune_library_find(&l, "tune_no_such_function", &length), -1);
    assert_error_has("libc.so.6 has no function tune_no_such_function; it is another version than is known here");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    tune_library_close(&l);
    assert_null(l.handle);
    tune_library_close(&l);
}

static void absent(void **state)
{
    (void)state;
    struct tune_library l = {0};
    assert_int_equal(tune_library_open(&l, "libabsent.so.1", "libabsent1", "%s: column %d is absent", "f", 3), -1);
    assert_string_equal(tune_error_message(), "f: column 3 is absent, and libabsent.so.1, which reads it, is not on this machine "
                                              "(Debian: apt-get install libabsent1)");
    assert_int_equal(tune_error_kind(), TUNE_ERROR_CANNOT);
    tune_library_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(opens), cmocka_unit_test(absent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
