/* test_sync.c - what shall outlast a power cut is brought to the disk before it has its name, and then the name: fsync of a file or
 * folder, rename, link, in this order. The calls are caught by functions of our own. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "test.h"

#include "sweeps/stores/exclusive.h"
#include "sweeps/stores/store.h"

static char calls[64]; /* f: a file was synced, d: a folder; r: renamed, l: linked */

static void note(char what)
{
    size_t n = strlen(calls);
    if (n + 1 < sizeof calls)
        calls[n] = what;
}

int fsync(int fd)
{
    struct stat st;
    note(fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) ? 'd' : 'f');
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    note('r');
    return (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

int link(const char *from, const char *to)
{
    note('l');
    return (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* The calls since the last time. */
static const char *seen(void)
{
    static char last[sizeof calls];
    memcpy(last, calls, sizeof calls);
    memset(calls, 0, sizeof calls);
    return last;
}

static void files(void **state)
{
    (void)state;
    struct tune_folder_writer w;
    seen();
    assert_ok(tune_file_write("a", "x", 1));
    assert_string_equal(seen(), "frd");
    assert_ok(tune_file_link("b", "a"));
    assert_string_equal(seen(), "rd");
    assert_ok(tune_file_begin_folder(&w, "c"));
    assert_ok(tune_file_commit_folder(&w));
    assert_string_equal(seen(), "drd");
    assert_ok(tune_file_make_folder("d/e"));
    assert_string_equal(seen(), "dd");
    assert_ok(tune_file_make_folder("d/e"));
    assert_string_equal(seen(), "");
}

static void stores(void **state)
{
    (void)state;
    seen();
    assert_int_equal(tune_exclusive_write("kept", "x", 1, true), 1);
    assert_string_equal(seen(), "fld");
    assert_int_equal(tune_exclusive_write("kept", "y", 1, true), 0); /* it is there: nothing of ours is to be kept */
    assert_string_equal(seen(), "fl");
    assert_int_equal(tune_exclusive_write("claim", "x", 1, false), 1);
    assert_string_equal(seen(), "l");
    struct tune_store *s = tune_store_open("store", true);
    assert_got(s);
    /* its folder; the trial of the file system and its note; its identity, which other processes rely on */
    assert_string_equal(seen(), "d" "fllrd" "r" "fld");
    struct tune_cell request[TUNE_REQUEST_KEYS];
    for (int i = 0; i < TUNE_REQUEST_KEYS; i++)
        request[i] = (struct tune_cell){.text = "x"};
    assert_ok(tune_store_request(s, request));
    assert_string_equal(seen(), "frd"); /* a row that was appended stays */
    assert_ok(tune_store_record(s, "spaces", "a.yaml", "x", 1));
    assert_string_equal(seen(), "dfrd");
    tune_store_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files), cmocka_unit_test(stores)};
    return cmocka_run_group_tests(tests, test_home_begin, test_home_end);
}
