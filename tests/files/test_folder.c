/* test_folder.c - files of a folder whose own name changes: another process turns its link to and
 * fro meanwhile. */
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "test.h"

#include "files/folder.h"

/* "model" is by turns a link to the stranger's folder and to the private one, until the process is
 * killed. */
static void turn(void)
{
    for (int i = 0;; i++)
        if (symlink(i % 2 ? "own" : "private", "next") < 0 || rename("next", "model") < 0)
            _exit(1);
}

static void a_folder_is_looked_up_once(void **state)
{
    (void)state;
    enum { TRIES = 5000 };
    int own = 0, leaks = 0;
    assert_int_equal(mkdir("own", 0777) | mkdir("private", 0777), 0);
    assert_ok(tune_file_write("private/token", "PRIVATE", 7));
    assert_ok(tune_file_write("private/plain", "{}", 2));
    assert_ok(tune_file_write("own/plain", "{}", 2));
    assert_int_equal(symlink("../private/token", "own/link") | symlink("own", "model"), 0);
    pid_t turner = fork();
    if (turner == 0)
        turn();
    for (int i = 0; i < TRIES && leaks == 0; i++) {
        char *text;
        size_t size;
        if (tune_folder_read("model", "link", 64, &text, &size) == 0) {
            leaks++;
            free(text);
        }
        if (tune_folder_read("model", "plain", 64, &text, &size) == 0) {
            own++;
            free(text);
        }
    }
    assert_int_equal(waitpid(turner, NULL, WNOHANG), 0); /* it turns still */
    kill(turner, SIGKILL);
    waitpid(turner, NULL, 0);
    assert_int_equal(leaks, 0);
    assert_int_equal(own, TRIES); /* whichever of the two it was */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_folder_is_looked_up_once, test_home_begin, test_home_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL) != 0;
}
